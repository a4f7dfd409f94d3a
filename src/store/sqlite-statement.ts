// The tagged template of sql.ts for a connection that lives in another thread: it only makes the text and the values.

import type { Sql, SqlPart, SqlValue } from './sql.ts'

/** Runs one statement elsewhere and answers with its rows. */
export type RunStatement = (text: string, values: readonly SqlValue[]) => Promise<unknown[]>

class RowsPart implements SqlPart {
  constructor(readonly value: readonly Readonly<Record<string, SqlValue>>[]) {}
}

class NamePart implements SqlPart {
  constructor(readonly value: readonly [string]) {}
}

export function sqlOver(run: RunStatement): Sql {
  const tag = (
    first: TemplateStringsArray | string | readonly Readonly<Record<string, SqlValue>>[],
    ...rest: unknown[]
  ) => {
    if (typeof first === 'string') return new NamePart([first])
    if (!('raw' in first)) return new RowsPart(first)
    const values: SqlValue[] = []
    let text = first[0] ?? ''
    for (const [at, value] of rest.entries()) text += placeholder(value, values) + (first[at + 1] ?? '')
    return run(text, values)
  }
  return tag as Sql
}

function placeholder(value: unknown, values: SqlValue[]): string {
  if (value instanceof NamePart) return `"${value.value[0].replaceAll('"', '""')}"`
  if (value instanceof RowsPart) return rowsText(value.value, values)
  values.push(value as SqlValue)
  return '?'
}

function rowsText(rows: readonly Readonly<Record<string, SqlValue>>[], values: SqlValue[]): string {
  const names = Object.keys(rows[0] ?? {})
  const marks = rows.map((row) => {
    for (const name of names) values.push(row[name] ?? null)
    return `(${names.map(() => '?').join(', ')})`
  })
  return `(${names.map((name) => `"${name}"`).join(', ')}) VALUES ${marks.join(', ')}`
}
