import { expect, test } from 'bun:test'
import { type ExplainedRequest, explainText as explain } from './explain-text.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** The members that an explanation reads. */
const explainText = (request: JsonObject) =>
  explain({ code: null, reason: null, notes: [], plan_credits: [], ...request } as unknown as ExplainedRequest)

const reported = { reasoning_tokens: null, source: 'reported' }

/** The example of the documents: 120 × $1.00 + 2,048 × $0.10 + 64 × $2.00 per million = $0.0004528. */
const cached: JsonObject = {
  id: 'req_A',
  model: 'acme/cache',
  provider: 'acme',
  status: 200,
  candidates: [{ provider: 'acme', upstream_model: 'cache', why: null }],
  attempts: [{ provider: 'acme', upstream_model: 'cache', outcome: 'ok', ms: 12 }],
  usage: reported,
  held: '0.012592',
  cost: '0.0004528',
  charge: {
    price_version: 'acme/cache#1',
    price_source: 'built in',
    price_effective_from: '2026-11-01T00:00:00.000Z',
    lines: [
      { kind: 'input', tokens: 120, price_per_million: '1.00', amount: '0.00012' },
      { kind: 'cache_read', tokens: 2048, price_per_million: '0.10', amount: '0.0002048' },
      { kind: 'output', tokens: 64, price_per_million: '2.00', amount: '0.000128' },
    ],
    total: '0.0004528',
  },
  transfers: [{ id: 'tr_A', kind: 'charge', amount: '0.0004528' }],
}

const withCharge = (charge: object, more: object = {}): JsonObject => ({
  ...cached,
  charge: { price_version: 'acme/cache#1', ...charge },
  ...more,
})

test('lays out a charge so that its column adds up', () => {
  expect(explainText(cached)).toEqual({
    fault: undefined,
    text: `req_A   acme/cache   via acme   1 attempt   settled   tr_A
  input            120 × $1.00 / M    $0.0001200
  cache read     2,048 × $0.10 / M    $0.0002048
  output            64 × $2.00 / M    $0.0001280      of which reasoning: not reported
  charge                              $0.0004528      usage reported by the provider
  held  $0.0125920;  released $0.0121392
  price  acme/cache#1, built in, since 2026-11-01
  candidates 1, attempts 1, none failed
`,
  })
})

test('names the credit of plans that paid for a charge', () => {
  const plan_credits = [
    { id: 'tr_1', plan: 'daily', period: '2026-11-18', amount: '0.0001' },
    { id: 'tr_2', plan: 'pro', period: '2026-11', amount: '0.0003' },
  ]
  expect(explainText({ ...cached, plan_credits }).text).toContain(
    '\n  paid from plan credit  $0.0001 of daily 2026-11-18, $0.0003 of pro 2026-11\n',
  )
})

test('says which model was asked for if a fallback answered', () => {
  const { text } = explainText({ ...cached, requested_model: 'acme/large' })
  expect(text).toContain('\n  fallback  acme/cache answered in place of acme/large\n  input ')
  expect(explainText({ ...cached, model: null, requested_model: 'acme/none' }).text).not.toContain('fallback')
})

test('shows implausible usage with its note', () => {
  const note = 'implausible usage: the provider reported 190000 output tokens'
  const { text } = explainText({ ...cached, usage: { ...reported, source: 'estimated' }, notes: [note] })
  expect(text).toContain('usage estimated: see the note')
  expect(text).toContain(`\n  note  ${note}\n`)
})

test('shows rounding up to a nano-dollar as a separate line', () => {
  // 3 × $0.10 = 0.3 millionths = 300 000 pico; 1 × $0.000001 = 1 pico; rounded up to 301 000 pico = 301 nano.
  const request = withCharge(
    {
      lines: [
        { kind: 'input', tokens: 3, price_per_million: '0.10', amount: '0.0000003' },
        { kind: 'output', tokens: 1, price_per_million: '0.000001', amount: '0.000000000001' },
      ],
      total: '0.000000301',
    },
    {
      held: null,
      transfers: [{ id: 'tr_A', kind: 'charge', amount: '0.000000301' }],
      usage: { ...reported, reasoning_tokens: 1 },
    },
  )
  expect(explainText(request).text.split('\n').slice(1, 5)).toEqual([
    '  input              3 ×     $0.10 / M    $0.000000300000',
    '  output             1 × $0.000001 / M    $0.000000000001      of which reasoning: 1',
    '  rounded up                              $0.000000000999',
    '  charge                                  $0.000000301000      usage reported by the provider',
  ])
})

test('separates what the wallet paid from what was written off', () => {
  const lines = [{ kind: 'output', tokens: 1_500_000, price_per_million: '2.00', amount: '3.00' }]
  const transfers = [
    { id: 'tr_A', kind: 'charge', amount: '2.25' },
    { id: 'tr_B', kind: 'writeoff', amount: '0.75' },
  ]
  const { text, fault } = explainText(withCharge({ lines, total: '3.00' }, { held: '2.00', transfers }))
  expect(fault).toBeUndefined()
  expect(text.split('\n').slice(1, 5)).toEqual([
    '  output     1,500,000 × $2.00 / M     $3.00      of which reasoning: not reported',
    '  written off                         -$0.75      more than the wallet had',
    '  charge                               $2.25      usage reported by the provider',
    '  held  $2.00;  $0.25 more was charged than held',
  ])
})

test('caps an estimate by its hold', () => {
  const lines = [{ kind: 'output', tokens: 100, price_per_million: '2.00', amount: '0.0002' }]
  const transfers = [{ id: 'tr_A', kind: 'charge', amount: '0.00015' }]
  const request = withCharge({ lines, total: '0.00015' }, { transfers, usage: { source: 'estimated' } })
  const { text, fault } = explainText(request)
  expect(text).toMatch(/\n {2}capped by the hold +-\$0\.000050\n/)
  expect(fault).toBeUndefined()
})

/** Five percent of $0.0004528 is a fee that no price of the catalog explains. */
const ownKey: JsonObject = {
  ...cached,
  price_version: null,
  charge: null,
  cost: '0.00002264',
  transfers: [{ id: 'tr_A', kind: 'charge', amount: '0.00002264', price_version: null }],
}

test("explains a call on the workspace's own key by its transfer, with or without a fee", () => {
  expect(explainText(ownKey)).toEqual({
    fault: undefined,
    text: `req_A   acme/cache   via acme   1 attempt   settled   tr_A
  charge  $0.00002264      on the workspace's own provider key, without a catalog price
  held  $0.012592;  released $0.01256936
  candidates 1, attempts 1, none failed
`,
  })
  const transfers = [{ id: 'tr_A', kind: 'charge', amount: '0.00', price_version: null }]
  const free = explainText({ ...ownKey, cost: '0.00', held: '0.00', transfers })
  expect(free.fault).toBeUndefined()
  expect(free.text).toContain("  charge  $0.00      on the workspace's own provider key")
})

test('shows a written-off fee, whether the caller was quoted the fee or what was paid of it', () => {
  const transfers = [
    { id: 'tr_A', kind: 'charge', amount: '0.00002', price_version: null },
    { id: 'tr_B', kind: 'writeoff', amount: '0.00000264', price_version: null },
  ]
  for (const cost of ['0.00002', '0.00002264']) {
    const { text, fault } = explainText({ ...ownKey, cost, transfers })
    expect(fault).toBeUndefined()
    expect(text).toContain('$0.00000264 more than the wallet had was written off')
  }
})

test('shows how a charged answer ended if it did not succeed', () => {
  const code = 'STREAM_INTERRUPTED'
  const broken = explainText({ ...cached, code, reason: 'Provider acme closed the stream.' }).text
  expect(broken).toContain('\n  ended  200 STREAM_INTERRUPTED: Provider acme closed the stream.\n')
  expect(broken).toEndWith('  candidates 1, attempts 1, the last broke off\n')
  expect(explainText({ ...ownKey, code }).text).toContain('\n  ended  200 STREAM_INTERRUPTED\n')
  const left = explainText({ ...cached, status: 499 }).text
  expect(left).toContain('\n  ended  499, the client left\n')
  expect(left).toEndWith('attempts 1, none failed\n')
})

const lines = [{ kind: 'output', tokens: 100, price_per_million: '2.00', amount: '0.0002' }]
const wrong: readonly (readonly [string, JsonObject, string])[] = [
  [
    'a line',
    withCharge({ lines: [{ ...lines[0], amount: '0.0003' }], total: '0.0003' }, { transfers: [] }),
    'output: 100 × $2.00 / M is not $0.0003',
  ],
  ['the sum', withCharge({ lines, total: '0.0003' }, { transfers: [] }), 'the lines add up to $0.0002, not to $0.0003'],
  [
    'the sum of a reported usage that is above its charge',
    withCharge({ lines, total: '0.0001' }, { transfers: [] }),
    'the lines add up to $0.0002, not to $0.0001',
  ],
  [
    'the transfer',
    withCharge({ lines, total: '0.0002' }, { transfers: [{ kind: 'charge', amount: '0.0001' }] }),
    'the transfers come to $0.0001, not to $0.0002',
  ],
  ["the transfer of a call on one's own key", { ...ownKey, cost: '0.00' }, 'the transfer is $0.00002264, not $0.00'],
]
for (const [what, request, fault] of wrong) {
  test(`reports ${what} that is wrong`, () => expect(explainText(request).fault).toBe(fault))
}

test('shows why a request was not charged, and its attempts', () => {
  const request: JsonObject = {
    id: 'req_B',
    model: 'acme/large',
    provider: 'acme-eu',
    status: 429,
    code: 'LIMIT_EXCEEDED',
    reason: 'Both routes were throttled.',
    charge: null,
    cost: null,
    held: '0.50',
    usage: null,
    transfers: [],
    candidates: [
      { provider: 'acme', upstream_model: 'l1', why: 'priority 1' },
      { provider: 'acme-eu', upstream_model: 'l1', why: 'priority 2' },
    ],
    attempts: [
      { provider: 'acme', upstream_model: 'l1', outcome: '429', ms: 8 },
      { provider: 'acme-eu', upstream_model: 'l1', outcome: '429', ms: 9 },
    ],
  }
  expect(explainText(request).text).toBe(`req_B   acme/large   via acme-eu   2 attempts   not charged
  charge  none      429 LIMIT_EXCEEDED: Both routes were throttled.
  held  $0.50;  released $0.50
  candidates 2, attempts 2, 2 failed
    candidate  acme l1   priority 1
    candidate  acme-eu l1   priority 2
    attempt    acme l1   429   8 ms
    attempt    acme-eu l1   429   9 ms
`)
})

test('shows the error that the caller got for a charge confirmed late, and the outcome', () => {
  const unknown = { status: 503, code: 'OVERLOADED', reason: 'it is not known yet whether it was charged.' }
  const notes = ['the charge was not confirmed in time; it was made']
  const lines = explainText({ ...cached, ...unknown, notes }).text.split('\n')
  expect(lines[0]).toContain('settled   tr_A')
  expect(lines.slice(6, 9)).toEqual([
    '  price  acme/cache#1, built in, since 2026-11-01',
    '  ended  503 OVERLOADED: it is not known yet whether it was charged.',
    '  note  the charge was not confirmed in time; it was made',
  ])
})
