// Answers with the security headers of every page: only content from this gateway loads, no framing, no referrer.

import { Answer, type AnswerHeaders, acceptsGzip, type EventStream } from '../pipeline/answer.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import type { Page } from './page-data.ts'

/** Renders a page for the sender of a request. */
export type ShowPage = (request: ClientRequest, page: Page, status?: number) => Promise<Answer>

/** Rule W3 of docs/security.md; it blocks inline scripts and styles. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

const securityHeaders = {
  'content-security-policy': contentPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const

/** Smaller bodies hardly compress. */
const compressMinBytes = 1024

export interface PageParts {
  readonly status?: number
  readonly type: string
  readonly body: string
  readonly headers?: AnswerHeaders
}

/** Compressed at the lowest level, because it is done for every request. */
export function pageAnswer(request: ClientRequest, { status = 200, type, body, headers = {} }: PageParts): Answer {
  const bytes = new TextEncoder().encode(body)
  const isCompressed = bytes.length >= compressMinBytes && acceptsGzip(request.headers)
  const all = {
    ...securityHeaders,
    'content-type': type,
    'cache-control': 'private, no-cache',
    vary: 'accept-encoding, cookie',
    ...(isCompressed && { 'content-encoding': 'gzip' }),
    ...headers,
  }
  return new Answer(status, all, isCompressed ? Bun.gzipSync(bytes, { level: 1 }) : bytes)
}

export function htmlAnswer(request: ClientRequest, body: string, status = 200): Answer {
  return pageAnswer(request, { status, type: 'text/html; charset=utf-8', body })
}

export function jsonAnswer(
  request: ClientRequest,
  value: unknown,
  more: Omit<PageParts, 'type' | 'body'> = {},
): Answer {
  return pageAnswer(request, { ...more, type: 'application/json', body: JSON.stringify(value) })
}

export function redirect(location: string, more: AnswerHeaders = {}): Answer {
  return new Answer(303, { ...securityHeaders, location, 'cache-control': 'no-store', ...more })
}

/** Assets are named by their hash, so they can be cached forever. */
export function assetAnswer(
  request: ClientRequest,
  asset: { type: string; bytes: Uint8Array; gzip: Uint8Array },
): Answer {
  const isCompressed = acceptsGzip(request.headers)
  const headers = {
    ...securityHeaders,
    'content-type': asset.type,
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'accept-encoding',
    ...(isCompressed && { 'content-encoding': 'gzip' }),
  }
  return new Answer(200, headers, isCompressed ? asset.gzip : asset.bytes)
}

export function eventsAnswer(events: EventStream): Answer {
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
  return new Answer(200, { ...securityHeaders, ...headers }, events)
}
