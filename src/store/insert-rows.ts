// Inserts any number of rows with few different statements: PostgreSQL keeps every text it has prepared, so the rows go
// in portions of powers of two, of which there are eight.

import type { Sql, SqlValue } from './sql.ts'

/** × 13 columns = 1,664 parameters, far below what either engine takes. */
const portionMax = 128

/** All rows must have the same columns. */
export async function insertRows(
  sql: Sql,
  table: string,
  rows: readonly Readonly<Record<string, SqlValue>>[],
): Promise<void> {
  for (const portion of portionsOf(rows)) await sql`INSERT INTO ${sql(table)} ${sql(portion)}`
}

/** The rows in slices whose sizes are powers of two, for one statement each. */
export function* portionsOf<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  let from = 0
  while (from < rows.length) {
    const size = Math.min(portionMax, 2 ** Math.floor(Math.log2(rows.length - from)))
    yield rows.slice(from, from + size)
    from += size
  }
}
