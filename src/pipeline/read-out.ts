// Behind the end of an answer: the little that its provider still sends is read, so that the connection can carry the
// next call. Nobody waits for it, and whoever has more to say is cut off.

import type { Ticker, Watched } from './ticker.ts'

/** The end of a body follows that of the answer by a round of the provider's event loop, or through a proxy or two. */
const restMs = 500
const restBytesMax = 64 * 1024

/** A provider's answer, as far as reading on needs it. */
interface Rest {
  readonly reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> }
  /** Ends the upstream call at once. */
  abort(): void
}

export function readOut(rest: Rest, ticker: Ticker): void {
  const reading = new Reading(rest, ticker)
  void reading.run()
}

class Reading implements Watched {
  seat = -1
  #untilMs = Number.POSITIVE_INFINITY

  constructor(
    private readonly rest: Rest,
    private readonly ticker: Ticker,
  ) {}

  async run(): Promise<void> {
    const { rest, ticker } = this
    ticker.watch(this)
    this.#untilMs = ticker.nowMs + restMs
    try {
      for (let bytes = 0; bytes <= restBytesMax; ) {
        const { done, value } = await rest.reader.read()
        if (done) return
        bytes += value?.length ?? 0
      }
      rest.abort()
    } catch {
      // Its connection is gone, which was all there was to lose.
    } finally {
      ticker.unwatch(this)
    }
  }

  tick(nowMs: number): void {
    if (nowMs >= this.#untilMs) this.rest.abort()
  }

  expire(): void {
    this.rest.abort()
  }
}
