// One operation of the management API as data. Routing, input checking, the OpenAPI document, the command line and the
// console all read these rows, so they cannot disagree. How an operation is served is in src/http/management.

import { z } from 'zod'
import type {
  InvitationId,
  KeyId,
  MemberId,
  PaymentId,
  ProjectId,
  RequestId,
  SessionId,
  TokenId,
  WorkspaceId,
} from '../kernel/ids.ts'
import { endpoints, type Method, type OperationName } from './endpoints.ts'

export interface IdOf {
  readonly workspace: WorkspaceId
  readonly project: ProjectId
  readonly key: KeyId
  readonly request: RequestId
  readonly webhook: `whk_${string}`
  readonly delivery: `dlv_${string}`
  readonly member: MemberId
  readonly invitation: InvitationId
  readonly token: TokenId
  readonly session: SessionId
  readonly payment: PaymentId
}

/** The kind of object that an `{id}` in a path names. */
export type IdKind = keyof IdOf

export const idPrefixes = {
  workspace: 'ws',
  project: 'prj',
  key: 'key',
  request: 'req',
  webhook: 'whk',
  delivery: 'dlv',
  member: 'mem',
  invitation: 'inv',
  token: 'tok',
  session: 'ses',
  payment: 'pay',
} as const

export interface Definition {
  readonly kind?: IdKind
  readonly summary: string
  /** Absent = it needs the management token. `by setting`: the operator decides. */
  readonly public?: 'always' | 'by setting'
  /** Absent = no body is read. An empty body counts as `{}`. */
  readonly body?: z.ZodType
  readonly example?: unknown
  readonly query?: z.ZodObject
  /** Absent = the answer has no body, or is a file. For an event stream: the data of each event. */
  readonly answer?: z.ZodType
  /** Status of a success; absent = 200. */
  readonly status?: 201 | 204
  /** The answer is a stream of server-sent events. */
  readonly isEventStream?: true
  /** The answer is a file with one of these content types. */
  readonly fileTypes?: readonly string[]
}

export interface Operation extends Omit<Definition, 'status'> {
  readonly status: 200 | 201 | 204
  readonly name: OperationName
  readonly method: Method
  readonly path: string
}

/** Keeps the exact types of the definition, from which the types of ids, bodies, queries and answers are inferred. */
export function operation<const Name extends OperationName, const Row extends Definition>(name: Name, row: Row) {
  const [method, path] = endpoints[name]
  return { name, method, path, ...row, status: row.status ?? 200 } as const
}

export type IdFor<Row> = Row extends { readonly kind: infer Kind extends IdKind } ? IdOf[Kind] : undefined

/** As sent by a client. */
export type BodyInput<Row> = Row extends { readonly body: infer Body extends z.ZodType } ? z.input<Body> : undefined
export type QueryInput<Row> = Row extends { readonly query: infer Query extends z.ZodType } ? z.input<Query> : undefined

/** As handed to the handler, checked and converted. */
export type CheckedBody<Row> = Row extends { readonly body: infer Body extends z.ZodType } ? z.output<Body> : undefined
export type CheckedQuery<Row> = Row extends { readonly query: infer Query extends z.ZodType }
  ? z.output<Query>
  : undefined

/** As JSON on the wire: answers are never converted, so this is the schema's input type. */
export type Answer<Row> = Row extends { readonly answer: infer Schema extends z.ZodType } ? z.input<Schema> : undefined

export const emptyBody = z.strictObject({})
