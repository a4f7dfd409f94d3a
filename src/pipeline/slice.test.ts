import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createPrice, priceUsage } from '../catalog/price.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import { leastSlice, roomLeast, type SliceFacts, sliceOf, thinSlices } from './slice.ts'

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })
const facts: SliceFacts = {
  price,
  cap: 20_000,
  choices: 1,
  webSearches: 0,
  holdsWholeCap: false,
  capLeast: 0,
}
const whole: SliceFacts = { ...facts, holdsWholeCap: true }
const amounts = (slices: readonly { amount: Nano }[]): bigint[] => slices.map(({ amount }) => amount)

describe('a slice', () => {
  test('of a stream is 4,096 tokens of output, or the cap', () => {
    expect(sliceOf(facts, 100, 20_000)).toMatchObject({ amount: 100n + 40_960n, outputTokens: 4096, cap: 20_000 })
    expect(sliceOf(facts, 100, 7)).toMatchObject({ amount: 170n, outputTokens: 7 })
  })

  test('of a whole answer is the whole cap', () => {
    expect(sliceOf(whole, 100, 20_000).amount).toBe(200_100n as Nano)
  })

  test('has the output of all choices and the input once', () => {
    expect(sliceOf({ ...whole, choices: 3 }, 100, 7)).toMatchObject({ amount: 310n, outputTokens: 21, cap: 7 })
  })

  test('at least is 256 tokens, or the cap', () => {
    expect(leastSlice(facts, 100).amount).toBe(2660n as Nano)
    expect(leastSlice({ ...facts, cap: 7 }, 100).amount).toBe(170n as Nano)
  })
})

describe('room enough', () => {
  test('is twice the slice, so that the estimate may be wrong', () => {
    expect(roomLeast({ ...facts, cap: 5000 }, sliceOf(facts, 100, 5000))).toBe(82_120n as Nano)
  })

  test('is the whole answer where that is more, so that it need not be cut short', () => {
    expect(roomLeast(facts, sliceOf(facts, 100, 20_000))).toBe(200_100n as Nano)
  })
})

describe('a thin wallet', () => {
  test('is tried with ever smaller slices, down to 256 tokens', () => {
    const slices = thinSlices(facts, 0, 1_000_000n as Nano)
    expect(amounts(slices)).toEqual([40_960n, 20_480n, 10_240n, 5_120n, 2_560n])
    expect(slices.every(({ cap }) => cap === 20_000)).toBe(true)
  })

  test('gets the cap that its balance pays for, to the last nano-dollar', () => {
    expect(thinSlices(whole, 100, 3_100n as Nano)).toMatchObject([{ cap: 300, amount: 3_100n }])
    expect(thinSlices(whole, 100, 3_099n as Nano)).toMatchObject([{ cap: 299, amount: 3_090n }])
    expect(thinSlices({ ...whole, choices: 2 }, 100, 6_119n as Nano)).toMatchObject([{ cap: 300 }])
  })

  test('gets nothing below 256 tokens, unless less was asked for', () => {
    expect(thinSlices(whole, 100, 2_660n as Nano)).toHaveLength(1)
    expect(thinSlices(whole, 100, 2_659n as Nano)).toEqual([])
    expect(thinSlices({ ...whole, cap: 7 }, 100, 170n as Nano)).toMatchObject([{ cap: 7 }])
    expect(thinSlices({ ...whole, cap: 7 }, 100, 169n as Nano)).toEqual([])
  })

  test('gets nothing below a cap that must not fall', () => {
    expect(thinSlices({ ...whole, capLeast: 1025 }, 100, 10_350n as Nano)).toMatchObject([{ cap: 1025 }])
    expect(thinSlices({ ...whole, capLeast: 1025 }, 100, 10_349n as Nano)).toEqual([])
    const asAsked = { ...whole, capLeast: Number.POSITIVE_INFINITY }
    expect(thinSlices(asAsked, 100, 200_100n as Nano)).toMatchObject([{ cap: 20_000 }])
    expect(thinSlices(asAsked, 100, 200_099n as Nano)).toEqual([])
  })

  test('that cannot pay for the prompt gets nothing', () => {
    expect(thinSlices(facts, 100, 99n as Nano)).toEqual([])
  })
})

test('no usage within bound and cap costs more than the slice that was held for it', () => {
  const pico = fc.bigInt(0n, 20_000_000n).map((value) => value as Pico)
  const row = fc.record({ input: pico, output: pico, cache_read: pico, cache_write: pico, cache_write_1h: pico })
  const anyPrice = fc.record({ base: row, tier: row, over: fc.integer({ min: 1, max: 2000 }) })
  const share = fc.array(fc.nat(1000), { minLength: 4, maxLength: 4 })
  fc.assert(
    fc.property(
      anyPrice,
      share,
      fc.nat(5000),
      fc.nat(500),
      fc.boolean(),
      ({ base, tier, over }, shares, bound, cap, isMarked) => {
        const dear = createPrice(base, { [over]: tier })
        const [input = 0, read = 0, write = 0, long = 0] = withinBound(shares, bound)
        const usage = {
          inputTokens: input + (isMarked ? 0 : long),
          cacheReadTokens: read,
          cacheWriteTokens: write,
          cacheWriteLongTokens: isMarked ? long : 0,
          outputTokens: cap,
          source: 'reported',
        } as const
        const slice = sliceOf({ ...whole, price: dear, without: isMarked ? [] : ['cache_write_1h'] }, bound, cap)
        expect(priceUsage(dear, usage)).toBeLessThanOrEqual(slice.amount)
      },
    ),
  )
})

/** Counts that come to no more than the bound together. */
function withinBound(counts: readonly number[], bound: number): number[] {
  let left = bound
  return counts.map((count) => {
    const taken = Math.min(count, left)
    left -= taken
    return taken
  })
}
