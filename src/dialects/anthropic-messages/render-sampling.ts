// Sampling settings as far as the target takes them. Most models of this dialect take none, or none while they reason;
// a value that only repeats the default is left out without a word.

import type { RawJson, Sampling } from '../canonical/conversation.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { WarningList } from '../request/warnings.ts'

const temperatureUsualMax = 1

export function renderSampling(
  sampling: Sampling,
  { rules, reasoning }: { rules: TargetRules; reasoning: boolean },
  warnings: WarningList,
): (readonly [name: string, value: RawJson])[] {
  warnForeign(sampling, warnings)
  const taken = rules.sampling !== 'none' && !reasoning
  const { temperature, topP, topK } = sampling
  const members: [string, RawJson][] = []
  if (temperature !== undefined) {
    const sent = Math.min(Math.max(temperature, 0), rules.temperatureMax ?? temperatureUsualMax)
    if (taken) members.push(['temperature', String(sent)])
    if (taken && sent !== temperature) warnings.add('temperature_clamped', '/temperature')
    if (!taken && temperature !== 1) warnings.add('temperature_dropped', '/temperature')
  }
  if (topP !== undefined) {
    if (taken && !(rules.temperatureOrTopP && temperature !== undefined)) members.push(['top_p', String(topP)])
    else if (topP < 0.99) warnings.add('top_p_dropped', '/top_p')
  }
  if (topK !== undefined) {
    if (taken && rules.topK !== false) members.push(['top_k', String(topK)])
    else warnings.add('top_k_dropped', '/top_k')
  }
  return members
}

/** Settings this dialect has no field for. */
function warnForeign(sampling: Sampling, warnings: WarningList): void {
  const { frequencyPenalty, presencePenalty, seed, logitBias } = sampling
  if (frequencyPenalty) warnings.add('frequency_penalty_dropped', '/frequency_penalty')
  if (presencePenalty) warnings.add('presence_penalty_dropped', '/presence_penalty')
  if (seed !== undefined) warnings.add('seed_dropped', '/seed')
  if (logitBias !== undefined && !/^\{\s*\}$/.test(logitBias)) warnings.add('logit_bias_dropped', '/logit_bias')
}
