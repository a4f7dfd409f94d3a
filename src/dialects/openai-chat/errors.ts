// Errors of Chat Completions: reading providers' errors, writing ours.

import type { Failure } from '../../kernel/failure.ts'
import type { HeaderReader } from '../../wire/http-message.ts'
import { sseEvent } from '../../wire/sse.ts'
import { faultFromBody, faultInSuccess, openaiStatuses, type ProviderFault } from '../canonical/faults.ts'
import { renderOpenaiFailure } from '../reply/openai.ts'

/** Groq's codes, with a 400, for a malformed call or malformed JSON by its model (2026-11). */
const retryableCodes: ReadonlySet<string | undefined> = new Set(['tool_use_failed', 'json_validate_failed'])

export function readFault(status: number, headers: HeaderReader, body: string): ProviderFault {
  return withRetryFlag(faultFromBody(status, headers, body))
}

export function readErrorObject(error: unknown): ProviderFault {
  return withRetryFlag(faultInSuccess(error, openaiStatuses))
}

function withRetryFlag(fault: ProviderFault): ProviderFault {
  return retryableCodes.has(fault.code) ? { ...fault, isInvalidOutput: true } : fault
}

export function renderStreamFailure(failure: Failure): Uint8Array {
  return sseEvent(undefined, renderOpenaiFailure(failure))
}
