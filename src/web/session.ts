// Sessions of the console: opened by a one-time link or the management token, kept by the hash of what the browser
// holds, and all void when the management token changes. What a session may do is decided where it is used.

import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { AdminToken } from '../tenancy/admin-token.ts'
import type { ConsoleSessions } from '../tenancy/console-sessions.ts'
import { readCookie, sessionCookieName, setSessionCookie, type Visit } from './cookies.ts'
import { refuseForeign } from './same-origin.ts'

/** As written into the audit log. */
export interface SessionActor {
  readonly name: string
}

/** What happens to sessions, for the audit log. */
export type SessionEvent = 'signed in by link' | 'signed in by token' | 'signed out' | 'signed out everywhere'

export interface SessionDependencies {
  readonly clock: Clock
  readonly rows: ConsoleSessions
  /** The one in force: a session opened under another is void. */
  adminToken(): Pick<AdminToken, 'fingerprint' | 'matches'>
  visitOf(request: Request): Visit
}

/** All of them reject when the database is away. */
export interface Sessions {
  /** The secret of a new one-time link, `/console?t=…`; whoever has it is the operator. */
  createLink(): Promise<string>
  /** Answers with the Set-Cookie line of a new session; the browser's old one ends. */
  openByLink(request: Request, secret: string): Promise<string | Failure>
  openByToken(request: Request, token: string): Promise<string | Failure>
  /** Answers with the Set-Cookie line that takes the cookie away, and whether there was a session: 0 or 1. */
  end(request: Request): Promise<{ readonly cookie: string; readonly ended: number }>
  /** Ends every session there is, this browser's too, and every link nobody has used; answers as `end`. */
  endAll(request: Request): Promise<{ readonly cookie: string; readonly ended: number }>
  /** undefined without a session, a Failure where the session may not do this; for the management API. */
  sessionOf(request: Request): Promise<SessionActor | Failure | undefined>
}

export const linkLifeMs = 15 * 60_000
const idleMs = 12 * 3_600_000
const absoluteMs = 7 * 24 * 3_600_000
/** That a session was used is written down this often. */
const useMs = 5 * 60_000
const secretBytes = 32

const actor: SessionActor = Object.freeze({ name: 'console session' })

export function createSessions({ clock, rows, adminToken, visitOf }: SessionDependencies): Sessions {
  const agesAt = (now: number) => ({ openedAfter: now - absoluteMs, usedAfter: now - idleMs })

  const held = (request: Request): string | undefined => {
    const value = readCookie(request.headers, sessionCookieName(visitOf(request)))
    return value === undefined ? undefined : hash(value)
  }
  const open = async (request: Request): Promise<string> => {
    const secret = randomBytes(secretBytes).toString('base64url')
    const now = clock.now()
    const session = { openedAt: now, usedAt: now, fingerprint: adminToken().fingerprint }
    await rows.open(hash(secret), held(request), session, agesAt(now))
    return setSessionCookie(visitOf(request), secret, absoluteMs / 1000)
  }
  /** Uses it: a session lives on by being used. */
  const isOpen = async (request: Request): Promise<boolean> => {
    const key = held(request)
    const session = key === undefined ? undefined : await rows.find(key)
    if (key === undefined || !session) return false
    const now = clock.now()
    const { openedAfter, usedAfter } = agesAt(now)
    const isOver =
      session.usedAt <= usedAfter || session.openedAt <= openedAfter || session.fingerprint !== adminToken().fingerprint
    if (isOver) await rows.end(key)
    else if (now - session.usedAt >= useMs) await rows.use(key, now)
    return !isOver
  }

  return {
    async createLink() {
      const secret = randomBytes(secretBytes).toString('base64url')
      const now = clock.now()
      await rows.addLink(hash(secret), { expiresAt: now + linkLifeMs, fingerprint: adminToken().fingerprint }, now)
      return secret
    },
    async openByLink(request, secret) {
      // Gone whatever comes of it: a link is tried once.
      const link = await rows.takeLink(hash(secret))
      const isGood = link && clock.now() < link.expiresAt && link.fingerprint === adminToken().fingerprint
      return isGood ? await open(request) : deadLink()
    },
    openByToken: async (request, token) => (adminToken().matches(token) ? await open(request) : wrongToken()),
    async end(request) {
      const key = held(request)
      const isThere = await isOpen(request)
      if (key !== undefined && isThere) await rows.end(key)
      return { cookie: setSessionCookie(visitOf(request), '', 0), ended: isThere ? 1 : 0 }
    },
    async endAll(request) {
      const ended = await rows.endAll()
      return { cookie: setSessionCookie(visitOf(request), '', 0), ended }
    },
    sessionOf: async (request) => ((await isOpen(request)) ? (refuseForeign(request) ?? actor) : undefined),
  }
}

/** What is kept cannot be used as a cookie. */
function hash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64')
}

function deadLink(): Failure {
  return new Failure(
    'UNAUTHORIZED',
    'This sign-in link was used already, or is older than 15 minutes. Sign in with the management token.',
  )
}

function wrongToken(): Failure {
  return new Failure('UNAUTHORIZED', 'This is not the management token.')
}
