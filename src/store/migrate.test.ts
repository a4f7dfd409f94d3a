import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { forEachEngine } from '../../test/parts/engines.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import type { Database } from './database.ts'
import { migrate, textForEngine } from './migrate.ts'
import { allMigrations, type Migration } from './migrations/registry.ts'
import { openDatabase } from './open-database.ts'
import { StartRefusal } from './start-refusal.ts'

const first: Migration = { name: '0001-a', text: 'CREATE TABLE a (id TEXT PRIMARY KEY);' }
const second: Migration = { name: '0002-b', text: "CREATE TABLE b (id TEXT PRIMARY KEY);\nINSERT INTO b VALUES ('x');" }
const broken: Migration = {
  name: '0003-c',
  text: 'CREATE TABLE c (id TEXT PRIMARY KEY);\nINSERT INTO nowhere VALUES (1);',
}

function run(database: Database, migrations: readonly Migration[]): Promise<readonly string[]> {
  return migrate({ database, clock: systemClock, migrations })
}

async function refusal(started: Promise<unknown>): Promise<string> {
  const thrown = await started.catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(StartRefusal)
  return (thrown as StartRefusal).message
}

async function recorded(database: Database): Promise<string[]> {
  const rows = await database.sql<{ name: string }>`SELECT name FROM schema_migrations ORDER BY name`
  return rows.map((row) => row.name)
}

forEachEngine((engine) => {
  async function withDatabase(use: (database: Database) => Promise<void>): Promise<void> {
    using place = await engine.createPlace()
    const database = await openDatabase(place)
    try {
      await use(database)
    } finally {
      await database.close()
    }
  }

  test('applies every migration once, in order, and later only the new ones', () =>
    withDatabase(async (database) => {
      expect(await run(database, [first])).toEqual(['0001-a'])
      expect(await run(database, [first, second])).toEqual(['0002-b'])
      expect(await run(database, [first, second])).toEqual([])
      expect(await recorded(database)).toEqual(['0001-a', '0002-b'])
      expect([...(await database.sql`SELECT id FROM b`)]).toEqual([{ id: 'x' }])
    }))

  test('applies what this program brings', () =>
    withDatabase(async (database) => {
      const names = allMigrations.map((migration) => migration.name)
      expect(await migrate({ database, clock: systemClock })).toEqual(names)
      expect(await database.sql`SELECT id FROM api_keys`).toHaveLength(0)
    }))

  test('H7: a migration that fails stops the start by name and leaves nothing of itself', () =>
    withDatabase(async (database) => {
      const message = await refusal(run(database, [first, second, broken]))
      expect(message).toMatch(/^Migration 0003-c failed and was undone: .*nowhere/)
      expect(await recorded(database)).toEqual(['0001-a', '0002-b'])
      const repaired = { name: '0003-c', text: 'CREATE TABLE c (id TEXT PRIMARY KEY);' }
      expect(await run(database, [first, second, repaired])).toEqual(['0003-c'])
    }))

  test('H7: refuses a database that a newer program has upgraded', () =>
    withDatabase(async (database) => {
      await run(database, [first, second])
      expect(await refusal(run(database, [first]))).toContain('newer Tollgate: its migration 0002-b is unknown here')
    }))

  test('refuses when an applied migration has been edited since, but not for its line ends', () =>
    withDatabase(async (database) => {
      await run(database, [first, second])
      const edited = { name: '0002-b', text: `${second.text}\nCREATE TABLE more (id TEXT);` }
      expect(await refusal(run(database, [first, edited]))).toContain('Migration 0002-b differs')
      const checkedOutElsewhere = { name: '0002-b', text: second.text.replaceAll('\n', '\r\n') }
      expect(await run(database, [first, checkedOutElsewhere])).toEqual([])
    }))

  test('refuses a migration that was slipped in before applied ones', () =>
    withDatabase(async (database) => {
      await run(database, [second])
      expect(await refusal(run(database, [first, second]))).toContain('not through 0001-a')
    }))

  test('runs the sections for its engine and for both', () =>
    withDatabase(async (database) => {
      const text = [
        'CREATE TABLE seen (engine TEXT);',
        '-- sqlite:',
        "INSERT INTO seen VALUES ('sqlite');",
        '-- postgres:',
        "INSERT INTO seen VALUES ('postgres');",
        '-- both:',
        "INSERT INTO seen VALUES ('both');",
      ].join('\n')
      await run(database, [{ name: '0001-seen', text }])
      const rows = await database.sql<{ engine: string }>`SELECT engine FROM seen ORDER BY engine`
      expect(rows.map((row) => row.engine).sort()).toEqual(['both', engine.name].sort())
    }))

  test('several programs that start at once apply each migration exactly once', async () => {
    using place = await engine.createPlace()
    const databases = await Promise.all([openDatabase(place), openDatabase(place), openDatabase(place)])
    const applied = await Promise.all(databases.map((database) => run(database, [first, second])))
    expect(applied.flat().sort()).toEqual(['0001-a', '0002-b'])
    for (const database of databases) await database.close()
  })

  test('says so while it waits for another program, and then goes on', async () => {
    using place = await engine.createPlace()
    const [ahead, behind] = await Promise.all([openDatabase(place), openDatabase(place)])
    const lines: string[] = []
    // Three seconds pass between any two looks at the clock.
    let looks = 0
    const clock: Clock = { now: () => 0, monotonicMs: () => ++looks * 3000 }
    const { promise: waited, resolve } = Promise.withResolvers<void>()
    const onProgress = (line: string) => {
      lines.push(line)
      if (lines.length === 2) resolve()
    }
    let follower: Promise<readonly string[]> | undefined
    await ahead.schemaTransaction(() => {
      follower = migrate({ database: behind, clock, migrations: [first], onProgress })
      return waited
    })
    expect(await follower).toEqual(['0001-a'])
    // Waited 3, 6, 9 s at its looks: a line at the first one past one second, the next at least five seconds later.
    expect(lines).toEqual([
      'Waiting for another program that upgrades, copies or reads the database (3 s)',
      'Waiting for another program that upgrades, copies or reads the database (9 s)',
    ])
    await ahead.close()
    await behind.close()
  })

  if (engine.name !== 'postgres') return

  test('lets others use a table that it has to wait for, and goes on when nobody reads it', () =>
    withDatabase(async (database) => {
      await run(database, [first])
      const wider: Migration = { name: '0002-a', text: 'ALTER TABLE a ADD COLUMN note TEXT' }
      const waits = Promise.withResolvers<void>()
      let looks = 0
      const clock: Clock = { now: () => 0, monotonicMs: () => ++looks * 3000 }
      const onProgress = (line: string) => void (line.startsWith('Waiting') && waits.resolve())
      let applied: Promise<readonly string[]> | undefined
      // As a long report or pg_dump.
      await database.snapshot(async (sql) => {
        await sql`SELECT id FROM a`
        applied = migrate({ database, clock, migrations: [first, wider], onProgress })
        await waits.promise
        for (const id of ['1', '2', '3']) await database.transaction((writing) => writing`INSERT INTO a VALUES (${id})`)
      })
      expect(await applied).toEqual(['0002-a'])
      expect(await database.sql`SELECT id FROM a WHERE note IS NULL`).toHaveLength(3)
    }))
})

test('the registry names every file of the folder, in order', async () => {
  const folder = join(import.meta.dir, 'migrations')
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
  expect(allMigrations.map((migration) => `${migration.name}.sql`)).toEqual(files)
  for (const migration of allMigrations) {
    expect(migration.text).toBe(await Bun.file(join(folder, `${migration.name}.sql`)).text())
  }
})

test('every column is TEXT or BIGINT, and no migration ends its own transaction', () => {
  for (const { name, text } of allMigrations) {
    // SQLite counts rows up by itself only under this type.
    const portable = textForEngine(text, 'sqlite').replaceAll(/--.*$/gm, '').replaceAll('INTEGER PRIMARY KEY', 'BIGINT')
    const types = [...portable.matchAll(/(?:^ {2}|ADD COLUMN )[a-z_0-9]+ ([A-Z]+)/gm)].map((match) => match[1])
    expect({ name, columns: types.length > 0 }).toEqual({ name, columns: true })
    expect({ name, others: types.filter((type) => type !== 'BIGINT' && type !== 'TEXT') }).toEqual({ name, others: [] })
    expect(portable).not.toMatch(/\b(COMMIT|ROLLBACK|BEGIN TRANSACTION)\b/i)
  }
})
