// One commit of many operations on an SQLite connection. A refused operation must not spoil the others, but a savepoint
// for each costs 2–3 µs, so they are only set once something was refused, in a second run.

import { SQLiteError } from 'bun:sqlite'
import type { OperationRefusal, WriteOperation, WriteStep } from './write-batch.ts'

type Operation = WriteOperation<number>
type Step = WriteStep<number>

/** The part of a prepared statement that is used here. */
export interface BatchStatement {
  run(values?: (string | bigint | number | null)[]): { readonly changes: number }
}

type Prepare = (text: string) => BatchStatement

class Refused extends Error {}

export function runBatch(
  prepare: Prepare,
  operations: readonly Operation[],
): readonly (OperationRefusal | undefined)[] {
  try {
    inTransaction(prepare, () => applyAll(prepare, operations))
    return operations.map(() => undefined)
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

/** What adds up is made once for each row, after everything else. */
function applyAll(prepare: Prepare, operations: readonly Operation[]): void {
  const sums = new Map<string, Step>()
  for (const operation of operations) {
    for (const step of operation) {
      if (step.addsUp) addUp(sums, step)
      else make(prepare, step)
    }
  }
  for (const step of sums.values()) make(prepare, step)
}

function addUp(sums: Map<string, Step>, step: Step): void {
  const [amount, ...row] = step.values
  const name = `${step.text}\n${row.join('\n')}`
  const sum = BigInt(sums.get(name)?.values[0] ?? 0) + BigInt(amount ?? 0)
  sums.set(name, { text: step.text, values: [sum, ...row] })
}

function make(prepare: Prepare, { text, values }: Step): void {
  const { changes } = prepare(text).run(values as (string | bigint | number | null)[])
  if (changes !== 1) throw new Refused(`changed ${changes} rows instead of one: ${text}`)
}

function applyAlone(prepare: Prepare, operation: Operation): OperationRefusal | undefined {
  prepare('SAVEPOINT operation').run()
  try {
    for (const step of operation) make(prepare, step)
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
