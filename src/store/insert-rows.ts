// Inserts any number of rows with few different statements, because PostgreSQL keeps every text that it has prepared.

import type { Sql, SqlValue } from './sql.ts'

type Row = Readonly<Record<string, SqlValue>>

/** × 25 columns = 3,200 parameters, below what either engine takes. */
const portionMax = 128

/** On either engine. All rows must have the same columns. */
export async function insertRows(sql: Sql, table: string, rows: readonly Row[]): Promise<void> {
  for (const portion of portionsOf(rows)) await sql`INSERT INTO ${sql(table)} ${sql(portion)}`
}

/** Slices whose sizes are powers of two, so that there are eight different statements. */
export function* portionsOf<Item>(rows: readonly Item[]): Generator<readonly Item[]> {
  let from = 0
  while (from < rows.length) {
    const size = Math.min(portionMax, 2 ** Math.floor(Math.log2(rows.length - from)))
    yield rows.slice(from, from + size)
    from += size
  }
}

/**
 * PostgreSQL only: one statement with one parameter, a list in JSON, whatever the number of rows. All rows must have the
 * same columns; columns that are not named get their defaults. Names of tables and columns are never input.
 */
export async function insertList(
  sql: Sql,
  table: string,
  rows: readonly Readonly<Record<string, SqlValue | number>>[],
  onConflict = '',
): Promise<void> {
  if (rows.length === 0) return
  const names = Object.keys(rows[0] ?? {})
  const columns = names.join(', ')
  // Through TEXT, because Bun would encode a JSON parameter a second time.
  const before = `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, CAST(CAST(`
  const list = `[${rows.map((row) => rowJson(names, row)).join(',')}]`
  await sql(templateOf([before, ` AS TEXT) AS JSON))${onConflict}`]), list)
}

/** A statement whose text is built from constants, in the form that the tagged template takes. */
export function templateOf(parts: readonly string[]): TemplateStringsArray {
  const strings = [...parts]
  return Object.defineProperty(strings, 'raw', { value: strings }) as unknown as TemplateStringsArray
}

function rowJson(names: readonly string[], row: Readonly<Record<string, SqlValue | number>>): string {
  let text = ''
  for (const name of names) {
    const value = row[name]
    if (value === null || value === undefined) continue
    // PostgreSQL refuses half of a surrogate pair in JSON; as a parameter it would become the same mark.
    const json = typeof value === 'string' ? JSON.stringify(value.toWellFormed()) : String(value)
    text += `${text && ','}"${name}":${json}`
  }
  return `{${text}}`
}
