// The one place that calls a provider. Adds the credential or has the request signed, and sends it on pooled sockets, or by
// fetch behind an HTTP proxy. No redirects, no decompression, no retries, no timeouts: the caller aborts. Knows hosts by
// their capabilities, not by name.

import type { Socket, SocketHandler, TLSOptions } from 'bun'
import type { Secret } from '../kernel/secret.ts'
import { type HeaderReader, type ResponseHead, ResponseReader } from '../wire/http-message.ts'
import { ReceivedBody } from '../wire/received-body.ts'
import type {
  CancelSignal,
  ConnectionWatch,
  Endpoint,
  Provider,
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
  const { sign, baseUrl } = endpoint
  const headers = knownHeaders(wrapped.headers, endpoint, apiKey)
  const sent =
    sign && apiKey
      ? // A token exchange is shared with other calls, so it continues when this one is aborted.
        unlessAborted(sign({ url: baseUrl + wrapped.path, headers, body: wrapped.body }, apiKey), call.signal).then(
          async (proof) => {
            const response = await transmit(provider, endpoint, { ...headers, ...proof }, wrapped, call)
            if (response.status === 401) sign.refused?.(apiKey, proof)
            return response
          },
        )
      : transmit(provider, endpoint, headers, wrapped, call)
  return wrapping ? sent.then((response) => wrapping.unwrap(response)) : sent
}

interface KnownHeaders {
  readonly dialectHeaders: Readonly<Record<string, string>>
  readonly apiKey: Secret | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** The last headers of each endpoint: most calls to it have the same, and sharing the record saves checking them again. */
const lastHeaders = new WeakMap<Endpoint, KnownHeaders>()

function knownHeaders(
  dialectHeaders: Readonly<Record<string, string>>,
  endpoint: Endpoint,
  apiKey: Secret | undefined,
) {
  const last = lastHeaders.get(endpoint)
  if (last?.dialectHeaders === dialectHeaders && last.apiKey === apiKey) return last.headers
  const headers = requestHeaders(dialectHeaders, endpoint, apiKey)
  lastHeaders.set(endpoint, { dialectHeaders, apiKey, headers })
  return headers
}

function requestHeaders(
  dialectHeaders: Readonly<Record<string, string>>,
  { auth }: Endpoint,
  apiKey: Secret | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {
    ...dialectHeaders,
    'content-type': 'application/json',
    // A compressed answer would have to be decompressed, and a small one can expand to gigabytes.
    'accept-encoding': 'identity',
    'user-agent': 'tollgate',
  }
  if (apiKey === undefined) return headers
  if (auth === 'bearer') headers.authorization = `Bearer ${apiKey.reveal()}`
  // These schemes are named after their header.
  else if (auth === 'x-api-key' || auth === 'x-goog-api-key' || auth === 'api-key') headers[auth] = apiKey.reveal()
  return headers
}

/** A base URL: where it is, the path that others are appended to, and the last of them. */
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
  const url = new URL(baseUrl)
  const path = url.pathname.replace(/\/+$/, '')
  const base = { target: targetOf(url), path, lastPath: '', lastWhole: path }
  bases.set(baseUrl, base)
  return base
}

function transmit(
  { transport }: Provider,
  { baseUrl, byFetch }: Endpoint,
  headers: UpstreamRequest['headers'],
  { path, body }: Pick<UpstreamRequest, 'path' | 'body'>,
  { signal, isFresh, watch }: EndpointCall,
) {
  if (transport) return transport({ path, headers, body, signal, isFresh, watch })
  const base = baseOf(baseUrl)
  if (path !== base.lastPath) {
    base.lastPath = path
    base.lastWhole = base.path + escaped(path)
  }
  const send = byFetch ? sendByFetch : sendBySocket
  return send(base.target, { path: base.lastWhole, headers, body, signal, isFresh, watch })
}

function targetOf({ protocol, hostname, port, host }: URL): Target {
  const isTls = protocol === 'https:'
  const dialled = hostname.replace(/^\[|\]$/g, '')
  return createTarget({ isTls, hostname: dialled, port: Number(port || (isTls ? 443 : 80)), host })
}

/** The names of models are part of some paths. */
function escaped(path: string): string {
  if (/^[\w.~!$&'()*+,;=:@%/?-]*$/.test(path)) return path
  const { pathname, search } = new URL(path, 'http://host')
  return pathname + search
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

// ── Where a request is sent ──

/** Where to connect and which names to use there. */
export interface Target extends Address {
  /** Differs for all that must not share a connection, such as two hosts at one address. */
  readonly key: string
}

export interface Address {
  readonly isTls: boolean
  /** The name or address to dial. */
  readonly hostname: string
  readonly port: number
  /** The Host header. */
  readonly host: string
  /** The name that the certificate must be for; undefined = `hostname`. */
  readonly serverName?: string | undefined
  /** PEM of the authorities to trust; absent = the runtime's. */
  readonly ca?: string | undefined
}

export function createTarget(address: Address): Target {
  const { isTls, hostname, port, host, serverName, ca } = address
  return { ...address, key: JSON.stringify([isTls, hostname, port, host, serverName, ca]) }
}

/** Sends a request to a target; `path` is the whole request target. Rejects with a coded error, or the signal's reason. */
export type Send = (target: Target, request: UpstreamRequest) => Promise<UpstreamResponse>

// ── By fetch ──

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

// ── By sockets ──

// HTTP/1.1 on pooled sockets. It costs half the CPU of fetch, knows when it is connected, and dials exactly the address it is
// given (docs/decisions/0034). A request is written to one connection, once; if that breaks, the call fails.

export const sendBySocket: Send = (target, request) => {
  let origin = origins.get(target.key)
  if (!origin) {
    origin = new Origin(target, () => origins.delete(target.key))
    origins.set(target.key, origin)
  }
  return origin.send(request)
}

const origins = new Map<string, Origin>()

// ── Requests on sockets ──

/** Up to this size a body is copied after its head, which costs less than a second write. */
const joinedBytesMax = 64 * 1024
/** Set here, from the target and the body. */
const framingHeaders = new Set(['host', 'content-length', 'transfer-encoding', 'connection'])
const targetPattern = /^\/[\x21-\x7e]*$/
const namePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/

interface KnownHead {
  readonly path: string
  readonly host: string
  readonly bytes: Buffer
}

/** The last head with these headers: calls of one kind share the record. */
const knownHeads = new WeakMap<UpstreamRequest['headers'], KnownHead>()

/** The head up to the length of the body. Throws a TypeError for anything that could be read as another header or request. */
function headOf(host: string, { path, headers }: UpstreamRequest): Buffer {
  const known = knownHeads.get(headers)
  if (known?.path === path && known.host === host) return known.bytes
  if (!targetPattern.test(path))
    throw new TypeError('the path of an upstream call has a character that URLs cannot have')
  const text = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\n${linesOf(headers)}content-length: `
  const bytes = Buffer.from(text, 'latin1')
  knownHeads.set(headers, { path, host, bytes })
  return bytes
}

function linesOf(headers: UpstreamRequest['headers']): string {
  let lines = ''
  for (const name in headers) {
    const value = headers[name] as string
    if (!namePattern.test(name) || !valuePattern.test(value)) {
      throw new TypeError(
        `the header ${JSON.stringify(name)} of an upstream call has a character that headers cannot have`,
      )
    }
    if (!framingHeaders.has(name.toLowerCase())) lines += `${name}: ${value}\r\n`
  }
  return lines
}

function requestParts(host: string, request: UpstreamRequest): Uint8Array[] {
  const head = headOf(host, request)
  const { body } = request
  const length = `${body.length}\r\n\r\n`
  const isJoined = body.length <= joinedBytesMax
  const headBytes = head.length + length.length
  const first = Buffer.allocUnsafe(headBytes + (isJoined ? body.length : 0))
  first.set(head)
  first.write(length, head.length, 'latin1')
  if (isJoined) first.set(body, headBytes)
  return isJoined ? [first] : [first, body]
}

// ── Responses on sockets ──

/** Nothing left to send; nothing is put in. */
const noParts: Uint8Array[] = []

/** One request and its response, whose body is read piece by piece. */
class Exchange extends ReceivedBody implements UpstreamResponse {
  status = 0
  headers!: HeaderReader
  connection: Connection | undefined
  readonly opened = Promise.withResolvers<UpstreamResponse>()
  #hasHead = false

  /** Both only until it is connected: an open stream must not keep its request in memory. */
  #request: Uint8Array[]
  #watch: ConnectionWatch | undefined
  readonly #signal: CancelSignal
  readonly #origin: Origin

  constructor(request: UpstreamRequest, origin: Origin) {
    super()
    this.#request = requestParts(origin.target.host, request)
    this.#signal = request.signal
    this.#watch = request.watch
    this.#origin = origin
    this.#signal.addEventListener('abort', this)
  }

  /** It is connected, and what is returned is written to it. */
  takeRequest(): Uint8Array[] {
    const request = this.#request
    this.#request = noParts
    this.#watch?.connected()
    this.#watch = undefined
    return request
  }

  /** The signal has aborted. */
  handleEvent(): void {
    const { connection } = this
    this.dropUnread()
    this.#request = []
    this.fail(this.#signal.reason)
    if (connection) connection.close()
    else this.#origin.forget(this)
  }

  get body(): this {
    return this
  }

  protected override get source(): Connection | undefined {
    return this.connection
  }

  override async cancel(): Promise<void> {
    const { connection } = this
    this.dropUnread()
    this.complete()
    connection?.close()
  }

  // From the connection.

  receive(head: ResponseHead, piece: Uint8Array): void {
    if (!this.#hasHead) {
      this.#hasHead = true
      this.status = head.status
      this.headers = head
      this.opened.resolve(this)
    }
    this.receivePiece(piece)
  }

  complete(): void {
    this.connection = undefined
    this.completeBody()
  }

  fail(error: unknown): void {
    this.connection = undefined
    if (!this.#hasHead) this.opened.reject(error)
    this.failBody(error)
  }
}

// ── Connections ──

/** Shorter than the idle limits of common servers and proxies that close without a sound. */
const idleSeconds = 56
const idleMax = 256
const tcpKeepAliveMs = 30_000

class Connection {
  socket: Socket<Connection> | undefined
  #exchange: Exchange | undefined
  #reader = new ResponseReader()
  #unsent: Uint8Array[] = []
  #isPaused = false

  constructor(readonly origin: Origin) {}

  get isBusy(): boolean {
    return this.#exchange !== undefined
  }

  start(exchange: Exchange): void {
    this.#exchange = exchange
    exchange.connection = this
    this.#reader = new ResponseReader()
    this.socket?.ref()
    this.#unsent = exchange.takeRequest()
    this.write()
  }

  /** Writes what the socket takes; it asks for the rest. */
  write(): void {
    for (let next = this.#unsent[0]; next; next = this.#unsent[0]) {
      const written = this.socket?.write(next) ?? -1
      // Closed; that is reported on its own.
      if (written < 0) return
      if (written < next.length) {
        this.#unsent[0] = next.subarray(written)
        return
      }
      this.#unsent.shift()
    }
  }

  received(bytes: Uint8Array): void {
    const exchange = this.#exchange
    // Bytes that answer no request.
    if (!exchange) return this.close()
    const reader = this.#reader
    let piece: Uint8Array
    try {
      piece = reader.read(bytes)
    } catch (fault) {
      return this.#fail(fault)
    }
    if (!reader.head) return
    exchange.receive(reader.head, piece)
    if (!reader.isComplete) return
    this.#exchange = undefined
    exchange.complete()
    // A response that came before the request was sent leaves the rest of the request on the wire.
    if (reader.isReusable && this.#unsent.length === 0) this.rest()
    else this.close()
  }

  /** The other side has closed the connection; `error`: it was reset. */
  ended(error?: unknown): void {
    const exchange = this.#exchange
    if (exchange && this.#reader.head && !error) {
      try {
        this.#reader.end()
        this.#exchange = undefined
        exchange.complete()
      } catch (fault) {
        return this.#fail(fault)
      }
    }
    this.#fail(coded('ECONNRESET', 'the provider closed the connection'))
  }

  pause(): void {
    if (!this.#isPaused) this.socket?.pause()
    this.#isPaused = true
  }

  resume(): void {
    if (this.#isPaused) this.socket?.resume()
    this.#isPaused = false
  }

  close(): void {
    const { socket } = this
    if (!socket) return
    this.socket = undefined
    this.#exchange = undefined
    this.origin.closed(this)
    socket.terminate()
  }

  #fail(error: unknown): void {
    const exchange = this.#exchange
    this.close()
    exchange?.fail(error)
  }

  /** Waits for the next request, without keeping the process alive. */
  rest(): void {
    this.resume()
    this.socket?.unref()
    this.socket?.timeout(idleSeconds)
    this.origin.keep(this)
  }
}

const handlers: SocketHandler<Connection> = {
  binaryType: 'uint8array',
  open: (socket) => socket.data.origin.connected(socket.data, socket),
  data: (socket, bytes) => socket.data.received(bytes),
  drain: (socket) => socket.data.write(),
  end: (socket) => socket.data.ended(),
  error: (socket, error) => socket.data.ended(error),
  close: (socket, error) => socket.data.ended(error),
  timeout(socket) {
    if (!socket.data.isBusy) socket.data.close()
  },
}

/** With TLS a connection is ready after the handshake, which has verified the certificate and its name. */
const tlsHandlers: SocketHandler<Connection> = {
  ...handlers,
  open() {},
  handshake(socket, isAuthorized, error) {
    const { data: connection } = socket
    if (isAuthorized) return connection.origin.connected(connection, socket)
    connection.origin.failed(error ?? coded('EPROTO', 'the TLS handshake failed'), connection)
    socket.terminate()
  },
  close(socket, error) {
    // Without effect on a connection that was ready or has failed.
    socket.data.origin.failed(coded('EPROTO', 'the connection was closed during the TLS handshake'), socket.data)
    socket.data.ended(error)
  },
}

/** Length and name. */
const alpnProtocols = '\x08http/1.1'

/** Connection attempts cannot be cancelled; at most this many may continue after their requests were aborted. */
const leftDialsMax = 64

/** The connections to one target. */
class Origin {
  readonly #idle: Connection[] = []
  readonly #dialling = new Set<Connection>()
  /** Requests without a connection, in order; there are at least as many dials. */
  readonly #waiting: Exchange[] = []
  #open = 0

  constructor(
    readonly target: Target,
    private readonly onEmpty: () => void,
  ) {}

  send(request: UpstreamRequest): Promise<UpstreamResponse> {
    if (request.signal.aborted) return Promise.reject(request.signal.reason)
    const exchange = new Exchange(request, this)
    // The last one used is the least likely to have been closed meanwhile.
    const connection = request.isFresh ? undefined : this.#idle.pop()
    if (connection) connection.start(exchange)
    else {
      request.watch?.connecting()
      this.#waiting.push(exchange)
      // A host that accepts nothing costs a bounded number of dials: beyond it, requests wait for those that were left.
      if (this.#dialling.size < this.#waiting.length + leftDialsMax) this.#dial()
    }
    return exchange.opened.promise
  }

  /** The request was aborted. */
  forget(exchange: Exchange): void {
    const at = this.#waiting.indexOf(exchange)
    if (at >= 0) this.#waiting.splice(at, 1)
  }

  connected(connection: Connection, socket: Socket<Connection>): void {
    this.#dialling.delete(connection)
    this.#open++
    connection.socket = socket
    socket.setNoDelay(true)
    socket.setKeepAlive(true, tcpKeepAliveMs)
    const exchange = this.#waiting.shift()
    if (exchange) connection.start(exchange)
    else connection.rest()
  }

  failed(error: unknown, connection: Connection): void {
    if (!this.#dialling.delete(connection)) return
    // Otherwise it was the dial of an aborted request.
    if (this.#dialling.size < this.#waiting.length) this.#waiting.shift()?.fail(error)
    this.#forgetIfEmpty()
  }

  keep(connection: Connection): void {
    if (this.#idle.length < idleMax) this.#idle.push(connection)
    else connection.close()
  }

  closed(connection: Connection): void {
    this.#open--
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    this.#forgetIfEmpty()
  }

  #dial(): void {
    const connection = new Connection(this)
    this.#dialling.add(connection)
    const { hostname, port, isTls, serverName, ca } = this.target
    const tls: TLSOptions = { ALPNProtocols: alpnProtocols, ...(serverName && { serverName }), ...(ca && { ca }) }
    Bun.connect<Connection>({
      ...{ hostname, port, data: connection },
      socket: isTls ? tlsHandlers : handlers,
      ...(isTls && { tls }),
    }).catch((error: unknown) => this.failed(error, connection))
  }

  #forgetIfEmpty(): void {
    if (this.#open === 0 && this.#dialling.size === 0) this.onEmpty()
  }
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
