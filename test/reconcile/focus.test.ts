// FOCUS files: their sums are the ledger's to the nano-dollar, by plain SQL on both engines, and they keep the published rules of
// version 1.2 (https://focus.finops.org/focus-specification/v1-2/): columns, required values, forms of times, unit prices.

import { expect } from 'bun:test'
import { tmpdir } from 'node:os'
import { picoOf, quantityOf } from '../../src/reconcile/bill.ts'
import { readFocusBill } from '../../src/reconcile/bill-files.ts'
import { exportFocus, type FocusQuery } from '../../src/reconcile/focus-export.ts'
import { parseTable } from '../../src/reconcile/table-file.ts'
import type { Database } from '../../src/store/database.ts'
import { forEachEngine } from '../parts/engines.ts'
import { dayMs, firstDay, writeTraffic } from './traffic.ts'

const days = 4
const range = { from: firstDay, to: firstDay + days * dayMs }

async function rowsOf(database: Database, query: Pick<FocusQuery, 'content' | 'by'>, period = range) {
  let text = ''
  for await (const piece of exportFocus(database, { ...query, ...period })) text += piece
  const [header = ''] = text.split('\n')
  const { columns, rows } = parseTable('focus', Buffer.from(text))
  const named = rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at] ?? ''])))
  return { text, header: header.split(','), rows: named }
}

/** Nano-dollars. */
function sumOf(rows: readonly Readonly<Record<string, string>>[], column = 'billedcost'): bigint {
  return rows.reduce((sum, row) => sum + (picoOf(row[column] ?? '', 'usd') ?? 0n), 0n) / 1000n
}

/** The columns that every row of version 1.2 or a later one must have a value in. */
const required = [
  ...[
    'BilledCost',
    'BillingAccountId',
    'BillingAccountName',
    'BillingAccountType',
    'BillingCurrency',
    'BillingPeriodEnd',
  ],
  ...['BillingPeriodStart', 'ChargeCategory', 'ChargeDescription', 'ChargeFrequency', 'ChargePeriodEnd'],
  ...[
    'ChargePeriodStart',
    'ConsumedQuantity',
    'ConsumedUnit',
    'ContractedCost',
    'ContractedUnitPrice',
    'EffectiveCost',
  ],
  ...['HostProviderName', 'InvoiceIssuerName', 'ListCost', 'ListUnitPrice', 'PricingCategory', 'PricingQuantity'],
  ...['PricingUnit', 'ProviderName', 'PublisherName', 'ServiceCategory', 'ServiceName', 'ServiceProviderName'],
  ...['ServiceSubcategory', 'SkuId', 'SkuPriceId'],
]

forEachEngine((_, storeTest) => {
  storeTest('charges and costs add up to the ledger, by day and by request', async ({ database }) => {
    const disturbances = ['failed_attempt', 'cut_answer', 'estimated_usage', 'implausible_count'] as const
    await writeTraffic(database, { days: days + 2, requests: 3_600, disturbances })
    // The log of some requests is gone; their charges are not.
    const { sql } = database
    await database.transaction(async (write) => {
      const old = await write<{ id: string }>`SELECT id FROM requests ORDER BY id LIMIT 40`
      for (const { id } of old) {
        await write`INSERT INTO archived_charges SELECT id, workspace_id, started_at + total_ms, charge, written_off, price_version,
          usage, estimated, budgets FROM requests WHERE id = ${id}`
        await write`DELETE FROM requests WHERE id = ${id}`
      }
      // As long as a route's `total_ms` can be: it is charged on the day after it began.
      await write`UPDATE requests SET total_ms = 86400000 WHERE id IN (SELECT id FROM requests ORDER BY id LIMIT 3)`
    })
    const [charged] = await sql<{
      sum: bigint
      n: bigint
    }>`SELECT CAST(SUM(charge) AS BIGINT) AS sum, COUNT(*) AS n FROM charges
      WHERE created_at >= ${BigInt(range.from)} AND created_at < ${BigInt(range.to)}`
    const [cost] = await sql<{ sum: bigint; failed: bigint }>`SELECT CAST(SUM(upstream_cost) AS BIGINT) AS sum,
      CAST(SUM(failed_cost) AS BIGINT) AS failed FROM requests
      WHERE started_at + total_ms >= ${BigInt(range.from)} AND started_at + total_ms < ${BigInt(range.to)}`
    expect(cost?.failed).toBeGreaterThan(0n)
    for (const by of ['day', 'request'] as const) {
      const charges = await rowsOf(database, { content: 'charges', by })
      const costs = await rowsOf(database, { content: 'costs', by })
      expect([by, sumOf(charges.rows)]).toEqual([by, charged?.sum ?? 0n])
      expect([by, sumOf(costs.rows)]).toEqual([by, (cost?.sum ?? 0n) + (cost?.failed ?? 0n)])
      if (by === 'request') {
        expect(new Set(charges.rows.map((row) => row.x_requestid)).size).toBe(Number(charged?.n))
      } else expect(charges.rows.length).toBeLessThan(200)
    }
    // Days do not overlap, and none is left out.
    let apart = 0n
    for (let day = range.from; day < range.to; day += dayMs) {
      apart += sumOf((await rowsOf(database, { content: 'charges', by: 'day' }, { from: day, to: day + dayMs })).rows)
    }
    expect(apart).toBe(charged?.sum ?? 0n)
  })

  storeTest('keeps the rules of the specification', async ({ database }) => {
    await writeTraffic(database, { days, requests: 400, disturbances: ['failed_attempt'] })
    for (const content of ['charges', 'costs'] as const) {
      const { header, rows } = await rowsOf(database, { content, by: 'day' })
      const custom = header.findIndex((name) => name.startsWith('x_'))
      expect(header.slice(custom).every((name) => name.startsWith('x_'))).toBe(true)
      expect(header.slice(0, custom).every((name) => /^[A-Z][A-Za-z]+$/.test(name))).toBe(true)
      expect(new Set(header).size).toBe(header.length)
      // A service tier has a price of its own.
      const skus = rows.filter(({ x_tier: tier }) => tier === 'flex').map((row) => [row.skuid, row.chargedescription])
      expect(skus.length).toBeGreaterThan(0)
      for (const [id, text] of skus)
        expect([id, text]).toEqual([expect.stringMatching(/\/flex$/), expect.stringContaining(', Flex tier of ')])
      for (const row of rows) {
        const empty = required.filter((name) => (row[name.toLowerCase()] ?? '') === '')
        expect(empty).toEqual([])
        for (const name of ['billingperiodstart', 'billingperiodend', 'chargeperiodstart', 'chargeperiodend'])
          expect(row[name]).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/)
        expect([row.chargecategory, row.chargeclass, row.billingcurrency]).toEqual(['Usage', '', 'USD'])
        expect(row.servicecategory).toBe('AI and Machine Learning')
        // Unit price × quantity is the cost, up to the rounding of each request of the day to a nano-dollar.
        const product = (picoOf(row.listunitprice ?? '', 'usd') ?? 0n) * (quantityOf(row.pricingquantity ?? '') ?? 0n)
        const off = (picoOf(row.listcost ?? '', 'usd') ?? 0n) - product
        expect(off < 0n ? -off : off).toBeLessThan(200_000n)
      }
    }
  })

  storeTest('its own costs can be read as a bill', async ({ database }) => {
    await writeTraffic(database, { days, requests: 400 })
    const { text, rows } = await rowsOf(database, { content: 'costs', by: 'day' })
    const path = `${tmpdir()}/tollgate-own-focus-${Bun.randomUUIDv7()}.csv`
    await Bun.write(path, text)
    const { lines } = readFocusBill({ provider: 'acme', path, models: {} }, range)
    await Bun.file(path).delete()
    expect(lines.reduce((sum, { pico }) => sum + (pico ?? 0n), 0n) / 1000n).toBe(sumOf(rows))
    expect(new Set(lines.map(({ model, bucket }) => `${model} ${bucket}`)).size).toBe(8)
    expect(new Set(lines.map(({ tier }) => tier))).toEqual(new Set(['', 'flex']))
  })
})
