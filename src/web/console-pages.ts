// The console's pages, signing in by one-time link or management token, and signing out. Opening a link does not use it up,
// so that link previews are harmless; the page uses it with a JSON request.

import { Failure, retryHeaders } from '../kernel/failure.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { readBody } from '../wire/read-body.ts'
import { consoleSections, placeOf, type ShowPage } from './page-data.ts'
import { jsonResponse } from './responses.ts'
import { isExposed, originOf, refuseCrossSite, type SessionEvent, type Sessions, type Visit } from './session.ts'

export interface ConsolePagesDependencies {
  readonly sessions: Sessions
  readonly tokenPlace: string
  publicUrl(): string | undefined
  visitOf(request: Request): Visit
  checkToken(token: string, request: Request): Promise<Failure | undefined>
  slowGuess(request: Request): Promise<Failure | undefined>
  onSession?(event: SessionEvent): void | Promise<void>
}

const sessionPath = '/console/session'
const sessionsPath = '/console/sessions'
/** A token has a few hundred characters at most. */
const bodyBytesMax = 4096

export function createConsolePages(deps: ConsolePagesDependencies, show: ShowPage) {
  const { sessions, publicUrl, visitOf, tokenPlace } = deps

  const page = async (request: Request, path: string): Promise<Response> => {
    const actor = await sessions.sessionOf(request)
    if (actor && !(actor instanceof Failure)) {
      const place = placeOf(path)
      if (!place) return await show(request, { kind: 'notice', title: 'Page not found', data: noSuchPage }, 404)
      const title = consoleSections.find(({ name }) => name === place.section)?.label ?? 'Console'
      const address = publicUrl() ?? originOf(visitOf(request))
      return await show(request, { kind: 'console', title, data: { ...place, actor: actor.name, address } })
    }
    const data = { isExposed: isExposed(visitOf(request)), tokenPlace }
    return await show(request, { kind: 'sign-in', title: 'Sign in', data })
  }
  const signIn = async (request: Request): Promise<Response> => {
    const credentials = await readCredentials(request)
    if (credentials instanceof Failure) return refuse(request, credentials)
    const opened = await ('link' in credentials
      ? openByLink(request, credentials.link)
      : openByToken(request, credentials.token))
    if (opened instanceof Failure) return refuse(request, opened)
    await deps.onSession?.('link' in credentials ? 'signed in by link' : 'signed in by token')
    return jsonResponse(request, { signed_in: true }, { headers: { 'set-cookie': opened } })
  }
  const openByToken = async (request: Request, token: string): Promise<string | Failure> =>
    (await deps.checkToken(token, request)) ?? (await sessions.openByToken(request, token))
  // Looking up a link removes it, so guesses are slowed down first.
  const openByLink = async (request: Request, link: string): Promise<string | Failure> =>
    (await deps.slowGuess(request)) ?? (await sessions.openByLink(request, link))

  /** Without a session the response is the same, and nothing is recorded in the audit log. */
  const signOut = async (request: Request): Promise<Response> => {
    const { cookie, ended } = await sessions.end(request)
    if (ended > 0) await deps.onSession?.('signed out')
    return jsonResponse(request, { signed_in: false }, { headers: { 'set-cookie': cookie } })
  }

  /** Only with a session: a stranger must not be able to sign everyone out. */
  const signOutEverywhere = async (request: Request): Promise<Response> => {
    const actor = await sessions.sessionOf(request)
    if (actor === undefined || actor instanceof Failure) return refuse(request, actor ?? noSession())
    // Recorded first: if that fails, the session still exists and the user can try again.
    await deps.onSession?.('signed out everywhere')
    const { cookie, ended } = await sessions.endAll(request)
    return jsonResponse(request, { signed_in: false, ended }, { headers: { 'set-cookie': cookie } })
  }

  const respond = (request: Request, path: string): Promise<Response> | Response | undefined => {
    if (path === sessionPath && (request.method === 'POST' || request.method === 'DELETE')) {
      const refusal = refuseCrossSite(request)
      if (refusal) return refuse(request, refusal)
      return request.method === 'POST' ? signIn(request) : signOut(request)
    }
    if (path === sessionsPath && request.method === 'DELETE') return signOutEverywhere(request)
    return isRead(request) ? page(request, path) : undefined
  }

  return (request: Request, path: string): Promise<Response> | Response | undefined => {
    const response = respond(request, path)
    if (!(response instanceof Promise)) return response
    return response.catch((thrown: unknown) => {
      if (!isStoreUnavailable(thrown)) throw thrown
      if (!isRead(request)) return refuse(request, noDatabase())
      return show(request, { kind: 'notice', title: 'Database unavailable', data: noDatabasePage }, noDatabase().status)
    })
  }
}

function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

function noDatabase(): Failure {
  return new Failure(
    'OVERLOADED',
    'The database cannot be reached, so signing in and out is not possible. Try again in a moment.',
  )
}

function noSession(): Failure {
  return new Failure('UNAUTHORIZED', 'Sign in first: only a signed-in user can sign everyone out.')
}

const noDatabasePage = {
  title: 'The database cannot be reached',
  text: 'Tollgate keeps running and reconnects by itself. The management token still works for API calls that need no database.',
  links: [{ href: '/console', label: 'Try again' }],
} as const

const noSuchPage = {
  title: 'Page not found',
  text: 'The console has no page at this address.',
  links: [{ href: '/console', label: 'Open the console' }],
} as const

type Credentials = { readonly link: string } | { readonly token: string }

async function readCredentials(request: Request): Promise<Credentials | Failure> {
  const body = await readBody(request, { bytesMax: bodyBytesMax })
  const value: unknown = body instanceof Uint8Array ? parseJson(new TextDecoder().decode(body)) : undefined
  if (typeof value === 'object' && value !== null) {
    if ('link' in value && typeof value.link === 'string') return { link: value.link }
    if ('token' in value && typeof value.token === 'string') return { token: value.token.trim() }
  }
  return new Failure('INVALID_REQUEST', 'Expected {"link": "…"} or {"token": "…"}.')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refuse(request: Request, failure: Failure): Response {
  const { status, code, message } = failure
  return jsonResponse(request, { error: { code, message } }, { status, headers: retryHeaders(failure) })
}
