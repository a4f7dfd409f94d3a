import { expect, test } from 'bun:test'
import { Secret } from '../../kernel/secret.ts'
import { checkSignature } from './stripe-signature.ts'

// The digests were made by another program: `printf '1800000000.BODY' | openssl dgst -sha256 -hmac SECRET`.
const secret = new Secret('whsec_of_the_test_endpoint')
const genuine = '13e0a7ad21f8a76fb1a99996b74a08bc4b653876b098aabc3b6222413680a972'
const ofAnotherSecret = 'dc546be3426b3ecedec4e357aaab7e865f7c620f92c03d5c2253967685fdb22f'
const ofNoSecret = '972f1349fcc2b6b3f45b9564551510bdf95294ef338b949c489df32d1f51e09e'
const body = new TextEncoder().encode('{"id":"evt_1","name":"Zoë"}')
const signedAtMs = 1_800_000_000_000

const check = (header: string, { now = signedAtMs, bytes = body } = {}) =>
  checkSignature({ header, body: bytes }, secret, now)

test('what Stripe signed with our secret is genuine', () => {
  expect(check(`t=1800000000,v1=${genuine}`)).toBeUndefined()
})

test('one of several signatures is enough, as while a secret is being replaced', () => {
  expect(check(`t=1800000000,v1=${ofAnotherSecret},v1=${genuine},v0=${ofNoSecret}`)).toBeUndefined()
  expect(check(`t=1800000000, v1=${genuine}, v1=${ofAnotherSecret}`)).toBeUndefined()
})

test('a signature with another secret, or with none, is a mismatch', () => {
  expect(check(`t=1800000000,v1=${ofAnotherSecret}`)).toBe('mismatch')
  expect(check(`t=1800000000,v1=${ofNoSecret}`)).toBe('mismatch')
})

test('a signature of another scheme does not count', () => {
  expect(check(`t=1800000000,v0=${genuine}`)).toBe('malformed')
  expect(check(`t=1800000000,v1=${ofAnotherSecret},v0=${genuine}`)).toBe('mismatch')
})

test('no byte of the body can be changed, added or left out', () => {
  const header = `t=1800000000,v1=${genuine}`
  for (let at = 0; at < body.length; at++) {
    const bytes = Uint8Array.from(body)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    expect(check(header, { bytes })).toBe('mismatch')
  }
  expect(check(header, { bytes: Uint8Array.of(...body, 0x0a) })).toBe('mismatch')
  expect(check(header, { bytes: body.subarray(0, -1) })).toBe('mismatch')
})

test('the time is signed too, to the letter', () => {
  expect(check(`t=1800000001,v1=${genuine}`)).toBe('mismatch')
  expect(check(`t=01800000000,v1=${genuine}`)).toBe('mismatch')
})

test('it holds for five minutes in either direction, and then is stale', () => {
  const header = `t=1800000000,v1=${genuine}`
  expect(check(header, { now: signedAtMs + 300_000 })).toBeUndefined()
  expect(check(header, { now: signedAtMs - 300_000 })).toBeUndefined()
  expect(check(header, { now: signedAtMs + 300_001 })).toBe('stale')
  expect(check(header, { now: signedAtMs - 300_001 })).toBe('stale')
})

test('a forgery is not told that it is only too old', () => {
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

test.each(malformed)('the header %p is malformed', (header) => {
  expect(check(header)).toBe('malformed')
})
