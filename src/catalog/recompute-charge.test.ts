import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import { verify } from '../ledger/verify.ts'
import { completePriceRow, type Price, priceUsage } from './price.ts'
import { recordPrices } from './price-versions.ts'
import { readRecomputeCharge } from './price-versions.ts'

const price: Price = {
  free: false,
  ...completePriceRow({ input: 1500n as Pico, output: 4000n as Pico, cacheRead: 150n as Pico }),
  tiers: [],
}
const usage: Usage = {
  inputTokens: 10,
  cacheReadTokens: 3,
  cacheWriteTokens: 2,
  cacheWriteLongTokens: 1,
  outputTokens: 5,
  reasoningTokens: 4,
  source: 'reported',
}
const models = (current: Price) => [{ id: 'acme/large', price: current, source: 'built in' }]

forEachEngine((engine) => {
  test('a charge is what its stored usage costs under its stored price, also after the price has changed', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { versions } = await recordPrices({ database, clock: systemClock, models: models(price) })
    const version = versions.get('acme/large') ?? ''
    const dearer = { ...price, output: 5000n as Pico }
    await recordPrices({ database, clock: systemClock, models: models(dearer) })
    const recompute = await readRecomputeCharge(database.sql)
    // 10 × 1500 + 3 × 150 + 2 × 1500 + 1 × 1500 + 5 × 4000 = 39,950 pico = 39.95 nano → 40
    expect(recompute(version, JSON.stringify(usage))).toBe(40n as Nano)
    // One thousand pico more for each of the five: 44.95 → 45
    expect(recompute('acme/large#2', JSON.stringify(usage))).toBe(45n as Nano)
    expect(recompute('acme/large#3', JSON.stringify(usage))).toBeUndefined()
    // Half as much again where the work was kept in the United States: 59.925 → 60
    await recordPrices({ database, clock: systemClock, models: models({ ...price, usOnly: 15_000n }) })
    const kept = JSON.stringify({ ...usage, isUsOnly: true })
    const again = await readRecomputeCharge(database.sql)
    expect([again('acme/large#3', kept), again('acme/large#3', JSON.stringify(usage))]).toEqual([60n, 40n] as Nano[])
    expect(again(version, kept)).toBe(40n as Nano)
    const heard = { ...usage, audioInputTokens: 4, audioOutputTokens: 2 }
    expect(recompute(version, JSON.stringify(heard))).toBe(40n as Nano)
    for (const text of [
      '',
      '{}',
      JSON.stringify({ ...usage, audioInputTokens: -1 }),
      JSON.stringify({ ...usage, inputTokens: -1 }),
      '[1]',
    ]) {
      expect(recompute(version, text)).toBeUndefined()
    }
  })

  test('verify recomputes every charge from the prices in the database', async () => {
    await using store = await engine.openStore()
    const { database } = store
    await recordPrices({ database, clock: systemClock, models: models(price) })
    const workspaceId = await addWorkspace(database)
    await using books = await openLedger(database)
    const { ledger } = books
    await ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    const chargeWith = async (charge: Nano) => {
      const request = holdOf(workspaceId, 100n)
      await ledger.hold(request)
      const outcome = await ledger.settle({
        ...settlementOf(request.requestId, charge),
        priceVersion: 'acme/large#1',
        usage: JSON.stringify(usage),
      })
      return outcome.kind === 'settled' ? outcome.transfer.id : outcome.kind
    }
    await chargeWith(priceUsage(price, usage))
    expect((await verify(database, { readPrice: readRecomputeCharge })).findings).toEqual([])
    const wrong = await chargeWith(41n as Nano)
    expect((await verify(database, { readPrice: readRecomputeCharge })).findings).toEqual([
      { check: 'charge = price of the usage', id: wrong, detail: 'charged 41, acme/large#1 says 40' },
    ])
  })
})
