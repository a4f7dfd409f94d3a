// How the embedded engine commits charges: many in one transaction, so that one sync of the disk pays for all that queued
// up during the last one. The thread that writes runs a fixed set of prepared statements; a batch crosses to it as one text.

import { SQLiteError } from 'bun:sqlite'
import {
  addToHour,
  HourSums,
  hourColumns,
  type RequestRow,
  type RequestValues,
  requestColumns,
  requestValues,
} from './request-rows.ts'

/** Why a request was left out of the commit: what the database said. */
export interface Refusal {
  readonly message: string
}

export interface BatchWriter {
  /**
   * Writes charged requests, takes the charges from the wallets of their workspaces and counts them in their budgets: one
   * transaction, durable when it resolves, with one result per request, undefined if it was committed. Throws when the
   * commit as a whole failed; then nothing of it was written.
   */
  commitBatch(requests: readonly RequestRow[]): Promise<readonly (Refusal | undefined)[]>
}

export function encodeBatch(requests: readonly RequestRow[]): string {
  return JSON.stringify(requests.map(requestValues))
}

type BoundValue = string | number | bigint | null

/** The part of a prepared statement that is used here. */
export interface BatchStatement {
  run(...values: BoundValue[]): { readonly changes: number }
  finalize(): void
}

const marks = (count: number) => Array(count).fill('?').join(', ')
const indexOf = (name: keyof RequestRow) => requestColumns.indexOf(name)
const [workspaceAt, chargeAt, budgetsAt] = [indexOf('workspace_id'), indexOf('charge'), indexOf('budgets')]

const texts = {
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  rollBack: 'ROLLBACK',
  beginRequest: 'SAVEPOINT request',
  endRequest: 'RELEASE request',
  undoRequest: 'ROLLBACK TO request',
  addRequest: `INSERT INTO requests (${requestColumns.join(', ')}) VALUES (${marks(requestColumns.length)})`,
  pay: 'UPDATE balances SET posted = posted - ? WHERE account_id = ?',
  spend: `INSERT INTO budgets (spent, scope_id, time_window, held) VALUES (?, ?, ?, 0)
    ON CONFLICT (scope_id, time_window) DO UPDATE SET spent = budgets.spent + excluded.spent`,
  addHour: `INSERT INTO request_hours (${hourColumns.join(', ')}) VALUES (${marks(hourColumns.length)})${addToHour}`,
}
type Statements = Readonly<Record<keyof typeof texts, BatchStatement>>

/** Runs batches on one connection. Lives in the thread that writes. */
export class BatchRunner {
  #prepared: Statements | undefined

  constructor(private readonly prepare: (text: string) => BatchStatement) {}

  /**
   * A request that is refused must not spoil the others. A savepoint for each costs more than the rest, so that is done
   * only once something was refused, in a second run.
   */
  run(text: string): readonly (Refusal | undefined)[] {
    const requests = JSON.parse(text) as readonly RequestValues[]
    try {
      this.#transact((statements) => apply(statements, requests))
      return requests.map(() => undefined)
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
      return this.#transact((statements) => requests.map((request) => applyAlone(statements, request)))
    }
  }

  finalize(): void {
    for (const statement of Object.values(this.#prepared ?? {})) statement.finalize()
    this.#prepared = undefined
  }

  #transact<T>(work: (statements: Statements) => T): T {
    const statements = this.#statements()
    statements.begin.run()
    try {
      const result = work(statements)
      statements.commit.run()
      return result
    } catch (thrown) {
      // After some errors (disk full, I/O) SQLite has ended the transaction already, and there is nothing to roll back.
      try {
        statements.rollBack.run()
      } catch {}
      throw thrown
    }
  }

  /** Not before the first batch: the tables are made after the connection. */
  #statements(): Statements {
    this.#prepared ??= Object.fromEntries(
      Object.entries(texts).map(([name, text]) => [name, this.prepare(text)]),
    ) as Statements
    return this.#prepared
  }
}

function applyAlone(statements: Statements, request: RequestValues): Refusal | undefined {
  statements.beginRequest.run()
  try {
    apply(statements, [request])
    statements.endRequest.run()
    return undefined
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    statements.undoRequest.run()
    statements.endRequest.run()
    return { message: thrown instanceof Error ? thrown.message : String(thrown) }
  }
}

/** Rows first, then one statement for each balance, budget and hour that several requests may change. */
function apply(statements: Statements, requests: readonly RequestValues[]): void {
  const payments = new Map<string, bigint>()
  const spent = new Map<string, bigint>()
  const hours = new HourSums()
  for (const request of requests) {
    statements.addRequest.run(...request)
    hours.add(request)
    const charge = BigInt(request[chargeAt] ?? 0)
    if (charge === 0n) continue
    const wallet = `wallet:${request[workspaceAt]}`
    payments.set(wallet, (payments.get(wallet) ?? 0n) + charge)
    const budgets = request[budgetsAt]
    if (typeof budgets !== 'string') continue
    for (const name of budgets.split(',')) spent.set(name, (spent.get(name) ?? 0n) + charge)
  }
  for (const [wallet, amount] of payments) {
    if (statements.pay.run(amount, wallet).changes !== 1) throw new Error(`there is no balance of ${wallet}`)
  }
  for (const [name, amount] of spent) statements.spend.run(amount, ...name.split(' '))
  for (const values of hours.rows()) statements.addHour.run(...values)
}

/** BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB: the next request would meet them too. */
const storeFaults = new Set([5, 6, 7, 8, 10, 11, 13, 14, 26])

/** The fault of one request: a constraint, a trigger, a row that does not exist. */
function isRefusal(thrown: unknown): boolean {
  return !(thrown instanceof SQLiteError && storeFaults.has(thrown.errno & 0xff))
}
