// The state of spend limits as the API answers it: what is spent of each, in which window.

import type { z } from 'zod'
import type { spendStateField } from '../../api/fields.ts'
import { isoTime } from '../../kernel/clock.ts'
import { formatUsd, type Nano, zeroNano } from '../../kernel/money.ts'
import { isRolling, minuteAt, type RollingWord, rollingMinutes, type SpendLimit } from '../../kernel/spend-limit.ts'
import { windowAt, windowEnd, windowStart } from '../../ledger/budget.ts'
import { portionsOf, templateOf } from '../../store/insert-rows.ts'
import type { Sql } from '../../store/sql.ts'

/** A spend limit as far as it counts one subject: one counter of the ledger. */
export interface CountedLimit {
  /** The name of the counter: see `scopeText`. */
  readonly scope: string
  readonly limit: SpendLimit
  /** From when the limits apply that it is one of. */
  readonly startsAt?: number | undefined
}

/** What was spent, by counter and window. */
export type Spent = (scope: string, window: string) => Nano

/** One query for windows of the calendar, and one for each length of rolling windows. */
export async function readSpent(sql: Sql, counted: readonly CountedLimit[], now: number): Promise<Spent> {
  const spent = new Map<string, Nano>()
  const byWindow = Map.groupBy(counted, ({ limit: { window } }) => (isRolling(window) ? window : undefined))
  for (const [rolling, ofWindow] of byWindow) {
    for (const scopes of portionsOf([...new Set(ofWindow.map(({ scope }) => scope))])) {
      const rows = rolling ? await rollingSums(sql, scopes, rolling, now) : await calendarSums(sql, scopes)
      for (const row of rows) spent.set(`${row.scope_id} ${row.time_window}`, row.spent)
    }
  }
  return (scope, window) => spent.get(`${scope} ${window}`) ?? zeroNano
}

interface SpentRow {
  readonly scope_id: string
  readonly time_window: string
  readonly spent: Nano
}

function calendarSums(sql: Sql, scopes: readonly string[]): Promise<SpentRow[]> {
  const marks = scopes.slice(1).fill(', ')
  const text = ['SELECT scope_id, time_window, spent FROM budgets WHERE scope_id IN (', ...marks, ')']
  return sql<SpentRow>(templateOf(text), ...scopes)
}

function rollingSums(sql: Sql, scopes: readonly string[], word: RollingWord, now: number): Promise<SpentRow[]> {
  const marks = scopes.slice(1).fill(', ')
  const text = [
    `SELECT scope_id, time_window, CAST(SUM(spent) AS BIGINT) AS spent FROM budget_minutes WHERE time_window = `,
    ...[' AND minute >= ', ' AND scope_id IN (', ...marks, ') GROUP BY scope_id, time_window'],
  ]
  const from = BigInt(minuteAt(now) - (rollingMinutes(word) ?? 0))
  return sql<SpentRow>(templateOf(text), word, from, ...scopes)
}

/** Of a limit that has not begun: of its first window. */
export function spendStateOf(
  { scope, limit: { window: word, amount, models }, startsAt = 0 }: CountedLimit,
  now: number,
  spent: Spent,
): Omit<z.input<typeof spendStateField>, 'subject'> {
  const window = windowAt(word, Math.max(now, startsAt), startsAt)
  const rolling = rollingMinutes(window)
  const start = rolling === undefined ? windowStart(window) : now - rolling * 60_000
  const end = windowEnd(window, now)
  return {
    ...{ period: word, limit: formatUsd(amount), spent: formatUsd(spent(scope, window)) },
    ...{ starts_at: isoTime(start ?? 0), resets_at: isoTime(end ?? 0) },
    ...(models !== undefined && { models }),
  }
}
