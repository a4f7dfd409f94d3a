import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { runTable } from '../../test/parts/ledger-table.ts'
import { isWindowPast, windowAt, windowBefore, windowEnd, windowStart } from './budget.ts'

const tables: Record<string, string> = {
  'a budget is filled to its last unit and no further, though the wallet could pay': `
    topup 1000            → funded, posted 1000
    hold a 30 day<=50     → held
    hold b 21 day<=50     → over the day, spent 0 held 30 cap 50
    hold c 20 day<=50     → held
    hold d 1 day<=50      → over the day, spent 0 held 50 cap 50
    wallet                → posted 1000 held 50 free 950
    budget day            → spent 0 held 50
    hold e 1              → held`,

  'the real charge is spent, and the rest of the hold comes back': `
    topup 1000            → funded, posted 1000
    hold a 30 day<=50     → held
    settle a 12           → charged 12
    budget day            → spent 12 held 0
    hold b 39 day<=50     → over the day, spent 12 held 0 cap 50
    hold c 38 day<=50     → held
    release c             → released
    budget day            → spent 12 held 0
    settle c 5            → gone
    settle a 12           → found 12
    budget day            → spent 12 held 0`,

  'the tightest of several budgets decides, and a refusal leaves nothing anywhere': `
    topup 100                       → funded, posted 100
    hold a 10 day<=50 month<=15     → held
    hold b 10 day<=50 month<=15     → over the month, spent 0 held 10 cap 15
    hold c 45 day<=50 month<=99     → over the day, spent 0 held 10 cap 50
    hold d 95 day<=500 month<=1     → insufficient, posted 100 held 10
    budget day                      → spent 0 held 10
    budget month                    → spent 0 held 10
    wallet                          → posted 100 held 10 free 90
    settle a 7                      → charged 7
    budget day                      → spent 7 held 0
    budget month                    → spent 7 held 0`,

  'an extension needs room in the budget too': `
    topup 100             → funded, posted 100
    hold a 30 day<=50     → held
    extend a 21           → over the day, spent 0 held 30 cap 50
    extend a 20           → held
    budget day            → spent 0 held 50
    wallet                → posted 100 held 50 free 50
    settle a 50           → charged 50
    budget day            → spent 50 held 0`,

  'a charge beyond the hold is paid as far as the cap allows, and a loss does not count': `
    topup 100             → funded, posted 100
    hold a 30 day<=40     → held
    settle a 60           → charged 40, lost 20
    budget day            → spent 40 held 0
    hold b 10 day<=90     → held
    settle b 70           → charged 50, lost 20
    budget day            → spent 90 held 0`,

  'what costs nothing is granted also where the budget is used up, or was lowered below what was spent': `
    topup 100             → funded, posted 100
    hold a 30 day<=30     → held
    settle a 30           → charged 30
    hold b 0 day<=5       → held
    settle b 0            → charged 0
    hold c 1 day<=5       → over the day, spent 30 held 0 cap 5
    hold d 1 day<=31      → held
    budget day            → spent 30 held 1`,

  'spend from before a budget was named is not counted in it if its amount is unknown': `
    topup 100             → funded, posted 100
    hold a 30             → held
    settle a 30           → charged 30
    hold b 10 day<=10     → held
    budget day            → spent 0 held 10`,
}

forEachEngine((_, storeTest) => {
  for (const [name, table] of Object.entries(tables)) {
    storeTest(name, async ({ database }) => {
      await runTable(database, table)
    })
  }
})

const noon = Date.UTC(2028, 1, 29, 12)

test('windows are named after the day, the Monday of the week and the month of UTC, and end with them', () => {
  expect(windowAt('day', noon)).toBe('day:2028-02-29')
  expect(windowAt('month', noon)).toBe('month:2028-02')
  // A Tuesday. Sundays belong to the week before Mondays.
  expect(windowAt('week', noon)).toBe('week:2028-02-28')
  expect(windowAt('week', Date.UTC(2028, 1, 27, 23, 59))).toBe('week:2028-02-21')
  expect(windowAt('week', Date.UTC(2028, 1, 28))).toBe('week:2028-02-28')
  expect(windowAt('week', 0)).toBe('week:1970-01-01')
  expect(windowEnd('week:2028-02-28')).toBe(Date.UTC(2028, 2, 6))
  expect(windowBefore('week:2028-02-28')).toBe('week:2028-02-21')
  expect(windowEnd('day:2028-02-29')).toBe(Date.UTC(2028, 2, 1))
  expect(windowEnd('day:2027-12-31')).toBe(Date.UTC(2028, 0, 1))
  expect(windowEnd('month:2027-12')).toBe(Date.UTC(2028, 0, 1))
  expect([windowStart('day:2028-02-29'), windowStart('month:2028-02')]).toEqual([
    Date.UTC(2028, 1, 29),
    Date.UTC(2028, 1, 1),
  ])
  expect([windowBefore('day:2028-03-01'), windowBefore('month:2028-01')]).toEqual(['day:2028-02-29', 'month:2027-12'])
  for (const text of ['day:2028-02', 'week:2028-02', 'year:2028', '']) {
    expect([windowStart(text), windowEnd(text), windowBefore(text)]).toEqual([undefined, undefined, undefined])
  }
})

test('a week or month in which a limit starts begins on that day and ends as usual', () => {
  const start = Date.UTC(2028, 1, 16)
  expect(windowAt('day', noon, start)).toBe('day:2028-02-29')
  expect(windowAt('week', noon, start)).toBe('week:2028-02-28')
  expect(windowAt('month', noon, start)).toBe('month:2028-02-16')
  // A Wednesday.
  expect(windowAt('week', start, start)).toBe('week:2028-02-16')
  expect(windowAt('month', noon, Date.UTC(2028, 1, 1))).toBe('month:2028-02')
  expect([windowStart('week:2028-02-16'), windowEnd('week:2028-02-16')]).toEqual([start, Date.UTC(2028, 1, 21)])
  expect([windowStart('month:2028-02-16'), windowEnd('month:2028-02-16')]).toEqual([start, Date.UTC(2028, 2, 1)])
  // Nothing is known of the time before it.
  expect([windowBefore('week:2028-02-16'), windowBefore('month:2028-02-16')]).toEqual([undefined, undefined])
})

test('a window is past a week after its end', () => {
  const weekLater = Date.UTC(2028, 2, 8)
  expect(isWindowPast('day:2028-02-29', weekLater)).toBe(false)
  expect(isWindowPast('day:2028-02-29', weekLater + 1)).toBe(true)
  expect(isWindowPast('month:2028-03', weekLater + 1)).toBe(false)
  expect(isWindowPast('for ever', weekLater + 1)).toBe(false)
})
