// The rows of console sessions and sign-in links, by hash. All replicas share them, so a session that is ended is ended
// everywhere at once. The caller decides who may open one and how long it lasts.

import type { PersonId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'

export interface ConsoleSession {
  readonly openedAt: number
  readonly usedAt: number
  /** Fingerprint of the management token with which it was opened; empty for a person. */
  readonly fingerprint: string
  /** undefined = the installation. */
  readonly personId: PersonId | undefined
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
  /** Deletes all links too; returns the number of sessions. With a person, only the sessions of that person. */
  endAll(personId?: PersonId): Promise<number>
}

const sessionsMax = 1000
const personSessionsMax = 20
const linksMax = 100

interface SessionRow {
  readonly opened_at: bigint
  readonly used_at: bigint
  readonly fingerprint: string
  readonly person_id: PersonId | null
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
    open: (hash, before, { openedAt, usedAt, fingerprint, personId }, { openedAfter, usedAfter }) =>
      write(async (sql) => {
        if (before !== undefined) await sql`DELETE FROM console_sessions WHERE hash = ${before}`
        // Counted per person, so that a person cannot push out the sessions of others.
        const whose = personId ?? ''
        const kept = BigInt((personId === undefined ? sessionsMax : personSessionsMax) - 1)
        await sql`DELETE FROM console_sessions
          WHERE opened_at <= ${timeToSql(openedAfter)} OR used_at <= ${timeToSql(usedAfter)}
          OR (COALESCE(person_id, '') = ${whose} AND hash NOT IN (SELECT hash FROM console_sessions
            WHERE COALESCE(person_id, '') = ${whose} ORDER BY opened_at DESC, hash LIMIT ${kept}))`
        const times = { opened_at: timeToSql(openedAt), used_at: timeToSql(usedAt) }
        const row = { hash, ...times, fingerprint, person_id: personId ?? null }
        await sql`INSERT INTO console_sessions ${sql([row])}`
      }),
    async find(hash) {
      const [row] =
        await database.sql<SessionRow>`SELECT opened_at, used_at, fingerprint, person_id FROM console_sessions
        WHERE hash = ${hash}`
      if (!row) return undefined
      const { opened_at: openedAt, used_at: usedAt, fingerprint, person_id: personId } = row
      const times = { openedAt: timeFromSql(openedAt), usedAt: timeFromSql(usedAt) }
      return { ...times, fingerprint, personId: personId ?? undefined }
    },
    use: (hash, now) =>
      write(async (sql) => {
        await sql`UPDATE console_sessions SET used_at = ${timeToSql(now)} WHERE hash = ${hash}`
      }),
    end: (hash) =>
      write(async (sql) => {
        await sql`DELETE FROM console_sessions WHERE hash = ${hash}`
      }),
    endAll: (personId) =>
      write(async (sql) => {
        if (personId !== undefined) {
          const own = await sql`DELETE FROM console_sessions WHERE person_id = ${personId} RETURNING hash`
          return own.length
        }
        await sql`DELETE FROM console_links`
        const ended = await sql<{ hash: string }>`DELETE FROM console_sessions RETURNING hash`
        return ended.length
      }),
  }
}
