// Figures and texts that the console computes: limits, balances, runway, palette results and audit log details.

import { expect, test } from 'bun:test'
import type { AnswerOf, ItemOf } from '../../src/api/client.ts'
import {
  auditLines,
  csvText,
  effectiveLimits,
  firstTokenText,
  furtherLimits,
  isoTimeOf,
  monthLimitOf,
  runwayText,
  spendRateOf,
  subjectLimit,
  withBalances,
} from '../../src/web/pages/console/figures.ts'
import { paletteEntries } from '../../src/web/pages/console/palette-entries.ts'

type Stats = AnswerOf<'getStats'>
type Transfer = ItemOf<'listTransfers'>

const key = { who: 'this key', limits: { requests_per_minute: 100, spend_per_day: '2.50' } }
const project = { who: 'the project', limits: { requests_per_minute: 60, spend_per_day: '10.00' } }
const workspace = { who: 'the workspace', limits: { requests_per_minute: 60, spend_per_month: '9.00' } }

test('the tightest limit of each kind applies, and its holder is named', () => {
  expect(effectiveLimits([key, project, workspace])).toEqual([
    { name: 'requests_per_minute', value: 60, who: 'the project' },
    { name: 'spend_per_month', value: '9.00', who: 'the workspace' },
    { name: 'spend_per_day', value: '2.50', who: 'this key' },
  ])
})

test('amounts are compared by value, not as text', () => {
  const holders = [
    { who: 'this key', limits: { spend_per_day: '10.00' } },
    { who: 'the project', limits: { spend_per_day: '9.999999999' } },
  ]
  expect(effectiveLimits(holders)).toEqual([{ name: 'spend_per_day', value: '9.999999999', who: 'the project' }])
})

test('kinds without a limit are not listed', () => {
  expect(effectiveLimits([{ who: 'this key', limits: { tokens_per_minute: null } }])).toEqual([])
})

const transfer = (part: Partial<Transfer>): Transfer => ({
  id: 'tr_1',
  kind: 'charge',
  direction: 'out',
  amount: '1.00',
  debit_account: 'wallet:ws_1',
  credit_account: 'revenue',
  request_id: null,
  reference: null,
  price_version: null,
  usage: null,
  estimated: false,
  created_at: '2026-11-15T00:00:00.000Z',
  ...part,
})

test('each transfer has the exact balance after it', () => {
  const rows = withBalances('3.999999999', [
    transfer({ amount: '0.000000001' }),
    transfer({ kind: 'writeoff', direction: 'none', amount: '7.00' }),
    transfer({ kind: 'topup', direction: 'in', amount: '4.00' }),
  ])
  // 0 + 4.00 = 4.00; the write-off leaves the wallet alone; 4.00 − 0.000000001 = 3.999999999.
  expect(rows.map(({ balance }) => balance)).toEqual(['3.999999999', '4.00', '4.00'])
})

test('CSV cells are never formulas, and quotes are escaped', () => {
  const [row] = withBalances('1.00', [transfer({ reference: '=HYPERLINK("http://x","y")' })])
  if (!row) throw new Error('a row went missing')
  const [head, line] = csvText([row]).split('\r\n')
  expect(head).toBe('created_at,id,kind,direction,amount,balance,request_id,reference,price_version,estimated')
  expect(line).toBe(`2026-11-15T00:00:00.000Z,tr_1,charge,out,1.00,1.00,,"'=HYPERLINK(""http://x"",""y"")",,false`)
})

const figures = (cost: string): Stats['total'] => {
  return { requests: 1, errors: 0, input_tokens: 1, output_tokens: 1, cost, first_event_ms: null }
}

const week = (cost: string, firstHour: string | undefined): Stats => ({
  from: '2026-11-08T12:00:00.000Z',
  to: '2026-11-15T12:00:00.000Z',
  counted_until: '2026-11-15T12:00:00.000Z',
  total: figures(cost),
  hours: firstHour === undefined ? [] : [{ start: firstHour, ...figures(cost) }],
  groups: [],
  groups_left_off: 0,
})

test('the spend rate is measured over the week, or since its first request, and over an hour at least', () => {
  // 14.00 in 7 days are 2.00 a day; 30.00 then last 15 days.
  const whole = spendRateOf(week('14.00', '2026-11-08T12:00:00.000Z'))
  expect(whole).toEqual({ perDay: 2, span: '7 days' })
  expect(whole && runwayText('30.00', whole)).toBe('≈ 15 days')
  // 1.00 in 6 hours are 4.00 a day; 2.00 last 12 hours.
  const young = spendRateOf(week('1.00', '2026-11-15T06:00:00.000Z'))
  expect(young).toEqual({ perDay: 4, span: '6 hours' })
  expect(young && runwayText('2.00', young)).toBe('≈ 12 hours')
  expect(young && runwayText('0.00', young)).toBe('less than an hour')
  expect(young && runwayText('4000.00', young)).toBe('more than 999 days')
  // A short burst counts as an hour: 0.50 × 24.
  expect(spendRateOf(week('0.50', '2026-11-15T12:00:00.000Z'))).toEqual({ perDay: 12, span: 'hour' })
})

test('there is no spend rate without a charge', () => {
  expect(spendRateOf(week('0.00', '2026-11-15T06:00:00.000Z'))).toBeUndefined()
  expect(spendRateOf(week('0.00', undefined))).toBeUndefined()
})

test('the palette finds all kinds of things, labels with the typed words first', () => {
  const scope = 'ws_01M7F3J2VBE4M8EPPQGBJ2MB2A'
  const sources = {
    scope,
    actions: [{ kind: 'action' as const, label: 'Sign out', note: '', href: '', run() {} }],
    projects: [{ id: 'proj_1', name: 'website' }],
    workspaces: [{ id: scope, name: 'Contoso' }],
    models: [
      { id: 'acme/claudel-shop', name: 'Claude open shop' },
      { id: 'acme/claude-opus', name: 'Claude Opus' },
      { id: 'acme/billow', name: 'Acme Billow' },
      { id: 'acme/large', name: 'Acme Large' },
    ],
    keys: [{ id: 'key_1', name: 'bill printer', last4: '9f3e' }],
    providers: ['groq'],
    people: [{ name: 'Ada Lovelace', email: 'ada@example.com', role: 'admin' }],
    docs: [{ href: '/docs/operate/backup', label: 'Backup and restore', group: 'Operate' }],
    viewer: {
      actor: 'console session',
      isPerson: false,
      isOperator: true,
      isViewingAs: false,
      grants: [],
      hasBatches: true,
    },
  }
  const found = (typed: string) => paletteEntries(typed, sources).map(({ label }) => label)
  expect(found('bil')).toEqual(['Billing', 'Provider bills', 'bill printer', 'acme/billow'])
  expect(found('acme large')).toEqual(['acme/large'])
  expect(found('9f3e')).toEqual(['bill printer'])
  // Both words start a part of the name; in the other one `op` is in the middle of a word.
  expect(found('claude op')).toEqual(['acme/claude-opus', 'acme/claudel-shop'])
  expect(found('sign')).toEqual(['Sign out'])
  expect(found('contoso')).toEqual(['Contoso'])
  expect(found('website')).toEqual(['website'])
  const places = (typed: string) => paletteEntries(typed, sources).map(({ kind, href }) => `${kind} ${href}`)
  expect(places('groq')).toEqual([`provider /console/${scope}/providers/groq`])
  expect(places('lovelace')).toEqual([`person /console/${scope}/people`])
  expect(places('ada@example.com')).toEqual([`person /console/${scope}/people`])
  expect(places('restore')).toEqual(['docs /docs/operate/backup'])
  expect(found('no such thing')).toEqual([])
  expect(found('').slice(0, 2)).toEqual(['Usage', 'Requests'])
  const id = 'req_01M7F3J2VBE4M8EPPQGBJ2MB2A'
  expect(paletteEntries(` ${id.toLowerCase()} `, sources)[0]?.href).toBe(`/console/${scope}/requests/${id}`)
})

const moment = (at: number) => new Date(at).toISOString()
const wordsOf = (action: string, details: Readonly<Record<string, unknown>>) =>
  auditLines({ action, details }, moment).map(({ name, text }) => (name === '' ? text : `${name}: ${text}`))

test('the monthly limit of a workspace is the one that counts every request', () => {
  const times = { spent: '0.12', starts_at: '2026-11-01T00:00:00Z', resets_at: '2026-12-01T00:00:00Z' }
  const ofGroup = { ...times, period: 'month', limit: '0.05', subject: 'group:design' }
  const ofModels = { ...times, period: 'month', limit: '0.06', models: 'acme/*' }
  const ofDay = { ...times, period: 'day', limit: '0.07' }
  expect(monthLimitOf([ofGroup, ofModels, ofDay])).toBeUndefined()
  expect(monthLimitOf([ofGroup, ofModels, ofDay, { ...times, period: 'month', limit: '9.00' }])).toBe('9.00')
})

test('further spend limits are listed with their state, by holder, and in the audit log', () => {
  const limit = { subject: 'group:design', models: 'acme/*', window: '5h', limit: '10.00' }
  const times = { starts_at: '2027-01-15T03:00:00Z', resets_at: '2027-01-15T13:01:00Z' }
  const state = { period: '5h', limit: '10.00', spent: '4.00', subject: 'group:design', models: 'acme/*', ...times }
  const holders = [
    { who: 'this key', limits: {} },
    { who: 'the project', limits: { spend_limits: [limit] }, spend: [{ ...state, period: 'day' }, state] },
  ]
  const text = 'group:design acme/* $10.00/5h'
  const shown = { text, who: 'the project', state }
  expect(furtherLimits(holders)).toEqual([shown])
  const place = { kind: 'workspace', id: 'ws_1', name: 'acme' } as const
  const ofEach = {
    ...state,
    subject: 'person',
    is_of_each: true,
    set_in: place,
    slow_down: 6,
    set_by: 'admin',
  } as const
  expect(subjectLimit(ofEach)).toEqual({
    ...{ who: 'workspace acme', state: ofEach },
    text: 'each person acme/* $10.00/5h, slowed to 6/min from 80 %, set by an admin',
  })
  expect(wordsOf('limits.put', { spend_limits: [limit] })).toEqual([text])
})

test('limits in the audit log are shown in dollars', () => {
  const now = { requests_per_minute: 60, spend_per_day: '1.00', spend_per_month: '0.000000001' }
  expect(wordsOf('limits.put', now)).toEqual(['60 requests/min, $0.000000001/month, $1.00/day'])
  expect(wordsOf('limits.put', {})).toEqual(['no limits'])
})

test('null is shown by its meaning', () => {
  const details = { project: 'prj_1', models: null, limits: {}, expires_at: null, from_anywhere: true }
  expect(wordsOf('key.create', details)).toEqual([
    'project: prj_1',
    'models: all project models',
    'limits: no limits',
    'expires at: never',
    'from anywhere: yes',
  ])
  expect(wordsOf('project.create', { models: null })).toEqual(['models: all models'])
})

test('values are shown formatted', () => {
  const details = { models: ['a/*', 'b/c'], limits: { spend_per_day: '7.00' }, expires_at: 0 }
  expect(wordsOf('key.create', details)).toEqual([
    'models: a/*, b/c',
    'limits: $7.00/day',
    'expires at: 1970-01-01T00:00:00.000Z',
  ])
  expect(wordsOf('wallet.topup', { amount: '25.00' })).toEqual(['amount: $25.00'])
  expect(wordsOf('price.set', { price: { input: '1.2', output: '2.00' } })).toEqual([
    'price: input $1.20, output $2.00',
  ])
  // Unknown values are shown raw.
  expect(wordsOf('thing.made', { of: { a: 1 } })).toEqual(['of: {"a":1}'])
})

test('a time in the lowest bucket is shown as below its bound', () => {
  expect([1, 13, 25, 26, 1250].map(firstTokenText)).toEqual([
    'under 25 ms',
    'under 25 ms',
    'under 25 ms',
    '≈ 26 ms',
    '≈ 1.25 s',
  ])
})

test('a time in the address is converted for the API, and an invalid one is dropped', () => {
  expect(['2026-11-15', '2026-11-15T01:00:00+01:00', 'xx', ''].map(isoTimeOf)).toEqual([
    '2026-11-15T00:00:00.000Z',
    '2026-11-15T00:00:00.000Z',
    '',
    '',
  ])
})

test('a time before 1970 or after 9999, which the API refuses, is dropped', () => {
  const times = [
    ['1969-12-31T23:59:59.999Z', ''],
    ['1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['+010000-01-01T00:00:00.000Z', ''],
  ] as const
  expect(times.map(([text]) => isoTimeOf(text))).toEqual(times.map(([, iso]) => iso))
})
