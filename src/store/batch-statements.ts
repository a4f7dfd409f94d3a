// The statements of batches on one SQLite connection: they are few and come again, so each is prepared once. Of one that
// inserts a row there is another for two rows, for four, and so on.

import type { StepText } from './step-groups.ts'

export type BoundValue = string | bigint | number | null

/** The part of a prepared statement that is used here. */
export interface BatchStatement {
  run(values?: BoundValue[]): { readonly changes: number }
  finalize(): void
}

export class BatchStatements {
  /** By text, and then by the power of two that says for how many rows. */
  readonly #prepared = new Map<string, BatchStatement[]>()

  constructor(private readonly prepare: (text: string) => BatchStatement) {}

  of({ text, row }: StepText, power = 0): BatchStatement {
    const known = this.#prepared.get(text)
    const found = known?.[power]
    if (found) return found
    const fresh = this.prepare(text + `, ${row}`.repeat(2 ** power - 1))
    if (known) known[power] = fresh
    else this.#prepared.set(text, Object.assign([], { [power]: fresh }))
    return fresh
  }

  finalize(): void {
    for (const known of this.#prepared.values()) for (const statement of known) statement?.finalize()
    this.#prepared.clear()
  }
}
