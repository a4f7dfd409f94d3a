// The one place that dials a provider. It adds the credential, never follows a redirect, never lets the runtime
// decompress, and turns every way a connection can fail into a result.

import type { Secret } from '../kernel/secret.ts'
import type { Endpoint, Provider, Transport, UpstreamRequest } from './provider.ts'

/** The call never became a response. */
export class TransportFault {
  constructor(
    readonly kind: 'unreachable' | 'broken' | 'aborted',
    /** The runtime's own code, for the record: `ConnectionRefused`, `ECONNRESET`. Never shown to callers. */
    readonly detail: string,
  ) {}
}

export interface EndpointCall {
  readonly path: string
  readonly dialectHeaders: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  readonly signal: AbortSignal
}

export async function callEndpoint(
  provider: Provider,
  endpoint: Endpoint,
  call: EndpointCall,
): Promise<Response | TransportFault> {
  const headers = requestHeaders(call.dialectHeaders, endpoint, provider.apiKey)
  const transport = provider.transport ?? networkTransport(endpoint.baseUrl)
  try {
    return await transport({ path: call.path, headers, body: call.body, signal: call.signal })
  } catch (error) {
    return call.signal.aborted ? new TransportFault('aborted', 'aborted') : transportFault(error)
  }
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
])

function transportFault(error: unknown): TransportFault {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
  const unreachable = unreachableCodes.has(code) || /CERT|TLS|SSL/i.test(code)
  return new TransportFault(unreachable ? 'unreachable' : 'broken', code)
}
