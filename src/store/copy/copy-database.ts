// An embedded database copied to PostgreSQL: one transaction there, committed only after every row was read back and
// found the same. A copy that is killed leaves nothing behind but empty tables, so the next one starts over.

import type { Database } from '../database.ts'
import { insertRows } from '../insert-rows.ts'
import type { Sql } from '../sql.ts'
import { StartRefusal } from '../start-refusal.ts'
import { readPostgresRows, readSqliteRows } from './read-rows.ts'
import { RowDigest } from './row-digest.ts'
import { type CopyPlan, planCopy, type TablePlan } from './table-plan.ts'

export interface CopyOptions {
  /** Nobody writes to it: whoever calls holds the folder's lock. */
  readonly source: Database
  /** Its tables are there, as this program's migrations make them. */
  readonly target: Database
  /** The same question to both sides; answers that differ undo the copy. */
  readonly prove: (side: Database) => Promise<readonly string[]>
  readonly onProgress: (progress: CopyProgress) => void
}

export interface CopyProgress {
  readonly table: string
  readonly step: 'copying' | 'comparing' | 'same'
  readonly rows: bigint
}

export interface CopiedTable {
  readonly name: string
  readonly rows: bigint
  /** Of the rows, in any order; the same on both sides. */
  readonly digest: string
}

export interface CopyOutcome {
  /** False: they were there already, from a copy that ended before it could say so. */
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

/** Every start of a gateway writes into `installation` before anything else. */
async function isUnused(to: Sql, { tables }: CopyPlan): Promise<boolean> {
  for (const name of ['installation', 'workspaces', 'transfers', 'audit']) {
    if (!tables.some((table) => table.name === name)) throw new StartRefusal(`There is no table ${name}.`)
    const rows = await to`SELECT 1 FROM ${to(name)} LIMIT 1`
    if (rows.length > 0) return false
  }
  return true
}

/** Rows that migrations made, such as the house's own accounts, come with the copy. */
async function clearSeeds(to: Sql, { tables }: CopyPlan): Promise<void> {
  for (const { name } of tables.toReversed()) {
    const rows = await to`SELECT 1 FROM ${to(name)} LIMIT 1`
    // Only where there are any: an append-only table refuses even a deletion of nothing.
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
      : `The PostgreSQL database is in use: it has rows of ${table} that the embedded one has not. Use an empty database.`,
  )
}

async function compareProofs({ source, target, prove }: CopyOptions, from: Sql, to: Sql): Promise<void> {
  // Inside of the transactions that are open: what is proved is what will be committed.
  const here = await prove({ ...source, sql: from, snapshot: (work) => work(from) })
  const there = await prove({ ...target, sql: to, snapshot: (work) => work(to) })
  const at = here.findIndex((line, index) => line !== there[index])
  if (at < 0 && here.length === there.length) return
  const index = at < 0 ? here.length : at
  throw new StartRefusal(
    `The books are not the same after the copy; it was undone: ${here[index] ?? 'nothing'} here, ${there[index] ?? 'nothing'} there.`,
  )
}
