// All rows of a table in portions, on either engine, however many there are. Inside of one transaction, so that the
// portions belong together; it keeps no more than one of them.

import type { Sql } from '../sql.ts'
import type { Row } from './row-digest.ts'

const portionRows = 1000n

/** By the row's own number: every table of ours has one, and it needs no sort. */
export async function* readSqliteRows(sql: Sql, table: string): AsyncGenerator<readonly Row[]> {
  let after = -1n
  for (;;) {
    const rows = await sql<Row & { copy_position: bigint }>`SELECT rowid AS copy_position, * FROM ${sql(table)}
      WHERE rowid > ${after} ORDER BY rowid LIMIT ${portionRows}`
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.copy_position
    yield rows.map(({ copy_position: _, ...row }) => row)
  }
}

/** Through a cursor: sorting the whole table for every portion would be quadratic. */
export async function* readPostgresRows(sql: Sql, table: string): AsyncGenerator<readonly Row[]> {
  // One name per table: the driver keeps what it prepared, and the columns behind a name must not change.
  const cursor = sql(`copy_of_${table}`)
  await sql`DECLARE ${cursor} NO SCROLL CURSOR FOR SELECT * FROM ${sql(table)}`
  for (;;) {
    const rows = await sql<Row>`FETCH 1000 FROM ${cursor}`
    if (rows.length === 0) break
    yield rows
  }
  await sql`CLOSE ${cursor}`
}
