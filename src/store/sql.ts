// The shape of a statement, the same for both engines, and the one convention about integers: every integer column is
// BIGINT and crosses this line as a bigint, in both directions. Bun silently rounds a fraction sent to a BIGINT,
// so `number` is no SqlValue; a time is a number of milliseconds everywhere else and is converted here.

export type Engine = 'sqlite' | 'postgres'

export type SqlValue = string | bigint | null

/** Made by `sql(rows)`, the column list and values of an INSERT, or by `sql(name)`. */
export interface SqlPart {
  readonly value: readonly unknown[]
}

/**
 * A tagged template. What is in `${}` is sent as a parameter, never as text.
 *
 * A SELECT in a transaction may end with `FOR NO KEY UPDATE`: other transactions that lock or change the row then wait for
 * the end of this one. SQLite has no such words and needs none, because its transactions run one at a time; they are left
 * out there. (`FOR UPDATE` would also block rows that refer to the locked one.)
 */
export interface Sql {
  <Row>(text: TemplateStringsArray, ...values: readonly (SqlValue | SqlPart)[]): Promise<Row[]>
  /** `` sql`INSERT INTO t ${sql([{ id, amount }])}` ``: at least one row, all with the same columns. */
  (rows: readonly Readonly<Record<string, SqlValue>>[]): SqlPart
  /** The name of a table that is only known as a value. */
  (name: string): SqlPart
}

/** Text from outside as a parameter: PostgreSQL stores no NUL and no half of a surrogate pair. Absent becomes NULL. */
export function textToSql(text: string | undefined): string | null {
  return text === undefined ? null : text.replaceAll('\0', '\ufffd').toWellFormed()
}

/** Epoch milliseconds as a BIGINT parameter. */
export function timeToSql(epochMs: number): bigint {
  return BigInt(epochMs)
}

/** A BIGINT column of epoch milliseconds; NULL becomes undefined. */
export function timeFromSql(column: bigint): number
export function timeFromSql(column: bigint | null): number | undefined
export function timeFromSql(column: bigint | null): number | undefined {
  return column === null ? undefined : Number(column)
}
