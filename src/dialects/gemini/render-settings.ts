// Sampling, caps and the other settings, as far as the target takes them. A default that is left out is left out
// silently; anything else with a warning.

import { type Conversation, placeOf, type RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonString } from '../canonical/json.ts'
import type { Target } from '../canonical/translation.ts'
import { warnCacheOptions } from '../request/cache-marks.ts'
import { refuseAt } from '../request/fields.ts'
import { isTurnedOff } from './render-thinking.ts'
import type { Rendering } from './rendering.ts'

type Member = readonly [name: string, value: RawJson | undefined]

/** Sequences in one request. */
const stopMaxDefault = 5
const temperatureMaxDefault = 2
/** The provider's integers have 32 bits. */
const seedMax = 2 ** 31 - 1

export function renderSampling({ sampling, reasoning }: Conversation, { rules, warnings }: Rendering): Member[] {
  const thinks = reasoning ? !isTurnedOff(reasoning) : rules.thinksByDefault !== false
  const accepted = rules.sampling !== 'none' && !(rules.sampling === 'without-reasoning' && thinks)
  const take = (
    names: readonly [sent: string, field: string],
    value: number | undefined,
    isTaken: boolean,
    usual?: number,
  ) => {
    const [sent, field] = names
    if (value !== undefined && !isTaken && value !== usual) warnings.add(`${field}_dropped`, `/${field}`)
    return [sent, value === undefined || !isTaken ? undefined : String(value)] as const
  }
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, seed, logitBias } = sampling
  const most = rules.temperatureMax ?? temperatureMaxDefault
  const isTooHot = temperature !== undefined && temperature > most && accepted
  if (isTooHot) warnings.add('temperature_clamped', '/temperature')
  if (logitBias !== undefined && !/^\{\s*\}$/.test(logitBias)) warnings.add('logit_bias_dropped', '/logit_bias')
  const penalties = accepted && rules.penalties !== false
  const isSeed = seed !== undefined && Number.isInteger(seed) && Math.abs(seed) <= seedMax
  return [
    take(['temperature', 'temperature'], isTooHot ? most : temperature, accepted, 1),
    take(['topP', 'top_p'], topP, accepted && !(rules.temperatureOrTopP && temperature !== undefined), 1),
    take(['topK', 'top_k'], topK, accepted && rules.topK !== false),
    take(['presencePenalty', 'presence_penalty'], presencePenalty, penalties, 0),
    take(['frequencyPenalty', 'frequency_penalty'], frequencyPenalty, penalties, 0),
    take(['seed', 'seed'], seed, isSeed && rules.seed !== false),
  ]
}

/** Thoughts count against it. */
export function renderOutputCap(conversation: Conversation, target: Target, { warnings }: Rendering): Member {
  const { outputCap } = conversation
  const place = placeOf(conversation, 'outputCap')
  if (outputCap === 0) return refuseAt(place, 'The output cap must be at least 1: this model cannot generate nothing.')
  const most = target.maxOutputTokens
  const isTooMuch = outputCap !== undefined && most !== undefined && outputCap > most
  if (isTooMuch) warnings.add('max_tokens_clamped', place)
  const cap = isTooMuch ? most : (outputCap ?? target.defaultOutputCap)
  return ['maxOutputTokens', cap === undefined ? undefined : String(cap)]
}

export interface RenderedStop {
  readonly member: Member
  /** All of them, if they are more than the target can match itself: each is then found at its first place. */
  readonly matched: readonly string[]
}

export function renderStop({ stop }: Conversation, { rules }: Rendering): RenderedStop {
  const real = stop.filter((sequence) => sequence !== '')
  const isSent = real.length > 0 && real.length <= (rules.stopMax ?? stopMaxDefault)
  return {
    member: ['stopSequences', isSent ? jsonArray(real.map(jsonString)) : undefined],
    matched: isSent ? [] : real,
  }
}

export function renderServiceTier(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const { serviceTier } = conversation
  if (serviceTier === 'fast' && rules.fastTier) return ['serviceTier', '"priority"']
  if (serviceTier === 'economy' && rules.economyTier) return ['serviceTier', '"flex"']
  if (serviceTier === 'fast' || serviceTier === 'economy') {
    warnings.add('service_tier_dropped', placeOf(conversation, 'serviceTier'))
  }
  // Standard is what everybody gets who does not ask for another.
  return ['serviceTier', undefined]
}

/** What the provider has no field for. */
export function warnHints(conversation: Conversation, { warnings }: Rendering): void {
  const { verbosity, promptCacheKey, endUserId } = conversation
  if (verbosity !== undefined && verbosity !== 'medium') warnings.add('verbosity_dropped', '/verbosity')
  if (promptCacheKey) warnings.add('prompt_cache_key_dropped', '/prompt_cache_key')
  warnCacheOptions(conversation, warnings)
  if (endUserId) warnings.add('end_user_id_dropped', placeOf(conversation, 'endUserId'))
}
