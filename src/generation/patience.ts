// How long an attempt may take and who may end it: it stops when time is up, nobody is there, the client has gone, or
// the gateway shuts down, and remembers which, so that none is taken for the provider's fault.

import type { RouteTimeouts } from '../catalog/model.ts'
import type { ProviderFault } from '../dialects/canonical/provider-fault.ts'
import { type AttemptFault, attemptFault } from '../routing/fault.ts'
import type { Watched } from './ticker.ts'

/** From here on an attempt is not an ordinary one; well below every limit on silent connections. */
const longMs = 5_000

/** Whose attempt it is. */
export interface Waiting {
  readonly clientGone: AbortSignal
  readonly story: { readonly connection: { keepOpen(): void } }
}

/** Whether nobody is there who could answer; asked while nothing has come. */
export type IsSilent = (monotonicMs: number) => boolean

export class Patience implements Watched {
  seat = -1
  readonly #controller = new AbortController()
  readonly #startedMs: number
  #limitMs: number
  readonly #waiting: Waiting
  /** Since when nothing has come, once an answer has begun; set at the next tick. */
  #silentSinceMs: number | undefined
  #idleMs = Number.POSITIVE_INFINITY
  #endedBy: 'clock' | 'silence' | 'shutdown' | undefined
  #isAnswering = false
  #watchesClient = false

  /** `lost`: another route has answered, and this attempt is needed no more. */
  constructor(
    startedMs: number,
    limitMs: number,
    waiting: Waiting,
    private readonly lost?: AbortSignal,
    private readonly isSilent?: IsSilent,
  ) {
    this.#startedMs = startedMs
    this.#limitMs = limitMs
    this.#waiting = waiting
    lost?.addEventListener('abort', this.#leave)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  tick(monotonicMs: number): void {
    this.#watchClient()
    const tookMs = monotonicMs - this.#startedMs
    if (tookMs > longMs) this.#waiting.story.connection.keepOpen()
    this.#silentSinceMs ??= monotonicMs
    if (tookMs >= this.#limitMs || monotonicMs - this.#silentSinceMs > this.#idleMs) this.#endBy('clock')
    else if (!this.#isAnswering && this.isSilent?.(monotonicMs)) this.#endBy('silence')
  }

  /** The head of an answer has come. */
  heard(): void {
    this.#isAnswering = true
  }

  /** A part of the answer has come, and not the last: from here silence counts, and how long all of it takes. */
  goOn({ idleMs, totalMs }: Pick<RouteTimeouts, 'idleMs' | 'totalMs'>): void {
    this.#silentSinceMs = undefined
    this.#idleMs = idleMs
    this.#limitMs = totalMs
  }

  expire(): void {
    this.#endBy('shutdown')
  }

  abort(): void {
    this.#controller.abort()
  }

  /** The fault as the client's going, the clock or our own end explain it, or as it looked from the wire. */
  fault(seen: 'unreachable' | 'broken' | 'garbled', said?: ProviderFault): AttemptFault {
    if (this.lost?.aborted) return attemptFault('superseded')
    if (this.#waiting.clientGone.aborted) return attemptFault('client left')
    if (this.#endedBy === 'shutdown') return attemptFault('shut down')
    if (this.#endedBy === 'silence') return attemptFault('unreachable')
    return this.#endedBy === 'clock' ? attemptFault('timed out') : attemptFault(seen, said)
  }

  /** The attempt is over; from here whoever holds the open stream watches the client. */
  end(): void {
    this.lost?.removeEventListener('abort', this.#leave)
    if (this.#watchesClient) this.#waiting.clientGone.removeEventListener('abort', this.#leave)
  }

  /** From the first tick on; most attempts that fail fast never look. */
  #watchClient(): void {
    if (this.#watchesClient) return
    this.#watchesClient = true
    const { clientGone } = this.#waiting
    if (clientGone.aborted) this.#leave()
    else clientGone.addEventListener('abort', this.#leave)
  }

  #endBy(whom: 'clock' | 'silence' | 'shutdown'): void {
    if (this.#controller.signal.aborted) return
    this.#endedBy = whom
    this.#controller.abort()
  }

  readonly #leave = (): void => this.#controller.abort()
}
