// The small settings around a request: where to stop, for whom, how fast; and hints that have no counterpart here.

import { type Conversation, placeOf, type RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { warnCacheOptions } from '../request/cache-marks.ts'
import type { WarningList } from '../request/warnings.ts'

const fastBeta = 'fast-mode-2026-02-01'
/** What the provider documents for `user_id` (2026-11). */
const userIdUsualMax = 256

export interface Serving {
  readonly members: readonly (readonly [name: string, value: RawJson | undefined])[]
  readonly betas: readonly string[]
}

export function renderServing(conversation: Conversation, rules: TargetRules, warnings: WarningList): Serving {
  const { serviceTier, endUserId } = conversation
  const fast = serviceTier === 'fast' && rules.fastTier === true
  if (serviceTier === 'economy' || (serviceTier === 'fast' && !fast)) {
    warnings.add('service_tier_dropped', placeOf(conversation, 'serviceTier'))
  }
  // What is marked is all that is cached, unless a host has a way of its own.
  if (rules.cacheStyle !== undefined && rules.cacheStyle !== 'cache-control') warnCacheOptions(conversation, warnings)
  // A host without tiers serves everything as standard, and refuses the field.
  const tiers: Partial<Record<string, RawJson>> =
    rules.fastTier === false ? {} : { auto: '"auto"', standard: '"standard_only"' }
  const tier = serviceTier && tiers[serviceTier]
  const userId = endUserId && shortened(endUserId, rules.endUserIdMax ?? userIdUsualMax)
  return {
    members: [
      ['metadata', userId ? jsonObject([['user_id', jsonString(userId)]]) : undefined],
      ['service_tier', tier],
      ['speed', fast ? '"fast"' : undefined],
    ],
    betas: fast ? [fastBeta] : [],
  }
}

/** Too long an id becomes a hash of itself, which still tells users apart. */
function shortened(id: string, max: number): string {
  return id.length <= max ? id : new Bun.CryptoHasher('sha256').update(id).digest('hex').slice(0, max)
}

export interface WireStop {
  readonly json: RawJson | undefined
  /** All of them, if the target cannot match them itself. */
  readonly mapping: readonly string[]
}

/** The provider refuses sequences of whitespace alone. */
export function renderStop(conversation: Conversation, { stopMax }: TargetRules, warnings: WarningList): WireStop {
  const kept = conversation.stop.filter((sequence) => sequence.trim() !== '')
  if (kept.length < conversation.stop.length) warnings.add('stop_dropped', placeOf(conversation, 'stop'))
  if (kept.length === 0) return { json: undefined, mapping: [] }
  const sent = stopMax === undefined ? kept : kept.slice(0, stopMax)
  return {
    json: sent.length > 0 ? jsonArray(sent.map(jsonString)) : undefined,
    mapping: sent.length < kept.length ? kept : [],
  }
}

export function warnHints({ verbosity, promptCacheKey }: Conversation, warnings: WarningList): void {
  if (verbosity !== undefined && verbosity !== 'medium') warnings.add('verbosity_dropped', '/verbosity')
  if (promptCacheKey) warnings.add('prompt_cache_key_dropped', '/prompt_cache_key')
}
