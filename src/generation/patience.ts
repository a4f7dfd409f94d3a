// How long an attempt may take and who may end it: it stops when time is up or the client has gone, and remembers
// which, so that neither is taken for the provider's fault.

import { type AttemptFault, attemptFault } from '../routing/fault.ts'
import type { Watched } from './ticker.ts'

/** From here on an attempt is not an ordinary one; well below every limit on silent connections. */
const longMs = 5_000

export class Patience implements Watched {
  readonly #controller = new AbortController()
  readonly #clientGone: AbortSignal
  readonly #leave = (): void => this.#controller.abort()
  readonly #startedMs: number
  readonly #limitMs: number
  #onLong: (() => void) | undefined
  #late = false

  constructor(startedMs: number, limitMs: number, clientGone: AbortSignal, onLong: () => void) {
    this.#startedMs = startedMs
    this.#limitMs = limitMs
    this.#clientGone = clientGone
    this.#onLong = onLong
    clientGone.addEventListener('abort', this.#leave)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  tick(monotonicMs: number): void {
    const tookMs = monotonicMs - this.#startedMs
    if (tookMs > longMs) {
      this.#onLong?.()
      this.#onLong = undefined
    }
    if (tookMs < this.#limitMs || this.#controller.signal.aborted) return
    this.#late = true
    this.#controller.abort()
  }

  abort(): void {
    this.#controller.abort()
  }

  /** The fault as the client's going or the clock explain it, or as it looked from the wire. */
  fault(seen: 'unreachable' | 'broken' | 'garbled'): AttemptFault {
    if (this.#clientGone.aborted) return attemptFault('client left')
    return attemptFault(this.#late ? 'timed out' : seen)
  }

  /** The attempt is over; from here whoever holds the open stream watches the client. */
  end(): void {
    this.#clientGone.removeEventListener('abort', this.#leave)
  }
}
