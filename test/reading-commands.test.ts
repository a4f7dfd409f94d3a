// The commands that read what a gateway did, against a real one after real calls: what was asked and charged is what
// they print, as text and as JSON. Their options and refusals are in src/cli.

import { afterAll, expect, test } from 'bun:test'
import { ask } from './parts/ask.ts'
import { runHere } from './parts/command-line.ts'
import { requestRecords, startGateway, stopAll, upstreamConfig } from './parts/gateway.ts'
import { adminToken } from './parts/manage.ts'
import { bodyOf, chat, messages, type TestSurface } from './parts/surfaces.ts'
import { startUpstream } from './parts/upstream.ts'
import { wordsFor } from './parts/upstream-words.ts'

const upstream = startUpstream((call, reply) =>
  reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole),
)
const gateway = await startGateway({ config: upstreamConfig(upstream.url), env: { TOLLGATE_SANDBOX: 'off' } })
const idOf = async (surface: TestSurface, model: string) => {
  const response = await ask(gateway, surface, bodyOf(surface, { model: JSON.stringify(model) }))
  await response.text()
  return response.headers.get('x-request-id') ?? ''
}
/** One on each surface for 3 tokens in at $1.00 a million and 2 out at $2.00, and one that was refused. */
const ids = [await idOf(chat, 'test/chat'), await idOf(messages, 'test/messages'), await idOf(chat, 'no/such')]
await requestRecords(gateway, ids.length)
afterAll(() => stopAll(gateway, upstream))

async function run(...args: string[]): Promise<string> {
  const { dataFolder, url } = gateway
  const env = { HOME: dataFolder, TOLLGATE_URL: url, TOLLGATE_ADMIN_TOKEN: adminToken(dataFolder) }
  const { exit, out, err } = await runHere(args, { env, cwd: dataFolder })
  // The one hint, beside the table.
  const hint = args.join() === 'models' ? 'Models of providers that are off: tollgate models --all\n' : ''
  expect([args, exit, err]).toEqual([args, 0, hint])
  return out
}

// biome-ignore lint/suspicious/noExplicitAny: every command has its own shape.
const json = async (...args: string[]): Promise<any> => JSON.parse(await run(...args, '--json'))

/** The cells of a table, without its header. */
const rows = (table: string) =>
  table
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(/ {2,}/))

test('requests lists them, the newest first, with their charges', async () => {
  // Requests without a charge are written a moment later.
  while ((await json('requests')).data.length < ids.length) await Bun.sleep(20)
  const [third, second, first] = rows(await run('requests'))
  expect(first?.slice(1, 7)).toEqual(['200', 'test/chat', 'chatty', '1', '3', '2'])
  expect(second?.slice(1, 7)).toEqual(['200', 'test/messages', 'messy', '1', '3', '2'])
  for (const [at, row] of [first, second].entries()) expect(row?.slice(-2)).toEqual(['$0.000007', ids[at] ?? ''])
  expect([third?.[1], third?.at(-2), third?.at(-1)]).toEqual(['404', '–', ids[2]])
  const { data } = await json('requests')
  expect(data.map(({ id, status, cost }: Record<string, unknown>) => [id, status, cost])).toEqual([
    [ids[2], 404, null],
    [ids[1], 200, '0.000007'],
    [ids[0], 200, '0.000007'],
  ])
})

test('requests show and explain take a charge apart', async () => {
  for (const [at, path] of ['/v1/chat/completions', '/v1/messages'].entries()) {
    const id = ids[at] ?? ''
    const shown = await run('requests', 'show', id)
    expect(shown).toMatch(new RegExp(`^ +path +${path}$`, 'm'))
    for (const text of [shown, await run('explain', id)]) {
      expect(text).toContain(id)
      expect(text).toMatch(/^ +input +3 × \$1\.00 \/ M +\$0\.000003/m)
      expect(text).toMatch(/^ +output +2 × \$2\.00 \/ M +\$0\.000004/m)
      expect(text).toMatch(/^ +charge +\$0\.0000070* +usage reported by the provider$/m)
    }
    for (const command of [['requests', 'show'], ['explain']]) {
      expect(await json(...command, id)).toMatchObject({
        id,
        path,
        cost: '0.000007',
        usage: { input_tokens: 3, output_tokens: 2, source: 'reported' },
      })
    }
  }
})

test('usage adds them up by day and model', async () => {
  const day = '\\d{4}-\\d{2}-\\d{2}'
  const text = await run('usage')
  for (const model of ['test/chat', 'test/messages'])
    expect(text).toMatch(new RegExp(`^${day},${model},1,0,0,3,0,0,0,2,0\\.000007,0\\.00$`, 'm'))
  const lines = (await run('usage', '--json')).trim().split('\n')
  const sums = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(sums).toContainEqual(
    expect.objectContaining({
      model: 'test/chat',
      requests: 1,
      input_tokens: 3,
      output_tokens: 2,
      cost_usd: '0.000007',
      cache_saved_usd: '0.00',
    }),
  )
})

test('usage cache shows hit rate and savings, and the total below them', async () => {
  const lines = (await run('usage', 'cache')).trimEnd().split('\n')
  expect(lines[0]).toMatch(/^MODEL +REQUESTS +INPUT +CACHED +WRITTEN +HIT RATE +COST +SAVED$/)
  expect(lines).toContainEqual(expect.stringMatching(/^test\/chat +1 +3 +0 +0 +0\.0 % +\$0\.000007 +\$0\.00$/))
  expect(lines.at(-1)).toMatch(/^total +3 +6 +0 +0 +0\.0 % +\$0\.000014 +\$0\.00$/)
})

test('wallet has what is left of the opening credit', async () => {
  // $5.00 − 2 × $0.000007
  expect(await run('wallet')).toMatch(/^ +balance +\$4\.999986\n +held +\$0\.00 .*\n +available +\$4\.999986$/m)
  expect(await json('wallet')).toEqual({
    balance: '4.999986',
    held: '0.00',
    available: '4.999986',
    credit: '0.00',
    currency: 'USD',
  })
})

test('models lists what is sold, at its price, and where it comes from', async () => {
  const list = rows(await run('models'))
  expect(list.map((cells) => cells.slice(0, 5))).toEqual([
    ['test/chat', 'available', '1.00', '2.00', '0.10'],
    ['test/messages', 'available', '1.00', '2.00', '0.10'],
  ])
  expect(list.map((row) => row.at(-1))).toEqual(['chatty', 'messy'])
  const { data } = await json('models')
  expect(data.map(({ id }: { id: string }) => id)).toEqual(['test/chat', 'test/messages'])
})

test('requests names the failure of a stream that had begun with a 200', async () => {
  const arrived = Promise.withResolvers<void>()
  upstream.handle(async (call, reply) => {
    await reply.startStream()
    await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
    await arrived.promise
    reply.cut()
  })
  const response = await ask(gateway, chat, bodyOf(chat, { stream: 'true' }))
  arrived.resolve()
  await response.text()
  expect(response.status).toBe(200)
  await requestRecords(gateway, ids.length + 1)
  const id = response.headers.get('x-request-id') ?? ''
  const line = (await run('requests')).split('\n').find((text) => text.includes(id))
  expect(line).toContain(' 200 STREAM_INTERRUPTED  test/chat ')
  const shown = await json('requests', 'show', id)
  expect(shown).toMatchObject({
    status: 200,
    code: 'STREAM_INTERRUPTED',
    attempts: [{ provider: 'chatty', outcome: 'interrupted: broken' }],
  })
})
