// A provider's error body, as the two families write it: `{"error": {message, type, code, param, details}}`, give or
// take. What is not JSON is kept as text; nothing here is trusted.

import { retryAfterMs } from '../../wire/retry-after.ts'
import { parseRecord, recordOf } from './json-value.ts'

/** What a provider said when it refused or broke off, in its own words. Untrusted. */
export interface ProviderFault {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly message: string
  readonly param: string | undefined
  readonly details: unknown
  readonly retryAfterMs: number | undefined
  /** The model wrote something that is no reply; asked again, it may well write one. */
  readonly isChance?: true
}

const textMax = 4096

export function faultFromBody(status: number, headers: Headers, body: string): ProviderFault {
  // An HTML page or plain text of some proxy on the way is no object.
  const parsed = parseRecord(body)
  const error = parsed?.error ?? parsed ?? body.slice(0, textMax)
  return faultFromError(status, retryAfterMs(headers), error)
}

export function faultFromError(status: number | undefined, retryMs: number | undefined, error: unknown): ProviderFault {
  const fields = recordOf(error)
  const message = text(fields.message) ?? (typeof error === 'string' ? error : undefined)
  return {
    status,
    type: text(fields.type),
    code: codeOf(fields),
    message: (message ?? '').slice(0, textMax),
    param: text(fields.param),
    details: fields.details,
    retryAfterMs: retryMs,
  }
}

/** Numbers stand there too, with hosts that put their status into it; Messages has its finer words in the details. */
function codeOf({ code, details }: Record<string, unknown>): string | undefined {
  if (typeof code === 'number') return String(code)
  return text(code) ?? text(recordOf(details).error_code)
}

/** A 2xx that is no reply of the dialect. */
export function replyFault(message: string): ProviderFault {
  return faultFromError(undefined, undefined, { message })
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
