// Which tables a copy takes, in an order in which every row finds what it refers to. Read from the two databases
// themselves, so that a new migration needs no line here; what only one of them has is told, never dropped in silence.

import type { Sql } from '../sql.ts'
import { StartRefusal } from '../start-refusal.ts'

export interface TablePlan {
  readonly name: string
  /** Sorted. */
  readonly columns: readonly string[]
}

export interface CopyPlan {
  readonly tables: readonly TablePlan[]
  /** Tables beside ours in the embedded database. */
  readonly left: readonly string[]
}

/** Which migrations a database went through is no content: the target has a record of its own. */
const ownRecord = 'schema_migrations'

/** Throws a StartRefusal where the tables of the two differ. */
export async function planCopy(source: Sql, target: Sql): Promise<CopyPlan> {
  await assertSameMigrations(source, target)
  const there = await postgresColumns(target)
  const here = await sqliteTables(source)
  const columnsHere = new Map<string, readonly string[]>()
  for (const name of here) columnsHere.set(name, await sqliteColumns(source, name))
  for (const [name, columns] of there) {
    if (columnsHere.get(name)?.join() === columns.join()) continue
    throw new StartRefusal(`The table ${name} is not the same in both databases. Start an unmodified Tollgate.`)
  }
  const names = await inOrderOfReference(source, [...there.keys()])
  return {
    tables: names.map((name) => ({ name, columns: there.get(name) ?? [] })),
    left: here.filter((name) => !there.has(name)),
  }
}

interface MigrationRecord {
  readonly name: string
  readonly checksum: string
}

async function assertSameMigrations(source: Sql, target: Sql): Promise<void> {
  const read = async (sql: Sql) => {
    const records = await sql<MigrationRecord>`SELECT name, checksum FROM schema_migrations`
    return records.map(({ name, checksum }) => `${name} ${checksum}`).sort()
  }
  const [here, there] = [await read(source), await read(target)]
  if (here.join() === there.join()) return
  throw new StartRefusal(
    'The embedded database was last used with another version of Tollgate. Start this version on it once, stop it, and try again.',
  )
}

async function sqliteTables(sql: Sql): Promise<readonly string[]> {
  const rows = await sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`
  return rows.map(({ name }) => name).filter((name) => !name.startsWith('sqlite_') && name !== ownRecord)
}

async function sqliteColumns(sql: Sql, table: string): Promise<readonly string[]> {
  const rows = await sql<{ name: string }>`SELECT name FROM pragma_table_info(${table})`
  return rows.map(({ name }) => name).sort()
}

async function postgresColumns(sql: Sql): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await sql<{ table: string; column: string }>`SELECT table_name AS table, column_name AS column
    FROM information_schema.columns WHERE table_schema = current_schema() AND table_name <> ${ownRecord}`
  const tables = Map.groupBy(rows, ({ table }) => table)
  return new Map([...tables].map(([name, columns]) => [name, columns.map(({ column }) => column).sort()]))
}

/** What is referred to comes before what refers to it; otherwise by name. */
async function inOrderOfReference(source: Sql, names: readonly string[]): Promise<readonly string[]> {
  const ordered = new Set<string>()
  const parents = new Map<string, readonly string[]>()
  for (const name of [...names].sort()) {
    const rows = await source<{ parent: string }>`SELECT "table" AS parent FROM pragma_foreign_key_list(${name})`
    parents.set(
      name,
      rows.map(({ parent }) => parent),
    )
  }
  const place = (name: string, below: readonly string[]): void => {
    if (ordered.has(name) || below.includes(name)) return
    for (const parent of parents.get(name) ?? []) place(parent, [...below, name])
    ordered.add(name)
  }
  for (const name of parents.keys()) place(name, [])
  return [...ordered]
}
