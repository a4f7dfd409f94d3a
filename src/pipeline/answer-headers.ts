// Response headers are built from what the gateway knows, never copied from a provider: no cookies, no stale lengths,
// no account names.

import type { Dialect } from '../dialects/dialect.ts'
import { type Failure, retryHeaders } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Candidate } from '../routing/candidate.ts'

export type AnswerHeaders = Record<string, string>

export function requestIdHeaders(id: RequestId): AnswerHeaders {
  return { 'x-request-id': id, 'request-id': id }
}

export function generationHeaders(id: RequestId, candidate: Candidate | undefined, attempts: number): AnswerHeaders {
  const headers = requestIdHeaders(id)
  if (candidate) {
    headers['x-tollgate-provider'] = candidate.provider.id
    headers['x-tollgate-upstream-model'] = headerText(candidate.route.upstreamModel)
    headers['x-tollgate-attempts'] = String(attempts)
  }
  return headers
}

/** Operators name models as their hosts do, in any script; the runtime refuses a header beyond Latin-1. */
function headerText(name: string): string {
  return /^[\x20-\x7e]*$/.test(name) ? name : encodeURI(name.toWellFormed())
}

export function streamHeaders(headers: AnswerHeaders): AnswerHeaders {
  headers['content-type'] = 'text/event-stream; charset=utf-8'
  headers['cache-control'] = 'no-cache, no-transform'
  // nginx and its kin would hold events back until a buffer is full.
  headers['x-accel-buffering'] = 'no'
  return headers
}

/** A failure before anything was sent: the vocabulary's status, in the shape the surface's clients parse. */
export function failureResponse(surface: Dialect, failure: Failure, headers: AnswerHeaders, id: RequestId): Response {
  headers['content-type'] = 'application/json'
  if (failure.facts.allow !== undefined) headers.allow = failure.facts.allow
  if (failure.status === 401) headers['www-authenticate'] = 'Bearer realm="Tollgate"'
  Object.assign(headers, retryHeaders(failure))
  return new Response(surface.renderFailure(failure, id), { status: failure.status, headers })
}
