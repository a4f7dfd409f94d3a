// Every version of the schema since it was frozen opens with this program, as a killed gateway left it; and a migration that
// databases went through stays as it was.

import { Database as File } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../../src/kernel/clock.ts'
import { allMigrations } from '../../src/store/migrations/registry.ts'
import { ask } from '../deploy/site.ts'
import { runOffline } from '../parts/command-line.ts'
import { startCrashApp } from '../parts/crash-app.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { manage } from '../parts/manage.ts'
import { checksumFaults, checksumsFile, journalLength, restore, saved, savedVersions } from './saved-data.ts'

/** Plain SQL, without anything of ours. */
async function query({ dataFolder, url }: Place, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  if (url === undefined) {
    using file = new File(join(dataFolder, 'tollgate.db'))
    return file.query<Record<string, unknown>, []>(text).all()
  }
  await using sql = new SQL({ adapter: 'postgres', url, max: 1 })
  return [...(await sql.unsafe(text))]
}

async function numberOf(place: Place, text: string): Promise<bigint> {
  const [row] = await query(place, `SELECT CAST((${text}) AS TEXT) AS number`)
  return BigInt(String(row?.number))
}

const charges = saved.calls + saved.lastCalls + saved.tenantCalls

forEachEngine((engine) => {
  for (const version of savedVersions()) {
    test(`opens data of ${version} with its journal: balances, ledger, keys and limits are right`, async () => {
      using place = await engine.createPlace()
      await restore(version, place)
      if (engine.name === 'sqlite') expect(journalLength(place.dataFolder)).toBeGreaterThan(0)
      else expect(await numberOf(place, "SELECT COUNT(*) FROM holds WHERE state = 'open'")).toBe(1n)
      const configPath = join(place.dataFolder, 'tollgate.yaml')
      writeFileSync(configPath, 'models: []\n')

      const data = { dataFolder: place.dataFolder, databaseUrl: place.url, configPath }
      const app = await startCrashApp(data, systemClock)
      try {
        expect((await ask(app.url, app.key, 'sandbox/echo')).status).toBe(200)
        const managed = { url: app.url, dataFolder: place.dataFolder }
        const { data: workspaces } = await manage(managed, 'GET', '/api/workspaces')
        const tenant = workspaces.find(({ name }: { name: string }) => name === 'acme')
        expect(tenant.limits).toMatchObject({ spend_per_month: '100.00', requests_per_minute: 600 })
        // The hold of the stream that the kill cut off is given back.
        while ((await numberOf(place, "SELECT COUNT(*) FROM holds WHERE state = 'open'")) > 0n) await Bun.sleep(50)
      } finally {
        await app.stop()
      }

      const count = BigInt(charges + 1)
      expect(await numberOf(place, "SELECT COUNT(*) FROM transfers WHERE kind = 'charge'")).toBe(count)
      const charged = "SELECT SUM(amount) FROM transfers WHERE kind = 'charge'"
      expect(await numberOf(place, charged)).toBe(count * saved.nanoPerCall)
      expect(await numberOf(place, 'SELECT COUNT(*) FROM journal')).toBe(0n)
      const balances = `SELECT w.name, CAST(b.posted AS TEXT) AS posted, CAST(b.held AS TEXT) AS held
        FROM balances b JOIN accounts a ON a.id = b.account_id JOIN workspaces w ON w.id = a.workspace_id ORDER BY w.name`
      const tenantBalance = 24_000_000_000n - BigInt(saved.tenantCalls) * saved.nanoPerCall
      const balance = 5_000_000_000n - BigInt(saved.calls + saved.lastCalls + 1) * saved.nanoPerCall
      expect((await query(place, balances)).map((row) => ({ ...row }))).toEqual([
        { name: 'acme', posted: String(tenantBalance), held: '0' },
        { name: 'default', posted: String(balance), held: '0' },
      ])
      expect(await runOffline(place, 'ledger', 'verify')).toMatchObject({
        exit: 0,
        out: expect.stringContaining('The books are right'),
      })
      expect(await runOffline(place, 'audit', 'verify')).toMatchObject({ exit: 0 })
    })
  }
})

test('no migration was edited since databases went through it, and there is data of each', async () => {
  expect(checksumFaults(await Bun.file(checksumsFile).text())).toEqual([])
  expect(savedVersions()).toEqual(allMigrations.map(({ name }) => name))
})

test('an edited migration and one without saved data are named, with what to do', async () => {
  const known = await Bun.file(checksumsFile).text()
  const [first = { name: '', text: '' }, ...later] = allMigrations
  const edited = { name: first.name, text: `${first.text}\nCREATE TABLE more (id TEXT);` }
  expect(checksumFaults(known, [edited, ...later])).toEqual([
    '0001-schema.sql was edited. Databases that went through it would refuse to start. Restore it, and put the change into a new migration.',
  ])
  const added = { name: '0002-more', text: 'CREATE TABLE more (id TEXT);' }
  expect(checksumFaults(known, [...allMigrations, added])).toEqual([
    '0002-more has no saved data. Run npm run schema:fixtures and commit what it writes.',
  ])
  expect(checksumFaults(known, later)).toEqual([
    '0001-schema.sql is gone. Databases that went through it would refuse to start. Restore it.',
  ])
})
