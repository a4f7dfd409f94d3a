// The console's pages, signing in by one-time link, management token or account, and signing out. Opening a link does not use
// it up, so that link previews are harmless; the page uses it with a JSON request.

import type { Clock } from '../kernel/clock.ts'
import { Failure, retryHeaders } from '../kernel/failure.ts'
import type { PersonId } from '../kernel/ids.ts'
import type { Answer } from '../pipeline/answer.ts'
import { bodyFailure, type ClientRequest, pathOf, queryOf } from '../pipeline/client-request.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { readUserCode, shownUserCode } from '../tenancy/device-grants.ts'
import type { Principal } from '../tenancy/principal.ts'
import { BodyFault, readBody } from '../wire/read-body.ts'
import type { Accounts } from './accounts.ts'
import { firstCalls } from './first-calls.ts'
import { isAnswerTo, type Oidc } from './oidc.ts'
import {
  allWorkspaces,
  type ConsolePlace,
  devicePath,
  isVisible,
  type LinkData,
  placeOf,
  type SignInData,
  scopedPath,
  titleOf,
  type Viewer,
  workspaceCookie,
} from './page-data.ts'
import { jsonAnswer, redirect, type ShowPage } from './responses.ts'
import {
  flowCookie,
  flowCookieName,
  isExposed,
  originOf,
  readCookie,
  refuseCrossSite,
  type SessionEvent,
  type Sessions,
  type Visit,
} from './session.ts'

export interface ConsolePagesDependencies {
  readonly clock: Clock
  readonly sessions: Sessions
  readonly accounts: Accounts
  /** undefined = no identity provider is configured. */
  readonly oidc: (Oidc & { providerName(): string }) | undefined
  /** The address of a person, as the console shows it. */
  nameOf(personId: PersonId): Promise<string>
  /** A sentence that says where to find the management token. */
  readonly tokenPlace: string
  /** The gateway's public address, if configured. */
  publicUrl(): string | undefined
  visitOf(request: ClientRequest): Visit
  /** Refuses a wrong management token, and slows down guessing. */
  checkToken(token: string, request: ClientRequest): Promise<Failure | undefined>
  /** Slows down or refuses guessing of sign-in links. */
  slowGuess(request: ClientRequest): Promise<Failure | undefined>
  /** An answer of the management API to a read with this request's session; undefined = it was refused. */
  readApi(request: ClientRequest, path: string): Promise<unknown>
  hasBatches(): boolean
  /** For the audit log. `personId`: whose session it is; absent = the installation's. */
  onSession?(event: SessionEvent, personId?: PersonId): void | Promise<void>
}

const sessionPath = '/console/session'
const sessionsPath = '/console/sessions'
const oidcPath = '/console/oidc'
/** How long someone may take at the identity provider. */
const flowSeconds = 600
/** Fits into a cookie. */
const returnPathMax = 2000
/** A token has a few hundred characters at most. */
const bodyBytesMax = 4096

/** The page of the console that a sign-in leads to: the address without a link's secret; `/console` for any other address. */
function returnPath(address: string | null): string {
  const url = address === null ? null : URL.parse(address, 'http://console')
  if (!url || !/^\/console(?:\/|$)/.test(url.pathname) || url.pathname.startsWith(oidcPath)) return '/console'
  for (const secret of ['t', 'i']) url.searchParams.delete(secret)
  const path = url.pathname + url.search
  return path.length > returnPathMax ? '/console' : path
}

export function createConsolePages(deps: ConsolePagesDependencies, show: ShowPage) {
  const { sessions, publicUrl, visitOf, tokenPlace, clock } = deps

  const page = async (request: ClientRequest, path: string): Promise<Answer> => {
    const searchParams = queryOf(request.url)
    const secret = searchParams.get('i')
    const actor = await sessions.sessionOf(request)
    // An invitation is shown also to someone who is signed in with another account.
    if (actor && !(actor instanceof Failure) && secret === null) {
      const viewer = await viewerOf(actor)
      if (path === devicePath) {
        const code = readUserCode(searchParams.get('code') ?? '')
        const data = { ...viewer, code: code === undefined ? '' : shownUserCode(code) }
        return await show(request, { kind: 'device', title: 'Sign in a device', data })
      }
      const place = placeOf(path)
      if (!place) return await show(request, { kind: 'notice', title: noSuchPage.title, data: noSuchPage }, 404)
      if (!isVisible(place.section, viewer)) {
        const notice = place.section === 'account' && !viewer.isPerson ? noAccount : noAccess
        return await show(request, { kind: 'notice', title: notice.title, data: notice }, 403)
      }
      const workspaces = await workspacesOf(request)
      const isKnown = place.scope === allWorkspaces ? viewer.isOperator : workspaces.includes(place.scope)
      if (place.scope === '' || searchParams.has('t') || (place.scope === allWorkspaces && !isKnown)) {
        // A sign-in link that was not needed does not stay in the address.
        searchParams.delete('t')
        const scope = isKnown ? place.scope : defaultScope(request, viewer, workspaces)
        return redirect(
          `${scopedPath(placePath({ ...place, scope: '' }), scope)}${searchParams.size > 0 ? `?${searchParams}` : ''}`,
        )
      }
      if (!isKnown) return await show(request, { kind: 'notice', title: 'Workspace not found', data: noWorkspace }, 404)
      const address = publicUrl() ?? originOf(visitOf(request))
      const now = clock.now()
      // Filters in the address change what a page reads first.
      const answers = await answersTo(request, firstCalls(place, viewer, searchParams.size > 0 ? undefined : now))
      return await show(request, {
        kind: 'console',
        title: titleOf(place),
        data: { ...place, ...viewer, address, answers, now },
      })
    }
    if (!actor && isFromElsewhere(request) && secret === null && !searchParams.has('t')) return await askAgain(request)
    return await signInPage(request, secret === null ? {} : { link: await linkData(secret) })
  }
  /** A browser leaves out the session's cookie for a link on another site, and sends it if our own page leads on. */
  const askAgain = async (request: ClientRequest): Promise<Answer> => {
    const here = returnPath(`${pathOf(request.url)}?${queryOf(request.url)}`)
    const data = { ...openingPage, links: [{ href: here, label: 'Open the console' }] }
    const answer = await show(request, { kind: 'notice', title: openingPage.title, data })
    answer.headers['cache-control'] = 'no-store'
    answer.headers.refresh = `0; url=${here}`
    return answer
  }
  const workspacesOf = async (request: ClientRequest): Promise<readonly string[]> => {
    const [path = ''] = firstCalls(everything)
    const answer = (await deps.readApi(request, path)) as
      | { readonly data: readonly { readonly id: string }[] }
      | undefined
    return answer?.data.map(({ id }) => id) ?? []
  }
  const answersTo = async (request: ClientRequest, paths: readonly string[]) => {
    const read = async (path: string) => [path, await deps.readApi(request, path)] as const
    const answers = await Promise.all(paths.map(read))
    return Object.fromEntries(answers.filter(([, answer]) => answer !== undefined))
  }
  const signInPage = async (request: ClientRequest, more: Partial<SignInData>, status = 200): Promise<Answer> => {
    const data = {
      isExposed: isExposed(visitOf(request)),
      tokenPlace,
      hasAccounts: deps.oidc !== undefined || deps.accounts.isOpen() || (await deps.accounts.hasAny()),
      isOpen: deps.accounts.isOpen(),
      returnTo: returnPath(`${pathOf(request.url)}?${queryOf(request.url)}`),
      ...(deps.oidc && { providerName: deps.oidc.providerName() }),
      ...more,
    }
    return await show(request, { kind: 'sign-in', title: 'Sign in', data }, status)
  }
  const redirectUri = (request: ClientRequest): string =>
    `${publicUrl() ?? originOf(visitOf(request))}${oidcPath}/callback`
  const startOidc = async (request: ClientRequest, oidc: Oidc): Promise<Answer> => {
    const started = await oidc.start(redirectUri(request))
    const returnTo = returnPath(queryOf(request.url).get('to'))
    if (started instanceof Failure) {
      return await signInPage(request, { problem: started.message, returnTo }, started.status)
    }
    const memory = `${started.memory}.${Buffer.from(returnTo).toString('base64url')}`
    const headers = { 'set-cookie': flowCookie(visitOf(request), memory, flowSeconds) }
    return redirect(started.url, headers)
  }
  const finishOidc = async (request: ClientRequest, oidc: Oidc): Promise<Answer> => {
    const visit = visitOf(request)
    const memory = readCookie(request.headers, flowCookieName(visit))
    const query = queryOf(request.url)
    const person = await oidc.finish(query, memory, redirectUri(request))
    const forget = flowCookie(visit, '', 0)
    const returnTo = returnPath(Buffer.from(memory?.split('.')[3] ?? '', 'base64url').toString())
    if (person instanceof Failure) {
      const page = await signInPage(request, { problem: person.message, returnTo }, person.status)
      // Otherwise another tab still needs it.
      if (isAnswerTo(query, memory)) page.headers['set-cookie'] = forget
      return page
    }
    const cookie = await sessions.openFor(request, person)
    await deps.onSession?.('signed in by identity provider', person)
    const page = await show(request, { kind: 'notice', title: 'Signed in', data: signedInPage })
    page.headers['set-cookie'] = [cookie, forget]
    // Not a redirect: the session cookie is not sent along on a way that another site began.
    page.headers.refresh = `0; url=${returnTo}`
    return page
  }
  const viewerOf = async (principal: Principal): Promise<Viewer> => {
    const { personId, isOperator, grants, name, isNarrowed = false } = principal
    return {
      actor: personId === undefined ? name : await deps.nameOf(personId),
      isPerson: personId !== undefined,
      isOperator,
      isViewingAs: isNarrowed,
      grants: grants.map(({ workspaceId, role }) => ({ workspaceId, role })),
      hasBatches: deps.hasBatches(),
    }
  }
  const linkData = async (secret: string): Promise<LinkData> => {
    const link = await deps.accounts.lookAt(secret)
    if (!link) return { kind: 'spent' }
    const { kind, email, account, as } = link
    return { kind, email, account, ...(as !== undefined && { as }) }
  }
  const signIn = async (request: ClientRequest): Promise<Answer> => {
    const credentials = await readCredentials(request)
    if (credentials instanceof Failure) return refuse(request, credentials)
    if ('password' in credentials) return await signInPerson(request, credentials)
    const opened = await ('link' in credentials
      ? openByLink(request, credentials.link)
      : openByToken(request, credentials.token))
    if (opened instanceof Failure) return refuse(request, opened)
    await deps.onSession?.('link' in credentials ? 'signed in by link' : 'signed in by token')
    return jsonAnswer(request, { signed_in: true }, { headers: { 'set-cookie': opened } })
  }
  const signInPerson = async (request: ClientRequest, given: AccountCredentials): Promise<Answer> => {
    try {
      const { accounts } = deps
      const person = await ('link' in given
        ? accounts.useLink(request, given)
        : 'name' in given
          ? accounts.signUp(request, given)
          : accounts.signIn(request, given))
      if (person instanceof Failure) return refuse(request, person)
      const cookie = await sessions.openFor(request, person)
      const event =
        'link' in given ? 'signed in by invitation' : 'name' in given ? 'signed up' : 'signed in by password'
      await deps.onSession?.(event, person)
      return jsonAnswer(request, { signed_in: true }, { headers: { 'set-cookie': cookie } })
    } catch (thrown) {
      if (thrown instanceof Failure) return refuse(request, thrown)
      throw thrown
    }
  }
  const openByToken = async (request: ClientRequest, token: string): Promise<string | Failure> =>
    (await deps.checkToken(token, request)) ?? (await sessions.openByToken(request, token))
  /** Wrong ones only: someone who guesses from the operator's network must not lock the operator out. */
  const openByLink = async (request: ClientRequest, link: string): Promise<string | Failure> => {
    const opened = await sessions.openByLink(request, link)
    return opened instanceof Failure ? ((await deps.slowGuess(request)) ?? opened) : opened
  }

  /** Without a session the response is the same, and nothing is recorded in the audit log. */
  const signOut = async (request: ClientRequest): Promise<Answer> => {
    const actor = await sessions.sessionOf(request)
    const personId = actor instanceof Failure ? undefined : actor?.personId
    const { cookie, ended } = await sessions.end(request)
    if (ended > 0) await deps.onSession?.('signed out', personId)
    return jsonAnswer(request, { signed_in: false }, { headers: { 'set-cookie': cookie } })
  }

  /** Only with a session: a stranger must not be able to sign everyone out. */
  const signOutEverywhere = async (request: ClientRequest): Promise<Answer> => {
    const actor = await sessions.sessionOf(request)
    if (actor === undefined || actor instanceof Failure) return refuse(request, actor ?? noSession())
    // Recorded first: if that fails, the session still exists and the user can try again.
    await deps.onSession?.('signed out everywhere', actor.personId)
    // A person ends their own sessions; only the installation's ends those of everyone.
    const { cookie, ended } = await sessions.endAll(request, actor.personId)
    return jsonAnswer(request, { signed_in: false, ended }, { headers: { 'set-cookie': cookie } })
  }

  const answer = async (request: ClientRequest, path: string): Promise<Answer | undefined> => {
    if (path === sessionPath && (request.method === 'POST' || request.method === 'DELETE')) {
      const refusal = refuseCrossSite(request)
      if (refusal) return refuse(request, refusal)
      return request.method === 'POST' ? await signIn(request) : await signOut(request)
    }
    if (path === sessionsPath && request.method === 'DELETE') return await signOutEverywhere(request)
    if (deps.oidc && request.method === 'GET' && path === oidcPath) return await startOidc(request, deps.oidc)
    if (deps.oidc && request.method === 'GET' && path === `${oidcPath}/callback`)
      return await finishOidc(request, deps.oidc)
    return isRead(request) ? await page(request, path) : undefined
  }

  return async (request: ClientRequest, path: string): Promise<Answer | undefined> => {
    try {
      return await answer(request, path)
    } catch (thrown) {
      if (!isStoreUnavailable(thrown)) throw thrown
      if (!isRead(request)) return refuse(request, noDatabase())
      const notice = { kind: 'notice', title: 'Database unavailable', data: noDatabasePage } as const
      return await show(request, notice, noDatabase().status)
    }
  }
}

function isFromElsewhere({ headers }: ClientRequest): boolean {
  return headers.get('sec-fetch-site') === 'cross-site'
}

const everything: ConsolePlace = { scope: allWorkspaces, section: 'usage', subject: '' }

const placePath = ({ section, subject }: ConsolePlace) => `/console/${section}${subject === '' ? '' : `/${subject}`}`

/** The last workspace if it still exists; otherwise the only one, or all for operators. */
function defaultScope(request: ClientRequest, { isOperator }: Viewer, workspaces: readonly string[]): string {
  const last = readCookie(request.headers, workspaceCookie) ?? ''
  if (workspaces.includes(last) || (isOperator && last === allWorkspaces)) return last
  return isOperator && workspaces.length !== 1 ? allWorkspaces : (workspaces[0] ?? allWorkspaces)
}

function isRead({ method }: ClientRequest): boolean {
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

const signedInPage = {
  title: 'You are signed in',
  text: 'The console opens by itself.',
  links: [{ href: '/console', label: 'Open the console' }],
} as const

const openingPage = { title: 'Opening the console', text: 'The page opens by itself.' } as const

const noWorkspace = {
  title: 'Workspace not found',
  text: 'It does not exist, or you have no role in it. Ask one of its admins for an invitation.',
  links: [{ href: '/console', label: 'Open the console' }],
} as const

const noSuchPage = {
  title: 'Page not found',
  text: 'The console has no page at this address.',
  links: [{ href: '/console', label: 'Open the console' }],
} as const

const noAccess = {
  title: 'No access to this page',
  text: 'Your role does not include it.',
  links: [{ href: '/console', label: 'Open the console' }],
} as const

const noAccount = {
  title: 'This session has no personal account',
  text: 'It was opened with the management token or with a link that “tollgate console” printed. A password, personal tokens and alerts by e-mail belong to people. To get an account, invite yourself as an operator on the People page, open the link that is shown there, and sign in with your address from then on.',
  links: [
    { href: `/console/${allWorkspaces}/people`, label: 'Invite yourself as an operator' },
    { href: '/console', label: 'Open the console' },
  ],
} as const

type AccountCredentials =
  | { readonly email: string; readonly password: string }
  | { readonly email: string; readonly name: string; readonly password: string }
  | { readonly link: string; readonly name: string; readonly password: string }
type Credentials = { readonly link: string } | { readonly token: string } | AccountCredentials

async function readCredentials(request: ClientRequest): Promise<Credentials | Failure> {
  const body = await readBody(request, bodyBytesMax)
  if (body instanceof BodyFault) return bodyFailure(body, 'The body is larger than 4 KiB. Send only the credentials.')
  const value = parseJson(new TextDecoder().decode(body))
  if (typeof value === 'object' && value !== null) {
    const { email, invitation, name = '', password } = value as Record<string, unknown>
    if (typeof password === 'string' && typeof email === 'string') {
      return 'name' in value ? { email, name: String(name).trim(), password } : { email, password }
    }
    if (typeof password === 'string' && typeof invitation === 'string') {
      return { link: invitation, name: String(name).trim(), password }
    }
    if ('link' in value && typeof value.link === 'string') return { link: value.link }
    if ('token' in value && typeof value.token === 'string') return { token: value.token.trim() }
  }
  return new Failure(
    'INVALID_REQUEST',
    'Expected {"link": "…"}, {"token": "…"}, {"email": "…", "password": "…"} or {"invitation": "…", "name": "…", "password": "…"}.',
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refuse(request: ClientRequest, failure: Failure): Answer {
  const { status, code, message } = failure
  return jsonAnswer(request, { error: { code, message } }, { status, headers: retryHeaders(failure) })
}
