import { expect, test } from 'bun:test'
import { tokenCounts } from '../../test/parts/token-counts.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import { priceFromEntry } from './entry.ts'
import {
  bucketsBelow,
  cacheSavings,
  chargeLines,
  createPrice,
  freePrice,
  lostPrices,
  parseFactor,
  priceJumps,
  priceUsage,
  type Rates,
  ratesAt,
  sharePrice,
  showPrice,
} from './price.ts'
import { parseStoredPrice, renderStoredPrice } from './price-versions.ts'

const usage = (counts: Partial<Usage>): Usage => ({
  ...tokenCounts(0, 0),
  source: 'reported',
  ...counts,
})
const pico = (value: bigint) => value as Pico
const nano = (value: bigint) => value as Nano
/** Output is free. */
const inputPrice = (input: bigint, over: Record<string, bigint> = {}, more: Rates = {}) =>
  createPrice(
    { input: pico(input), output: pico(0n), ...more },
    Object.fromEntries(Object.entries(over).map(([tokens, each]) => [tokens, { input: pico(each), output: pico(0n) }])),
  )

test.each<[string, Rates, Rates]>([
  ['caches cost as much as input', {}, { cache_read: pico(7n), cache_write: pico(7n), cache_write_1h: pico(7n) }],
  ['a one-hour cache costs as much as a short one', { cache_write: pico(8n) }, { cache_write_1h: pico(8n) }],
  ['a bucket priced at zero stays at zero', { cache_read: pico(0n) }, { cache_read: pico(0n), cache_write: pico(7n) }],
  ['cached audio costs as much as other audio', { audio_input: pico(70n) }, { audio_cache_read: pico(70n) }],
  [
    'cached audio keeps its own price',
    { audio_input: pico(70n), audio_cache_read: pico(20n) },
    { audio_cache_read: pico(20n) },
  ],
])('in a price list with omissions, %s', (_, listed, expected) => {
  const rates = ratesAt(createPrice({ input: pico(7n), output: pico(9n), ...listed }), 0)
  expect(rates).toMatchObject({ input: 7n, output: 9n, ...expected })
  expect('audio_cache_read' in rates).toBe(listed.audio_input !== undefined)
})

test('every bucket has its own price and the sum is rounded up once', () => {
  const price = createPrice({
    input: pico(1_000n),
    output: pico(10_000n),
    cache_read: pico(100n),
    cache_write: pico(2_000n),
    cache_write_1h: pico(3_000n),
  })
  const counts = { inputTokens: 1, cacheReadTokens: 1, cacheWriteTokens: 1, cacheWriteLongTokens: 1, outputTokens: 1 }
  // 1000 + 100 + 2000 + 3000 + 10000 = 16100 pico = 16.1 nano → 17
  expect(priceUsage(price, usage(counts))).toBe(nano(17n))
})

test('a tier applies above its bound and not at it, counting cached input too', () => {
  const price = inputPrice(1_000n, { '10': 2_000n, '20': 5_000n })
  expect(priceUsage(price, usage({ inputTokens: 10 }))).toBe(nano(10n))
  expect(priceUsage(price, usage({ inputTokens: 1, cacheReadTokens: 10 }))).toBe(nano(22n))
  expect(priceUsage(price, usage({ inputTokens: 20 }))).toBe(nano(40n))
  expect(priceUsage(price, usage({ inputTokens: 21 }))).toBe(nano(105n))
})

test('a free model costs nothing', () => {
  expect(priceUsage(freePrice, usage({ inputTokens: 1_000_000, outputTokens: 1_000_000 }))).toBe(nano(0n))
})

test('searches are charged beside the tokens in any tier, and not without a price', () => {
  const price = inputPrice(1_000n, { '10': 2_000n }, { web_search: pico(10_000_000_000n) })
  expect(priceUsage(price, usage({ inputTokens: 1, webSearches: 3 }))).toBe(nano(30_000_001n))
  expect(priceUsage(price, usage({ inputTokens: 11, webSearches: 3 }))).toBe(nano(30_000_022n))
  expect(priceUsage(inputPrice(1_000n), usage({ inputTokens: 1, webSearches: 3 }))).toBe(nano(1n))
  // Half a percent of it, as a fee for calls on a workspace's own credential.
  expect(ratesAt(sharePrice(price, 50n), 0).web_search).toBe(pico(50_000_000n))
})

test('a price for searches is stored, read and shown exactly', () => {
  const price = priceFromEntry({ input: '1.00', output: '2.00', web_search: '10.000001' })
  expect(ratesAt(price, 0).web_search).toBe(pico(10_000_001_000n))
  expect(parseStoredPrice(renderStoredPrice(price))).toEqual(price)
  expect(showPrice(price)).toMatchObject({ web_search: '10.000001' })
  expect(showPrice(priceFromEntry({ input: '1.00', output: '2.00' }))).not.toHaveProperty('web_search')
})

test('the us_only factor applies to every token bucket and tier, and not to searches', () => {
  const price = priceFromEntry({
    ...{ input: '1.00', output: '2.00', cache_read: '0.10', cache_write_1h: '2.00', audio_input: '4.00' },
    ...{ web_search: '10.00', us_only: '1.25', over: { '1000': { input: '2.00', output: '8.00' } } },
  })
  const costs = (counts: Partial<Usage>) => {
    const anywhere = usage(counts)
    return [priceUsage(price, anywhere), priceUsage(price, { ...anywhere, isUsOnly: true })]
  }
  expect(costs({ inputTokens: 100 })).toEqual([nano(100_000n), nano(125_000n)])
  expect(costs({ cacheReadTokens: 100 })).toEqual([nano(10_000n), nano(12_500n)])
  expect(costs({ cacheWriteLongTokens: 100 })).toEqual([nano(200_000n), nano(250_000n)])
  expect(costs({ inputTokens: 100, audioInputTokens: 100 })).toEqual([nano(400_000n), nano(500_000n)])
  expect(costs({ inputTokens: 1001, outputTokens: 1 })).toEqual([nano(2_010_000n), nano(2_512_500n)])
  expect(costs({ webSearches: 1 })).toEqual([nano(10_000_000n), nano(10_000_000n)])
  // The same of a fee, which is a share of it.
  const fee = sharePrice(price, 500n)
  expect(priceUsage(fee, { ...usage({ inputTokens: 100 }), isUsOnly: true })).toBe(nano(6_250n))
})

test('a factor is stored, read and shown exactly, and other numbers are refused', () => {
  const priceOf = (us_only: string) => priceFromEntry({ input: '1.00', output: '2.00', us_only })
  for (const [text, factor] of [
    ['1', 10_000n],
    ['1.1', 11_000n],
    ['1.0375', 10_375n],
    ['10', 100_000n],
  ] as const) {
    expect(priceOf(text).factors.us_only).toBe(factor)
    expect(parseStoredPrice(renderStoredPrice(priceOf(text)))).toEqual(priceOf(text))
    expect(showPrice(priceOf(text))).toMatchObject({ us_only: text })
  }
  for (const text of ['0.9', '0', '', '10.0001', '11', '1.', '1.00001', '+1.1', '1e1', ' 1.1', '01'])
    expect([text, parseFactor(text)]).toEqual([text, undefined])
  expect(renderStoredPrice(priceFromEntry({ input: '1.00', output: '2.00' }))).not.toContain('us_only')
})

test('audio prices are stored, read, shared and shown exactly, and absent if none was given', () => {
  const dear = { input: '2.00', output: '4.00', audio_input: '20.00' }
  const price = priceFromEntry({
    ...{ input: '1.00', output: '2.00', audio_input: '10.000001', audio_cache_read: '0.50', audio_output: '20.00' },
    over: { '1000': dear },
  })
  const rates = { audio_input: 10_000_001n, audio_cache_read: 500_000n, audio_output: 20_000_000n }
  expect(ratesAt(price, 0)).toMatchObject(rates)
  expect(parseStoredPrice(renderStoredPrice(price))).toEqual(price)
  expect(showPrice(price)).toMatchObject({ audio_input: '10.000001', audio_cache_read: '0.50', over: { '1000': dear } })
  const fee = sharePrice(price, 500n)
  expect([0, 1001].map((tokens) => ratesAt(fee, tokens).audio_input)).toEqual([pico(500_001n), pico(1_000_000n)])
  const plain = priceFromEntry({ input: '1.00', output: '2.00' })
  expect(renderStoredPrice(plain)).not.toContain('audio')
  expect(JSON.stringify(showPrice(plain))).not.toContain('audio')
})

test('audio that a tier leaves out is no cheaper there than in the base price, nor than text of the tier', () => {
  const sound = { audio_input: '3.00', audio_cache_read: '0.30', audio_output: '6.00' }
  const tierOf = (tier: object) => {
    const base = { input: '1.00', output: '2.00', cache_read: '0.10', ...sound }
    return ratesAt(priceFromEntry({ ...base, over: { '9': { ...text, ...tier } } }), 10)
  }
  const text = { input: '2.00', output: '8.00', cache_read: '0.20' }
  expect(tierOf({})).toMatchObject({ audio_input: 3_000_000n, audio_cache_read: 300_000n, audio_output: 8_000_000n })
  expect(tierOf({ audio_input: '5.00' })).toMatchObject({ audio_input: 5_000_000n, audio_cache_read: 5_000_000n })
  expect(tierOf({ audio_cache_read: '0.01' })).toMatchObject({ audio_input: 3_000_000n, audio_cache_read: 10_000n })
  expect(tierOf({ audio_output: '7.00' })).toMatchObject({ audio_output: 7_000_000n })
  const plain = priceFromEntry({ input: '1.00', output: '2.00', over: { '9': text } })
  expect(renderStoredPrice(plain)).not.toContain('audio')
})

test('a part that exceeds its reduced whole is all of it', () => {
  const price = priceFromEntry({ input: '1.00', output: '2.00', audio_output: '20.00' })
  expect(priceUsage(price, usage({ outputTokens: 3, audioOutputTokens: 10 }))).toBe(nano(60_000n))
})

test('prices a summary by the length of the prompt it was made from', () => {
  const price = inputPrice(1_000n, { '100': 5_000n })
  const counts = { cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 1 }
  const summaries = [
    { ...counts, inputTokens: 90 },
    { ...counts, inputTokens: 110 },
  ]
  const used = usage({ inputTokens: 30, summaries })
  // 30 + 90 at one, 110 at five
  expect(priceUsage(price, used)).toBe(nano(670n))
  const lines = chargeLines(price, used)
  expect(lines.reduce((sum, { amount }) => sum + amount, 0n)).toBe(670_000n)
})

test('a price is shown as it was written, with every kind of token and every tier', () => {
  const price = priceFromEntry({
    input: '0.25',
    output: '1.00',
    cache_read: '0.025',
    over: { '200000': { input: '0.50', output: '1.5' } },
  })
  // Omitted buckets cost as much as input.
  const row = { input: '0.25', output: '1.00', cache_read: '0.025', cache_write: '0.25', cache_write_1h: '0.25' }
  const dear = { input: '0.50', output: '1.50', cache_read: '0.50', cache_write: '0.50', cache_write_1h: '0.50' }
  expect(showPrice(price)).toEqual({ ...row, over: { '200000': dear } })
})

test('a free price is shown as the word free', () => {
  expect(showPrice(priceFromEntry('free'))).toBe('free')
})

test.each([
  // 100 × (3 − 0.30) − 20 × (3.75 − 3) − 5 × (6 − 3) micro-dollars.
  [
    'reads save, writes cost extra',
    { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20, cacheWriteLongTokens: 5 },
    240_000n,
  ],
  ['writes alone are a loss', { inputTokens: 10, cacheWriteTokens: 20 }, -15_000n],
  ['nothing is saved without a cache', { inputTokens: 1000, outputTokens: 50 }, 0n],
  // In the tier above 1,000 input tokens: 1,001 × (6 − 0.60).
  ['the tier of the whole input counts', { cacheReadTokens: 1001 }, 5_405_400n],
  // 10 × (30 − 3).
  ['audio is compared with audio', { cacheReadTokens: 10, audioCacheReadTokens: 10 }, 270_000n],
])('%s', (_, counts, saved) => {
  const price = createPrice(
    {
      ...{ input: pico(3_000_000n), output: pico(15_000_000n), cache_read: pico(300_000n) },
      ...{ cache_write: pico(3_750_000n), cache_write_1h: pico(6_000_000n) },
      ...{ audio_input: pico(30_000_000n), audio_cache_read: pico(3_000_000n) },
    },
    { '1000': { input: pico(6_000_000n), output: pico(15_000_000n), cache_read: pico(600_000n) } },
  )
  expect(cacheSavings(price, usage(counts))).toBe(saved)
})

const searched = (web_search: bigint) => inputPrice(1n, {}, { web_search: pico(web_search) })

test('a unit price that changes more than tenfold is a jump, and so is one to zero', () => {
  expect(priceJumps(searched(10n), searched(101n))).toEqual([{ bucket: 'web_search', from: pico(10n), to: pico(101n) }])
  expect(priceJumps(searched(10n), searched(0n))).toEqual([{ bucket: 'web_search', from: pico(10n), to: pico(0n) }])
  expect(priceJumps(searched(10n), searched(100n))).toEqual([])
  // A new price changes nothing that was charged before; a lost one is reported in words.
  expect(priceJumps(inputPrice(1n), searched(10n))).toEqual([])
  expect(lostPrices(searched(10n), inputPrice(1n))).toEqual([
    { name: 'web_search', so: 'requests for searches are refused' },
  ])
})

test('a unit price below the cost is found, unless it is absent and the tool is refused', () => {
  expect(bucketsBelow(searched(9n), searched(10n))).toEqual(['web_search'])
  expect(bucketsBelow(searched(10n), searched(10n))).toEqual([])
  expect(bucketsBelow(inputPrice(1n), searched(10n))).toEqual([])
  expect(bucketsBelow(freePrice, searched(10n))).toEqual([
    'input',
    'cache_read',
    'cache_write',
    'cache_write_1h',
    'web_search',
  ])
})
