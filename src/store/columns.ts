// Rows of a table as objects. One list of columns gives the type of the object, how a row is read and how it is written. An
// object has what the list names, in camelCase, and nothing else of the row, such as the hash of a secret.

import type { Nano } from '../kernel/money.ts'
import { type SqlValue, timeFromSql, timeToSql } from './sql.ts'

export interface Column<Value> {
  fromSql(stored: SqlValue): Value
  toSql(value: Value): SqlValue
}

/** As it is stored. */
export function text<Value extends string = string>(): Column<Value> {
  return { fromSql: (stored) => stored as Value, toSql: (value) => value }
}

export const count: Column<number> = { fromSql: (stored) => Number(stored), toSql: (value) => BigInt(value) }

export const time: Column<number> = { fromSql: (stored) => timeFromSql(stored as bigint), toSql: timeToSql }

export const amount: Column<Nano> = { fromSql: (stored) => stored as Nano, toSql: (value) => value }

export const flag: Column<boolean> = { fromSql: (stored) => stored === 1n, toSql: (value) => (value ? 1n : 0n) }

export function json<Value>(): Column<Value> {
  return { fromSql: (stored) => JSON.parse(stored as string), toSql: (value) => JSON.stringify(value) }
}

/** NULL is undefined. */
export function optional<Value>({ fromSql, toSql }: Column<Value>): Column<Value | undefined> {
  return {
    fromSql: (stored) => (stored === null ? undefined : fromSql(stored)),
    toSql: (value) => (value === undefined ? null : toSql(value)),
  }
}

type Columns = Readonly<Record<string, Column<unknown>>>

type ObjectOf<All extends Columns> = {
  readonly [Name in keyof All]: All[Name] extends Column<infer Value> ? Value : never
}

export interface RowFormat<Item> {
  read(row: unknown): Item
  all(rows: readonly unknown[]): Item[]
  /** undefined = there is none. */
  first(rows: readonly unknown[]): Item | undefined
  write(item: Item): Readonly<Record<string, SqlValue>>
}

/** The type of the objects of a format. */
export type ItemIn<Format> = Format extends RowFormat<infer Item> ? Item : never

/** By the names of the object's members: `createdAt` is the column `created_at`. */
export function rowFormat<All extends Columns>(columns: All): RowFormat<ObjectOf<All>> {
  const named = Object.entries(columns).map(([name, column]) => {
    return { name, stored: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), column }
  })
  const read = (row: unknown) => {
    const values = row as Readonly<Record<string, SqlValue>>
    const members = named.map(({ name, stored, column }) => [name, column.fromSql(values[stored] ?? null)])
    return Object.fromEntries(members) as ObjectOf<All>
  }
  return {
    read,
    all: (rows) => rows.map(read),
    first: ([row]) => (row === undefined ? undefined : read(row)),
    write: (item) =>
      Object.fromEntries(
        named.map(({ name, stored, column }) => [stored, column.toSql(item[name as keyof ObjectOf<All>])]),
      ),
  }
}
