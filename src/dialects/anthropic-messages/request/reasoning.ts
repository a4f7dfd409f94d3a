// Reasoning: what to request from the model, what excludes it, and which reasoning of the history goes back.

import {
  type AssistantBlock,
  type Conversation,
  type Effort,
  efforts,
  placeOf,
  type RawJson,
  type ReasoningWish,
  type Turn,
} from '../../canonical/conversation.ts'
import { jsonNumber, jsonObject, jsonString } from '../../canonical/json.ts'
import { blobFor, isOwnSignature } from '../../canonical/signature.ts'
import type { TargetRules, ThinkingMode } from '../../canonical/target-rules.ts'
import { effortOfBudget, isThinking } from '../../request/reasoning.ts'
import type { WarningList } from '../../request/warnings.ts'
import type { WireMessage } from './render-messages.ts'

export interface ReasoningSurroundings {
  readonly rules: TargetRules
  readonly maxTokens: number
  readonly messages: readonly WireMessage[]
  /** The answer must be a call of one specific tool. */
  readonly answersByTool: boolean
  readonly warnings: WarningList
}

export function renderReasoning(conversation: Conversation, around: ReasoningSurroundings): Thinking {
  const { rules, messages, warnings } = around
  const thinking = chooseThinking(conversation, around)
  // With a budget, the model can neither be forced to call a tool nor continue from calls it made without thinking.
  if (thinking.mode === 'enabled' && (around.answersByTool || continuesWithoutThinking(messages))) {
    warnings.add('reasoning_dropped', placeOf(conversation, 'reasoning'))
    return { mode: rules.thinking?.includes('disabled') ? 'disabled' : undefined }
  }
  // If the model reasons by default, the mode is only sent to carry its options.
  const carriesBinding = rules.thinkingBindingControls && thinking.mode === undefined && rules.thinksByDefault
  return carriesBinding && rules.thinking?.includes('adaptive') ? { ...thinking, mode: 'adaptive' } : thinking
}

function continuesWithoutThinking(messages: readonly WireMessage[]): boolean {
  const last = messages.findLast(({ role }) => role === 'user')
  if (last?.blocks[0]?.type !== 'tool_result') return false
  const caller = messages.slice(0, messages.indexOf(last)).findLast(({ role }) => role === 'assistant')
  const [first] = caller?.blocks ?? []
  return first !== undefined && !isThinkingBlock(first)
}

function isThinkingBlock({ type }: { readonly type: string }): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

// Fits the requested reasoning to what the target supports: a mode, an effort or a budget. Unsupported values become
// the nearest lower one, with a warning. An explicit "off" never becomes "on".

export interface Thinking {
  /** undefined = omit it. */
  readonly mode: ThinkingMode | undefined
  readonly budgetTokens?: number
  readonly effort?: Effort | undefined
  readonly display?: 'summarized' | 'omitted' | undefined
}

/** Supported by the provider's own models, if the target has no rules. */
const usualModes: readonly ThinkingMode[] = ['adaptive', 'disabled']
const usualEfforts: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

/** Budgets for models that only take a budget. */
const budgets: readonly (readonly [Effort, number])[] = [
  ['minimal', 2048],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', 24_576],
  ['max', 32_768],
]
const budgetMin = 1024

export function chooseThinking(
  conversation: Conversation,
  { rules, maxTokens, warnings }: { rules: TargetRules; maxTokens: number; warnings: WarningList },
): Thinking {
  const wish = conversation.reasoning
  if (!wish) return { mode: undefined }
  const place = placeOf(conversation, 'reasoning')
  const modes = rules.thinking ?? usualModes
  const effort = new EffortDial(rules, place, warnings)
  const isOff = wish.effort === 'none' || wish.budgetTokens === 0 || wish.mode === 'off'
  if (isOff || wish.mode === 'between-tools') {
    return quiet(wish, modes, rules, effort, () => warnings.add('reasoning_not_disabled', place))
  }
  // Visibility is an option of a mode, and sending a mode turns on what is off by default.
  if (isAboutShowing(wish) && !(rules.thinksByDefault && wish.visible)) return { mode: undefined }
  if (modes.includes('adaptive')) return adaptive(wish, rules, effort)
  if (modes.includes('enabled')) return enabled(wish, maxTokens, effort, (code) => warnings.add(code, place))
  const chosen = effort.take(wish.effort ?? budgetEffort(wish), undefined)
  if (chosen === undefined) warnings.add('reasoning_dropped', place)
  return { mode: undefined, effort: chosen }
}

/** Only the visibility of reasoning was set. */
function isAboutShowing({ effort, budgetTokens, mode }: ReasoningWish): boolean {
  return effort === undefined && budgetTokens === undefined && mode === undefined
}

function quiet(
  wish: ReasoningWish,
  modes: readonly ThinkingMode[],
  rules: TargetRules,
  effort: EffortDial,
  warn: () => void,
): Thinking {
  const order: ThinkingMode[] =
    wish.mode === 'between-tools' ? ['between-tools', 'disabled'] : ['disabled', 'between-tools']
  const mode = order.find((known) => modes.includes(known))
  const word = wish.effort === 'none' ? undefined : wish.effort
  if (mode) return { mode, effort: effort.take(word, mode) }
  if (rules.thinksByDefault === false && wish.mode !== 'between-tools') return { mode: undefined }
  warn()
  return { mode: undefined, effort: effort.least }
}

function adaptive(wish: ReasoningWish, rules: TargetRules, effort: EffortDial): Thinking {
  const chosen = effort.take(wish.effort ?? budgetEffort(wish), 'adaptive')
  // Models that reason by default need no mode, except for requesting visibility.
  const mode = rules.thinksByDefault && wish.visible !== true && wish.mode !== 'adaptive' ? undefined : 'adaptive'
  return {
    mode,
    effort: chosen,
    display: mode && displayOf(wish),
  }
}

function enabled(wish: ReasoningWish, maxTokens: number, effort: EffortDial, warn: (code: string) => void): Thinking {
  const wanted = wish.budgetTokens ?? budgets.find(([word]) => word === wish.effort)?.[1]
  // Such a model cannot decide by itself how much to reason, so without an amount nothing is sent.
  if (wanted === undefined && wish.mode !== 'on') return { mode: undefined }
  if (maxTokens <= budgetMin) {
    warn('reasoning_dropped')
    return { mode: undefined }
  }
  const budgetTokens = Math.min(Math.max(Math.floor(wanted ?? 8192), budgetMin), maxTokens - 1)
  if (wish.budgetTokens !== undefined && wish.budgetTokens !== budgetTokens) warn('reasoning_budget_clamped')
  return { mode: 'enabled', budgetTokens, effort: effort.take(wish.effort, 'enabled'), display: displayOf(wish) }
}

function displayOf({ visible }: ReasoningWish): Thinking['display'] {
  return visible === undefined ? undefined : visible ? 'summarized' : 'omitted'
}

function budgetEffort({ budgetTokens }: ReasoningWish): Effort | undefined {
  return budgetTokens === undefined ? undefined : effortOfBudget(budgetTokens)
}

/** The efforts a target supports. */
class EffortDial {
  readonly #known: readonly Effort[]

  constructor(
    private readonly rules: TargetRules,
    private readonly place: string,
    private readonly warnings: WarningList,
  ) {
    this.#known = (rules.efforts ?? usualEfforts).filter((word) => word !== 'none')
  }

  get least(): Effort | undefined {
    return this.#known[0]
  }

  /** The highest supported effort that is not above the requested one, otherwise the lowest. */
  take(wish: Effort | undefined, mode: ThinkingMode | undefined): Effort | undefined {
    if (wish === undefined || this.#known.length === 0) return undefined
    const limited = mode !== undefined && this.rules.effortHighAtMostWith?.includes(mode)
    const most = limited ? Math.min(rank(wish), rank('high')) : rank(wish)
    const chosen = this.#known.findLast((word) => rank(word) <= most) ?? this.#known[0]
    // Other dialects call the lowest effort minimal.
    const same = chosen === wish || (wish === 'minimal' && chosen === this.#known[0])
    if (!same) this.warnings.add('effort_adjusted', this.place)
    return chosen
  }
}

function rank(effort: Effort): number {
  return efforts.indexOf(effort)
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
export function restoreThinking(turns: readonly Turn[], issuer: string, warnings: WarningList): Turn[] {
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
    const { place, blocks } = turn
    const kept = blocks.filter((block) => block !== undefined && (i > lost || !isThinking(block))) as AssistantBlock[]
    if (kept.length < blocks.length) warnings.add('thinking_dropped', place ?? '/messages')
    return { role: 'assistant', blocks: kept, place }
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
  if (block.kind === 'thinking') {
    const signature = proofFor(block.signature, issuer)
    return signature === undefined ? undefined : { ...block, signature }
  }
  if (block.kind === 'sealed-thinking') {
    const data = proofFor(block.data, issuer)
    return data === undefined ? undefined : { ...block, data }
  }
  return block
}

function proofFor(proof: string | undefined, issuer: string): string | undefined {
  if (proof === undefined || proof === '') return undefined
  return isOwnSignature(proof) ? blobFor(issuer, proof) : proof
}
