// The newest gateway on a database of every age: it starts, the old key calls, the books are right to the nano-dollar.

import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { formatUsd, type Nano } from '../../src/kernel/money.ts'
import { verify } from '../../src/ledger/verify.ts'
import { migrate } from '../../src/store/migrate.ts'
import { allMigrations } from '../../src/store/migrations/registry.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { verifyAudit } from '../../src/tenancy/verify-audit.ts'
import { startCrashApp } from '../parts/crash-app.ts'
import { forEachEngine, type TestEngine } from '../parts/engines.ts'
import { charge, fills, inventTenant, type OldTenant, topUp } from './levels.ts'

const names = allMigrations.map(({ name }) => name)

test('every migration has its rows in levels.ts, or says there that it needs none', () => {
  expect(Object.keys(fills)).toEqual(names)
})

/** A database as the program left it when the migration of this name was its newest. */
async function openOldSite(engine: TestEngine, newest: string) {
  const place = await engine.createPlace()
  mkdirSync(place.dataFolder, { recursive: true, mode: 0o700 })
  const tenant = inventTenant(place.dataFolder)
  writeFileSync(join(place.dataFolder, 'first-key'), `${tenant.secret}\n`)
  const migrations = allMigrations.slice(0, names.indexOf(newest) + 1)
  const database = await openDatabase(place)
  await migrate({ database, clock: systemClock, migrations })
  for (const { name } of migrations) await database.transaction(async (sql) => fills[name]?.(sql, tenant))
  await database.close()
  const configPath = join(place.dataFolder, 'tollgate.yaml')
  writeFileSync(configPath, 'models: []\n')
  return { place, tenant, data: { dataFolder: place.dataFolder, databaseUrl: place.url, configPath } }
}

/** The management API of a gateway that has just been upgraded. */
function managerOf(url: string, dataFolder: string) {
  const token = readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim()
  return async (path: string) => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
    expect([path, response.status]).toEqual([path, 200])
    // biome-ignore lint/suspicious/noExplicitAny: answers of every kind.
    return (await response.json()) as any
  }
}

async function expectTenant(manage: ReturnType<typeof managerOf>, tenant: OldTenant, has: (name: string) => boolean) {
  const { workspaceId, keyId, requestId } = tenant
  const workspace = await manage(`/api/workspaces/${workspaceId}`)
  expect(workspace).toMatchObject({ name: 'old acme', shares_routes: has('0007-own-keys'), managed_by: 'api' })
  expect(workspace.limits).toEqual(has('0004-tenancy-more') ? { requests_per_minute: 600 } : {})
  const key = await manage(`/api/keys/${keyId}`)
  expect(key).toMatchObject({ name: 'old ci', status: 'active', workspace_id: workspaceId })
  expect(key.sources).toEqual(has('0004-tenancy-more') ? ['127.0.0.0/8'] : null)
  const charges = has('0003-budgets') ? 2n : has('0002-ledger') ? 1n : 0n
  const balance = has('0002-ledger') ? topUp - charges * charge : 0n
  expect((await manage(`/api/workspaces/${workspaceId}/wallet`)).balance).toBe(formatUsd(balance as Nano))
  const { data: transfers } = await manage(`/api/workspaces/${workspaceId}/transfers`)
  expect(transfers).toHaveLength(has('0002-ledger') ? Number(charges) + 1 : 0)
  const { data: credentials } = await manage(`/api/workspaces/${workspaceId}/credentials`)
  expect(credentials.map(({ last4 }: { last4: string }) => last4)).toEqual(has('0005-credentials') ? ['4711'] : [])
  if (!has('0006-requests')) return
  expect(await manage(`/api/requests/${requestId}`)).toMatchObject({ model: 'acme/large', cost: '0.000039' })
}

forEachEngine((engine) => {
  test.each(names)('from %s to the newest', async (newest) => {
    const has = (name: string) => names.indexOf(name) <= names.indexOf(newest)
    const { place, tenant, data } = await openOldSite(engine, newest)
    using _ = place
    const app = await startCrashApp(data, systemClock)
    try {
      await expectTenant(managerOf(app.url, data.dataFolder), tenant, has)
      const response = await fetch(`${app.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tenant.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'still here?' }] }),
      })
      // Without a ledger there was no money either.
      expect([newest, response.status]).toEqual([newest, has('0002-ledger') ? 200 : 402])
      await response.text()
      expect(app.errors()).toEqual([])
    } finally {
      await app.stop()
    }
    const database = await openDatabase(place)
    try {
      expect((await verify(database, { readPrice: readRecomputeCharge })).findings).toEqual([])
      expect((await verifyAudit(database)).findings).toEqual([])
      const applied = await database.sql<{ name: string }>`SELECT name FROM schema_migrations`
      expect(applied.map(({ name }) => name).sort()).toEqual(names)
    } finally {
      await database.close()
    }
  })
})
