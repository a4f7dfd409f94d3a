// Refusals in OpenAI's words: `{"error":{message,type,param,code}}`, all four keys always there.

import type { Refusal, RefusalReason } from '../refusal.ts'
import type { RenderedRefusal } from '../wire.ts'

interface ErrorFacts {
  readonly status: number
  readonly type: string
  readonly message: string
  readonly param?: string | undefined
  readonly code?: string | undefined
  readonly retryAfterSeconds?: number
}

export function renderRefusal({ reason }: Refusal): RenderedRefusal {
  const { status, type, message, param, code, retryAfterSeconds } = factsOf(reason)
  return {
    status,
    headers: retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
    body: JSON.stringify({ error: { message, type, param: param ?? null, code: code ?? null } }),
  }
}

function factsOf(reason: RefusalReason): ErrorFacts {
  const refused = { status: 400, type: 'invalid_request_error' }
  switch (reason.kind) {
    case 'invalid':
      return { ...refused, message: reason.message, param: reason.param, code: reason.code }
    case 'unreadable':
      return { ...refused, message: 'We could not parse the JSON body of your request: it must be a JSON object.' }
    case 'prompt-too-long':
      return {
        ...refused,
        message: `This model's maximum context length is ${reason.tokensMax} tokens. However, your messages resulted in ${reason.tokens} tokens. Please reduce the length of the messages.`,
        param: 'messages',
        code: 'context_length_exceeded',
      }
    case 'unknown-model':
      return {
        ...refused,
        status: 404,
        message: `The model \`${reason.model}\` does not exist or you do not have access to it.`,
        code: 'model_not_found',
      }
    case 'unknown-path':
      return { ...refused, status: 404, message: `Invalid URL (POST ${reason.path})` }
    case 'throttled':
      return {
        status: 429,
        type: 'requests',
        message: `Rate limit reached for ${reason.model} in the sandbox on requests per min (RPM). Please try again in ${reason.retryAfterSeconds}s.`,
        code: 'rate_limit_exceeded',
        retryAfterSeconds: reason.retryAfterSeconds,
      }
    case 'unavailable':
      return {
        status: 503,
        type: 'server_error',
        message: `The engine is currently overloaded, please try again later (sandbox model ${reason.model}).`,
      }
  }
}
