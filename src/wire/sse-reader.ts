// Events out of a byte stream, for those who parse every one of them. Cuts with SseSplitter, reads with readSseRecord.

import { readSseRecord } from './sse-record.ts'
import { type SseLimits, SseSplitter } from './sse-splitter.ts'

export interface SseEvent {
  /** '' if the record names none; the standard's default would be `message`. */
  readonly event: string
  readonly data: string
}

export class SseReader {
  readonly #splitter: SseSplitter
  #events: SseEvent[] = []
  readonly #onRecord = (record: Uint8Array): void => {
    const { event, data } = readSseRecord(record)
    if (data !== undefined) this.#events.push({ event, data })
  }

  constructor(limits: SseLimits = {}) {
    this.#splitter = new SseSplitter(limits)
  }

  /** Throws SseOverflow. */
  push(chunk: Uint8Array): SseEvent[] {
    this.#splitter.push(chunk, this.#onRecord)
    return this.#take()
  }

  /** The standard would drop a last record without a blank line; several providers send their last one so. */
  end(): SseEvent[] {
    this.#splitter.end(this.#onRecord)
    return this.#take()
  }

  #take(): SseEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }
}
