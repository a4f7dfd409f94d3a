// The clocks of an answer on its way: when each side was last heard of, and what is due. Told by numbers alone; whoever
// holds the stream acts on it.

import type { RouteTimeouts } from '../catalog/model.ts'
import { type Cut, cuts } from './interruption.ts'

/** Official clients and proxies give up on silence; a comment or ping this often keeps them. */
const keepAliveMs = 15_000
/** A client that takes nothing for this long is treated as gone. */
const writeStallMs = 30_000

export class StreamClocks {
  readonly #startedMs: number
  /** When bytes last came from the provider. */
  #heardMs: number
  /** When a piece of the answer last came; a provider's pings say that it lives, not that it works. */
  #contentMs: number
  #contentBytes = 0
  /** When bytes last went to the client. */
  #spokeMs: number
  /** Since when the client has not asked for more; undefined while it waits for us. */
  #busySinceMs: number | undefined

  constructor(nowMs: number) {
    this.#startedMs = this.#heardMs = this.#contentMs = this.#spokeMs = nowMs
  }

  /** A provider has begun. How long that took says nothing about it: others may have been asked before. */
  opened(nowMs: number): void {
    this.#heardMs = this.#contentMs = nowMs
  }

  /** `outputBytes`: all of the answer so far. */
  heard(nowMs: number, outputBytes: number): void {
    this.#heardMs = nowMs
    if (outputBytes !== this.#contentBytes) this.#contentMs = nowMs
    this.#contentBytes = outputBytes
  }

  spoke(nowMs: number): void {
    this.#spokeMs = nowMs
  }

  /** The client has enough for now, and the provider is not read. */
  pause(nowMs: number): void {
    this.#busySinceMs = nowMs
  }

  /** The client asks for more. A provider that was not listened to has not been silent. */
  resume(nowMs: number): void {
    if (this.#busySinceMs === undefined) return
    const pausedMs = nowMs - this.#busySinceMs
    this.#heardMs += pausedMs
    this.#contentMs += pausedMs
    this.#busySinceMs = undefined
  }

  /** The client takes nothing any more. */
  hasStalled(nowMs: number): boolean {
    return this.#busySinceMs !== undefined && nowMs - this.#busySinceMs > writeStallMs
  }

  /** The client has waited for long enough to doubt us. */
  owesSign(nowMs: number): boolean {
    return this.#busySinceMs === undefined && nowMs - this.#spokeMs >= keepAliveMs
  }

  /** Whether the provider's time is up. */
  cutFor(nowMs: number, { totalMs, idleMs, contentIdleMs }: RouteTimeouts): Cut | undefined {
    if (nowMs - this.#startedMs > totalMs) return cuts.total
    if (this.#busySinceMs !== undefined) return undefined
    if (nowMs - this.#heardMs > idleMs) return cuts.idle
    return nowMs - this.#contentMs > contentIdleMs ? cuts.contentIdle : undefined
  }
}
