// A provider's error body, as the two families write it: `{"error": {message, type, code, param, details}}`, give or
// take. What is not JSON is kept as text; nothing here is trusted.

import { retryAfterMs } from '../../wire/retry-after.ts'

/** What a provider said when it refused or broke off, in its own words. Untrusted. */
export interface ProviderFault {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly message: string
  readonly param: string | undefined
  readonly details: unknown
  readonly retryAfterMs: number | undefined
}

const textMax = 4096

export function faultFromBody(status: number, headers: Headers, body: string): ProviderFault {
  const parsed = parseObject(body)
  const error = parsed?.error ?? parsed ?? body.slice(0, textMax)
  return faultFromError(status, retryAfterMs(headers), error)
}

export function faultFromError(status: number | undefined, retryMs: number | undefined, error: unknown): ProviderFault {
  const fields = isRecord(error) ? error : {}
  const message = text(fields.message) ?? (typeof error === 'string' ? error : undefined)
  return {
    status,
    type: text(fields.type),
    // Numbers stand here too, with hosts that put their status into the code.
    code: text(fields.code) ?? (typeof fields.code === 'number' ? String(fields.code) : undefined),
    message: (message ?? '').slice(0, textMax),
    param: text(fields.param),
    details: fields.details,
    retryAfterMs: retryMs,
  }
}

/** A 2xx that is no reply of the dialect. */
export function replyFault(message: string): ProviderFault {
  return faultFromError(undefined, undefined, { message })
}

function parseObject(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return isRecord(value) ? value : undefined
  } catch {
    // An HTML page or plain text of some proxy on the way.
    return undefined
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
