// The loop that runs a test on every database engine. Each test gets an empty, separate database: a throw-away data
// folder, and on PostgreSQL a new database. Where PostgreSQL is not installed its tests are skipped by name.

import { beforeAll, describe, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { findPostgresPrograms, sharedPostgres } from './postgres.ts'

/** A statement may take a minute in place of two seconds. */
const busyTimeoutFactor = 30

/** Enough to get in each other's way. Starting the gateway's ten takes more processor time than most tests. */
const poolSize = 4

/** Where a database can be opened; still empty. */
export interface Place extends Disposable {
  readonly url: string | undefined
  readonly dataFolder: string
  /** How many times as long PostgreSQL may take as it may for a gateway. */
  readonly timeoutFactor: number
  readonly poolSize: number
}

/** An open, migrated database. */
export interface TestStore extends AsyncDisposable {
  readonly database: Database
  readonly place: Place
}

export interface TestEngine {
  readonly name: Database['engine']
  createPlace(): Promise<Place>
  /** `await using store = await engine.openStore()`. With a timeoutFactor of 1, PostgreSQL has the gateway's own limits. */
  openStore(clock?: Clock, timeoutFactor?: number): Promise<TestStore>
}

/** Like `test`; the body gets what `open` returns, which is disposed of after it. */
export function testWith<T extends AsyncDisposable | Disposable>(open: () => Promise<T>) {
  return (name: string, body: (opened: T) => Promise<void>): void =>
    test(name, async () => {
      await using opened = await open()
      await body(opened)
    })
}

/** `storeTest` is a test that gets an open store. */
export function forEachEngine(
  tests: (engine: TestEngine, storeTest: ReturnType<typeof testWith<TestStore>>) => void,
): void {
  const run = (engine: TestEngine) =>
    tests(
      engine,
      testWith(() => engine.openStore()),
    )
  describe('on sqlite', () => run(createEngine('sqlite')))
  const installed = findPostgresPrograms() !== undefined
  describe.skipIf(!installed)('on postgres', () => {
    // A hook of a skipped group would be counted as a skipped test without a name.
    if (installed) beforeAll(async () => void (await sharedPostgres()))
    run(createEngine('postgres'))
  })
}

export function createThrowAwayFolder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

export function createEngine(name: Database['engine']): TestEngine {
  function placeAt(url: string | undefined, timeoutFactor = busyTimeoutFactor): Place {
    const folder = createThrowAwayFolder()
    return { url, dataFolder: folder.path, timeoutFactor, poolSize, [Symbol.dispose]: () => folder[Symbol.dispose]() }
  }

  return {
    name,
    async createPlace() {
      return placeAt(name === 'postgres' ? await (await sharedPostgres()).createDatabase() : undefined)
    },
    async openStore(clock = systemClock, timeoutFactor = busyTimeoutFactor) {
      const url = name === 'postgres' ? await (await sharedPostgres()).createMigrated() : undefined
      const place = placeAt(url, timeoutFactor)
      const database = await openDatabase(place)
      // On PostgreSQL this finds nothing to do: the tables were copied, which takes a tenth of the time.
      await migrate({ database, clock })
      return {
        database,
        place,
        async [Symbol.asyncDispose]() {
          await database.close()
          place[Symbol.dispose]()
        },
      }
    },
  }
}
