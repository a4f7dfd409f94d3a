// Limits of money: what is spent and what is held by running requests together stay below the cap, and a refusal says
// when the day or the month ends. All amounts are worked out by hand.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import type { Reply } from '../parts/manage.ts'
import { allSurfaces, chat, messages } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { chatAnswer } from '../parts/upstream-words.ts'
import { createStepClock, type StepClock } from './step-clock.ts'
import { acmeConfig, failureOf, outputPriced, startTenancy, type Tenancy, until } from './tenancy.ts'

let upstream: Upstream
let tenancy: Tenancy
let clock: StepClock
let gate: PromiseWithResolvers<void> | undefined

const answer = chatAnswer({ prompt_tokens: 3, completion_tokens: 50, total_tokens: 53 })

const call = (key: string) => tenancy.generate(chat, key, 'acme/large', { max_tokens: 100 })

async function callsUntilRefused(key: string): Promise<readonly [admitted: number, refused: Reply]> {
  for (let admitted = 0; ; admitted++) {
    const reply = await call(key)
    if (reply.status !== 200) return [admitted, reply]
  }
}

/** The headers that Claude Code reads, without their common beginning. */
function unified({ headers }: Reply): Record<string, string> {
  const prefix = 'anthropic-ratelimit-unified-'
  const own = [...headers].filter(([name]) => name.startsWith(prefix))
  return Object.fromEntries(own.map(([name, value]) => [name.slice(prefix.length), value]))
}

const limitTypes = {
  chat: 'rate_limit_error',
  messages: 'billing_error',
  responses: 'usage_limit_reached',
  gemini: 'RESOURCE_EXHAUSTED',
} as const

const timeOf = (seconds: string) => new Date(Number(seconds) * 1000).toISOString()

/** To the end of 15 January: 16 hours. To the end of January: 16 days and 16 hours. */
const untilMidnight = 57_600
/** It is a Friday. */
const untilMonday = untilMidnight + 2 * 86_400
const untilFebruary = 1_440_000

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream(async (_, reply) => {
      await gate?.promise
      await reply.json(200, answer)
    })
    clock = createStepClock('2027-01-15T08:00:00Z')
    tenancy = await startTenancy({ engine, config: acmeConfig(upstream.url, outputPriced), clock })
  })

  afterAll(() => stopAll(tenancy, upstream))

  test('a cap of $0.0005 a day takes nine calls that hold $0.0001 and cost $0.00005 each', async () => {
    const { key } = await tenancy.tenant({ credit: '1', with: { limits: { spend_per_day: '0.0005' } } })
    // After n calls $0.00005 n are spent, and the next fits while that and $0.0001 come to no more than $0.0005: n ≤ 8.
    const [admitted, refused] = await callsUntilRefused(key)
    expect(admitted).toBe(9)
    expect(refused.headers.get('retry-after')).toBe(String(untilMidnight))
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(failureOf(chat, refused)[1]).toContain('$0.00045 of $0.0005 per day')
  })

  test('of fifty simultaneous requests the five whose holds fit are admitted, and four more when those have ended', async () => {
    const { workspaceId, key } = await tenancy.tenant({ credit: '1', with: { limits: { spend_per_day: '0.0005' } } })
    gate = Promise.withResolvers<void>()
    const before = upstream.calls.length
    const replies = Array.from({ length: 50 }, () => call(key))
    await until(() => upstream.calls.length - before === 5)
    gate.resolve()
    gate = undefined
    const statuses = (await Promise.all(replies)).map(({ status }) => status)
    // $0.00045 are spent, and $0.00005 do not pay for a hundred tokens.
    expect(statuses.filter((status) => status === 200)).toHaveLength(9)
    expect(statuses.filter((status) => status === 429)).toHaveLength(41)
    const { balance } = await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)
    expect(balance).toBe('0.99955')
  })

  test('an answer that could cost more than is left is capped, with a warning', async () => {
    const { key } = await tenancy.tenant({ credit: '1', with: { limits: { spend_per_day: '0.0005' } } })
    let left = 500
    for (const surface of allSurfaces) {
      const reply = await tenancy.generate(surface, key, 'acme/large', { max_tokens: 900 })
      expect(reply.status).toBe(200)
      expect(upstream.calls.at(-1)?.json().max_tokens).toBe(left)
      expect(reply.headers.get('x-tollgate-warnings')).toContain(`max_tokens_lowered_by_limit=${left}`)
      left -= 50
    }
  })

  test.each([
    ['week', untilMonday],
    ['month', untilFebruary],
  ])('a limit per %s adds up its days, and each surface gets its own format', async (period, untilReset) => {
    const { workspaceId, key } = await tenancy.tenant({ credit: '1' })
    await tenancy.must('PUT', `/api/workspaces/${workspaceId}/limits`, { [`spend_per_${period}`]: '0.0002' })
    expect((await callsUntilRefused(key))[0]).toBe(3)
    for (const surface of allSurfaces) {
      const reply = await tenancy.generate(surface, key, 'acme/large', { max_tokens: 100 })
      const [code, message] = failureOf(surface, reply)
      const { type, status } = reply.body.error
      expect([reply.status, code, type ?? status]).toEqual([429, 'LIMIT_EXCEEDED', limitTypes[surface.name]])
      expect(reply.headers.get('retry-after')).toBe(String(untilReset))
      expect(message).toStartWith('Workspace "a tenant" has used $')
      expect(message).toContain(` per ${period}; this request needs at least $0.0001.`)
    }
  })

  test('Claude Code gets the used share of the limit, each threshold, and the end', async () => {
    // A call with a cap of 50 costs $0.00005, so 22 of them use up $0.0011.
    const limits = { spend_per_day: '0.0011', spend_per_month: '5' }
    const { key } = await tenancy.tenant({ credit: '1', with: { limits } })
    const next = () => tenancy.generate(messages, key, 'acme/large', { max_tokens: 50 })
    const ask = async () => unified(await next())
    // 2027-01-16T00:00:00Z and 2027-02-01T00:00:00Z.
    const [midnight, february] = ['1800057600', '1801440000']
    const common = { reset: midnight, 'overage-reset': midnight }
    const allowed = { ...common, 'representative-claim': 'overage' }
    // Nothing is spent of either limit yet, so the first one is shown.
    expect(await ask()).toEqual({
      ...{ ...allowed, status: 'allowed', 'overage-status': 'allowed', 'overage-utilization': '0' },
    })
    for (let n = 1; n < 17; n++) expect((await ask()).status).toBe('allowed')
    const warned = { ...allowed, status: 'allowed_warning', 'overage-status': 'allowed_warning' }
    const [above75, above95] = [{ 'overage-surpassed-threshold': '0.75' }, { 'overage-surpassed-threshold': '0.95' }]
    // 17 of 22 are spent: 77.27 %; at the last one 21: 95.45 %.
    expect(await ask()).toEqual({ ...warned, ...above75, 'overage-utilization': '0.77' })
    for (let n = 18; n < 21; n++) expect(await ask()).toMatchObject(above75)
    expect(await ask()).toEqual({ ...warned, ...above95, 'overage-utilization': '0.95' })
    const refused = await next()
    expect([refused.status, refused.body.error.type]).toEqual([429, 'billing_error'])
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(refused.headers.get('retry-after')).toBe(String(untilMidnight))
    expect(unified(refused)).toEqual({
      ...{ ...common, status: 'rejected', 'overage-utilization': '1', 'overage-surpassed-threshold': '1' },
      ...{ 'overage-period': 'daily', 'overage-disabled-reason': 'org_spend_cap_reached' },
    })
    // The same in cents: $0.0011 is less than one.
    const usage = await tenancy.api('GET', '/api/oauth/usage', undefined, { authorization: `Bearer ${key}` })
    expect([usage.status, usage.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(usage.body.extra_usage).toEqual({
      ...{ is_enabled: true, monthly_limit: 0, used_credits: 0, utilization: 100, currency: 'USD' },
    })
    expect(usage.body.limits).toEqual([
      {
        kind: 'spend',
        group: 'daily',
        scope: { surface: { display_name: 'Key "k"' } },
        ...{ window: 'day', limit: '0.0011', spent: '0.0011' },
        percent: 100,
        resets_at: timeOf(midnight),
        severity: 'critical',
        is_active: true,
      },
      {
        kind: 'spend',
        group: 'monthly',
        scope: { surface: { display_name: 'Key "k"' } },
        ...{ window: 'month', limit: '5.00', spent: '0.0011' },
        percent: 0,
        resets_at: timeOf(february),
        severity: 'normal',
        is_active: false,
      },
    ])
  })

  test('Codex gets the used share of the limit, its window, and its end', async () => {
    // As above: each call costs $0.00005, a twentieth of the limit.
    const { key } = await tenancy.tenant({ credit: '1', with: { limits: { spend_per_day: '0.001' } } })
    const authorization = `Bearer ${key}`
    const body = { model: 'acme/large', max_output_tokens: 50, input: 'hi' }
    const codex = async () => {
      const { headers } = await tenancy.api('POST', '/v1/responses', body, { authorization })
      return ['used-percent', 'window-minutes', 'reset-at'].map((name) => headers.get(`x-codex-primary-${name}`))
    }
    expect(await codex()).toEqual(['0', '1440', '1800057600'])
    expect(await codex()).toEqual(['5', '1440', '1800057600'])
    const other = await tenancy.tenant({ credit: '1' })
    const reply = await tenancy.api('POST', '/v1/responses', body, { authorization: `Bearer ${other.key}` })
    expect([reply.status, reply.headers.get('x-codex-primary-used-percent')]).toEqual([200, null])
  })

  test('a caller without a spend limit gets none, and a wrong key fails at once', async () => {
    const { key } = await tenancy.tenant({ credit: '1' })
    expect(unified(await tenancy.generate(messages, key, 'acme/large', { max_tokens: 50 }))).toEqual({})
    const usage = (bearer: string) =>
      tenancy.api('GET', '/api/oauth/usage', undefined, { authorization: `Bearer ${bearer}` })
    expect((await usage(key)).body).toEqual({ limits: [] })
    for (const reply of [await usage('sk-tg-wrong'), await tenancy.generate(messages, 'sk-tg-wrong', 'acme/large')]) {
      expect([reply.status, reply.headers.get('x-should-retry')]).toEqual([401, 'false'])
      expect(reply.body.error.type).toBe('authentication_error')
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

  // An operator who caps a key that runs away caps what it has used already.
  test('a limit counts what its key, project or workspace was charged before it was set', async () => {
    const { workspaceId, projectId, keyId, key } = await tenancy.tenant({ credit: '1' })
    for (let calls = 0; calls < 4; calls++) expect((await call(key)).status).toBe(200)
    const other = await tenancy.key(projectId)
    expect((await call(other.secret)).status).toBe(200)

    // Four calls of the key are $0.0002, all five $0.00025.
    const scopes = [
      [`/api/keys/${keyId}`, 'Key "k"', '0.0002', 'API keys'],
      [`/api/projects/${projectId}`, 'Project "a project"', '0.00025', 'Projects & limits'],
      [`/api/workspaces/${workspaceId}`, 'Workspace "a tenant"', '0.00025', 'Projects & limits'],
    ] as const
    for (const [path, holder, spent, page] of scopes) {
      await tenancy.must('PUT', `${path}/limits`, { spend_per_month: '0.00025' })
      const refused = await call(key)
      expect([path, refused.status]).toEqual([path, 429])
      const message = failureOf(chat, refused)[1]
      expect(message).toStartWith(`${holder} has used $${spent} of $0.00025 per month;`)
      expect(message).toContain(`Raise the limit: console → ${page}, or \`tollgate limits set\`.`)
      const { spend } = await tenancy.must('GET', path)
      expect(spend).toMatchObject([{ period: 'month', limit: '0.00025', spent }])
      const [{ starts_at, resets_at }] = spend
      expect([starts_at, resets_at].map((at: string) => at.slice(7))).toEqual(Array(2).fill('-01T00:00:00.000Z'))
      await tenancy.must('PUT', `${path}/limits`, {})
    }
    // A limit that starts later applies later.
    const later = { spend_per_month: '0.00025', starts_at: '2999-01-15' }
    expect(await tenancy.must('PUT', `/api/keys/${keyId}/limits`, later)).toEqual(later)
    expect((await call(key)).status).toBe(200)
    const times = { starts_at: '2999-01-15T00:00:00.000Z', resets_at: '2999-02-01T00:00:00.000Z' }
    const state = { period: 'month', limit: '0.00025', spent: '0.00', ...times }
    expect((await tenancy.must('GET', `/api/keys/${keyId}`)).spend).toEqual([state])
    const alone = await tenancy.api('PUT', `/api/keys/${keyId}/limits`, { starts_at: '2999-01-15' })
    expect([alone.status, alone.body.error.param]).toEqual([400, 'starts_at'])
  })
})
