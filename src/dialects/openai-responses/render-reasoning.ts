// How hard the model is asked to think, and whether it is to tell about it. An explicit "off" never turns into more than
// the least there is. Tools and reasoning go together in this dialect, so that tools never change the effort.

import { type Conversation, type Effort, efforts, type RawJson, type ReasoningWish } from '../canonical/conversation.ts'
import { placeOf } from '../canonical/places.ts'
import { effortOfBudget } from '../request/effort-of-budget.ts'
import { jsonObject, jsonString } from '../request/json-text.ts'
import { type Rendering, reasons } from './rendering.ts'

/** What every host with such a dial knows. */
const usualEfforts: readonly Effort[] = ['low', 'medium', 'high']

export interface RenderedReasoning {
  /** The member's value; undefined = nothing is said. */
  readonly reasoning: RawJson | undefined
  readonly effort: Effort | undefined
}

export function renderReasoning(conversation: Conversation, rendering: Rendering): RenderedReasoning {
  const effort = fittingEffort(conversation, rendering)
  // Only on demand: some accounts are refused summaries until they have proved who they are.
  const isShown = conversation.reasoning?.visible === true && effort !== 'none' && reasons(rendering.rules)
  const reasoning = jsonObject([
    ['effort', effort && jsonString(effort)],
    ['summary', isShown ? '"auto"' : undefined],
  ])
  return { reasoning: reasoning === '{}' ? undefined : reasoning, effort }
}

function fittingEffort(conversation: Conversation, { rules, warnings }: Rendering): Effort | undefined {
  const wanted = conversation.reasoning && wantedEffort(conversation.reasoning)
  if (wanted === undefined) return undefined
  const place = placeOf(conversation, 'reasoning')
  const known = rules.efforts ?? usualEfforts
  const [lowest] = known
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
  return known.findLast((effort) => efforts.indexOf(effort) < efforts.indexOf(wanted)) ?? lowest
}

/** undefined = as the model sees fit. */
function wantedEffort({ effort, budgetTokens, mode }: ReasoningWish): Effort | undefined {
  if (mode === 'off' || mode === 'between-tools') return 'none'
  if (effort !== undefined || budgetTokens === undefined) return effort
  return effortOfBudget(budgetTokens)
}
