// A charge taken apart: tokens of each kind, and searches, at their price, exact to the pico-dollar, so that anyone can add it up. The
// sum, rounded up once, is the charge.

import type { Pico } from '../kernel/money.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import { type Price, priceRowFor } from './price.ts'

export interface ChargeLine {
  readonly kind: 'input' | 'cache_read' | 'cache_write' | 'cache_write_1h' | 'output' | 'web_search'
  /** Or searches. */
  readonly tokens: number
  readonly price: Pico
  /** tokens × price. */
  readonly pico: bigint
}

/** Kinds of which nothing was used are left out. */
export function chargeLines(price: Price, usage: Usage): readonly ChargeLine[] {
  const row = priceRowFor(price, totalInputTokens(usage))
  const lines: readonly (readonly [ChargeLine['kind'], number, Pico])[] = [
    ['input', usage.inputTokens, row.input],
    ['cache_read', usage.cacheReadTokens, row.cacheRead],
    ['cache_write', usage.cacheWriteTokens, row.cacheWrite],
    ['cache_write_1h', usage.cacheWriteLongTokens, row.cacheWriteLong],
    ['output', usage.outputTokens, row.output],
    ['web_search', usage.webSearches ?? 0, price.webSearch ?? (0n as Pico)],
  ]
  return lines
    .filter(([, tokens]) => tokens > 0)
    .map(([kind, tokens, linePrice]) => ({ kind, tokens, price: linePrice, pico: BigInt(tokens) * linePrice }))
}
