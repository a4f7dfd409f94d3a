// Errors are google.rpc.Status objects: `{"error": {code, message, status, details: […]}}`, sometimes inside a list.
// The status word is the type. The reason in the details, if there is one, is the finer code.

import { type Failure, failureTable } from '../../kernel/failure.ts'
import type { HeaderReader } from '../../wire/http-message.ts'
import { retryAfterMs } from '../../wire/retry-after.ts'
import { sseEvent } from '../../wire/sse.ts'
import { faultFromError, type ProviderFault, reasonIn, statusesOf } from '../canonical/faults.ts'
import { isRecord, parseJson, recordOf, textOf, wordOf } from '../canonical/json.ts'
import { errorMessage } from '../reply/openai.ts'

/** HTTP statuses for status words inside a 200 (google.rpc.Code, 2026-11). */
const statusOfWord = statusesOf({
  400: ['INVALID_ARGUMENT', 'FAILED_PRECONDITION', 'OUT_OF_RANGE'],
  401: ['UNAUTHENTICATED'],
  403: ['PERMISSION_DENIED'],
  404: ['NOT_FOUND'],
  409: ['ALREADY_EXISTS', 'ABORTED'],
  429: ['RESOURCE_EXHAUSTED'],
  499: ['CANCELLED'],
  500: ['INTERNAL', 'UNKNOWN', 'DATA_LOSS'],
  501: ['UNIMPLEMENTED'],
  503: ['UNAVAILABLE'],
  504: ['DEADLINE_EXCEEDED'],
})

const textMax = 4096

export function readFault(status: number, headers: HeaderReader, body: string): ProviderFault {
  const parsed = parseJson(body)
  const [first]: unknown[] = Array.isArray(parsed) ? parsed : [parsed]
  const error = isRecord(first) ? (first.error ?? first) : body.slice(0, textMax)
  return faultOf(status, retryAfterMs(headers), error)
}

/** Reads an error inside a 200, which contains the status it would have had. */
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
 * An invalid key and an unsupported region are reported as 400. Both concern the operator's account, and a 400 would be
 * blamed on the caller.
 */
function ownAccountStatus(status: number | undefined, code: string | undefined, said: string): number | undefined {
  if (status !== 400) return status
  if (code === 'API_KEY_INVALID') return 401
  return code === 'FAILED_PRECONDITION' && /location is not supported|enable billing/i.test(said) ? 403 : status
}

// Our errors. `code` is the HTTP status here, so the code of our vocabulary is the reason in the details.

const typeUrl = 'type.googleapis.com/google.rpc'

export function renderFailure(failure: Failure): string {
  const { code, status, facts } = failure
  const param = facts.param === undefined ? {} : { param: facts.param }
  const info = {
    '@type': `${typeUrl}.ErrorInfo`,
    reason: code,
    domain: 'tollgate',
    metadata: { ...param, ...facts.metadata },
  }
  const { retryAfterMs } = facts
  // Gemini CLI waits as long as this says.
  const retry = { '@type': `${typeUrl}.RetryInfo`, retryDelay: `${Math.ceil((retryAfterMs ?? 0) / 1000)}s` }
  const details = retryAfterMs === undefined ? [info] : [info, retry]
  const { geminiStatus } = failureTable[code]
  return JSON.stringify({ error: { code: status, message: errorMessage(failure), status: geminiStatus, details } })
}

export function renderStreamFailure(failure: Failure): Uint8Array {
  return sseEvent(undefined, renderFailure(failure))
}
