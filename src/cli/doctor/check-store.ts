// Where the gateway keeps things: the data folder and who may read it, the database and its tables, the master secret.
// It opens the database only to read, and makes nothing.

import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../store/database.ts'
import { readMigrationState } from '../../store/migration-state.ts'
import { causeText, StartRefusal } from '../../store/start-refusal.ts'
import { readRotationStatus } from '../../tenancy/rotation-status.ts'
import { isSecretOnRecord } from '../../tenancy/secrets.ts'
import type { MasterSecrets } from '../master-secrets.ts'
import { openReadOnly } from '../read-only-database.ts'
import { Refusal } from '../refusal.ts'
import { type Finding, note, ok, wrong } from './finding.ts'

const othersMask = 0o077

export function checkDataFolder(folder: string): readonly Finding[] {
  const area = 'data folder'
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (stat === undefined) return [note(area, `${folder} is not there yet`, 'the first start makes it: npm start')]
  if (!stat.isDirectory()) return [wrong(area, `${folder} is not a folder`, 'TOLLGATE_DATA=another folder')]
  const findings: Finding[] = []
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return [wrong(area, `${folder} cannot be written by this user`, `chown it, or TOLLGATE_DATA=another folder`)]
  }
  if ((stat.mode & othersMask) !== 0) {
    findings.push(wrong(area, `${folder} is open to other users (${octal(stat.mode)})`, `chmod 700 ${folder}`))
  }
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    if ((mode & othersMask) === 0) continue
    findings.push(wrong(area, `${path} is open to other users (${octal(mode)})`, `chmod go= ${path}`))
  }
  return findings.length > 0 ? findings : [ok(area, `${folder}, private (${octal(stat.mode)})`)]
}

export interface StoreFindings {
  readonly findings: readonly Finding[]
  /** The newest time in it. */
  readonly newestRow: number | undefined
}

export async function checkDatabase(
  { databaseUrl, dataFolder }: Config,
  secrets: MasterSecrets | Refusal,
  now: number,
): Promise<StoreFindings> {
  const area = 'database'
  const engine = databaseUrl === undefined ? 'SQLite' : 'PostgreSQL'
  let database: Database
  try {
    database = await openReadOnly(databaseUrl?.reveal(), dataFolder)
  } catch (thrown) {
    const isNew = databaseUrl === undefined && thrown instanceof StartRefusal
    const finding = isNew
      ? note(area, `${engine}, not there yet`, 'the first start makes it: npm start')
      : wrong(area, `${engine} cannot be opened: ${causeText(thrown)}`, 'check DATABASE_URL, or the disk')
    return { findings: [finding], newestRow: undefined }
  }
  try {
    const tables = await checkTables(database, engine)
    if (tables.verdict === 'wrong') return { findings: [tables], newestRow: undefined }
    const [row] = await database.sql<{ newest: bigint | null }>`SELECT MAX(at) AS newest FROM audit`
    return {
      findings: [tables, await checkSecret(database, secrets, now)],
      newestRow: row?.newest == null ? undefined : Number(row.newest),
    }
  } catch (thrown) {
    const finding = wrong(
      area,
      `${engine} cannot be read: ${causeText(thrown)}`,
      'start the gateway once, or see its log',
    )
    return { findings: [finding], newestRow: undefined }
  } finally {
    await database.close()
  }
}

async function checkTables(database: Database, engine: string): Promise<Finding> {
  const { applied, pending, unknown } = await readMigrationState(database.sql)
  if (unknown.length > 0) {
    const advice = 'start that version, or restore the backup made before the upgrade'
    return wrong('database', `${engine} was upgraded by a newer Tollgate (${unknown.join(', ')})`, advice)
  }
  const what = `${engine}, ${applied} of ${applied + pending} migrations`
  return pending === 0 ? ok('database', what) : note('database', what, 'the next start applies the rest: npm start')
}

async function checkSecret({ sql }: Database, secrets: MasterSecrets | Refusal, now: number): Promise<Finding> {
  const area = 'secret'
  if (secrets instanceof Refusal) return wrong(area, secrets.message, secrets.attempt ?? 'restore it from a backup')
  const { current, previous } = secrets
  if (!(await isSecretOnRecord(sql, current))) {
    const isBegun = previous !== undefined && (await isSecretOnRecord(sql, previous))
    return isBegun
      ? note(area, `${current.source} is new here`, 'restart the gateway with it, then: tollgate secrets rotate')
      : wrong(area, `${current.source} is not the one of this database`, 'restore the one of the first start')
  }
  if (previous === undefined) return ok(area, `${current.source} is the one of this database`)
  const { keys, overlaps, credentials } = await readRotationStatus(sql, current, now)
  const left = keys + overlaps + credentials
  const what = `a rotation is under way, ${left} things hang on the previous secret`
  return note(area, what, left === 0 ? 'restart without TOLLGATE_SECRET_PREVIOUS' : 'tollgate secrets')
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0')
}
