import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import { verify } from '../ledger/verify.ts'
import { recordFees } from './price-versions.ts'
import { completePriceRow, freePrice, type Price, priceUsage } from './price.ts'
import { readPriceVersion } from './price-versions.ts'
import { readRecomputeCharge } from './price-versions.ts'

const price: Price = {
  free: false,
  ...completePriceRow({ input: 1500n as Pico, output: 4001n as Pico, cacheRead: 150n as Pico }),
  webSearch: 10_000_000n as Pico,
  tiers: [],
}
const models = [
  { id: 'acme/large', price, source: 'built in' },
  { id: 'acme/free', price: freePrice, source: 'built in' },
  { id: 'acme/none', price: undefined, source: 'built in' },
]
const usage: Usage = {
  inputTokens: 10,
  cacheReadTokens: 3,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 5,
  webSearches: 1,
  source: 'reported',
}

forEachEngine((engine) => {
  test('a fee is a price with a version of its own, and a new one when the fee or the price changes', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const feesAt = (basisPoints: bigint) => recordFees({ database, clock: systemClock, models, basisPoints })
    expect((await feesAt(0n)).size).toBe(0)
    const fees = await feesAt(250n)
    expect([...fees.keys()]).toEqual(['acme/large'])
    // 2.5 % of 1,500, 4,001 and 150, each rounded up.
    const row = { input: 38n, output: 101n, cacheRead: 4n, webSearch: 250_000n }
    expect(fees.get('acme/large')).toMatchObject({ version: 'acme/large#own#1', price: row })
    expect((await feesAt(500n)).get('acme/large')?.version).toBe('acme/large#own#2')
    expect((await feesAt(500n)).get('acme/large')?.version).toBe('acme/large#own#2')
    expect(await readPriceVersion(database, 'acme/large#own#1')).toMatchObject({
      price: row,
      source: '2.5 % of built in',
    })
  })

  test('M7: verify recomputes what was charged on an own credential', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const fee = (await recordFees({ database, clock: systemClock, models, basisPoints: 500n })).get('acme/large')
    const workspaceId = await addWorkspace(database)
    await using books = await openLedger(database)
    const { ledger } = books
    await ledger.fund({ workspaceId, amount: 10_000n as Nano, kind: 'topup' })
    const chargeWith = async (charge: Nano) => {
      const request = holdOf(workspaceId, 1000n)
      await ledger.hold(request)
      const settlement = { ...settlementOf(request.requestId, charge), priceVersion: fee?.version }
      const outcome = await ledger.settle({ ...settlement, usage: JSON.stringify(usage) })
      return outcome.kind === 'settled' ? outcome.transfer.id : outcome.kind
    }
    const findings = async () => (await verify(database, { readPrice: readRecomputeCharge })).findings
    // 10 × 75 + 3 × 8 + 5 × 201 + 500,000 = 501,779 pico → 502
    expect(priceUsage(fee?.price ?? freePrice, usage)).toBe(502n as Nano)
    await chargeWith(502n as Nano)
    expect(await findings()).toEqual([])
    const wrong = await chargeWith(503n as Nano)
    expect(await findings()).toEqual([
      { check: 'charge = price of the usage', id: wrong, detail: 'charged 503, acme/large#own#1 says 502' },
    ])
  })
})
