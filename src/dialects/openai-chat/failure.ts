// Errors of Chat Completions: reading a provider's, writing our own.

import { type Failure, failureTable } from '../../kernel/failure.ts'
import { sseEvent } from '../../wire/sse-writer.ts'
import type { ProviderFault } from '../canonical/provider-fault.ts'
import { faultFromBody, faultFromError } from '../canonical/provider-fault.ts'

export function readFault(status: number, headers: Headers, body: string): ProviderFault {
  return faultFromBody(status, headers, body)
}

/** An error inside a 200: the status it would have had is in no header, so the words decide. */
export function readErrorObject(error: unknown): ProviderFault {
  return faultFromError(undefined, undefined, error)
}

export function renderFailure(failure: Failure): string {
  return JSON.stringify({ error: errorObject(failure) })
}

export function renderStreamFailure(failure: Failure): Uint8Array {
  return sseEvent(undefined, renderFailure(failure))
}

function errorObject(failure: Failure): object {
  const { refusedBy, param } = failure.facts
  const message =
    refusedBy === undefined ? failure.message : `Provider ${refusedBy} refused the request (400): ${failure.message}`
  return { message, type: failureTable[failure.code].chatType, param: param ?? null, code: failure.code }
}
