// The last money of a wallet or a spend limit can be used: by one agent, whose next call is estimated by the one before, and
// by many requests at once, which wait for what the others give back. Nobody pays a nano-dollar more than there is, and no
// stream is cut that its cap could have ended.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import type { Reply } from '../parts/manage.ts'
import { allSurfaces, chat, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamHandler } from '../parts/upstream.ts'
import { dialectOf, say, usageIn } from '../parts/upstream-words.ts'
import { createStepClock } from '../tenancy/step-clock.ts'
import { failureOf, startTenancy, type Tenancy } from '../tenancy/tenancy.ts'
import { errorMetadata } from './till.ts'
import { nanos } from './wallets.ts'

/** `burst`: 1,000 nano-dollars of output are a cent. `agent`: Claude's prices, and a cent for 667 tokens of output. */
const config = (url: string) => `providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: secret }
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: secret }
models:
  - id: acme/burst
    price: { input: "0", output: "10" }
    max_output_tokens: 64000
    routes: [{ provider: acme, model: up }]
  - id: acme/agent
    price: { input: "3", output: "15", cache_read: "0.30", cache_write: "3.75", cache_write_1h: "6" }
    context_tokens: 200000
    max_output_tokens: 64000
    routes: [{ provider: messy, model: up }]
`

let upstream: Upstream
let tenancy: Tenancy

/** The most output tokens that the provider was told, in any dialect. */
function capOf(body: Record<string, unknown>): number {
  return Number(body.max_completion_tokens ?? body.max_tokens ?? Number.POSITIVE_INFINITY)
}

/** A provider whose answers have so many tokens of four bytes, or as many as it is allowed, and take a moment. */
function answersOf(tokens: number): UpstreamHandler {
  return async (call, reply) => {
    await Bun.sleep(5)
    const output = Math.min(tokens, capOf(call.json()))
    const stop = output < tokens ? 'length' : 'end'
    const texts = Array.from({ length: 4 }, () => 'x'.repeat(output))
    await say(call, reply, { texts, usage: usageIn(dialectOf(call), { input: 3, output }), stop })
  }
}

/** Many requests at once that name no cap, where the surface lets them. */
async function burst(count: number, key: string, stream: boolean): Promise<readonly Reply[]> {
  const send = (surface: TestSurface) => {
    const cap = surface === messages ? { max_tokens: 64_000 } : {}
    return tenancy.generate(surface, key, 'acme/burst', { ...cap, stream })
  }
  return await Promise.all(Array.from({ length: count }, (_, at) => send(allSurfaces[at % 4] ?? chat)))
}

/** The words of an answer that was cut for lack of money. */
const wasCut = (text: string) => /so it ends here|STREAM_INTERRUPTED/.test(text)

const statusesOf = (replies: readonly Reply[]) => new Set(replies.map(({ status }) => status))

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream(answersOf(1_100))
    // On this clock nobody's patience ends.
    tenancy = await startTenancy({
      engine,
      config: config(upstream.url),
      clock: createStepClock('2027-01-15T08:00:00Z'),
    })
  })

  afterAll(() => stopAll(tenancy, upstream))

  async function spentOf(workspaceId: string, credit: string): Promise<bigint> {
    const { balance, held } = await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)
    expect(held).toBe('0.00')
    return nanos(credit) - nanos(balance)
  }

  describe.each([false, true])('400 requests at once, streamed: %p', (stream) => {
    test.each(['limit', 'wallet'])('use at least 85 %% of the %s, and never more than all of it', async (of) => {
      upstream.handle(answersOf(1_100))
      const credit = of === 'limit' ? '100' : '1'
      const limits = of === 'limit' ? { limits: { spend_per_day: '1.00' } } : {}
      const { workspaceId, key } = await tenancy.tenant({ credit, with: limits })
      const replies = await burst(400, key, stream)
      expect(statusesOf(replies)).toEqual(new Set([200, of === 'limit' ? 429 : 402]))
      const spent = await spentOf(workspaceId, credit)
      expect(Number(spent)).toBeWithin(850_000_000, 1_000_000_001)
      // $0.011 each, but those that got the last of it: their caps were lowered.
      expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(85)
      expect(replies.filter(({ status, text }) => status === 200 && wasCut(text))).toEqual([])
    })
  })

  test('no stream is cut near a limit, although each answer is as long as it may be', async () => {
    upstream.handle(answersOf(64_000))
    const { workspaceId, key } = await tenancy.tenant({ credit: '100', with: { limits: { spend_per_day: '2.00' } } })
    const replies = await burst(40, key, true)
    const served = replies.filter(({ status }) => status === 200)
    expect(served.length).toBeGreaterThan(3)
    expect(served.filter(({ text }) => wasCut(text))).toEqual([])
    expect(Number(await spentOf(workspaceId, '100'))).toBeWithin(1_700_000_000, 2_000_000_001)
  })

  describe.each([false, true])('an agent, streamed: %p', (stream) => {
    /** A prompt of about 36,000 tokens, a tenth of which is new; the answer has 300. */
    const lastTurn = { input: 10, read: 32_400, write: 3_600, output: 300 }
    // 10 × $3, 32,400 × $0.30, 3,600 × $3.75 and 300 × $15, per million
    const turnCost = 27_750_000n
    const text = 'The quick brown fox jumps over the lazy dog. '.repeat(3_200)
    const turnOf = (turns: number) => ({
      ...{ max_tokens: 32_000, stream, metadata: { user_id: 'user_1_account__session_one' } },
      system: [{ type: 'text', text, cache_control: { type: 'ephemeral', ttl: '1h' } }],
      messages: Array.from({ length: 2 * turns - 1 }, (_, at) => ({
        role: at % 2 ? 'assistant' : 'user',
        content: 'and on',
      })),
    })
    const take = (key: string, turns: number) => tenancy.generate(messages, key, 'acme/agent', turnOf(turns))

    test.each(['limit', 'wallet'])('uses its %s to the last tenth', async (of) => {
      upstream.handle((call, reply) =>
        say(call, reply, { texts: ['and on'], usage: usageIn(dialectOf(call), lastTurn) }),
      )
      const [credit, limits] = of === 'limit' ? ['100', { limits: { spend_per_day: '1.00' } }] : ['1.00', {}]
      const { workspaceId, key } = await tenancy.tenant({ credit, with: limits })
      // 36 turns of $0.02775 are $0.999. The last one begins with $0.02875: what a turn costs, and not much more.
      let turns = 0
      for (let last = 200; last === 200; ) {
        last = (await take(key, turns + 1)).status
        if (last === 200) turns++
      }
      expect(await spentOf(workspaceId, credit)).toBe(BigInt(turns) * turnCost)
      expect(turns).toBeGreaterThanOrEqual(33)
    })
  })

  test('a call of $0.0075 fits into a daily limit of $0.02, and the next one says what it needs', async () => {
    // 2,000 tokens in and 100 out
    const used = { input: 2_000, output: 100 }
    upstream.handle((call, reply) => say(call, reply, { texts: ['done'], usage: usageIn(dialectOf(call), used) }))
    const { workspaceId, key } = await tenancy.tenant({ credit: '5', with: { limits: { spend_per_day: '0.02' } } })
    const content = 'The quick brown fox jumps over the lazy dog. '.repeat(180)
    const call = (surface: TestSurface) =>
      tenancy.generate(surface, key, 'acme/agent', { max_tokens: 1_000, messages: [{ role: 'user', content }] })
    expect([(await call(chat)).status, (await call(messages)).status]).toEqual([200, 200])
    expect(await spentOf(workspaceId, '5')).toBe(15_000_000n)
    for (const surface of allSurfaces) {
      const refused = await call(surface)
      expect(refused.status).toBe(429)
      const [code, message] = failureOf(surface, refused)
      expect(code).toBe('LIMIT_EXCEEDED')
      const { needed, ...metadata } = errorMetadata(refused.text) as Record<string, string>
      expect(metadata).toEqual({ reason: 'limit', limit: '0.02', spent: '0.015', held: '0.00' })
      expect(Number(needed)).toBeWithin(0.0075, 0.02)
      expect(message).toStartWith(
        `Key "k" has used $0.015 of $0.02 per day; this request needs at least $${needed}. The day ends`,
      )
    }
  })
})
