// Calls the management API and turns its refusals into the command line's. It sends the token to the address it was given
// and nowhere else: redirects are not followed.

import type { Secret } from '../kernel/secret.ts'
import { type JsonObject, objectOf, objectsOf, textAt } from './json-members.ts'
import { type ExitCode, exitCodes, Refusal } from './refusal.ts'
import { cleanText } from './table.ts'

export interface ApiCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** What is undefined is left out. */
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: JsonObject | string
  readonly idempotencyKey?: string | undefined
  /** What is made belongs to a file from then on; only such calls may change it. */
  readonly managedBy?: 'file'
  /** Without the token. */
  readonly isPublic?: true
  /** Where 30 s may not be enough. */
  readonly timeoutMs?: number
  readonly typed?: TypedNames
}

/** What the command line calls a field of the API, `group_by` → `--by`: a refusal then names what was typed. */
export type TypedNames = Readonly<Record<string, string>>

/** As the API says it. */
export interface ApiList {
  readonly data: readonly JsonObject[]
  readonly next_cursor: string | null
}

export interface ApiClient {
  readonly url: string
  /** An empty object where the answer has no body. */
  call(call: ApiCall): Promise<JsonObject | Refusal>
  /** A file, piece by piece and however long it takes; throws if it breaks off. */
  download(path: string, typed?: TypedNames): Promise<AsyncIterable<Uint8Array> | Refusal>
  /** Up to so many items, over as many pages as it takes. */
  list(path: string, query: ApiCall['query'], most: number): Promise<ApiList | Refusal>
}

export interface ApiClientOptions {
  readonly url: string
  readonly token: Secret | undefined
  /** Where a token was looked for in vain. */
  readonly tokenAbsence: string
}

const timeoutMs = 30_000
const pageMax = 200

export function createApiClient({ url, token, tokenAbsence }: ApiClientOptions): ApiClient {
  async function call(wanted: ApiCall) {
    const { method = 'GET', path, query = {}, body, idempotencyKey, managedBy, isPublic } = wanted
    if (!isPublic && token === undefined) return tokenMissing(tokenAbsence)
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    const headers: Record<string, string> = {}
    // Also where none is needed: an operator may have closed what is public elsewhere.
    if (token !== undefined) headers.authorization = `Bearer ${token.reveal()}`
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
    if (managedBy !== undefined) headers['x-tollgate-managed-by'] = managedBy
    try {
      const response = await fetch(`${url}${path}${search}`, {
        method,
        headers,
        redirect: 'manual',
        signal: AbortSignal.timeout(wanted.timeoutMs ?? timeoutMs),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return readAnswer(response, await response.text(), { url, typed: wanted.typed })
    } catch (thrown) {
      return unreachable(url, thrown)
    }
  }

  return {
    url,
    call,
    async download(path, typed) {
      if (token === undefined) return tokenMissing(tokenAbsence)
      try {
        const headers = { authorization: `Bearer ${token.reveal()}` }
        const response = await fetch(url + path, { headers, redirect: 'manual' })
        if (response.ok && response.body) return response.body
        const refused = readAnswer(response, await response.text(), { url, typed })
        return refused instanceof Refusal ? refused : unreachable(url, undefined)
      } catch (thrown) {
        return unreachable(url, thrown)
      }
    },
    async list(path, query, most) {
      const data: JsonObject[] = []
      let cursor: string | undefined
      for (;;) {
        const limit = String(Math.min(pageMax, most - data.length))
        const page = await call({ path, query: { ...query, limit, cursor } })
        if (page instanceof Refusal) return page
        data.push(...objectsOf(page.data))
        cursor = textAt(page, 'next_cursor')
        if (cursor === undefined || data.length >= most) return { data, next_cursor: cursor ?? null }
      }
    },
  }
}

function tokenMissing(tokenAbsence: string): Refusal {
  const message = `there is no management token: ${tokenAbsence}.`
  return new Refusal(exitCodes.unauthorized, message, 'TOLLGATE_ADMIN_TOKEN=… , or TOLLGATE_DATA=FOLDER of the gateway')
}

function readAnswer(
  response: Response,
  text: string,
  { url, typed = {} }: { readonly url: string; readonly typed: TypedNames | undefined },
): JsonObject | Refusal {
  const json = parseObject(text)
  if (response.ok && (json !== undefined || text === '')) return json ?? {}
  const error = objectOf(json?.error)
  const message = textAt(error, 'message')
  if (message === undefined || textAt(error, 'code') === undefined) {
    const what = `${url} answered ${response.status}, but not as a Tollgate does.`
    return new Refusal(exitCodes.failed, what, 'TOLLGATE_URL=http://HOST:PORT of the gateway')
  }
  return new Refusal(exitOf(response.status), cleanText(asTyped(message, typed)), attemptFor(response.status))
}

/** Fields stand in backquotes, those of a list with their place: `sources[0]`. */
function asTyped(message: string, typed: TypedNames): string {
  return message.replace(/`([a-z_.]+)(\[\d+\])?`/g, (field, name: string) => {
    return Object.hasOwn(typed, name) ? (typed[name] ?? field) : field
  })
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? objectOf(value) : undefined
  } catch {
    return undefined
  }
}

/** A 400 is about what was typed, as an unknown option is. */
function exitOf(status: number): ExitCode {
  if (status === 400 || status === 413) return exitCodes.usage
  if (status === 401 || status === 403) return exitCodes.unauthorized
  if (status === 404) return exitCodes.notFound
  return status === 402 || status === 429 ? exitCodes.limit : exitCodes.failed
}

function attemptFor(status: number): string | undefined {
  if (status === 401) return 'TOLLGATE_ADMIN_TOKEN=… , or TOLLGATE_DATA=FOLDER of the gateway'
  if (status === 429 || status === 503) return 'again in a moment'
  return undefined
}

function unreachable(url: string, thrown: unknown): Refusal {
  const isLate = thrown instanceof Error && thrown.name === 'TimeoutError'
  const what = isLate ? `no answer from ${url} within ${timeoutMs / 1000} s.` : `nothing answers at ${url}.`
  return new Refusal(exitCodes.failed, what, 'npm start, or TOLLGATE_URL=http://HOST:PORT of a running gateway')
}
