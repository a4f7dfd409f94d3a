// Calls operations of the management API with their own types and throws errors as refusals. It sends the token only to
// the address it was given: redirects are not followed.

import {
  type AnswerOf,
  type CallOf,
  errorOf,
  type ItemOf,
  type ListName,
  type QueryValues,
  targetOf,
} from '../api/client.ts'
import type { OperationName } from '../api/endpoints.ts'
import type { Operation } from '../api/operation.ts'
import { operations } from '../api/operations.ts'
import type { Secret } from '../kernel/secret.ts'
import { type ExitCode, exitCodes, Refusal } from './refusal.ts'
import { cleanText } from './values.ts'

/** The command line's name of an API field, `group_by` → `--by`, so that errors name what was typed. */
export type TypedNames = Readonly<Record<string, string>>

export interface CallSettings {
  readonly idempotencyKey?: string | undefined
  /** The object belongs to a file, and only such calls may change it. */
  readonly managedBy?: 'file'
  /** Also works without a token. */
  readonly isPublic?: true
  /** For calls that may take longer than 30 s. */
  readonly timeoutMs?: number | undefined
  readonly typed?: TypedNames
}

export interface ApiList<Item> {
  readonly data: readonly Item[]
  readonly next_cursor: string | null
}

export interface ApiClient {
  readonly url: string
  call<Name extends OperationName>(name: Name, call: CallOf<Name> & CallSettings): Promise<AnswerOf<Name>>
  /** Up to `most` items, over as many pages as needed. The default is more than anyone reads. */
  list<Name extends ListName>(name: Name, call: CallOf<Name>, most?: number): Promise<ApiList<ItemOf<Name>>>
  /** A file in chunks of text; no timeout. */
  download<Name extends OperationName>(name: Name, call: CallOf<Name> & CallSettings): AsyncIterable<string>
}

export interface ApiClientOptions {
  readonly url: string
  readonly token: Secret | undefined
  /** Why there is no token, for the error. */
  readonly tokenAbsence: string
}

/** A call whose operation is only known at run time. */
type UntypedCall = CallSettings & { readonly body?: unknown; readonly query?: QueryValues }

const timeoutMs = 30_000
const pageMax = 200
const itemsMax = 10_000

export function createApiClient({ url, token, tokenAbsence }: ApiClientOptions): ApiClient {
  async function send(name: OperationName, call: UntypedCall, signal?: AbortSignal): Promise<Response> {
    if (!call.isPublic && token === undefined) throw tokenMissing(tokenAbsence)
    const { method, path } = targetOf(name, call as Readonly<Record<string, unknown>>, call.query)
    const { body, idempotencyKey, managedBy } = call
    const headers: Record<string, string> = {}
    // Also for public operations: the operator may have restricted them.
    if (token !== undefined) headers.authorization = `Bearer ${token.reveal()}`
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
    if (managedBy !== undefined) headers['x-tollgate-managed-by'] = managedBy
    const init = { method, headers, redirect: 'manual' as const, ...(signal && { signal }) }
    return await fetch(url + path, body === undefined ? init : { ...init, body: JSON.stringify(body) })
  }

  async function call(name: OperationName, wanted: UntypedCall): Promise<unknown> {
    try {
      const response = await send(name, wanted, AbortSignal.timeout(wanted.timeoutMs ?? timeoutMs))
      return readAnswer(response, await response.text(), url, wanted.typed)
    } catch (thrown) {
      throw unreachable(url, thrown)
    }
  }

  async function list(name: ListName, wanted: UntypedCall, most = itemsMax): Promise<ApiList<unknown>> {
    const data: unknown[] = []
    let cursor: string | undefined
    for (;;) {
      const paging = isPaged(name) && { limit: Math.min(pageMax, most - data.length), cursor }
      const query = { ...wanted.query, ...paging }
      const page = (await call(name, { ...wanted, query })) as ApiList<unknown>
      data.push(...(page.data ?? []))
      cursor = page.next_cursor ?? undefined
      if (cursor === undefined || data.length >= most) return { data, next_cursor: cursor ?? null }
    }
  }

  async function* download(name: OperationName, wanted: UntypedCall): AsyncGenerator<string> {
    const response = await send(name, wanted).catch((thrown: unknown) => {
      throw unreachable(url, thrown)
    })
    if (!response.ok || !response.body) {
      readAnswer(response, await response.text(), url, wanted.typed)
      return
    }
    const decoder = new TextDecoder()
    try {
      for await (const bytes of response.body) yield decoder.decode(bytes, { stream: true })
    } catch {
      throw new Refusal(exitCodes.failed, 'the connection broke; the output is not complete.')
    }
  }

  // The schemas of the operations are the gateway's promise; a client does not check them again.
  return { url, call, list, download } as unknown as ApiClient
}

/** Short lists, such as webhooks, have a single page and refuse `limit`. */
function isPaged(name: ListName): boolean {
  const { query } = operations[name] as Operation
  return query !== undefined && 'limit' in query.shape
}

function tokenMissing(tokenAbsence: string): Refusal {
  const message = `there is no management token: ${tokenAbsence}.`
  return new Refusal(exitCodes.unauthorized, message, 'TOLLGATE_ADMIN_TOKEN=… , or TOLLGATE_DATA=FOLDER of the gateway')
}

export function readAnswer(response: Response, text: string, url: string, typed: TypedNames = {}): unknown {
  const json = text === '' ? undefined : parseJson(text)
  const isObject = typeof json === 'object' && json !== null
  if (response.ok && (isObject || text === '')) return json
  const error = errorOf(json)
  if (error?.code === undefined) {
    const what = `${url} answered ${response.status}, but not as a Tollgate does.`
    throw new Refusal(exitCodes.failed, what, 'TOLLGATE_URL=http://HOST:PORT of the gateway')
  }
  throw new Refusal(exitOf(response.status), cleanText(asTyped(error.message, typed)), attemptFor(response.status))
}

/** Replaces the fields in backquotes, including items of a list such as `sources[0]`. */
function asTyped(message: string, typed: TypedNames): string {
  return message.replace(/`([a-z_.]+)(\[\d+\])?`/g, (field, name: string) => {
    return Object.hasOwn(typed, name) ? (typed[name] ?? field) : field
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A 400 is about what was typed, like an unknown option. */
function exitOf(status: number): ExitCode {
  if (status === 400 || status === 413) return exitCodes.usage
  if (status === 401 || status === 403) return exitCodes.unauthorized
  if (status === 404) return exitCodes.notFound
  return status === 402 || status === 429 ? exitCodes.limit : exitCodes.failed
}

function attemptFor(status: number): string | undefined {
  if (status === 401) return 'TOLLGATE_ADMIN_TOKEN=… , or TOLLGATE_DATA=FOLDER of the gateway'
  if (status === 429 || status === 503) return 'the same command in a moment'
  return undefined
}

export function unreachable(url: string, thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  const isLate = thrown instanceof Error && thrown.name === 'TimeoutError'
  const what = isLate ? `no answer from ${url} within ${timeoutMs / 1000} s.` : `nothing answers at ${url}.`
  return new Refusal(exitCodes.failed, what, 'tollgate serve, or TOLLGATE_URL=http://HOST:PORT of a running gateway')
}
