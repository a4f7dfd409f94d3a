// The rows of console sessions and sign-in links, by hash. All replicas share them, so a session that is ended is ended
// everywhere at once. The caller decides who may open one and how long it lasts.

import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'

export interface ConsoleSession {
  readonly openedAt: number
  readonly usedAt: number
  /** Of the management token with which it was opened. */
  readonly fingerprint: string
}

export interface ConsoleLink {
  readonly expiresAt: number
  readonly fingerprint: string
}

/** A session has expired if it was opened or last used before these times. */
export interface SessionAges {
  readonly openedAfter: number
  readonly usedAfter: number
}

export interface ConsoleSessions {
  addLink(hash: string, link: ConsoleLink, now: number): Promise<void>
  /** Deletes it, so that of two simultaneous uses one succeeds. */
  takeLink(hash: string): Promise<ConsoleLink | undefined>
  /** Replaces the browser's old session. Deletes expired ones, and the oldest if there are too many. */
  open(hash: string, before: string | undefined, session: ConsoleSession, ages: SessionAges): Promise<void>
  find(hash: string): Promise<ConsoleSession | undefined>
  use(hash: string, now: number): Promise<void>
  end(hash: string): Promise<void>
  /** Deletes all links too; returns the number of sessions. */
  endAll(): Promise<number>
}

const sessionsMax = 1000
const linksMax = 100

interface SessionRow {
  readonly opened_at: bigint
  readonly used_at: bigint
  readonly fingerprint: string
}

interface LinkRow {
  readonly expires_at: bigint
  readonly fingerprint: string
}

export function createConsoleSessions(database: Database): ConsoleSessions {
  const write = <T>(work: (sql: Sql) => Promise<T>): Promise<T> => database.transaction(work)
  return {
    addLink: (hash, { expiresAt, fingerprint }, now) =>
      write(async (sql) => {
        await sql`DELETE FROM console_links WHERE expires_at <= ${timeToSql(now)} OR hash NOT IN
          (SELECT hash FROM console_links ORDER BY expires_at DESC, hash LIMIT ${BigInt(linksMax - 1)})`
        const row = { hash, expires_at: timeToSql(expiresAt), fingerprint }
        await sql`INSERT INTO console_links ${sql([row])}`
      }),
    async takeLink(hash) {
      const [row] = await write(
        (sql) => sql<LinkRow>`DELETE FROM console_links WHERE hash = ${hash} RETURNING expires_at, fingerprint`,
      )
      return row && { expiresAt: timeFromSql(row.expires_at), fingerprint: row.fingerprint }
    },
    open: (hash, before, { openedAt, usedAt, fingerprint }, { openedAfter, usedAfter }) =>
      write(async (sql) => {
        if (before !== undefined) await sql`DELETE FROM console_sessions WHERE hash = ${before}`
        await sql`DELETE FROM console_sessions
          WHERE opened_at <= ${timeToSql(openedAfter)} OR used_at <= ${timeToSql(usedAfter)} OR hash NOT IN
          (SELECT hash FROM console_sessions ORDER BY opened_at DESC, hash LIMIT ${BigInt(sessionsMax - 1)})`
        const row = { hash, opened_at: timeToSql(openedAt), used_at: timeToSql(usedAt), fingerprint }
        await sql`INSERT INTO console_sessions ${sql([row])}`
      }),
    async find(hash) {
      const [row] = await database.sql<SessionRow>`SELECT opened_at, used_at, fingerprint FROM console_sessions
        WHERE hash = ${hash}`
      if (!row) return undefined
      const { opened_at: openedAt, used_at: usedAt, fingerprint } = row
      return { openedAt: timeFromSql(openedAt), usedAt: timeFromSql(usedAt), fingerprint }
    },
    use: (hash, now) =>
      write(async (sql) => {
        await sql`UPDATE console_sessions SET used_at = ${timeToSql(now)} WHERE hash = ${hash}`
      }),
    end: (hash) =>
      write(async (sql) => {
        await sql`DELETE FROM console_sessions WHERE hash = ${hash}`
      }),
    endAll: () =>
      write(async (sql) => {
        await sql`DELETE FROM console_links`
        const ended = await sql<{ hash: string }>`DELETE FROM console_sessions RETURNING hash`
        return ended.length
      }),
  }
}
