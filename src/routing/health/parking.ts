// What is left alone until a given time because its provider said so: a credential, a credential at one model, a route.
// A spot is one such thing; it knows why and until when, and never what else is parked.

import type { FaultClass } from '../fault.ts'

interface Wait {
  readonly firstMs: number
  /** Each time in a row twice as long, up to this. */
  readonly maxMs: number
  /** What a `Retry-After` is taken for. */
  readonly asked: 'the wait' | 'the least' | 'nothing'
}

const minuteMs = 60_000
/** One that looks and never comes back does not keep the others from looking for ever. */
const probeMaxMs = 30_000
const hourMs = 60 * minuteMs

/** Some ask for more by mistake. After this we look for ourselves, which costs a round trip. */
const believedMaxMs = hourMs

const waits = {
  throttled: { firstMs: 1_000, maxMs: minuteMs, asked: 'the wait' },
  // Some send the header of their rate limit along; an account that has run dry is not full again in a second.
  'out of quota': { firstMs: 15 * minuteMs, maxMs: 6 * hourMs, asked: 'the least' },
  // Asking again costs a round trip and no money, and providers refuse good keys when their own login is down.
  'refused our credential': { firstMs: minuteMs, maxMs: hourMs, asked: 'nothing' },
  'does not know the model': { firstMs: 10 * minuteMs, maxMs: 10 * minuteMs, asked: 'nothing' },
} as const satisfies Partial<Record<FaultClass, Wait>>

export type ParkedFor = keyof typeof waits

export function isParkedFor(faultClass: FaultClass): faultClass is ParkedFor {
  return faultClass in waits
}

/** What parks something: why, how long the provider asked us to wait, and when the attempt began that learned it. */
export interface ParkingReason {
  readonly why: ParkedFor
  readonly askedMs: number | undefined
  readonly startedMs: number
}

export class ParkingSpot {
  #untilMs = Number.NEGATIVE_INFINITY
  #why: ParkedFor | undefined
  /** The n of first × 2ⁿ. */
  #timesInRow = 0
  /** Whether its provider said for how long. */
  #isTold = false
  #probeBegunMs = Number.NEGATIVE_INFINITY
  /** What began earlier tells nothing new: thirty throttled at once are one throttle. */
  #judgesFromMs = Number.NEGATIVE_INFINITY

  isParked(nowMs: number): boolean {
    return nowMs < this.#untilMs
  }

  waitMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs)
  }

  get why(): ParkedFor | undefined {
    return this.#why
  }

  /** How often in a row it was parked for the same reason without being told for how long. */
  get timesInRow(): number {
    return this.#timesInRow
  }

  /**
   * Parked for as long as we thought right, which its owner may have mended a moment later: where nobody else is left, a
   * request may look. A rush is over in seconds and is waited out.
   */
  isGuess(): boolean {
    return !this.#isTold && this.#why !== 'throttled'
  }

  /** One request at a time looks. */
  isProbeFree(nowMs: number): boolean {
    return nowMs >= this.#probeBegunMs + probeMaxMs
  }

  startProbe(nowMs: number): void {
    this.#probeBegunMs = nowMs
  }

  /** Of the attempt that began then; of others, it is none of their business. */
  endProbe(startedMs: number): void {
    if (startedMs === this.#probeBegunMs) this.#probeBegunMs = Number.NEGATIVE_INFINITY
  }

  isNews(startedMs: number): boolean {
    return startedMs >= this.#judgesFromMs
  }

  /** Answers whether this was news. */
  park({ why, askedMs, startedMs }: ParkingReason, nowMs: number): boolean {
    const wait = waits[why]
    const isDeaf = wait.asked === 'nothing' || askedMs === undefined
    const toldMs = isDeaf ? undefined : Math.min(askedMs, believedMaxMs)
    // Only a request that looked can have begun while it was parked; that it still is so is no reason to wait longer.
    if (!this.isNews(startedMs) || (this.isParked(startedMs) && why === this.#why)) {
      const lengthens = this.isParked(nowMs) && why === this.#why && toldMs !== undefined
      if (lengthens) this.#untilMs = Math.max(this.#untilMs, nowMs + toldMs)
      return false
    }
    if (why !== this.#why) this.#timesInRow = 0
    const isTold = wait.asked === 'the wait' && toldMs !== undefined
    const ownMs = Math.min(wait.maxMs, wait.firstMs * 2 ** this.#timesInRow)
    this.#untilMs = nowMs + (isTold ? toldMs : Math.max(ownMs, toldMs ?? 0))
    this.#timesInRow = isTold ? 0 : this.#timesInRow + 1
    this.#why = why
    this.#isTold = toldMs !== undefined
    this.#judgesFromMs = nowMs
    return true
  }

  noteSuccess(startedMs: number): void {
    if (this.#why !== undefined && this.isNews(startedMs)) this.#forget()
  }

  /** It is another thing from now on, such as a new credential under the same name. */
  renew(nowMs: number): void {
    this.#forget()
    this.#judgesFromMs = nowMs
  }

  #forget(): void {
    this.#untilMs = Number.NEGATIVE_INFINITY
    this.#why = undefined
    this.#isTold = false
    this.#timesInRow = 0
    this.#probeBegunMs = Number.NEGATIVE_INFINITY
  }
}

/** By then a provider that says neither why nor for how long does not mean a moment's rush. */
const vagueThrottlesMax = 3

/**
 * Words by which a 429 says that it is about the pace and will pass. Where a caller can have them quoted, it is spared
 * a longer wait and parks nothing; what tells an empty account has been looked for before.
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
 * Whether a 429 that explains nothing is to be read as an account that has run dry, for this model: it may as well be a
 * limit of the model alone, and the others must not pay for a guess.
 */
export function isThirdVague(spot: ParkingSpot, { askedMs, startedMs }: ParkingReason): boolean {
  const isRow = spot.why === 'out of quota' || spot.timesInRow >= vagueThrottlesMax - 1
  return askedMs === undefined && spot.isNews(startedMs) && isRow
}
