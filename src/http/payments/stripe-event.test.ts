import { expect, test } from 'bun:test'
import { Secret } from '../../kernel/secret.ts'
import { checkSignature, modeOf, readEvent, type StripeMode } from './stripe-event.ts'

const workspaceId = 'ws_01JABCDEFGHJKMNPQRSTVWXYZ0'

/** $12.34, paid, live. */
const session = {
  id: 'cs_live_a1',
  object: 'checkout.session',
  mode: 'payment',
  payment_status: 'paid',
  currency: 'usd',
  amount_total: 1234,
  payment_intent: 'pi_1',
  client_reference_id: 'ws_someone_else',
  metadata: { tollgate_workspace_id: workspaceId },
}

function eventOf(object: unknown, more: object = {}) {
  return { id: 'evt_1', object: 'event', type: 'checkout.session.completed', livemode: true, data: { object }, ...more }
}

const read = (object: unknown, more: object = {}, mode: StripeMode = 'live') => readEvent(eventOf(object, more), mode)

const payment = { paymentId: 'cs_live_a1', workspaceId, amount: 12_340_000_000n, reference: 'Stripe pi_1' }

test('reads a paid session as a payment to the workspace of its metadata, with ten million nano-dollars to a cent', () => {
  expect(read(session)).toMatchObject({ kind: 'payment', payment })
})

test('reads both events of a session as the same payment, also if only one has its payment intent', () => {
  const late = { type: 'checkout.session.async_payment_succeeded' }
  expect(read(session, late)).toMatchObject({ kind: 'payment', payment })
  expect(read({ ...session, payment_intent: null }, late)).toMatchObject({
    kind: 'payment',
    payment: { ...payment, reference: 'Stripe cs_live_a1' },
  })
})

test('reads the smallest and the largest amounts exactly', () => {
  expect(read({ ...session, amount_total: 1 })).toMatchObject({ payment: { amount: 10_000_000n } })
  // 2^53 - 1 cents.
  expect(read({ ...session, amount_total: 9007199254740991 })).toMatchObject({
    payment: { amount: 90_071_992_547_409_910_000_000n },
  })
})

test('marks money of test mode in the ledger', () => {
  expect(read(session, { livemode: false }, 'test')).toMatchObject({
    payment: { reference: 'Stripe pi_1 (test mode)' },
  })
})

test('ignores and logs an event of another mode than the secret key', () => {
  expect(read(session, { livemode: false }, 'live')).toMatchObject({ kind: 'ignored', isLogged: true })
  expect(read(session, { livemode: true }, 'test')).toMatchObject({ kind: 'ignored', isLogged: true })
})

test('takes the mode from the secret key, and accepts both without one', () => {
  const keys = ['sk_live_1', 'rk_live_1', 'sk_org_live_1', 'sk_test_1_live_', 'rk_test_1', 'something', ''] as const
  const modes = keys.map((key) => modeOf(new Secret(key)))
  expect(modes).toEqual(['live', 'live', 'live', 'test', 'test', undefined, undefined])
  expect(modeOf(undefined)).toBeUndefined()
  expect(readEvent(eventOf(session, { livemode: true }), undefined)).toMatchObject({ kind: 'payment' })
  expect(readEvent(eventOf(session, { livemode: false }), undefined)).toMatchObject({ kind: 'payment' })
})

test('does not credit a payment to a connected account', () => {
  expect(read(session, { account: 'acct_1' })).toMatchObject({ kind: 'ignored', isLogged: true })
  expect(read(session, { account: null })).toMatchObject({ kind: 'payment' })
})

const uncredited: readonly [what: string, change: object][] = [
  ['yen, which have no cents', { currency: 'jpy', amount_total: 500 }],
  ['euros', { currency: 'eur' }],
  ['dollars in other letters, which Stripe does not send', { currency: 'USD' }],
  ['no currency', { currency: null }],
  ['an amount of 0', { amount_total: 0 }],
  ['a negative amount', { amount_total: -1234 }],
  ['a part of a cent', { amount_total: 12.5 }],
  ['more than a number can say exactly', { amount_total: 2 ** 53 }],
  ['no amount', { amount_total: null }],
  ['an id of no workspace', { metadata: { tollgate_workspace_id: 'acme' } }],
  ['an empty id', { metadata: { tollgate_workspace_id: '' } }],
]

test.each(uncredited)('does not credit a payment with %s', (_what, change) => {
  expect(read({ ...session, ...change })).toMatchObject({ kind: 'uncredited', fields: { session: 'cs_live_a1' } })
})

const ignored: readonly [what: string, change: object][] = [
  ['a session of something else this account sells', { metadata: {} }],
  ['a session without metadata', { metadata: null }],
  ['a session that is not paid yet', { payment_status: 'unpaid' }],
  ['a session that costs nothing', { payment_status: 'no_payment_required', amount_total: 0 }],
  ['a subscription', { mode: 'subscription' }],
  ['a session that only stores a card', { mode: 'setup', amount_total: null, currency: null }],
]

test.each(ignored)('ignores %s', (_what, change) => {
  expect(read({ ...session, ...change })).toMatchObject({ kind: 'ignored', isLogged: false })
})

test.each(['charge.refunded', 'charge.dispute.created', ''])('ignores events of the type %p', (type) => {
  expect(read(session, { type })).toMatchObject({ kind: 'ignored', isLogged: false })
  expect(read(null, { type })).toMatchObject({ kind: 'ignored', isLogged: false })
})

test('reads that a payment will not be made, only of those that were started here', () => {
  const metadata = { ...session.metadata, tollgate_payment_id: 'pay_1' }
  const type = 'checkout.session.expired'
  expect(read({ ...session, metadata }, { type })).toMatchObject({ kind: 'unpaid', ownId: 'pay_1', code: 'expired' })
  expect(read(session, { type })).toMatchObject({ kind: 'ignored' })
})

test('reads refunds and disputes with their payment, in dollars only', () => {
  const dispute = { id: 'du_1', amount: 1234, currency: 'usd', payment_intent: 'pi_1', metadata: {} }
  const type = 'charge.dispute.funds_withdrawn'
  expect(read(dispute, { type })).toMatchObject({
    kind: 'return',
    moved: { id: 'du_1', intent: 'pi_1', direction: 'take', amount: 12_340_000_000n, isDispute: true },
  })
  expect(read({ ...dispute, currency: 'eur' }, { type })).toMatchObject({ kind: 'uncredited' })
  expect(read({ ...dispute, payment_intent: null }, { type })).toMatchObject({ kind: 'ignored', isLogged: true })
  expect(read('?', { type })).toEqual({ kind: 'unreadable' })
})

const unreadable: readonly [what: string, event: unknown][] = [
  ['not an object', 'evt_1'],
  ['null', null],
  ['a thin event, which has no object in it', { id: 'evt_1', type: 'v1.x', livemode: true, related_object: {} }],
  ['an event of no mode', { ...eventOf(session), livemode: 'true' }],
  ['a session without an id', eventOf({ ...session, id: undefined })],
  ['a session with the id of something else', eventOf({ ...session, id: 'pi_1' })],
  ['an amount in words', eventOf({ ...session, amount_total: '1234' })],
]

test.each(unreadable)('cannot read %s', (_what, event) => {
  expect(readEvent(event, 'live')).toEqual({ kind: 'unreadable' })
})

// The digests were made by another program: `printf '1800000000.BODY' | openssl dgst -sha256 -hmac SECRET`.
const secret = new Secret('whsec_of_the_test_endpoint')
const genuine = '13e0a7ad21f8a76fb1a99996b74a08bc4b653876b098aabc3b6222413680a972'
const ofAnotherSecret = 'dc546be3426b3ecedec4e357aaab7e865f7c620f92c03d5c2253967685fdb22f'
const ofNoSecret = '972f1349fcc2b6b3f45b9564551510bdf95294ef338b949c489df32d1f51e09e'
const body = new TextEncoder().encode('{"id":"evt_1","name":"Zoë"}')
const signedAtMs = 1_800_000_000_000

const check = (header: string, { now = signedAtMs, bytes = body } = {}) =>
  checkSignature({ header, body: bytes }, secret, now)

test('accepts what Stripe signed with our secret', () => {
  expect(check(`t=1800000000,v1=${genuine}`)).toBeUndefined()
})

test('accepts one valid signature of several, as while a secret is being replaced', () => {
  expect(check(`t=1800000000,v1=${ofAnotherSecret},v1=${genuine},v0=${ofNoSecret}`)).toBeUndefined()
  expect(check(`t=1800000000, v1=${genuine}, v1=${ofAnotherSecret}`)).toBeUndefined()
})

test('reports a signature with another or an empty secret as a mismatch', () => {
  expect(check(`t=1800000000,v1=${ofAnotherSecret}`)).toBe('mismatch')
  expect(check(`t=1800000000,v1=${ofNoSecret}`)).toBe('mismatch')
})

test('ignores signatures of other schemes', () => {
  expect(check(`t=1800000000,v0=${genuine}`)).toBe('malformed')
  expect(check(`t=1800000000,v1=${ofAnotherSecret},v0=${genuine}`)).toBe('mismatch')
})

test('detects a changed, added or missing byte of the body', () => {
  const header = `t=1800000000,v1=${genuine}`
  for (let at = 0; at < body.length; at++) {
    const bytes = Uint8Array.from(body)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    expect(check(header, { bytes })).toBe('mismatch')
  }
  expect(check(header, { bytes: Uint8Array.of(...body, 0x0a) })).toBe('mismatch')
  expect(check(header, { bytes: body.subarray(0, -1) })).toBe('mismatch')
})

test('detects a changed time', () => {
  expect(check(`t=1800000001,v1=${genuine}`)).toBe('mismatch')
  expect(check(`t=01800000000,v1=${genuine}`)).toBe('mismatch')
})

test('accepts five minutes in either direction, and reports more as stale', () => {
  const header = `t=1800000000,v1=${genuine}`
  expect(check(header, { now: signedAtMs + 300_000 })).toBeUndefined()
  expect(check(header, { now: signedAtMs - 300_000 })).toBeUndefined()
  expect(check(header, { now: signedAtMs + 300_001 })).toBe('stale')
  expect(check(header, { now: signedAtMs - 300_001 })).toBe('stale')
})

test('reports a forgery as a mismatch even if it is too old', () => {
  expect(check(`t=1800000000,v1=${ofAnotherSecret}`, { now: signedAtMs + 900_000 })).toBe('mismatch')
})

const malformed = [
  '',
  't=1800000000',
  `v1=${genuine}`,
  `t=,v1=${genuine}`,
  `t=1e9,v1=${genuine}`,
  `t=-1800000000,v1=${genuine}`,
  `t=1800000000,t=1800000000,v1=${genuine}`,
  `t=1800000000,v1=${genuine.slice(2)}`,
  `t=1800000000,v1=${genuine}00`,
  't=1800000000,v1=',
  't=1800000000;v1=x',
]

test.each(malformed)('reports the header %p as malformed', (header) => {
  expect(check(header)).toBe('malformed')
})
