// Limits of money: what is spent and what is held by running requests together stay below the cap, and a refusal says
// when the day or the month ends. All amounts are worked out by hand.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { bothSurfaces, chat } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { createStepClock, type StepClock } from './step-clock.ts'
import { failureOf, type Reply, startTenancy, type Tenancy, until } from './tenancy.ts'

let upstream: Upstream
let tenancy: Tenancy
let clock: StepClock
let gate: PromiseWithResolvers<void> | undefined

/** Input costs nothing, so a call with a cap of 100 holds 100 × $1.00 a million = $0.0001, and 50 tokens cost half of it. */
const config = (url: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
  - { id: acme/large, price: { input: "0", output: "1.00" }, max_output_tokens: 1000, routes: [{ provider: acme, model: l }] }
`

const answer = {
  id: 'c',
  object: 'chat.completion',
  model: 'up',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 50, total_tokens: 53 },
}

const call = (key: string) => tenancy.generate(chat, key, 'acme/large', { max_tokens: 100 })

async function callsUntilRefused(key: string): Promise<readonly [admitted: number, refused: Reply]> {
  for (let admitted = 0; ; admitted++) {
    const reply = await call(key)
    if (reply.status !== 200) return [admitted, reply]
  }
}

/** To the end of 15 January: 16 hours. To the end of January: 16 days and 16 hours. */
const untilMidnight = 57_600
const untilFebruary = 1_440_000

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream(async (_, reply) => {
      await gate?.promise
      await reply.json(200, answer)
    })
    clock = createStepClock('2027-01-15T08:00:00Z')
    tenancy = await startTenancy({ engine, config: config(upstream.url), clock })
  })

  afterAll(async () => {
    await tenancy[Symbol.asyncDispose]()
    upstream.stop()
  })

  test('a cap of $0.0005 a day takes nine calls that hold $0.0001 and cost $0.00005 each', async () => {
    const { key } = await tenancy.tenant({ credit: '1', with: { limits: { spend_per_day: '0.0005' } } })
    // After n calls $0.00005 n are spent, and the next fits while that and $0.0001 come to no more than $0.0005: n ≤ 8.
    const [admitted, refused] = await callsUntilRefused(key)
    expect(admitted).toBe(9)
    expect(refused.headers.get('retry-after')).toBe(String(untilMidnight))
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(failureOf(chat, refused)[1]).toContain('$0.00045 of $0.0005 per day')
  })

  test('of fifty simultaneous requests the five whose holds fit are admitted', async () => {
    const { workspaceId, key } = await tenancy.tenant({ credit: '1', with: { limits: { spend_per_day: '0.0005' } } })
    gate = Promise.withResolvers<void>()
    const before = upstream.calls.length
    let refused = 0
    const replies = Array.from({ length: 50 }, async () => {
      const reply = await call(key)
      if (reply.status !== 429) return reply.status
      refused++
      // Room comes back as soon as one of the five ends.
      return [reply.headers.get('retry-after'), reply.headers.get('x-should-retry')].join(' ')
    })
    await until(() => upstream.calls.length - before + refused === 50)
    expect([upstream.calls.length - before, refused]).toEqual([5, 45])
    gate.resolve()
    gate = undefined
    const ends = await Promise.all(replies)
    expect([ends.filter((end) => end === 200).length, ends.filter((end) => end === '5 true').length]).toEqual([5, 45])
    // $0.00025 are spent; four more end with $0.00045.
    expect((await callsUntilRefused(key))[0]).toBe(4)
    const { balance } = await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)
    expect(balance).toBe('0.99955')
  })

  test('an answer that could cost more than is left is capped, with a warning', async () => {
    const { key } = await tenancy.tenant({ credit: '1', with: { limits: { spend_per_day: '0.0005' } } })
    let left = 500
    for (const surface of bothSurfaces) {
      const reply = await tenancy.generate(surface, key, 'acme/large', { max_tokens: 900 })
      expect(reply.status).toBe(200)
      expect(upstream.calls.at(-1)?.json().max_tokens).toBe(left)
      expect(reply.headers.get('x-tollgate-warnings')).toContain(`max_tokens_lowered_by_limit=${left}`)
      left -= 50
    }
  })

  test('a monthly limit adds up its days, and both surfaces get their own format', async () => {
    const { workspaceId, key } = await tenancy.tenant({ credit: '1' })
    await tenancy.must('PUT', `/api/workspaces/${workspaceId}/limits`, { spend_per_month: '0.0002' })
    expect((await callsUntilRefused(key))[0]).toBe(3)
    for (const surface of bothSurfaces) {
      const reply = await tenancy.generate(surface, key, 'acme/large', { max_tokens: 100 })
      const [code, message] = failureOf(surface, reply)
      expect([reply.status, code, reply.body.error.type]).toEqual([429, 'LIMIT_EXCEEDED', 'rate_limit_error'])
      expect(reply.headers.get('retry-after')).toBe(String(untilFebruary))
      expect(message).toContain('per month (limit of workspace "a tenant")')
    }
  })

  test('the daily limit resets the next day; the month goes on', async () => {
    const limits = { spend_per_day: '0.0002', spend_per_month: '0.0003' }
    const { key } = await tenancy.tenant({ credit: '1', with: { limits } })
    const [today, refused] = await callsUntilRefused(key)
    expect(today).toBe(3)
    clock.turn((Number(refused.headers.get('retry-after')) - 1) * 1000)
    expect((await call(key)).status).toBe(429)
    clock.turn(1000)
    // $0.00015 of the month are spent: two more fit, then not even the new day helps.
    const [tomorrow, over] = await callsUntilRefused(key)
    expect(tomorrow).toBe(2)
    expect(over.headers.get('retry-after')).toBe(String(untilFebruary - untilMidnight))
    clock.turn((untilFebruary - untilMidnight) * 1000)
    expect((await call(key)).status).toBe(200)
  })
})
