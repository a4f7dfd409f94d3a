// Errors of Chat Completions: reading providers' errors, writing ours.

import { type Failure, failureTable, type ProviderRefusal } from '../../kernel/failure.ts'
import type { HeaderReader } from '../../wire/http-response.ts'
import { sseEvent } from '../../wire/sse.ts'
import { faultFromBody, faultInSuccess, openaiStatuses, type ProviderFault } from '../canonical/faults.ts'

/** Groq's codes, with a 400, for a malformed call or malformed JSON by its model (2026-11). */
const retryableCodes: ReadonlySet<string | undefined> = new Set(['tool_use_failed', 'json_validate_failed'])

export function readFault(status: number, headers: HeaderReader, body: string): ProviderFault {
  return withRetryFlag(faultFromBody(status, headers, body))
}

export function readErrorObject(error: unknown): ProviderFault {
  return withRetryFlag(faultInSuccess(error, openaiStatuses))
}

function withRetryFlag(fault: ProviderFault): ProviderFault {
  return retryableCodes.has(fault.code) ? { ...fault, isChance: true } : fault
}

export function renderFailure(failure: Failure): string {
  return JSON.stringify({ error: errorObject(failure) })
}

export function renderStreamFailure(failure: Failure): Uint8Array {
  return sseEvent(undefined, renderFailure(failure))
}

function errorObject(failure: Failure): object {
  const { refusal, param, metadata } = failure.facts
  const message = refusal ? refusalMessage(failure.message, refusal) : failure.message
  const type = failureTable[failure.code].chatType
  return { message, type, param: param ?? null, code: failure.code, ...(metadata && { metadata }) }
}

/** The provider's text and its error code, which some clients look for; `code` is ours. */
function refusalMessage(said: string, { provider, word, overflow, status = 400 }: ProviderRefusal): string {
  const looked = overflow ? 'context_length_exceeded' : word
  const added = looked === undefined || said.includes(looked) ? '' : ` (${looked})`
  return `Provider ${provider} refused the request (${status}): ${said}${added}`
}
