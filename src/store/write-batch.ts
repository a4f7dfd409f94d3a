// Writes that are decided before they are sent: many operations in one commit, each whole or not at all. This is how the
// embedded engine spends one sync on what queued up during the last one.

import type { SqlValue } from './sql.ts'

/** One statement with its parameters (`?`); it must change exactly one row, or its operation is refused. */
export interface WriteStep<Also = never> {
  readonly text: string
  readonly values: readonly (SqlValue | Also)[]
  /**
   * The first value is an amount, and the rest name the row: it is the same whether the steps of a batch on one row are
   * made one by one or once with their sum, in any order among the other steps.
   */
  readonly addsUp?: true
}

/** Steps that belong together. */
export type WriteOperation<Also = never> = readonly WriteStep<Also>[]

/** Why an operation was left out of the commit: what the database said. */
export interface OperationRefusal {
  readonly message: string
}

export interface BatchWriter {
  /**
   * One transaction over all operations, durable when it resolves, with one answer per operation: undefined if it was
   * committed. Throws when the commit as a whole failed; then nothing of it was written.
   */
  commitBatch(operations: readonly WriteOperation[]): Promise<readonly (OperationRefusal | undefined)[]>
}

/** A row of some table, for a part of the house that writes it without knowing what it means. */
export interface NewRow {
  readonly table: string
  readonly columns: Readonly<Record<string, SqlValue>>
}

interface InsertText {
  readonly names: readonly string[]
  readonly text: string
}

/** Makes the steps that insert rows, and remembers the statements: the rows of a table are alike. */
export class InsertSteps {
  readonly #known = new Map<string, InsertText[]>()

  of({ table, columns }: NewRow): WriteStep {
    const names = Object.keys(columns)
    const text = this.#known.get(table)?.find((known) => isSame(known.names, names))?.text ?? this.#learn(table, names)
    return { text, values: Object.values(columns) }
  }

  /** Table and column names are text of our own, never input. */
  #learn(table: string, names: readonly string[]): string {
    const marks = names.map(() => '?').join(', ')
    const text = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`
    const known = this.#known.get(table)
    if (known) known.push({ names, text })
    else this.#known.set(table, [{ names, text }])
    return text
  }
}

function isSame(known: readonly string[], names: readonly string[]): boolean {
  if (known.length !== names.length) return false
  for (let at = 0; at < names.length; at++) if (known[at] !== names[at]) return false
  return true
}
