// Limits and balances as the console reckons them.

import { expect, test } from 'bun:test'
import { effectiveLimits } from '../../src/web/pages/console/manage/effective-limits.ts'
import type { Transfer } from '../../src/web/pages/console/manage/things.ts'
import { lastsText, paceOf } from '../../src/web/pages/console/overview/pace.ts'
import { paletteEntries } from '../../src/web/pages/console/palette/palette-entries.ts'
import type { StatFigures, StatsAnswer } from '../../src/web/pages/console/parts/api-answers.ts'
import { csvText, withBalances } from '../../src/web/pages/console/wallet/running-balance.ts'

const key = { who: 'this key', limits: { requests_per_minute: 100, spend_per_day: '2.50' } }
const project = { who: 'the project', limits: { requests_per_minute: 60, spend_per_day: '10.00' } }
const workspace = { who: 'the workspace', limits: { requests_per_minute: 60, spend_per_month: '9.00' } }

test('the tightest holds, each kind by itself, and its owner is named', () => {
  expect(effectiveLimits([key, project, workspace])).toEqual([
    { name: 'requests_per_minute', value: 60, who: 'the project' },
    { name: 'spend_per_day', value: '2.50', who: 'this key' },
    { name: 'spend_per_month', value: '9.00', who: 'the workspace' },
  ])
})

test('amounts are compared as amounts, not as text', () => {
  const holders = [
    { who: 'this key', limits: { spend_per_day: '10.00' } },
    { who: 'the project', limits: { spend_per_day: '9.999999999' } },
  ]
  expect(effectiveLimits(holders)).toEqual([{ name: 'spend_per_day', value: '9.999999999', who: 'the project' }])
})

test('what nobody limits is not listed, null included', () => {
  expect(effectiveLimits([{ who: 'this key', limits: { tokens_per_minute: null } }])).toEqual([])
})

const transfer = (part: Partial<Transfer>): Transfer => ({
  id: 'tr_1',
  kind: 'charge',
  direction: 'out',
  amount: '1.00',
  request_id: null,
  reference: null,
  price_version: null,
  estimated: false,
  created_at: '2026-11-15T00:00:00.000Z',
  ...part,
})

test('each row has the balance after it, to the last digit', () => {
  const rows = withBalances('3.999999999', [
    transfer({ amount: '0.000000001' }),
    transfer({ kind: 'writeoff', amount: '7.00' }),
    transfer({ kind: 'topup', direction: 'in', amount: '4.00' }),
  ])
  // 0 + 4.00 = 4.00; the write-off leaves the wallet alone; 4.00 − 0.000000001 = 3.999999999.
  expect(rows.map(({ balance }) => balance)).toEqual(['3.999999999', '4.00', '4.00'])
})

test('no cell of the file is a formula, and quotes stay inside their cell', () => {
  const [row] = withBalances('1.00', [transfer({ reference: '=HYPERLINK("http://x","y")' })])
  if (!row) throw new Error('a row went missing')
  const [head, line] = csvText([row]).split('\r\n')
  expect(head).toBe('created_at,id,kind,direction,amount,balance,request_id,reference,price_version,estimated')
  expect(line).toBe(`2026-11-15T00:00:00.000Z,tr_1,charge,out,1.00,1.00,,"'=HYPERLINK(""http://x"",""y"")",,false`)
})

const figures = (cost: string): StatFigures => {
  return { requests: 1, errors: 0, input_tokens: 1, output_tokens: 1, cost, first_event_ms: null }
}

const week = (cost: string, firstHour: string | undefined): StatsAnswer => ({
  from: '2026-11-08T12:00:00.000Z',
  to: '2026-11-15T12:00:00.000Z',
  counted_until: '2026-11-15T12:00:00.000Z',
  total: figures(cost),
  hours: firstHour === undefined ? [] : [{ start: firstHour, ...figures(cost) }],
  groups: [],
  groups_left_off: 0,
})

test('the pace is that of the week, or since the first request in it, and an hour at least', () => {
  // 14.00 in 7 days are 2.00 a day; 30.00 then last 15 days.
  const whole = paceOf(week('14.00', '2026-11-08T12:00:00.000Z'))
  expect(whole).toEqual({ perDay: 2, span: '7 days' })
  expect(whole && lastsText('30.00', whole)).toBe('≈ 15 days')
  // 1.00 in 6 hours are 4.00 a day; 2.00 last 12 hours.
  const young = paceOf(week('1.00', '2026-11-15T06:00:00.000Z'))
  expect(young).toEqual({ perDay: 4, span: '6 hours' })
  expect(young && lastsText('2.00', young)).toBe('≈ 12 hours')
  expect(young && lastsText('0.00', young)).toBe('less than an hour')
  expect(young && lastsText('4000.00', young)).toBe('more than 999 days')
  // A burst of a moment counts as an hour: 0.50 × 24.
  expect(paceOf(week('0.50', '2026-11-15T12:00:00.000Z'))).toEqual({ perDay: 12, span: 'hour' })
})

test('without a charge there is no pace', () => {
  expect(paceOf(week('0.00', '2026-11-15T06:00:00.000Z'))).toBeUndefined()
  expect(paceOf(week('0.00', undefined))).toBeUndefined()
})

test('the palette finds pages, models, keys and requests, what begins with the word first', () => {
  const things = {
    models: [
      { id: 'acme/wallaby', name: 'Acme Wallaby' },
      { id: 'acme/large', name: 'Acme Large' },
    ],
    keys: [{ id: 'key_1', name: 'wall display', last4: '9f3e' }],
  }
  const found = (typed: string) => paletteEntries(typed, things).map(({ label }) => label)
  expect(found('wal')).toEqual(['Wallet', 'wall display', 'acme/wallaby'])
  expect(found('acme large')).toEqual(['acme/large'])
  expect(found('9f3e')).toEqual(['wall display'])
  expect(found('no such thing')).toEqual([])
  expect(found('').slice(0, 2)).toEqual(['Overview', 'Requests'])
  const id = 'req_01M7F3J2VBE4M8EPPQGBJ2MB2A'
  expect(paletteEntries(` ${id.toLowerCase()} `, things)[0]?.href).toBe(`/console/requests/${id}`)
})
