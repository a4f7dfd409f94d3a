// The cost of a usage, twice: by the real price function, as the client computes it, and by the simulator's own arithmetic
// from money.md (Σ bucket × price, rounded up once), with which the oracle judges.

import { createPrice, type Price } from '../../src/catalog/price.ts'
import type { Pico } from '../../src/kernel/money.ts'
import type { Usage } from '../../src/kernel/usage.ts'
import type { Dice } from './dice.ts'

/** Most of them not whole nano-dollars, so that rounding shows. */
const perToken = { input: 2_801n, output: 11_307n, cacheRead: 281n, cacheWrite: 3_501n, cacheWriteLong: 5_603n }

export const simulatedPrice: Price = createPrice({
  input: perToken.input as Pico,
  output: perToken.output as Pico,
  cache_read: perToken.cacheRead as Pico,
  cache_write: perToken.cacheWrite as Pico,
  cache_write_1h: perToken.cacheWriteLong as Pico,
})

export function ownCharge(usage: Usage): bigint {
  const pico =
    perToken.input * BigInt(usage.inputTokens) +
    perToken.output * BigInt(usage.outputTokens) +
    perToken.cacheRead * BigInt(usage.cacheReadTokens) +
    perToken.cacheWrite * BigInt(usage.cacheWriteTokens) +
    perToken.cacheWriteLong * BigInt(usage.cacheWriteLongTokens)
  const whole = pico / 1000n
  return pico % 1000n === 0n ? whole : whole + 1n
}

export function anyUsage(dice: Dice, tokensMost: number): Usage {
  const tokens = () => (dice.chance(0.4) ? 0 : dice.int(0, tokensMost))
  return {
    inputTokens: tokens(),
    cacheReadTokens: tokens(),
    cacheWriteTokens: tokens(),
    cacheWriteLongTokens: tokens(),
    outputTokens: dice.int(0, tokensMost),
    source: 'reported',
  }
}
