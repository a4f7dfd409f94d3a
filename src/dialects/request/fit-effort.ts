// How hard a model is asked to think, for dialects with one dial of words: the wish fitted to what the target knows. An
// explicit "off" never turns into more than the least there is.

import { type Conversation, type Effort, efforts, type ReasoningWish } from '../canonical/conversation.ts'
import { placeOf } from '../canonical/places.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { effortOfBudget } from './effort-of-budget.ts'
import type { WarningList } from './warning-list.ts'

/** What every host with such a dial knows. */
const usualEfforts: readonly Effort[] = ['low', 'medium', 'high']

export interface EffortTarget {
  readonly rules: TargetRules
  readonly warnings: WarningList
}

/** undefined = nothing is said. */
export function fitEffort(conversation: Conversation, { rules, warnings }: EffortTarget): Effort | undefined {
  const wanted = conversation.reasoning && wantedEffort(conversation.reasoning)
  if (wanted === undefined) return undefined
  const place = placeOf(conversation, 'reasoning')
  const known = rules.efforts ?? usualEfforts
  // Whoever wants some reasoning is not answered with none: the least that reasons is nearer.
  const reasoning = known.filter((effort) => effort !== 'none')
  const [lowest] = reasoning
  if (known.includes(wanted)) return wanted
  if (wanted === 'none') {
    // A model that does not reason by itself has nothing to be turned off.
    if (!rules.thinksByDefault) return undefined
    warnings.add('reasoning_not_disabled', place)
    return lowest
  }
  if (lowest === undefined) {
    warnings.add('reasoning_dropped', place)
    return undefined
  }
  warnings.add('effort_adjusted', place)
  return reasoning.findLast((effort) => efforts.indexOf(effort) < efforts.indexOf(wanted)) ?? lowest
}

/** undefined = as the model sees fit. */
function wantedEffort({ effort, budgetTokens, mode }: ReasoningWish): Effort | undefined {
  if (mode === 'off' || mode === 'between-tools') return 'none'
  if (effort !== undefined || budgetTokens === undefined) return effort
  return effortOfBudget(budgetTokens)
}
