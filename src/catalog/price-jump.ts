// Notices a price that moves by more than ten times in one change, upwards or down: more often a slipped decimal point
// than a decision.

import type { Pico } from '../kernel/money.ts'
import { audioNames } from './audio-prices.ts'
import { audioRow, type Price, type PriceRow } from './price.ts'

const jump = 10n
const buckets = [
  ...(['input', 'output', 'cacheRead', 'cacheWrite', 'cacheWriteLong'] as const),
  ...(['audioInput', 'audioCacheRead', 'audioOutput'] as const),
]

/** As the API and the command line write them. */
export const bucketNames: Readonly<Record<PriceJump['bucket'], string>> = {
  input: 'input',
  output: 'output',
  cacheRead: 'cache_read',
  cacheWrite: 'cache_write',
  cacheWriteLong: 'cache_write_1h',
  ...audioNames,
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
    const moves = pairs.flatMap(([before, after]) => moveOf(bucket, before, after) ?? [])
    return moves.find(({ from: was, to: is }) => isJump(was, is)) ?? []
  })
}

/** undefined = neither has a price of its own there: sound that costs as text moves with it. */
function moveOf(bucket: PriceJump['bucket'], before: PriceRow, after: PriceRow): PriceJump | undefined {
  if (before[bucket] === undefined && after[bucket] === undefined) return undefined
  return { bucket, from: priceIn(before, bucket), to: priceIn(after, bucket) }
}

function priceIn(row: PriceRow, bucket: PriceJump['bucket']): Pico {
  return { ...row, ...audioRow(row) }[bucket]
}

function isJump(before: bigint, after: bigint): boolean {
  return after > jump * before || before > jump * after
}

/** What holds just above the bound. */
function rowAbove(price: Price, bound: number): PriceRow {
  return price.tiers.findLast((tier) => tier.overInputTokens <= bound) ?? price
}
