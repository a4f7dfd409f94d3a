// One commit of many operations on an SQLite connection. A refused operation must not spoil the others, but a savepoint
// for each costs 2–3 µs, so they are only set once something was refused, in a second run.

import { SQLiteError } from 'bun:sqlite'
import type { OperationRefusal, WriteOperation } from './write-batch.ts'

/** The part of a prepared statement that is used here. */
export interface BatchStatement {
  run(...values: (string | bigint | null)[]): { readonly changes: number }
}

type Prepare = (text: string) => BatchStatement

class Refused extends Error {}

export function runBatch(
  prepare: Prepare,
  operations: readonly WriteOperation[],
): readonly (OperationRefusal | undefined)[] {
  try {
    return inTransaction(prepare, () => {
      for (const operation of operations) apply(prepare, operation)
      return operations.map(() => undefined)
    })
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    return inTransaction(prepare, () => operations.map((operation) => applyAlone(prepare, operation)))
  }
}

function inTransaction<T>(prepare: Prepare, work: () => T): T {
  prepare('BEGIN IMMEDIATE').run()
  try {
    const result = work()
    prepare('COMMIT').run()
    return result
  } catch (thrown) {
    rollBack(prepare)
    throw thrown
  }
}

/** SQLite has ended the transaction by itself after some errors (disk full, I/O); then there is nothing to undo. */
function rollBack(prepare: Prepare): void {
  try {
    prepare('ROLLBACK').run()
  } catch {}
}

function apply(prepare: Prepare, operation: WriteOperation): void {
  for (const { text, values } of operation) {
    const { changes } = prepare(text).run(...values)
    if (changes !== 1) throw new Refused(`changed ${changes} rows instead of one: ${text}`)
  }
}

function applyAlone(prepare: Prepare, operation: WriteOperation): OperationRefusal | undefined {
  prepare('SAVEPOINT operation').run()
  try {
    apply(prepare, operation)
    prepare('RELEASE operation').run()
    return undefined
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    prepare('ROLLBACK TO operation').run()
    prepare('RELEASE operation').run()
    return { message: thrown instanceof Error ? thrown.message : String(thrown) }
  }
}

/** BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB: the next operation would meet them too. */
const storeFaults = new Set([5, 6, 7, 8, 10, 11, 13, 14, 26])

/** The fault of this operation alone: a constraint, a trigger, a row that is not there, a wrong name. */
function isRefusal(thrown: unknown): boolean {
  return !(thrown instanceof SQLiteError && storeFaults.has(thrown.errno & 0xff))
}
