// Reasoning: what to request from the model, what excludes it, and which reasoning of the history goes back.

import {
  type AssistantBlock,
  type Conversation,
  type Effort,
  pointerTo,
  type RawJson,
  type ReasoningSettings,
  type Turn,
} from '../../canonical/conversation.ts'
import { jsonNumber, jsonObject, jsonString } from '../../canonical/json.ts'
import { blobFor, isOwnSignature } from '../../canonical/signature.ts'
import type { TargetRules, ThinkingMode } from '../../canonical/target-rules.ts'
import type { WarningList } from '../../request/fields.ts'
import { budgetOfEffort, isThinking, nearestEffort, proofOf, wantedEffort } from '../../request/reasoning.ts'
import type { WireMessage } from './render-messages.ts'

export interface ReasoningSurroundings {
  readonly rules: TargetRules
  readonly maxTokens: number
  readonly messages: readonly WireMessage[]
  /** The answer must be a call of one specific tool. */
  readonly answersByTool: boolean
  readonly warnings: WarningList
}

export interface Thinking {
  /** undefined = omit it. */
  readonly mode: ThinkingMode | undefined
  readonly budgetTokens?: number
  readonly effort?: Effort | undefined
  readonly display?: 'summarized' | 'omitted' | undefined
}

export function renderReasoning(conversation: Conversation, around: ReasoningSurroundings): Thinking {
  const { rules, messages } = around
  const warn = (code: string) => around.warnings.add(code, pointerTo(conversation, 'reasoning'))
  const requested = conversation.reasoning
  const thinking = requested ? chooseThinking(requested, around, warn) : { mode: undefined }
  // With a budget, the model can neither be forced to call a tool nor continue from calls it made without thinking.
  if (thinking.mode === 'enabled' && (around.answersByTool || continuesWithoutThinking(messages))) {
    warn('reasoning_dropped')
    return { mode: rules.thinking?.includes('disabled') ? 'disabled' : undefined }
  }
  // If the model reasons by default, the mode is only sent to carry its options.
  const carriesBinding = rules.thinkingBindingControls && thinking.mode === undefined && rules.thinksByDefault
  return carriesBinding && rules.thinking?.includes('adaptive') ? { ...thinking, mode: 'adaptive' } : thinking
}

function continuesWithoutThinking(messages: readonly WireMessage[]): boolean {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  if (messages[last]?.blocks[0]?.type !== 'tool_result') return false
  const first = messages.slice(0, last).findLast(({ role }) => role === 'assistant')?.blocks[0]?.type
  return first !== undefined && first !== 'thinking' && first !== 'redacted_thinking'
}

/** Supported by the provider's own models, if the target has no rules. */
const usualModes: readonly ThinkingMode[] = ['adaptive', 'disabled']
const usualEfforts: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

const budgetMin = 1024
/** Tokens that a budget should leave for the answer: a few sentences. With less the caller is warned. */
const answerRoomMin = 256

/**
 * Fits the requested reasoning to what the target supports: a mode, an effort or a budget. Unsupported values become
 * the nearest lower one, with a warning. An explicit "off" never becomes "on".
 */
function chooseThinking(
  requested: ReasoningSettings,
  { rules, maxTokens }: Pick<ReasoningSurroundings, 'rules' | 'maxTokens'>,
  warn: (code: string) => void,
): Thinking {
  const { budgetTokens, visible } = requested
  const modes = rules.thinking ?? usualModes
  const between = requested.mode === 'between-tools'
  if (between || requested.effort === 'none' || budgetTokens === 0 || requested.mode === 'off') {
    const order = between ? (['between-tools', 'disabled'] as const) : (['disabled', 'between-tools'] as const)
    const mode = order.find((known) => modes.includes(known))
    if (mode) return { mode, effort: fitEffort(requested.effort, mode, rules, warn) }
    if (rules.thinksByDefault === false && !between) return { mode: undefined }
    warn('reasoning_not_disabled')
    return { mode: undefined, effort: effortsOf(rules)[0] }
  }
  const wanted = wantedEffort(requested)
  // Visibility is an option of a mode, and sending a mode turns on what is off by default.
  const isAboutShowing = wanted === undefined && requested.mode === undefined
  if (isAboutShowing && !(rules.thinksByDefault && visible)) return { mode: undefined }
  const display = visible === undefined ? undefined : visible ? 'summarized' : 'omitted'
  if (modes.includes('adaptive')) {
    const effort = fitEffort(wanted, 'adaptive', rules, warn)
    // Models that reason by default need no mode, except for requesting visibility.
    const isImplied = rules.thinksByDefault && visible !== true && requested.mode !== 'adaptive'
    return isImplied ? { mode: undefined, effort } : { mode: 'adaptive', effort, display }
  }
  if (!modes.includes('enabled')) {
    const effort = fitEffort(wanted, undefined, rules, warn)
    if (effort === undefined) warn('reasoning_dropped')
    return { mode: undefined, effort }
  }
  const amount = budgetTokens ?? (requested.effort && budgetOfEffort[requested.effort])
  // Such a model cannot decide by itself how much to reason, so without an amount nothing is sent.
  if (amount === undefined && requested.mode !== 'on') return { mode: undefined }
  if (maxTokens <= budgetMin) {
    warn('reasoning_dropped')
    return { mode: undefined }
  }
  const budget = Math.min(Math.max(Math.floor(amount ?? budgetOfEffort.medium), budgetMin), maxTokens - 1)
  if (budgetTokens !== undefined && budgetTokens !== budget) warn('reasoning_budget_clamped')
  if (maxTokens - budget < answerRoomMin) warn('reasoning_leaves_little_room')
  return { mode: 'enabled', budgetTokens: budget, effort: fitEffort(requested.effort, 'enabled', rules, warn), display }
}

/** The highest supported effort that is not above the requested one, otherwise the lowest. */
function fitEffort(
  requested: Effort | undefined,
  mode: ThinkingMode | undefined,
  rules: TargetRules,
  warn: (code: string) => void,
): Effort | undefined {
  const known = effortsOf(rules)
  if (requested === undefined || requested === 'none' || known.length === 0) return undefined
  const isLimited = mode !== undefined && rules.effortHighAtMostWith?.includes(mode)
  const isAbove = requested === 'xhigh' || requested === 'max'
  const chosen = nearestEffort(known, isLimited && isAbove ? 'high' : requested)
  // Other dialects call the lowest effort minimal.
  if (chosen !== requested && !(requested === 'minimal' && chosen === known[0])) warn('effort_adjusted')
  return chosen
}

function effortsOf(rules: TargetRules): readonly Effort[] {
  return (rules.efforts ?? usualEfforts).filter((effort) => effort !== 'none')
}

const modeNames = { adaptive: 'adaptive', enabled: 'enabled', disabled: 'disabled', 'between-tools': 'between_tools' }

/** `dropStale`: the provider drops thinking that no longer fits its conversation instead of refusing it. */
export function writeThinking({ mode, budgetTokens, display }: Thinking, dropStale: boolean): RawJson | undefined {
  if (!mode) return undefined
  return jsonObject({
    type: jsonString(modeNames[mode]),
    budget_tokens: jsonNumber(budgetTokens),
    display: jsonString(display),
    block_binding: dropStale ? '{"prefix_mismatch_behavior":"drop_block"}' : undefined,
  })
}

/** Whether the model will reason, as far as known. */
export function isReasoning({ mode }: Thinking, { thinksByDefault }: TargetRules): boolean {
  if (mode === undefined) return thinksByDefault === true
  return mode === 'adaptive' || mode === 'enabled'
}

// The reasoning of the history that goes back to its issuer. The provider requires an unbroken run of the blocks it
// issued, so if one cannot be sent back, it and all earlier ones are dropped; later ones are kept. The provider's own
// signatures are never changed.

/** The turns with the reasoning that goes back to `issuer`, each block as the issuer wrote it. */
export function restoreThinking(turns: readonly Turn[], issuer: string, warnings: WarningList): readonly Turn[] {
  if (!turns.some(({ role }) => role === 'assistant')) return turns
  const ending = endingThinking(turns)
  const restored = turns.map((turn) => {
    if (turn.role !== 'assistant') return turn
    return {
      ...turn,
      blocks: turn.blocks.map((block) => (ending.has(block) ? undefined : restoreBlock(block, issuer))),
    }
  })
  const lost = restored.findLastIndex((turn) => turn.blocks.some((block) => block === undefined))
  return restored.map((turn, i): Turn => {
    if (turn.role !== 'assistant') return turn
    const { pointer, blocks } = turn
    const kept = blocks.filter((block) => block !== undefined && (i > lost || !isThinking(block))) as AssistantBlock[]
    if (kept.length < blocks.length) warnings.add('thinking_dropped', pointer ?? '/messages')
    return { role: 'assistant', blocks: kept, pointer }
  })
}

/**
 * Reasoning without a successor: the provider refuses a message that ends with it. Consecutive turns are one message,
 * also with blank ones between them, which are not sent.
 */
function endingThinking(turns: readonly Turn[]): ReadonlySet<Turn['blocks'][number]> {
  const ending = new Set<Turn['blocks'][number]>()
  let isFollowed = false
  for (const { role, blocks } of turns.toReversed()) {
    for (const block of blocks.toReversed()) {
      if ((block.kind === 'text' || block.kind === 'refusal') && block.text.trim() === '') continue
      if (!isThinking(block)) isFollowed = role === 'assistant'
      else if (!isFollowed) ending.add(block)
    }
  }
  return ending
}

/** undefined = reasoning that cannot be sent back. */
function restoreBlock(block: AssistantBlock, issuer: string): AssistantBlock | undefined {
  if (!isThinking(block)) return block
  const written = proofOf(block) || undefined
  const proof = written && isOwnSignature(written) ? blobFor(issuer, written) : written
  if (proof === undefined) return undefined
  return block.kind === 'thinking' ? { ...block, signature: proof } : { ...block, data: proof }
}
