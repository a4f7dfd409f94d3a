// One operation of the management API as data. Routing, input checking, the OpenAPI document, the command line and the
// console all read these rows, so they cannot disagree. How an operation is served is in src/http/management.

import { z } from 'zod'
import { isId } from '../kernel/ids.ts'
import type { endpoints, Method, OperationName } from './endpoints.ts'

/** By what a path has before `{id}`: the kind of object, and the prefix of its ids. */
const idsInPaths = {
  workspaces: ['workspace', 'ws'],
  projects: ['project', 'prj'],
  keys: ['key', 'key'],
  groups: ['group', 'grp'],
  requests: ['request', 'req'],
  webhooks: ['webhook', 'whk'],
  'alert-rules': ['rule', 'rul'],
  deliveries: ['delivery', 'dlv'],
  members: ['member', 'mem'],
  invitations: ['invitation', 'inv'],
  tokens: ['token', 'tok'],
  'me/sessions': ['session', 'ses'],
  'sign-ins': ['device', 'sgn'],
  payments: ['payment', 'pay'],
  // Batches that were created with Anthropic's API have another prefix.
  batches: ['batch', 'batch', 'msgbatch'],
} as const

type IdsInPaths = typeof idsInPaths
type IdRow = IdsInPaths[keyof IdsInPaths]

/** The kind of object that an `{id}` in a path names. */
export type IdKind = IdRow[0]

type IdPrefixes = { readonly [Row in IdRow as Row[0]]: Row[1] }
/** The usual prefix of each kind. */
export const idPrefixes = Object.fromEntries(Object.values(idsInPaths)) as unknown as IdPrefixes

/** Whether it has the form of an id of this kind, not whether it exists. */
export function isIdOf<Kind extends IdKind>(kind: Kind, text: string): text is IdOf[Kind] {
  return Object.values(idsInPaths).some(([of, ...prefixes]) => of === kind && prefixes.some((one) => isId(one, text)))
}

export type IdOf = {
  readonly [Row in IdRow as Row[0]]: `${Row extends readonly [string, ...infer Prefixes extends string[]] ? Prefixes[number] : never}_${string}`
}

type KindIn<Path> = Path extends `/api/${infer Before extends keyof IdsInPaths}/{id}${string}`
  ? IdsInPaths[Before][0]
  : undefined

/** undefined = the path has no `{id}`. */
export function kindIn(path: string): IdKind | undefined {
  const before = /^\/api\/(.+)\/\{id\}/.exec(path)?.[1]
  return before === undefined ? undefined : idsInPaths[before as keyof IdsInPaths][0]
}

export interface Definition {
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

/** Some operations by name, of one resource. */
export type Definitions = Readonly<Partial<Record<OperationName, Definition>>>

export interface Operation extends Omit<Definition, 'status'> {
  readonly status: 200 | 201 | 204
  readonly name: OperationName
  readonly method: Method
  readonly path: string
  /** undefined = the path has no `{id}`. */
  readonly kind: IdKind | undefined
}

export type IdFor<Name extends OperationName> =
  KindIn<(typeof endpoints)[Name][1]> extends infer Kind extends IdKind ? IdOf[Kind] : undefined

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
