// How much the model is asked to reason, in the words this target has for it: a mode, an effort, a budget. What it has
// no word for is brought to the nearest below, with a warning; an explicit "off" never turns into "on".

import {
  type Conversation,
  type Effort,
  efforts,
  placeOf,
  type RawJson,
  type ReasoningWish,
} from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { TargetRules, ThinkingMode } from '../canonical/target-rules.ts'
import { effortOfBudget } from '../request/reasoning.ts'
import type { WarningList } from '../request/warnings.ts'

export interface Thinking {
  /** undefined = nothing is said about it. */
  readonly mode: ThinkingMode | undefined
  readonly budgetTokens?: number
  readonly effort?: Effort
  readonly display?: 'summarized' | 'omitted'
}

/** What the provider's own models take where nothing else is known of a target. */
const usualModes: readonly ThinkingMode[] = ['adaptive', 'disabled']
const usualEfforts: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

/** Tokens for models that only know a budget, and the words for a budget elsewhere. */
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
  // Whether reasoning is shown has its place only in a mode, and a mode turns on what is off by default.
  if (isAboutShowing(wish) && !(rules.thinksByDefault && wish.visible)) return { mode: undefined }
  if (modes.includes('adaptive')) return adaptive(wish, rules, effort)
  if (modes.includes('enabled')) return enabled(wish, maxTokens, effort, (code) => warnings.add(code, place))
  const chosen = effort.take(wish.effort ?? budgetEffort(wish), undefined)
  if (chosen === undefined) warnings.add('reasoning_dropped', place)
  return { mode: undefined, ...(chosen === undefined ? {} : { effort: chosen }) }
}

/** Nothing is said about how much the model is to reason, or whether at all. */
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
  if (mode) {
    const chosen = effort.take(word, mode)
    return { mode, ...(chosen === undefined ? {} : { effort: chosen }) }
  }
  if (rules.thinksByDefault === false && wish.mode !== 'between-tools') return { mode: undefined }
  warn()
  const least = effort.least
  return { mode: undefined, ...(least === undefined ? {} : { effort: least }) }
}

function adaptive(wish: ReasoningWish, rules: TargetRules, effort: EffortDial): Thinking {
  const chosen = effort.take(wish.effort ?? budgetEffort(wish), 'adaptive')
  // Models that reason by themselves need no mode, but the wish to see it has no other place.
  const mode = rules.thinksByDefault && wish.visible !== true && wish.mode !== 'adaptive' ? undefined : 'adaptive'
  return {
    mode,
    ...(chosen === undefined ? {} : { effort: chosen }),
    ...(mode && wish.visible !== undefined ? { display: wish.visible ? 'summarized' : 'omitted' } : {}),
  }
}

function enabled(wish: ReasoningWish, maxTokens: number, effort: EffortDial, warn: (code: string) => void): Thinking {
  const wanted = wish.budgetTokens ?? budgets.find(([word]) => word === wish.effort)?.[1]
  // To reason as it sees fit is what such a model cannot be asked; without a word about how much it stays as it is.
  if (wanted === undefined && wish.mode !== 'on') return { mode: undefined }
  if (maxTokens <= budgetMin) {
    warn('reasoning_dropped')
    return { mode: undefined }
  }
  const budgetTokens = Math.min(Math.max(Math.floor(wanted ?? 8192), budgetMin), maxTokens - 1)
  if (wish.budgetTokens !== undefined && wish.budgetTokens !== budgetTokens) warn('reasoning_budget_clamped')
  const chosen = effort.take(wish.effort, 'enabled')
  return {
    mode: 'enabled',
    budgetTokens,
    ...(chosen === undefined ? {} : { effort: chosen }),
    ...(wish.visible === undefined ? {} : { display: wish.visible ? 'summarized' : 'omitted' }),
  }
}

function budgetEffort({ budgetTokens }: ReasoningWish): Effort | undefined {
  return budgetTokens === undefined ? undefined : effortOfBudget(budgetTokens)
}

/** The efforts a target knows. */
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

  /** The highest word known that is not above the wish; the lowest where all are above. */
  take(wish: Effort | undefined, mode: ThinkingMode | undefined): Effort | undefined {
    if (wish === undefined || this.#known.length === 0) return undefined
    const limited = mode !== undefined && this.rules.effortHighAtMostWith?.includes(mode)
    const most = limited ? Math.min(rank(wish), rank('high')) : rank(wish)
    const chosen = this.#known.findLast((word) => rank(word) <= most) ?? this.#known[0]
    // minimal is a word of other dialects for the lowest effort.
    const same = chosen === wish || (wish === 'minimal' && chosen === this.#known[0])
    if (!same) this.warnings.add('effort_adjusted', this.place)
    return chosen
  }
}

function rank(effort: Effort): number {
  return efforts.indexOf(effort)
}

const modeNames = { adaptive: 'adaptive', enabled: 'enabled', disabled: 'disabled', 'between-tools': 'between_tools' }

/** `dropStale`: thinking that no longer fits its conversation is left out by the provider, not refused. */
export function writeThinking({ mode, budgetTokens, display }: Thinking, dropStale: boolean): RawJson | undefined {
  if (!mode) return undefined
  return jsonObject([
    ['type', jsonString(modeNames[mode])],
    ['budget_tokens', budgetTokens === undefined ? undefined : String(budgetTokens)],
    ['display', display === undefined ? undefined : jsonString(display)],
    ['block_binding', dropStale ? '{"prefix_mismatch_behavior":"drop_block"}' : undefined],
  ])
}

/** Whether the model will reason, as far as one can tell. */
export function isReasoning({ mode }: Thinking, { thinksByDefault }: TargetRules): boolean {
  if (mode === undefined) return thinksByDefault === true
  return mode === 'adaptive' || mode === 'enabled'
}
