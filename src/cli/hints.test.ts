import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { onSqlite, openWorld } from '../../test/parts/command-line.ts'
import { createId } from '../kernel/ids.ts'

// Some ten processes per test, on a machine that may be busy.

onSqlite((engine) => {
  test.each([
    ['keys revoke key_nope', 'tollgate keys list'],
    ['keys rotate key_nope', 'tollgate keys list'],
    ['limits show key_nope', 'tollgate keys list'],
    ['requests show req_nope', 'tollgate requests'],
    ['explain req_nope', 'tollgate requests'],
    ['route nope', 'tollgate models'],
    ['prices set nope --free', 'tollgate models'],
    ['prices history nope', 'tollgate models'],
  ])('what is not there is looked for in a list: %s', async (args, attempt) => {
    await using world = await openWorld(engine)
    const { exit, err } = await world.run(args)
    expect([exit, err.split('\n').at(-2)]).toEqual([4, `Try: ${attempt}`])
    expect(err).not.toContain('/api/')
  })

  test('a built-in model without a provider says which variable switches one on', async () => {
    await using world = await openWorld(engine)
    const { exit, err } = await world.run('route openai/gpt-5.1')
    expect(exit).toBe(4)
    expect(err).toContain('Start the gateway with OPENAI_API_KEY (openai), or OPENROUTER_API_KEY (openrouter).')
    expect(err).toEndWith('Try: OPENAI_API_KEY=… npm start\n')
  })

  test('what the gateway refuses is named as it was typed', async () => {
    await using world = await openWorld(engine)
    const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
    await world.management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    const said = async (args: string) => (await world.run(args)).err.split('\n')[0]
    expect(await said('keys create --name ci --from nowhere')).toStartWith('tollgate: --from must be an address')
    expect(await said('keys create --name ci --models nonsense')).toStartWith('tollgate: --models must be')
    expect(await said('keys create --name ci --rpm 99999999999')).toStartWith('tollgate: --rpm must be')
    expect(await said('usage --by nonsense')).toStartWith('tollgate: --by must be')
  })

  test('where there is nothing to show, that is said, and why it may be', async () => {
    await using world = await openWorld(engine)
    expect((await world.run('requests')).err).toBe('No requests yet.\n')
    const { exit, err } = await world.run('requests --model nope')
    expect([exit, err]).toEqual([0, expect.stringMatching(/^No request fits --model nope: .*tollgate models\n$/)])
    expect((await world.run('usage --from 2026-01-01 --to 2026-02-01')).err).toStartWith(
      'Nothing was used in that time',
    )
    const reversed = await world.run('usage --from 2026-02-01 --to 2026-01-01')
    expect([reversed.exit, reversed.out]).toEqual([2, ''])
    expect(reversed.err).toContain('nothing between --from, 2026-02-01T00:00:00.000Z, and --to, 2026-01-01')
  })

  test('a count of tokens says that it is one, and a request names its key and its project', async () => {
    await using world = await openWorld(engine)
    const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
    const project = await world.management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    const key = await world.management.make(`/api/projects/${project.id}/keys`, { name: 'ci' })
    const request = createId('req')
    const asked = { workspace_id: id, project_id: project.id, key_id: key.id, model: 'acme/large', status: 200 }
    world.management.logged.push({ ...asked, id: request, path: '/v1/messages/count_tokens', candidates: [] })
    expect((await world.run('requests')).out).toContain(' acme/large (count_tokens) ')
    expect((await world.run(`requests show ${request}`)).out).toContain(`ci (${key.id}) of web\n`)
  })

  test('a backup into a folder that is not there says so', async () => {
    await using world = await openWorld(engine)
    const folder = join(world.folder, 'no', 'such')
    expect(await world.run('backup no/such/x.db')).toMatchObject({
      exit: 1,
      err: `tollgate: there is no folder ${folder}.\nTry: mkdir -p ${folder}\n`,
    })
  })
})
