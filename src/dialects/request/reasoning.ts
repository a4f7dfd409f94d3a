// Fits the requested reasoning effort to what the target supports, for dialects with named efforts. An explicit "off"
// becomes at most the lowest effort.

import {
  type Conversation,
  type Effort,
  efforts,
  pointerTo,
  type ReasoningBlock,
  type ReasoningSettings,
  turnPointer,
} from '../canonical/conversation.ts'
import type { ParsedRequest } from '../canonical/translation.ts'
import { WarningList } from './fields.ts'
import type { RulesAndWarnings } from './settings.ts'

/** Supported by every host that has efforts. */
const usualEfforts: readonly Effort[] = ['low', 'medium', 'high']

/** undefined = send no effort. */
export function fitEffort(conversation: Conversation, { rules, warnings }: RulesAndWarnings): Effort | undefined {
  const { reasoning: settings } = conversation
  const isOff = settings?.mode === 'off' || settings?.mode === 'between-tools'
  const wanted = isOff ? 'none' : settings && wantedEffort(settings)
  if (wanted === undefined) return undefined
  const pointer = pointerTo(conversation, 'reasoning')
  const known = rules.efforts ?? usualEfforts
  // A caller who wants some reasoning never gets none: the lowest effort is nearer.
  const reasoning = known.filter((effort) => effort !== 'none')
  const [lowest] = reasoning
  if (known.includes(wanted)) return wanted
  if (wanted === 'none') {
    // Nothing to turn off if the model does not reason, or not by default.
    if (!rules.thinksByDefault && (rules.thinksByDefault === false || lowest === undefined)) return undefined
    warnings.add('reasoning_not_disabled', pointer)
    // For an unknown model, sending an effort could turn on reasoning that is off by default.
    return rules.thinksByDefault ? lowest : undefined
  }
  if (lowest === undefined) {
    warnings.add('reasoning_dropped', pointer)
    return undefined
  }
  warnings.add('effort_adjusted', pointer)
  return nearestEffort(reasoning, wanted)
}

/** The highest known effort that is not above the wanted one, otherwise the lowest. `known` is ascending. */
export function nearestEffort(known: readonly Effort[], wanted: Effort): Effort | undefined {
  return known.findLast((effort) => efforts.indexOf(effort) <= efforts.indexOf(wanted)) ?? known[0]
}

/** By name or by budget; undefined = the model decides. */
export function wantedEffort({ effort, budgetTokens }: ReasoningSettings): Effort | undefined {
  return effort ?? (budgetTokens === undefined ? undefined : effortOfBudget(budgetTokens))
}

/** Budgets for models that take no efforts. */
export const budgetOfEffort = {
  none: 0,
  minimal: 2048,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
}

function effortOfBudget(tokens: number): Effort {
  if (tokens === 0) return 'none'
  if (tokens <= 2048) return 'low'
  if (tokens <= 8192) return 'medium'
  return tokens <= 20_000 ? 'high' : 'xhigh'
}

/**
 * The request without the reasoning in its history, for a provider that rejects reasoning it issued itself. undefined
 * if there is none.
 */
export function forgetReasoning({ conversation, warnings }: ParsedRequest): ParsedRequest | undefined {
  const all = new WarningList()
  all.addAll(warnings)
  let isFound = false
  const turns = conversation.turns.map((turn) => {
    if (turn.role !== 'assistant' || !turn.blocks.some(isThinking)) return turn
    isFound = true
    all.add('thinking_dropped', turnPointer(turn))
    return { ...turn, blocks: turn.blocks.filter((block) => !isThinking(block)) }
  })
  return isFound ? { conversation: { ...conversation, turns }, warnings: all.list } : undefined
}

export function isThinking(block: { readonly kind: string }): block is ReasoningBlock {
  return block.kind === 'thinking' || block.kind === 'sealed-thinking'
}

/** The issuer's signature of readable reasoning, or the encrypted reasoning itself. */
export function proofOf(block: ReasoningBlock): string | undefined {
  return block.kind === 'thinking' ? block.signature : block.data
}
