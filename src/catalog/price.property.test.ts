import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Nano, type Pico, parsePrice } from '../kernel/money.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import { completePriceRow, type Price, type PriceRow, priceBound, priceUsage } from './price.ts'

const inputBuckets = ['inputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'cacheWriteLongTokens'] as const
const buckets = [...inputBuckets, 'outputTokens'] as const
type Bucket = (typeof buckets)[number]

/** Which price a bucket has; written out here, so that a mix-up in the code is one. */
const priceOfBucket = {
  inputTokens: 'input',
  cacheReadTokens: 'cacheRead',
  cacheWriteTokens: 'cacheWrite',
  cacheWriteLongTokens: 'cacheWriteLong',
  outputTokens: 'output',
} as const satisfies Record<Bucket, keyof PriceRow>

/** USD per million tokens as people write it, up to $999 and six decimals. */
const decimal = fc
  .tuple(fc.nat({ max: 999 }), fc.nat({ max: 999_999 }))
  .map(([whole, millionths]) => `${whole}.${String(millionths).padStart(6, '0')}`)

interface Listed {
  readonly row: Readonly<Record<Bucket, string>>
  readonly tiers: readonly { readonly over: number; readonly row: Readonly<Record<Bucket, string>> }[]
}

const listedRow = fc.record({
  inputTokens: decimal,
  cacheReadTokens: decimal,
  cacheWriteTokens: decimal,
  cacheWriteLongTokens: decimal,
  outputTokens: decimal,
})
const bound = fc.nat({ max: 3000 })
const listed: fc.Arbitrary<Listed> = fc.record({
  row: listedRow,
  tiers: fc
    .uniqueArray(fc.record({ over: bound, row: listedRow }), { maxLength: 3, selector: ({ over }) => over })
    .map((tiers) => tiers.sort((a, b) => a.over - b.over)),
})

function picoOf(text: string): Pico {
  const pico = parsePrice(text)
  if (pico === undefined) throw new Error(`not a price: ${text}`)
  return pico
}

function rowFrom(row: Listed['row']): PriceRow {
  return completePriceRow({
    input: picoOf(row.inputTokens),
    output: picoOf(row.outputTokens),
    cacheRead: picoOf(row.cacheReadTokens),
    cacheWrite: picoOf(row.cacheWriteTokens),
    cacheWriteLong: picoOf(row.cacheWriteLongTokens),
  })
}

function priceFrom({ row, tiers }: Listed): Price {
  const tierRows = tiers.map((tier) => ({ overInputTokens: tier.over, ...rowFrom(tier.row) }))
  return { free: false, ...rowFrom(row), tiers: tierRows }
}

/** Tiers that never get cheaper, as every provider's long-context prices are. */
const ascending = listed.map((one): Price => {
  let before: PriceRow = rowFrom(one.row)
  const tiers = one.tiers.map(({ over, row }) => {
    const raised = Object.fromEntries(
      Object.entries(rowFrom(row)).map(([bucket, pico]) => [bucket, larger(pico, before[bucket as keyof PriceRow])]),
    )
    before = raised as unknown as PriceRow
    return { overInputTokens: over, ...before }
  })
  return { free: false, ...rowFrom(one.row), tiers }
})

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** Small ones around the bounds of tiers, and any up to the limit. */
const count = fc.oneof(fc.nat({ max: 4000 }), fc.nat({ max: 2 ** 31 }))
const usage: fc.Arbitrary<Usage> = fc.record({
  inputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  cacheWriteLongTokens: count,
  outputTokens: count,
  source: fc.constant('reported' as const),
})
const nothing: Usage = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 0,
  source: 'reported',
}

/** In dollars, as a fraction: every token costs its decimal over a million, and nothing is rounded before the end. */
function oracle({ row, tiers }: Listed, used: Usage): bigint {
  let total = 0
  for (const bucket of inputBuckets) total += used[bucket]
  const rows = tiers.filter(({ over }) => over < total).map((tier) => tier.row)
  const prices = rows.at(-1) ?? row
  let [numerator, denominator] = [0n, 1n]
  for (const bucket of buckets) {
    const [whole = '0', fraction = ''] = prices[bucket].split('.')
    const scale = 10n ** BigInt(fraction.length)
    const [n, d] = [BigInt(used[bucket]) * BigInt(whole + fraction), scale * 1_000_000n]
    numerator = numerator * d + n * denominator
    denominator *= d
  }
  const nanos = numerator * 1_000_000_000n
  const whole = nanos / denominator
  return whole * denominator === nanos ? whole : whole + 1n
}

const runs = { numRuns: 2000 }

test('the price of a usage equals the rational one, rounded up once', () => {
  fc.assert(
    fc.property(listed, usage, (one, used) => {
      expect(priceUsage(priceFrom(one), used) as bigint).toBe(oracle(one, used))
    }),
    runs,
  )
})

test('one token more in any bucket never costs less', () => {
  fc.assert(
    fc.property(ascending, usage, fc.constantFrom(...buckets), (price, used, bucket) => {
      const more = { ...used, [bucket]: used[bucket] + 1 }
      expect(priceUsage(price, more) >= priceUsage(price, used)).toBe(true)
    }),
    runs,
  )
})

test('the buckets are parts of one whole: each costs its own price, and nothing is counted twice or left out', () => {
  fc.assert(
    fc.property(listed, usage, ({ row }, used) => {
      const price = priceFrom({ row, tiers: [] })
      const alone = buckets.map((bucket) => {
        const cost = priceUsage(price, { ...nothing, [bucket]: used[bucket] })
        const exact = BigInt(used[bucket]) * price[priceOfBucket[bucket]]
        expect(cost).toBe((exact / 1000n + (exact % 1000n === 0n ? 0n : 1n)) as Nano)
        return cost
      })
      const sum = alone.reduce((total, cost) => total + cost, 0n)
      const whole = priceUsage(price, used)
      // Five roundings instead of one: less than one nano-dollar each, so at most four in all.
      expect(whole <= sum && sum <= whole + 4n).toBe(true)
      expect(totalInputTokens(used)).toBe(inputBuckets.reduce((total, bucket) => total + used[bucket], 0))
    }),
    runs,
  )
})

test('what is held for a bound covers every usage within it, whatever the tiers', () => {
  const part = fc.nat({ max: 1000 })
  const parts = fc.tuple(part, part, part, part)
  fc.assert(
    fc.property(listed, parts, fc.nat({ max: 5000 }), fc.nat({ max: 2 ** 31 }), fc.nat({ max: 9 }), (...given) => {
      const [one, counts, spare, cap, webSearches] = given
      const price = { ...priceFrom(one), webSearch: 10_000_000_000n as Pico }
      const [inputTokens, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens] = counts
      const marked = { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens }
      // Nothing is written to a long cache that was not marked.
      for (const used of [marked, { ...marked, cacheWriteLongTokens: 0 }]) {
        const isMarked = used.cacheWriteLongTokens > 0
        const inputTokens = totalInputTokens({ ...nothing, ...used }) + spare
        const held = priceBound(price, { inputTokens, outputTokens: cap, isMarked, webSearches })
        for (const outputTokens of [0, Math.floor(cap / 2), cap]) {
          expect(held >= priceUsage(price, { ...nothing, ...used, outputTokens, webSearches })).toBe(true)
        }
      }
    }),
    runs,
  )
})
