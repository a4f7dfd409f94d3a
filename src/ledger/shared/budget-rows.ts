// The statements on the rows of budgets. They are locked after the balances, by ascending name, decided upon in memory
// and written back at once; a batch without budgets asks nothing here.

import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { type BudgetName, type BudgetState, budgetName, splitBudgetName } from '../budget.ts'
import { BudgetCounters } from '../budget-counters.ts'

interface BudgetRow {
  readonly scope_id: string
  readonly time_window: string
  readonly spent: Nano
  readonly held: Nano
}

/** Locks them until the transaction ends; those that were never named before are made. */
export async function lockBudgets(sql: Sql, wanted: Iterable<BudgetName>): Promise<BudgetCounters> {
  const names = [...new Set(wanted)].sort()
  if (names.length === 0) return new BudgetCounters()
  let rows = await lockRows(sql, names)
  if (rows.length < names.length) {
    const { scopes, windows } = listsOf(names)
    await sql`INSERT INTO budgets (scope_id, time_window, spent, held) SELECT
        unnest(string_to_array(${scopes}, ',')), unnest(string_to_array(${windows}, ',')), 0, 0 ON CONFLICT DO NOTHING`
    rows = await lockRows(sql, names)
  }
  return new BudgetCounters(rows.map((row) => [budgetName(row.scope_id, row.time_window), row]))
}

export async function writeBudgets(sql: Sql, counters: BudgetCounters): Promise<void> {
  const names = counters.names()
  if (names.length === 0) return
  const { scopes, windows } = listsOf(names)
  const states = names.map((name) => counters.state(name))
  await sql`UPDATE budgets SET spent = moved.spent, held = moved.held FROM (SELECT
      unnest(string_to_array(${scopes}, ',')) AS scope_id, unnest(string_to_array(${windows}, ',')) AS time_window,
      CAST(unnest(string_to_array(${states.map(({ spent }) => spent).join(',')}, ',')) AS BIGINT) AS spent,
      CAST(unnest(string_to_array(${states.map(({ held }) => held).join(',')}, ',')) AS BIGINT) AS held) AS moved
    WHERE budgets.scope_id = moved.scope_id AND budgets.time_window = moved.time_window`
}

export async function readBudget(database: Database, scopeId: string, window: string): Promise<BudgetState> {
  const [row] = await database.sql<BudgetState>`SELECT spent, held FROM budgets
    WHERE scope_id = ${scopeId} AND time_window = ${window}`
  return row ?? new BudgetCounters().state(budgetName(scopeId, window))
}

function lockRows(sql: Sql, names: readonly BudgetName[]): Promise<BudgetRow[]> {
  const { scopes, windows } = listsOf(names)
  return sql<BudgetRow>`SELECT budgets.scope_id, budgets.time_window, spent, held FROM budgets JOIN (SELECT
      unnest(string_to_array(${scopes}, ',')) AS scope_id, unnest(string_to_array(${windows}, ',')) AS time_window) AS wanted
    ON budgets.scope_id = wanted.scope_id AND budgets.time_window = wanted.time_window
    ORDER BY budgets.scope_id, budgets.time_window FOR UPDATE OF budgets`
}

/** As text, so that the statements are the same for any number of them. */
function listsOf(names: readonly BudgetName[]): { readonly scopes: string; readonly windows: string } {
  const pairs = names.map(splitBudgetName)
  return { scopes: pairs.map(([scopeId]) => scopeId).join(','), windows: pairs.map(([, window]) => window).join(',') }
}
