// The rows of console sessions and sign-in links, by hash. All replicas share them, so a session that is ended is ended
// everywhere at once. The caller decides who may open one and how long it lasts.

import type { PersonId, SessionId } from '../kernel/ids.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'

const sessionRow = rowFormat({
  id: text<SessionId>(),
  /** The browser's name for itself. */
  client: text(),
  openedAt: time,
  usedAt: time,
  /** Fingerprint of the management token with which it was opened; empty for a person. */
  fingerprint: text(),
  /** undefined = the installation. */
  personId: optional(text<PersonId>()),
})

export type ConsoleSession = ItemIn<typeof sessionRow>

const linkRow = rowFormat({ expiresAt: time, fingerprint: text() })

export type ConsoleLink = ItemIn<typeof linkRow>

/** A session has expired if it was opened or last used before these times. */
export interface SessionAges {
  readonly openedAfter: number
  readonly usedAfter: number
}

const idleMs = 12 * 3_600_000
export const sessionMaxMs = 7 * 24 * 3_600_000

export function sessionAgesAt(now: number): SessionAges {
  return { openedAfter: now - sessionMaxMs, usedAfter: now - idleMs }
}

export type ConsoleSessions = ReturnType<typeof createConsoleSessions>

const sessionsMax = 1000
const personSessionsMax = 20
const linksMax = 100

export function createConsoleSessions(database: Database) {
  const write = <T>(work: (sql: Sql) => Promise<T>): Promise<T> => database.transaction(work)
  return {
    addLink: (hash: string, link: ConsoleLink, now: number) =>
      write(async (sql) => {
        await sql`DELETE FROM console_links WHERE expires_at <= ${timeToSql(now)} OR hash NOT IN
          (SELECT hash FROM console_links ORDER BY expires_at DESC, hash LIMIT ${BigInt(linksMax - 1)})`
        await sql`INSERT INTO console_links ${sql([{ ...linkRow.write(link), hash }])}`
      }),
    /** Deletes it, so that of two simultaneous uses one succeeds. */
    takeLink: async (hash: string) =>
      linkRow.first(
        await write((sql) => sql`DELETE FROM console_links WHERE hash = ${hash} RETURNING expires_at, fingerprint`),
      ),
    /** Replaces the browser's old session. Deletes expired ones, and the oldest if there are too many. */
    open: (hash: string, before: string | undefined, session: ConsoleSession, ages: SessionAges) =>
      write(async (sql) => {
        if (before !== undefined) await sql`DELETE FROM console_sessions WHERE hash = ${before}`
        // Counted per person, so that a person cannot push out the sessions of others.
        const { personId } = session
        const whose = personId ?? ''
        const kept = BigInt((personId === undefined ? sessionsMax : personSessionsMax) - 1)
        await sql`DELETE FROM console_sessions
          WHERE opened_at <= ${timeToSql(ages.openedAfter)} OR used_at <= ${timeToSql(ages.usedAfter)}
          OR (COALESCE(person_id, '') = ${whose} AND hash NOT IN (SELECT hash FROM console_sessions
            WHERE COALESCE(person_id, '') = ${whose} ORDER BY opened_at DESC, hash LIMIT ${kept}))`
        await sql`INSERT INTO console_sessions ${sql([{ ...sessionRow.write(session), hash }])}`
      }),
    find: async (hash: string) =>
      sessionRow.first(await database.sql`SELECT * FROM console_sessions WHERE hash = ${hash}`),
    use: (hash: string, now: number) =>
      write((sql) => sql`UPDATE console_sessions SET used_at = ${timeToSql(now)} WHERE hash = ${hash}`),
    end: (hash: string) => write((sql) => sql`DELETE FROM console_sessions WHERE hash = ${hash}`),
    /** Deletes all links too; returns the number of sessions. With a person, only the sessions of that person. */
    endAll: (personId?: PersonId) =>
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

/** Sessions that can still be used, latest sign-in first. Without a person, the installation's under this fingerprint. */
export async function listSessions(
  sql: Sql,
  { personId, fingerprint }: { readonly personId: PersonId | undefined; readonly fingerprint: string },
  now: number,
): Promise<readonly ConsoleSession[]> {
  const { openedAfter, usedAfter } = sessionAgesAt(now)
  const rows = await sql`SELECT * FROM console_sessions WHERE COALESCE(person_id, '') = ${personId ?? ''}
      AND fingerprint = ${personId === undefined ? fingerprint : ''}
      AND opened_at > ${timeToSql(openedAfter)} AND used_at > ${timeToSql(usedAfter)} ORDER BY opened_at DESC, id`
  return sessionRow.all(rows)
}

/** False = there is none. With a person, only one of theirs is ended. */
export async function endSession(sql: Sql, id: string, personId?: PersonId): Promise<boolean> {
  const ended = await sql`DELETE FROM console_sessions
    WHERE id = ${id} AND (${personId ?? ''} = '' OR person_id = ${personId ?? ''}) RETURNING id`
  return ended.length > 0
}
