// A client that leaves during a report: on a real socket, while the database reads the log for it.

import { expect } from 'bun:test'
import { SQL } from 'bun'
import { forEachEngine, type TestEngine, testWith } from '../../../test/parts/engines.ts'
import { managementToken, openManagement } from '../../../test/parts/management.ts'
import { connect } from '../../../test/parts/raw-client.ts'
import { isoTime } from '../../kernel/clock.ts'
import { firstIdAt } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'

const noon = Date.UTC(2026, 10, 15, 12)
const portions = 3
const portionRows = { sqlite: 2_000, postgres: 25_000 }
const period = `from=${isoTime(noon - 60_000)}&to=${isoTime(noon + 60_000)}`

/** Each with how often it goes through the log. */
const reports = [
  [`/api/usage?group_by=tag:team&${period}`, 1],
  [`/api/usage/series?group_by=user&${period}`, 2],
  [`/api/requests/facets?tag=team%3Dweb&${period}`, 1],
  [`/api/usage/export?group_by=tag:team&format=csv&${period}`, 1],
] as const

/** A place where the first read of a report waits. */
interface Hold {
  /** Settles when a report is waiting. */
  readonly begun: Promise<void>
  /** Settles when it waits no more. */
  release(): Promise<void>
}

async function openReports(engine: TestEngine) {
  let searches = 0
  let gate: { open(): void; begin(): void; readonly opened: Promise<void> } | undefined
  const counting = (sql: Sql): Sql =>
    (async (text: TemplateStringsArray, ...values: []) => {
      if (!Array.isArray(text)) return sql(text)
      // Each portion begins with a search for its end.
      if (text.join('?').includes('FROM requests WHERE') && text.join('?').includes('OFFSET')) {
        searches++
        gate?.begin()
        await gate?.opened
      }
      return sql(text, ...values)
    }) as Sql
  let url: string | undefined
  let database: Database | undefined
  const management = await openManagement({
    ...engine,
    async openStore() {
      const store = await engine.openStore()
      url = store.place.url
      database = store.database
      return { ...store, database: { ...store.database, sql: counting(store.database.sql) } }
    },
  })
  await database?.transaction(
    (sql) => sql`INSERT INTO requests
        (id, started_at, workspace_id, project_id, key_id, path, stream, status, total_ms, estimated)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${BigInt(portions * portionRows[engine.name])})
      SELECT CAST(${firstIdAt(noon).slice(0, -6)} AS TEXT) || SUBSTR(CAST(1000000 + i AS TEXT), 2),
        CAST(${BigInt(noon)} AS BIGINT), 'ws', 'prj', 'key', '/', 0, 200, 1, 0 FROM n`,
  )
  const admin = url === undefined ? undefined : new SQL({ adapter: 'postgres', url, max: 2 })
  const holdInProcess = async (): Promise<Hold> => {
    const [begun, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    gate = { begin: begun.resolve, open: opened.resolve, opened: opened.promise }
    const release = async () => {
      gate = undefined
      opened.resolve()
    }
    return { begun: begun.promise, release }
  }
  const holdInServer = async (sql: SQL): Promise<Hold> => {
    const locking = await sql.reserve()
    await locking`BEGIN`
    await locking`LOCK TABLE requests IN ACCESS EXCLUSIVE MODE`
    const busy = async (condition: string): Promise<number> => {
      const rows = await sql.unsafe(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND query LIKE '%FROM requests WHERE%' AND ${condition}`)
      return rows.length
    }
    const until = async (isTrue: () => Promise<boolean>) => {
      while (!(await isTrue())) await Bun.sleep(5)
    }
    return {
      begun: until(async () => (await busy("state = 'active' AND wait_event_type = 'Lock'")) > 0),
      async release() {
        await locking`ROLLBACK`
        locking.release()
        await until(async () => (await busy("state <> 'idle'")) === 0)
      },
    }
  }
  return {
    management,
    hold: () => (admin ? holdInServer(admin) : holdInProcess()),
    searches: () => searches,
    async [Symbol.asyncDispose]() {
      await admin?.close()
      await management[Symbol.asyncDispose]()
    },
  }
}

forEachEngine((engine) => {
  testWith(() => openReports(engine))(
    'a report stops reading the log when its client leaves',
    async ({ management, hold, searches }) => {
      for (const [path, times] of reports) {
        const before = searches()
        const held = await hold()
        const client = await connect(management.url)
        await client.send(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${managementToken}\r\n\r\n`)
        await held.begun
        client.leave()
        // Others are served meanwhile. After two round trips the gateway has seen the end of the connection, which came first.
        for (let trip = 0; trip < 2; trip++) expect((await management.ask('GET', '/api/workspaces')).status).toBe(200)
        await held.release()
        // One that was not stopped would read on while this one goes through the whole log.
        expect((await management.ask('GET', path)).status).toBe(200)
        // After the last row, one more search finds that there is no end of a further portion.
        expect([path, searches() - before]).toEqual([path, 1 + times * (portions + 1)])
      }
      expect(management.defects).toEqual([])
    },
  )
})
