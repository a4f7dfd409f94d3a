// Sampling, caps, reasoning effort and the other settings, as far as the target takes them. A default that is left out
// is left out silently; anything else with a warning.

import { type Conversation, type Effort, placeOf, type RawJson } from '../canonical/conversation.ts'
import { jsonString } from '../canonical/json.ts'
import type { Target } from '../canonical/translation.ts'
import { warnCacheOptions } from '../request/cache-marks.ts'
import { refuseAt } from '../request/fields.ts'
import { fitEffort } from '../request/reasoning.ts'
import type { Rendering } from './rendering.ts'

type Member = readonly [name: string, value: RawJson | undefined]

/** What to ask of the model; undefined = nothing. `offersTools`: the request has tools, the caller's or one of ours. */
export function renderEffort(
  conversation: Conversation,
  offersTools: boolean,
  rendering: Rendering,
): Effort | undefined {
  const { rules, warnings } = rendering
  const wanted = fitEffort(conversation, rendering)
  if (!offersTools || rules.toolsWithReasoning !== false || wanted === 'none') return wanted
  if (wanted === undefined && !rules.thinksByDefault) return undefined
  // The host refuses tools while the model reasons: the tools are what the caller cannot do without.
  warnings.add('reasoning_dropped', wanted === undefined ? '/tools' : placeOf(conversation, 'reasoning'))
  return 'none'
}

export function renderSampling({ sampling }: Conversation, effort: Effort | undefined, rendering: Rendering): Member[] {
  const { rules, warnings } = rendering
  const reasons = effort === undefined ? rules.thinksByDefault === true : effort !== 'none'
  const accepted = rules.sampling !== 'none' && !(rules.sampling === 'without-reasoning' && reasons)
  const both = sampling.temperature !== undefined && sampling.topP !== undefined
  const take = (name: string, value: number | undefined, isAccepted: boolean, usual?: number): Member => {
    if (value === undefined || isAccepted) return [name, value === undefined ? undefined : String(value)]
    if (value !== usual) warnings.add(`${name}_dropped`, `/${name}`)
    return [name, undefined]
  }
  const bias = sampling.logitBias
  const takesBias = accepted && rules.logitBias !== false
  if (bias !== undefined && !takesBias) warnings.add('logit_bias_dropped', '/logit_bias')
  return [
    take('temperature', clampedTemperature(sampling.temperature, accepted, rendering), accepted, 1),
    take('top_p', sampling.topP, accepted && !(both && rules.temperatureOrTopP), 1),
    take('top_k', sampling.topK, accepted && rules.topK === true),
    take('frequency_penalty', sampling.frequencyPenalty, accepted && rules.penalties !== false, 0),
    take('presence_penalty', sampling.presencePenalty, accepted && rules.penalties !== false, 0),
    take('seed', sampling.seed, rules.seed !== false),
    ['logit_bias', takesBias ? bias : undefined],
  ]
}

function clampedTemperature(
  temperature: number | undefined,
  accepted: boolean,
  { rules, warnings }: Rendering,
): number | undefined {
  const most = rules.temperatureMax ?? 2
  if (temperature === undefined || temperature <= most || !accepted) return temperature
  warnings.add('temperature_clamped', '/temperature')
  return most
}

export function renderOutputCap({ outputCap, places }: Conversation, target: Target, { warnings }: Rendering): Member {
  const name = target.rules.outputCapName ?? 'max_tokens'
  const place = places?.outputCap ?? '/max_tokens'
  if (outputCap === 0) return refuseAt(place, 'The output cap must be at least 1: this model cannot generate nothing.')
  const most = target.maxOutputTokens
  if (outputCap !== undefined && most !== undefined && outputCap > most) {
    warnings.add('max_tokens_clamped', place)
    return [name, String(most)]
  }
  const cap = outputCap ?? target.defaultOutputCap
  return [name, cap === undefined ? undefined : String(cap)]
}

export function renderEndUser(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const { endUserId } = conversation
  const name = rules.endUserIdName ?? 'user'
  const most = rules.endUserIdMax ?? (name === 'user' ? 64 : 128)
  if (endUserId === undefined) return [name, undefined]
  if (rules.endUserId === false) {
    warnings.add('end_user_id_dropped', placeOf(conversation, 'endUserId'))
    return [name, undefined]
  }
  // A hash is as good for telling users apart, and an address is nobody's business.
  const isFit = endUserId.length <= most && !endUserId.includes('@')
  if (isFit) return [name, jsonString(endUserId)]
  return [name, jsonString(new Bun.CryptoHasher('sha256').update(endUserId).digest('hex').slice(0, most))]
}

/** Hosts that know marks of their own cache nothing that is not marked; others cache what they like. */
export function renderCacheOptions(conversation: Conversation, { rules, warnings }: Rendering): Member {
  const isSent = rules.cacheStyle === 'breakpoint'
  if (!isSent && rules.cacheStyle !== 'cache-control') warnCacheOptions(conversation, warnings)
  return ['prompt_cache_options', isSent ? conversation.promptCacheOptions?.written : undefined]
}

export function renderServiceTier({ serviceTier, places }: Conversation, { rules, warnings }: Rendering): Member {
  // Hosts without tiers serve everything as standard, and some refuse the field.
  if (serviceTier === undefined || serviceTier === 'auto' || (serviceTier === 'standard' && !rules.fastTier)) {
    return ['service_tier', undefined]
  }
  if (!rules.fastTier) {
    warnings.add('service_tier_dropped', places?.serviceTier ?? '/service_tier')
    return ['service_tier', undefined]
  }
  const word = { standard: 'default', fast: 'fast', economy: 'flex' }[serviceTier]
  return ['service_tier', jsonString(word)]
}
