import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { createThrowAwayFolder, forEachEngine } from '../../test/parts/engines.ts'
import type { Database } from './database.ts'
import { openDatabase } from './open-database.ts'
import type { Sql } from './sql.ts'
import { isRowLocked, isStoreUnavailable } from './sql-error.ts'
import { StartRefusal } from './start-refusal.ts'

async function createWallets(database: Database): Promise<void> {
  await database.schemaTransaction((_sql, runScript) =>
    runScript('CREATE TABLE wallets (id TEXT PRIMARY KEY, amount BIGINT NOT NULL, note TEXT)'),
  )
}

forEachEngine((engine, storeTest) => {
  storeTest(
    'gives integers back as bigint, exact beyond 2^53, and takes several rows at once',
    async ({ database }) => {
      await createWallets(database)
      await database.transaction(async (sql) => {
        const rows = [
          { id: 'a', amount: 9_007_199_254_740_993n, note: null },
          { id: 'b', amount: 5n, note: "it's; --" },
        ]
        await sql`INSERT INTO wallets ${sql(rows)}`
      })
      const rows = await database.sql`SELECT id, amount, note FROM wallets ORDER BY id`
      expect([...rows]).toEqual([
        { id: 'a', amount: 9_007_199_254_740_993n, note: null },
        { id: 'b', amount: 5n, note: "it's; --" },
      ])
      const [sum] = await database.sql<{ n: bigint; total: bigint }>`
      SELECT COUNT(*) AS n, CAST(SUM(amount) AS BIGINT) AS total FROM wallets`
      expect(sum).toEqual({ n: 2n, total: 9_007_199_254_740_998n })
    },
  )

  storeTest('undoes everything when the work of a transaction throws', async ({ database }) => {
    await createWallets(database)
    const work = database.transaction(async (sql) => {
      await sql`INSERT INTO wallets (id, amount) VALUES (${'a'}, ${1n})`
      throw new Error('changed my mind')
    })
    await expect(work).rejects.toThrow('changed my mind')
    expect(await database.sql`SELECT id FROM wallets`).toHaveLength(0)
  })

  storeTest('refuses a write outside a transaction', async ({ database }) => {
    await createWallets(database)
    const write = database.sql`INSERT INTO wallets (id, amount) VALUES (${'a'}, ${1n})`
    expect(await write.then(String, (thrown: Error) => thrown.message)).toMatch(/read-?only/)
    expect(await database.sql`SELECT id FROM wallets`).toHaveLength(0)
  })

  storeTest('does not show what a running transaction has not committed', async ({ database }) => {
    await createWallets(database)
    await database.transaction(async (sql) => {
      await sql`INSERT INTO wallets (id, amount) VALUES (${'a'}, ${1n})`
      expect(await sql`SELECT id FROM wallets`).toHaveLength(1)
      expect(await database.sql`SELECT id FROM wallets`).toHaveLength(0)
    })
    expect(await database.sql`SELECT id FROM wallets`).toHaveLength(1)
  })

  storeTest('a transaction waits for a row that another one has locked', async ({ database }) => {
    await createWallets(database)
    await database.transaction(async (sql) => void (await sql`INSERT INTO wallets (id, amount) VALUES ('a', ${1n})`))
    const order: string[] = []
    let second: Promise<unknown> | undefined
    await database.transaction(async (sql) => {
      await sql`SELECT id FROM wallets WHERE id = 'a' FOR NO KEY UPDATE`
      second = database.transaction(async (other) => {
        const [row] = await other<{ amount: bigint }>`SELECT amount FROM wallets WHERE id = ${'a'}
          FOR NO KEY UPDATE`
        order.push(`locked at ${row?.amount}`)
      })
      // Time enough for the second one to get through, if nothing kept it.
      for (let n = 0; n < 50; n++) await sql`SELECT id FROM wallets`
      await sql`UPDATE wallets SET amount = ${2n} WHERE id = 'a'`
      order.push('changed')
    })
    await second
    expect(order).toEqual(['changed', 'locked at 2'])
  })

  storeTest('keeps transactions that run at the same time apart', async ({ database }) => {
    await createWallets(database)
    const outcomes = await Promise.allSettled(
      [0, 1, 2, 3, 4, 5].map((at) =>
        database.transaction(async (sql) => {
          await sql`INSERT INTO wallets (id, amount) VALUES (${`w${at}`}, ${1n})`
          if (at % 2 === 1) throw new Error('odd')
        }),
      ),
    )
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
    ])
    const rows = await database.sql<{ id: string }>`SELECT id FROM wallets ORDER BY id`
    expect(rows.map((row) => row.id)).toEqual(['w0', 'w2', 'w4'])
  })

  storeTest(
    'lets a guarded update through exactly as often as the balance allows, however many try at once',
    async ({ database }) => {
      await createWallets(database)
      await database.transaction((sql) => sql`INSERT INTO wallets (id, amount) VALUES (${'w'}, ${75n})`)
      const taken = await Promise.all(
        Array.from({ length: 100 }, () =>
          database.transaction(async (sql) => {
            const rows =
              await sql`UPDATE wallets SET amount = amount - ${10n} WHERE id = ${'w'} AND amount >= ${10n} RETURNING amount`
            return rows.length
          }),
        ),
      )
      expect(taken.filter((count) => count === 1)).toHaveLength(7)
      const [row] = await database.sql<{ amount: bigint }>`SELECT amount FROM wallets`
      expect(row?.amount).toBe(5n)
    },
  )

  storeTest('enforces foreign keys', async ({ database }) => {
    const write = database.transaction(
      (sql) => sql`INSERT INTO projects (id, workspace_id, name, created_at) VALUES ('prj_1', 'ws_none', 'p', 0)`,
    )
    expect(await write.then(String, (thrown: Error) => thrown.message.toLowerCase())).toContain('foreign key')
  })

  storeTest('says busy to a second schema transaction, and runs nothing of it', async ({ database, place }) => {
    const other = await openDatabase(place)
    try {
      const inner = await database.schemaTransaction(() => other.schemaTransaction(async () => 'ran'))
      expect(inner).toEqual({ result: 'busy' })
      expect(await other.schemaTransaction(async () => 'ran')).toEqual({ result: 'ran' })
    } finally {
      await other.close()
    }
  })

  test('finds its rows again after it was closed and opened', async () => {
    using place = await engine.createPlace()
    const first = await openDatabase(place)
    await createWallets(first)
    await first.transaction((sql) => sql`INSERT INTO wallets (id, amount) VALUES ('a', 1)`)
    await first.close()
    const second = await openDatabase(place)
    expect(await second.sql`SELECT id FROM wallets`).toHaveLength(1)
    await second.close()
  })

  storeTest('calls a closed database unavailable, and a wrong statement not', async ({ database, place }) => {
    const wrong = await database.sql`SELECT nothing FROM nowhere`.catch((thrown: unknown) => thrown)
    expect(wrong).toBeInstanceOf(SQL.SQLError)
    expect(isStoreUnavailable(wrong)).toBe(false)
    const other = await openDatabase(place)
    await other.close()
    const closed = await other.sql`SELECT 1`.catch((thrown: unknown) => thrown)
    expect(closed).toBeInstanceOf(SQL.SQLError)
    expect(isStoreUnavailable(closed)).toBe(true)
  })

  if (engine.name !== 'postgres') return

  test('limits how long a statement runs, except in a schema transaction', async () => {
    await using store = await engine.openStore(undefined, 1)
    const { database } = store
    const setting = '2s'
    const limits = (sql: Sql) => sql`SELECT current_setting('statement_timeout') AS statement,
      current_setting('lock_timeout') AS lock, current_setting('idle_in_transaction_session_timeout') AS idle`
    expect([...(await limits(database.sql))]).toEqual([{ statement: setting, lock: '900ms', idle: '5s' }])
    const unlimited = { statement: '0', lock: '0', idle: '0' }
    await database.snapshot(async (sql) => expect([...(await limits(sql))]).toEqual([unlimited]))
    // All others that use a table wait while a schema transaction waits for it.
    const schemaLimits = { ...unlimited, lock: '200ms' }
    await database.schemaTransaction(async (sql) => expect([...(await limits(sql))]).toEqual([schemaLimits]))
    await database.transaction(async (sql) => {
      expect([...(await sql`SHOW statement_timeout`)]).toEqual([{ statement_timeout: setting }])
      expect([...(await sql`SHOW synchronous_commit`)]).toEqual([{ synchronous_commit: 'on' }])
      expect([...(await sql`SHOW transaction_isolation`)]).toEqual([{ transaction_isolation: 'read committed' }])
    })
  })

  test('a process that says nothing for five seconds in a transaction loses it, and others get its rows', async () => {
    await using store = await engine.openStore(undefined, 1)
    const { database, place } = store
    await createWallets(database)
    await database.transaction((sql) => sql`INSERT INTO wallets (id, amount) VALUES ('a', 1)`)
    const take = (sql: Sql) => sql`UPDATE wallets SET amount = amount + 1 WHERE id = 'a'`
    const { promise: isLocked, resolve: lock } = Promise.withResolvers<void>()
    // Opened before: on a slow machine that may take longer than the five seconds.
    const other = await openDatabase(place)
    const idle = () => other.sql`SELECT 1 FROM pg_stat_activity
      WHERE state = 'idle in transaction' AND datname = current_database()`
    const frozen = database
      .transaction(async (sql) => {
        await take(sql)
        lock()
        // Until the server has ended its session.
        while ((await idle()).length > 0) await Bun.sleep(50)
        await take(sql)
      })
      .catch((thrown: unknown) => thrown)
    await isLocked
    const refused = await other.transaction(take).catch((thrown: unknown) => thrown)
    expect([isRowLocked(refused), isStoreUnavailable(refused)]).toEqual([true, true])
    expect(isStoreUnavailable(await frozen)).toBe(true)
    await other.transaction(take)
    expect([...(await other.sql`SELECT amount FROM wallets`)]).toEqual([{ amount: 2n }])
    await other.close()
    // Its own connections are found again.
    let tries = 0
    while (tries++ < 11) {
      const end = await database.transaction(take).catch((thrown: unknown) => thrown)
      if (Array.isArray(end)) break
      expect(isStoreUnavailable(end)).toBe(true)
    }
    expect(tries).toBeLessThan(11)
  })

  storeTest('goes on after the server cut its connections', async ({ database, place }) => {
    await database.sql`SELECT 1`
    const admin = new SQL({ adapter: 'postgres', url: place.url ?? '', max: 1 })
    await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'tollgate' AND datname = current_database()`
    await admin.close()
    // Each connection of the pool may be found dead once.
    const failures: unknown[] = []
    let answered = false
    while (!answered && failures.length <= 10) {
      await database.sql`SELECT 1`.then(
        () => (answered = true),
        (thrown: unknown) => failures.push(thrown),
      )
    }
    expect(answered).toBe(true)
    expect(failures.every(isStoreUnavailable)).toBe(true)
  })

  test('names the database that does not exist', async () => {
    using place = await engine.createPlace()
    const url = (place.url ?? '').replace(/[^/]+$/, 'elsewhere')
    await expect(openDatabase({ ...place, url })).rejects.toThrow(
      /^Cannot use PostgreSQL at .*: database "elsewhere" does not exist\. Check DATABASE_URL/,
    )
  })
})

test('SQLite syncs every commit, and its files are private', async () => {
  using folder = createThrowAwayFolder()
  const database = await openDatabase({ url: undefined, dataFolder: folder.path })
  await createWallets(database)
  await database.transaction(async (sql) => {
    expect([...(await sql`PRAGMA journal_mode`)]).toEqual([{ journal_mode: 'wal' }])
    expect([...(await sql`PRAGMA synchronous`)]).toEqual([{ synchronous: 2n }])
    expect([...(await sql`PRAGMA busy_timeout`)]).toEqual([{ timeout: 5000n }])
  })
  for (const name of ['tollgate.db', 'tollgate.db-wal', 'tollgate.db-shm']) {
    expect(`${name} ${(statSync(join(folder.path, name)).mode & 0o777).toString(8)}`).toBe(`${name} 600`)
  }
  await database.close()
})

test('an unreachable server is named without its password', async () => {
  const url = 'postgres://anna:hunter2@127.0.0.1:1/books?password=hunter2'
  const refusal = await openDatabase({ url, dataFolder: '.' }).catch((thrown: unknown) => thrown)
  expect(refusal).toBeInstanceOf(StartRefusal)
  expect((refusal as Error).message).toBe(
    'Cannot use PostgreSQL at postgres://anna:***@127.0.0.1:1/books: nothing answers at this address. Check DATABASE_URL and the server, or unset DATABASE_URL to use the embedded database.',
  )
})

test('a DATABASE_URL of another form is refused without showing it', async () => {
  for (const url of ['mysql://anna:hunter2@host/books', 'anna:hunter2@host', 'postgres//anna:hunter2@host', '']) {
    const refusal = openDatabase({ url, dataFolder: '.' })
    await expect(refusal).rejects.toThrow(
      'DATABASE_URL is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE.',
    )
  }
})

test('a file that is no database is refused with its name', async () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'tollgate.db')
  await Bun.write(file, 'this is a text, and certainly not a database file of any kind'.repeat(20))
  await expect(openDatabase({ url: undefined, dataFolder: folder.path })).rejects.toThrow(
    `Cannot open the database ${file}: file is not a database.`,
  )
})
