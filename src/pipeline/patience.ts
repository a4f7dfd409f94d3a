// How long an attempt may take and who may end it: it stops when time is up, no connection is made, the client has gone,
// or the gateway shuts down, and remembers which, so that none is taken for the provider's fault.

import type { RouteTimeouts } from '../catalog/model.ts'
import type { ProviderFault } from '../dialects/canonical/faults.ts'
import type { ConnectionWatch } from '../providers/provider.ts'
import { type AttemptFault, attemptFault } from '../routing/fault.ts'
import type { Ticker, Watched } from './ticker.ts'

/** From here on an attempt is not an ordinary one; well below every limit on silent connections. */
const longMs = 5_000

/** Whose attempt it is. */
export interface Waiting {
  readonly clientGone: AbortSignal
  readonly story: { readonly connection: { keepOpen(): void } }
}

function aborting(controller: AbortController): () => void {
  return () => controller.abort()
}

export class Patience implements Watched, ConnectionWatch {
  seat = -1
  readonly #controller = new AbortController()
  /** Whoever passes the answer on keeps this for as long, and with it nothing else of the attempt. */
  readonly abort = aborting(this.#controller)
  readonly #startedMs: number
  #limitMs: number
  readonly #waiting: Waiting
  /** Since when nothing has come, once an answer has begun; set at the next tick. */
  #silentSinceMs: number | undefined
  #idleMs = Number.POSITIVE_INFINITY
  #endedBy: 'clock' | 'connect clock' | 'shutdown' | undefined
  #isConnecting = false
  /** Set at the first tick after the connection attempt began. */
  #connectingSinceMs: number | undefined

  /** `lost`: another route has answered, and this attempt is needed no more. `connectMs`: limit for a connection. */
  constructor(
    startedMs: number,
    limitMs: number,
    waiting: Waiting,
    private readonly lost?: AbortSignal,
    private readonly connectMs = Number.POSITIVE_INFINITY,
  ) {
    this.#startedMs = startedMs
    this.#limitMs = limitMs
    this.#waiting = waiting
    lost?.addEventListener('abort', this.abort)
    if (waiting.clientGone.aborted) this.abort()
    else waiting.clientGone.addEventListener('abort', this.abort)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  tick(monotonicMs: number): void {
    const tookMs = monotonicMs - this.#startedMs
    if (tookMs > longMs) this.#waiting.story.connection.keepOpen()
    this.#silentSinceMs ??= monotonicMs
    if (tookMs >= this.#limitMs || monotonicMs - this.#silentSinceMs > this.#idleMs) this.#endBy('clock')
    if (!this.#isConnecting) return
    this.#connectingSinceMs ??= monotonicMs
    if (monotonicMs - this.#connectingSinceMs >= this.connectMs) this.#endBy('connect clock')
  }

  connecting(): void {
    this.#isConnecting = true
  }

  connected(): void {
    this.#isConnecting = false
  }

  /** A part of the answer has come, and not the last: from here silence counts, and how long all of it takes. */
  goOn({ idleMs, totalMs }: Pick<RouteTimeouts, 'idleMs' | 'totalMs'>): void {
    this.#silentSinceMs = undefined
    this.#idleMs = idleMs
    this.#limitMs = totalMs
  }

  /** Only so much longer, whatever was left. */
  hurry(monotonicMs: number, leftMs: number): void {
    this.#limitMs = Math.min(this.#limitMs, monotonicMs - this.#startedMs + leftMs)
  }

  expire(): void {
    this.#endBy('shutdown')
  }

  /** The fault as the client's going, the clock or our own end explain it, or as it looked from the wire. */
  fault(seen: 'unreachable' | 'broken' | 'garbled', said?: ProviderFault): AttemptFault {
    const needless = this.#needless()
    if (needless) return needless
    if (this.#endedBy === 'connect clock') return attemptFault('unreachable')
    return this.#endedBy === 'clock' ? attemptFault('timed out') : attemptFault(seen, said)
  }

  /** Where it was ended for nothing that the provider did or left undone. */
  endedAside(): AttemptFault | undefined {
    return this.#controller.signal.aborted ? this.#needless() : undefined
  }

  /** The attempt is over; from here whoever holds the open stream watches the client. */
  end(): void {
    this.lost?.removeEventListener('abort', this.abort)
    this.#waiting.clientGone.removeEventListener('abort', this.abort)
  }

  #needless(): AttemptFault | undefined {
    if (this.lost?.aborted) return attemptFault('superseded')
    if (this.#waiting.clientGone.aborted) return attemptFault('client left')
    return this.#endedBy === 'shutdown' ? attemptFault('shut down') : undefined
  }

  #endBy(whom: 'clock' | 'connect clock' | 'shutdown'): void {
    if (this.#controller.signal.aborted) return
    this.#endedBy = whom
    this.#controller.abort()
  }
}

/** Waits between two attempts. Ends early, and says why, when the client goes or the gateway shuts down. */
export async function pauseBetweenAttempts(
  milliseconds: number,
  { clientGone, story }: Waiting,
  ticker: Ticker,
): Promise<AttemptFault | undefined> {
  const over = Promise.withResolvers<AttemptFault | undefined>()
  const watched: Watched = {
    seat: -1,
    tick(nowMs) {
      story.connection.keepOpen()
      if (clientGone.aborted) over.resolve(attemptFault('client left'))
      else if (nowMs >= untilMs) over.resolve(undefined)
    },
    expire: () => over.resolve(attemptFault('shut down')),
  }
  ticker.watch(watched)
  const untilMs = ticker.nowMs + milliseconds
  try {
    return await over.promise
  } finally {
    ticker.unwatch(watched)
  }
}
