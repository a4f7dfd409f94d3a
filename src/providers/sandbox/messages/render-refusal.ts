// Refusals in Anthropic's words: `{"type":"error","error":{type,message},"request_id"}`. The field at fault is named in
// the message, because this shape has no place for it.

import type { Refusal, RefusalReason } from '../refusal.ts'
import type { RenderedRefusal } from '../wire.ts'

interface ErrorFacts {
  readonly status: number
  readonly type: string
  readonly message: string
  readonly retryAfterSeconds?: number
}

export function renderRefusal({ reason }: Refusal, requestId: string): RenderedRefusal {
  const { status, type, message, retryAfterSeconds } = factsOf(reason)
  return {
    status,
    headers: retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
    body: JSON.stringify({ type: 'error', error: { type, message }, request_id: requestId }),
  }
}

function factsOf(reason: RefusalReason): ErrorFacts {
  const refused = { status: 400, type: 'invalid_request_error' }
  switch (reason.kind) {
    case 'invalid':
      return { ...refused, message: reason.message }
    case 'unreadable':
      return { ...refused, message: 'The request body is not valid JSON: it must be a JSON object.' }
    case 'prompt-too-long':
      return { ...refused, message: `prompt is too long: ${reason.tokens} tokens > ${reason.tokensMax} maximum` }
    case 'unknown-model':
      return { status: 404, type: 'not_found_error', message: `model: ${reason.model}` }
    case 'unknown-path':
      return { status: 404, type: 'not_found_error', message: `Not found: ${reason.path}` }
    case 'throttled':
      return {
        status: 429,
        type: 'rate_limit_error',
        message: `Number of requests has exceeded your rate limit for ${reason.model} in the sandbox. Please try again in ${reason.retryAfterSeconds} seconds.`,
        retryAfterSeconds: reason.retryAfterSeconds,
      }
    case 'unavailable':
      return { status: 503, type: 'overloaded_error', message: `Overloaded (sandbox model ${reason.model})` }
  }
}
