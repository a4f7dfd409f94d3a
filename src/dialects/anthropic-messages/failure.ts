// Errors of the Messages API: reading a provider's, writing our own.

import { type Failure, failureTable } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { sseEvent } from '../../wire/sse-writer.ts'
import type { ProviderFault } from '../canonical/provider-fault.ts'
import { faultFromBody, faultFromError } from '../canonical/provider-fault.ts'

/** HTTP statuses that the error types inside a 200 stand for (docs of 2026-11). */
const statusOfType: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
}

export function readFault(status: number, headers: Headers, body: string): ProviderFault {
  return faultFromBody(status, headers, body)
}

export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultFromError(undefined, undefined, error)
  return { ...fault, status: statusOfType[fault.type ?? ''] }
}

export function renderFailure(failure: Failure, requestId: RequestId): string {
  const { details } = failure.facts
  // A provider's own words stay as they are: official tools recover from errors by matching them.
  const error = {
    type: failureTable[failure.code].messageType,
    message: failure.message,
    code: failure.code,
    ...(details === undefined ? {} : { details }),
  }
  return JSON.stringify({ type: 'error', error, request_id: requestId })
}

export function renderStreamFailure(failure: Failure, requestId: RequestId): Uint8Array {
  return sseEvent('error', renderFailure(failure, requestId))
}
