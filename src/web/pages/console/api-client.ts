// Calls the management API and the session endpoints with the browser's session. Changes are sent as JSON from the same
// origin, which is what the gateway requires of a session. Failures are returned as values, never thrown.

import type { ListAnswer } from './api-types.ts'

/** Why a call failed, in words for the user. */
export class ApiError {
  readonly status: number
  readonly message: string
  /** For looking it up in the log; empty = the gateway was not reached. */
  readonly requestId: string

  constructor(status: number, message: string, requestId: string) {
    this.status = status
    this.message = message
    this.requestId = requestId
  }
}

export interface ApiCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly body?: unknown
  /** For a POST that must not take effect twice. */
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** `path` includes its query: `/api/keys?limit=10`. A response without a body gives undefined. */
export async function callApi<Answer>(path: string, call: ApiCall = {}): Promise<Answer | ApiError> {
  const answer = await send<Answer>(path, call)
  if (answer instanceof ApiError && answer.status === 401) {
    // The same address now shows the sign-in page, which explains why and leads back here.
    sessionStorage.setItem(sessionEndedKey, 'yes')
    location.reload()
  }
  return answer
}

async function send<Answer>(path: string, call: ApiCall): Promise<Answer | ApiError> {
  const { method = 'GET', body, idempotencyKey, signal } = call
  const headers: Record<string, string> = { accept: 'application/json' }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  try {
    const response = await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    if (response.ok) return (response.status === 204 ? undefined : await response.json()) as Answer
    return await apiErrorOf(response)
  } catch {
    return new ApiError(0, 'The gateway does not respond. Is it running?', '')
  }
}

/** Also handles responses that are not the gateway's, such as a proxy's. */
export async function apiErrorOf(response: Response): Promise<ApiError> {
  const id = response.headers.get('x-request-id') ?? ''
  let message = `The gateway responded with status ${response.status}.`
  try {
    const answer = (await response.json()) as { error?: { message?: unknown } }
    if (typeof answer.error?.message === 'string') message = answer.error.message
  } catch {
    // Not JSON: report the status alone.
  }
  return new ApiError(response.status, message, id)
}

/** The path with a query of the given values; empty and undefined ones are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '')
  const text = new URLSearchParams(set).toString()
  return text === '' ? path : `${path}?${text}`
}

/** Stops an endless list. */
const pagesMax = 1000

/** All pages of a list; `path` may have a query. */
export async function callForAll<Item>(path: string): Promise<readonly Item[] | ApiError> {
  const items: Item[] = []
  let next: string | undefined = `${path}${path.includes('?') ? '&' : '?'}limit=200`
  const first = next
  for (let page = 0; next !== undefined && page < pagesMax; page++) {
    const answer: ListAnswer<Item> | ApiError = await callApi<ListAnswer<Item>>(next)
    if (answer instanceof ApiError) return answer
    items.push(...answer.data)
    next = answer.next_cursor === null ? undefined : nextPagePath(first, answer.next_cursor)
  }
  return items
}

export function nextPagePath(path: string, cursor: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
}

/** The results of several calls, or the first error among them. */
export async function callTogether<Values extends readonly unknown[]>(
  ...calls: { readonly [Index in keyof Values]: Promise<Values[Index] | ApiError> }
): Promise<Values | ApiError> {
  const answers: readonly unknown[] = await Promise.all(calls)
  return answers.find((answer) => answer instanceof ApiError) ?? (answers as unknown as Values)
}

const sessionEndedKey = 'tollgate-session-ended'

/** Whether the session ended while a page of this tab was open. True only once, for the sign-in page. */
export function takeSessionEnded(): boolean {
  const hasEnded = sessionStorage.getItem(sessionEndedKey) !== null
  sessionStorage.removeItem(sessionEndedKey)
  return hasEnded
}

export function signIn(credentials: { link: string } | { token: string }): Promise<unknown> {
  return send('/console/session', { method: 'POST', body: credentials })
}

export function signOut(): Promise<unknown> {
  return send('/console/session', { method: 'DELETE' })
}

/** Ends the sessions of all browsers. */
export function signOutEverywhere(): Promise<unknown> {
  return send('/console/sessions', { method: 'DELETE' })
}
