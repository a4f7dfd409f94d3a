import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { migrate } from '../../src/store/migrate.ts'
import { allMigrations } from '../../src/store/migrations/registry.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { ask, createSite, load, type Site } from './site.ts'

// Several processes per test, on a machine that may be busy.

/** The same site with another data folder. */
function elsewhere(site: Site, name: string) {
  const folder = join(site.folder, name)
  mkdirSync(folder)
  const env = { TOLLGATE_DATA: folder, TOLLGATE_CONFIG: join(site.folder, 'tollgate.yaml') }
  return { folder, run: (...args: string[]) => site.run(args, env) }
}

function transfersIn(file: string): number {
  using database = new Database(file, { readonly: true })
  return database.query<{ n: number }, []>("SELECT COUNT(*) AS n FROM transfers WHERE kind = 'charge'").all()[0]?.n ?? 0
}

test('a backup under load holds every charge that was answered before it began, and its books are right', async () => {
  using site = createSite()
  const gateway = await site.start()
  const calls = load(gateway)
  const file = join(site.folder, 'backup.db')
  await calls.until(50)
  const answeredBefore = calls.answered()
  const made = await site.run(['backup', file])
  const answeredAfter = calls.answered()
  await calls.until(answeredAfter + 50)
  await calls.stop()
  expect(await gateway.stop()).toBe(0)

  expect(made.exit).toBe(0)
  expect(made.err).toContain('It does not contain ')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(transfersIn(file)).toBeGreaterThanOrEqual(answeredBefore)
  // At most the eight that were charged and not yet counted here.
  expect(transfersIn(file)).toBeLessThanOrEqual(answeredAfter + 8)
  expect(readdirSync(site.folder).filter((name) => name.includes('draft'))).toEqual([])

  const other = elsewhere(site, 'restored')
  const restored = await other.run('restore', file, '--json')
  expect([restored.exit, restored.err]).toEqual([0, ''])
  expect(JSON.parse(restored.out)).toMatchObject({ wallets: 1, findings: [], secret: 'missing', secrets: [] })
  expect(existsSync(join(other.folder, 'secret'))).toBe(false)

  // With the secret from elsewhere the old key is good again.
  for (const name of ['secret', 'first-key']) copyFileSync(join(site.dataFolder, name), join(other.folder, name))
  const verified = await other.run('ledger', 'verify')
  expect([verified.exit, verified.out]).toEqual([0, expect.stringContaining('The books are right')])
})

test('commands that only read the database work while the gateway is on any free port', async () => {
  using site = createSite()
  const gateway = await site.start()
  expect((await ask(gateway.url, gateway.key, 'sandbox/echo')).status).toBe(200)
  const env = { TOLLGATE_PORT: '0' }
  const file = join(site.folder, 'backup.db')
  expect((await site.run(['backup', file], env)).exit).toBe(0)
  expect(await site.run(['ledger', 'verify'], env)).toMatchObject({ exit: 0, err: '' })
  expect(await site.run(['secrets', 'status'], env)).toMatchObject({ exit: 0 })
  rmSync(join(site.dataFolder, 'address'))
  const asked = await site.run(['workspaces'], env)
  expect([asked.exit, asked.err]).toEqual([1, expect.stringContaining('set TOLLGATE_URL to what the gateway printed')])
  expect(await gateway.stop()).toBe(0)
  const other = elsewhere(site, 'restored')
  expect((await site.run(['restore', file], { ...env, TOLLGATE_DATA: other.folder })).exit).toBe(0)
  // A wrong file still stops them: it may have named another data folder.
  writeFileSync(join(site.folder, 'tollgate.yaml'), 'server: { port: 0, dat: /elsewhere }\n')
  expect((await site.run(['ledger', 'verify'])).err).toContain('server.dat')
})

test('with its secrets a backup alone is enough to serve again', async () => {
  using site = createSite()
  const gateway = await site.start()
  expect((await ask(gateway.url, gateway.key, 'sandbox/echo')).status).toBe(200)
  const file = join(site.folder, 'all.db')
  const made = await site.run(['backup', file, '--with-secrets', '--json'])
  expect(JSON.parse(made.out)).toMatchObject({ file, secrets: ['secret', 'admin-token'] })
  expect(await gateway.stop()).toBe(0)

  const secret = readFileSync(join(site.dataFolder, 'secret'), 'utf8').trim()
  expect(readFileSync(file).includes(secret)).toBe(true)
  using fresh = createSite()
  const restored = await fresh.run(['restore', file, '--json'])
  expect([restored.exit, restored.err]).toEqual([0, ''])
  expect(JSON.parse(restored.out)).toMatchObject({ secret: 'fits', transfers: 2, findings: [] })
  // They are files again, and nowhere in the database.
  expect(readFileSync(join(fresh.dataFolder, 'tollgate.db')).includes(secret)).toBe(false)
  expect(statSync(join(fresh.dataFolder, 'secret')).mode & 0o777).toBe(0o600)
  copyFileSync(join(site.dataFolder, 'first-key'), join(fresh.dataFolder, 'first-key'))
  const again = await fresh.start()
  expect((await ask(again.url, gateway.key, 'sandbox/echo')).status).toBe(200)
  expect(await again.stop()).toBe(0)
})

test('a plain backup has no secret in it', async () => {
  using site = createSite()
  const gateway = await site.start()
  expect(await gateway.stop()).toBe(0)
  const file = join(site.folder, 'plain.db')
  expect((await site.run(['backup', file])).exit).toBe(0)
  const bytes = readFileSync(file)
  for (const name of ['secret', 'admin-token', 'first-key']) {
    expect(bytes.includes(readFileSync(join(site.dataFolder, name), 'utf8').trim())).toBe(false)
  }
})

test('nothing is overwritten, by a backup or by a restore', async () => {
  using site = createSite()
  const gateway = await site.start()
  expect(await gateway.stop()).toBe(0)
  const file = join(site.folder, 'backup.db')
  writeFileSync(file, 'mine')
  const refused = await site.run(['backup', file])
  expect([refused.exit, readFileSync(file, 'utf8')]).toEqual([1, 'mine'])
  expect((await site.run(['backup', `${file}2`])).exit).toBe(0)
  const before = readFileSync(join(site.dataFolder, 'tollgate.db'))
  const back = await site.run(['restore', `${file}2`])
  expect(back.exit).toBe(1)
  expect(back.err).toContain('tollgate.db already exists')
  expect(readFileSync(join(site.dataFolder, 'tollgate.db')).equals(before)).toBe(true)
})

test('an incomplete backup is refused, and the folder stays without a database', async () => {
  using site = createSite()
  const gateway = await site.start()
  expect(await gateway.stop()).toBe(0)
  const file = join(site.folder, 'backup.db')
  expect((await site.run(['backup', file])).exit).toBe(0)
  const whole = readFileSync(file)
  const other = elsewhere(site, 'restored')
  for (const bytes of [Buffer.from('not a database'), whole.subarray(0, whole.length - 8192), Buffer.alloc(0)]) {
    const damaged = join(site.folder, 'damaged.db')
    writeFileSync(damaged, bytes)
    const refused = await other.run('restore', damaged)
    expect(refused.exit).toBe(1)
    expect(refused.err).toContain(`${damaged} is not a whole backup of Tollgate`)
    expect(readdirSync(other.folder).filter((name) => name.startsWith('tollgate.db'))).toEqual([])
  }
})

test('with PostgreSQL both commands name its own tools', async () => {
  using site = createSite()
  const env = { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/x' }
  const refused = await site.run(['backup', 'x.db'], env)
  expect(refused.exit).toBe(1)
  expect(refused.err).toContain('Try: pg_dump --format=custom')
  expect((await site.run(['restore', 'x.db'], env)).err).toContain('Try: pg_restore --dbname="$DATABASE_URL"')
  expect(refused.err).not.toContain('hunter2')
})

test('a backup of an older version is restored, and its books wait for the upgrade', async () => {
  using site = createSite()
  const old = join(site.folder, 'old')
  mkdirSync(old, { mode: 0o700 })
  const database = await openDatabase({ dataFolder: old, url: undefined })
  await migrate({ database, clock: systemClock })
  // As a version that did not have the last migration yet would leave it.
  await database.transaction(
    (sql) => sql`DELETE FROM schema_migrations WHERE name = ${allMigrations.at(-1)?.name ?? ''}`,
  )
  await database.close()
  const other = elsewhere(site, 'restored')
  writeFileSync(join(other.folder, 'secret'), randomBytes(32).toString('base64'), { mode: 0o600 })
  const restored = await other.run('restore', join(old, 'tollgate.db'))
  expect([restored.exit, restored.out]).toEqual([0, `${other.folder}: of an older Tollgate\n`])
  expect(restored.err).toContain('The next start upgrades it; then recompute its books: tollgate ledger verify')
  // Whether a secret fits is known of an older one, too: this database has none of a gateway on record.
  expect(restored.err).toContain('The secret found here is not the one of the backup')
  const verified = await other.run('ledger', 'verify')
  expect([verified.exit, verified.err]).toEqual([1, expect.stringContaining('the books are of an older Tollgate')])
  const again = await other.run('restore', join(old, 'tollgate.db'))
  expect([again.exit, again.err]).toEqual([1, expect.stringContaining('already exists')])
})
