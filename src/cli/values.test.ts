import { expect, test } from 'bun:test'
import { Refusal } from './refusal.ts'
import { allowsColor } from './terminal.ts'
import {
  type Columns,
  cleanText,
  counted,
  parseSpan,
  readAmount,
  readCount,
  readSpendLimits,
  readTagAmounts,
  readTime,
  renderFacts,
  renderTable,
  shownCount,
  shownLimits,
  shownMs,
  shownState,
  shownTime,
} from './values.ts'

/** Whether it throws a refusal of usage. */
function refused(read: () => unknown): boolean {
  try {
    read()
    return false
  } catch (thrown) {
    return thrown instanceof Refusal && thrown.exit === 2
  }
}

test('amounts are exact decimals, with or without a dollar sign', () => {
  expect(['25', '$0.5', '0.000000001'].map((text) => readAmount(text, 'A'))).toEqual(['25.00', '0.50', '0.000000001'])
  for (const text of ['', '0', '-1', '1e3', '1,000', '0.0000000001', '$$1'])
    expect(refused(() => readAmount(text, 'A'))).toBe(true)
})

test('limits of tags are tags with amounts', () => {
  const amounts = { 'team=web': '100.00', 'job=nightly': '0.50' }
  expect(readTagAmounts('team=web=100, job=nightly=$0.5', '--tag')).toEqual(amounts)
  for (const text of ['', 'team=web', 'team=100', 'team=web=', 'team=a b=5', 'team=web=0'])
    expect([text, refused(() => readTagAmounts(text, '--tag'))]).toEqual([text, true])
  expect(shownLimits({ user_spend_per_day: '5.00', tag_spend_per_month: amounts })).toBe(
    '$5.00/day per user, team=web $100.00/month, job=nightly $0.50/month',
  )
})

test('spend limits are a subject, models, a window and an amount, and what happens at the limit', () => {
  const limits = [
    {
      subject: 'person:ada@example.com',
      models: '!acme/small',
      window: '5h',
      limit: '10.00',
      then: 'acme/small',
      slow_down: 6,
    },
    { subject: 'group:all hands', window: 'month', limit: '500.00' },
  ]
  const text = 'person:ada@example.com !acme/small 5h 10 slow-down 6 then acme/small, group:all hands month 500'
  expect(readSpendLimits(text, '--spend-limit')).toEqual(limits)
  expect(shownLimits({ spend_limits: limits })).toBe(
    'person:ada@example.com !acme/small $10.00/5h then acme/small slow-down 6, group:all hands $500.00/month',
  )
  for (const wrong of ['', 'day 5', 'all day 5 then', 'all day 5 slow-down 0', 'all day 5 slow-down fast'])
    expect([wrong, refused(() => readSpendLimits(wrong, '--spend-limit'))]).toEqual([wrong, true])
})

test('counts are whole and at least 1', () => {
  expect(readCount('60', '--rpm')).toBe(60)
  for (const text of ['0', '-1', '1.5', '', '1e2']) expect(refused(() => readCount(text, '--rpm'))).toBe(true)
})

test('spans have one unit', () => {
  expect(['90s', '15m', '1h', '7d', '2w'].map(parseSpan)).toEqual([90, 900, 3600, 604_800, 1_209_600])
  expect(['1', 'h', '1h30m', '-1h', '1y'].map(parseSpan)).toEqual(Array(5).fill(undefined))
})

test('reads a time as a span from now, the start of a day in UTC, or an exact time', () => {
  // 1 800 000 000 s is 2027-01-15T08:00:00Z.
  const at = (text: string) => readTime(text, '--expires', 1_800_000_000_000)
  expect(at('30d')).toBe('2027-02-14T08:00:00.000Z')
  expect(at('2027-01-31')).toBe('2027-01-31T00:00:00.000Z')
  expect(at('2027-01-31T10:00+02:00')).toBe('2027-01-31T08:00:00.000Z')
  for (const text of ['tomorrow', '31.01.2027', '2027-13-01', '2027-01-31T10:00'])
    expect(refused(() => at(text))).toBe(true)
})

test('values are shown the same on every machine', () => {
  expect([shownCount(0), shownCount(999), shownCount(1_234_567n), shownCount(undefined)]).toEqual(
    '0 999 1,234,567 –'.split(' '),
  )
  expect([counted(1, 'wallet'), counted(1n, 'wallet'), counted(1200n, 'wallet')]).toEqual([
    '1 wallet',
    '1 wallet',
    '1,200 wallets',
  ])
  expect([shownMs(41.4), shownMs(12_340), shownMs(undefined)]).toEqual(['41 ms', '12.3 s', '–'])
  expect([shownTime('2026-11-15T01:02:03.004Z'), shownTime(undefined)]).toEqual(['2026-11-15 01:02:03', '–'])
  expect(shownLimits({ tokens_per_minute: 100_000, spend_per_month: '50.00', spend_per_day: null })).toBe(
    '100,000 tpm, $50.00/month',
  )
  expect(shownLimits({})).toBe('none')
})

/** Columns over rows of texts. */
function columnsOf(...titles: readonly (string | readonly [string, 'right'])[]): Columns<readonly string[]> {
  return titles.map((title, at) =>
    typeof title === 'string' ? [title, (row) => row[at]] : [title[0], (row) => row[at], title[1]],
  )
}

const plain = { color: false }

test('aligns columns by display width, numbers to the right, without trailing spaces', () => {
  const columns = columnsOf('NAME', ['COST', 'right'], 'NOTE')
  expect(
    renderTable(
      columns,
      [
        ['ci', '$0.50', ''],
        ['laptop', '$12.00', 'x'],
      ],
      plain,
    ),
  ).toBe(['NAME      COST  NOTE', 'ci       $0.50', 'laptop  $12.00  x', ''].join('\n'))
})

test('wide, joined and combining characters do not shift the next column', () => {
  const rows = [
    ['日本', '1'],
    ['👩‍👩‍👧', '2'],
    ['e\u0301a', '3'],
    ['abcd', '4'],
  ]
  // 日本 takes four cells, the family two, é one.
  expect(renderTable(columnsOf('N', 'X'), rows, plain)).toBe(
    ['N     X', '日本  1', '👩‍👩‍👧    2', 'e\u0301a    3', 'abcd  4', ''].join('\n'),
  )
})

test('text from outside cannot colour the screen, move the cursor or reverse the text', () => {
  expect(cleanText('\u001b[31mred\r\n\u202eevil\u0007')).toBe('\ufffd[31mred\ufffd\ufffd\ufffdevil\ufffd')
  expect(renderTable(columnsOf('N'), [['a\nb']], plain)).toBe('N\na\ufffdb\n')
})

test('colours only the head, and only if colour is allowed', () => {
  expect(renderTable(columnsOf('N'), [['a']], { color: true })).toBe('\u001b[1mN\u001b[22m\na\n')
})

test('lists facts below each other without unknown ones', () => {
  expect(
    renderFacts([
      ['id', 'ws_1'],
      ['reason', undefined],
      ['balance', '$5.00'],
    ]),
  ).toBe('  id       ws_1\n  balance  $5.00\n')
})

test('respects NO_COLOR with any value', () => {
  const environments = [{}, { NO_COLOR: '1' }, { NO_COLOR: '' }, { TERM: 'dumb' }]
  expect(environments.map(allowsColor)).toEqual([true, false, true, false])
})

test('limits are shown with how much of them is spent and when they reset', () => {
  const now = Date.UTC(2026, 10, 15, 20)
  const day = {
    period: 'day',
    limit: '5.00',
    starts_at: '2026-11-15T00:00:00.000Z',
    resets_at: '2026-11-16T00:00:00.000Z',
  } as const
  const month = {
    period: 'month',
    starts_at: '2026-11-01T00:00:00.000Z',
    resets_at: '2026-12-01T00:00:00.000Z',
  } as const
  const limits = { requests_per_minute: 60, spend_per_day: '5.00' }
  expect(shownState({ limits, spend: [{ ...day, spent: '3.20' }] }, now)).toBe(
    '60 rpm, $3.20 of $5.00/day (resets in 4 h)',
  )
  expect(shownState({ limits: {}, spend: [{ ...day, spent: '5.00' }] }, now)).toBe(
    '$5.00 of $5.00/day (limit reached, resets at 00:00 UTC)',
  )
  expect(shownState({ limits: {}, spend: [{ ...month, limit: '1.00', spent: '1.50' }] }, now)).toBe(
    '$1.50 of $1.00/month (limit reached, resets on 2026-12-01)',
  )
  expect(shownState({ limits: {}, spend: [{ ...month, limit: '1.00', spent: '0.00' }] }, now)).toBe(
    '$0.00 of $1.00/month (resets in 15 days)',
  )
  expect(shownState({ limits: {}, spend: [{ ...day, spent: '0.00' }] }, now - 86_400_000)).toBe(
    '$0.00 of $5.00/day (from 2026-11-15)',
  )
  expect(shownState({ limits: {}, spend: [] }, now)).toBe('none')
  // What happens at a limit that has a state, and which of two limits of the same it is.
  const same = { subject: 'group:design', window: 'day' } as const
  const spend_limits = [
    { ...same, limit: '5.00', slow_down: 6, then: 'acme/small' },
    { ...same, limit: '2.00', set_by: 'admin' as const },
    { models: 'acme/*', window: 'day', limit: '9.00' },
  ]
  const states = [
    { ...day, subject: 'group:design', spent: '3.20' },
    { ...day, subject: 'group:design', limit: '2.00', spent: '3.20' },
    { ...day, models: 'acme/*', limit: '9.00', spent: '0.00' },
  ]
  expect(shownState({ limits: { spend_limits }, spend: states }, now)).toBe(
    [
      'group:design $3.20 of $5.00/day (resets in 4 h) then acme/small slow-down 6',
      'group:design $3.20 of $2.00/day (limit reached, resets at 00:00 UTC) (set by an admin)',
      'acme/* $0.00 of $9.00/day (resets in 4 h)',
    ].join(', '),
  )
})
