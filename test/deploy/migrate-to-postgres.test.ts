import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import type { KeyId, ProjectId, WorkspaceId } from '../../src/kernel/ids.ts'
import { type Nano, zeroNano } from '../../src/kernel/money.ts'
import { encodeRequests } from '../../src/store/journal.ts'
import { chargedRequestRow } from '../../src/telemetry/request-record.ts'
import { answeredRequest } from '../observe/observed-records.ts'
import { manage } from '../parts/manage.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { addTenant, ask, balances, createSite, ownKey, type Site, type Tenant } from './site.ts'

// A dozen processes and a PostgreSQL server, on a machine that may be busy.

const installed = findPostgresPrograms() !== undefined
const newDatabase = async () => await (await sharedPostgres()).createDatabase()

describe.skipIf(!installed)('migrate-to-postgres', () => {
  /** Served, then stopped; every test works on a copy of its folder. */
  let served: Site
  let tenant: Tenant
  let firstKey: string
  let before: Record<string, string>

  // A hook of a skipped group would be counted as a skipped test without a name.
  if (installed) {
    beforeAll(async () => {
      served = createSite()
      const gateway = await served.start()
      firstKey = gateway.key
      tenant = await addTenant(served, gateway.url)
      for (let call = 0; call < 5; call++) {
        expect((await ask(gateway.url, firstKey, 'sandbox/echo')).status).toBe(200)
        expect((await ask(gateway.url, tenant.key, 'acme/large')).status).toBe(200)
        expect((await ask(gateway.url, firstKey, 'acme/large')).status).toBe(200)
      }
      before = await balances(served, gateway.url)
      expect(await gateway.stop()).toBe(0)
    })
    afterAll(() => served[Symbol.dispose]())
  }

  function copyOfServed(): Site {
    const site = createSite(served.upstream)
    cpSync(served.dataFolder, site.dataFolder, { recursive: true })
    return site
  }

  async function countRows(url: string, table: string): Promise<number> {
    await using sql = new SQL({ adapter: 'postgres', url, max: 1 })
    const [row] = await sql.unsafe(`SELECT COUNT(*)::int AS n FROM ${table}`)
    return row.n
  }

  test('a gateway on PostgreSQL serves with the same keys, balances and provider keys', async () => {
    using site = copyOfServed()
    const url = await newDatabase()
    const moved = await site.run(['migrate-to-postgres', '--to', url, '--json'])
    expect([moved.exit, moved.err]).toEqual([0, ''])
    const report = JSON.parse(moved.out)
    // Opening credit, top-up, and 15 charges, five of which are zero: the tenant's own key.
    expect(report).toMatchObject({ copied: true, wallets: 2, transfers: 17, not_copied: [] })
    expect(report.target).not.toContain('tollgate@')
    const rows = Object.fromEntries(
      report.tables.map((table: { name: string; rows: number }) => [table.name, table.rows]),
    )
    expect(rows).toMatchObject({ workspaces: 2, projects: 2, api_keys: 2, credentials: 1, requests: 15, fundings: 2 })

    const gateway = await site.start(url)
    expect(await balances(site, gateway.url)).toEqual(before)
    expect((await ask(gateway.url, firstKey, 'sandbox/echo')).status).toBe(200)
    site.upstream.calls.length = 0
    expect((await ask(gateway.url, tenant.key, 'acme/large')).status).toBe(200)
    expect(site.upstream.calls.map(({ headers }) => headers.get('authorization'))).toEqual([`Bearer ${ownKey}`])
    const audit = await manage({ url: gateway.url, dataFolder: site.dataFolder }, 'POST', '/api/workspaces', {
      name: 'after',
    })
    expect(audit.id).toStartWith('ws_')
    expect(await gateway.stop()).toBe(0)
    const verified = await site.run(['ledger', 'verify'], { DATABASE_URL: url })
    expect([verified.exit, verified.out]).toEqual([0, expect.stringContaining('The books are right')])
  })

  test('the old folder does not start again, and says where its database is', async () => {
    using site = copyOfServed()
    const url = await newDatabase()
    expect((await site.run(['migrate-to-postgres'], { DATABASE_URL: url })).exit).toBe(0)
    const started = await site.run(['serve'], { TOLLGATE_PORT: '0' })
    const { host, pathname } = new URL(url)
    expect(started.exit).toBe(1)
    expect(started.err).toContain(`was moved to postgres://${host}${pathname} on `)
    expect(started.err).toContain('Set DATABASE_URL to where it is now')
    const again = await site.run(['migrate-to-postgres', '--to', await newDatabase()])
    expect([again.exit, again.out]).toEqual([1, ''])
    expect(again.err).toContain('was moved to postgres://')
  })

  test('nothing is copied while a gateway runs', async () => {
    using site = copyOfServed()
    const url = await newDatabase()
    const gateway = await site.start()
    const refused = await site.run(['migrate-to-postgres', '--to', url])
    expect(refused.exit).toBe(1)
    expect(refused.err).toContain(`Another Tollgate (process ${gateway.pid}) is using ${site.dataFolder}`)
    expect(await gateway.stop()).toBe(0)
  })

  /** false = its last lines came all at once, as on a busy machine, and it was done before it could be killed. */
  async function killAtEachLine(site: ReturnType<typeof copyOfServed>, url: string): Promise<boolean> {
    for (const line of [1, 4, 9, 17, 23, 30]) {
      const child = site.spawn(['migrate-to-postgres', '--to', url])
      let seen = ''
      for await (const bytes of child.stderr) {
        seen += Buffer.from(bytes).toString()
        if (seen.split('\n').length > line) break
      }
      child.kill('SIGKILL')
      await child.exited
      if (existsSync(join(site.dataFolder, 'moved-to-postgres'))) return false
    }
    return true
  }

  test('killed at any line, it leaves the old one as it was and starts over into the same database', async () => {
    for (let tries = 1; tries <= 5; tries++) {
      using site = copyOfServed()
      const url = await newDatabase()
      if (!(await killAtEachLine(site, url))) continue
      expect(await countRows(url, 'transfers')).toBe(0)
      const moved = await site.run(['migrate-to-postgres', '--to', url, '--json'])
      expect([moved.exit, moved.err]).toEqual([0, ''])
      expect(JSON.parse(moved.out)).toMatchObject({ copied: true, transfers: 17 })
      expect(await countRows(url, 'transfers')).toBe(17)
      return
    }
    throw new Error('it was done before it could be killed, five times')
  })

  test('killed after the commit and before the mark, the next one only compares and marks', async () => {
    using site = copyOfServed()
    const url = await newDatabase()
    expect((await site.run(['migrate-to-postgres', '--to', url])).exit).toBe(0)
    const fence = join(site.dataFolder, 'moved-to-postgres')
    expect(readFileSync(fence, 'utf8')).toStartWith('postgres://')
    await Bun.file(fence).delete()
    const again = await site.run(['migrate-to-postgres', '--to', url, '--json'])
    expect([again.exit, again.err]).toEqual([0, ''])
    expect(JSON.parse(again.out)).toMatchObject({ copied: false, transfers: 17 })
    expect(existsSync(fence)).toBe(true)
  })

  test('a database that another gateway uses is refused and left alone', async () => {
    using site = copyOfServed()
    using other = createSite()
    const url = await newDatabase()
    const gateway = await other.start(url)
    const refused = await site.run(['migrate-to-postgres', '--to', url])
    expect([refused.exit, refused.out]).toEqual([1, ''])
    expect(refused.err).toContain('The PostgreSQL database is in use: it has rows of ')
    expect((await ask(gateway.url, gateway.key, 'sandbox/echo')).status).toBe(200)
    expect(await gateway.stop()).toBe(0)
    expect(existsSync(join(site.dataFolder, 'moved-to-postgres'))).toBe(false)
  })

  test('a database of something else is refused before anything is written', async () => {
    using site = copyOfServed()
    const url = await newDatabase()
    await using sql = new SQL({ adapter: 'postgres', url, max: 1 })
    await sql`CREATE TABLE invoices (id TEXT)`
    const refused = await site.run(['migrate-to-postgres', '--to', url])
    expect(refused.exit).toBe(1)
    expect(refused.err).toContain("contains tables that are not Tollgate's")
    expect(await sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`).toHaveLength(1)
  })

  test('charges that a killed gateway left in its journal are carried on', async () => {
    using site = copyOfServed()
    const { Database } = await import('bun:sqlite')
    const sqlite = new Database(join(site.dataFolder, 'tollgate.db'))
    const [richest] = sqlite
      .query<{ id: WorkspaceId }, []>('SELECT SUBSTR(account_id, 8) AS id FROM balances ORDER BY posted DESC')
      .all()
    const workspaceId = richest?.id as WorkspaceId
    const record = answeredRequest({
      caller: { workspaceId, projectId: 'prj_1' as ProjectId, keyId: 'key_1' as KeyId },
    })
    const row = chargedRequestRow(record, { charge: 5n as Nano, writtenOff: zeroNano, budgets: null })
    sqlite.run('INSERT INTO journal (requests) VALUES (?)', [encodeRequests([{ ...row, price_version: null }])])
    sqlite.close()
    const url = await newDatabase()
    const moved = await site.run(['migrate-to-postgres', '--to', url, '--json'])
    expect([moved.exit, moved.err]).toEqual([0, ''])
    expect(JSON.parse(moved.out)).toMatchObject({ transfers: 18 })
    expect([await countRows(url, 'journal'), await countRows(url, 'requests')]).toEqual([0, 16])
  })

  test('books that are wrong are not carried on', async () => {
    using site = copyOfServed()
    const url = await newDatabase()
    const { Database } = await import('bun:sqlite')
    const sqlite = new Database(join(site.dataFolder, 'tollgate.db'))
    sqlite.run('UPDATE balances SET posted = posted + 1')
    sqlite.close()
    const refused = await site.run(['migrate-to-postgres', '--to', url])
    expect(refused.exit).toBe(1)
    expect(refused.err).toContain('The books are wrong in sqlite, so nothing was moved: balance = Σ transfers')
    expect(await countRows(url, 'workspaces')).toBe(0)
  })

  test('reports a missing or wrong target, without what may be a password', async () => {
    using site = copyOfServed()
    expect(await site.run(['migrate-to-postgres'])).toMatchObject({ exit: 2, err: expect.stringContaining('--to') })
    const wrong = await site.run(['migrate-to-postgres', '--to', 'mysql://root:hunter2@db/x'])
    expect(wrong.exit).toBe(2)
    expect(wrong.err).not.toContain('hunter2')
    const closed = await site.run(['migrate-to-postgres', '--to', 'postgres://me:hunter2@127.0.0.1:1/x'])
    expect(closed.exit).toBe(1)
    expect(closed.err).toContain('postgres://me:***@127.0.0.1:1/x')
    expect(closed.err).not.toContain('hunter2')
  })
})
