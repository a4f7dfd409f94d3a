// Cooldowns: a credential, a credential at one model, or a route that is not called until a given time because its
// provider said so. Each has its own Cooldown, which knows why and until when.

import type { FaultClass } from './faults.ts'

interface Wait {
  readonly firstMs: number
  /** Doubles each time in a row, up to this. */
  readonly maxMs: number
  /** How a `Retry-After` is used. */
  readonly retryAfter: 'exact' | 'minimum' | 'ignored'
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** A probe without a result does not block others for longer. */
const probeMaxMs = 30_000
/** Some providers ask for more by mistake; after this we try again, which costs a round trip. */
const retryAfterMaxMs = hourMs

const waits = {
  throttled: { firstMs: 1_000, maxMs: minuteMs, retryAfter: 'exact' },
  // Some also send their rate limit's header, but an empty account is not refilled in a second.
  'out of quota': { firstMs: 15 * minuteMs, maxMs: 6 * hourMs, retryAfter: 'minimum' },
  // Trying again costs a round trip and no money, and providers reject good keys while their login is down.
  'refused our credential': { firstMs: minuteMs, maxMs: hourMs, retryAfter: 'ignored' },
  'does not know the model': { firstMs: 10 * minuteMs, maxMs: 10 * minuteMs, retryAfter: 'ignored' },
} as const satisfies Partial<Record<FaultClass, Wait>>

export type CooldownCause = keyof typeof waits

export function causesCooldown(faultClass: FaultClass): faultClass is CooldownCause {
  return faultClass in waits
}

export interface CooldownReason {
  readonly why: CooldownCause
  /** The wait that the provider asked for. */
  readonly retryAfterMs: number | undefined
  /** When the attempt began that learned it. */
  readonly startedMs: number
}

export class Cooldown {
  #untilMs = Number.NEGATIVE_INFINITY
  #why: CooldownCause | undefined
  /** The n of first × 2ⁿ. */
  #timesInRow = 0
  /** Whether the provider gave the duration. */
  #hasRetryAfter = false
  #probeBegunMs = Number.NEGATIVE_INFINITY
  /** Attempts that began earlier say nothing new: thirty parallel 429s are one. */
  #judgesFromMs = Number.NEGATIVE_INFINITY

  isActive(nowMs: number): boolean {
    return nowMs < this.#untilMs
  }

  waitMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs)
  }

  get why(): CooldownCause | undefined {
    return this.#why
  }

  /** How often in a row it started for the same reason without a duration from the provider. */
  get timesInRow(): number {
    return this.#timesInRow
  }

  /**
   * Whether the duration is our own guess, so that the cause may already be fixed: if no other route is left, a request may
   * probe. A rate limit passes in seconds and is waited out.
   */
  isGuess(): boolean {
    return !this.#hasRetryAfter && this.#why !== 'throttled'
  }

  /** One probe at a time. */
  isProbeFree(nowMs: number): boolean {
    return nowMs >= this.#probeBegunMs + probeMaxMs
  }

  startProbe(nowMs: number): void {
    this.#probeBegunMs = nowMs
  }

  /** Ends the probe if it is the attempt that began then. */
  endProbe(startedMs: number): void {
    if (startedMs === this.#probeBegunMs) this.#probeBegunMs = Number.NEGATIVE_INFINITY
  }

  isNews(startedMs: number): boolean {
    return startedMs >= this.#judgesFromMs
  }

  /** Returns whether this was news. */
  start({ why, retryAfterMs, startedMs }: CooldownReason, nowMs: number): boolean {
    const wait = waits[why]
    const isIgnored = wait.retryAfter === 'ignored' || retryAfterMs === undefined
    const askedMs = isIgnored ? undefined : Math.min(retryAfterMs, retryAfterMaxMs)
    // Only a probe can begin during a cooldown; that the cause persists is no reason to wait longer.
    if (!this.isNews(startedMs) || (this.isActive(startedMs) && why === this.#why)) {
      const isExtension = this.isActive(nowMs) && why === this.#why && askedMs !== undefined
      if (isExtension) this.#untilMs = Math.max(this.#untilMs, nowMs + askedMs)
      return false
    }
    if (why !== this.#why) this.#timesInRow = 0
    const isExact = wait.retryAfter === 'exact' && askedMs !== undefined
    const ownMs = Math.min(wait.maxMs, wait.firstMs * 2 ** this.#timesInRow)
    this.#untilMs = nowMs + (isExact ? askedMs : Math.max(ownMs, askedMs ?? 0))
    this.#timesInRow = isExact ? 0 : this.#timesInRow + 1
    this.#why = why
    this.#hasRetryAfter = askedMs !== undefined
    this.#judgesFromMs = nowMs
    return true
  }

  recordSuccess(startedMs: number): void {
    if (this.#why !== undefined && this.isNews(startedMs)) this.#reset()
  }

  /** Starts over, for example with a new credential under the same name. */
  renew(nowMs: number): void {
    this.#reset()
    this.#judgesFromMs = nowMs
  }

  #reset(): void {
    this.#untilMs = Number.NEGATIVE_INFINITY
    this.#why = undefined
    this.#hasRetryAfter = false
    this.#timesInRow = 0
    this.#probeBegunMs = Number.NEGATIVE_INFINITY
  }
}

/** After this many, a 429 with neither a reason nor a duration is not a short rate limit. */
const unexplainedMax = 3

/**
 * Words of a 429 about a rate that will pass. A caller who gets them quoted is only spared a longer wait; signs of an
 * empty account have been looked for before.
 */
const throttleWords = new RegExp(
  [
    'rate.?limit|limit_requests|request rate|too.?many.?requests|too many tokens|throttl|slow.?down',
    'RESOURCE_EXHAUSTED|overloaded|capacity|concurren|frequen|allocated quota',
    '(try|wait).{0,20}again|retry (in|after|later)',
    '\\b[RT]P[MSD]\\b|per[ _-](second|minute|min|hour|day|base[ _-]model)',
  ].join('|'),
  'i',
)

export function namesThrottle(words: string): boolean {
  return throttleWords.test(words)
}

/**
 * Whether an unexplained 429 is treated as an account without credit, for this model only: it may be a limit of the model,
 * and other models must not suffer from a guess (docs/decisions/0017).
 */
export function isRepeatedUnexplained429(cooldown: Cooldown, { retryAfterMs, startedMs }: CooldownReason): boolean {
  const isRow = cooldown.why === 'out of quota' || cooldown.timesInRow >= unexplainedMax - 1
  return retryAfterMs === undefined && cooldown.isNews(startedMs) && isRow
}
