// Calls the management API, the session endpoints and the catalog's JSON with the browser's session. Changes are sent as JSON from the same
// origin, which is what the gateway requires of a session. A failed call throws an ApiError; the hooks catch it.

import {
  type AnswerOf,
  type CallOf,
  errorOf,
  type ItemOf,
  type ListName,
  type QueryValues,
  type Target,
  targetOf,
} from '../../api/client.ts'
import type { OperationName } from '../../api/endpoints.ts'

export type { AnswerOf, CallOf, ItemOf, ListName, OperationName }
export type Workspace = ItemOf<'listWorkspaces'>
export type Project = ItemOf<'listProjects'>
export type Key = ItemOf<'listKeys'>
export type KeyWithSecret = AnswerOf<'createKey'>
export type RequestItem = ItemOf<'listRequests'>
export type RequestDetails = AnswerOf<'getRequest'>

/** Why a call failed, in words for the user. */
export class ApiError extends Error {
  readonly status: number
  /** For looking it up in the log; empty = the gateway was not reached. */
  readonly requestId: string
  /** A new sign-in makes the call possible. */
  readonly needsSignIn: boolean
  /** The field of the body that is wrong: `below`, `percents[1]`; empty = none is named. */
  readonly param: string

  constructor(status: number, message: string, { requestId = '', needsSignIn = false, param = '' } = {}) {
    super(message)
    this.status = status
    this.requestId = requestId
    this.needsSignIn = needsSignIn
    this.param = param
  }
}

export interface CallOptions {
  /** For a POST that must not take effect twice. */
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** An answer without a body gives undefined. */
export async function callApi<Name extends OperationName>(
  name: Name,
  call: CallOf<Name>,
  options: CallOptions = {},
): Promise<AnswerOf<Name>> {
  try {
    return await send<AnswerOf<Name>>(targetOfCall(name, call), { ...options, body: call.body })
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 401) {
      showSignIn('ended')
    }
    throw thrown
  }
}

export function targetOfCall<Name extends OperationName>(name: Name, call: CallOf<Name>): Target {
  // The schemas check the query's types; here only its values matter.
  return targetOf(name, call, call.query as QueryValues | undefined)
}

interface SendOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** For answers outside the management API. */
export function readJson<Answer>(path: string, headers: Readonly<Record<string, string>> = {}) {
  return send<Answer>({ method: 'GET', path }, { headers })
}

async function send<Answer>(
  { method, path }: Target,
  { body, idempotencyKey, signal, headers: more = {} }: CallOptions & SendOptions = {},
): Promise<Answer> {
  const headers: Record<string, string> = { accept: 'application/json', ...more }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  const init = { ...(body !== undefined && { body: JSON.stringify(body) }), ...(signal && { signal }) }
  try {
    const response = await fetch(path, { method, headers, credentials: 'same-origin', ...init })
    if (!response.ok) throw await apiErrorOf(response)
    return (response.status === 204 ? undefined : await response.json()) as Answer
  } catch (thrown) {
    // Also a connection that breaks off in mid-answer.
    throw thrown instanceof ApiError ? thrown : new ApiError(0, 'The gateway does not respond. Is it running?')
  }
}

/** Also handles responses that are not the gateway's, such as a proxy's. */
export async function apiErrorOf(response: Response): Promise<ApiError> {
  const json: unknown = await response.json().catch(() => undefined)
  const error = errorOf(json)
  const message = error?.message ?? `The gateway responded with status ${response.status}.`
  return new ApiError(response.status, message, {
    requestId: response.headers.get('x-request-id') ?? '',
    needsSignIn: error?.reason === 'sign_in_too_old',
    param: error?.param ?? '',
  })
}

/** A page of the console with filters in its address; empty and undefined ones are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '')
  const text = new URLSearchParams(set).toString()
  return text === '' ? path : `${path}?${text}`
}

export interface ListAnswer<Item> {
  readonly data: readonly Item[]
  readonly next_cursor: string | null
}

/** One page of a list; `cursor` is the previous page's. */
export async function callForPage<Name extends ListName>(
  name: Name,
  call: CallOf<Name>,
  cursor: string | undefined,
  options: CallOptions = {},
): Promise<ListAnswer<ItemOf<Name>>> {
  const paged = { ...call, query: { ...call.query, cursor } } as unknown as CallOf<Name>
  return (await callApi(name, paged, options)) as ListAnswer<ItemOf<Name>>
}

/** Stops an endless list. */
const pagesMax = 1000

/** The items of all pages. */
export async function callForAll<Name extends ListName>(
  name: Name,
  call: CallOf<Name>,
): Promise<readonly ItemOf<Name>[]> {
  const items: ItemOf<Name>[] = []
  const longest = { ...call, query: { ...call.query, limit: 200 } } as unknown as CallOf<Name>
  let cursor: string | undefined
  for (let page = 0; page < pagesMax; page++) {
    const { data, next_cursor } = await callForPage(name, longest, cursor)
    items.push(...data)
    if (next_cursor === null) break
    cursor = next_cursor
  }
  return items
}

const signInCauseKey = 'tollgate-sign-in'

/** `again`: a call needs a recent sign-in. */
type SignInCause = 'ended' | 'again'

/** Without a session the same address shows the sign-in page, which explains why and leads back here. */
function showSignIn(cause: SignInCause): void {
  sessionStorage.setItem(signInCauseKey, cause)
  location.reload()
}

/** Why a page of this tab led to the sign-in page; undefined = it did not. Known only once. */
export function takeSignInCause(): SignInCause | undefined {
  const cause = sessionStorage.getItem(signInCauseKey)
  sessionStorage.removeItem(signInCauseKey)
  return cause === 'ended' || cause === 'again' ? cause : undefined
}

export async function signInAgain(): Promise<void> {
  await signOut()
  showSignIn('again')
}

export type Credentials =
  | { readonly link: string }
  | { readonly token: string }
  | { readonly email: string; readonly name?: string; readonly password: string }
  | { readonly invitation: string; readonly name: string; readonly password: string }

export function signIn(credentials: Credentials): Promise<unknown> {
  return send({ method: 'POST', path: '/console/session' }, { body: credentials })
}

export function signOut(): Promise<unknown> {
  forgetTab()
  return send({ method: 'DELETE', path: '/console/session' })
}

/** Ends the sessions of all browsers. */
export function signOutEverywhere(): Promise<unknown> {
  forgetTab()
  return send({ method: 'DELETE', path: '/console/sessions' })
}

/** The conversations of the playground, which are kept for the tab. */
function forgetTab(): void {
  sessionStorage.clear()
}
