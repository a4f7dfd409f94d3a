import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { Pico } from '../kernel/money.ts'
import { modelFromEntry } from './entry.ts'
import { completePriceRow, freePrice, type Price } from './price.ts'
import {
  deletePriceOverride,
  layPriceOverrides,
  putPriceOverride,
  readPriceHistory,
  readPriceOverrides,
} from './price-versions.ts'
import { recordPrices } from './price-versions.ts'

const priceOf = (input: bigint, output: bigint): Price => ({
  free: false,
  ...completePriceRow({ input: input as Pico, output: output as Pico }),
  tiers: [],
})
const tiered: Price = {
  ...priceOf(1n, 2n),
  tiers: [{ overInputTokens: 1000, ...completePriceRow({ input: 3n as Pico, output: 4n as Pico }) }],
}

forEachEngine((engine) => {
  test('what was set is read back to the last tier, a second one replaces the first, and it can be taken back', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const put = (modelId: string, price: Price, setAt = 1000) =>
      database.transaction((sql) => putPriceOverride(sql, { modelId, price, setAt }))
    const remove = (modelId: string) => database.transaction((sql) => deletePriceOverride(sql, modelId))
    expect(await readPriceOverrides(database.sql)).toEqual(new Map())
    await put('acme/large', priceOf(100n, 200n))
    await put('acme/large', tiered, 2000)
    await put('acme/open', freePrice)
    expect(await readPriceOverrides(database.sql)).toEqual(
      new Map([
        ['acme/large', tiered],
        ['acme/open', freePrice],
      ]),
    )
    expect([...(await database.sql`SELECT set_at FROM price_overrides WHERE model_id = 'acme/large'`)]).toEqual([
      { set_at: 2000n },
    ])
    expect([await remove('acme/large'), await remove('acme/large'), await remove('acme/none')]).toEqual([
      true,
      false,
      false,
    ])
    expect(await readPriceOverrides(database.sql)).toEqual(new Map([['acme/open', freePrice]]))
  })

  test('the history of a model is dated, newest first, and has no price of another', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const record = (id: string, price: Price, source: string, now: number) =>
      recordPrices({
        database,
        clock: { now: () => now, monotonicMs: () => now },
        models: [{ id, price, source }],
      })
    await record('acme/large', priceOf(1n, 2n), 'built in', 1000)
    await record('acme/larger', priceOf(7n, 7n), 'built in', 1500)
    await record('acme/large', tiered, 'management API', 2000)
    expect(await readPriceHistory(database.sql, 'acme/large')).toEqual([
      { version: 'acme/large#2', price: tiered, source: 'management API', effectiveFrom: 2000 },
      { version: 'acme/large#1', price: priceOf(1n, 2n), source: 'built in', effectiveFrom: 1000 },
    ])
    expect(await readPriceHistory(database.sql, 'acme/lar')).toEqual([])
  })
})

test('the file comes before what was set, which comes before what the gateway brings along', () => {
  const entry = { owned_by: 'acme', routes: [{ provider: 'acme', model: 'm' }] }
  const own = { input: '5.00', output: '5.00' }
  const models = [
    modelFromEntry({ ...entry, id: 'acme/built-in', price: own }, 'built in'),
    modelFromEntry({ ...entry, id: 'acme/by-file', price: own }, 'tollgate.yaml:3'),
    modelFromEntry({ ...entry, id: 'acme/unpriced' }, 'tollgate.yaml:9'),
    modelFromEntry({ ...entry, id: 'acme/untouched', price: own }, 'built in'),
  ]
  const set = priceOf(1n, 2n)
  const overrides = new Map(['acme/built-in', 'acme/by-file', 'acme/unpriced', 'acme/gone'].map((id) => [id, set]))
  const laid = layPriceOverrides(models, overrides, new Set(['acme/by-file']))
  const five = priceOf(5_000_000n, 5_000_000n)
  expect(laid.models.map(({ id, price, source }) => [id, laid.setterOf(id), price, source])).toEqual([
    ['acme/built-in', 'api', set, 'built in'],
    ['acme/by-file', 'file', five, 'tollgate.yaml:3'],
    ['acme/unpriced', 'api', set, 'tollgate.yaml:9'],
    ['acme/untouched', 'catalog', five, 'built in'],
  ])
  expect(laid.idle.map(({ id }) => id)).toEqual(['acme/by-file'])
})
