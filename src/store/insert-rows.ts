// Inserts any number of rows with few different statements: PostgreSQL keeps every text it has prepared, so the rows go
// in portions of powers of two, of which there are eight.

import type { Sql, SqlValue } from './sql.ts'
import type { NewRow } from './write-batch.ts'

/** × 13 columns = 1,664 parameters, far below what either engine takes. */
const portionMax = 128

/** All rows must have the same columns. */
export async function insertRows(
  sql: Sql,
  table: string,
  rows: readonly Readonly<Record<string, SqlValue>>[],
): Promise<void> {
  let from = 0
  while (from < rows.length) {
    const size = portionOf(rows.length - from)
    await sql`INSERT INTO ${sql(table)} ${sql(rows.slice(from, from + size))}`
    from += size
  }
}

/** The same for rows of several tables, or with different columns. */
export async function insertNewRows(sql: Sql, rows: readonly NewRow[]): Promise<void> {
  const alike = Map.groupBy(rows, ({ table, columns }) => `${table} ${Object.keys(columns).join(' ')}`)
  for (const group of alike.values()) {
    const columns = group.map((row) => row.columns)
    await insertRows(sql, group[0]?.table ?? '', columns)
  }
}

/** The largest power of two that is not above the count. */
function portionOf(count: number): number {
  return Math.min(portionMax, 2 ** Math.floor(Math.log2(count)))
}
