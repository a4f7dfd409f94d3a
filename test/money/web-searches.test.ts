// Searches of the web that a provider runs are on its bill one by one, beside the tokens: held for, charged by what was
// reported, kept with the charge, and explained. Models without a price for them do not search.

import { afterAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { stopAll } from '../parts/gateway.ts'
import { say, usageIn, wordsOf } from '../parts/upstream-words.ts'
import { allPaths, type Explained, expectPaid, messagesPaths, openTill } from './till.ts'

/** $10.00 per thousand: 10,000,000 nano-dollars each. */
const priced = await openTill({ price: '{ input: "1.00", output: "2.00", web_search: "10.00" }' })
const unpriced = await openTill({ price: '{ input: "1.00", output: "2.00" }' })
afterAll(() => stopAll(priced, unpriced))
const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }

const searched = (count: number) => ({
  ...usageIn('messages', { input: 1000, output: 100 }),
  server_tool_use: { web_search_requests: count, web_fetch_requests: 0 },
})

describe.each([...messagesPaths])('$name', (path) => {
  test('each search that was reported is charged, and the charge says how many', async () => {
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(2) }))
    const answer = await priced.ask(path, { tools: [search] })
    // 1000 × 1 µ$ + 100 × 2 µ$ + 2 × 1 ¢
    expect(answer.cost).toBe('0.0212')
    await expectPaid(priced, answer, 21_200_000n)
    expect(priced.charges(answer.requestId)[0]?.usage).toMatchObject({ webSearches: 2 })
    const { usage, charge } = (await priced.wallets.explain(answer.requestId)) as Explained
    expect(usage).toMatchObject({ web_searches: 2 })
    expect(charge.lines).toContainEqual({
      kind: 'web_search',
      tokens: 2,
      price_per_million: '10000.00',
      amount: '0.02',
    })
  })

  test('a model without a price for searches refuses them before anything is sent', async () => {
    const before = unpriced.upstream.calls.length
    expect((await unpriced.ask(path, { tools: [search] })).status).toBe(400)
    expect(unpriced.upstream.calls.length).toBe(before)
  })

  test('a count that no answer can have is not believed', async () => {
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(1_000_000) }))
    const answer = await priced.ask(path, { tools: [search] })
    const [charge] = priced.charges(answer.requestId)
    expect(charge?.isEstimated).toBe(true)
    // Whatever it came to, it was held for: three searches, and the tokens.
    expect(charge?.amount).toBeLessThan(30_000_000n + 1_000_000n)
  })

  test('the highest cost of the searches is held before anything is sent', async () => {
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(0) }))
    const held = async (tools: object[]) => {
      const answer = await priced.ask(path, { tools, max_tokens: 10 })
      return (await priced.line(answer.requestId)).held ?? 0n
    }
    // The tool that runs at the provider may fill the context, with or without a limit on its searches.
    const limited = await held([search])
    const { max_uses: _, ...unlimited } = search
    expect((await held([unlimited])) - limited).toBe(70_000_000n)
  })

  test('refuses a wallet that cannot pay for them, and sends nothing', async () => {
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(0) }), 'stay unasked')
    const purse = await priced.wallets.open('0.12')
    const before = priced.upstream.calls.length
    const many = { ...search, max_uses: 50 }
    expect((await priced.ask(path, { tools: [many], max_tokens: 10 }, { purse })).status).toBe(402)
    expect(priced.upstream.calls.length).toBe(before)
  })
})

test('a client that leaves after a search has been run pays for it', async () => {
  const start = { type: 'message_start', message: { id: 'm', model: 'up', content: [], usage: searched(0) } }
  const block = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: {} }
  const event = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
  const ran = Promise.withResolvers<void>()
  priced.upstream.handle(async (_, reply) => {
    await reply.startStream()
    await reply.chunk(event(start))
    await reply.chunk(event({ type: 'content_block_start', index: 0, content_block: block } as { type: string }))
    await reply.chunk(event({ type: 'content_block_stop', index: 0 } as { type: string }))
    await ran.promise
  })
  const [path] = messagesPaths.filter(({ stream }) => stream)
  if (!path) throw new Error('no such path')
  const before = (await priced.over(0)).length
  const leaving = new AbortController()
  const body = priced.bodyFor(path, { tools: [search] })
  const response = await ask(priced.gateway, path.surface, body, {}, leaving.signal)
  const reader = response.body?.getReader()
  let seen = ''
  while (!seen.includes('content_block_stop')) seen += new TextDecoder().decode((await reader?.read())?.value)
  leaving.abort()
  const ids = await priced.over(before + 1)
  ran.resolve()
  expect(priced.charges(ids.at(-1) ?? '')[0]?.usage).toMatchObject({ webSearches: 1 })
})

/** The usage of Responses has no count: the items of the answer are counted, but for pages that were opened. */
const searchItems = ['search', 'open_page', 'search'].map((type, at) => ({
  type: 'web_search_call',
  id: `ws_${at}`,
  status: 'completed',
  action: { type, ...(type === 'search' && { query: 'gates' }) },
}))
const itemRecords = searchItems
  .flatMap((item, output_index) => [
    { type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress' } },
    { type: 'response.output_item.done', output_index, item },
  ])
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join('')

const responsesPaths = allPaths.filter(({ provider }) => provider === 'responses')

test.each(responsesPaths)('$name: each search in the answer is charged', async (path) => {
  const till = priced
  till.upstream.handle(async (_, reply) => {
    const words = wordsOf('responses')
    const said = { texts: ['found'], usage: usageIn('responses', { input: 1000, output: 100 }) }
    if (!path.stream) {
      const whole = words.whole(said) as { readonly output: readonly object[] }
      return await reply.json(200, { ...whole, output: [...searchItems, ...whole.output] })
    }
    await reply.startStream()
    await reply.chunk(words.opening(said) + words.text('found') + itemRecords + words.ending(said))
    await reply.finish()
  })
  const answer = await till.ask(path, { tools: [{ type: 'web_search' }] })
  expect([answer.status, answer.cost]).toEqual([200, '0.0212'])
  await expectPaid(till, answer, 21_200_000n)
})

test('a search that has run is charged also if the answer breaks off', async () => {
  const till = priced
  const path = responsesPaths.find(({ surface, stream }) => surface.name === 'responses' && stream)
  if (!path) throw new Error('no such path')
  till.upstream.handle(async (_, reply) => {
    const words = wordsOf('responses')
    await reply.startStream()
    await reply.chunk(words.opening({ usage: undefined }) + words.text('found') + itemRecords)
    await reply.finish()
  })
  const answer = await till.ask(path, { tools: [{ type: 'web_search' }] })
  const [charge] = till.charges(answer.requestId)
  expect(charge?.usage).toMatchObject({ webSearches: 2 })
  // Two searches, and what the prompt and one word are estimated at.
  expect(charge?.amount).toBeGreaterThanOrEqual(20_000_000n)
  expect(charge?.amount).toBeLessThan(20_100_000n)
})

/** Codex offers a search in every request. */
describe.each(allPaths.filter(({ surface }) => surface.name === 'responses'))(
  '$name: a search that no provider gets',
  (path) => {
    test('is not held for', async () => {
      const till = unpriced
      till.upstream.handle((call, reply) => say(call, reply, { texts: ['hi'], usage: undefined }))
      const held = async (tools: object[]) => {
        const answer = await till.ask(path, { tools, max_output_tokens: 10 })
        expect(answer.status).toBe(200)
        return (await till.line(answer.requestId)).held ?? 0n
      }
      const tool = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }
      const plain = await held([tool])
      const offered = await held([tool, { type: 'web_search' }])
      // 24 more bytes, at a micro-dollar for four of them and in advance of a stream's end.
      expect(offered - plain).toBeLessThan(100_000n)
    })
  },
)
