// Which days a run compares: every midnight of a long range has both of its days, and a day of which the log was partly deleted is
// left out. Amounts below a nano-dollar are no difference.

import { expect } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { Secret } from '../../src/kernel/secret.ts'
import {
  listReconciliationCauses,
  listReconciliations,
  type Reconciliation,
  storeComparison,
} from '../../src/reconcile/rows.ts'
import { reconcile } from '../../src/reconcile/run.ts'
import type { Database } from '../../src/store/database.ts'
import { createRetention } from '../../src/telemetry/retention.ts'
import { forEachEngine } from '../parts/engines.ts'
import { adminKey, type FakeBills, startFakeBills } from './fake-bills.ts'
import { dayMs, firstDay, gatewayKey, provider, writeTraffic } from './traffic.ts'

const clock = { ...systemClock, now: () => firstDay + 70 * dayMs }
const deps = (database: Database) => ({ database, clock, pause: async () => {} })
const sourceOf = (bills: FakeBills) => ({
  ...{ provider, format: 'anthropic' as const, adminKey: new Secret(adminKey), baseUrl: bills.url },
  ...{ keys: [gatewayKey], path: undefined, models: {} },
})
const daysIn = (days: number) => ({ from: firstDay, to: firstDay + days * dayMs })

forEachEngine((_, storeTest) => {
  storeTest('a range longer than one report has no day without its neighbours', async ({ database }) => {
    const days = 34
    const traffic = await writeTraffic(database, { days, requests: days * 10, disturbances: ['midnight'] })
    using bills = startFakeBills(traffic.counted)
    await reconcile(deps(database), sourceOf(bills), daysIn(days))
    const rows = await listReconciliations(database.sql, daysIn(days))
    expect(rows.filter(({ unexplained }) => unexplained > 0n).map(indexOf)).toEqual([])
    const found = await listReconciliationCauses(database.sql, daysIn(days))
    // The last answer of each day, except of the last one, is billed on the day after it.
    expect([...new Set(found.map(indexOf))]).toEqual(Array.from({ length: days }, (_, day) => day))
  })

  storeTest('the oldest day is left out when a part of its log was deleted', async ({ database }) => {
    const { counted } = await writeTraffic(database, { days: 3, requests: 60 })
    using bills = startFakeBills(counted)
    // The retention ends in the middle of the second day.
    const now = firstDay + 91.5 * dayMs
    const onFault = (error: unknown) => {
      throw error
    }
    const retention = createRetention({
      ...{ database, clock: { ...clock, now: () => now }, days: () => 90, onFault, every: () => () => {} },
    })
    expect(await retention.run()).toBe(30)
    await retention.close()
    expect(await reconcile(deps(database), sourceOf(bills), daysIn(3))).toMatchObject({ compared: 1, missing: 0 })
    const rows = await listReconciliations(database.sql, daysIn(3))
    expect(rows.map((row) => [indexOf(row), row.differences])).toEqual([[2, 0n as Nano]])
  })

  storeTest('less than half a nano-dollar is no cause', async ({ database }) => {
    const part = { model: 'large-1', cause: 'list_price' as const, quantity: 0n, requests: new Set<never>() }
    // The last digits of a float: 54321.12345678901 instead of 54321.123456789.
    const parts = [
      { ...part, pico: 10n },
      { ...part, model: 'small-1', pico: 500n },
    ]
    const compared = { day: firstDay, lines: [], parts, unexplained: 0n }
    await database.transaction((sql) => storeComparison(sql, provider, compared, clock.now()))
    const causes = await listReconciliationCauses(database.sql, daysIn(1))
    expect(causes.map(({ model, amount }) => [model, amount])).toEqual([['small-1', 1n as Nano]])
  })
})

function indexOf({ day }: Pick<Reconciliation, 'day'>): number {
  return (day - firstDay) / dayMs
}
