// Writes what becomes of the lines of one batch: while one transaction runs, what is to be written waits, and the next takes all
// of it. Answers wait for theirs, because they are charged after that; what is final is written with them.

import type { BatchId } from '../kernel/ids.ts'
import type { BatchStore, LineFigures, NewLine } from '../tenancy/batches.ts'

interface Waiting {
  readonly line: NewLine
  readonly kept: PromiseWithResolvers<boolean>
}

/** Rows of one transaction: charges wait behind it on the embedded engine. */
const portionMax = 32

export class LineWriter {
  readonly #keeps: Waiting[] = []
  readonly #charged: (LineFigures & { readonly line: number })[] = []
  readonly #uncharged: NewLine[] = []
  #running: Promise<void> | undefined

  constructor(
    private readonly store: BatchStore,
    private readonly batchId: BatchId,
  ) {}

  /** Resolves when the answer is stored. False = there is one for the line already. */
  keep(line: NewLine): Promise<boolean> {
    const kept = Promise.withResolvers<boolean>()
    this.#keeps.push({ line, kept })
    this.#start().catch(() => {})
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
    this.#running ??= this.#write().finally(() => (this.#running = undefined))
    return this.#running
  }

  async #write(): Promise<void> {
    do {
      const keeps = this.#keeps.splice(0, portionMax)
      const charged = this.#charged.slice(0, portionMax)
      const uncharged = this.#uncharged.slice(0, portionMax)
      try {
        const lines = keeps.map(({ line }) => line)
        const kept = await this.store.write(this.batchId, { kept: lines, charged, uncharged })
        for (const { line, kept: one } of keeps) one.resolve(kept.has(line.line))
      } catch (error) {
        for (const { kept } of [...keeps, ...this.#keeps.splice(0)]) kept.reject(error)
        throw error
      }
      this.#charged.splice(0, charged.length)
      this.#uncharged.splice(0, uncharged.length)
    } while (this.#keeps.length > 0)
  }
}
