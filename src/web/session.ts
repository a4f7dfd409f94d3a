// Sessions of the console, stored as the hash of the cookie. Those opened by a one-time link or the management token are
// the installation's and void when the token changes; the others belong to a person, whose roles are read for every request.
// Also the session cookie and the check against cross-site requests.

import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { createId, isId, type PersonId } from '../kernel/ids.ts'
import { workspaceRoles } from '../kernel/roles.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import { type ConsoleSession, type ConsoleSessions, sessionAgesAt, sessionMaxMs } from '../tenancy/console-sessions.ts'
import { installation, narrowed, type Principal } from '../tenancy/principal.ts'
import type { AdminToken } from '../tenancy/secrets.ts'
import type { HeaderReader, RequestHeaders } from '../wire/http-message.ts'

/** For the audit log. */
export type SessionEvent =
  | 'signed in by link'
  | 'signed in by token'
  | 'signed in by password'
  | 'signed in by invitation'
  | 'signed in by identity provider'
  | 'signed up'
  | 'signed out'
  | 'signed out everywhere'

export interface SessionDependencies {
  readonly clock: Clock
  readonly rows: ConsoleSessions
  /** The current one; sessions opened under another are void. */
  adminToken(): Pick<AdminToken, 'fingerprint' | 'matches'>
  visitOf(request: ClientRequest): Visit
  principalOf(personId: PersonId): Promise<Principal>
  /** A change that another site sent with the session's cookie, or that is no JSON, was refused; for the audit log. */
  onCrossSite?(): void
}

/** All methods reject when the database is unavailable. */
export interface Sessions {
  /** The secret of a new one-time link, `/console?t=…`, which signs in as the operator. */
  createLink(): Promise<string>
  /** Returns the Set-Cookie value of a new session; the browser's old session ends. */
  openByLink(request: ClientRequest, secret: string): Promise<string | Failure>
  openByToken(request: ClientRequest, token: string): Promise<string | Failure>
  /** The caller has checked who it is. */
  openFor(request: ClientRequest, personId: PersonId): Promise<string>
  /** Returns the Set-Cookie value that removes the cookie, and the number of ended sessions: 0 or 1. */
  end(request: ClientRequest): Promise<{ readonly cookie: string; readonly ended: number }>
  /** Ends all sessions, this browser's included, and all unused links; with a person, only their sessions. */
  endAll(request: ClientRequest, personId?: PersonId): Promise<{ readonly cookie: string; readonly ended: number }>
  /** undefined = no session; a Failure = the session may not make this request. For the management API. */
  sessionOf(request: ClientRequest): Promise<Principal | Failure | undefined>
}

const linkLifeMs = 15 * 60_000
const clientMax = 200
/** How often the time of last use is written. */
const useMs = 5 * 60_000
const secretBytes = 32

/** Lets an operator see the console as someone else does: `ws_….viewer`. It only ever narrows what a session may do. */
export const viewAsCookie = 'tollgate-view-as'

const byOperator = installation('console session')

export function createSessions(deps: SessionDependencies): Sessions {
  const { clock, rows, adminToken, visitOf } = deps
  const held = (request: ClientRequest): string | undefined => {
    const value = readCookie(request.headers, sessionCookieName(visitOf(request)))
    return value === undefined ? undefined : hash(value)
  }
  const open = async (request: ClientRequest, personId?: PersonId): Promise<string> => {
    const secret = randomBytes(secretBytes).toString('base64url')
    const now = clock.now()
    const fingerprint = personId === undefined ? adminToken().fingerprint : ''
    const client = request.headers.get('user-agent')?.slice(0, clientMax) ?? ''
    const session = { id: createId('ses'), client, openedAt: now, usedAt: now, fingerprint, personId }
    await rows.open(hash(secret), held(request), session, sessionAgesAt(now))
    return setSessionCookie(visitOf(request), secret, sessionMaxMs / 1000)
  }
  /** Also extends the session. */
  const find = async (request: ClientRequest): Promise<ConsoleSession | undefined> => {
    const key = held(request)
    const session = key === undefined ? undefined : await rows.find(key)
    if (key === undefined || !session) return undefined
    const now = clock.now()
    const { openedAfter, usedAfter } = sessionAgesAt(now)
    const isVoid = session.personId === undefined && session.fingerprint !== adminToken().fingerprint
    const isOver = session.usedAt <= usedAfter || session.openedAt <= openedAfter || isVoid
    if (isOver) await rows.end(key)
    else if (now - session.usedAt >= useMs) await rows.use(key, now)
    return isOver ? undefined : session
  }
  const principalOf = async (request: ClientRequest): Promise<Principal | undefined> => {
    const session = await find(request)
    if (!session) return undefined
    const known = session.personId === undefined ? byOperator : await deps.principalOf(session.personId)
    const whole = { ...known, session: { id: session.id, openedAt: session.openedAt } }
    const [id = '', wanted] = readCookie(request.headers, viewAsCookie)?.split('.') ?? []
    const role = workspaceRoles.find((each) => each === wanted)
    return role && isId('ws', id) ? narrowed(whole, role, id) : whole
  }

  return {
    async createLink() {
      const secret = randomBytes(secretBytes).toString('base64url')
      const now = clock.now()
      await rows.addLink(hash(secret), { expiresAt: now + linkLifeMs, fingerprint: adminToken().fingerprint }, now)
      return secret
    },
    async openByLink(request, secret) {
      // Removed whatever the outcome: a link can be tried once.
      const link = await rows.takeLink(hash(secret))
      const isGood = link && clock.now() < link.expiresAt && link.fingerprint === adminToken().fingerprint
      if (isGood) return await open(request)
      return new Failure(
        'UNAUTHORIZED',
        'This sign-in link was already used or is older than 15 minutes. `tollgate console` prints a new one, or sign in with the management token.',
      )
    },
    openByToken: async (request, token) =>
      adminToken().matches(token)
        ? await open(request)
        : new Failure('UNAUTHORIZED', 'This is not the management token.'),
    openFor: open,
    async end(request) {
      const key = held(request)
      const isThere = (await find(request)) !== undefined
      if (key !== undefined && isThere) await rows.end(key)
      return { cookie: setSessionCookie(visitOf(request), '', 0), ended: isThere ? 1 : 0 }
    },
    async endAll(request, personId) {
      const ended = await rows.endAll(personId)
      return { cookie: setSessionCookie(visitOf(request), '', 0), ended }
    },
    async sessionOf(request) {
      const principal = await principalOf(request)
      const refusal = principal && refuseCrossSite(request)
      if (refusal) deps.onCrossSite?.()
      return refusal ?? principal
    },
  }
}

/** The stored hash cannot be used as a cookie. */
function hash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64')
}

export interface Visit {
  readonly isSecure: boolean
  /** Host and port as the browser knows them. */
  readonly host: string
}

export interface VisitClues {
  /** The gateway's public address, if configured. */
  readonly publicUrl: string | undefined
  /** The scheme that a trusted proxy reports; undefined = none was reported. */
  readonly forwardedProto: string | undefined
}

/** The configured public address decides for its host, a trusted proxy for others. */
export function readVisit(request: ClientRequest, { publicUrl, forwardedProto }: VisitClues): Visit {
  const host = request.headers.get('host') ?? 'localhost'
  const stated = publicUrl === undefined ? null : URL.parse(publicUrl)
  const isSecure = stated?.host === host ? stated.protocol === 'https:' : forwardedProto === 'https'
  return { isSecure, host }
}

/** For addresses in examples. */
export function originOf({ isSecure, host }: Visit): string {
  return `${isSecure ? 'https' : 'http'}://${host}`
}

/** Plain http over the network. */
export function isExposed({ isSecure, host }: Visit): boolean {
  return !isSecure && !/^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i.test(host)
}

/** Bound to the host behind https. On plain http the name contains the port, because ports share cookies. */
function sessionCookieName({ isSecure, host }: Visit): string {
  if (isSecure) return '__Host-tollgate'
  const port = /:(\d+)$/.exec(host)?.[1]
  return port === undefined ? 'tollgate' : `tollgate-${port}`
}

/** Keeps a sign-in with the identity provider together. Lax, because the provider's page leads back here. */
export function flowCookie(visit: Visit, value: string, maxAgeSeconds: number): string {
  const secure = visit.isSecure ? '; Secure' : ''
  return `${flowCookieName(visit)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}${secure}`
}

export function flowCookieName(visit: Visit): string {
  return `${sessionCookieName(visit)}-oidc`
}

function setSessionCookie(visit: Visit, value: string, maxAgeSeconds: number): string {
  const secure = visit.isSecure ? '; Secure' : ''
  const name = sessionCookieName(visit)
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${secure}`
}

export function readCookie(headers: HeaderReader, name: string): string | undefined {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return undefined
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Rule W2 of docs/security.md: unsafe methods need a same-origin Sec-Fetch-Site or Origin, and JSON, which forms cannot
 * send. A cookie alone proves nothing, because any site can make a browser submit a form here.
 */
export function refuseCrossSite(request: ClientRequest): Failure | undefined {
  if (safeMethods.has(request.method)) return undefined
  if (!isSameOrigin(request.headers)) {
    return new Failure('FORBIDDEN', 'A console session only accepts changes from the console’s own pages.')
  }
  const type = request.headers.get('content-type')
  const isJson = type === null ? !hasBody(request.headers) : /^application\/json\s*(?:;|$)/i.test(type)
  return isJson ? undefined : new Failure('UNSUPPORTED_MEDIA_TYPE', 'Send JSON, with `Content-Type: application/json`.')
}

/** Sec-Fetch-Site first: it is right even behind a proxy that changes Host. */
function isSameOrigin(headers: HeaderReader): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = URL.parse(headers.get('origin') ?? '')
  return origin !== null && origin.host !== '' && origin.host === headers.get('host')
}

function hasBody(headers: RequestHeaders): boolean {
  return headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0
}
