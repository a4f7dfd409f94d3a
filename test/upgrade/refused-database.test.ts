import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { type Ran, ranOf, runHere } from '../parts/command-line.ts'
import { createThrowAwayFolder, forEachEngine, type Place } from '../parts/engines.ts'
import { gatewayCommand } from '../parts/program.ts'

// A database that the start refuses is refused by every command that checks it, in the same words.

const cases: readonly { name: string; change: (database: Database) => Promise<unknown>; says: string }[] = [
  {
    name: 'with tables of a changed migration',
    change: ({ transaction }) =>
      transaction(async (sql) => {
        await sql`UPDATE schema_migrations SET checksum = 'another' WHERE name = '0001-schema'`
        await sql`DROP TABLE journal`
      }),
    says: 'Migration 0001-schema differs from the one this database went through',
  },
  {
    name: 'that a newer version has upgraded',
    change: ({ transaction }) =>
      transaction((sql) => sql`INSERT INTO schema_migrations VALUES ('9999-later', 'x', ${1n})`),
    says: 'The database was upgraded by a newer Tollgate: its migration 9999-later is unknown here',
  },
]

async function prepare(place: Place, change: (database: Database) => Promise<unknown>): Promise<void> {
  const database = await openDatabase(place)
  try {
    await migrate({ database, clock: systemClock })
    await change(database)
  } finally {
    await database.close()
  }
}

function environmentOf({ url, dataFolder }: Place, home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TOLLGATE_PORT: '0',
    TOLLGATE_LOCAL_MODELS: 'off',
    TOLLGATE_DATA: dataFolder,
    BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
    ...(url !== undefined && { DATABASE_URL: url }),
  }
}

forEachEngine((engine) => {
  for (const { name, change, says } of cases) {
    test(`a database ${name} is refused by the start and by the checks before it`, async () => {
      using place = await engine.createPlace()
      using home = createThrowAwayFolder()
      await prepare(place, change)
      const env = environmentOf(place, home.path)
      const run = (...args: string[]): Promise<Ran> => runHere(args, { env, cwd: home.path })

      const started = Bun.spawn([...gatewayCommand()], { cwd: home.path, env, stdio: ['ignore', 'pipe', 'pipe'] })
      expect(await ranOf(started)).toMatchObject({ exit: 1, err: expect.stringContaining(says) })

      const doctor = await run('doctor', '--offline')
      expect([doctor.exit, doctor.out]).toEqual([1, expect.stringContaining(says)])
      for (const what of ['ledger', 'audit']) {
        expect(await run(what, 'verify')).toMatchObject({ exit: 1, err: expect.stringContaining(says) })
      }
      if (engine.name === 'postgres') return
      // A copy is useful all the same: for the version that the database belongs to.
      const file = join(home.path, 'copy.db')
      const backup = await run('backup', file)
      expect([backup.exit, backup.err]).toEqual([0, expect.stringContaining(says)])
      const restored = await runHere(['restore', file], {
        env: { ...env, TOLLGATE_DATA: join(home.path, 'restored') },
        cwd: home.path,
      })
      expect([restored.exit, restored.err]).toEqual([1, expect.stringContaining(says)])
    })
  }

  test('a database with the tables of something else is named as such', async () => {
    using place = await engine.createPlace()
    using home = createThrowAwayFolder()
    const database = await openDatabase(place)
    await database.transaction((sql) => sql`CREATE TABLE accounts (id TEXT PRIMARY KEY)`)
    await database.close()
    const run = (...args: string[]) => runHere(args, { env: environmentOf(place, home.path), cwd: home.path })
    const says = "The database has no tables of Tollgate's"
    expect(await run('doctor', '--offline')).toMatchObject({ exit: 1, out: expect.stringContaining(says) })
    expect(await run('ledger', 'verify')).toMatchObject({ exit: 1, err: expect.stringContaining(says) })
    if (engine.name === 'postgres') return
    expect(await run('backup', join(home.path, 'copy.db'))).toMatchObject({
      exit: 1,
      err: expect.stringContaining(says),
    })
  })
})
