import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Nano, type Pico, parsePrice, picoToNano } from '../kernel/money.ts'
import { type Bucket as PricedBucket, totalInputTokens, type Usage } from '../kernel/usage.ts'
import { chargeLines, createPrice, type ListedRates, type Price, priceBound, priceUsage, ratesAt } from './price.ts'

/** Disjoint: a count that has an audio part is the rest here. */
const inputBuckets = [
  ...(['inputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'cacheWriteLongTokens'] as const),
  ...(['audioInputTokens', 'audioCacheReadTokens'] as const),
]
const buckets = [...inputBuckets, 'outputTokens', 'audioOutputTokens'] as const
type Bucket = (typeof buckets)[number]
type Counts = Readonly<Record<Bucket, number>>

/** As a provider reports it: audio is included in its whole. */
function usageOf(counts: Counts): Usage {
  return {
    ...counts,
    inputTokens: counts.inputTokens + counts.audioInputTokens,
    cacheReadTokens: counts.cacheReadTokens + counts.audioCacheReadTokens,
    outputTokens: counts.outputTokens + counts.audioOutputTokens,
    source: 'reported',
  }
}

/** Written out again here, so that the test finds a mix-up in the code. */
const priceOfBucket = {
  inputTokens: 'input',
  cacheReadTokens: 'cache_read',
  cacheWriteTokens: 'cache_write',
  cacheWriteLongTokens: 'cache_write_1h',
  outputTokens: 'output',
  audioInputTokens: 'audio_input',
  audioCacheReadTokens: 'audio_cache_read',
  audioOutputTokens: 'audio_output',
} as const satisfies Record<Bucket, PricedBucket>

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
  audioInputTokens: decimal,
  audioCacheReadTokens: decimal,
  audioOutputTokens: decimal,
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

function ratesFrom(row: Listed['row']): ListedRates {
  return Object.fromEntries(
    buckets.map((bucket) => [priceOfBucket[bucket], picoOf(row[bucket])]),
  ) as unknown as ListedRates
}

function priceFrom({ row, tiers }: Listed, more: Partial<ListedRates> = {}, factors: Price['factors'] = {}): Price {
  const over = Object.fromEntries(tiers.map((tier) => [String(tier.over), ratesFrom(tier.row)]))
  return createPrice({ ...ratesFrom(row), ...more }, over, factors)
}

/** Tiers that never get cheaper, as every provider's long-context prices are. */
const ascending = listed.map((one): Price => {
  let before = ratesFrom(one.row)
  const over: Record<string, ListedRates> = {}
  for (const { over: tokens, row } of one.tiers) {
    const raised = Object.entries(ratesFrom(row)).map(([bucket, pico]) => [
      bucket,
      larger(pico, before[bucket as PricedBucket] ?? 0n),
    ])
    before = Object.fromEntries(raised) as ListedRates
    over[String(tokens)] = before
  }
  return createPrice(ratesFrom(one.row), over)
})

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** Small ones around the bounds of tiers, and any up to the limit. */
const count = fc.oneof(fc.nat({ max: 4000 }), fc.nat({ max: 2 ** 31 }))
const countsOf = (each: fc.Arbitrary<number>): fc.Arbitrary<Counts> =>
  fc.record({
    inputTokens: each,
    cacheReadTokens: each,
    cacheWriteTokens: each,
    cacheWriteLongTokens: each,
    outputTokens: each,
    audioInputTokens: each,
    audioCacheReadTokens: each,
    audioOutputTokens: each,
  })
const usage = countsOf(count)
const nothing = Object.fromEntries(buckets.map((bucket) => [bucket, 0])) as Counts

/** In dollars, as a fraction: every token costs its decimal over a million, and nothing is rounded before the end. */
function oracle({ row, tiers }: Listed, used: Counts): bigint {
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

const runs = { numRuns: 800 }

test('the price of a usage equals the rational one, rounded up once', () => {
  fc.assert(
    fc.property(listed, usage, (one, used) => {
      expect(priceUsage(priceFrom(one), usageOf(used)) as bigint).toBe(oracle(one, used))
    }),
    runs,
  )
})

test('one token more in any bucket never costs less', () => {
  fc.assert(
    fc.property(ascending, usage, fc.constantFrom(...buckets), (price, used, bucket) => {
      const more = { ...used, [bucket]: used[bucket] + 1 }
      expect(priceUsage(price, usageOf(more)) >= priceUsage(price, usageOf(used))).toBe(true)
    }),
    runs,
  )
})

test('the buckets are parts of one whole: each costs its own price, and nothing is counted twice or left out', () => {
  fc.assert(
    fc.property(listed, usage, ({ row }, used) => {
      const price = priceFrom({ row, tiers: [] })
      const alone = buckets.map((bucket) => {
        const cost = priceUsage(price, usageOf({ ...nothing, [bucket]: used[bucket] }))
        const exact = BigInt(used[bucket]) * (ratesAt(price, 0)[priceOfBucket[bucket]] ?? 0n)
        expect(cost).toBe((exact / 1000n + (exact % 1000n === 0n ? 0n : 1n)) as Nano)
        return cost
      })
      const sum = alone.reduce((total, cost) => total + cost, 0n)
      const whole = priceUsage(price, usageOf(used))
      // Eight roundings instead of one: less than one nano-dollar each, so at most seven in all.
      expect(whole <= sum && sum <= whole + 7n).toBe(true)
      expect(totalInputTokens(usageOf(used))).toBe(inputBuckets.reduce((total, bucket) => total + used[bucket], 0))
      const lines = chargeLines(price, usageOf(used))
      expect(lines.map(({ units }) => units).sort()).toEqual(
        buckets
          .map((bucket) => used[bucket])
          .filter(Boolean)
          .sort(),
      )
      expect(picoToNano(lines.reduce((total, { amount }) => total + amount, 0n))).toBe(whole)
    }),
    runs,
  )
})

test('audio costs as much as text without an audio price', () => {
  fc.assert(
    fc.property(listed, usage, (one, used) => {
      const priced = priceFrom({ ...one, tiers: [] })
      const text = { ...priced, rows: priced.rows.filter(({ bucket }) => !bucket.startsWith('audio')) }
      const {
        audioInputTokens: _heard,
        audioCacheReadTokens: _kept,
        audioOutputTokens: _said,
        ...plain
      } = usageOf(used)
      expect(priceUsage(text, usageOf(used))).toBe(priceUsage(text, plain))
      expect(chargeLines(text, usageOf(used))).toEqual(chargeLines(text, plain))
    }),
    runs,
  )
})

test('the hold for a bound covers every usage within it, whatever the tiers', () => {
  const cap = fc.nat({ max: 2 ** 31 })
  const input = countsOf(fc.nat({ max: 1000 }))
  fc.assert(
    fc.property(listed, input, fc.nat({ max: 5000 }), cap, fc.nat({ max: 9 }), (...given) => {
      const [one, counts, spare, outputTokens, webSearches] = given
      const price = priceFrom(one, { web_search: 10_000_000_000n as Pico }, { us_only: 11_000n })
      const silent = { audioInputTokens: 0, audioCacheReadTokens: 0 }
      // Without a mark no long cache, without audio input no audio tokens, and no audio output unless it was asked for.
      for (const used of [counts, { ...counts, cacheWriteLongTokens: 0 }, { ...counts, ...silent }]) {
        const inputUnused: PricedBucket[] = []
        if (used.cacheWriteLongTokens === 0) inputUnused.push('cache_write_1h')
        if (used.audioInputTokens + used.audioCacheReadTokens === 0) inputUnused.push('audio_input', 'audio_cache_read')
        const inputTokens = totalInputTokens(usageOf(used)) + spare
        for (const isSpoken of [false, true]) {
          const without = isSpoken ? inputUnused : [...inputUnused, 'audio_output' as const]
          const bound = { units: { webSearches }, without }
          const held = priceBound(price, inputTokens, outputTokens, bound)
          const heldForUs = priceBound(price, inputTokens, outputTokens, { ...bound, isUsOnly: true })
          for (const said of [0, Math.floor(outputTokens / 2), outputTokens]) {
            const output = isSpoken
              ? { outputTokens: outputTokens - said, audioOutputTokens: said }
              : { outputTokens: said, audioOutputTokens: 0 }
            const whole = { ...usageOf({ ...used, ...output }), webSearches }
            expect(held >= priceUsage(price, whole)).toBe(true)
            expect(heldForUs >= priceUsage(price, { ...whole, isUsOnly: true })).toBe(true)
          }
        }
      }
    }),
    runs,
  )
})
