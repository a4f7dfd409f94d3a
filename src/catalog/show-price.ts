// A price as people and programs read it: decimal strings of US dollars per million tokens, exact. The one place that
// turns the price that bills into the price that is shown.

import { formatPrice, formatSearchPrice } from '../kernel/money.ts'
import { type AudioName, nameAudio } from './audio-prices.ts'
import type { Price, PriceRow } from './price.ts'
import { formatFactor } from './us-only.ts'

/** USD per million tokens. */
export interface ShownPriceRow extends Partial<Record<AudioName, string>> {
  input: string
  output: string
  cache_read: string
  cache_write: string
  cache_write_1h: string
}

/**
 * `web_search`: USD per thousand searches. `us_only`: what tokens cost times this where the work is kept in the United
 * States. `over`: prices of requests with more input tokens than the name says.
 */
export type ShownPrice =
  | 'free'
  | (ShownPriceRow & { web_search?: string; us_only?: string; over?: Record<string, ShownPriceRow> })

export function showPrice(price: Price): ShownPrice {
  if (price.free) return 'free'
  const tiers = price.tiers.map((tier) => [String(tier.overInputTokens), showRow(tier)] as const)
  const search = price.webSearch === undefined ? {} : { web_search: formatSearchPrice(price.webSearch) }
  const usOnly = price.usOnly === undefined ? {} : { us_only: formatFactor(price.usOnly) }
  return { ...showRow(price), ...search, ...usOnly, ...(tiers.length > 0 && { over: Object.fromEntries(tiers) }) }
}

function showRow(row: PriceRow): ShownPriceRow {
  return {
    input: formatPrice(row.input),
    output: formatPrice(row.output),
    cache_read: formatPrice(row.cacheRead),
    cache_write: formatPrice(row.cacheWrite),
    cache_write_1h: formatPrice(row.cacheWriteLong),
    ...nameAudio(row, formatPrice),
  }
}
