// Everything that can go wrong for a caller, in one table: the code of the public vocabulary, its HTTP status, and the
// words that the official clients of each surface read. A new failure is a row here, a row of its test, and a section in
// docs/errors.md. Bugs in Tollgate are assertions, at the end of this file.

interface FailureRow {
  /** undefined: only sent inside a stream, whose status was sent before. */
  readonly status: number | undefined
  /** `error.status` on the gemini surface: a name of google.rpc.Code. */
  readonly geminiStatus: string
  /** `error.type` on the chat and responses surfaces. */
  readonly chatType: string
  /** `error.type` on the messages surface. */
  readonly messagesType: string
}

function row(status: number | undefined, geminiStatus: string, chatType: string, messagesType = chatType): FailureRow {
  return { status, geminiStatus, chatType, messagesType }
}

export const failureTable = {
  INVALID_REQUEST: row(400, 'INVALID_ARGUMENT', 'invalid_request_error'),
  POLICY_BLOCKED: row(400, 'INVALID_ARGUMENT', 'content_policy_violation', 'invalid_request_error'),
  UNAUTHORIZED: row(401, 'UNAUTHENTICATED', 'authentication_error'),
  INSUFFICIENT_BALANCE: row(402, 'FAILED_PRECONDITION', 'insufficient_quota', 'billing_error'),
  FORBIDDEN: row(403, 'PERMISSION_DENIED', 'permission_error'),
  NOT_FOUND: row(404, 'NOT_FOUND', 'not_found_error'),
  METHOD_NOT_ALLOWED: row(405, 'UNIMPLEMENTED', 'invalid_request_error'),
  REQUEST_TIMEOUT: row(408, 'DEADLINE_EXCEEDED', 'invalid_request_error', 'timeout_error'),
  PAYLOAD_TOO_LARGE: row(413, 'INVALID_ARGUMENT', 'invalid_request_error', 'request_too_large'),
  UNSUPPORTED_MEDIA_TYPE: row(415, 'INVALID_ARGUMENT', 'invalid_request_error'),
  LIMIT_EXCEEDED: row(429, 'RESOURCE_EXHAUSTED', 'rate_limit_error'),
  INTERNAL: row(500, 'INTERNAL', 'api_error'),
  OVERLOADED: row(503, 'UNAVAILABLE', 'overloaded_error'),
  UNAVAILABLE: row(503, 'UNAVAILABLE', 'server_error', 'overloaded_error'),
  POLICY_UNAVAILABLE: row(503, 'UNAVAILABLE', 'server_error', 'overloaded_error'),
  STREAM_INTERRUPTED: row(undefined, 'INTERNAL', 'api_error'),
} as const

export type FailureCode = keyof typeof failureTable

/** Distinguishes failures with the same code in the request log. Not sent: a hidden model must look like an unknown one. */
export type FailureCause =
  | 'unknown_model'
  | 'model_not_allowed'
  /** The model has no route that could be called. */
  | 'no_route'
  /** No route answered. */
  | 'routes_failed'
  | 'provider_throttled'
  | 'provider_refused'
  | 'spend_limit'

export interface FailureFacts {
  /** Absent = the code is specific enough. */
  readonly cause?: FailureCause
  /** The offending field of the request, as a path such as `messages[2].content`. */
  readonly param?: string
  /** How long to wait; becomes Retry-After (whole seconds, at least 1) and retry-after-ms. */
  readonly retryAfterMs?: number
  /** x-should-retry; absent = the client library decides by status. */
  readonly shouldRetry?: boolean
  /** A spend limit is reached, until its period ends. */
  readonly isSpendLimit?: boolean
  /** When the period of the reached spend limit ends, in epoch milliseconds. */
  readonly resetsAt?: number
  /** The message is a provider's. Each dialect marks that in its own way. */
  readonly refusal?: ProviderRefusal
  /** A provider's own `error.details`, kept if the dialect has a field for it. */
  readonly details?: unknown
  /** Facts for programs, shown as `error.metadata` on every surface. */
  readonly metadata?: Readonly<Record<string, string>>
  /** Value of the Allow header of a 405. */
  readonly allow?: string
}

/** How a provider refused a request as the caller's fault. */
export interface ProviderRefusal {
  readonly provider: string
  /** The dialect it spoke. */
  readonly dialect: string
  /** Its HTTP status; absent if the refusal was inside a 200. */
  readonly status?: number | undefined
  /** Its own error code, such as `content_filter`; undefined = it sent none. */
  readonly word: string | undefined
  /** Set if it says that the prompt is longer than the model's context. */
  readonly overflow: ContextOverflow | undefined
}

/** The figures of a prompt that is too long, a provider's unless it gave none; each may be absent. */
export interface ContextOverflow {
  /** Tokens requested: the prompt, and the output cap if the provider counts it too. */
  readonly tokens?: number
  /** The maximum of the model. */
  readonly limit?: number
  /** The part of `tokens` that is the output cap. */
  readonly outputCap?: number
  /** The provider gave no figures: `tokens` is our estimate of the prompt, `limit` the catalog's. */
  readonly isEstimated?: true
}

/** An expected outcome: returned in the pipeline, thrown in the management API. The message says who refused, what happened, and what to do. */
export class Failure {
  constructor(
    readonly code: FailureCode,
    readonly message: string,
    readonly facts: FailureFacts = {},
  ) {}

  get status(): number {
    return failureTable[this.code].status ?? 500
  }
}

/** undefined = the code is specific enough. */
export function causeOf({ facts }: Failure): FailureCause | undefined {
  if (facts.cause) return facts.cause
  return facts.isSpendLimit ? 'spend_limit' : facts.refusal ? 'provider_refused' : undefined
}

export function invalidRequest(message: string, param?: string): Failure {
  return new Failure('INVALID_REQUEST', message, param === undefined ? {} : { param })
}

/** The headers that tell a client whether and when to retry. */
export function retryHeaders(failure: Failure): Record<string, string> {
  const { retryAfterMs, shouldRetry } = failure.facts
  const headers: Record<string, string> = {}
  if (retryAfterMs !== undefined) {
    const waitMs = Math.max(1, Math.ceil(retryAfterMs))
    headers['retry-after'] = String(Math.max(1, Math.ceil(waitMs / 1000)))
    headers['retry-after-ms'] = String(waitMs)
  }
  if (shouldRetry !== undefined) headers['x-should-retry'] = String(shouldRetry)
  return headers
}

// ── Bugs ──

// A failed assertion is a bug in Tollgate. The request in which it happens gets a 500; the process goes on. Code that calls
// back into several requests, such as a group commit, catches the error of one and continues with the others. There is one
// exception: if the wallets in memory contradict the database, the gateway takes no new requests, finishes the running ones
// and exits (decision 0024).

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** Ends a switch over a closed union: a new member does not compile until it is handled. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`)
}
