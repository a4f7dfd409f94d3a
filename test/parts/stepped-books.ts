// A ledger whose time only the test moves, on both engines: PostgreSQL gets functions of its own for what time it is, which it
// finds before the built-in ones.

import type { WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import type { Database } from '../../src/store/database.ts'
import { templateOf } from '../../src/store/insert-rows.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import type { TestEngine } from './engines.ts'
import { addWorkspace, createTestClock, openLedger, type TestLedger } from './ledger.ts'

const minuteMs = 60_000

export interface SteppedBooks extends AsyncDisposable {
  readonly database: Database
  readonly workspaceId: WorkspaceId
  /** The process, or each replica. */
  readonly replicas: TestLedger[]
  /** Of the ledger, in minutes since 1970. */
  minute(): number
  /** Lets time pass, and what runs by itself run once. */
  pass(minutes: number): Promise<void>
  /** Sets the clock by so much, while no time passes. */
  set(minutes: number): Promise<void>
  /** Ends the process, or a replica, and starts it again. */
  restart(): Promise<void>
}

/** `credit`: of the workspace's wallet. */
export async function openSteppedBooks(engine: TestEngine, credit = 1_000_000n): Promise<SteppedBooks> {
  const store = await engine.openStore()
  const isShared = engine.name === 'postgres'
  const clock = createTestClock()
  if (isShared) await stepDatabase(store.database, clock.now())
  // Connections from before the change have the old search path.
  const database = isShared ? await openDatabase(store.place) : store.database
  const open = () => openLedger(database, {}, clock)
  const replicas = isShared ? [await open(), await open()] : [await open()]
  const workspaceId = await addWorkspace(database)
  await replicas[0]?.ledger.fund({ workspaceId, amount: credit as Nano, kind: 'topup' })
  const tell = async () => {
    if (isShared) {
      await database.transaction((sql) => sql`UPDATE stepped.time SET now_ms = ${BigInt(clock.now())}`)
    }
    for (const { timers } of replicas) await timers.round()
  }
  return {
    database,
    workspaceId,
    replicas,
    minute: () => clock.now() / minuteMs,
    async pass(minutes) {
      clock.advance(minutes * minuteMs)
      await tell()
    },
    async set(minutes) {
      clock.set(minutes * minuteMs)
      await tell()
    },
    async restart() {
      const last = replicas.pop()
      await last?.ledger.close()
      replicas.push(await open())
    },
    async [Symbol.asyncDispose]() {
      for (const { ledger } of replicas) await ledger.close()
      if (isShared) await database.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

async function stepDatabase(database: Database, nowMs: number): Promise<void> {
  const timeOf = (name: string) => `CREATE FUNCTION stepped.${name}() RETURNS timestamptz LANGUAGE sql AS
    'SELECT to_timestamp(now_ms / 1000.0) FROM stepped.time'`
  const run = (text: string) => database.transaction((sql) => sql<{ name: string }>(templateOf([text])))
  await run('CREATE SCHEMA stepped')
  await run('CREATE TABLE stepped.time (now_ms BIGINT NOT NULL)')
  await run(`INSERT INTO stepped.time VALUES (${nowMs})`)
  for (const name of ['clock_timestamp', 'transaction_timestamp']) await run(timeOf(name))
  const [row] = await run('SELECT current_database() AS name')
  await run(`ALTER DATABASE "${row?.name}" SET search_path = stepped, public, pg_catalog`)
}
