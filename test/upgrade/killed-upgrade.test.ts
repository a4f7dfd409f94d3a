import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { upgrade } from '../parts/upgrade-child.ts'
import { nextMigration, nextStatements } from './next-migration.ts'
import { restore, savedVersions } from './saved-data.ts'

async function upgradeKilled({ url, dataFolder }: Place, dieAt: number): Promise<void> {
  const program = join(import.meta.dir, '../parts/upgrade-child.ts')
  const child = Bun.spawn([process.execPath, program, url ?? '', dataFolder, String(dieAt)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  await child.exited
  expect([dieAt, child.signalCode]).toEqual([dieAt, 'SIGKILL'])
}

/** The migrations a database went through, whether it has anything of the next one, and its rows. */
async function stateOf(place: Place) {
  const database = await openDatabase(place)
  try {
    const { sql, engine } = database
    const names = await sql<{ name: string }>`SELECT name FROM schema_migrations ORDER BY applied_at, name`
    const column = (table: string) =>
      engine === 'sqlite'
        ? sql`SELECT 1 FROM pragma_table_info(${table}) WHERE name = 'region'`
        : sql`SELECT 1 FROM information_schema.columns WHERE table_name = ${table} AND column_name = 'region'`
    const [labels] = await (engine === 'sqlite'
      ? sql<{
          tables: bigint
        }>`SELECT COUNT(*) AS tables FROM sqlite_master WHERE name IN ('labels', 'requests_by_path')`
      : sql<{
          tables: bigint
        }>`SELECT COUNT(*) AS tables FROM pg_class WHERE relname IN ('labels', 'requests_by_path')`)
    const [charges] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM transfers WHERE kind = 'charge'`
    const { findings } = await verify(database, { readPrice: readRecomputeCharge })
    return {
      names: names.map(({ name }) => name),
      added: Number(labels?.tables) + (await column('requests')).length + (await column('api_keys')).length,
      charges: charges?.n,
      // The stream that was cut off held money. On PostgreSQL that is a row, and no gateway runs that would give it back.
      findings: findings.filter(({ check }) => check !== 'no open hold past its lifetime'),
    }
  } finally {
    await database.close()
  }
}

forEachEngine((engine) => {
  test('an upgrade that is killed at any statement leaves the database as it was, and the next one completes it', async () => {
    using place = await engine.createPlace()
    const version = savedVersions().at(-1) ?? ''
    await restore(version, place)
    const before = await stateOf(place)
    expect(before).toMatchObject({ added: 0, charges: 15n, findings: [] })
    // Before each statement, after the last one, and before the commit, which also has the record of the migration.
    const lastUndone = nextStatements.length + 2
    for (let dieAt = 1; dieAt <= lastUndone; dieAt++) {
      await upgradeKilled(place, dieAt)
      expect([dieAt, await stateOf(place)]).toEqual([dieAt, before])
    }
    let steps = 0
    expect(await upgrade({ ...place, step: () => void steps++ })).toEqual([nextMigration.name])
    expect(steps).toBe(lastUndone + 1)
    // Two tables and indexes, and a column in each of two tables.
    const after = { ...before, names: [...before.names, nextMigration.name], added: 4 }
    expect(await stateOf(place)).toEqual(after)
    expect(await upgrade({ ...place, step: () => void steps++ })).toEqual([])
  })

  test('an upgrade that is killed right after its commit is complete', async () => {
    using place = await engine.createPlace()
    await restore(savedVersions().at(-1) ?? '', place)
    await upgradeKilled(place, nextStatements.length + 3)
    expect(await stateOf(place)).toMatchObject({ added: 4, charges: 15n, findings: [] })
    expect(await upgrade({ ...place, step: () => {} })).toEqual([])
  })
})
