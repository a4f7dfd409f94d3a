// Errors of Responses: reading providers' error bodies and errors inside a 200, writing ours.

import { type Failure, type FailureCode, failureTable } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { sseEvent } from '../../wire/sse.ts'
import { faultInSuccess, openaiStatuses, type ProviderFault } from '../canonical/faults.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { EventNumbering, ReplyNames } from '../canonical/translation.ts'
import { errorMessage, errorObject, renderOpenaiFailure } from '../reply/openai.ts'
import { resourceDefaults } from './resource.ts'

export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultInSuccess(error, openaiStatuses)
  // About a dozen codes concern images, and all are for the caller to fix.
  return fault.code?.includes('image') ? { ...fault, status: 400 } : fault
}

/**
 * Codex waits as long as Retry-After says, hours for a spend limit, unless it knows the error by this type (0.166). Then it
 * ends at once and says when the limit resets.
 */
export function renderFailure(failure: Failure): string {
  const { isSpendLimit, resetsAt } = failure.facts
  if (!isSpendLimit) return renderOpenaiFailure(failure)
  const resets = resetsAt === undefined ? {} : { resets_at: Math.ceil(resetsAt / 1000) }
  return JSON.stringify({ error: { ...errorObject(failure), type: 'usage_limit_reached', ...resets } })
}

/** The codes that clients act on: Codex retries what it does not know, and pays again. */
const streamCodes: Readonly<Partial<Record<FailureCode, string>>> = {
  INSUFFICIENT_BALANCE: 'insufficient_quota',
  LIMIT_EXCEEDED: 'rate_limit_exceeded',
  OVERLOADED: 'server_is_overloaded',
  INVALID_REQUEST: 'invalid_prompt',
}

/** The last event of a stream that failed. `code` is one of the client's; ours is in the metadata. */
export function renderStreamFailure(
  failure: Failure,
  requestId: RequestId,
  numbering?: EventNumbering,
  { model, createdSeconds }: ReplyNames = { model: '', createdSeconds: 0 },
): Uint8Array {
  const { code, facts } = failure
  // A limit that does not pass by waiting: a client that tries again would be refused again.
  const isFinal = facts.shouldRetry === false && code === 'LIMIT_EXCEEDED'
  const word = facts.refusal?.overflow ? 'context_length_exceeded' : isFinal ? 'insufficient_quota' : streamCodes[code]
  const error = jsonObject({
    code: jsonString(word ?? 'server_error'),
    message: jsonString(errorMessage(failure)),
    type: jsonString(failureTable[code].chatType),
    metadata: JSON.stringify({ code, request_id: requestId, ...facts.metadata }),
  })
  const response = jsonObject({
    id: jsonString(numbering?.responseId || `resp_${requestId.slice(requestId.indexOf('_') + 1)}`),
    ...resourceDefaults,
    created_at: String(createdSeconds),
    status: '"failed"',
    model: jsonString(model),
    ...numbering?.echo,
    error,
  })
  const type = 'response.failed'
  return sseEvent(type, jsonObject({ type: jsonString(type), sequence_number: String(numbering?.next ?? 0), response }))
}
