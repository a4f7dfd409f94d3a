// The rows of console sessions and sign-in links, by hash. All replicas share them, so a session that is ended is ended
// everywhere at once. The caller decides who may open one and how long it lasts.

import type { PersonId, SessionId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'

export interface ConsoleSession {
  readonly id: SessionId
  /** The browser's name for itself. */
  readonly client: string
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

const idleMs = 12 * 3_600_000
export const sessionMaxMs = 7 * 24 * 3_600_000

export function sessionAgesAt(now: number): SessionAges {
  return { openedAfter: now - sessionMaxMs, usedAfter: now - idleMs }
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
  readonly id: SessionId
  readonly client: string
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
    open: (hash, before, { id, client, openedAt, usedAt, fingerprint, personId }, { openedAfter, usedAfter }) =>
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
        const row = { hash, id, client, ...times, fingerprint, person_id: personId ?? null }
        await sql`INSERT INTO console_sessions ${sql([row])}`
      }),
    async find(hash) {
      const [row] = await database.sql<SessionRow>`SELECT * FROM console_sessions WHERE hash = ${hash}`
      return row && sessionFromRow(row)
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

function sessionFromRow(row: SessionRow): ConsoleSession {
  return {
    id: row.id,
    client: row.client,
    openedAt: timeFromSql(row.opened_at),
    usedAt: timeFromSql(row.used_at),
    fingerprint: row.fingerprint,
    personId: row.person_id ?? undefined,
  }
}

/** Sessions that can still be used, latest sign-in first. Without a person, the installation's under this fingerprint. */
export async function listSessions(
  sql: Sql,
  { personId, fingerprint }: { readonly personId: PersonId | undefined; readonly fingerprint: string },
  now: number,
): Promise<readonly ConsoleSession[]> {
  const { openedAfter, usedAfter } = sessionAgesAt(now)
  const rows = await sql<SessionRow>`SELECT * FROM console_sessions WHERE COALESCE(person_id, '') = ${personId ?? ''}
      AND fingerprint = ${personId === undefined ? fingerprint : ''}
      AND opened_at > ${timeToSql(openedAfter)} AND used_at > ${timeToSql(usedAfter)} ORDER BY opened_at DESC, id`
  return rows.map(sessionFromRow)
}

/** False = there is none. With a person, only one of theirs is ended. */
export async function endSession(sql: Sql, id: string, personId?: PersonId): Promise<boolean> {
  const ended = await sql`DELETE FROM console_sessions
    WHERE id = ${id} AND (${personId ?? ''} = '' OR person_id = ${personId ?? ''}) RETURNING id`
  return ended.length > 0
}
