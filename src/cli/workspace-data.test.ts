import { expect, test } from 'bun:test'
import { onSqlite, openWorld } from '../../test/parts/command-line.ts'

// Some processes per test, on a machine that may be busy.

onSqlite((engine) => {
  test('G3: a workspace is exported as lines, and erased only when one really means it', async () => {
    await using world = await openWorld(engine)
    const { id } = await world.management.make('/api/workspaces', { name: 'Jane Roe' })
    const project = await world.management.make(`/api/workspaces/${id}/projects`, { name: 'home' })
    await world.management.make(`/api/projects/${project.id}/keys`, { name: 'laptop' })
    const exported = await world.run(`workspaces export ${id}`)
    expect(exported.exit).toBe(0)
    const records = exported.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).record)
    expect(records.filter((record) => record !== 'audit')).toEqual(['workspace', 'wallet', 'project', 'key'])

    const refused = await world.run(`workspaces erase ${id}`)
    expect([refused.exit, refused.err]).toEqual([
      2,
      expect.stringContaining(`Try: tollgate workspaces erase ${id} --yes`),
    ])
    expect((await world.json(`workspaces show ${id}`)).name).toBe('Jane Roe')
    const erased = await world.run(`workspaces erase ${id} --yes`)
    expect([erased.exit, erased.out]).toEqual([
      0,
      `${id} is erased: 1 keys, 0 credentials, 0 requests. Its charges and its balance stay.\n`,
    ])
    expect((await world.json(`workspaces show ${id}`)).name).toBe('erased')
  })

  test('a workspace that is not there is a 4 for both', async () => {
    await using world = await openWorld(engine)
    const id = 'ws_01JC0000000000000000000000'
    expect(await world.run(`workspaces export ${id}`)).toMatchObject({ exit: 4, out: '' })
    expect(await world.run(`workspaces erase ${id} --yes`)).toMatchObject({ exit: 4, out: '' })
  })
})
