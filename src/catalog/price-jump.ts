// Notices a price that moves by more than ten times in one change, upwards or down: more often a slipped decimal point
// than a decision.

import type { Pico } from '../kernel/money.ts'
import type { Price, PriceRow } from './price.ts'

const jump = 10n
const buckets = ['input', 'output', 'cacheRead', 'cacheWrite', 'cacheWriteLong'] as const

/** As the API and the command line write them. */
export const bucketNames: Readonly<Record<PriceJump['bucket'], string>> = {
  input: 'input',
  output: 'output',
  cacheRead: 'cache_read',
  cacheWrite: 'cache_write',
  cacheWriteLong: 'cache_write_1h',
}

export interface PriceJump {
  readonly bucket: (typeof buckets)[number]
  readonly from: Pico
  readonly to: Pico
}

/** At most one per bucket. To or from nothing is a jump too. */
export function priceJumps(from: Price, to: Price): readonly PriceJump[] {
  const bounds = [...from.tiers, ...to.tiers].map((tier) => tier.overInputTokens)
  const pairs = [-1, ...bounds].map((bound) => [rowAbove(from, bound), rowAbove(to, bound)] as const)
  return buckets.flatMap((bucket) => {
    const pair = pairs.find(([before, after]) => isJump(before[bucket], after[bucket]))
    return pair ? [{ bucket, from: pair[0][bucket], to: pair[1][bucket] }] : []
  })
}

function isJump(before: bigint, after: bigint): boolean {
  return after > jump * before || before > jump * after
}

/** What holds just above the bound. */
function rowAbove(price: Price, bound: number): PriceRow {
  return price.tiers.findLast((tier) => tier.overInputTokens <= bound) ?? price
}
