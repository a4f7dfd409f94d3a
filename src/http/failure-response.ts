// Answers that end a request outside a generation, in the shape the caller's client parses.

import type { Dialect } from '../dialects/dialect.ts'
import { type AnswerHeaders, failureResponse, requestIdHeaders } from '../generation/answer-headers.ts'
import type { Failure } from '../kernel/failure.ts'
import { createId, type RequestId } from '../kernel/ids.ts'

export function refuse(surface: Dialect, failure: Failure, id: RequestId = createId('req')): Response {
  return failureResponse(surface, failure, requestIdHeaders(id), id)
}

export function jsonResponse(value: unknown, headers: AnswerHeaders = {}): Response {
  return new Response(JSON.stringify(value), {
    headers: { ...requestIdHeaders(createId('req')), 'content-type': 'application/json', ...headers },
  })
}
