// One commit of many operations on an SQLite connection. A refused operation must not spoil the others, but a savepoint
// for each and a statement for each row cost some 5 µs more, so that is done only once something was refused, in a
// second run.

import { SQLiteError } from 'bun:sqlite'
import type { BatchStatement, BatchStatements, BoundValue } from './batch-statements.ts'
import type { StepGroup } from './step-groups.ts'
import type { OperationRefusal, WriteOperation } from './write-batch.ts'

class Refused extends Error {}

const begin = { text: 'BEGIN IMMEDIATE' }
const commit = { text: 'COMMIT' }
const undo = { text: 'ROLLBACK' }
const beginOperation = { text: 'SAVEPOINT operation' }
const endOperation = { text: 'RELEASE operation' }
const undoOperation = { text: 'ROLLBACK TO operation' }

/** One transaction, all or nothing; false = something was refused, and nothing was written. */
export function runTogether(statements: BatchStatements, groups: Iterable<StepGroup<number>>): boolean {
  try {
    inTransaction(statements, () => {
      for (const group of groups) makeGroup(statements, group)
    })
    return true
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    return false
  }
}

/** One transaction of all operations that are not refused. */
export function runApart(
  statements: BatchStatements,
  operations: readonly WriteOperation[],
): readonly (OperationRefusal | undefined)[] {
  return inTransaction(statements, () => operations.map((operation) => applyAlone(statements, operation)))
}

function inTransaction<T>(statements: BatchStatements, work: () => T): T {
  statements.of(begin).run()
  try {
    const result = work()
    statements.of(commit).run()
    return result
  } catch (thrown) {
    rollBack(statements)
    throw thrown
  }
}

/** SQLite has ended the transaction by itself after some errors (disk full, I/O); then there is nothing to undo. */
function rollBack(statements: BatchStatements): void {
  try {
    statements.of(undo).run()
  } catch {}
}

/** Of two: with more rows at once it is hardly cheaper. */
const powerMax = 5

/** Rows go in portions of powers of two, so that there are few different statements. */
function makeGroup(statements: BatchStatements, { statement, count, values }: StepGroup<number>): void {
  const width = values.length / count
  let made = 0
  while (made < count) {
    const power = statement.row === undefined ? 0 : Math.min(powerMax, 31 - Math.clz32(count - made))
    const rows = 2 ** power
    const portion = rows === count ? values : values.slice(made * width, (made + rows) * width)
    make(statements.of(statement, power), portion, rows, statement.text)
    made += rows
  }
}

function make(prepared: BatchStatement, values: readonly BoundValue[], rows: number, text: string): void {
  const { changes } = prepared.run(values as BoundValue[])
  if (changes !== rows) throw new Refused(`changed ${changes} rows instead of ${rows === 1 ? 'one' : rows}: ${text}`)
}

function applyAlone(statements: BatchStatements, operation: WriteOperation): OperationRefusal | undefined {
  statements.of(beginOperation).run()
  try {
    for (const step of operation) make(statements.of(step), step.values, 1, step.text)
    statements.of(endOperation).run()
    return undefined
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    statements.of(undoOperation).run()
    statements.of(endOperation).run()
    return { message: thrown instanceof Error ? thrown.message : String(thrown) }
  }
}

/** BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB: the next operation would meet them too. */
const storeFaults = new Set([5, 6, 7, 8, 10, 11, 13, 14, 26])

/** The fault of this operation alone: a constraint, a trigger, a row that is not there, a wrong name. */
function isRefusal(thrown: unknown): boolean {
  return !(thrown instanceof SQLiteError && storeFaults.has(thrown.errno & 0xff))
}
