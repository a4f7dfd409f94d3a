// Responses with the security headers of every page: only content from this gateway loads, no framing, no referrer.

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

export interface PageResponse {
  readonly status?: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Compressed at the lowest level, because it is done for every request. */
export function pageResponse(request: Request, { status = 200, type, body, headers = {} }: PageResponse): Response {
  const bytes = new TextEncoder().encode(body)
  const isCompressed = bytes.length >= compressMinBytes && acceptsGzip(request)
  return new Response(isCompressed ? Bun.gzipSync(bytes, { level: 1 }) : bytes, {
    status,
    headers: {
      ...securityHeaders,
      'content-type': type,
      'cache-control': 'private, no-cache',
      vary: 'accept-encoding, cookie',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
      ...headers,
    },
  })
}

export function htmlResponse(request: Request, body: string, status = 200): Response {
  return pageResponse(request, { status, type: 'text/html; charset=utf-8', body })
}

export function jsonResponse(
  request: Request,
  value: unknown,
  more: Omit<PageResponse, 'type' | 'body'> = {},
): Response {
  return pageResponse(request, { ...more, type: 'application/json', body: JSON.stringify(value) })
}

export function redirect(location: string, more: Readonly<Record<string, string>> = {}): Response {
  const headers = { ...securityHeaders, location, 'cache-control': 'no-store', ...more }
  return new Response(null, { status: 303, headers })
}

/** Assets are named by their hash, so they can be cached forever. */
export function assetResponse(
  request: Request,
  asset: { type: string; bytes: Uint8Array; gzip: Uint8Array },
): Response {
  const isCompressed = acceptsGzip(request)
  return new Response(Uint8Array.from(isCompressed ? asset.gzip : asset.bytes), {
    headers: {
      ...securityHeaders,
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
    },
  })
}

export function eventsResponse(body: ReadableStream<Uint8Array>): Response {
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
  return new Response(body, { headers: { ...securityHeaders, ...headers } })
}

function acceptsGzip(request: Request): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*,|\s*$))/.test(request.headers.get('accept-encoding') ?? '')
}
