// Sessions of the console: opened by a one-time link or the management token, kept in memory by the hash of what the
// browser holds, and all void when the management token changes. What a session may do is decided where it is used.

import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { AdminToken } from '../tenancy/admin-token.ts'
import { readCookie, sessionCookieName, setSessionCookie, type Visit, visitOf } from './cookies.ts'
import { refuseForeign } from './same-origin.ts'

/** As written into the audit log. */
export interface SessionActor {
  readonly name: string
}

/** What happens to sessions, for the audit log. */
export type SessionEvent = 'signed in by link' | 'signed in by token' | 'signed out' | 'signed out everywhere'

export interface SessionDependencies {
  readonly clock: Clock
  /** The one in force: a session opened under another is void. */
  adminToken(): Pick<AdminToken, 'fingerprint' | 'matches'>
  /** What the operator says the gateway is reached by. */
  publicUrl(): string | undefined
}

export interface Sessions {
  /** The secret of a new one-time link, `/console?t=…`; whoever has it is the operator. */
  createLink(): string
  /** Answers with the Set-Cookie line of a new session; the browser's old one ends. */
  openByLink(request: Request, secret: string): string | Failure
  openByToken(request: Request, token: string): string | Failure
  /** Answers with the Set-Cookie line that takes the cookie away. */
  end(request: Request): string
  /** Ends every session there is, this browser's too, and every link nobody has used; answers as `end`, with how many. */
  endAll(request: Request): { readonly cookie: string; readonly ended: number }
  /** Ends what was opened or handed out up to that moment, as another replica wants it. */
  endUntil(moment: number): void
  /** undefined without a session, a Failure where the session may not do this; for the management API. */
  sessionOf(request: Request): SessionActor | Failure | undefined
}

export const linkLifeMs = 15 * 60_000
const idleMs = 12 * 3_600_000
const absoluteMs = 7 * 24 * 3_600_000
/** More are nobody's: the oldest go first. */
const sessionsMax = 1000
const linksMax = 100
const secretBytes = 32

const actor: SessionActor = Object.freeze({ name: 'console session' })

interface Session {
  readonly openedAt: number
  usedAt: number
  /** Of the management token under which it was opened. */
  readonly fingerprint: string
}

interface Link {
  readonly createdAt: number
  readonly expiresAt: number
  readonly fingerprint: string
}

export function createSessions({ clock, adminToken, publicUrl }: SessionDependencies): Sessions {
  const sessions = new Map<string, Session>()
  const links = new Map<string, Link>()
  const visit = (request: Request): Visit => visitOf(request, publicUrl())

  const held = (request: Request): string | undefined => {
    const value = readCookie(request.headers, sessionCookieName(visit(request)))
    return value === undefined ? undefined : hash(value)
  }
  const open = (request: Request): string => {
    const before = held(request)
    if (before !== undefined) sessions.delete(before)
    const secret = randomBytes(secretBytes).toString('base64url')
    const now = clock.now()
    makeRoom(sessions, sessionsMax)
    sessions.set(hash(secret), { openedAt: now, usedAt: now, fingerprint: adminToken().fingerprint })
    return setSessionCookie(visit(request), secret, absoluteMs / 1000)
  }
  /** Uses it: a session lives on by being used. */
  const find = (request: Request): Session | undefined => {
    const key = held(request)
    const session = key === undefined ? undefined : sessions.get(key)
    if (key === undefined || !session) return undefined
    const now = clock.now()
    const isOver =
      now - session.usedAt >= idleMs ||
      now - session.openedAt >= absoluteMs ||
      session.fingerprint !== adminToken().fingerprint
    if (isOver) {
      sessions.delete(key)
      return undefined
    }
    session.usedAt = now
    return session
  }

  return {
    createLink() {
      const secret = randomBytes(secretBytes).toString('base64url')
      makeRoom(links, linksMax)
      const createdAt = clock.now()
      const { fingerprint } = adminToken()
      links.set(hash(secret), { createdAt, expiresAt: createdAt + linkLifeMs, fingerprint })
      return secret
    },
    openByLink(request, secret) {
      const key = hash(secret)
      const link = links.get(key)
      // Gone whatever comes of it: a link is tried once.
      links.delete(key)
      const isGood = link && clock.now() < link.expiresAt && link.fingerprint === adminToken().fingerprint
      return isGood ? open(request) : deadLink()
    },
    openByToken: (request, token) => (adminToken().matches(token) ? open(request) : wrongToken()),
    end(request) {
      const key = held(request)
      if (key !== undefined) sessions.delete(key)
      return setSessionCookie(visit(request), '', 0)
    },
    endAll(request) {
      const ended = sessions.size
      sessions.clear()
      links.clear()
      return { cookie: setSessionCookie(visit(request), '', 0), ended }
    },
    endUntil(moment) {
      for (const [key, { openedAt }] of sessions) if (openedAt <= moment) sessions.delete(key)
      for (const [key, { createdAt }] of links) if (createdAt <= moment) links.delete(key)
    },
    sessionOf: (request) => (find(request) ? (refuseForeign(request) ?? actor) : undefined),
  }
}

/** A map keeps the order of its making, so that the first is the oldest. */
function makeRoom(map: Map<string, unknown>, max: number): void {
  const [oldest] = map.keys()
  if (map.size >= max && oldest !== undefined) map.delete(oldest)
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
