// Service tiers. Every host has its own words for them; prices, charges and the rest of the gateway know the names of
// `tiers` in kernel/usage.ts.

import type { AskedTier } from '../../kernel/usage.ts'

/**
 * What a host is sent for each tier; it does not have the others. `unasked`: for a caller that names none, because the host
 * may otherwise choose a dearer one.
 */
export type TierWords = Readonly<Partial<Record<AskedTier | 'unasked', string>>>

/** What the words of a dialect mean, in requests or in replies. */
export type TierMeanings = Readonly<Record<string, AskedTier>>

/** The words for a host: its own, or those that hosts of its dialect usually know. */
export function tierWordsOf({ serviceTiers }: { readonly serviceTiers?: TierWords }, usual: TierWords): TierWords {
  return serviceTiers ?? usual
}

/** The tier that a request names; undefined = none. A word without a meaning is a tier that we do not know. */
export function askedTier(meanings: TierMeanings, value: unknown): AskedTier | undefined {
  if (value === undefined) return undefined
  return typeof value === 'string' && Object.hasOwn(meanings, value) ? meanings[value] : 'unknown'
}

/**
 * The words of OpenAI's dialects, and of hosts that speak them. `fast` is OpenAI's newer word for `priority`, and
 * `performance` is Groq's.
 */
export const openaiTiers: TierMeanings = {
  auto: 'auto',
  ...{ default: 'standard', standard: 'standard', on_demand: 'standard' },
  flex: 'flex',
  ...{ priority: 'priority', fast: 'priority', performance: 'priority' },
  ultrafast: 'ultrafast',
  scale: 'scale',
  batch: 'batch',
}

/** What hosts of Chat Completions are sent. Some refuse the words for the standard tier. */
export const openaiHostTiers: TierWords = {
  flex: 'flex',
  priority: 'priority',
  ultrafast: 'ultrafast',
  scale: 'scale',
}
/** What replies name the tier that served them. */
export const openaiReplyTiers: TierWords = { ...openaiHostTiers, standard: 'default' }
/** Every host of Responses knows the words for the standard tier. */
export const responsesHostTiers: TierWords = { ...openaiReplyTiers, auto: 'auto' }
/** OpenAI's projects can have a default tier: https://developers.openai.com/api/docs/guides/fast-mode, 2026-11. */
export const openaiOwnTiers: TierWords = { ...responsesHostTiers, unasked: 'default' }
