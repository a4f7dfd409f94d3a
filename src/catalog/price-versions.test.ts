import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Pico } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { completePriceRow, freePrice, type Price, type PriceTier } from './price.ts'
import { type PricedModel, readPriceVersion, recordPrices } from './price-versions.ts'
import { parseStoredPrice, renderStoredPrice } from './price-versions.ts'

function priceOf(input: bigint, output: bigint, tiers: readonly PriceTier[] = []): Price {
  return { free: false, ...completePriceRow({ input: input as Pico, output: output as Pico }), tiers }
}

function tierOf(overInputTokens: number, input: bigint, output: bigint): PriceTier {
  return { overInputTokens, ...completePriceRow({ input: input as Pico, output: output as Pico }) }
}

const modelOf = (id: string, price: Price | undefined, source = 'built in'): PricedModel => ({ id, price, source })
const clockAt = (now: number): Clock => ({ now: () => now, monotonicMs: () => now })

async function record(database: Database, models: readonly PricedModel[], now = 1000) {
  const { versions, moved } = await recordPrices({ database, clock: clockAt(now), models })
  return { versions: Object.fromEntries(versions), moved }
}

forEachEngine((engine) => {
  test('a new or changed price becomes a new version, an unchanged one keeps its own', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const [large, small] = [modelOf('acme/large', priceOf(100n, 200n)), modelOf('acme/small', priceOf(1n, 2n))]
    const none = modelOf('acme/none', undefined)
    expect((await record(database, [large, small, none])).versions).toEqual({
      'acme/large': 'acme/large#1',
      'acme/small': 'acme/small#1',
    })
    const dearer = modelOf('acme/large', priceOf(110n, 200n), 'tollgate.yaml:3')
    expect((await record(database, [dearer, { ...small, source: 'tollgate.yaml:9' }], 2000)).versions).toEqual({
      'acme/large': 'acme/large#2',
      'acme/small': 'acme/small#1',
    })
    expect((await record(database, [large, small], 3000)).versions['acme/large']).toBe('acme/large#3')
    const rows = await database.sql`SELECT version, model_id, price, source, effective_from FROM prices
      WHERE model_id = 'acme/large' ORDER BY effective_from`
    const json = (input: number) =>
      `{"input":"${input}","output":"200","cache_read":"${input}","cache_write":"${input}","cache_write_1h":"${input}"}`
    const row = { model_id: 'acme/large', source: 'built in' }
    expect([...rows]).toEqual([
      { ...row, version: 'acme/large#1', price: json(100), effective_from: 1000n },
      { ...row, version: 'acme/large#2', price: json(110), source: 'tollgate.yaml:3', effective_from: 2000n },
      { ...row, version: 'acme/large#3', price: json(100), effective_from: 3000n },
    ])
    expect((await readPriceVersion(database, 'acme/large#2'))?.price).toEqual(priceOf(110n, 200n))
    expect(await readPriceVersion(database, 'acme/large#4')).toBeUndefined()
  })

  test('a price of sound that is added is a new version, and no jump unless it is ten times that of text', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const plain = priceOf(100n, 200n)
    await record(database, [modelOf('acme/large', plain)])
    const heard = (audioInput: bigint) => modelOf('acme/large', { ...plain, audioInput: audioInput as Pico })
    const first = await record(database, [heard(1000n)], 2000)
    expect([first.versions['acme/large'], first.moved]).toEqual(['acme/large#2', []])
    const { moved } = await record(database, [heard(10_001n)], 3000)
    expect(moved).toMatchObject([{ bucket: 'audioInput', from: 1000n, to: 10_001n }])
  })

  test('a clock that was set back does not hide the latest version', async () => {
    await using store = await engine.openStore()
    const { database } = store
    await record(database, [modelOf('acme/large', priceOf(1n, 1n))], 5000)
    const second = [modelOf('acme/large', priceOf(2n, 2n))]
    expect((await record(database, second, 4000)).versions).toEqual({ 'acme/large': 'acme/large#2' })
    expect((await record(database, second, 4000)).versions).toEqual({ 'acme/large': 'acme/large#2' })
    expect((await record(database, [modelOf('acme/large', priceOf(3n, 3n))], 4000)).versions).toEqual({
      'acme/large': 'acme/large#3',
    })
  })

  test('several processes at once agree on the versions of equal prices, and each gets one for its own', async () => {
    await using store = await engine.openStore()
    const { database } = store
    // Three that agree on the first model, and all differ on the second.
    const records = await Promise.all(
      [1n, 2n, 3n].map((input) =>
        record(database, [modelOf('acme/same', priceOf(7n, 7n)), modelOf('acme/own', priceOf(input, 9n))]),
      ),
    )
    for (const { versions } of records) expect(versions['acme/same']).toBe('acme/same#1')
    const own = records.map(({ versions }) => versions['acme/own'] ?? '')
    expect([...own].sort()).toEqual(['acme/own#1', 'acme/own#2', 'acme/own#3'])
    for (const [at, version] of own.entries()) {
      expect((await readPriceVersion(database, version))?.price.input).toBe(BigInt(at + 1) as Pico)
    }
    expect(await database.sql`SELECT version FROM prices`).toHaveLength(4)
  })

  test('five thousand models are recorded in one transaction, and not written again', async () => {
    await using store = await engine.openStore()
    let transactions = 0
    const database: Database = {
      ...store.database,
      transaction: (work) => {
        transactions++
        return store.database.transaction(work)
      },
    }
    const models = Array.from({ length: 5000 }, (_, at) => modelOf(`acme/m${at}`, priceOf(BigInt(at), 5n)))
    expect(Object.keys((await record(database, models)).versions)).toHaveLength(5000)
    expect(transactions).toBe(1)
    expect(await database.sql`SELECT version FROM prices`).toHaveLength(5000)
    expect((await record(database, models)).versions['acme/m4999']).toBe('acme/m4999#1')
    expect(transactions).toBe(1)
  })

  test('a price that moves by more than ten times in one change is told, bucket by bucket', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const change = async (id: string, from: Price, to: Price) => {
      expect((await record(database, [modelOf(id, from)])).moved).toEqual([])
      const { moved } = await record(database, [modelOf(id, to)], 2000)
      return moved.map(({ modelId, bucket, from: before, to: after }) => `${modelId} ${bucket} ${before} ${after}`)
    }
    expect(await change('a/ten-times', priceOf(10n, 10n), priceOf(100n, 1n))).toEqual([])
    expect(await change('a/up', priceOf(10n, 10n), priceOf(10n, 101n))).toEqual(['a/up output 10 101'])
    expect(await change('a/down', priceOf(101n, 10n), priceOf(10n, 10n))).toEqual([
      'a/down input 101 10',
      'a/down cacheRead 101 10',
      'a/down cacheWrite 101 10',
      'a/down cacheWriteLong 101 10',
    ])
    expect(await change('a/to-nothing', priceOf(0n, 5n), freePrice)).toEqual(['a/to-nothing output 5 0'])
    // Above 200 tokens: from the base price of 7 to 71.
    const tiered = priceOf(7n, 7n, [tierOf(200, 7n, 71n)])
    expect(await change('a/tier', priceOf(7n, 7n), tiered)).toEqual(['a/tier output 7 71'])
  })
})

test('a stored price is read as it was written, tiers and freedom included', () => {
  for (const price of [priceOf(0n, 1n), freePrice, priceOf(1n, 2n, [tierOf(100, 3n, 4n), tierOf(200, 5n, 6n)])]) {
    expect(parseStoredPrice(renderStoredPrice(price))).toEqual(price)
  }
  expect(renderStoredPrice(freePrice)).toBe('{"free":true}')
  expect(renderStoredPrice(priceOf(1n, 2n, [tierOf(100, 3n, 4n)]))).toBe(
    '{"input":"1","output":"2","cache_read":"1","cache_write":"1","cache_write_1h":"1","tiers":[' +
      '{"over_input_tokens":100,"input":"3","output":"4","cache_read":"3","cache_write":"3","cache_write_1h":"3"}]}',
  )
})

test('a stored price that is not whole is a defect, not a free model', () => {
  const whole = '{"input":"1","output":"2","cache_read":"1","cache_write":"1","cache_write_1h":"1"}'
  expect(parseStoredPrice(whole).input).toBe(1n as Pico)
  for (const text of ['{}', '', '{"free":false}', whole.replace('"2"', '2'), whole.replace('"2"', '"-2"')]) {
    expect(() => parseStoredPrice(text)).toThrow()
  }
})
