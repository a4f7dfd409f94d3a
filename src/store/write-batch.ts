// How the embedded engine commits settlements: many in one transaction, so that one sync of the disk pays for all that
// queued up during the last one. The thread that writes runs a fixed set of prepared statements; a batch crosses to it as
// one text.

import { SQLiteError } from 'bun:sqlite'
import {
  addToHour,
  type CountedRequest,
  HourBuckets,
  hourColumns,
  type RequestRow,
  requestColumnNames,
} from './request-rows.ts'
import type { SqlValue } from './sql.ts'

/** A charge and everything that is written with it. Committed as a whole or not at all. */
export interface WriteOperation {
  /** The wallet that pays. */
  readonly wallet: string
  /** Leaves the wallet, and counts in the budgets. */
  readonly amount: bigint
  readonly budgets: readonly (readonly [scopeId: string, window: string])[]
  /** The wallet does not exist yet and is created. */
  readonly newWallet?: { readonly workspaceId: string; readonly createdAt: number }
  /** The charge, and the write-off if there is one. */
  readonly transfers: readonly Readonly<Record<TransferColumn, SqlValue>>[]
  /** The rows of the request log: one, or none for a caller that is not known. */
  readonly requests: readonly RequestRow[]
}

export const transferColumnNames = [
  ...['id', 'kind', 'request_id', 'seq', 'debit_account', 'credit_account', 'amount', 'price_version', 'usage'],
  ...['estimated', 'reference', 'payment_id', 'created_at', 'budgets'],
] as const satisfies readonly string[]
export type TransferColumn = (typeof transferColumnNames)[number]

/** Why an operation was left out of the commit: what the database said. */
export interface OperationRefusal {
  readonly message: string
}

export interface BatchWriter {
  /**
   * One transaction over all operations, durable when it resolves, with one result per operation: undefined if it was
   * committed. Throws when the commit as a whole failed; then nothing of it was written.
   */
  commitBatch(operations: readonly WriteOperation[]): Promise<readonly (OperationRefusal | undefined)[]>
}

/** Every integer of a settlement is below 2^53: amounts are at most 10^15 nano-dollars. */
type SentValue = string | number | null

interface SentOperation {
  readonly wallet: string
  readonly amount: number
  readonly budgets: WriteOperation['budgets']
  readonly newWallet?: WriteOperation['newWallet']
  readonly transfers: readonly (readonly SentValue[])[]
  readonly requests: readonly (readonly SentValue[])[]
  readonly counted: readonly CountedRequest[]
}

export function encodeBatch(operations: readonly WriteOperation[]): string {
  return JSON.stringify(
    operations.map(
      ({ wallet, amount, budgets, newWallet, transfers, requests }): SentOperation => ({
        wallet,
        amount: Number(amount),
        budgets,
        ...(newWallet && { newWallet }),
        transfers: transfers.map((columns) => transferColumnNames.map((name) => sentValue(columns[name]))),
        requests: requests.map(({ columns }) => requestColumnNames.map((name) => sentValue(columns[name]))),
        counted: requests.map(({ counted }) => counted),
      }),
    ),
  )
}

function sentValue(value: SqlValue): SentValue {
  return typeof value === 'bigint' ? Number(value) : value
}

type BoundValue = string | number | bigint | null

/** The part of a prepared statement that is used here. */
export interface BatchStatement {
  run(...values: BoundValue[]): { readonly changes: number }
  finalize(): void
}

const marks = (count: number) => Array(count).fill('?').join(', ')

const texts = {
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  rollBack: 'ROLLBACK',
  beginOperation: 'SAVEPOINT operation',
  endOperation: 'RELEASE operation',
  undoOperation: 'ROLLBACK TO operation',
  addAccount: `INSERT INTO accounts (id, kind, workspace_id, created_at) VALUES (?, 'wallet', ?, ?) ON CONFLICT DO NOTHING`,
  addBalance: 'INSERT INTO balances (account_id, posted, held) VALUES (?, 0, 0) ON CONFLICT DO NOTHING',
  addTransfer: `INSERT INTO transfers (${transferColumnNames.join(', ')}) VALUES (${marks(transferColumnNames.length)})`,
  addRequest: `INSERT INTO requests (${requestColumnNames.join(', ')}) VALUES (${marks(requestColumnNames.length)})`,
  pay: 'UPDATE balances SET posted = posted - ? WHERE account_id = ?',
  spend: `INSERT INTO budgets (spent, scope_id, time_window, held) VALUES (?, ?, ?, 0)
    ON CONFLICT (scope_id, time_window) DO UPDATE SET spent = budgets.spent + excluded.spent`,
  addHour: `INSERT INTO request_hours (${hourColumns.join(', ')}) VALUES (${marks(hourColumns.length)})${addToHour}`,
}

/** Runs batches on one connection. Lives in the thread that writes. */
export class BatchRunner {
  readonly #statements = new Map<string, BatchStatement>()

  constructor(private readonly prepare: (text: string) => BatchStatement) {}

  /**
   * A refused operation must not spoil the others. A savepoint for each costs more than the rest, so that is done only
   * once something was refused, in a second run.
   */
  run(text: string): readonly (OperationRefusal | undefined)[] {
    const operations = JSON.parse(text) as readonly SentOperation[]
    try {
      this.#transact(() => this.#apply(operations))
      return operations.map(() => undefined)
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
      return this.#transact(() => operations.map((operation) => this.#applyAlone(operation)))
    }
  }

  finalize(): void {
    for (const statement of this.#statements.values()) statement.finalize()
    this.#statements.clear()
  }

  #transact<T>(work: () => T): T {
    this.#do('begin')
    try {
      const result = work()
      this.#do('commit')
      return result
    } catch (thrown) {
      this.#rollBack()
      throw thrown
    }
  }

  /** After some errors (disk full, I/O) SQLite has ended the transaction already, and there is nothing to roll back. */
  #rollBack(): void {
    try {
      this.#do('rollBack')
    } catch {}
  }

  #applyAlone(operation: SentOperation): OperationRefusal | undefined {
    this.#do('beginOperation')
    try {
      this.#apply([operation])
      this.#do('endOperation')
      return undefined
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
      this.#do('undoOperation')
      this.#do('endOperation')
      return { message: thrown instanceof Error ? thrown.message : String(thrown) }
    }
  }

  /** Rows first, then one statement for each balance, budget and hour that several operations may change. */
  #apply(operations: readonly SentOperation[]): void {
    const payments = new Map<string, bigint>()
    const spent = new Map<string, { readonly budget: readonly [string, string]; amount: bigint }>()
    const hours = new HourBuckets()
    for (const { wallet, amount, budgets, newWallet, transfers, requests, counted } of operations) {
      if (newWallet) {
        this.#do('addAccount', wallet, newWallet.workspaceId, newWallet.createdAt)
        this.#do('addBalance', wallet)
      }
      for (const values of transfers) this.#do('addTransfer', ...values)
      for (const values of requests) this.#do('addRequest', ...values)
      for (const request of counted) hours.add(request)
      if (amount === 0) continue
      payments.set(wallet, (payments.get(wallet) ?? 0n) + BigInt(amount))
      for (const budget of budgets) {
        const name = budget.join(' ')
        const known = spent.get(name)
        if (known) known.amount += BigInt(amount)
        else spent.set(name, { budget, amount: BigInt(amount) })
      }
    }
    for (const [wallet, amount] of payments) {
      if (this.#do('pay', amount, wallet).changes !== 1) throw new Error(`there is no balance of ${wallet}`)
    }
    for (const { budget, amount } of spent.values()) this.#do('spend', amount, ...budget)
    for (const values of hours.rows()) this.#do('addHour', ...values)
  }

  #do(name: keyof typeof texts, ...values: BoundValue[]): { readonly changes: number } {
    let statement = this.#statements.get(name)
    if (!statement) {
      statement = this.prepare(texts[name])
      this.#statements.set(name, statement)
    }
    return statement.run(...values)
  }
}

/** BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB: the next operation would meet them too. */
const storeFaults = new Set([5, 6, 7, 8, 10, 11, 13, 14, 26])

/** The fault of one operation: a constraint, a trigger, a row that does not exist. */
function isRefusal(thrown: unknown): boolean {
  return !(thrown instanceof SQLiteError && storeFaults.has(thrown.errno & 0xff))
}
