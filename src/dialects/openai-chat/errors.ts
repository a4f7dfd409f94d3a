// Errors of Chat Completions: reading providers' errors, writing ours.

import { type Failure, failureTable, type ProviderRefusal } from '../../kernel/failure.ts'
import { sseEvent } from '../../wire/sse-writer.ts'
import { faultFromBody, faultFromError, type ProviderFault } from '../canonical/faults.ts'

/** HTTP statuses for codes and types inside a 200 (OpenAI's reference and SDKs, 2026-11). */
const statusOfWord: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['invalid_prompt', 400],
  ['content_filter', 400],
  ['content_policy_violation', 400],
  ['context_length_exceeded', 400],
  ['invalid_api_key', 401],
  ['authentication_error', 401],
  ['permission_error', 403],
  ['model_not_found', 404],
  ['insufficient_quota', 429],
  ['rate_limit_exceeded', 429],
  ['rate_limit_error', 429],
  ['rate_limit', 429],
  ['tokens', 429],
  ['requests', 429],
  ['server_error', 500],
  ['overloaded_error', 503],
])

/** Groq's codes, with a 400, for a malformed call or malformed JSON by its model (2026-11). */
const retryableCodes: ReadonlySet<string | undefined> = new Set(['tool_use_failed', 'json_validate_failed'])

export function readFault(status: number, headers: Headers, body: string): ProviderFault {
  return withRetryFlag(faultFromBody(status, headers, body))
}

/** Reads an error inside a 200. Its status follows from its code or type; undefined if neither is known. */
export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultFromError(undefined, undefined, error)
  return withRetryFlag({ ...fault, status: statusIn(fault) })
}

function withRetryFlag(fault: ProviderFault): ProviderFault {
  return retryableCodes.has(fault.code) ? { ...fault, isChance: true } : fault
}

function statusIn({ code = '', type = '' }: ProviderFault): number | undefined {
  // Resellers put the status there.
  if (/^[45]\d\d$/.test(code)) return Number(code)
  return statusOfWord.get(code) ?? statusOfWord.get(type)
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
