// Talks to the store for all requests of this process: while one batch is in progress new entries queue, and the next
// batch takes them all. If the store fails or does not answer in time, the waiting requests are answered without it, and
// it is probed until it answers in time again.

import { withinTime } from '../kernel/timers.ts'
import type { AdmitAnswer } from './batch.ts'

export interface ExchangeHandlers<Entry> {
  /** Sends these together; resolves with the answers of those that get one. */
  send(entries: readonly Entry[]): Promise<readonly AdmitAnswer[]>
  /** The batch was applied, possibly after `giveUp`. */
  done(entries: readonly Entry[], answers: readonly AdmitAnswer[]): void
  /** The entry was not sent, or it is unknown whether it was applied. Returns whether to keep it for later. */
  giveUp(entry: Entry, sent: boolean): boolean
  onLoss(why: string): void
  onReturn(): void
  /** The entries to send with a probe: other replicas count by them even if the answer is late. */
  probe(): readonly Entry[]
}

export const batchMax = 128
const probeMs = 250
/** After this long beyond the timeout a batch is abandoned; the next batch finds whatever it still did. */
const hangMs = 2000

export class Exchange<Entry> {
  readonly #handlers: ExchangeHandlers<Entry>
  readonly #timeoutMs: number
  #queue: Entry[] = []
  #busy: Promise<void> | undefined
  #isAway = false
  #closed = false
  #probe: ReturnType<typeof setTimeout> | undefined

  constructor(handlers: ExchangeHandlers<Entry>, timeoutMs: number) {
    this.#handlers = handlers
    this.#timeoutMs = timeoutMs
  }

  /** The store is unreachable: decide without it. */
  get isAway(): boolean {
    return this.#isAway
  }

  submit(entry: Entry): void {
    this.#queue.push(entry)
    if (!this.#isAway) this.#start()
  }

  /** Resolves when nothing is in progress and nothing waits that could be sent. */
  async settled(): Promise<void> {
    while (this.#busy) await this.#busy
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#probe)
    await this.settled()
    clearTimeout(this.#probe)
  }

  #start(): void {
    // Not at once: what is submitted in the same turn of the event loop shares the batch.
    this.#busy ??= Promise.resolve().then(() => this.#work())
  }

  async #work(): Promise<void> {
    do {
      const entries = this.#queue.splice(0, batchMax)
      if (this.#isAway) entries.push(...this.#handlers.probe().slice(0, batchMax - entries.length))
      await this.#exchange(entries)
    } while (this.#queue.length > 0 && !this.#isAway)
    this.#busy = undefined
    if (!this.#isAway || this.#closed) return
    this.#probe = setTimeout(() => this.#start(), probeMs)
    this.#probe.unref()
  }

  async #exchange(entries: readonly Entry[]): Promise<void> {
    let ended = false
    let isLate = false
    const onTimeout = () => {
      if (ended) return
      isLate = true
      this.#lose(`no answer within ${this.#timeoutMs} ms`, entries)
    }
    // An answer that arrived while this process was busy is read before it is called late.
    const timer = setTimeout(() => setImmediate(onTimeout), this.#timeoutMs)
    try {
      const answers = await withinTime(this.#timeoutMs + hangMs, this.#handlers.send(entries))
      ended = true
      if (!isLate && this.#isAway) {
        this.#isAway = false
        this.#handlers.onReturn()
      }
      this.#handlers.done(entries, answers)
    } catch (thrown) {
      // Also after a defect in `done`: no request may be left waiting.
      ended = true
      this.#lose(thrown instanceof Error ? thrown.message : String(thrown), entries)
    } finally {
      clearTimeout(timer)
    }
  }

  #lose(why: string, sent: readonly Entry[]): void {
    if (!this.#isAway) {
      this.#isAway = true
      this.#handlers.onLoss(why)
    }
    for (const entry of sent) this.#handlers.giveUp(entry, true)
    this.#queue = this.#queue.filter((entry) => this.#handlers.giveUp(entry, false))
  }
}
