import { expect, test } from 'bun:test'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import { chargeLines } from './price.ts'
import { priceFromEntry } from './entry.ts'
import { completePriceRow, freePrice, type Price, priceUsage, sharePrice } from './price.ts'
import { showPrice } from './price.ts'
import { parseStoredPrice, renderStoredPrice } from './price-versions.ts'
import { parseFactor } from './us-only.ts'

const usage = (counts: Partial<Usage>): Usage => ({
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 0,
  source: 'reported',
  ...counts,
})
const pico = (value: bigint) => value as Pico
const nano = (value: bigint) => value as Nano

test('sound that comes from a cache costs as much as other sound where the list leaves it out', () => {
  const heard = completePriceRow({ input: pico(7n), output: pico(9n), cacheRead: pico(1n), audioInput: pico(70n) })
  expect(heard.audioCacheRead).toBe(pico(70n))
  expect(completePriceRow({ ...heard, audioCacheRead: pico(20n) }).audioCacheRead).toBe(pico(20n))
  expect(completePriceRow({ input: pico(7n), output: pico(9n) })).not.toHaveProperty('audioCacheRead')
})

test('a bucket without a price costs as much as a dearer or equal one', () => {
  const bare = completePriceRow({ input: pico(7n), output: pico(9n) })
  expect(bare).toEqual({
    input: pico(7n),
    output: pico(9n),
    cacheRead: pico(7n),
    cacheWrite: pico(7n),
    cacheWriteLong: pico(7n),
  })
  const written = completePriceRow({ input: pico(7n), output: pico(9n), cacheWrite: pico(8n) })
  expect(written.cacheWriteLong).toBe(pico(8n))
  expect(written.cacheRead).toBe(pico(7n))
})

test('a bucket priced at zero stays at zero', () => {
  const row = completePriceRow({ input: pico(7n), output: pico(9n), cacheRead: pico(0n), cacheWriteLong: pico(0n) })
  expect(row.cacheRead).toBe(pico(0n))
  expect(row.cacheWriteLong).toBe(pico(0n))
})

test('every bucket has its own price and the sum is rounded up once', () => {
  const price: Price = {
    free: false,
    ...completePriceRow({
      input: pico(1_000n),
      output: pico(10_000n),
      cacheRead: pico(100n),
      cacheWrite: pico(2_000n),
      cacheWriteLong: pico(3_000n),
    }),
    tiers: [],
  }
  const counts = { inputTokens: 1, cacheReadTokens: 1, cacheWriteTokens: 1, cacheWriteLongTokens: 1, outputTokens: 1 }
  // 1000 + 100 + 2000 + 3000 + 10000 = 16100 pico = 16.1 nano → 17
  expect(priceUsage(price, usage(counts))).toBe(nano(17n))
})

test('a tier holds above its bound and not at it, counting cached input too', () => {
  const base = completePriceRow({ input: pico(1_000n), output: pico(0n) })
  const price: Price = {
    free: false,
    ...base,
    tiers: [
      { overInputTokens: 10, ...completePriceRow({ input: pico(2_000n), output: pico(0n) }) },
      { overInputTokens: 20, ...completePriceRow({ input: pico(5_000n), output: pico(0n) }) },
    ],
  }
  expect(priceUsage(price, usage({ inputTokens: 10 }))).toBe(nano(10n))
  expect(priceUsage(price, usage({ inputTokens: 1, cacheReadTokens: 10 }))).toBe(nano(22n))
  expect(priceUsage(price, usage({ inputTokens: 20 }))).toBe(nano(40n))
  expect(priceUsage(price, usage({ inputTokens: 21 }))).toBe(nano(105n))
})

test('a free model costs nothing', () => {
  expect(priceUsage(freePrice, usage({ inputTokens: 1_000_000, outputTokens: 1_000_000 }))).toBe(nano(0n))
})

test('searches cost their own price beside the tokens, in any tier, and nothing where there is none', () => {
  const row = completePriceRow({ input: pico(1_000n), output: pico(0n) })
  const tier = { ...completePriceRow({ input: pico(2_000n), output: pico(0n) }), overInputTokens: 10 }
  const price: Price = { free: false, ...row, webSearch: pico(10_000_000_000n), tiers: [tier] }
  expect(priceUsage(price, usage({ inputTokens: 1, webSearches: 3 }))).toBe(nano(30_000_001n))
  expect(priceUsage(price, usage({ inputTokens: 11, webSearches: 3 }))).toBe(nano(30_000_022n))
  expect(priceUsage({ ...price, webSearch: undefined }, usage({ inputTokens: 1, webSearches: 3 }))).toBe(nano(1n))
  // Half a percent of it, as a fee for calls on a workspace's own credential.
  expect(sharePrice(price, 50n).webSearch).toBe(pico(50_000_000n))
})

test('a price for searches is stored, read and shown exactly', () => {
  const price = priceFromEntry({ input: '1.00', output: '2.00', web_search: '10.000001' })
  expect(price.webSearch).toBe(pico(10_000_001_000n))
  expect(parseStoredPrice(renderStoredPrice(price))).toEqual(price)
  expect(showPrice(price)).toMatchObject({ web_search: '10.000001' })
  expect(showPrice(priceFromEntry({ input: '1.00', output: '2.00' }))).not.toHaveProperty('web_search')
})

test('work that is kept in the United States costs the factor in every row and bucket, and searches no more', () => {
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

test('a factor is stored, read and shown exactly, and is no other number', () => {
  const priceOf = (us_only: string) => priceFromEntry({ input: '1.00', output: '2.00', us_only })
  for (const [text, factor] of [
    ['1', 10_000n],
    ['1.1', 11_000n],
    ['1.0375', 10_375n],
    ['10', 100_000n],
  ] as const) {
    expect(priceOf(text).usOnly).toBe(factor)
    expect(parseStoredPrice(renderStoredPrice(priceOf(text)))).toEqual(priceOf(text))
    expect(showPrice(priceOf(text))).toMatchObject({ us_only: text })
  }
  for (const text of ['0.9', '0', '', '10.0001', '11', '1.', '1.00001', '+1.1', '1e1', ' 1.1', '01'])
    expect([text, parseFactor(text)]).toEqual([text, undefined])
  expect(renderStoredPrice(priceFromEntry({ input: '1.00', output: '2.00' }))).not.toContain('us_only')
})

test('prices of sound are stored, read, shared and shown exactly, and are not there where nobody gave any', () => {
  const dear = { input: '2.00', output: '4.00', audio_input: '20.00' }
  const price = priceFromEntry({
    ...{ input: '1.00', output: '2.00', audio_input: '10.000001', audio_cache_read: '0.50', audio_output: '20.00' },
    over: { '1000': dear },
  })
  expect(price).toMatchObject({ audioInput: 10_000_001n, audioCacheRead: 500_000n, audioOutput: 20_000_000n })
  expect(parseStoredPrice(renderStoredPrice(price))).toEqual(price)
  expect(showPrice(price)).toMatchObject({ audio_input: '10.000001', audio_cache_read: '0.50', over: { '1000': dear } })
  expect(sharePrice(price, 500n)).toMatchObject({ audioInput: 500_001n, tiers: [{ audioInput: 1_000_000n }] })
  const plain = priceFromEntry({ input: '1.00', output: '2.00' })
  expect(renderStoredPrice(plain)).not.toContain('audio')
  expect(JSON.stringify(showPrice(plain))).not.toContain('audio')
})

test('sound that a tier does not name is no cheaper there than below it, nor than the text of the tier', () => {
  const sound = { audio_input: '3.00', audio_cache_read: '0.30', audio_output: '6.00' }
  const tierOf = (tier: object) =>
    priceFromEntry({ input: '1.00', output: '2.00', cache_read: '0.10', ...sound, over: { '9': { ...text, ...tier } } })
      .tiers[0]
  const text = { input: '2.00', output: '8.00', cache_read: '0.20' }
  expect(tierOf({})).toMatchObject({ audioInput: 3_000_000n, audioCacheRead: 300_000n, audioOutput: 8_000_000n })
  expect(tierOf({ audio_input: '5.00' })).toMatchObject({ audioInput: 5_000_000n, audioCacheRead: 5_000_000n })
  expect(tierOf({ audio_cache_read: '0.01' })).toMatchObject({ audioInput: 3_000_000n, audioCacheRead: 10_000n })
  expect(tierOf({ audio_output: '7.00' })).toMatchObject({ audioOutput: 7_000_000n })
  const plain = priceFromEntry({ input: '1.00', output: '2.00', over: { '9': text } })
  expect(renderStoredPrice(plain)).not.toContain('audio')
})

test('a part that is larger than its whole, which was cut down, is all of it', () => {
  const price = priceFromEntry({ input: '1.00', output: '2.00', audio_output: '20.00' })
  expect(priceUsage(price, usage({ outputTokens: 3, audioOutputTokens: 10 }))).toBe(nano(60_000n))
})

test('a summary made on the way is priced by the length of its own prompt', () => {
  const row = completePriceRow({ input: pico(1_000n), output: pico(0n) })
  const tier = { ...completePriceRow({ input: pico(5_000n), output: pico(0n) }), overInputTokens: 100 }
  const price: Price = { free: false, ...row, tiers: [tier] }
  const counts = { cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 1 }
  const summaries = [
    { ...counts, inputTokens: 90 },
    { ...counts, inputTokens: 110 },
  ]
  const used = usage({ inputTokens: 30, summaries })
  // 30 + 90 at one, 110 at five
  expect(priceUsage(price, used)).toBe(nano(670n))
  const lines = chargeLines(price, used)
  expect(lines.reduce((sum, { pico: each }) => sum + each, 0n)).toBe(670_000n)
})
