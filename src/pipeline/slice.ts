// How much is held for a request: its input at the dearest price it could have, and a slice of its output. Rules for
// small wallets and nearly used limits are here too; nobody is locked out by a large default cap, and nobody is served beyond what they have.

import { type Price, priceBound, type UsageBound } from '../catalog/price.ts'
import type { Nano } from '../kernel/money.ts'

/** What a hold is made of. */
export interface SliceFacts extends Omit<UsageBound, 'inputTokens' | 'outputTokens'> {
  readonly price: Price
  /** The most output tokens of one answer. */
  readonly cap: number
  readonly choices: number
  /** The most searches of the web that are run for it. */
  readonly webSearches: number
  /** The whole cap is held at once: the answer is not streamed, or part of what it bills is never shown. */
  readonly holdsWholeCap: boolean
  /** The cap must not fall below this: a budget for thinking, and one token to say something. */
  readonly capLeast: number
}

export interface Slice {
  readonly amount: Nano
  readonly inputTokens: number
  /** Over all choices. */
  readonly outputTokens: number
  /** The most output tokens of one answer, as far as there is room for it. */
  readonly cap: number
  /** What the cap was fitted to: the wallet's balance, or a spend limit. */
  readonly within?: 'balance' | 'limit'
}

/** Output tokens held at a time while an answer streams. */
export const sliceTokens = 4096
/** Less than this is not worth a call. */
export const sliceTokensLeast = 256

export function sliceOf(facts: SliceFacts, inputTokens: number, cap: number, most = sliceTokens): Slice {
  const outputTokens = (facts.holdsWholeCap ? cap : Math.min(cap, most)) * facts.choices
  const amount = priceBound(facts.price, { ...facts, inputTokens, outputTokens })
  return { amount, inputTokens, outputTokens, cap }
}

/**
 * What must be free for the usual slice to be enough: twice as much, so that an estimate may be wrong, and the price of
 * the whole answer, so that it need not be cut short. A wallet with less is thin.
 */
export function roomLeast(facts: SliceFacts, usual: Slice): Nano {
  const twice = (usual.amount * 2n) as Nano
  if (facts.holdsWholeCap) return twice
  const whole = sliceOf({ ...facts, holdsWholeCap: true }, usual.inputTokens, usual.cap).amount
  return whole > twice ? whole : twice
}

/** What a wallet must hold for the request to be worth trying. */
export function leastSlice(facts: SliceFacts, inputTokens: number): Slice {
  return sliceOf({ ...facts, holdsWholeCap: true }, inputTokens, Math.min(facts.cap, sliceTokensLeast))
}

/** The slices to try, largest first, where there is little room; none = there is too little for any. */
export function thinSlices(facts: SliceFacts, inputTokens: number, room: Nano): readonly Slice[] {
  const cap = affordableCap(facts, inputTokens, room)
  if (cap < Math.min(facts.cap, sliceTokensLeast) || cap < Math.min(facts.cap, facts.capLeast)) return []
  if (facts.holdsWholeCap) return [sliceOf(facts, inputTokens, cap)]
  const slices: Slice[] = []
  for (let most = sliceTokens; most >= sliceTokensLeast; most /= 2) {
    const slice = sliceOf(facts, inputTokens, cap, most)
    if (slice.amount !== slices.at(-1)?.amount) slices.push(slice)
  }
  return slices
}

/** The largest cap whose whole price there is room for. */
function affordableCap(facts: SliceFacts, inputTokens: number, room: Nano): number {
  const pays = (cap: number): boolean =>
    priceBound(facts.price, { ...facts, inputTokens, outputTokens: cap * facts.choices }) <= room
  if (pays(facts.cap)) return facts.cap
  let low = -1
  let high = facts.cap
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (pays(middle)) low = middle
    else high = middle
  }
  return low
}
