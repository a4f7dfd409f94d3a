// Writes that are decided before they are sent: many operations in one commit, each whole or not at all. This is how the
// embedded engine spends one sync on what queued up during the last one.

import type { SqlValue } from './sql.ts'

/**
 * One statement with its parameters (`?`); it must change exactly one row, or its operation is refused. The steps of a
 * batch are made statement by statement, and operation by operation only where one is refused that way; so in any order
 * that none is refused in, they must come to the same.
 */
export interface WriteStep {
  readonly text: string
  readonly values: readonly SqlValue[]
  /** `(?, ?)`: the text is an INSERT that ends with this row, and goes for several rows if it is repeated. */
  readonly row?: string
  /**
   * The first value is an amount, and the rest name the row: it is the same whether the steps of a batch on one row are
   * made one by one or once with their sum.
   */
  readonly addsUp?: true
}

/** Steps that belong together. */
export type WriteOperation = readonly WriteStep[]

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
  readonly row: string
}

/** Makes the steps that insert rows, and remembers the statements: the rows of a table are alike. */
export class InsertSteps {
  readonly #known = new Map<string, InsertText[]>()

  of({ table, columns }: NewRow): WriteStep {
    const names = Object.keys(columns)
    const { text, row } =
      this.#known.get(table)?.find((known) => isSame(known.names, names)) ?? this.#learn(table, names)
    return { text, row, values: Object.values(columns) }
  }

  /** Table and column names are text of our own, never input. */
  #learn(table: string, names: readonly string[]): InsertText {
    const row = `(${names.map(() => '?').join(', ')})`
    const learned = { names, text: `INSERT INTO ${table} (${names.join(', ')}) VALUES ${row}`, row }
    const known = this.#known.get(table)
    if (known) known.push(learned)
    else this.#known.set(table, [learned])
    return learned
  }
}

function isSame(known: readonly string[], names: readonly string[]): boolean {
  if (known.length !== names.length) return false
  for (let at = 0; at < names.length; at++) if (known[at] !== names[at]) return false
  return true
}
