// Data of every version of the schema, as gateways left it that were killed while they worked: the data folder with SQLite,
// or with a dump of PostgreSQL. `npm run schema:fixtures` adds what the newest migration lacks; with `--renew` it writes
// that anew, which is right only as long as no release has it.

import { Database as File } from 'bun:sqlite'
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { checksum } from '../../src/store/migrate.ts'
import { allMigrations, type Migration } from '../../src/store/migrations/registry.ts'
import { addTenant, ask, createSite, type Site } from '../deploy/site.ts'
import { manage } from '../parts/manage.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'

export const savedFolder = join(import.meta.dir, '..', 'fixtures', 'saved-data')
/** A line for each migration: its name and the checksum that databases store. */
export const checksumsFile = join(savedFolder, 'checksums.txt')
const dumpFile = 'postgres.sql'

/** What happened on every saved installation. A call costs 5 tokens at $1.00 and 1 at $2.00 a million. */
export const saved = {
  /** Opening credit of $5.00, less these calls and those in `lastCalls`. */
  calls: 10,
  /** Calls just before the gateway was killed. SQLite's journal has some of them. */
  lastCalls: 3,
  /** The second workspace has paid in $25.00, and $1.00 was taken back. */
  tenantCalls: 2,
  nanoPerCall: 7000n,
} as const

export type EngineName = 'sqlite' | 'postgres'

/** The names of the migrations of which there is data. */
export function savedVersions(): readonly string[] {
  return readdirSync(savedFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
}

const archiveOf = (version: string, engine: EngineName) => join(savedFolder, version, `${engine}.tar.gz`)

/** Makes a place, where nothing is yet, the saved installation. */
export async function restore(
  version: string,
  { dataFolder, url }: { readonly dataFolder: string; readonly url: string | undefined },
): Promise<void> {
  const engine = url === undefined ? 'sqlite' : 'postgres'
  await new Bun.Archive(await Bun.file(archiveOf(version, engine)).bytes()).extract(dataFolder)
  if (url === undefined) return
  await using sql = new SQL({ adapter: 'postgres', url, max: 1 })
  await sql.unsafe(await Bun.file(join(dataFolder, dumpFile)).text())
}

/** Sentences about migrations that are not as databases know them, or that nothing is known of yet. */
export function checksumFaults(known: string, migrations: readonly Migration[] = allMigrations): readonly string[] {
  const now = new Map(migrations.map(({ name, text }) => [name, checksum(text)]))
  const lines = known.trim().split('\n')
  const refuses = 'Databases that went through it would refuse to start.'
  const changed = lines.flatMap((line) => {
    const [name = '', before] = line.split(' ')
    const text = now.get(name)
    now.delete(name)
    if (text === before) return []
    if (text === undefined) return [`${name}.sql is gone. ${refuses} Restore it.`]
    return [`${name}.sql was edited. ${refuses} Restore it, and put the change into a new migration.`]
  })
  const added = [...now.keys()].map(
    (name) => `${name} has no saved data. Run npm run schema:fixtures and commit what it writes.`,
  )
  return [...changed, ...added]
}

/** A gateway that was killed in the middle of a stream, right after some answers. */
async function useAndKill(site: Site, databaseUrl: string | undefined): Promise<void> {
  const gateway = await site.start(databaseUrl)
  const managed = { url: gateway.url, dataFolder: site.dataFolder }
  const tenant = await addTenant(site, gateway.url)
  const path = `/api/workspaces/${tenant.workspaceId}`
  await manage(managed, 'POST', `${path}/corrections`, { amount: '1.00', direction: 'take', reason: 'paid twice' })
  await manage(managed, 'PUT', `${path}/limits`, { spend_per_month: '100.00', requests_per_minute: 600 })
  const calls = (key: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => ask(gateway.url, key, 'sandbox/echo')))
  await calls(gateway.key, saved.calls)
  await calls(tenant.key, saved.tenantCalls)
  const stream = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'sandbox/slow',
      stream: true,
      messages: [{ role: 'user', content: 'one two three' }],
    }),
  })
  await stream.body?.getReader().read()
  // The log of requests takes everything out of the journal.
  await manage(managed, 'GET', '/api/requests')
  await calls(gateway.key, saved.lastCalls)
  await gateway.kill()
}

/** As a file that is opened in the middle of the work of another: the journal is as the killed process left it. */
export function journalLength(dataFolder: string): number {
  using file = new File(join(dataFolder, 'tollgate.db'))
  const row = file.query<{ count: number }, []>('SELECT COUNT(*) AS count FROM journal').get()
  return row?.count ?? 0
}

/** Settings of a dump that other versions of the server may not know, and psql's own commands, are left out. */
async function dump(url: string): Promise<string> {
  const program = Bun.which('pg_dump') ?? join(findPostgresPrograms() ?? '', 'pg_dump')
  const child = Bun.spawn([program, '--inserts', '--no-owner', '--no-privileges', url], { stdout: 'pipe' })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error('pg_dump failed')
  const lines = text.split('\n').filter((line) => !/^(\\|SET |SELECT pg_catalog\.set_config|--|$)/.test(line))
  return `${lines.join('\n')}\n`
}

async function save(version: string, engine: EngineName): Promise<number> {
  for (;;) {
    using site = createSite()
    const url = engine === 'postgres' ? await (await sharedPostgres()).createDatabase() : undefined
    await useAndKill(site, url)
    const names = [
      'secret',
      'admin-token',
      'first-key',
      ...(url === undefined ? ['tollgate.db', 'tollgate.db-wal'] : []),
    ]
    const files: Record<string, Uint8Array | string> = {}
    for (const name of names) files[name] = await Bun.file(join(site.dataFolder, name)).bytes()
    if (url !== undefined) files[dumpFile] = await dump(url)
    // The gateway empties its journal a quarter of a second after the answer, and may have done so before it was killed.
    else if (journalLength(site.dataFolder) === 0) continue
    mkdirSync(join(savedFolder, version), { recursive: true })
    return await Bun.Archive.write(archiveOf(version, engine), files, { compress: 'gzip', level: 12 }).then(
      () => Bun.file(archiveOf(version, engine)).size,
    )
  }
}

async function writeMissing(renew: boolean): Promise<void> {
  const version = allMigrations.at(-1)?.name ?? ''
  if (renew) rmSync(join(savedFolder, version), { recursive: true, force: true })
  for (const engine of ['sqlite', 'postgres'] as const) {
    if (existsSync(archiveOf(version, engine))) continue
    process.stdout.write(`${archiveOf(version, engine)}: ${await save(version, engine)} bytes\n`)
  }
  const before = existsSync(checksumsFile) ? (await Bun.file(checksumsFile).text()).trim().split('\n') : []
  const kept = before.filter((line) => !(renew && line.startsWith(`${version} `)))
  const has = new Set(kept.map((line) => line.split(' ')[0]))
  const added = allMigrations.filter(({ name }) => !has.has(name)).map(({ name, text }) => `${name} ${checksum(text)}`)
  await Bun.write(checksumsFile, `${[...kept, ...added].join('\n')}\n`)
}

if (import.meta.main) await writeMissing(process.argv.includes('--renew'))
