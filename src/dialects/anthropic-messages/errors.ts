// Errors of the Messages API: reading providers' errors, writing ours.

import { type ContextOverflow, type Failure, failureTable, type ProviderRefusal } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { HeaderReader } from '../../wire/http-response.ts'
import { sseEvent } from '../../wire/sse.ts'
import { faultFromBody, faultInSuccess, type ProviderFault } from '../canonical/faults.ts'

/** HTTP statuses for error types inside a 200 (docs of 2026-11). */
const statuses: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])

export function readFault(status: number, headers: HeaderReader, body: string): ProviderFault {
  return faultFromBody(status, headers, body)
}

export function readErrorObject(error: unknown): ProviderFault {
  return faultInSuccess(error, statuses)
}

export function renderFailure(failure: Failure, requestId: RequestId): string {
  const { refusal, details, metadata } = failure.facts
  const isOwn = refusal === undefined || refusal.dialect === 'anthropic-messages'
  const error = {
    type: failureTable[failure.code].messageType,
    message: refusal ? refusalMessage(failure.message, refusal) : failure.message,
    code: failure.code,
    ...(details === undefined || !isOwn ? {} : { details }),
    ...(metadata && { metadata }),
  }
  return JSON.stringify({ type: 'error', error, request_id: requestId })
}

export function renderStreamFailure(failure: Failure, requestId: RequestId): Uint8Array {
  return sseEvent('error', renderFailure(failure, requestId))
}

/**
 * Anthropic's two messages for a prompt that does not fit; clients react to them by compacting or by lowering the cap.
 */
const overflowSentences = /prompt is too long|input length and `?max_tokens`? exceed context limit/i

/** The provider's message, with the phrases that clients of this dialect match to recover from an error. */
function refusalMessage(said: string, { provider, dialect, word, overflow }: ProviderRefusal): string {
  const isOwn = dialect === 'anthropic-messages'
  // Hosts of this dialect may use other words: Bedrock says "Input is too long for requested model."
  if (overflow && !(isOwn && overflowSentences.test(said))) {
    const quoted = said === '' ? '' : ` Provider ${provider}: ${said}`
    return `${tooLong(overflow)}${quoted} (capability_rejected: prompt_too_long)`
  }
  return isOwn || word === undefined || said.includes(word) ? said : `${said} (${word})`
}

/** Anthropic's two messages: what is too long, and, if the output cap is part of it, by how much to lower the cap. */
function tooLong({ tokens, limit, outputCap }: ContextOverflow): string {
  if (tokens === undefined || limit === undefined) return 'prompt is too long:'
  const tooMany = `prompt is too long: ${tokens} tokens > ${limit} maximum.`
  if (!outputCap) return tooMany
  const parts = `${tokens - outputCap} + ${outputCap} > ${limit}`
  return `${tooMany} input length and \`max_tokens\` exceed context limit: ${parts}, decrease input length or \`max_tokens\` and try again.`
}
