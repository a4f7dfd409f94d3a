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

  isNews(startedMs: number): boolean {
    return startedMs >= this.#judgesFromMs
  }

  /** Answers whether this was news. */
  park({ why, askedMs, startedMs }: ParkingReason, nowMs: number): boolean {
    const wait = waits[why]
    const isDeaf = wait.asked === 'nothing' || askedMs === undefined
    const toldMs = isDeaf ? undefined : Math.min(askedMs, believedMaxMs)
    if (!this.isNews(startedMs)) {
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
    this.#timesInRow = 0
  }
}

/** By then a provider that says neither why nor for how long does not mean a moment's rush. */
const vagueThrottlesMax = 3

/** Words by which a 429 says that it is about the pace and will pass. */
const throttleWords = /rate_limit_exceeded|rate_limit_error|(requests|tokens|input|output)[ -]per[ -](second|minute)/i

export function namesThrottle(words: string): boolean {
  return throttleWords.test(words)
}

/** Whether a 429 that explains nothing is to be read as an account that has run dry. */
export function isThirdVague(spot: ParkingSpot, { askedMs, startedMs }: ParkingReason): boolean {
  return askedMs === undefined && spot.isNews(startedMs) && spot.timesInRow >= vagueThrottlesMax - 1
}
