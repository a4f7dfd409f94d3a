import { describe, expect, test } from 'bun:test'
import { redactionRules } from '../kernel/content-export.ts'
import { redact, redactJson } from './redact.ts'

const all = (text: string) => redact(text, redactionRules)

describe('keys', () => {
  test.each([
    ['OpenAI', `sk-proj-${'a1B2'.repeat(10)}`],
    ['Anthropic', `sk-ant-api03-${'a1_B'.repeat(20)}`],
    ['Tollgate', `sk-tg-${'a1B2'.repeat(10)}`],
    ['Stripe', `sk_live_${'a1B2'.repeat(6)}`],
    ['GitHub', `ghp_${'a1B2'.repeat(9)}`],
    ['GitHub, fine-grained', `github_pat_${'a1B2_'.repeat(12)}`],
    ['GitLab', `glpat-${'a1B2'.repeat(5)}`],
    ['Slack', 'xoxb-123456789012-abcdefghijkl'],
    ['AWS', 'AKIAIOSFODNN7EXAMPLE'],
    ['Google', `AIza${'a1B2_'.repeat(7)}`],
    ['Hugging Face', `hf_${'a1B2'.repeat(9)}`],
    ['a webhook secret', `whsec_${'MfKQ9r8G'.repeat(4)}=`],
    ['a JSON Web Token', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P'],
    ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----'],
    ['a private key that is cut off', '-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA'],
  ])('of %s', (_, key) => {
    expect(all(`x="${key}`)).toBe('x="[redacted key]')
  })

  test('after Bearer, which stays', () => {
    expect(all('authorization: Bearer abcdefghijklmnop0123==')).toBe('authorization: Bearer [redacted key]')
  })

  test.each(['task-force-of-sixteen-people', 'risk-assessment-2026-final', 'AKIA', 'sk-short', 'whsec_ is a prefix'])(
    'and not %s',
    (text) => expect(all(text)).toBe(text),
  )
})

describe('e-mail addresses', () => {
  test.each(['ada@example.com', "o'neil+tag@mail.example.co.uk", 'jürgen@müller.de', 'a_b%c@x-y.io'])(
    '%s',
    (address) => {
      expect(all(`<${address}>, please`)).toBe('<[redacted e-mail]>, please')
    },
  )

  test.each(['@handle', 'user@localhost', 'a @ b.com', 'npm i foo@1.2.3'])('and not %s', (text) => {
    expect(all(text)).toBe(text)
  })
})

// Test numbers that Visa, Mastercard, American Express, Discover and JCB publish.
describe('card numbers', () => {
  test.each([
    '4111111111111111',
    '4111 1111 1111 1111',
    '4111-1111-1111-1111',
    '5555555555554444',
    '378282246310005',
    '3782 822463 10005',
    '6011111111111117',
    '3530111333300000',
    '4222222222222',
  ])('%s', (card) => {
    expect(all(`card ${card}.`)).toBe('card [redacted card].')
  })

  test('beside other numbers, and twice', () => {
    expect(all('order 12 4111 1111 1111 1111 12/30')).toBe('order 12 [redacted card] 12/30')
    expect(all('4111 1111 1111 1111 5555 5555 5555 4444')).toBe('[redacted card] [redacted card]')
  })

  // The check digit is wrong, the length, or the first digit.
  test.each(['4111111111111112', '411111111111', '41111111111111111111', '1111 1111 1111 1117', '2026-11-19 10:00:00'])(
    'and not %s',
    (text) => expect(all(text)).toBe(text),
  )
})

test('only the rules that are asked for apply', () => {
  const text = 'ada@example.com 4111111111111111'
  expect(redact(text, ['cards'])).toBe('ada@example.com [redacted card]')
  expect(redact(text, ['emails'])).toBe('[redacted e-mail] 4111111111111111')
  expect(redact(text, [])).toBe(text)
})

test('values of JSON are redacted in strings, numbers and names, and are otherwise the same', () => {
  const value = { to: ['ada@example.com'], card: 4111111111111111, 'bob@example.com': null, n: 1.5, on: true }
  expect(redactJson(value, redactionRules)).toEqual({
    to: ['[redacted e-mail]'],
    card: '[redacted card]',
    '[redacted e-mail]': null,
    n: 1.5,
    on: true,
  })
})

test('texts that are made to be slow are not', () => {
  // Each would take minutes with a pattern that tries every split.
  for (const text of [
    'a'.repeat(65_536),
    `${'a.'.repeat(30_000)}@`,
    '1 '.repeat(30_000),
    '-----BEGIN '.repeat(6_000),
  ]) {
    expect(all(text)).toBe(text)
  }
})
