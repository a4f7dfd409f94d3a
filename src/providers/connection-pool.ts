// Connections to providers: dials them, sends one request at a time on each, and keeps them for the next request. HTTP/1.1
// on Bun's sockets, which cost half the CPU of fetch, report when they are connected, and dial exactly the given address
// (docs/decisions/0034). A request is written to one connection, once: if that breaks, the call fails. No retries, no
// timeouts for answers: the caller aborts.

import type { Socket, SocketHandler, TLSOptions } from 'bun'
import { systemClock } from '../kernel/clock.ts'
import { connectionsMax } from '../kernel/open-files.ts'
import { utf8Text } from '../wire/bytes.ts'
import { type HeaderReader, type ResponseHead, ResponseReader } from '../wire/http-message.ts'
import { type BodySource, ReceivedBody } from '../wire/received-body.ts'
import type { CancelSignal, ConnectionWatch, UpstreamRequest, UpstreamResponse } from './provider.ts'

// ── Where a request is sent ──

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

export interface Target extends Address {
  /** Two hosts at one address have different keys. Requests share connections only if their keys are equal. */
  readonly key: string
}

export function createTarget(address: Address): Target {
  const { isTls, hostname, port, host, serverName, ca } = address
  return { ...address, key: JSON.stringify([isTls, hostname, port, host, serverName, ca]) }
}

/** Sends a request to a target; `path` is the whole request target. Rejects with a coded error, or the signal's reason. */
export type Send = (target: Target, request: UpstreamRequest) => Promise<UpstreamResponse>

const hosts = new Map<string, Host>()

export const sendBySocket: Send = (target, request) => {
  let host = hosts.get(target.key)
  if (!host) {
    host = new Host(target, () => hosts.delete(target.key))
    hosts.set(target.key, host)
  }
  return host.send(request)
}

// ── Hosts ──

// A stray response, which nobody asked for, would go to whoever sends the next request on its connection. Requests with
// different credentials therefore never share a connection; a connection rests before it is used again, so that a response
// that follows another at once is noticed, and longer at a host that is not known yet, for one that comes later; and a host
// that has sent one gets no second request on any connection (docs/security.md).

/** A host that has sent stray bytes gets one request per connection for so long. */
export const distrustMs = 60 * 60 * 1000

const strays = new Map<string, number>()

/** By host: how often it sent bytes that answer no request, since the process began. */
export const strayCounts: ReadonlyMap<string, number> = strays

/** The connections to one target, apart for each credential. */
class Host {
  readonly #pools = new Map<string, Pool>()
  #distrustedUntilMs = Number.NEGATIVE_INFINITY
  /** How many connections have rested without a stray byte. */
  #rests = 0

  constructor(
    readonly target: Target,
    private readonly onEmpty: () => void,
  ) {}

  send(request: UpstreamRequest): Promise<UpstreamResponse> {
    const credential = request.credential?.reveal() ?? ''
    let pool = this.#pools.get(credential)
    if (!pool) {
      pool = new Pool(this, () => this.#forget(credential))
      this.#pools.set(credential, pool)
    }
    return pool.send(request)
  }

  get mayReuse(): boolean {
    return systemClock.monotonicMs() >= this.#distrustedUntilMs
  }

  get restMs(): number {
    return this.#rests < firstRests ? firstRestMs : restMs
  }

  rested(connections: number): void {
    this.#rests += connections
  }

  receivedStray(): void {
    this.#rests = 0
    this.#distrustedUntilMs = systemClock.monotonicMs() + distrustMs
    for (const pool of this.#pools.values()) pool.closeIdle()
    const { host } = this.target
    strays.set(host, (strays.get(host) ?? 0) + 1)
  }

  /** A host that is not trusted is remembered. */
  #forget(credential: string): void {
    this.#pools.delete(credential)
    if (this.#pools.size === 0 && this.mayReuse) this.onEmpty()
  }
}

// ── Pools ──

const idleMax = 256
/** Connection attempts cannot be cancelled; at most this many may continue after their requests were aborted. */
const leftDialsMax = 64
/** A connection rests for one to two of these. */
const restMs = 10
/** The same until so many connections to the host have rested. */
export const firstRestMs = 200
const firstRests = 20

/** Of all pools together, attempts included. Beyond that, each new one closes one that waits for a request. */
const openMax = connectionsMax()
let openCount = 0
/** Those that wait for a request, the one that waits longest first. */
const unused = new Set<Connection>()

function closeLongestUnused(): void {
  const [longest] = unused
  longest?.close()
}

/** The connections to one host with one credential: idle ones, attempts, and the requests that wait for one. */
class Pool {
  readonly #idle: Connection[] = []
  // A connection that was used is in `#tired` until the timer ends, then in `#resting` for a whole interval, then idle: so the
  // event loop has looked at its socket before it is used again, however busy it was.
  #tired = new Set<Connection>()
  #resting = new Set<Connection>()
  #restTimer: NodeJS.Timeout | undefined
  readonly #dials = new Set<Dial>()
  /** In order of arrival. There are at least as many dials. */
  readonly #waiting: Call[] = []
  /** Idle or busy. */
  #openCount = 0

  constructor(
    private readonly host: Host,
    private readonly onEmpty: () => void,
  ) {}

  get target(): Target {
    return this.host.target
  }

  send(request: UpstreamRequest): Promise<UpstreamResponse> {
    if (request.signal.aborted) return Promise.reject(request.signal.reason)
    const call = new Call(request, this)
    // The most recently used connection is the least likely to have been closed meanwhile.
    const connection = request.isFresh ? undefined : this.#idle.pop()
    if (connection) connection.send(call)
    else {
      request.watch?.connecting()
      this.#waiting.push(call)
      // Dials of requests that were aborted. A host that accepts nothing costs a bounded number: then a request takes one of them.
      const leftDials = this.#dials.size - this.#waiting.length
      if (leftDials < leftDialsMax) this.#dial()
    }
    return call.response
  }

  /** A connection whose request was answered rests, and is used again. */
  keep(connection: Connection): void {
    const isFull = this.#idle.length + this.#resting.size + this.#tired.size >= idleMax || openCount > openMax
    if (!this.host.mayReuse || isFull) return connection.close()
    connection.rest()
    this.#tired.add(connection)
    this.#restTimer ??= setTimeout(this.#endRest, this.host.restMs).unref()
  }

  readonly #endRest = (): void => {
    const rested = this.#resting
    this.host.rested(rested.size)
    this.#resting = this.#tired
    this.#tired = new Set()
    this.#restTimer = this.#resting.size > 0 ? setTimeout(this.#endRest, this.host.restMs).unref() : undefined
    for (const connection of rested) {
      const call = this.#waiting.find(({ isFresh }) => !isFresh)
      if (call) remove(this.#waiting, call)
      this.#use(connection, call)
    }
  }

  #use(connection: Connection, call: Call | undefined): void {
    if (call) connection.send(call)
    else this.#idle.push(connection)
  }

  closeIdle(): void {
    for (const connection of [...this.#idle, ...this.#resting, ...this.#tired]) connection.close()
  }

  receivedStray(): void {
    this.host.receivedStray()
  }

  /** The waiting request was aborted. */
  forget(call: Call): void {
    remove(this.#waiting, call)
  }

  #dial(): void {
    const dial: Dial = { pool: this, connection: undefined }
    this.#dials.add(dial)
    if (++openCount > openMax) closeLongestUnused()
    const { hostname, port, isTls, serverName, ca } = this.target
    const tls: TLSOptions = { ALPNProtocols: alpnProtocols, ...(serverName && { serverName }), ...(ca && { ca }) }
    Bun.connect<Dial>({
      ...{ hostname, port, data: dial },
      socket: isTls ? tlsHandlers : handlers,
      ...(isTls && { tls }),
    }).catch((error: unknown) => this.dialFailed(dial, error))
  }

  connected(dial: Dial, socket: Socket<Dial>): void {
    this.#dials.delete(dial)
    this.#openCount++
    const connection = new Connection(socket, this)
    dial.connection = connection
    if (this.#waiting.length === 0) connection.rest()
    this.#use(connection, this.#waiting.shift())
  }

  /** Has no effect on a dial that has succeeded or failed before. */
  dialFailed(dial: Dial, error: unknown): void {
    if (!this.#dials.delete(dial)) return
    openCount--
    // If enough dials are left for those who wait, it was the dial of an aborted request.
    if (this.#dials.size < this.#waiting.length) this.#waiting.shift()?.fail(error)
    this.#endIfEmpty()
  }

  closed(connection: Connection): void {
    openCount--
    unused.delete(connection)
    this.#openCount--
    if (!this.#resting.delete(connection) && !this.#tired.delete(connection)) remove(this.#idle, connection)
    this.#endIfEmpty()
  }

  #endIfEmpty(): void {
    if (this.#openCount === 0 && this.#dials.size === 0) this.onEmpty()
  }
}

function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item)
  if (at >= 0) list.splice(at, 1)
}

// ── Sockets ──

/** A connection attempt: what the runtime hands to the handlers of its socket. */
interface Dial {
  readonly pool: Pool
  /** undefined until it is connected. */
  connection: Connection | undefined
}

const handlers: SocketHandler<Dial> = {
  binaryType: 'uint8array',
  open: (socket) => socket.data.pool.connected(socket.data, socket),
  data: (socket, bytes) => socket.data.connection?.received(bytes),
  drain: (socket) => socket.data.connection?.write(),
  end: (socket) => socket.data.connection?.ended(),
  error: (socket, error) => socket.data.connection?.ended(error),
  close: (socket, error) => socket.data.connection?.ended(error),
  timeout: (socket) => socket.data.connection?.closeIfIdle(),
}

/** With TLS a connection is ready after the handshake, which has verified the certificate and its name. */
const tlsHandlers: SocketHandler<Dial> = {
  ...handlers,
  open() {},
  handshake(socket, isAuthorized, error) {
    const { data: dial } = socket
    if (isAuthorized) return dial.pool.connected(dial, socket)
    dial.pool.dialFailed(dial, error ?? coded('EPROTO', 'the TLS handshake failed'))
    socket.terminate()
  },
  close({ data: dial }, error) {
    dial.pool.dialFailed(dial, coded('EPROTO', 'the connection was closed during the TLS handshake'))
    dial.connection?.ended(error)
  },
}

/** Length and name. */
const alpnProtocols = '\x08http/1.1'

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

// ── Connections ──

/** Shorter than the idle timeouts of common servers, and of proxies that drop connections without closing them. */
const idleSeconds = 56
const tcpKeepAliveMs = 30_000

/**
 * An open connection. It is idle, or busy with one call, until it is closed:
 *
 *   idle → busy     a call is sent
 *   busy → idle     its response is complete, and the connection can be reused
 *   any → closed    either side closes it, the call is aborted, or the response is malformed
 */
class Connection implements BodySource {
  #state: 'idle' | Call | 'closed' = 'idle'
  #isPaused = false
  readonly #socket: Socket<Dial>
  readonly #pool: Pool

  constructor(socket: Socket<Dial>, pool: Pool) {
    this.#socket = socket
    this.#pool = pool
    socket.setNoDelay(true)
    socket.setKeepAlive(true, tcpKeepAliveMs)
  }

  send(call: Call): void {
    this.#state = call
    unused.delete(this)
    this.#socket.ref()
    call.begin(this)
    this.write()
  }

  /** Continues when the socket has drained. */
  write(): void {
    if (this.#state instanceof Call) this.#state.writeTo(this.#socket)
  }

  received(bytes: Uint8Array): void {
    const call = this.#state
    if (call === 'closed') return
    if (call === 'idle') {
      if (!isTimeoutNotice(bytes)) this.#pool.receivedStray()
      return this.close()
    }
    try {
      call.receive(bytes)
    } catch (fault) {
      this.close()
      return call.fail(fault)
    }
    if (!call.isAnswered) return
    this.#state = 'idle'
    call.complete()
    if (call.wasExceeded) this.#pool.receivedStray()
    if (call.leavesReusable) this.#pool.keep(this)
    else this.close()
  }

  /** The provider has closed the connection; `error`: it was reset. */
  ended(error?: unknown): void {
    const call = this.#state
    this.close()
    if (call instanceof Call) call.connectionEnded(error)
  }

  /** Waits for the next call, without keeping the process alive. */
  rest(): void {
    unused.add(this)
    this.resume()
    this.#socket.unref()
    this.#socket.timeout(idleSeconds)
  }

  /** The idle timeout also fires while the next call is running. */
  closeIfIdle(): void {
    if (this.#state === 'idle') this.close()
  }

  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#pool.closed(this)
    this.#socket.terminate()
  }

  pause(): void {
    if (!this.#isPaused && this.#state !== 'closed') this.#socket.pause()
    this.#isPaused = true
  }

  resume(): void {
    if (this.#isPaused && this.#state !== 'closed') this.#socket.resume()
    this.#isPaused = false
  }
}

/** Servers may say by a 408 that they close an idle connection. It is nobody's answer. */
function isTimeoutNotice(bytes: Uint8Array): boolean {
  return /^HTTP\/1\.[01] 408 /.test(utf8Text(bytes, 0, Math.min(bytes.length, 16)))
}

// ── Calls ──

/** One request and its response: waits for a connection, uses it, and lets go of it when the response has ended. */
class Call {
  /** undefined while it waits, and after the response. */
  connection: Connection | undefined
  /** Only a new connection may serve it. */
  readonly isFresh: boolean
  readonly #opened = Promise.withResolvers<UpstreamResponse>()
  readonly #reader = new ResponseReader()
  readonly #signal: CancelSignal
  readonly #pool: Pool
  /** Emptied as it is written: an open stream must not keep its request in memory. */
  #unsent: Uint8Array[]
  #watch: ConnectionWatch | undefined
  #received: SocketResponse | undefined

  /** Throws a TypeError for a path or header that cannot be sent. */
  constructor(request: UpstreamRequest, pool: Pool) {
    this.#unsent = requestParts(pool.target.host, request)
    this.#signal = request.signal
    this.isFresh = request.isFresh ?? false
    this.#watch = request.watch
    this.#pool = pool
    this.#signal.addEventListener('abort', this)
  }

  /** Resolves when the head has arrived. */
  get response(): Promise<UpstreamResponse> {
    return this.#opened.promise
  }

  begin(connection: Connection): void {
    this.connection = connection
    this.#watch?.connected()
    this.#watch = undefined
  }

  /** Writes what the socket accepts. */
  writeTo(socket: Socket<Dial>): void {
    for (let next = this.#unsent[0]; next; next = this.#unsent[0]) {
      const written = socket.write(next)
      // Closed, which has its own event.
      if (written < 0) return
      if (written < next.length) {
        this.#unsent[0] = next.subarray(written)
        return
      }
      this.#unsent.shift()
    }
  }

  /** Throws an HttpFault if the response is malformed. */
  receive(bytes: Uint8Array): void {
    const piece = this.#reader.read(bytes)
    const { head } = this.#reader
    if (!head) return
    if (!this.#received) {
      this.#received = new SocketResponse(head, this)
      this.#opened.resolve(this.#received)
    }
    this.#received.receive(piece)
  }

  get isAnswered(): boolean {
    return this.#reader.isComplete
  }

  /** Whether its connection can be reused. If the response came early, the rest of the request was never sent. */
  get leavesReusable(): boolean {
    return this.#reader.isReusable && this.#unsent.length === 0
  }

  /** Whether bytes followed the response. */
  get wasExceeded(): boolean {
    return this.#reader.hasExcess
  }

  complete(): void {
    this.connection = undefined
    this.#received?.complete()
  }

  fail(error: unknown): void {
    this.connection = undefined
    this.#opened.reject(error)
    this.#received?.fail(error)
  }

  /** The end of the connection completes a response without a length, unless the connection was reset. */
  connectionEnded(error: unknown): void {
    if (error || !this.#received) return this.fail(coded('ECONNRESET', 'the provider closed the connection'))
    try {
      this.#reader.end()
    } catch (fault) {
      return this.fail(fault)
    }
    this.complete()
  }

  /** The rest of the response is not wanted. */
  cancel(): void {
    const { connection } = this
    this.complete()
    connection?.close()
  }

  /** The signal has aborted. */
  handleEvent(): void {
    const { connection } = this
    this.#unsent = []
    this.#received?.discard()
    this.fail(this.#signal.reason)
    if (connection) connection.close()
    else this.#pool.forget(this)
  }
}

/** A response whose head has arrived. Its body is read piece by piece. */
class SocketResponse extends ReceivedBody implements UpstreamResponse {
  readonly status: number
  readonly headers: HeaderReader
  readonly #call: Call

  constructor(head: ResponseHead, call: Call) {
    super()
    this.status = head.status
    this.headers = head
    this.#call = call
  }

  get body(): this {
    return this
  }

  protected override get source(): BodySource | undefined {
    return this.#call.connection
  }

  override async cancel(): Promise<void> {
    this.dropUnread()
    this.#call.cancel()
  }

  // From the call.

  receive(piece: Uint8Array): void {
    this.receivePiece(piece)
  }

  complete(): void {
    this.completeBody()
  }

  fail(error: unknown): void {
    this.failBody(error)
  }

  discard(): void {
    this.dropUnread()
  }
}

// ── The bytes of a request ──

/** Up to this size a body is copied after its head, which costs less than a second write. */
const joinedBytesMax = 64 * 1024

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

interface KnownHead {
  readonly path: string
  readonly host: string
  readonly bytes: Buffer
}

/** The last head by its record of headers, which similar calls share (credentials.ts). */
const knownHeads = new WeakMap<UpstreamRequest['headers'], KnownHead>()

const targetPattern = /^\/[\x21-\x7e]*$/

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

/** Set here, from the target and the body. */
const framingHeaders = new Set(['host', 'content-length', 'transfer-encoding', 'connection'])
const namePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/

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
