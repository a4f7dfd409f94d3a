import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { verify } from '../../src/ledger/verify.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { verifyAudit } from '../../src/tenancy/audit.ts'
import { type CrashApp, startCrashApp } from '../parts/crash-app.ts'
import { forEachEngine } from '../parts/engines.ts'
import { nextMigrations } from './next-migration.ts'

async function call(app: CrashApp): Promise<number> {
  const response = await fetch(`${app.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'still here?' }] }),
  })
  await response.text()
  return response.status
}

async function countRows({ sql }: Database) {
  const [rows] =
    await sql`SELECT (SELECT COUNT(*) FROM requests) AS requests, (SELECT COUNT(*) FROM transfers) AS transfers`
  return rows
}

forEachEngine((engine) => {
  test('a used database keeps its rows through a next migration, and the older gateway refuses it afterwards', async () => {
    using place = await engine.createPlace()
    mkdirSync(place.dataFolder, { recursive: true, mode: 0o700 })
    const configPath = join(place.dataFolder, 'tollgate.yaml')
    writeFileSync(configPath, 'models: []\n')
    const data = { dataFolder: place.dataFolder, databaseUrl: place.url, configPath }
    const app = await startCrashApp(data, systemClock)
    try {
      for (let calls = 0; calls < 3; calls++) expect(await call(app)).toBe(200)
      expect(app.errors()).toEqual([])
    } finally {
      await app.stop()
    }

    const database = await openDatabase(place)
    try {
      const before = await countRows(database)
      // Three charges, and the opening credit.
      expect(before).toEqual({ requests: 3n, transfers: 4n })
      const lines: string[] = []
      const options = { database, clock: systemClock, migrations: nextMigrations }
      expect(await migrate({ ...options, onProgress: (line) => lines.push(line) })).toEqual(['9999-next'])
      expect(lines).toEqual(['Upgrading the database: 9999-next'])
      expect(await countRows(database)).toEqual(before)
      expect([...(await database.sql`SELECT DISTINCT region FROM requests`)]).toEqual([{ region: 'eu' }])
      expect((await verify(database, { readPrice: readRecomputeCharge })).findings).toEqual([])
      expect((await verifyAudit(database)).findings).toEqual([])
    } finally {
      await database.close()
    }

    await expect(startCrashApp(data, systemClock)).rejects.toThrow(
      'The database was upgraded by a newer Tollgate: its migration 9999-next is unknown here.',
    )
  })
})
