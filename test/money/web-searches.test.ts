// Searches of the web that a provider runs are on its bill one by one, beside the tokens: held for, charged by what was
// reported, kept with the charge, and explained. Models without a price for them pass them on as before.

import { describe, expect, test } from 'bun:test'
import { say, usageIn } from './provider-words.ts'
import { expectPaid } from './till.ts'
import { type Explained, messagesPaths, useTwoTills } from './two-tills.ts'

/** $10.00 per thousand: 10,000,000 nano-dollars each. */
const { priced, unpriced } = useTwoTills('web_search: "10.00"')
const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }

const searched = (count: number) => ({
  ...usageIn('messages', { input: 1000, output: 100 }),
  server_tool_use: { web_search_requests: count, web_fetch_requests: 0 },
})

describe.each(messagesPaths)('$name', (path) => {
  test('each search that was reported is charged, and the charge says how many', async () => {
    priced().upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(2) }))
    const answer = await priced().ask(path, { tools: [search] })
    // 1000 × 1 µ$ + 100 × 2 µ$ + 2 × 1 ¢
    expect(answer.cost).toBe('0.0212')
    await expectPaid(priced(), answer, 21_200_000n)
    expect(priced().charges(answer.requestId)[0]?.usage).toMatchObject({ webSearches: 2 })
    const { usage, charge } = (await priced().wallets.explain(answer.requestId)) as Explained
    expect(usage).toMatchObject({ web_searches: 2 })
    expect(charge.lines).toContainEqual({
      kind: 'web_search',
      tokens: 2,
      price_per_million: '10000.00',
      amount: '0.02',
    })
  })

  test('a model without a price for searches charges its tokens alone', async () => {
    unpriced().upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(2) }))
    const answer = await unpriced().ask(path, { tools: [search] })
    await expectPaid(unpriced(), answer, 1_200_000n)
  })

  test('a count that no answer can have is not believed', async () => {
    priced().upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(1_000_000) }))
    const answer = await priced().ask(path, { tools: [search] })
    const [charge] = priced().charges(answer.requestId)
    expect(charge?.isEstimated).toBe(true)
    // Whatever it came to, it was held for: three searches, and the tokens.
    expect(charge?.amount).toBeLessThan(30_000_000n + 1_000_000n)
  })

  test('what they may cost is held before anything is sent', async () => {
    priced().upstream.handle((call, reply) => say(call, reply, { texts: ['found'], usage: searched(0) }))
    const held = async (tools: object[]) => {
      const answer = await priced().ask(path, { tools, max_tokens: 10 })
      return (await priced().line(answer.requestId)).held ?? 0n
    }
    // The tool that runs at the provider may fill the context, with or without a limit on its searches.
    const limited = await held([search])
    const { max_uses: _, ...unlimited } = search
    expect((await held([unlimited])) - limited).toBe(70_000_000n)
  })

  test('a wallet that cannot pay for them is told so, and nothing is sent', async () => {
    priced().upstream.handle(
      (call, reply) => say(call, reply, { texts: ['found'], usage: searched(0) }),
      'stay unasked',
    )
    const purse = await priced().wallets.open('0.12')
    const before = priced().upstream.calls.length
    const many = { ...search, max_uses: 50 }
    expect((await priced().ask(path, { tools: [many], max_tokens: 10 }, { purse })).status).toBe(402)
    expect(priced().upstream.calls.length).toBe(before)
  })
})

test('a client that leaves after a search has been run pays for it', async () => {
  const start = { type: 'message_start', message: { id: 'm', model: 'up', content: [], usage: searched(0) } }
  const block = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: {} }
  const event = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
  const ran = Promise.withResolvers<void>()
  priced().upstream.handle(async (_, reply) => {
    await reply.startStream()
    await reply.chunk(event(start))
    await reply.chunk(event({ type: 'content_block_start', index: 0, content_block: block } as { type: string }))
    await reply.chunk(event({ type: 'content_block_stop', index: 0 } as { type: string }))
    await ran.promise
  })
  const [path] = messagesPaths.filter(({ stream }) => stream)
  if (!path) throw new Error('no such path')
  const before = priced()
    .gateway.logged()
    .filter(({ message }) => message === 'request').length
  const leaving = new AbortController()
  const response = await fetch(priced().gateway.url + path.surface.path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${priced().gateway.key}`,
      'content-type': 'application/json',
      ...path.surface.headers,
    },
    body: priced().bodyFor(path, { tools: [search] }),
    signal: leaving.signal,
  })
  const reader = response.body?.getReader()
  let seen = ''
  while (!seen.includes('content_block_stop')) seen += new TextDecoder().decode((await reader?.read())?.value)
  leaving.abort()
  const ids = await priced().over(before + 1)
  ran.resolve()
  expect(priced().charges(ids.at(-1) ?? '')[0]?.usage).toMatchObject({ webSearches: 1 })
})
