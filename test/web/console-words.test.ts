// What the console makes of raw values: entries of the audit log in words, and times that are only known roughly.

import { expect, test } from 'bun:test'
import { firstTokenText } from '../../src/web/pages/console/overview/first-token-text.ts'
import { timeOf } from '../../src/web/pages/console/parts/address-time.ts'
import { auditLines } from '../../src/web/pages/console/settings/audit-words.ts'

const moment = (at: number) => new Date(at).toISOString()
const wordsOf = (action: string, details: Readonly<Record<string, unknown>>) =>
  auditLines({ action, details }, moment).map(({ name, text }) => (name === '' ? text : `${name}: ${text}`))

test('limits are told in dollars, also where an older entry has nano-dollars', () => {
  const now = { requests_per_minute: 60, spend_per_day: '1.00', spend_per_month: '0.000000001' }
  expect(wordsOf('limits.put', now)).toEqual(['60 requests/min, $1.00/day, $0.000000001/month'])
  const before = { requests_per_minute: 60, spend_per_day: '1000000000', spend_per_month: '1' }
  expect(wordsOf('limits.put', before)).toEqual(wordsOf('limits.put', now))
  expect(wordsOf('limits.put', {})).toEqual(['no limits'])
})

test('what is absent is told by what that means', () => {
  const details = { project: 'prj_1', models: null, limits: {}, expires_at: null, from_anywhere: true }
  expect(wordsOf('key.create', details)).toEqual([
    'project: prj_1',
    'models: what its project may call',
    'limits: no limits',
    'expires at: never',
    'from anywhere: yes',
  ])
  expect(wordsOf('project.create', { models: null })).toEqual(['models: every model'])
})

test('what is set is told as people write it', () => {
  const details = { models: ['a/*', 'b/c'], limits: { spend_per_day: '7000000000' }, expires_at: 0 }
  expect(wordsOf('key.create', details)).toEqual([
    'models: a/*, b/c',
    'limits: $7.00/day',
    'expires at: 1970-01-01T00:00:00.000Z',
  ])
  expect(wordsOf('wallet.topup', { amount: '25.00' })).toEqual(['amount: $25.00'])
  expect(wordsOf('price.set', { price: { input: '1.2', output: '2.00' } })).toEqual([
    'price: input $1.20, output $2.00',
  ])
  // What nobody has words for stays as it is.
  expect(wordsOf('thing.made', { of: { a: 1 } })).toEqual(['of: {"a":1}'])
})

test('a time below the lowest bound of the counts is only known to be below it', () => {
  expect([1, 13, 25, 26, 1250].map(firstTokenText)).toEqual([
    'under 25 ms',
    'under 25 ms',
    'under 25 ms',
    '≈ 26 ms',
    '≈ 1.25 s',
  ])
})

test('what the address has for a time is written as the API takes it, and is nothing where it is none', () => {
  expect(['2026-11-15', '2026-11-15T01:00:00+01:00', 'xx', ''].map(timeOf)).toEqual([
    '2026-11-15T00:00:00.000Z',
    '2026-11-15T00:00:00.000Z',
    '',
    '',
  ])
})
