import { expect, test } from 'bun:test'
import { onSqlite, openWorld } from '../../test/parts/command-line.ts'
import { namesOf } from './names.ts'

// Some ten processes per test, on a machine that may be busy.

test('a name that several have comes with its id, and what has none is its id', () => {
  const name = namesOf([
    { id: 'prj_1', name: 'web' },
    { id: 'prj_2', name: 'twin' },
    { id: 'prj_3', name: 'twin' },
  ])
  expect(['prj_1', 'prj_2', 'prj_3', 'prj_4'].map(name)).toEqual(['web', 'twin (prj_2)', 'twin (prj_3)', 'prj_4'])
})

onSqlite((engine) => {
  test('whoever makes a second thing of one name is told which the first is', async () => {
    await using world = await openWorld(engine)
    const notes = async (args: string) => (await world.run(args)).err.split('\n').filter((line) => /^Note/.test(line))
    expect(await notes('workspaces create acme')).toEqual([])
    const [acme] = (await world.json('workspaces')).data
    const note = `Note: another workspace has the name "acme": ${acme.id}`
    expect(await notes('workspaces create acme')).toEqual([note])

    const create = `projects create web --workspace ${acme.id}`
    expect(await notes(create)).toEqual([])
    const [web] = (await world.json(`projects --workspace ${acme.id}`)).data
    expect(await notes(create)).toEqual([`Note: another project has the name "web": ${web.id}`])

    const createKey = `keys create --name ci --project ${web.id}`
    expect(await notes(createKey)).toEqual([])
    const [key] = (await world.json('keys')).data
    expect(await notes(createKey)).toEqual([`Note: another key has the name "ci": ${key.id}`])
    // One that has ended is in nobody's way.
    for (const { id } of (await world.json('keys')).data) await world.run(`keys revoke ${id}`)
    expect(await notes(createKey)).toEqual([])
  })

  test('keys are listed with the names of their projects, and with ids where two have one name', async () => {
    await using world = await openWorld(engine)
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    const projects = `/api/workspaces/${workspace.id}/projects`
    const web = await world.management.make(projects, { name: 'web' })
    await world.management.make(`/api/projects/${web.id}/keys`, { name: 'ci' })
    expect((await world.run('keys')).out).toContain(' active  web ')
    await world.management.make(projects, { name: 'web' })
    expect((await world.run('keys')).out).toContain(` active  web (${web.id}) `)
  })

  test('a project and a key that can call nothing now are made with a warning', async () => {
    const modelsOf = async ({ models }: { readonly models?: readonly string[] | undefined }) =>
      models?.includes('openai/*') ? [] : [{ id: 'acme/large', owned_by: 'acme', own_key: false, own_providers: [] }]
    await using world = await openWorld(engine, { modelsOf })
    await world.management.make('/api/workspaces', { name: 'acme' })
    const warned = async (args: string) => {
      const { exit, err } = await world.run(args)
      expect(exit).toBe(0)
      return /^Warning: this (project|key) can call none of the models on offer now/m.exec(err)?.[1]
    }
    expect(await warned('projects create web --models openai/*')).toBe('project')
    expect(await warned('keys create --name ci')).toBe('key')
    expect(await warned('projects update web --models acme/*')).toBeUndefined()
    expect(await warned('keys create --name two')).toBeUndefined()
    expect(await warned('keys create --name three --models beta/open')).toBe('key')
    expect(await warned('keys create --name four --models acme/large')).toBeUndefined()
    expect(await warned('projects update web --models openai/*')).toBe('project')
  })
})
