// Operations with their handlers, and the router. Paths are matched as sent, without decoding or normalising, so every
// path has exactly one spelling. The exception is the id of a model, whose slash may be sent as %2F.

import type { AnswerOf } from '../../api/client.ts'
import type { Method, OperationName } from '../../api/endpoints.ts'
import { type CheckedBody, type CheckedQuery, type IdFor, isIdOf, type Operation } from '../../api/operation.ts'
import { type Operations, operations } from '../../api/operations.ts'
import { Failure } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { nearestNames } from '../../kernel/nearest.ts'
import type { EventStream } from '../../pipeline/answer.ts'
import type { Sql } from '../../store/sql.ts'
import { hideKeys } from '../../tenancy/api-key.ts'
import type { Act } from '../../tenancy/management.ts'
import type { Reach } from '../../tenancy/principal.ts'
import { decodeModelId } from '../request.ts'

/** A file of any length, sent while it is read. */
export interface Download {
  /** One of the operation's `fileTypes`. */
  readonly type: string
  readonly name: string
  /** Read no faster than the caller takes them, and not to the end if the caller disconnects. */
  readonly pieces: AsyncIterable<string>
}

interface CallOf<Id, Body, Query> {
  readonly id: Id
  /** `{provider}` of the path; empty without one. */
  readonly provider: string
  /** `{model}` of the path, decoded; empty without one. */
  readonly model: string
  /** `{list}` of the path; empty without one. */
  readonly list: string
  /** `{plan}` of the path; empty without one. */
  readonly plan: string
  readonly body: Body
  readonly query: Query
  readonly act: Act & { readonly requestId: RequestId }
  /** Who calls, and what the call may see. */
  readonly reach: Reach
  /** Where it came from; undefined = unknown. */
  readonly address: string | undefined
  /** Aborts when the caller disconnects, so that a report stops reading. */
  readonly signal: { readonly aborted: boolean }
  /** For handlers without `write`, which have to honour it themselves. */
  readonly idempotencyKey: string | undefined
}

/** A request whose path, query and body passed the operation's checks. */
export type Call<Name extends OperationName> = CallOf<
  IdFor<Name>,
  CheckedBody<Operations[Name]>,
  CheckedQuery<Operations[Name]>
>

/** One of `run`, `write`, `events` and `download`. They throw a Failure to answer it. */
interface HandlerOf<CheckedCall, Result> {
  run?(call: CheckedCall): Promise<Result>
  /** Runs in a transaction, which everything that is thrown rolls back. */
  write?(sql: Sql, call: CheckedCall): Promise<Result>
  /** A stream that lasts until the caller disconnects or the gateway stops. */
  events?(call: CheckedCall): Promise<EventStream>
  download?(call: CheckedCall): Download | Promise<Download>
  /** After the commit and before the answer: drops what is cached of the changed object. */
  committed?(call: CheckedCall): void
  /** What is done after the commit and is part of the answer: returns the members that it changes. */
  afterCommit?(call: CheckedCall): Promise<Partial<Result> | undefined>
  /** For operations that are public by setting. */
  isPublic?(): boolean
}

/** A function alone is the `run` of its operation. */
type RunOrHandler<CheckedCall, Result> = HandlerOf<CheckedCall, Result> | ((call: CheckedCall) => Promise<Result>)

export type Handlers = {
  readonly [Name in OperationName]: RunOrHandler<Call<Name>, undefined extends AnswerOf<Name> ? void : AnswerOf<Name>>
}

/** The types of a particular operation are lost once routes are in one list. */
export type UntypedCall = CallOf<string | undefined, unknown, unknown>
export type Route = Operation & HandlerOf<UntypedCall, unknown>

export function routesOf(handlers: Handlers): readonly Route[] {
  return Object.values<Operation>(operations).map((operation) => {
    const handler = handlers[operation.name]
    return { ...operation, ...(typeof handler === 'function' ? { run: handler } : handler) } as Route
  })
}

export interface Match {
  readonly route: Route
  /** As sent; `hasIdForm` checks whether it is an id of the route's kind. */
  readonly id: string
  readonly provider: string
  readonly model: string
  readonly list: string
  readonly plan: string
}

/** Throws a Failure if there is none. */
export type MatchRoute = (method: string, path: string) => Match

export function createMatchRoute(routes: readonly Route[]): MatchRoute {
  const byLength = Map.groupBy(
    routes.flatMap((route) => spellings(route.path).map((path) => ({ route, parts: path.split('/') }))),
    ({ parts }) => parts.length,
  )
  const fixedPaths = [...new Set(routes.map(({ path }) => path))].filter((path) => !path.includes('{'))

  return (method, path) => {
    const sent = path.split('/')
    const found = (byLength.get(sent.length) ?? []).filter(({ parts }) =>
      parts.every((part, at) => fits(part, sent[at])),
    )
    if (found.length === 0) throw unknownPath(method, path, fixedPaths)
    // HEAD is GET without the body, which the runtime leaves out.
    const wanted = method === 'HEAD' ? 'GET' : method
    const match = found.find(({ route }) => route.method === wanted)
    if (!match) {
      throw wrongMethod(
        method,
        found.map(({ route }) => route.method),
      )
    }
    const sentAs = (name: string) => sent[match.parts.indexOf(name)] ?? ''
    const model = [sentAs('{creator}'), sentAs('{model}')].filter(Boolean).map(decodeModelId).join('/')
    const [id = '', provider = '', list = '', plan = ''] = ['{id}', '{provider}', '{list}', '{plan}'].map(sentAs)
    return { route: match.route, id, provider, model, list, plan }
  }
}

const names: ReadonlySet<string> = new Set(['{provider}', '{list}'])
/** Their handlers say what is wrong with them. */
const matchesAnything: ReadonlySet<string> = new Set(['{id}', '{creator}', '{model}', '{plan}'])

function spellings(path: string): readonly string[] {
  return path.includes('{model}') ? [path, path.replace('{model}', '{creator}/{model}')] : [path]
}

function fits(part: string, sent: string | undefined): boolean {
  if (names.has(part)) return sent !== undefined && /^[a-z0-9][a-z0-9-]{0,62}$/.test(sent)
  return matchesAnything.has(part) ? sent !== undefined && sent !== '' : part === sent
}

export function hasIdForm({ route: { kind }, id }: Match): boolean {
  return kind === undefined || isIdOf(kind, id)
}

function wrongMethod(method: string, served: readonly Method[]): Failure {
  const allow = [...new Set(served)].join(', ')
  return new Failure('METHOD_NOT_ALLOWED', `${method} is not served here; use ${allow}.`, { allow })
}

function unknownPath(method: string, path: string, fixedPaths: readonly string[]): Failure {
  const named = hideKeys(path)
  const shown = named.length > 200 ? `${named.slice(0, 200)}…` : named
  const [near] = nearestNames(path.slice(0, 200), fixedPaths, 1)
  const hint = near === undefined ? 'GET /api/openapi.json lists every operation.' : `Did you mean ${near}?`
  return new Failure('NOT_FOUND', `Nothing is served at ${method} ${shown}. ${hint}`)
}
