// Bills that answers state themselves, the alert for a day that differs, and when the daily run is due.

import { expect, test } from 'bun:test'
import { detectAlerts, listAlerts } from '../../src/alerts/alerts.ts'
import { isDue } from '../../src/app/reconciliations.ts'
import { readUsage as readChatUsage } from '../../src/dialects/openai-chat/usage.ts'
import { readUsage as readResponsesUsage } from '../../src/dialects/openai-responses/usage.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { listReconciliationCauses, listReconciliations } from '../../src/reconcile/rows.ts'
import { reconcile } from '../../src/reconcile/run.ts'
import { forEachEngine } from '../parts/engines.ts'
import { dayMs, firstDay, provider, writeTraffic } from './traffic.ts'

const range = { from: firstDay, to: firstDay + 2 * dayMs }
const clock = { ...systemClock, now: () => firstDay + 3 * dayMs }
const source = { provider, format: 'replies', adminKey: undefined, baseUrl: undefined, keys: undefined } as const

test('the cost in an answer is kept, and anything that is no count is not', () => {
  const chat = { prompt_tokens: 3, completion_tokens: 2 }
  expect(readChatUsage({ ...chat, cost_in_usd_ticks: 12_345 })).toMatchObject({ billedTicks: 12_345 })
  for (const wrong of [-1, 1.5, '12', null, 1e300]) {
    expect(readChatUsage({ ...chat, cost_in_usd_ticks: wrong })).not.toHaveProperty('billedTicks')
  }
  const responses = { input_tokens: 3, output_tokens: 2, cost_in_usd_ticks: 7 }
  expect(readResponsesUsage(responses)).toMatchObject({ billedTicks: 7 })
})

test('a daily run is due once after its hour, and an hour after a failure', () => {
  const at = (text: string) => Date.parse(`2026-11-05T${text}Z`)
  const ended = (endedAt: number, fault?: string) => ({ provider, claimedUntil: 0, endedAt, fault })
  expect(isDue(undefined, at('03:00:00'), 8)).toBe(true)
  expect(isDue(ended(at('08:00:01')), at('23:59:59'), 8)).toBe(false)
  expect(isDue(ended(at('08:00:01')), at('08:00:00') + dayMs, 8)).toBe(true)
  expect(isDue(ended(at('07:59:59')), at('08:00:00'), 8)).toBe(true)
  expect(isDue(ended(at('09:00:00'), 'refused'), at('09:59:59'), 8)).toBe(false)
  expect(isDue(ended(at('09:00:00'), 'refused'), at('10:00:00'), 8)).toBe(true)
})

forEachEngine((_, storeTest) => {
  storeTest('answers that state what they cost are compared with what was recorded', async ({ database }) => {
    // Half of the answers state their price; those of the second day state a tenth more.
    const factor = (day: number) => (day === 0 ? 100n : 110n)
    await writeTraffic(database, {
      ...{ days: 2, requests: 40 },
      billedTicks: (day, at, pico) => (at % 2 === 0 ? Number((pico * factor(day)) / 100n / 100n) : undefined),
    })
    const deps = { database, clock }
    expect(await reconcile(deps, { ...source, path: undefined, models: {} }, range)).toMatchObject({ compared: 2 })
    const [first, second] = await listReconciliations(database.sql, range)
    // A tick is a tenth of a nano-dollar: each of ten answers a model is cut off by less than one.
    expect(Number(first?.differences)).toBeLessThan(4)
    expect(Number(second?.billed)).toBeGreaterThan(Number(second?.recorded))
    const causes = await listReconciliationCauses(database.sql, { ...range, from: firstDay + dayMs })
    expect(new Set(causes.map(({ cause }) => cause))).toEqual(new Set(['list_price']))
    expect(Number(second?.unexplained)).toBe(0)

    const raising = { now: clock.now(), mail: undefined }
    for (let times = 0; times < 2; times++) await detectAlerts(database, raising)
    const { items } = await listAlerts(database.sql, { limit: 10 })
    expect(items.map(({ kind, data }) => [kind, data.provider, data.day])).toEqual([
      ['bill.differs', provider, '2026-10-02'],
    ])
  })
})
