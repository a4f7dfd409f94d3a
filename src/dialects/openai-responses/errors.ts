// Reads a provider's errors: error bodies, and errors inside a 200 as an event or a failed reply.

import { faultFromBody, faultFromError, type ProviderFault } from '../canonical/faults.ts'

/** HTTP statuses for error codes and types inside a 200 (SDK types and reference, 2026-11). */
const statusOfWord: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['invalid_prompt', 400],
  ['bio_policy', 400],
  ['cyber_policy', 400],
  ['misalignment_policy_violation', 400],
  ['content_filter', 400],
  ['content_policy_violation', 400],
  ['context_length_exceeded', 400],
  ['invalid_encrypted_content', 400],
  ['invalid_api_key', 401],
  ['authentication_error', 401],
  ['permission_error', 403],
  ['model_not_found', 404],
  ['insufficient_quota', 429],
  ['rate_limit_exceeded', 429],
  ['rate_limit_error', 429],
  ['tokens', 429],
  ['requests', 429],
  ['server_error', 500],
  ['vector_store_timeout', 500],
  ['server_is_overloaded', 503],
  ['overloaded_error', 503],
])

export function readFault(status: number, headers: Headers, body: string): ProviderFault {
  return faultFromBody(status, headers, body)
}

/** Reads an error inside a 200. Its status follows from its code or type; undefined if neither is known. */
export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultFromError(undefined, undefined, error)
  return { ...fault, status: statusIn(fault) }
}

function statusIn({ code = '', type = '' }: ProviderFault): number | undefined {
  // Resellers put the status there.
  if (/^[45]\d\d$/.test(code)) return Number(code)
  // About a dozen codes concern images, and all are for the caller to fix.
  if (code.includes('image')) return 400
  return statusOfWord.get(code) ?? statusOfWord.get(type)
}
