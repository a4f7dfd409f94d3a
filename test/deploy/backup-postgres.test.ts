import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { ask, balances, createSite, load } from './site.ts'

// The commands of docs/operate/backup.md for PostgreSQL, on an installation that serves meanwhile.

// Two gateways and a PostgreSQL server, on a machine that may be busy.

const programs = findPostgresPrograms()
/** Beside the server where they are, otherwise on the PATH; undefined = only the server is installed. */
const toolOf = (name: string) => {
  const beside = join(programs ?? '', name)
  return existsSync(beside) ? beside : (Bun.which(name) ?? undefined)
}
const installed = programs !== undefined && toolOf('pg_dump') !== undefined && toolOf('pg_restore') !== undefined

/** As an operator types it; answers with what it printed. */
async function shell(name: string, ...args: string[]): Promise<string> {
  const child = Bun.spawn([toolOf(name) ?? name, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  expect([name, exit, err]).toEqual([name, 0, ''])
  return out
}

async function rowsOf(url: string, query: string): Promise<readonly Readonly<Record<string, string>>[]> {
  await using sql = new SQL({ adapter: 'postgres', url, max: 1 })
  return [...(await sql.unsafe(query))]
}

const transfers = (url: string) =>
  rowsOf(url, 'SELECT id, kind, amount::text AS amount FROM transfers ORDER BY id').then((rows) =>
    rows.map(({ id, kind, amount }) => `${id} ${kind} ${amount}`),
  )

describe.skipIf(!installed)('backup of PostgreSQL', () => {
  test('a dump under load becomes an installation of one moment: charges, balance, books and keys', async () => {
    using site = createSite()
    const server = await sharedPostgres()
    const served = await server.createDatabase()
    const gateway = await site.start(served)
    const calls = load(gateway)
    await calls.until(50)
    const answeredBefore = calls.answered()
    const dump = join(site.folder, 'tollgate.dump')
    await shell('pg_dump', '--format=custom', `--file=${dump}`, served)
    const answeredAfter = calls.answered()
    await calls.until(answeredAfter + 50)
    await calls.stop()
    expect(await gateway.stop()).toBe(0)

    const copy = await server.createDatabase()
    await shell('pg_restore', '--no-owner', '--exit-on-error', `--dbname=${copy}`, dump)
    const verified = await site.run(['ledger', 'verify'], { DATABASE_URL: copy })
    expect([verified.exit, verified.out]).toEqual([0, expect.stringContaining('The books are right')])

    // Every transfer of the dump, and none but those of the installation it was taken from.
    const tables = ['--table=fundings', '--table=requests']
    const dumped = await shell('pg_restore', '--data-only', ...tables, '--file=-', dump)
    const copied = await transfers(copy)
    const all = new Set(await transfers(served))
    expect(copied.length).toBe(dumped.split('\n').filter((line) => /^(tr|req)_/.test(line)).length)
    expect(copied.filter((row) => !all.has(row))).toEqual([])

    const charges = copied.filter((row) => row.includes(' charge ')).length
    expect(charges).toBeGreaterThanOrEqual(answeredBefore)
    // At most the eight that were charged and not yet counted here.
    expect(charges).toBeLessThanOrEqual(answeredAfter + 8)

    // With the secret, which is not in the database, the old key is good; 5 tokens in at $1.00, 1 out at $2.00 a million.
    const again = await site.start(copy)
    const [balance] = Object.values(await balances(site, again.url))
    expect(Math.round(Number(balance) * 1_000_000)).toBe(5_000_000 - 7 * charges)
    expect((await ask(again.url, gateway.key, 'sandbox/echo')).status).toBe(200)
    expect(await again.stop()).toBe(0)
    const after = await site.run(['ledger', 'verify'], { DATABASE_URL: copy })
    expect([after.exit, after.out]).toEqual([0, expect.stringContaining('The books are right')])
  })
})
