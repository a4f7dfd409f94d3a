// The console and its door: signing in by a one-time link or the management token, signing out, and the frame of every
// page behind it. Opening the link changes nothing by itself, so that a preview of it does not use it up; the page does,
// by a JSON call.

import { Failure, retryHeaders } from '../kernel/failure.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { readBody } from '../wire/read-body.ts'
import { answerJson } from './answer.ts'
import { consoleSections, placeOf } from './console-sections.ts'
import { isExposed, originOf, type Visit } from './cookies.ts'
import type { Show } from './page-data.ts'
import { refuseForeign } from './same-origin.ts'
import type { SessionEvent, Sessions } from './session.ts'

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
/** A token has at most a few hundred characters. */
const bodyBytesMax = 4096

export function createConsolePages(deps: ConsolePagesDependencies, show: Show) {
  const { sessions, publicUrl, visitOf, tokenPlace } = deps

  const page = async (request: Request, path: string): Promise<Response> => {
    const actor = await sessions.sessionOf(request)
    if (actor && !(actor instanceof Failure)) {
      const place = placeOf(path)
      if (!place) return await show(request, { kind: 'notice', title: 'Not found', data: noSuchPage }, 404)
      const title = consoleSections.find(({ name }) => name === place.section)?.label ?? 'Console'
      const address = publicUrl() ?? originOf(visitOf(request))
      return await show(request, { kind: 'console', title, data: { ...place, actor: actor.name, address } })
    }
    const data = { isExposed: isExposed(visitOf(request)), tokenPlace }
    return await show(request, { kind: 'sign-in', title: 'Sign in', data })
  }
  const signIn = async (request: Request): Promise<Response> => {
    const wish = await readWish(request)
    if (wish instanceof Failure) return refuse(request, wish)
    const opened = await ('link' in wish ? openByLink(request, wish.link) : openByToken(request, wish.token))
    if (opened instanceof Failure) return refuse(request, opened)
    await deps.onSession?.('link' in wish ? 'signed in by link' : 'signed in by token')
    return answerJson(request, { signed_in: true }, { headers: { 'set-cookie': opened } })
  }
  const openByToken = async (request: Request, token: string): Promise<string | Failure> =>
    (await deps.checkToken(token, request)) ?? (await sessions.openByToken(request, token))
  // A link is looked up in the database, and gone by that: guesses are held back before.
  const openByLink = async (request: Request, link: string): Promise<string | Failure> =>
    (await deps.slowGuess(request)) ?? (await sessions.openByLink(request, link))

  /** Whoever has no session gets the same answer, and is no entry of the audit log. */
  const signOut = async (request: Request): Promise<Response> => {
    const { cookie, ended } = await sessions.end(request)
    if (ended > 0) await deps.onSession?.('signed out')
    return answerJson(request, { signed_in: false }, { headers: { 'set-cookie': cookie } })
  }

  /** Only for who has a session: a stranger must not be able to throw everybody out. */
  const signOutEverywhere = async (request: Request): Promise<Response> => {
    const actor = await sessions.sessionOf(request)
    if (actor === undefined || actor instanceof Failure) return refuse(request, actor ?? noSession())
    // First what may fail: whoever is told that it did not work is still here to try again.
    await deps.onSession?.('signed out everywhere')
    const { cookie, ended } = await sessions.endAll(request)
    return answerJson(request, { signed_in: false, ended }, { headers: { 'set-cookie': cookie } })
  }

  const answer = (request: Request, path: string): Promise<Response> | Response | undefined => {
    if (path === sessionPath && (request.method === 'POST' || request.method === 'DELETE')) {
      const foreign = refuseForeign(request)
      if (foreign) return refuse(request, foreign)
      return request.method === 'POST' ? signIn(request) : signOut(request)
    }
    if (path === sessionsPath && request.method === 'DELETE') return signOutEverywhere(request)
    return isLook(request) ? page(request, path) : undefined
  }

  return (request: Request, path: string): Promise<Response> | Response | undefined => {
    const answered = answer(request, path)
    if (!(answered instanceof Promise)) return answered
    return answered.catch((thrown: unknown) => {
      if (!isStoreUnavailable(thrown)) throw thrown
      if (!isLook(request)) return refuse(request, noDatabase())
      return show(request, { kind: 'notice', title: 'Not now', data: noDatabasePage }, noDatabase().status)
    })
  }
}

function isLook({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

function noDatabase(): Failure {
  return new Failure(
    'OVERLOADED',
    'The database cannot be reached, so nobody can sign in or out. Try again in a moment.',
  )
}

function noSession(): Failure {
  return new Failure('UNAUTHORIZED', 'Only somebody who is signed in can sign everybody out.')
}

const noDatabasePage = {
  title: 'The database cannot be reached',
  text: 'Tollgate runs and tries again by itself. The management token works on, for calls that need no database.',
  links: [{ href: '/console', label: 'Try again' }],
} as const

const noSuchPage = {
  title: 'No such page',
  text: 'The console has no page at this address.',
  links: [{ href: '/console', label: 'To the console' }],
} as const

type Wish = { readonly link: string } | { readonly token: string }

async function readWish(request: Request): Promise<Wish | Failure> {
  const body = await readBody(request, { bytesMax: bodyBytesMax })
  const wish: unknown = body instanceof Uint8Array ? parseJson(new TextDecoder().decode(body)) : undefined
  if (typeof wish === 'object' && wish !== null) {
    if ('link' in wish && typeof wish.link === 'string') return { link: wish.link }
    if ('token' in wish && typeof wish.token === 'string') return { token: wish.token.trim() }
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
  return answerJson(request, { error: { code, message } }, { status, headers: retryHeaders(failure) })
}
