// The part of an API client that needs no transport: the path and query of an operation, and the error in an answer. The
// command line and the console build on it. It imports types only, so that no schema ends up in the browser bundle.

import { endpoints, type Method, type OperationName } from './endpoints.ts'
import type { Answer, BodyInput, QueryInput } from './operation.ts'
import type { Operations } from './operations.ts'

export type AnswerOf<Name extends OperationName> = Answer<Operations[Name]>
export type BodyOf<Name extends OperationName> = BodyInput<Operations[Name]>
export type QueryOf<Name extends OperationName> = QueryInput<Operations[Name]>

/** One item of a list's answer. */
export type ItemOf<Name extends OperationName> = AnswerOf<Name> extends { data: readonly (infer Item)[] } ? Item : never

export type ListName = {
  [Name in OperationName]: AnswerOf<Name> extends { data: readonly unknown[] } ? Name : never
}[OperationName]

/** The names in a path: `{id}` and others, all as text. */
type PathNames<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | PathNames<Rest> : never
export type ParametersOf<Name extends OperationName> = Readonly<Record<PathNames<(typeof endpoints)[Name][1]>, string>>

/** Ids and names for the path; `query` and `body` where the operation takes them. */
export type CallOf<Name extends OperationName> = ParametersOf<Name> & {
  readonly query?: Readonly<QueryOf<Name>>
  readonly body?: BodyOf<Name>
}

export interface Target {
  readonly method: Method
  /** With its query. */
  readonly path: string
}

export type QueryValues = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Values for the path are encoded whole, so that a model's slash or a stray `?` cannot change the path. */
export function targetOf(
  name: OperationName,
  parameters: Readonly<Record<string, unknown>> = {},
  query: QueryValues = {},
): Target {
  const [method, template] = endpoints[name]
  const path = template.replace(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(parameters[key] ?? '')))
  const values = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value != null) values.set(key, String(value))
  const text = values.toString()
  return { method, path: text === '' ? path : `${path}?${text}` }
}

/** The body of an error response. */
export interface ApiError {
  readonly message: string
  readonly code: string | undefined
  /** The field that is wrong. */
  readonly param: string | undefined
  /** Distinguishes errors with the same code. */
  readonly reason: string | undefined
}

/** undefined: the answer is not one of the management API's errors, for example a proxy's page. */
export function errorOf(json: unknown): ApiError | undefined {
  const error = isObject(json) ? json.error : undefined
  if (!isObject(error) || typeof error.message !== 'string') return undefined
  const { message, code, param, metadata } = error
  return {
    message,
    reason: isObject(metadata) && typeof metadata.reason === 'string' ? metadata.reason : undefined,
    code: typeof code === 'string' ? code : undefined,
    param: typeof param === 'string' ? param : undefined,
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
