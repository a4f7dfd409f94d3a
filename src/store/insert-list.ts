// Inserts any number of rows with one statement and one parameter, a list in JSON, so that the text is the same for any
// number of them. PostgreSQL only: for what is written often there, where every further statement is a round trip.

import type { Sql, SqlValue } from './sql.ts'
import type { NewRow } from './write-batch.ts'

type Row = Readonly<Record<string, SqlValue>>

/** All rows must have the same columns. */
export async function insertList(sql: Sql, table: string, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return
  const insert = listInsert(table, rows)
  await sql(templateOf([insert.before, insert.after]), insert.list)
}

/** The same for rows of several tables, or with different columns. */
export async function insertNewLists(sql: Sql, rows: readonly NewRow[]): Promise<void> {
  for (const insert of listInserts(rows)) await sql(templateOf([insert.before, insert.after]), insert.list)
}

/** An INSERT with the list between its two halves. */
interface ListInsert {
  readonly before: string
  readonly list: string
  readonly after: string
}

/** Names of tables and columns are text of our own, never input. Columns that are not named get their defaults. */
function listInsert(table: string, rows: readonly Row[]): ListInsert {
  const names = Object.keys(rows[0] ?? {})
  const columns = names.join(', ')
  return {
    before: `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, CAST(CAST(`,
    list: `[${rows.map((row) => rowJson(names, row)).join(',')}]`,
    // Through TEXT, because Bun renders whatever it takes for JSON as JSON once more.
    after: ' AS TEXT) AS JSON))',
  }
}

/** One for each kind of row. */
function listInserts(rows: readonly NewRow[]): ListInsert[] {
  const alike = Map.groupBy(rows, ({ table, columns }) => `${table} ${Object.keys(columns).join(' ')}`)
  return [...alike.values()].map((group) =>
    listInsert(
      group[0]?.table ?? '',
      group.map(({ columns }) => columns),
    ),
  )
}

/** A statement whose text is put together from constant parts, as the tagged template takes it. */
function templateOf(parts: readonly string[]): TemplateStringsArray {
  const strings = [...parts]
  return Object.defineProperty(strings, 'raw', { value: strings }) as unknown as TemplateStringsArray
}

function rowJson(names: readonly string[], row: Row): string {
  let text = ''
  for (const name of names) {
    const value = row[name]
    if (value === null || value === undefined) continue
    // Half of a surrogate pair is not text to PostgreSQL; as a parameter it would become the same mark.
    const json = typeof value === 'bigint' ? String(value) : JSON.stringify(value.toWellFormed())
    text += `${text && ','}"${name}":${json}`
  }
  return `{${text}}`
}
