// The one place that calls a provider: puts the call into the host's form, adds the credential, and sends it on pooled
// connections, or by fetch behind an HTTP proxy. No redirects, no decompression, no retries, no timeouts: the caller aborts.
// Knows hosts by their capabilities, not by name.

import type { Secret } from '../kernel/secret.ts'
import { createTarget, type Send, sendBySocket, type Target } from './connection-pool.ts'
import { headersWith } from './credentials.ts'
import type {
  CancelSignal,
  ConnectionWatch,
  Endpoint,
  Provider,
  Sign,
  UpstreamRequest,
  UpstreamResponse,
} from './provider.ts'
import { wrappings } from './wrapping/wrappings.ts'

export interface EndpointCall {
  readonly path: string
  /** Headers of the dialect, such as its version. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  readonly signal: CancelSignal
  readonly isFresh?: boolean
  readonly watch?: ConnectionWatch
  /** The call is already in the host's form. */
  readonly isWrapped?: boolean
}

/** Rejects if there is no response; isUnreachable and isBadCredential distinguish the reasons. */
export function callEndpoint(provider: Provider, endpoint: Endpoint, call: EndpointCall): Promise<UpstreamResponse> {
  const wrapping = endpoint.wrapping && wrappings[endpoint.wrapping]
  const wrapped = wrapping && !call.isWrapped ? wrapping.wrap(call, endpoint) : call
  if (!wrapped) return Promise.resolve(new Response('{"message":"the host has no such call"}', { status: 404 }))
  const { apiKey } = provider
  const { sign } = endpoint
  const { path, body } = wrapped
  const { signal, isFresh, watch } = call
  const headers = headersWith(apiKey, endpoint, wrapped.headers)
  const request = { path, headers, body, signal, credential: apiKey, isFresh, watch }
  const sent =
    sign && apiKey
      ? transmitSigned(provider, endpoint, request, { sign, apiKey })
      : transmit(provider, endpoint, request)
  return wrapping ? sent.then((response) => wrapping.unwrap(response)) : sent
}

async function transmitSigned(
  provider: Provider,
  endpoint: Endpoint,
  request: UpstreamRequest,
  { sign, apiKey }: { readonly sign: Sign; readonly apiKey: Secret },
): Promise<UpstreamResponse> {
  const { path, headers, body, signal } = request
  // A token exchange is shared with other calls, so it continues when this one is aborted.
  const proof = await unlessAborted(sign({ url: endpoint.baseUrl + path, headers, body }, apiKey), signal)
  const response = await transmit(provider, endpoint, { ...request, headers: { ...headers, ...proof } })
  if (response.status === 401) sign.refused?.(apiKey, proof)
  return response
}

function transmit(
  { transport }: Provider,
  { baseUrl, byFetch }: Endpoint,
  request: UpstreamRequest,
): Promise<UpstreamResponse> {
  if (transport) return transport(request)
  const base = baseOf(baseUrl)
  if (request.path !== base.lastPath) {
    base.lastPath = request.path
    base.lastWhole = base.path + escaped(request.path)
  }
  const send = byFetch ? sendByFetch : sendBySocket
  return send(base.target, { ...request, path: base.lastWhole })
}

/** A parsed base URL, and the last path that was appended to it. */
interface Base {
  readonly target: Target
  readonly path: string
  lastPath: string
  lastWhole: string
}

const bases = new Map<string, Base>()
/** Workspaces can have base URLs that their credentials name. */
const basesMax = 1000

function baseOf(baseUrl: string): Base {
  const known = bases.get(baseUrl)
  if (known) return known
  if (bases.size >= basesMax) bases.clear()
  const { protocol, hostname, port, host, pathname } = new URL(baseUrl)
  const isTls = protocol === 'https:'
  const target = createTarget({
    isTls,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (isTls ? 443 : 80)),
    host,
  })
  const path = pathname.replace(/\/+$/, '')
  const base = { target, path, lastPath: '', lastWhole: path }
  bases.set(baseUrl, base)
  return base
}

/** The names of models are part of some paths. */
function escaped(path: string): string {
  if (/^[\w.~!$&'()*+,;=:@%/?-]*$/.test(path)) return path
  const { pathname, search } = new URL(path, 'http://host')
  return pathname + search
}

/**
 * For installations behind an HTTP proxy, which fetch finds in the environment, and for commands: an aborted fetch gives
 * up its connection attempt. The connection cannot be watched.
 */
export const sendByFetch: Send = ({ isTls, hostname, port, host, serverName, ca }, request) => {
  const { path, headers, body, signal, isFresh } = request
  const address = hostname.includes(':') ? `[${hostname}]` : hostname
  // A second Host header in other letters would be joined to ours.
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'host')
  return fetch(`${isTls ? 'https' : 'http'}://${address}:${port}${path}`, {
    method: 'POST',
    headers: { ...Object.fromEntries(others), host },
    body,
    signal: abortSignalOf(signal),
    redirect: 'manual',
    decompress: false,
    // The runtime's five-minute limit would cut long answers; the gateway has its own timeouts.
    timeout: false,
    ...(isFresh && { keepalive: false }),
    tls: { ...(serverName && { serverName }), ...(ca && { ca }) },
  })
}

/** For fetch, which takes no other signal. */
export function abortSignalOf(signal: CancelSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal
  const controller = new AbortController()
  const abort = () => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort)
  return controller.signal
}

/** Rejects with the signal's reason as soon as it aborts, whether or not the work is done. */
export async function unlessAborted<T>(work: Promise<T>, signal: CancelSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

// ── Errors ──

const unreachableCodes = new Set([
  'ConnectionRefused',
  'FailedToOpenSocket',
  'ENOTFOUND',
  'ECONNREFUSED',
  // A TLS handshake that failed, in the runtime's words.
  'EPROTO',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'DNSResolutionFailed',
  'EGRESS_REFUSED',
  'NO_TOKEN_ISSUER',
])

/** Whether nothing was sent: no address, no connection, no handshake. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error) ?? ''
  return unreachableCodes.has(code) || /CERT|TLS|SSL/i.test(code)
}

/** Whether nothing was sent because the credential is invalid, which says nothing about other credentials. */
export function isBadCredential(error: unknown): boolean {
  return codeOf(error) === 'NO_ACCESS_TOKEN'
}

/** Whether the connection failed: the runtime gives every such error a code, and our own bugs have none. */
export function isBroken(error: unknown): boolean {
  return codeOf(error) !== undefined || (error instanceof DOMException && error.name === 'AbortError')
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
