// One call of the management API as data: routing, checking, refusing and the OpenAPI document are all made from these
// rows, so that none of them can say something else than the others. How a row is served stands in api.ts.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { KeyId, ProjectId, RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Sql } from '../../store/sql.ts'
import type { Act } from '../../tenancy/audit.ts'

export interface IdOf {
  readonly workspace: WorkspaceId
  readonly project: ProjectId
  readonly key: KeyId
  readonly request: RequestId
}

/** What an `{id}` in a path names. */
export type ThingKind = keyof IdOf

export const idPrefixes = { workspace: 'ws', project: 'prj', key: 'key', request: 'req' } as const

/** A file of any length, sent as it is read. */
export interface Download {
  /** One of the route's `fileTypes`. */
  readonly type: string
  readonly name: string
  /** Read no faster than the caller takes them, and not to the end if the caller leaves. */
  readonly pieces: AsyncIterable<string>
}

/** A checked request. */
export interface Call<Kind extends ThingKind | undefined, Body, Query> {
  readonly id: Kind extends ThingKind ? IdOf[Kind] : undefined
  /** What stands for `{provider}` in the path; empty in others. */
  readonly provider: string
  /** What stands for `{model}` in the path, decoded; empty in others. */
  readonly model: string
  readonly body: Body
  readonly query: Query
  readonly act: Act & { readonly requestId: RequestId }
  /** For routes without `write`, which have to honour it themselves. */
  readonly idempotencyKey: string | undefined
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Definition<
  Kind extends ThingKind | undefined,
  Body extends z.ZodType,
  Query extends z.ZodObject,
  Answer extends z.ZodType,
> {
  readonly method: Method
  /**
   * `/api/keys/{id}`: `{id}` is checked to be of the kind, `{provider}` to be a provider's name. `{model}` may
   * have a slash in it, as it is or as %2F; whether it names anything is for the route to say.
   */
  readonly path: string
  readonly kind?: Kind
  /** Unique; clients generated from the document name their functions after it. */
  readonly operation: string
  readonly summary: string
  /** Everything else needs the management token. A function where the operator has a say in it. */
  readonly isPublic?: true | (() => boolean)
  /** undefined = none is read. An empty body counts as `{}`. */
  readonly body?: Body
  readonly example?: z.input<Body>
  readonly query?: Query
  /** undefined = the answer has no body. Of a stream: the data of each event. */
  readonly answer?: Answer
  readonly status: 200 | 201 | 204
  /** One of the two. `write` runs in a transaction, which a Failure rolls back. */
  run?(call: Call<Kind, z.output<Body>, z.output<Query>>): Promise<z.input<Answer> | Failure>
  write?(sql: Sql, call: Call<Kind, z.output<Body>, z.output<Query>>): Promise<z.input<Answer> | Failure>
  /** In place of the two: a stream of events that lasts until the caller leaves or the gateway stops. */
  events?(call: Call<Kind, z.output<Body>, z.output<Query>>, signal: AbortSignal): ReadableStream<Uint8Array> | Failure
  /** In place of the three: a file. `fileTypes` are the content types it may have. */
  download?(call: Call<Kind, z.output<Body>, z.output<Query>>): Download | Promise<Download | Failure>
  readonly fileTypes?: readonly string[]
  /** After the commit, before the answer: what is cached of the changed thing has to go. */
  committed?(call: Call<Kind, z.output<Body>, z.output<Query>>): void
}

export type Route = Definition<ThingKind | undefined, z.ZodType, z.ZodObject, z.ZodType>

/** Only for its types: what the schemas say is what the function gets. */
export function defineRoute<
  Body extends z.ZodType,
  Query extends z.ZodObject,
  Answer extends z.ZodType,
  const Kind extends ThingKind | undefined = undefined,
>(definition: Definition<Kind, Body, Query, Answer>): Route {
  return definition
}

/** The same words for an id that was never given, is of another kind, or is someone else's. */
export function notFound(kind: ThingKind, id: string): Failure {
  return new Failure('NOT_FOUND', `There is no ${kind} ${id.length > 60 ? `${id.slice(0, 60)}…` : id}.`)
}

export const emptyBody = z.strictObject({})
