// Errors of Responses: reading providers' error bodies and errors inside a 200, writing ours.

import type { Failure, FailureCode } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { HeaderReader } from '../../wire/http-response.ts'
import { sseEvent } from '../../wire/sse.ts'
import { faultFromBody, faultInSuccess, openaiStatuses, type ProviderFault } from '../canonical/faults.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { EventNumbering } from '../canonical/translation.ts'
import { errorMessage } from '../reply/openai-error.ts'

export function readFault(status: number, headers: HeaderReader, body: string): ProviderFault {
  return faultFromBody(status, headers, body)
}

export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultInSuccess(error, openaiStatuses)
  // About a dozen codes concern images, and all are for the caller to fix.
  return fault.code?.includes('image') ? { ...fault, status: 400 } : fault
}

/** The codes that clients act on: Codex retries what it does not know, and pays again. */
const streamCodes: Readonly<Partial<Record<FailureCode, string>>> = {
  INSUFFICIENT_BALANCE: 'insufficient_quota',
  LIMIT_EXCEEDED: 'rate_limit_exceeded',
  OVERLOADED: 'server_is_overloaded',
  INVALID_REQUEST: 'invalid_prompt',
}

/** The last event of a stream that failed. */
export function renderStreamFailure(failure: Failure, requestId: RequestId, numbering?: EventNumbering): Uint8Array {
  const { code, facts } = failure
  // A limit that does not pass by waiting: a client that tries again would be refused again.
  const isFinal = facts.shouldRetry === false && code === 'LIMIT_EXCEEDED'
  const word = facts.refusal?.overflow ? 'context_length_exceeded' : isFinal ? 'insufficient_quota' : streamCodes[code]
  const error = jsonObject({ code: jsonString(word ?? 'server_error'), message: jsonString(errorMessage(failure)) })
  const response = jsonObject({
    id: jsonString(numbering?.responseId || `resp_${requestId.slice(requestId.indexOf('_') + 1)}`),
    object: '"response"',
    status: '"failed"',
    error,
    output: '[]',
    usage: 'null',
    ...(facts.metadata && { metadata: JSON.stringify(facts.metadata) }),
  })
  const type = 'response.failed'
  return sseEvent(type, jsonObject({ type: jsonString(type), sequence_number: String(numbering?.next ?? 0), response }))
}
