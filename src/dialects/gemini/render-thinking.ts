// How much the model is asked to think: by a word where the target knows words, by a budget of tokens where it knows
// that; never both, which is refused. An explicit "off" never turns into more than the least there is.

import {
  type Conversation,
  type Effort,
  efforts,
  placeOf,
  type RawJson,
  type ReasoningWish,
} from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { effortOfBudget } from '../request/reasoning.ts'
import { type Rendering, thinksByLevel } from './rendering.ts'

/** The words that every target with words knows. */
const usualLevels: readonly Effort[] = ['low', 'medium', 'high']

/** Tokens for targets that only know a budget. */
const budgets: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 2048,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
}

/** What the two kinds of such targets take (docs of 2026-11): those that can be told not to think, and the others. */
const quietRange = { least: 512, most: 24_576 }
const alwaysRange = { least: 128, most: 32_768 }
const asItSeesFit = -1

/** The value of thinkingConfig; undefined = nothing is said. */
export function renderThinking(conversation: Conversation, rendering: Rendering): RawJson | undefined {
  const wish = conversation.reasoning
  if (!wish) return undefined
  const warn = (code: string) => rendering.warnings.add(code, placeOf(conversation, 'reasoning'))
  const isOff = isTurnedOff(wish)
  const dial = thinksByLevel(rendering.rules) ? levelFor(wish, rendering, warn) : budgetFor(wish, rendering, warn)
  if (dial === undefined) return undefined
  const members = [...dial, ['includeThoughts', isOff || wish.visible === false ? undefined : 'true'] as const]
  return members.some(([, value]) => value !== undefined) ? jsonObject(members) : undefined
}

export function isTurnedOff({ effort, budgetTokens, mode }: ReasoningWish): boolean {
  return effort === 'none' || budgetTokens === 0 || mode === 'off' || mode === 'between-tools'
}

/** undefined = the target does not think. */
type Dial = readonly (readonly [name: string, value: RawJson | undefined])[] | undefined

function levelFor(wish: ReasoningWish, { rules }: Rendering, warn: (code: string) => void): Dial {
  const known = (rules.efforts ?? usualLevels).filter((level) => level !== 'none')
  const [least] = known
  if (least === undefined) return []
  if (isTurnedOff(wish)) {
    if (rules.thinksByDefault === false) return []
    warn('reasoning_not_disabled')
    return level(least)
  }
  const wanted = wish.effort ?? (wish.budgetTokens === undefined ? undefined : effortOfBudget(wish.budgetTokens))
  if (wanted === undefined) return []
  const chosen = known.findLast((each) => efforts.indexOf(each) <= efforts.indexOf(wanted)) ?? least
  if (chosen !== wanted) warn('effort_adjusted')
  return level(chosen)
}

function level(effort: Effort): Dial {
  return [['thinkingLevel', jsonString(effort)]]
}

function budgetFor(wish: ReasoningWish, { rules }: Rendering, warn: (code: string) => void): Dial {
  const isOff = isTurnedOff(wish)
  if (!rules.thinking?.includes('enabled')) {
    if (!isOff) warn('reasoning_dropped')
    return undefined
  }
  const isQuiet = rules.thinking.includes('disabled')
  const { least, most } = isQuiet ? quietRange : alwaysRange
  if (isOff) {
    if (isQuiet) return budget(0)
    if (rules.thinksByDefault === false) return undefined
    warn('reasoning_not_disabled')
    return budget(least)
  }
  const wanted = wish.budgetTokens ?? (wish.effort && budgets[wish.effort])
  if (wanted === undefined) return wish.mode === undefined ? [] : budget(asItSeesFit)
  const given = Math.min(Math.max(Math.floor(wanted), least), most)
  if (wish.budgetTokens !== undefined && given !== wish.budgetTokens) warn('reasoning_budget_clamped')
  return budget(given)
}

function budget(tokens: number): Dial {
  return [['thinkingBudget', String(tokens)]]
}
