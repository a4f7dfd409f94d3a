// Google's words for service tiers. The Gemini API takes and names them in the body; Vertex takes a header, which the endpoint
// of the provider adds, and names the traffic. Case makes no difference.
// https://ai.google.dev/gemini-api/docs/flex-inference and
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo, 2026-11

import type { AskedTier } from '../../kernel/usage.ts'
import { askedTier, type TierMeanings, type TierWords } from '../canonical/tiers.ts'

export const hostTiers: TierWords = { standard: 'standard', flex: 'flex', priority: 'priority' }

const askedTiers: TierMeanings = { standard: 'standard', flex: 'flex', priority: 'priority', unspecified: 'standard' }

export function askedIn(value: unknown): AskedTier | undefined {
  return askedTier(askedTiers, lower(value))
}

export const repliedTiers: TierMeanings = {
  ...{ standard: 'standard', on_demand: 'standard' },
  ...{ flex: 'flex', on_demand_flex: 'flex' },
  ...{ priority: 'priority', on_demand_priority: 'priority' },
  provisioned_throughput: 'scale',
  batch: 'batch',
}

export function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value
}
