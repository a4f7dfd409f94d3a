// Answers with the headers every page needs: nothing runs or loads that this gateway did not serve itself, nothing is
// framed, nothing tells other sites where a visitor came from.

/** Rule W3 of the security notes; no inline script or style passes it. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

const safetyHeaders = {
  'content-security-policy': contentPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
} as const

/** Below this a compressed answer is hardly smaller. */
const compressMinBytes = 1024

export interface Answer {
  readonly status?: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Compressed lightly, since it is done for every request; never kept by shared caches. */
export function answer(request: Request, { status = 200, type, body, headers = {} }: Answer): Response {
  const bytes = new TextEncoder().encode(body)
  const isCompressed = bytes.length >= compressMinBytes && takesGzip(request)
  return new Response(isCompressed ? Bun.gzipSync(bytes, { level: 1 }) : bytes, {
    status,
    headers: {
      ...safetyHeaders,
      'content-type': type,
      'cache-control': 'private, no-cache',
      vary: 'accept-encoding, cookie',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
      ...headers,
    },
  })
}

export function answerHtml(request: Request, body: string, status = 200): Response {
  return answer(request, { status, type: 'text/html; charset=utf-8', body })
}

export function answerJson(request: Request, value: unknown, more: Omit<Answer, 'type' | 'body'> = {}): Response {
  return answer(request, { ...more, type: 'application/json', body: JSON.stringify(value) })
}

export function redirect(location: string): Response {
  return new Response(null, { status: 303, headers: { ...safetyHeaders, location, 'cache-control': 'no-store' } })
}

/** Content that is named by its own hash may be kept for ever. */
export function answerAsset(request: Request, asset: { type: string; bytes: Uint8Array; gzip: Uint8Array }): Response {
  const isCompressed = takesGzip(request)
  return new Response(Uint8Array.from(isCompressed ? asset.gzip : asset.bytes), {
    headers: {
      ...safetyHeaders,
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
    },
  })
}

export function answerEvents(body: ReadableStream<Uint8Array>): Response {
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
  return new Response(body, { headers: { ...safetyHeaders, ...headers } })
}

function takesGzip(request: Request): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*,|\s*$))/.test(request.headers.get('accept-encoding') ?? '')
}
