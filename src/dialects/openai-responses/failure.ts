// Reading a Responses provider's errors: whole bodies, and those that come inside a 200 as an event or a failed reply.

import type { ProviderFault } from '../canonical/provider-fault.ts'
import { faultFromBody, faultFromError } from '../canonical/provider-fault.ts'

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
  return withWait(faultFromBody(status, headers, body))
}

/** An error inside a 200: the status it would have had is in no header, so its words decide; undefined = they do not. */
export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultFromError(undefined, undefined, error)
  return withWait({ ...fault, status: statusIn(fault) })
}

function statusIn({ code = '', type = '' }: ProviderFault): number | undefined {
  // Resellers put the status itself there.
  if (/^[45]\d\d$/.test(code)) return Number(code)
  // What is wrong with an image has a dozen words, and all are the caller's to mend.
  if (code.includes('image')) return 400
  return statusOfWord.get(code) ?? statusOfWord.get(type)
}

/** "Please try again in 6m0s.": where no header tells how long to wait, the message does. */
const wait = /try again in ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+)/i
const waitPart = /(\d+(?:\.\d+)?)(ms|h|m|s)/gi
const waitMaxMs = 24 * 3_600_000
const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

function withWait(fault: ProviderFault): ProviderFault {
  if (fault.status !== 429 || fault.retryAfterMs !== undefined) return fault
  const [, spelled] = wait.exec(fault.message) ?? []
  if (spelled === undefined) return fault
  const parts = [...spelled.matchAll(waitPart)]
  const sum = parts.reduce((ms, [, count, unit]) => ms + Number(count) * (unitMs[unit?.toLowerCase() ?? ''] ?? 0), 0)
  return sum <= waitMaxMs ? { ...fault, retryAfterMs: Math.ceil(sum) } : fault
}
