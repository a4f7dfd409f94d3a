// Anthropic's words for service tiers: `speed` asks for faster processing, and `service_tier` says whether capacity that the
// account has bought may be used, which replies then call `priority`.
// https://platform.claude.com/docs/en/api/service-tiers and /build-with-claude/fast-mode, 2026-11

import type { AskedTier } from '../../kernel/usage.ts'
import { askedTier, type TierMeanings, type TierWords } from '../canonical/tiers.ts'

export const fastSpeed = 'fast'
/** Unlocks `speed`. */
export const fastBeta = 'fast-mode-2026-02-01'

/** A host whose word for a tier is `fast` is sent it as `speed`, any other word as `service_tier`. */
export const hostTiers: TierWords = { auto: 'auto', standard: 'standard_only', priority: fastSpeed }

const askedSpeeds: TierMeanings = { standard: 'standard', fast: 'priority' }
const askedTiers: TierMeanings = { auto: 'auto', standard_only: 'standard' }

export function askedIn(speed: unknown, tier: unknown): AskedTier | undefined {
  const bySpeed = askedTier(askedSpeeds, speed)
  return bySpeed === undefined || bySpeed === 'standard' ? askedTier(askedTiers, tier) : bySpeed
}

/** `service_tier` of a reply; faster processing is its `speed`. */
export const tierWords: TierWords = {
  ...{ standard: 'standard', priority: 'standard', ultrafast: 'standard' },
  ...{ scale: 'priority', batch: 'batch', flex: 'flex' },
}

export const repliedTiers: TierMeanings = {
  standard: 'standard',
  priority: 'scale',
  batch: 'batch',
  flex: 'flex',
  [fastSpeed]: 'priority',
}
