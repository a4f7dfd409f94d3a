// Reconciliation against fakes of the providers' reports: nothing differs without a disturbance, and each of ten disturbances is
// found, named and explained. The large version is large.ts.

import { expect } from 'bun:test'
import { type BillCause, type BillFormat, billCauses } from '../../src/kernel/bill.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { listReconciliationCauses, listReconciliations } from '../../src/reconcile/rows.ts'
import { reconcile } from '../../src/reconcile/run.ts'
import type { Database } from '../../src/store/database.ts'
import { forEachEngine } from '../parts/engines.ts'
import { adminKey, type FakeBills, startFakeBills } from './fake-bills.ts'
import { dayMs, firstDay, gatewayKey, provider, type Traffic, writeTraffic } from './traffic.ts'

const days = 8
const range = { from: firstDay, to: firstDay + days * dayMs }
const clock = { ...systemClock, now: () => firstDay + (days + 1) * dayMs }
const deps = (database: Database) => ({ database, clock, pause: async () => {} })

const sourceOf = (bills: FakeBills, format: BillFormat, keys: readonly string[] | undefined = [gatewayKey]) => ({
  ...{ provider, format, adminKey: new Secret(adminKey), baseUrl: bills.url },
  ...{ keys, path: undefined, models: {} },
})

async function totals(database: Database) {
  const rows = await listReconciliations(database.sql, range)
  const sum = (name: 'billed' | 'recorded' | 'differences' | 'unexplained') =>
    rows.reduce((all, row) => all + row[name], 0n)
  return {
    ...{ days: rows.length, billed: sum('billed'), recorded: sum('recorded') },
    ...{ differences: sum('differences'), unexplained: sum('unexplained') },
  }
}

const formats = ['anthropic', 'anthropic-reports', 'openai', 'openrouter'] as const
const allCauses = Object.keys(billCauses) as BillCause[]

forEachEngine((_, storeTest) => {
  storeTest('nothing differs without a disturbance', async ({ database }) => {
    const traffic = await writeTraffic(database, { days, requests: 1_600 })
    using bills = startFakeBills(traffic.counted)
    for (const format of formats) {
      const source = sourceOf(bills, format, format === 'openrouter' ? undefined : [gatewayKey])
      expect(await reconcile(deps(database), source, range)).toEqual({
        provider,
        compared: days,
        missing: 0,
        fault: undefined,
      })
      const found = await totals(database)
      expect([format, found.differences, found.unexplained]).toEqual([format, 0n, 0n])
      expect(found.billed).toBeGreaterThan(0n)
      expect(found.billed).toBe(found.recorded)
      expect(await listReconciliationCauses(database.sql, range)).toEqual([])
    }
    expect(bills.calls.every((call) => call.startsWith('GET '))).toBe(true)
  })

  // Without their keys the other key's traffic is part of the bill; reports of one format do not know regions or tiers.
  const lacks: Partial<Record<(typeof formats)[number], readonly BillCause[]>> = {
    openai: ['region'],
    openrouter: ['tier', 'region', 'batch', 'midnight'],
  }
  for (const format of formats) {
    const planned = allCauses.filter((cause) => !(lacks[format] ?? []).includes(cause))
    storeTest(`${format}: finds and explains what was planted`, async ({ database }) => {
      const traffic = await writeTraffic(database, { days, requests: 4_800, oneOf: 120, disturbances: planned })
      using bills = startFakeBills(traffic.counted)
      await reconcile(
        deps(database),
        sourceOf(bills, format, format === 'openrouter' ? undefined : [gatewayKey]),
        range,
      )
      await expectExplained(database, traffic, planned)
    })
  }
})

forEachEngine((_, storeTest) => {
  for (const format of ['anthropic', 'openai'] as const) {
    storeTest(
      `${format}: what was recorded in one tier and billed in another is the cause \`tier\``,
      async ({ database }) => {
        const traffic = await writeTraffic(database, { days, requests: 1_600, disturbances: ['tier'] })
        using bills = startFakeBills(traffic.counted)
        await reconcile(deps(database), sourceOf(bills, format), range)
        const causes = await listReconciliationCauses(database.sql, range)
        // On large-1, a dearer tier than the standard one that was recorded; on small-1, the standard one instead of flex.
        expect(causes.map(({ day, model, cause }) => [(day - firstDay) / dayMs, model, cause]).sort()).toEqual([
          [3, 'large-1', 'tier'],
          [3, 'small-1', 'tier'],
        ])
        // Anthropic's bill calls capacity that was bought `priority`, and no reply here names that.
        const isNamed = (model: string) => format === 'openai' || model === 'small-1'
        for (const { model, requests, requestIds } of causes) {
          const fitting = isNamed(model) ? (traffic.otherTiers.get(model) ?? []).toSorted() : []
          expect([model, requestIds, requests]).toEqual([model, fitting.slice(0, 100), fitting.length])
          expect(fitting.length > 5).toBe(isNamed(model))
        }
        const { billed, recorded, unexplained } = await totals(database)
        expect(causes.reduce((sum, { amount }) => sum + amount, 0n)).toBe(billed - recorded)
        expect(unexplained).toBe(0n)
      },
    )
  }
})

forEachEngine((_, storeTest) => {
  storeTest(
    'more requests than were recorded are named, even where cut answers could explain their tokens',
    async ({ database }) => {
      const disturbances = ['cut_answer', 'outside'] as const
      const traffic = await writeTraffic(database, { days, requests: 4_800, oneOf: 20, disturbances })
      using bills = startFakeBills(traffic.counted)
      await reconcile(deps(database), sourceOf(bills, 'openrouter', undefined), range)
      await expectExplained(database, traffic, disturbances)
      const outside = (await listReconciliationCauses(database.sql, range)).filter(({ cause }) => cause === 'outside')
      expect(outside.map(({ day, model, detail }) => [(day - firstDay) / dayMs, model, detail])).toEqual([
        [0, 'small-1', '5 requests more than were recorded'],
        [6, 'small-1', '5 requests more than were recorded'],
      ])
    },
  )
})

async function expectExplained(database: Database, { planted }: Traffic, planned: readonly BillCause[]): Promise<void> {
  const causes = await listReconciliationCauses(database.sql, range)
  for (const cause of planned) {
    const found = new Set(causes.filter((each) => each.cause === cause).map(({ day }) => (day - firstDay) / dayMs))
    const lacking = [...(planted.get(cause) ?? [])].filter((day) => !found.has(day))
    expect([cause, planted.get(cause)?.size ?? 0, lacking]).toEqual([cause, expect.any(Number), []])
  }
  const { differences, unexplained } = await totals(database)
  expect(differences).toBeGreaterThan(0n)
  expect(Number(differences - unexplained) / Number(differences)).toBeGreaterThanOrEqual(0.95)
}
