// The store of a simulated world, whichever engine it is: handles for processes, the power cut, and the rows as
// they are committed, read past the ledger.

import type { Database } from '../../src/store/database.ts'
import type { Turns } from './scheduler.ts'
import type { StoreFaults } from './store-faults.ts'

export interface TransferRow {
  readonly id: string
  readonly kind: string
  readonly request_id: string | null
  readonly debit_account: string
  readonly credit_account: string
  readonly amount: bigint
  readonly reference: string | null
  readonly budgets: string | null
}

export interface BookRows {
  readonly transfers: readonly TransferRow[]
  readonly balances: readonly { readonly account_id: string; readonly posted: bigint; readonly held: bigint }[]
  readonly holds: readonly { readonly request_id: string; readonly state: string }[]
  readonly budgets: readonly { scope_id: string; time_window: string; spent: bigint; held: bigint }[]
  readonly minutes: readonly { scope_id: string; time_window: string; spent: bigint }[]
  /** The rows of the request log, which are written with a charge. */
  readonly records: readonly { readonly object: string }[]
  readonly sums: readonly { readonly requests: bigint; readonly charge: bigint }[]
  readonly credits: readonly { readonly id: string; readonly remaining: bigint; readonly expires_at: bigint }[]
}

export const bookQueries: Readonly<Record<keyof BookRows, string>> = {
  transfers: `SELECT id, kind, request_id, debit_account, credit_account, amount, reference, budgets FROM transfers ORDER BY id`,
  balances: 'SELECT account_id, posted, held FROM balances',
  holds: 'SELECT request_id, state FROM holds',
  budgets: 'SELECT scope_id, time_window, spent, held FROM budgets',
  minutes:
    'SELECT scope_id, time_window, CAST(SUM(spent) AS BIGINT) AS spent FROM budget_minutes GROUP BY scope_id, time_window',
  records: 'SELECT id AS object FROM requests',
  sums: 'SELECT requests, charge FROM request_hours',
  credits: 'SELECT id, remaining, expires_at FROM credits',
}

export const givenPlan = {
  offer: (credit: bigint) =>
    `INSERT INTO plans (id, name, credit, period, created_at) VALUES ('daily', 'daily', ${credit}, 'day', 0)`,
  give: (id: string) =>
    `INSERT INTO workspace_plans (workspace_id, starts_at, ends_at, next_plan_id) VALUES ('${id}', 0, 0, 'daily')`,
}

export interface Backend {
  /** `slot`: which of the processes it is, or is the successor of. */
  openStore(owner: Turns, faults: StoreFaults, slot: number): Database
  /** The process is dead: what it had not committed never was. */
  cut(owner: Turns): Promise<void>
  readBooks(): Promise<BookRows>
  addWorkspaces(ids: readonly string[]): Promise<void>
  /** A plan that grants so much every day; its first period begins with the next round. */
  givePlan(ids: readonly string[], credit: bigint): Promise<void>
  /** Whether the transfer is committed at this very moment; undefined = it cannot be said without waiting. */
  isDurable(transferId: string): boolean | undefined
  /** After every commit: whatever is wrong with the balances then. */
  onCommit: (fault: string | undefined) => void
  close(): Promise<void>
}
