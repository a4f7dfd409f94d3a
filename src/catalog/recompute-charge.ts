// Turns what a charge has stored, a usage and a price version, into the amount it must have: the proof that a bill can be
// reproduced.

import { z } from 'zod'
import type { Nano } from '../kernel/money.ts'
import { tokensMax, type Usage } from '../kernel/usage.ts'
import type { Sql } from '../store/sql.ts'
import { type Price, priceUsage } from './price.ts'
import { parseStoredPrice } from './stored-price.ts'

const tokens = z.int().min(0).max(tokensMax)

/** What else a usage says is kept, but decides no price. */
const counts = {
  inputTokens: tokens,
  cacheReadTokens: tokens,
  cacheWriteTokens: tokens,
  cacheWriteLongTokens: tokens,
  outputTokens: tokens,
  audioInputTokens: tokens.default(0),
  audioCacheReadTokens: tokens.default(0),
  audioOutputTokens: tokens.default(0),
}
const usageSchema = z.looseObject({
  ...counts,
  webSearches: tokens.optional(),
  isUsOnly: z.literal(true).optional(),
  summaries: z.array(z.object(counts)).optional(),
})

/** undefined = the version does not exist, or one of the two texts is not what it should be. */
export type RecomputeCharge = (priceVersion: string, usageJson: string) => Nano | undefined

/** Reads every price that was ever in force: some hundred bytes each, far fewer than charges. */
export async function readRecomputeCharge(sql: Sql): Promise<RecomputeCharge> {
  const rows = await sql<{ version: string; price: string }>`SELECT version, price FROM prices`
  const texts = new Map(rows.map((row) => [row.version, row.price]))
  const prices = new Map<string, Price | undefined>()
  const priceOf = (version: string): Price | undefined => {
    if (!prices.has(version)) prices.set(version, parsePrice(texts.get(version)))
    return prices.get(version)
  }
  return (version, usageJson) => {
    const price = priceOf(version)
    const usage = parseUsage(usageJson)
    return price && usage && priceUsage(price, usage)
  }
}

function parsePrice(json: string | undefined): Price | undefined {
  try {
    return json === undefined ? undefined : parseStoredPrice(json)
  } catch {
    return undefined
  }
}

function parseUsage(json: string): Usage | undefined {
  try {
    const { webSearches = 0, summaries = [], isUsOnly, ...usage } = usageSchema.parse(JSON.parse(json))
    return { ...usage, webSearches, summaries, ...(isUsOnly && { isUsOnly }), source: 'reported' }
  } catch {
    return undefined
  }
}
