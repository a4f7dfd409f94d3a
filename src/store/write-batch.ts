// Writes that are decided before they are sent: many operations in one commit, each whole or not at all. This is how the
// embedded engine spends one sync on what queued up during the last one.

import type { SqlValue } from './sql.ts'

/** One statement with its parameters (`?`); it must change exactly one row, or its operation is refused. */
export interface WriteStep {
  readonly text: string
  readonly values: readonly SqlValue[]
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

/** Table and column names are text of our own, never input. */
export function insertStep({ table, columns }: NewRow): WriteStep {
  const names = Object.keys(columns)
  const marks = names.map(() => '?').join(', ')
  return { text: `INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`, values: Object.values(columns) }
}
