// The form in which a price is kept in the database: JSON, pico-dollars per token as decimal strings. The same price
// always gives the same text, so that texts can be compared; a released form is never changed, its rows are for ever.

import { z } from 'zod'
import type { Pico } from '../kernel/money.ts'
import { nameAudio, readAudio } from './audio-prices.ts'
import { freePrice, type Price, type PriceRow } from './price.ts'
import { formatFactor, parseFactor } from './us-only.ts'

const pico = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,17})$/)
  .transform((text) => BigInt(text) as Pico)

const rowShape = {
  ...{ input: pico, output: pico, cache_read: pico, cache_write: pico, cache_write_1h: pico },
  ...{ audio_input: pico.optional(), audio_cache_read: pico.optional(), audio_output: pico.optional() },
}
const rowSchema = z.object(rowShape)
const tierSchema = z.strictObject({ over_input_tokens: z.int().positive(), ...rowShape })
const priceSchema = z.union([
  z.strictObject({ free: z.literal(true) }),
  z.strictObject({
    ...rowShape,
    web_search: pico.optional(),
    us_only: z.string().transform(parseFactor).pipe(z.bigint()).optional(),
    tiers: z.array(tierSchema).optional(),
  }),
])

type StoredRow = z.infer<typeof rowSchema>

export function renderStoredPrice(price: Price): string {
  if (price.free) return JSON.stringify({ free: true })
  const tiers = price.tiers.map((tier) => ({ over_input_tokens: tier.overInputTokens, ...renderRow(tier) }))
  const search = price.webSearch === undefined ? {} : { web_search: String(price.webSearch) }
  const usOnly = price.usOnly === undefined ? {} : { us_only: formatFactor(price.usOnly) }
  return JSON.stringify({ ...renderRow(price), ...search, ...usOnly, ...(tiers.length > 0 && { tiers }) })
}

/** Throws on text that renderStoredPrice did not write: nobody else writes there. */
export function parseStoredPrice(json: string): Price {
  const stored = priceSchema.parse(JSON.parse(json))
  if ('free' in stored) return freePrice
  const tiers = (stored.tiers ?? []).map((tier) => ({ overInputTokens: tier.over_input_tokens, ...rowOf(tier) }))
  const search = stored.web_search === undefined ? {} : { webSearch: stored.web_search }
  const usOnly = stored.us_only === undefined ? {} : { usOnly: stored.us_only }
  return { free: false, ...rowOf(stored), ...search, ...usOnly, tiers }
}

function renderRow(row: PriceRow): Record<string, string> {
  return {
    input: String(row.input),
    output: String(row.output),
    cache_read: String(row.cacheRead),
    cache_write: String(row.cacheWrite),
    cache_write_1h: String(row.cacheWriteLong),
    ...nameAudio(row, String),
  }
}

function rowOf(stored: StoredRow): PriceRow {
  return {
    input: stored.input,
    output: stored.output,
    cacheRead: stored.cache_read,
    cacheWrite: stored.cache_write,
    cacheWriteLong: stored.cache_write_1h,
    ...readAudio(stored, (price) => price),
  }
}
