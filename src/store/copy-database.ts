// An embedded database copied to PostgreSQL: one transaction there, committed only after every row was read back and
// found the same. A copy that is killed leaves nothing behind but empty tables, so the next one starts over.

import { createHash } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import type { Database } from './database.ts'
import { insertRows } from './insert-rows.ts'
import { migrate, readMigrationState } from './migrate.ts'
import { openPostgres } from './postgres.ts'
import type { Sql, SqlValue } from './sql.ts'
import { StartRefusal } from './start-refusal.ts'

interface CopyOptions {
  /** Has no writer: the caller holds the folder's lock. */
  readonly source: Database
  /** Already migrated by this version. */
  readonly target: Database
  /** Run on both sides; a difference rolls the copy back. */
  readonly prove: (side: Database) => Promise<readonly string[]>
  readonly onProgress: (progress: CopyProgress) => void
}

export interface CopyProgress {
  readonly table: string
  readonly step: 'copying' | 'comparing' | 'same'
  readonly rows: bigint
}

interface CopiedTable {
  readonly name: string
  readonly rows: bigint
  /** Digest of the rows, in any order; the same on both sides. */
  readonly digest: string
}

export interface CopyOutcome {
  /** False if an earlier copy had completed without being able to report it. */
  readonly copied: boolean
  readonly tables: readonly CopiedTable[]
  /** Tables of the source that are not ours. */
  readonly left: readonly string[]
}

/** Throws a StartRefusal, with the target as it was, if the target is in use or anything differs. */
export async function copyDatabase(options: CopyOptions): Promise<CopyOutcome> {
  const { source, target } = options
  return await source.snapshot(async (from) => {
    const outcome = await target.schemaTransaction((to) => copyInto(options, from, to))
    if (outcome !== 'busy') return outcome.result
    throw new StartRefusal('Another Tollgate is setting up this PostgreSQL database. Stop it, and use an empty one.')
  })
}

async function copyInto(options: CopyOptions, from: Sql, to: Sql): Promise<CopyOutcome> {
  const plan = await planCopy(from, to)
  await assertJournalApplied(from)
  const digests = new Map<string, RowDigest>()
  const isFresh = await isUnused(to, plan)
  if (isFresh) await clearSeeds(to, plan)
  for (const table of plan.tables) {
    digests.set(table.name, await copyTable(table, from, isFresh ? to : undefined, options))
  }
  const tables: CopiedTable[] = []
  for (const table of plan.tables) tables.push(await compareTable(table, to, digests, isFresh, options))
  await compareProofs(options, from, to)
  return { copied: isFresh, tables, left: plan.left }
}

/** With unapplied entries the copy would lack charges. Refused entries are found by the verification. */
async function assertJournalApplied(from: Sql): Promise<void> {
  const rows = await from`SELECT 1 FROM journal WHERE refusal IS NULL LIMIT 1`
  if (rows.length === 0) return
  throw new StartRefusal('The embedded database has charges that could not be applied. Check the disk, and try again.')
}

/** Every start of a gateway writes into `installation` before anything else. */
async function isUnused(to: Sql, { tables }: CopyPlan): Promise<boolean> {
  for (const name of ['installation', 'workspaces', 'fundings', 'audit']) {
    if (!tables.some((table) => table.name === name)) throw new StartRefusal(`There is no table ${name}.`)
    const rows = await to`SELECT 1 FROM ${to(name)} LIMIT 1`
    if (rows.length > 0) return false
  }
  return true
}

/** Rows that migrations insert, such as the operator's accounts, come with the copy. */
async function clearSeeds(to: Sql, { tables }: CopyPlan): Promise<void> {
  for (const { name } of tables.toReversed()) {
    const rows = await to`SELECT 1 FROM ${to(name)} LIMIT 1`
    // Only if there are rows: an append-only table rejects every DELETE, even one that matches nothing.
    if (rows.length > 0) await to`DELETE FROM ${to(name)}`
  }
}

/** Without a target it only reads. */
async function copyTable(
  { name, columns }: TablePlan,
  from: Sql,
  to: Sql | undefined,
  { onProgress }: CopyOptions,
): Promise<RowDigest> {
  const digest = new RowDigest(columns)
  onProgress({ table: name, step: 'copying', rows: 0n })
  for await (const rows of readSqliteRows(from, name)) {
    for (const row of rows) digest.add(row)
    if (to) await insertRows(to, name, rows)
    onProgress({ table: name, step: 'copying', rows: digest.count })
  }
  return digest
}

async function compareTable(
  { name, columns }: TablePlan,
  to: Sql,
  digests: ReadonlyMap<string, RowDigest>,
  isFresh: boolean,
  { onProgress }: CopyOptions,
): Promise<CopiedTable> {
  const expected = digests.get(name)
  const digest = new RowDigest(columns)
  for await (const rows of readPostgresRows(to, name)) {
    for (const row of rows) digest.add(row)
    onProgress({ table: name, step: 'comparing', rows: digest.count })
  }
  if (digest.count !== expected?.count || digest.text !== expected.text) throw differs(name, isFresh)
  onProgress({ table: name, step: 'same', rows: digest.count })
  return { name, rows: digest.count, digest: digest.text }
}

function differs(table: string, isFresh: boolean): StartRefusal {
  return new StartRefusal(
    isFresh
      ? `The rows of ${table} are not the same after the copy; it was undone. Please report this.`
      : `The PostgreSQL database is in use: it has rows of ${table} that the embedded one does not have. Use an empty database.`,
  )
}

async function compareProofs({ source, target, prove }: CopyOptions, from: Sql, to: Sql): Promise<void> {
  // Inside the open transactions, so what is verified is what will be committed.
  const here = await prove({ ...source, sql: from, snapshot: (work) => work(from) })
  const there = await prove({ ...target, sql: to, snapshot: (work) => work(to) })
  const at = here.findIndex((line, index) => line !== there[index])
  if (at < 0 && here.length === there.length) return
  const index = at < 0 ? here.length : at
  throw new StartRefusal(
    `The books are not the same after the copy; it was undone: ${here[index] ?? 'nothing'} here, ${there[index] ?? 'nothing'} there.`,
  )
}

// Which tables a copy takes, in an order in which every row finds the rows it refers to. Read from the databases themselves,
// so that a new migration needs no change here. Tables that only one of them has are reported, never dropped in silence.

interface TablePlan {
  readonly name: string
  /** Sorted. */
  readonly columns: readonly string[]
}

interface CopyPlan {
  readonly tables: readonly TablePlan[]
  /** Tables beside ours in the embedded database. */
  readonly left: readonly string[]
}

/** The record of migrations is not copied: the target has its own. */
const ownRecord = 'schema_migrations'

/** Throws a StartRefusal where the tables of the two differ. */
export async function planCopy(source: Sql, target: Sql): Promise<CopyPlan> {
  await assertMigrated(source)
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

/** The target was migrated by this version. */
async function assertMigrated(source: Sql): Promise<void> {
  const { pending, fault } = await readMigrationState({ engine: 'sqlite', sql: source })
  if (fault) throw new StartRefusal(`${fault.what}. ${fault.advice}.`)
  if (pending === 0) return
  throw new StartRefusal(
    'The embedded database was last used with an older version of Tollgate. Start this version on it once, stop it, and try again.',
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
    FROM information_schema.columns WHERE table_schema = current_schema() AND table_name <> ${ownRecord}
      AND table_name NOT IN (SELECT table_name FROM information_schema.views WHERE table_schema = current_schema())`
  const tables = Map.groupBy(rows, ({ table }) => table)
  return new Map([...tables].map(([name, columns]) => [name, columns.map(({ column }) => column).sort()]))
}

/** Referenced tables first; otherwise by name. */
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

// Reads all rows of a table in pages, on either engine. One transaction keeps the pages consistent; only one page is in
// memory.

const portionRows = 1000n

/** By the row's own number, or by the id where there is none: that needs no sort. */
async function* readSqliteRows(sql: Sql, table: string): AsyncGenerator<readonly Row[]> {
  const [kind] = await sql<{ wr: bigint }>`SELECT wr FROM pragma_table_list(${table})`
  const position = sql(kind?.wr === 1n ? 'id' : 'rowid')
  for (let after: SqlValue = kind?.wr === 1n ? '' : -1n; ; ) {
    const rows: readonly (Row & { copy_position: SqlValue })[] = await sql`SELECT ${position} AS copy_position, *
      FROM ${sql(table)} WHERE ${position} > ${after} ORDER BY ${position} LIMIT ${portionRows}`
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.copy_position
    yield rows.map(({ copy_position: _, ...row }) => row)
  }
}

/** Through a cursor: sorting the whole table for every portion would be quadratic. */
async function* readPostgresRows(sql: Sql, table: string): AsyncGenerator<readonly Row[]> {
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

export type Row = Readonly<Record<string, SqlValue>>

/** A sum of 256-bit hashes; what is carried over is dropped. */
const modulus = 1n << 256n

export class RowDigest {
  #sum = 0n
  #count = 0n

  /** The columns give the order of the values, which the two engines need not share. */
  constructor(private readonly columns: readonly string[]) {}

  add(row: Row): void {
    const hash = createHash('sha256')
    for (const column of this.columns) hash.update(encode(row[column]))
    // A sum rather than XOR, in which a duplicated row would cancel out.
    this.#sum = (this.#sum + BigInt(`0x${hash.digest('hex')}`)) % modulus
    this.#count += 1n
  }

  get count(): bigint {
    return this.#count
  }

  get text(): string {
    return this.#sum.toString(16).padStart(64, '0')
  }
}

/** With its kind and length in front, so that no two rows have the same text. */
function encode(value: SqlValue | undefined): string {
  if (value === null) return 'n;'
  if (typeof value === 'bigint') return `i${value};`
  if (typeof value === 'string') return `s${value.length}:${value};`
  // A fraction or bytes: no column of ours has them, and an engine could hand them out differently.
  throw new TypeError(`a value of type ${typeof value} cannot be compared between engines`)
}

/** Throws a StartRefusal if it cannot be reached or belongs to something else. */
export async function openCopyTarget(url: string, clock: Clock): Promise<Database> {
  const target = await openPostgres(url)
  try {
    const tables = await target.sql<{ name: string }>`SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = current_schema()`
    const isOurs = tables.length === 0 || tables.some(({ name }) => name === 'schema_migrations')
    if (!isOurs) {
      throw new StartRefusal(`${shownTarget(url)} contains tables that are not Tollgate's. Use an empty database.`)
    }
    await migrate({ database: target, clock })
    return target
  } catch (thrown) {
    await target.close()
    throw thrown
  }
}

/** Where it is, for a message; without user, password and options. */
export function shownTarget(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}
