// Writes what becomes of the lines of one batch, in few transactions, because charges of other requests wait behind each: answers
// wait for one another, and what is to be written while one runs waits for the next. Answers are charged after theirs; what is
// final is written with them.

import type { BatchId } from '../kernel/ids.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { BatchStore, LineFigures, NewLine } from '../tenancy/batches.ts'

interface Waiting {
  readonly line: NewLine
  readonly kept: PromiseWithResolvers<boolean>
}

/** Rows of one transaction: charges wait behind it on the embedded engine. */
const portionMax = 32
/** How long an answer waits at most for those of other lines: nobody waits for a single line. */
const gatherMs = 100

export class LineWriter {
  readonly #keeps: Waiting[] = []
  readonly #charged: (LineFigures & { readonly line: number })[] = []
  readonly #uncharged: NewLine[] = []
  #running: Promise<void> | undefined
  #gathering: Timer | undefined

  constructor(
    private readonly store: Pick<BatchStore, 'write'>,
    private readonly batchId: BatchId,
    /** How many lines may still bring an answer, those included whose answer waits. */
    private readonly expected: () => number,
  ) {}

  /** Resolves when the answer is stored. False = there is one for the line already. */
  keep(line: NewLine): Promise<boolean> {
    const kept = Promise.withResolvers<boolean>()
    this.#keeps.push({ line, kept })
    const start = () => void this.#start().catch(() => {})
    if (this.#keeps.length >= Math.min(portionMax, this.expected())) start()
    else this.#gathering ??= setTimeout(start, gatherMs)
    return kept.promise
  }

  /** The answer that was kept is charged. */
  charged(line: number, figures: LineFigures): void {
    this.#charged.push({ ...figures, line })
  }

  /** It ended without a charge, and is final. */
  uncharged(line: NewLine): void {
    this.#uncharged.push(line)
  }

  /** Writes what waits. Rejects if that fails; what is final waits on then. */
  async flush(): Promise<void> {
    while (this.#running || this.#charged.length > 0 || this.#uncharged.length > 0) await this.#start()
  }

  #start(): Promise<void> {
    this.#running ??= this.#write().finally(() => {
      this.#running = undefined
      // One may have come after the last look, and found this one running.
      if (this.#keeps.length > 0) this.#start().catch(() => {})
    })
    return this.#running
  }

  async #write(): Promise<void> {
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    do {
      const keeps = this.#keeps.splice(0, portionMax)
      const charged = this.#charged.slice(0, portionMax)
      const uncharged = this.#uncharged.slice(0, portionMax)
      try {
        const lines = keeps.map(({ line }) => line)
        const kept = await this.store.write(this.batchId, { kept: lines, charged, uncharged })
        for (const { line, kept: one } of keeps) {
          one.resolve(kept.has(line.line))
          // What follows is up to a millisecond of work for each.
          await yieldToEventLoop()
        }
      } catch (error) {
        for (const { kept } of [...keeps, ...this.#keeps.splice(0)]) kept.reject(error)
        throw error
      }
      this.#charged.splice(0, charged.length)
      this.#uncharged.splice(0, uncharged.length)
    } while (this.#keeps.length > 0)
  }
}
