// The loop that runs a test on every database engine. Each test gets an empty place of its own: a throw-away data
// folder, and on PostgreSQL a new database. Where PostgreSQL is not installed its tests are skipped by name.

import { beforeAll, describe } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { StartRefusal } from '../../src/store/start-refusal.ts'
import { findPostgresPrograms, sharedPostgres } from './postgres.ts'

/** Where a database can be opened; still empty. */
export interface Place extends Disposable {
  readonly url: string | undefined
  readonly dataFolder: string
}

/** An open, migrated database. */
export interface TestStore extends AsyncDisposable {
  readonly database: Database
  readonly place: Place
}

export interface TestEngine {
  readonly name: Database['engine']
  createPlace(): Promise<Place>
  /** `await using store = await engine.openStore()` */
  openStore(clock?: Clock): Promise<TestStore>
}

export function forEachEngine(tests: (engine: TestEngine) => void): void {
  describe('on sqlite', () => tests(createEngine('sqlite')))
  const installed = findPostgresPrograms() !== undefined
  describe.skipIf(!installed)('on postgres', () => {
    // A hook of a skipped group would be counted as a skipped test without a name.
    if (installed) beforeAll(async () => void (await sharedPostgres()))
    tests(createEngine('postgres'))
  })
}

export function createThrowAwayFolder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** On a busy machine PostgreSQL may take longer than the five seconds that the gateway waits for a connection. */
async function openPatiently(place: Place): Promise<Database> {
  for (;;) {
    try {
      return await openDatabase(place)
    } catch (thrown) {
      if (!(thrown instanceof StartRefusal && thrown.message.includes('no answer within'))) throw thrown
    }
  }
}

export function createEngine(name: Database['engine']): TestEngine {
  function placeAt(url: string | undefined): Place {
    const folder = createThrowAwayFolder()
    return { url, dataFolder: folder.path, [Symbol.dispose]: () => folder[Symbol.dispose]() }
  }

  return {
    name,
    async createPlace() {
      return placeAt(name === 'postgres' ? await (await sharedPostgres()).createDatabase() : undefined)
    },
    async openStore(clock = systemClock) {
      const place = placeAt(name === 'postgres' ? await (await sharedPostgres()).createMigrated() : undefined)
      const database = await openPatiently(place)
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
