// Reading a Responses provider's errors: whole bodies, and those that come inside a 200 as an event or a failed reply.

import { faultFromBody, faultFromError, type ProviderFault } from '../canonical/faults.ts'

/** HTTP statuses that the words inside a 200 stand for (the SDK's types and the reference, 2026-11). */
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

/** An error inside a 200: the status it would have had is in no header, so its words decide; undefined = they do not. */
export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultFromError(undefined, undefined, error)
  return { ...fault, status: statusIn(fault) }
}

function statusIn({ code = '', type = '' }: ProviderFault): number | undefined {
  // Resellers put the status itself there.
  if (/^[45]\d\d$/.test(code)) return Number(code)
  // What is wrong with an image has a dozen words, and all are the caller's to mend.
  if (code.includes('image')) return 400
  return statusOfWord.get(code) ?? statusOfWord.get(type)
}
