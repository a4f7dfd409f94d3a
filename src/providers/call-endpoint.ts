// The one place that dials a provider. It adds the credential, never follows a redirect, never lets the runtime
// decompress, and knows of no clock: whoever calls may abort.

import type { Secret } from '../kernel/secret.ts'
import type { Endpoint, Provider, Transport, UpstreamRequest } from './provider.ts'

export interface EndpointCall {
  readonly path: string
  /** Headers of the dialect, such as its version. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  readonly signal: AbortSignal
  readonly isFresh?: boolean
}

/** Rejects as the runtime does when the call never becomes a response; isUnreachable tells one kind of that apart. */
export function callEndpoint(provider: Provider, endpoint: Endpoint, call: EndpointCall): Promise<Response> {
  const headers = requestHeaders(call.headers, endpoint, provider.apiKey)
  const transport = provider.transport ?? networkTransport(endpoint.baseUrl)
  return transport({ path: call.path, headers, body: call.body, signal: call.signal, isFresh: call.isFresh ?? false })
}

function requestHeaders(
  dialectHeaders: Readonly<Record<string, string>>,
  endpoint: Endpoint,
  apiKey: Secret | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {
    ...dialectHeaders,
    'content-type': 'application/json',
    // An encoded answer would have to be unpacked before it can be read, and a small one can unpack to gigabytes.
    'accept-encoding': 'identity',
    'user-agent': 'tollgate',
  }
  if (apiKey === undefined || endpoint.auth === 'none') return headers
  if (endpoint.auth === 'bearer') headers.authorization = `Bearer ${apiKey.reveal()}`
  else headers['x-api-key'] = apiKey.reveal()
  return headers
}

function networkTransport(baseUrl: string): Transport {
  return (request: UpstreamRequest) =>
    fetch(baseUrl + request.path, {
      method: 'POST',
      headers: request.headers,
      body: request.body,
      signal: request.signal,
      redirect: 'manual',
      decompress: false,
      // The runtime's own five-minute limit would cut long answers; the clocks are the gateway's.
      timeout: false,
      ...(request.isFresh && { keepalive: false }),
    })
}

const unreachableCodes = new Set([
  'ConnectionRefused',
  'FailedToOpenSocket',
  'ENOTFOUND',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'DNSResolutionFailed',
  'EGRESS_REFUSED',
])

/** Whether nothing was sent: no address, no connection, no handshake. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error) ?? ''
  return unreachableCodes.has(code) || /CERT|TLS|SSL/i.test(code)
}

/** Whether the connection failed; the runtime gives every such error a code, and our own mistakes have none. */
export function isBroken(error: unknown): boolean {
  return codeOf(error) !== undefined || (error instanceof DOMException && error.name === 'AbortError')
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
