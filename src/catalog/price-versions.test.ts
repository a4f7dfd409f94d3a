import { describe, expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { holdOf, openFunded, settlementOf } from '../../test/parts/ledger.ts'
import { tokenCounts } from '../../test/parts/token-counts.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import { verify } from '../ledger/verify.ts'
import type { Database } from '../store/database.ts'
import { modelFromEntry } from './entry.ts'
import { createPrice, freePrice, type Price, priceUsage, ratesAt } from './price.ts'
import {
  deletePriceOverride,
  layPriceOverrides,
  type PricedModel,
  parseStoredPrice,
  putPriceOverride,
  readPriceHistory,
  readPriceOverrides,
  readPriceVersion,
  readRecomputeCharge,
  recordFees,
  recordPrices,
  renderStoredPrice,
} from './price-versions.ts'

const ratesOf = (input: bigint, output: bigint) => ({ input: input as Pico, output: output as Pico })

/** Tiers as input tokens → prices of input and output. */
function priceOf(input: bigint, output: bigint, tiers: Record<string, readonly [bigint, bigint]> = {}): Price {
  const over = Object.entries(tiers).map(([tokens, prices]) => [tokens, ratesOf(...prices)])
  return createPrice(ratesOf(input, output), Object.fromEntries(over))
}

const modelOf = (id: string, price: Price | undefined, source = 'built in'): PricedModel => ({ id, price, source })
const clockAt = (now: number): Clock => ({ now: () => now, monotonicMs: () => now })

async function record(database: Database, models: readonly PricedModel[], now = 1000) {
  const { versions, moved } = await recordPrices({ database, clock: clockAt(now), models })
  return { versions: Object.fromEntries(versions), moved }
}

forEachEngine((_, storeTest) => {
  storeTest('a new or changed price becomes a new version, an unchanged one keeps its own', async ({ database }) => {
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

  storeTest(
    'an added audio price is a new version, and a jump only if it is more than ten times that of text',
    async ({ database }) => {
      await record(database, [modelOf('acme/large', priceOf(100n, 200n))])
      const withAudio = (audio: bigint) =>
        modelOf(
          'acme/large',
          createPrice({ ...ratesOf(100n, 200n), audio_input: audio as Pico, audio_cache_read: 100n as Pico }),
        )
      const first = await record(database, [withAudio(1000n)], 2000)
      expect([first.versions['acme/large'], first.moved]).toEqual(['acme/large#2', []])
      const { moved } = await record(database, [withAudio(10_001n)], 3000)
      expect(moved).toMatchObject([{ bucket: 'audio_input', from: 1000n, to: 10_001n }])
    },
  )

  storeTest('a clock that was set back does not hide the latest version', async ({ database }) => {
    await record(database, [modelOf('acme/large', priceOf(1n, 1n))], 5000)
    const second = [modelOf('acme/large', priceOf(2n, 2n))]
    expect((await record(database, second, 4000)).versions).toEqual({ 'acme/large': 'acme/large#2' })
    expect((await record(database, second, 4000)).versions).toEqual({ 'acme/large': 'acme/large#2' })
    expect((await record(database, [modelOf('acme/large', priceOf(3n, 3n))], 4000)).versions).toEqual({
      'acme/large': 'acme/large#3',
    })
  })

  storeTest(
    'several processes at once agree on the versions of equal prices, and each gets one for its own',
    async ({ database }) => {
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
        expect((await readPriceVersion(database, version))?.price).toEqual(priceOf(BigInt(at + 1), 9n))
      }
      expect(await database.sql`SELECT version FROM prices`).toHaveLength(4)
    },
  )

  storeTest('five thousand models are recorded in one transaction, and not written again', async (store) => {
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

  storeTest('a price that changes more than tenfold is reported for each bucket', async ({ database }) => {
    const change = async (id: string, from: Price, to: Price) => {
      expect((await record(database, [modelOf(id, from)])).moved).toEqual([])
      const { moved } = await record(database, [modelOf(id, to)], 2000)
      return moved.map(({ modelId, bucket, from: before, to: after }) => `${modelId} ${bucket} ${before} ${after}`)
    }
    expect(await change('a/ten-times', priceOf(10n, 10n), priceOf(100n, 1n))).toEqual([])
    expect(await change('a/up', priceOf(10n, 10n), priceOf(10n, 101n))).toEqual(['a/up output 10 101'])
    expect(await change('a/down', priceOf(101n, 10n), priceOf(10n, 10n))).toEqual([
      'a/down input 101 10',
      'a/down cache_read 101 10',
      'a/down cache_write 101 10',
      'a/down cache_write_1h 101 10',
    ])
    expect(await change('a/to-nothing', priceOf(0n, 5n), freePrice)).toEqual(['a/to-nothing output 5 0'])
    // Above 200 tokens: from the base price of 7 to 71.
    const tiered = priceOf(7n, 7n, { '200': [7n, 71n] })
    expect(await change('a/tier', priceOf(7n, 7n), tiered)).toEqual(['a/tier output 7 71'])
  })
})

test('a stored price is read as it was written, including tiers and free prices', () => {
  for (const price of [priceOf(0n, 1n), freePrice, priceOf(1n, 2n, { '100': [3n, 4n], '200': [5n, 6n] })]) {
    expect(parseStoredPrice(renderStoredPrice(price))).toEqual(price)
  }
  expect(renderStoredPrice(freePrice)).toBe('"free"')
  expect(renderStoredPrice(priceOf(1n, 2n, { '100': [3n, 4n] }))).toBe(
    '{"input":"1","output":"2","cache_read":"1","cache_write":"1","cache_write_1h":"1","over":{' +
      '"100":{"input":"3","output":"4","cache_read":"3","cache_write":"3","cache_write_1h":"3"}}}',
  )
})

test('an incomplete stored price is an error, not a free model', () => {
  const whole = '{"input":"1","output":"2","cache_read":"1","cache_write":"1","cache_write_1h":"1"}'
  expect(ratesAt(parseStoredPrice(whole), 0).input).toBe(1n as Pico)
  for (const text of ['{}', '', '{"free":false}', whole.replace('"2"', '2'), whole.replace('"2"', '"-2"')]) {
    expect(() => parseStoredPrice(text)).toThrow()
  }
})

const tiered = priceOf(1n, 2n, { '1000': [3n, 4n] })

forEachEngine((_, storeTest) => {
  storeTest(
    'an override is read back with its tiers, replaced by the next one, and can be removed',
    async ({ database }) => {
      const put = (modelId: string, price: Price, setAt = 1000) =>
        database.transaction((sql) => putPriceOverride(sql, { modelId, price, setAt }))
      const remove = (modelId: string) => database.transaction((sql) => deletePriceOverride(sql, modelId))
      expect(await readPriceOverrides(database.sql)).toEqual(new Map())
      await put('acme/large', priceOf(100n, 200n))
      await put('acme/large', tiered, 2000)
      await put('acme/open', freePrice)
      expect(await readPriceOverrides(database.sql)).toEqual(
        new Map([
          [
            '',
            new Map([
              ['acme/large', tiered],
              ['acme/open', freePrice],
            ]),
          ],
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
      expect(await readPriceOverrides(database.sql)).toEqual(new Map([['', new Map([['acme/open', freePrice]])]]))
    },
  )

  storeTest(
    'the history of a model is dated, newest first, and has no price of another model',
    async ({ database }) => {
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
    },
  )
})

test('a price in the file precedes an override, which precedes the built-in price', () => {
  const entry = { owned_by: 'acme', routes: [{ provider: 'acme', model: 'm' }] }
  const own = { input: '5.00', output: '5.00' }
  const models = [
    modelFromEntry({ ...entry, id: 'acme/built-in', price: own }, 'built in'),
    modelFromEntry({ ...entry, id: 'acme/by-file', price: own }, 'tollgate.yaml:3'),
    modelFromEntry({ ...entry, id: 'acme/unpriced' }, 'tollgate.yaml:9'),
    modelFromEntry({ ...entry, id: 'acme/untouched', price: own }, 'built in'),
  ]
  const set = priceOf(1n, 2n)
  const cost = priceOf(3n, 4n)
  const overrides = new Map(['acme/built-in', 'acme/by-file', 'acme/unpriced', 'acme/gone'].map((id) => [id, set]))
  const laid = layPriceOverrides(models, overrides, {
    pricedByFile: new Set(['acme/by-file']),
    costs: new Map([['acme/built-in', cost]]),
  })
  const five = priceOf(5_000_000n, 5_000_000n)
  expect(laid.models.map(({ id, price, source }) => [id, laid.setterOf(id), price, source])).toEqual([
    ['acme/built-in', 'api', set, 'built in'],
    ['acme/by-file', 'file', five, 'tollgate.yaml:3'],
    ['acme/unpriced', 'api', set, 'tollgate.yaml:9'],
    ['acme/untouched', 'catalog', five, 'built in'],
  ])
  expect(laid.idle.map(({ id }) => id)).toEqual(['acme/by-file'])
  // The cost of an update is that of built-in routes.
  expect(laid.models.map(({ routes }) => routes[0]?.cost)).toEqual([cost, undefined, undefined, five])
})

describe('fees for calls on own credentials', () => {
  const price = createPrice({
    ...ratesOf(1500n, 4001n),
    cache_read: 150n as Pico,
    web_search: 10_000_000n as Pico,
  })
  const models = [
    { id: 'acme/large', price, source: 'built in' },
    { id: 'acme/free', price: freePrice, source: 'built in' },
    { id: 'acme/none', price: undefined, source: 'built in' },
  ]
  const usage: Usage = {
    ...tokenCounts(10, 5, 3),
    webSearches: 1,
    source: 'reported',
  }

  forEachEngine((_, storeTest) => {
    storeTest(
      'a fee has its own price version, and a new one when the fee or the price changes',
      async ({ database }) => {
        const feesAt = (basisPoints: bigint) => recordFees({ database, clock: systemClock, models, basisPoints })
        expect((await feesAt(0n)).size).toBe(0)
        const fees = await feesAt(250n)
        expect([...fees.keys()]).toEqual(['acme/large'])
        // 2.5 % of 1,500, 4,001 and 150, each rounded up.
        const share = createPrice({ ...ratesOf(38n, 101n), cache_read: 4n as Pico, web_search: 250_000n as Pico })
        expect(fees.get('acme/large')).toEqual({ version: 'acme/large#own#1', price: share })
        expect((await feesAt(500n)).get('acme/large')?.version).toBe('acme/large#own#2')
        expect((await feesAt(500n)).get('acme/large')?.version).toBe('acme/large#own#2')
        expect(await readPriceVersion(database, 'acme/large#own#1')).toMatchObject({
          price: share,
          source: '2.5 % of built in',
        })
      },
    )

    storeTest('M7: verify recomputes charges on an own credential', async ({ database }) => {
      const fee = (await recordFees({ database, clock: systemClock, models, basisPoints: 500n })).get('acme/large')
      await using books = await openFunded(database, 10_000n)
      const { ledger, workspaceId } = books
      const chargeWith = async (charge: Nano) => {
        const request = holdOf(workspaceId, 1000n)
        await ledger.hold(request)
        const facts = { priceVersion: fee?.version, usage: JSON.stringify(usage) }
        const outcome = await ledger.settle(settlementOf(request.requestId, charge, facts))
        return outcome.kind === 'settled' ? request.requestId : outcome.kind
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
})

describe('recomputing charges', () => {
  const rates = { ...ratesOf(1500n, 4000n), cache_read: 150n as Pico }
  const price = createPrice(rates)
  const usage: Usage = {
    ...tokenCounts(10, 5, 3, 2, 1),
    reasoningTokens: 4,
    source: 'reported',
  }
  const models = (current: Price) => [{ id: 'acme/large', price: current, source: 'built in' }]

  forEachEngine((_, storeTest) => {
    storeTest(
      'a charge is what its stored usage costs under its stored price, also after the price has changed',
      async ({ database }) => {
        const { versions } = await recordPrices({ database, clock: systemClock, models: models(price) })
        const version = versions.get('acme/large') ?? ''
        const dearer = createPrice({ ...rates, output: 5000n as Pico })
        await recordPrices({ database, clock: systemClock, models: models(dearer) })
        const recompute = await readRecomputeCharge(database.sql)
        // 10 × 1500 + 3 × 150 + 2 × 1500 + 1 × 1500 + 5 × 4000 = 39,950 pico = 39.95 nano → 40
        expect(recompute(version, JSON.stringify(usage))).toBe(40n as Nano)
        // One thousand pico more for each of the five: 44.95 → 45
        expect(recompute('acme/large#2', JSON.stringify(usage))).toBe(45n as Nano)
        expect(recompute('acme/large#3', JSON.stringify(usage))).toBeUndefined()
        // Half as much again where the work was kept in the United States: 59.925 → 60
        await recordPrices({
          database,
          clock: systemClock,
          models: models(createPrice(rates, {}, { us_only: 15_000n })),
        })
        const kept = JSON.stringify({ ...usage, isUsOnly: true })
        const again = await readRecomputeCharge(database.sql)
        expect([again('acme/large#3', kept), again('acme/large#3', JSON.stringify(usage))]).toEqual([
          60n,
          40n,
        ] as Nano[])
        expect(again(version, kept)).toBe(40n as Nano)
        const withAudio = { ...usage, audioInputTokens: 4, audioOutputTokens: 2 }
        expect(recompute(version, JSON.stringify(withAudio))).toBe(40n as Nano)
        for (const text of [
          '',
          '{}',
          JSON.stringify({ ...usage, audioInputTokens: -1 }),
          JSON.stringify({ ...usage, inputTokens: -1 }),
          '[1]',
        ]) {
          expect(recompute(version, text)).toBeUndefined()
        }
      },
    )

    storeTest('verify recomputes every charge from the prices in the database', async ({ database }) => {
      await recordPrices({ database, clock: systemClock, models: models(price) })
      await using books = await openFunded(database, 1000n)
      const { ledger, workspaceId } = books
      const chargeWith = async (charge: Nano) => {
        const request = holdOf(workspaceId, 100n)
        await ledger.hold(request)
        const facts = { priceVersion: 'acme/large#1', usage: JSON.stringify(usage) }
        const outcome = await ledger.settle(settlementOf(request.requestId, charge, facts))
        return outcome.kind === 'settled' ? request.requestId : outcome.kind
      }
      await chargeWith(priceUsage(price, usage))
      expect((await verify(database, { readPrice: readRecomputeCharge })).findings).toEqual([])
      const wrong = await chargeWith(41n as Nano)
      expect((await verify(database, { readPrice: readRecomputeCharge })).findings).toEqual([
        { check: 'charge = price of the usage', id: wrong, detail: 'charged 41, acme/large#1 says 40' },
      ])
    })
  })
})
