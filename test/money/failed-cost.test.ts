// What attempts without an answer cost the operator: the input of a call that a provider may have billed, what it reported if
// it did, and nothing for an error. Callers pay nothing for them (rows 7 to 9 of docs/reference/charges.md); the margin does.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { post } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { chat } from '../parts/surfaces.ts'
import type { UpstreamHandler } from '../parts/upstream.ts'
import { say, usageIn, wordsOf } from '../parts/upstream-words.ts'
import { explained, openPriced, type PricedGateway, used } from '../prices/priced-gateway.ts'

const words = wordsOf('chat')
const usage = usageIn('chat', used)

/** The first route costs $10.00 and $100.00 per million, the second what the model costs. */
const config = (url: string) => `
providers:
  - { id: first, dialect: openai-chat, base_url: "${url}/first", api_key: key-one }
  - { id: second, dialect: openai-chat, base_url: "${url}/second", api_key: key-two }
models:
  - id: acme/large
    price: { input: "1.00", output: "2.00" }
    routes:
      - { provider: first, model: u, priority: 1, cost: { input: "10.00", output: "100.00" }, timeouts: { first_event_ms: 300 } }
      - { provider: second, model: u, priority: 2, cost: { input: "1.00", output: "2.00" } }
`

const second: UpstreamHandler = (call, reply) => say(call, reply, { texts: ['hello'], usage })
/** "hi" and its overhead, as estimated: 8 tokens at $10.00 per million. */
const inputCost = '0.00008'

forEachEngine((engine) => {
  let priced: PricedGateway
  beforeAll(async () => {
    priced = await openPriced({ engine, config })
  })
  afterAll(() => priced[Symbol.asyncDispose]())

  /** The margin of one call whose first route does that. */
  const marginOf = async (first: UpstreamHandler, stream = false) => {
    const { tenancy, upstream } = priced
    const { key, workspaceId } = await tenancy.tenant({ credit: '10' })
    upstream.handle((call, reply) => (call.path.startsWith('/first') ? first(call, reply) : second(call, reply)))
    const body = JSON.stringify({
      ...{ model: 'acme/large', stream, max_tokens: 100 },
      messages: [{ role: 'user', content: 'hi' }],
    })
    const answer = await post({ url: tenancy.gateway.url, key }, chat.path, body, chat.headers)
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('hello')])
    await explained(tenancy, answer.headers.get('x-request-id') ?? '')
    const { total } = await tenancy.must('GET', `/api/margin?workspace_id=${workspaceId}`)
    return total
  }
  /** 130 in at $1.00 and 50 out at $2.00, sold and bought at the same price. */
  const answered = { requests: 1, charged: '0.00023', upstream_cost: '0.00023', requests_without_cost: 0 }

  test('an error costs nothing', async () => {
    const margin = await marginOf((_, reply) => reply.json(503, { error: { message: 'down' } }))
    expect(margin).toMatchObject({ ...answered, failed_cost: '0.00', margin: '0.00' })
  })

  test('a call that was cut off costs its input', async () => {
    // Later than a pooled connection that was closed already would be noticed.
    const margin = await marginOf((_, reply) => void setTimeout(() => reply.cut(), 1_100))
    expect(margin).toMatchObject({ ...answered, failed_cost: inputCost, margin: `-${inputCost}` })
  })

  test('a call that timed out costs its input', async () => {
    expect(await marginOf(() => {}, true)).toMatchObject({ ...answered, failed_cost: inputCost })
  })

  test('an answer without content or an end costs what it reports', async () => {
    // 3 in at $10.00 and 7 out at $100.00 per million.
    const margin = await marginOf(async (_, reply) => {
      await reply.startStream()
      const usage = usageIn('chat', { input: 3, output: 7 })
      await reply.chunk(`${words.opening({ usage: undefined })}data: ${JSON.stringify({ choices: [], usage })}\n\n`)
      await reply.finish()
    }, true)
    expect(margin).toMatchObject({ ...answered, failed_cost: '0.00073' })
  })
})
