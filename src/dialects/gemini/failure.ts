// Errors of a provider, which are google.rpc.Status objects: `{"error": {code, message, status, details: […]}}`, now and
// then inside a list. The status word is the type; the reason in the details, where there is one, is the finer code.

import { retryAfterMs } from '../../wire/retry-after.ts'
import { faultFromError, type ProviderFault, reasonIn } from '../canonical/faults.ts'
import { isRecord, parseJson, recordOf, textOf, wordOf } from '../canonical/json.ts'

/** HTTP statuses that the words inside a 200 stand for (google.rpc.Code, 2026-11). */
const statusOfWord: ReadonlyMap<string, number> = new Map([
  ['INVALID_ARGUMENT', 400],
  ['FAILED_PRECONDITION', 400],
  ['OUT_OF_RANGE', 400],
  ['UNAUTHENTICATED', 401],
  ['PERMISSION_DENIED', 403],
  ['NOT_FOUND', 404],
  ['ALREADY_EXISTS', 409],
  ['ABORTED', 409],
  ['RESOURCE_EXHAUSTED', 429],
  ['CANCELLED', 499],
  ['INTERNAL', 500],
  ['UNKNOWN', 500],
  ['DATA_LOSS', 500],
  ['UNIMPLEMENTED', 501],
  ['UNAVAILABLE', 503],
  ['DEADLINE_EXCEEDED', 504],
])

const textMax = 4096

export function readFault(status: number, headers: Headers, body: string): ProviderFault {
  const parsed = parseJson(body)
  const [first]: unknown[] = Array.isArray(parsed) ? parsed : [parsed]
  const error = isRecord(first) ? (first.error ?? first) : body.slice(0, textMax)
  return faultOf(status, retryAfterMs(headers), error)
}

/** An error inside a 200: the status it would have had is in it. */
export function readErrorObject(error: unknown): ProviderFault {
  const { code, status } = recordOf(error)
  const isStatus = typeof code === 'number' && code >= 400 && code <= 599
  return faultOf(isStatus ? code : statusOfWord.get(textOf(status)), undefined, error)
}

function faultOf(status: number | undefined, waitMs: number | undefined, error: unknown): ProviderFault {
  const fields = recordOf(error)
  const word = wordOf(fields.status) || undefined
  const fault = faultFromError(status, waitMs, error)
  const code = reasonIn(fields.details) ?? word
  return { ...fault, status: ownAccountStatus(status, code, fault.message), type: word, code }
}

/**
 * A bad key and a region that is not served come as a 400. Both are about the account behind the endpoint, and a 400
 * would be told to the caller as its own fault.
 */
function ownAccountStatus(status: number | undefined, code: string | undefined, said: string): number | undefined {
  if (status !== 400) return status
  if (code === 'API_KEY_INVALID') return 401
  return code === 'FAILED_PRECONDITION' && /location is not supported|enable billing/i.test(said) ? 403 : status
}
