// The HTTP/1.1 server, on plain sockets: with that of the runtime a request costs an eighth more (docs/decisions/0083). A
// connection carries one request after another; one that is sent before the last was answered waits. A client that closes its
// connection, or only its sending side, has left.

import type { Socket, SocketHandler, TCPSocketListener } from 'bun'
import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import { type Answer, type AnswerHeaders, type AnswerSink, type AnswerStream, BrokenOff } from '../pipeline/answer.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import { Cancellation } from '../pipeline/deadline.ts'
import { carriageReturn, lineFeed } from '../wire/bytes.ts'
import { HttpFault, type RequestHead, RequestReader } from '../wire/http-message.ts'
import { ReceivedBody } from '../wire/received-body.ts'
import type { SocketControl } from './handler.ts'

export interface ServerOptions {
  readonly host: string
  readonly port: number
  readonly sharesPort: boolean
  readonly clock: Clock
  /** How long a connection may be silent within a request and before the first; between requests, twelve times as long. */
  readonly idleSeconds: number
  readonly connectionsMax: number
  serve(request: IncomingRequest, socket: SocketControl): Answer | Promise<Answer>
  /** The response to an unexpected error; its details go to the log, never to the caller. */
  onDefect(error: unknown): Answer
}

export class HttpServer {
  readonly #connections = new Set<ServerConnection>()
  /** Connections that were sent their last answer and whose clients have not closed them, the oldest first. */
  readonly lingering = new Set<ServerConnection>()
  readonly #listener: TCPSocketListener<ServerConnection>
  readonly #stopped = Promise.withResolvers<void>()
  #dateSecond = 0
  #dateLine = ''
  /** The number of requests being answered. */
  running = 0
  /** Every answer is the last one on its connection, so that clients connect elsewhere before this gateway stops. */
  isLeaving = false
  #isStopping = false

  /** Throws if the port cannot be used; the error has a code. */
  constructor(readonly options: ServerOptions) {
    const { host, port, sharesPort } = options
    const listen = {
      hostname: host,
      port,
      reusePort: sharesPort,
      exclusive: !sharesPort,
      socket: handlersOf(this),
    }
    this.#listener = Bun.listen<ServerConnection>(listen)
  }

  get port(): number {
    return this.#listener.port
  }

  dateLine(): string {
    const second = Math.floor(this.options.clock.now() / 1000)
    if (second !== this.#dateSecond) {
      this.#dateSecond = second
      this.#dateLine = `date: ${new Date(second * 1000).toUTCString()}\r\n`
    }
    return this.#dateLine
  }

  opened(connection: ServerConnection): void {
    this.#connections.add(connection)
  }

  /** Closes a connection without a request if there are too many; if all others are busy, that is the newest. */
  limitConnections(): void {
    if (this.#connections.size + this.lingering.size <= this.options.connectionsMax) return
    const [answered] = this.lingering
    if (answered) return answered.close()
    for (const connection of this.#connections) if (connection.isIdle) return connection.close()
  }

  closed(connection: ServerConnection): void {
    this.#connections.delete(connection)
    if (this.#isStopping && this.#connections.size === 0) this.#stopped.resolve()
  }

  /** Accepts no more connections, closes idle ones, and resolves when the others have ended with their answers. */
  stop(): Promise<void> {
    this.#isStopping = this.isLeaving = true
    this.#listener.stop()
    for (const connection of this.#connections) connection.endIfIdle()
    if (this.#connections.size === 0) this.#stopped.resolve()
    return this.#stopped.promise
  }

  /** Cuts off what is left. */
  terminate(): void {
    for (const connection of [...this.#connections]) connection.close()
  }
}

function handlersOf(server: HttpServer): SocketHandler<ServerConnection> {
  return {
    binaryType: 'uint8array',
    open(socket) {
      socket.data = new ServerConnection(server, socket)
      server.limitConnections()
    },
    data: (socket, bytes) => socket.data.received(bytes),
    drain: (socket) => socket.data.drained(),
    timeout: (socket) => socket.data.timedOut(),
    end: (socket) => socket.data.close(),
    error(socket, error) {
      // An error of the network has the code of the system; the others are thrown by the functions here.
      if (!('code' in error) || String(error.code).startsWith('ERR_')) server.options.onDefect(error)
      socket.data.close()
    },
    close: (socket) => socket.data.closed(),
  }
}

// ── Requests ──

/** A request as it was sent, without the `Request` of the runtime. */
export class IncomingRequest extends ReceivedBody implements ClientRequest {
  bodyUsed = false
  #signal: Cancellation | undefined
  #isGone = false
  #isWanted = true
  protected override source: ServerConnection | undefined

  constructor(
    readonly headers: RequestHead,
    readonly connection: ServerConnection,
    private readonly hasBody: boolean,
  ) {
    super()
    this.source = connection
  }

  get method(): string {
    return this.headers.method
  }

  /** The target of the request line. */
  get url(): string {
    return this.headers.target
  }

  get body(): this | null {
    return this.hasBody ? this : null
  }

  /** Aborts when the client leaves. */
  get signal(): Cancellation {
    if (!this.#signal) {
      this.#signal = new Cancellation()
      if (this.#isGone) this.#signal.abort()
    }
    return this.#signal
  }

  get isReceived(): boolean {
    return this.isComplete
  }

  override read(): ReturnType<ReceivedBody['read']> {
    this.bodyUsed = true
    if (!this.isComplete) this.connection.sendContinue()
    return super.read()
  }

  override takeWhole(): Uint8Array | undefined {
    const whole = super.takeWhole()
    if (whole) this.bodyUsed = true
    return whole
  }

  /** The rest is read from the socket and thrown away: a client that is still sending would not see an answer otherwise. */
  override async cancel(): Promise<void> {
    this.discard()
  }

  discard(): void {
    this.#isWanted = false
    this.dropUnread()
    this.source?.resume()
  }

  receive(piece: Uint8Array): void {
    if (this.#isWanted) this.receivePiece(piece)
  }

  complete(): void {
    this.source?.resume()
    this.source = undefined
    this.completeBody()
  }

  /** The rest of the body cannot be read. */
  fail(error: unknown): void {
    this.source = undefined
    if (!this.isComplete) this.failBody(error)
  }

  clientLeft(): void {
    this.#isGone = true
    this.fail(left)
    this.#signal?.abort()
  }
}

// ── Connections ──

const crlf = '\r\n'
const lastChunk = Buffer.from('0\r\n\r\n')
/** The length of a chunk with up to eight digits, and two ends of lines. */
const chunkFrameMax = 12
const continueLine = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')
const nothing = new Uint8Array(0)
const copyOf = Uint8Array.prototype.slice
/** Where an answer is put together; everything in it is sent or copied before the next one. An array for each costs a microsecond. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)
/** What a header may contain. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/
/** Bytes of requests that were sent before the last one was answered; above them the socket is not read. */
const earlyMax = 64 * 1024
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])
/** A path, or a URL as proxies are sent, whose host has only the characters that leave no doubt where it ends. */
const target = /^(\/|https?:\/\/[a-z0-9._:[\]-]+([/?]|$))/i
const left = new Error('the client has left')
/** How long a client that was sent its last answer may take to close its side. */
const lingerSeconds = 8
/**
 * How often the idle time may pass between two requests. Twelve minutes are longer than most proxies and clients keep a
 * connection (Google's load balancer: ten): a request that is sent while we close would be lost. Counted in parts, because
 * sockets of the runtime do not report a silence of more than four minutes.
 */
const silencesMax = 12

class ServerConnection implements SocketControl, AnswerSink {
  readonly #reader = new RequestReader()
  /** Received and not yet answered, or answered and not yet received to its end. */
  #request: IncomingRequest | undefined
  #isAnswered = false
  /** The answer that is being written. */
  #stream: AnswerStream | undefined
  #isChunked = false
  /** The head of a streamed answer, until its first bytes are sent. */
  #heldHead = ''
  /** What the client sent before its last request was answered. */
  #early: Uint8Array | undefined
  readonly #unsent: Uint8Array[] = []
  /** Resolves when everything was taken by the socket. */
  #taken: PromiseWithResolvers<void> | undefined
  #isPaused = false
  /** No more requests are taken from it. */
  #isLast = false
  /** What follows cannot be read. */
  #isBroken = false
  /** It has ended, or is about to: everything was sent. */
  #isClosed = false
  #expectsContinue = false
  /** How long it may be silent; 0 = for ever. */
  #idleSeconds: number
  /** How often the idle time has passed since the last request; before the first it may not. */
  #silences = silencesMax

  constructor(
    private readonly server: HttpServer,
    private readonly socket: Socket<ServerConnection>,
  ) {
    server.opened(this)
    socket.setNoDelay(true)
    this.#idleSeconds = server.options.idleSeconds
    this.#arm()
  }

  // For the handler.

  get pendingRequests(): number {
    return this.server.running
  }

  timeout(seconds: number): void {
    this.#idleSeconds = seconds
    if (!this.#isClosed) this.socket.timeout(seconds)
  }

  get address(): string | undefined {
    return this.#isClosed ? undefined : this.socket.remoteAddress
  }

  // For the body of a request.

  pause(): void {
    if (!this.#isPaused && !this.#isClosed) this.socket.pause()
    this.#isPaused = true
  }

  resume(): void {
    if (this.#isPaused && !this.#isClosed) this.socket.resume()
    this.#isPaused = false
  }

  /** The body is wanted; a client that asked first may send it. */
  sendContinue(): void {
    if (!this.#expectsContinue) return
    this.#expectsContinue = false
    this.#send(continueLine)
  }

  // From the socket.

  received(bytes: Uint8Array): void {
    // After the last answer, and after bytes that are not HTTP, everything is thrown away.
    if (this.#isClosed || this.#isBroken) return
    if (this.#early || !this.#isReading) return this.#keepEarly(bytes)
    this.#read(bytes)
  }

  /** The socket takes more. */
  drained(): void {
    if (this.#isClosed) return
    this.#arm()
    while (this.#unsent.length > 0) {
      const next = this.#unsent[0] as Uint8Array
      const written = this.socket.write(next)
      // Closed; that is reported on its own.
      if (written < 0) return
      if (written < next.length) {
        this.#unsent[0] = next.subarray(written)
        return
      }
      this.#unsent.shift()
    }
    this.#taken?.resolve()
    this.#taken = undefined
    if (this.#isLast && !this.#request) this.#closeWhenSent()
    else this.#readEarly()
  }

  closed(): void {
    if (this.#isClosed) return void this.server.lingering.delete(this)
    this.#isClosed = true
    const request = this.#request
    const stream = this.#stream
    if (this.#isAnswering) this.server.running--
    this.#request = undefined
    this.#stream = undefined
    this.#unsent.length = 0
    this.server.closed(this)
    request?.clientLeft()
    if (stream) leave(stream, this.server)
    this.#taken?.resolve()
  }

  get isIdle(): boolean {
    return !this.#isClosed && !this.#request && !this.#reader.hasBegun && this.#unsent.length === 0
  }

  timedOut(): void {
    if (this.isIdle && ++this.#silences < silencesMax) this.#arm()
    else this.close()
  }

  /** A whole answer that the system has taken still reaches the client; part of one is reset, so that it does not look whole. */
  close(): void {
    if (this.#isAnswering || this.#unsent.length > 0) this.socket.terminate()
    else this.socket.end()
    this.closed()
  }

  endIfIdle(): void {
    this.#isLast = true
    // What is left of an answered request is thrown away in any case.
    if (this.#request ? this.#isAnswered : !this.#reader.hasBegun) this.#next()
  }

  get #isAnswering(): boolean {
    return this.#request !== undefined && !this.#isAnswered
  }

  /**
   * Whether more of a request can be read: of the one that is being received, or of the next one, once the client has taken
   * the answers before it. A client that only asks would fill the memory with answers otherwise.
   */
  get #isReading(): boolean {
    return this.#request ? !this.#request.isReceived : this.#unsent.length === 0
  }

  /** Something was received or sent. */
  #arm(): void {
    if (this.#idleSeconds > 0) this.socket.timeout(this.#idleSeconds)
  }

  #keepEarly(bytes: Uint8Array): void {
    this.#early = this.#early ? Buffer.concat([this.#early, bytes]) : bytes
    if (this.#early.length > earlyMax) this.pause()
  }

  /** The head of a request has to arrive within the time that a connection may be silent; its body, piece by piece. */
  #read(bytes: Uint8Array): void {
    const reader = this.#reader
    const hadBegun = reader.hasBegun
    let piece: Uint8Array
    try {
      piece = reader.read(bytes)
    } catch (fault) {
      if (!(fault instanceof HttpFault)) throw fault
      return this.#refuse(fault)
    }
    const { head } = reader
    if (!hadBegun || head) this.#arm()
    if (!head) return
    const begun = this.#request
    const request = begun ?? new IncomingRequest(head, this, piece.length > 0 || !reader.isComplete)
    request.receive(piece)
    if (reader.isComplete) {
      request.complete()
      if (reader.rest.length > 0) this.#keepEarly(reader.rest)
    }
    if (!begun) this.#begin(request)
    else if (this.#isAnswered && reader.isComplete) this.#next()
  }

  #begin(request: IncomingRequest): void {
    const { headers: head } = request
    const { options } = this.server
    if (!knownMethods.has(head.method)) return this.#refuse(new HttpFault('the method is not known', 501))
    if (!target.test(head.target)) return this.#refuse(new HttpFault('the target is not a path'))
    this.#request = request
    this.#isAnswered = false
    const connection = head.get('connection')
    const isKept = !hasToken(connection, 'close') && (!head.isHttp10 || hasToken(connection, 'keep-alive'))
    if (!isKept || this.server.isLeaving) this.#isLast = true
    // HTTP/1.0 has no 100.
    this.#expectsContinue = !request.isReceived && !head.isHttp10 && hasToken(head.get('expect'), '100-continue')
    this.server.running++
    let answering: Answer | Promise<Answer>
    try {
      answering = options.serve(request, this)
    } catch (error) {
      answering = options.onDefect(error)
    }
    if (answering instanceof Promise) void this.#answerLater(answering, request).catch((error) => this.#fail(error))
    else this.#answer(answering, request)
  }

  async #answerLater(answering: Promise<Answer>, request: IncomingRequest): Promise<void> {
    let answer: Answer
    try {
      answer = await answering
    } catch (error) {
      answer = this.server.options.onDefect(error)
    }
    this.#answer(answer, request)
  }

  #answer(answer: Answer, request: IncomingRequest): void {
    if (this.#request !== request) return abandon(answer, this.server)
    const { status, headers, body } = answer
    const lines = linesOf(status, headers, this.server.dateLine())
    if (lines instanceof Error) {
      abandon(answer, this.server)
      return this.#answer(this.server.options.onDefect(lines), request)
    }
    if (headers.connection === 'close') this.#isLast = true
    const isHead = request.method === 'HEAD'
    if (status === 204 || status === 304) {
      abandon(answer, this.server)
      return this.#sendLast(Buffer.from(`${lines}${this.#closing()}\r\n`, 'latin1'))
    }
    if (body instanceof Uint8Array) return this.#sendWhole(lines, body, !isHead)
    this.#sendHead(lines, !isHead)
    if (!isHead) return this.#runStream(body)
    leave(body, this.server)
    this.#finish()
  }

  #runStream(stream: AnswerStream): void {
    this.#stream = stream
    stream.run(this).then(
      () => {
        if (this.#stream === stream) this.end()
      },
      (error) => {
        // The client must see that its answer is not complete.
        if (!(error instanceof BrokenOff)) this.server.options.onDefect(error)
        if (this.#stream === stream) this.close()
      },
    )
  }

  // Writing.

  /** `withBody`: false for the answer to a HEAD. */
  #sendWhole(lines: string, body: Uint8Array, withBody = true): void {
    const head = `${lines}content-length: ${body.length}\r\n${this.#closing()}\r\n`
    if (!withBody) return this.#sendLast(Buffer.from(head, 'latin1'))
    const length = head.length + body.length
    const bytes = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
    bytes.write(head, 'latin1')
    bytes.set(body, head.length)
    this.#sendLast(bytes, length)
  }

  /** `isHeld`: it is sent with the first bytes of the answer. */
  #sendHead(lines: string, isHeld = false): void {
    this.#isChunked = this.#request?.headers.isHttp10 !== true
    // Without chunks, only the end of the connection ends the answer.
    if (!this.#isChunked) this.#isLast = true
    const head = `${lines}${this.#isChunked ? 'transfer-encoding: chunked\r\n' : ''}${this.#closing()}\r\n`
    if (isHeld && this.#isChunked) this.#heldHead = head
    else this.#send(Buffer.from(head, 'latin1'))
  }

  #closing(): string {
    // A client that asked about its body and got no 100 may send the body or not, and a 100 cannot follow the answer.
    if (this.#expectsContinue && !this.#request?.isReceived) this.#isLast = true
    this.#expectsContinue = false
    if (this.#isLast) return 'connection: close\r\n'
    return this.#request?.headers.isHttp10 ? 'connection: keep-alive\r\n' : ''
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    if (this.#isClosed || (bytes.length === 0 && this.#heldHead === '')) return undefined
    if (this.#isChunked) this.#sendChunk(bytes)
    else this.#send(bytes)
    this.#arm()
    if (this.#unsent.length === 0) return undefined
    this.#taken ??= Promise.withResolvers()
    return this.#taken.promise
  }

  end(last?: Uint8Array): void {
    if (this.#isClosed || !this.#stream) return
    this.#stream = undefined
    const bytes = last && last.length > 0 ? last : undefined
    if (this.#isChunked) this.#sendChunk(bytes ?? nothing, lastChunk)
    else if (bytes) this.#send(bytes)
    this.#finish()
  }

  /** `after`: what follows the chunk. */
  #sendChunk(bytes: Uint8Array, after: Uint8Array = nothing): void {
    const head = this.#heldHead
    this.#heldHead = ''
    const length = head.length + chunkFrameMax + bytes.length + after.length
    const chunk = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
    let end = head === '' ? 0 : chunk.write(head, 'latin1')
    if (bytes.length > 0) {
      end = writeHex(chunk, end, bytes.length)
      chunk[end++] = carriageReturn
      chunk[end++] = lineFeed
      chunk.set(bytes, end)
      end += bytes.length
      chunk[end++] = carriageReturn
      chunk[end++] = lineFeed
    }
    chunk.set(after, end)
    this.#send(chunk, end + after.length)
  }

  #sendLast(bytes: Uint8Array, length?: number): void {
    this.#send(bytes, length)
    this.#finish()
  }

  /** Sends the first `length` bytes. What the socket does not take is kept. */
  #send(bytes: Uint8Array, length = bytes.length): void {
    const written = this.#unsent.length > 0 ? 0 : Math.max(0, this.socket.write(bytes, 0, length))
    if (written === length) return
    // Not the `slice` of a Buffer, which copies nothing.
    this.#unsent.push(bytes === scratch ? copyOf.call(bytes, written, length) : bytes.subarray(written, length))
  }

  /** The answer is written, or waits for the socket to take it. */
  #finish(): void {
    this.server.running--
    this.#isAnswered = true
    const request = this.#request
    assert(request, 'an answer has a request')
    if (request.isReceived) return this.#next()
    // A client that is still sending would not see an answer on a connection that is closed.
    request.discard()
    if (this.#isBroken || this.#isLast) this.#next()
  }

  /** The connection is free for the next request. */
  #next(): void {
    this.#request = undefined
    this.#reader.reset()
    this.#idleSeconds = this.server.options.idleSeconds
    this.#silences = 0
    this.#arm()
    if (this.#isLast) this.#closeWhenSent()
    else this.#readEarly()
  }

  #readEarly(): void {
    if (!this.#early || !this.#isReading) return
    // Not at once: each of a thousand short requests would be served inside the one before it.
    setImmediate(() => {
      const early = this.#early
      this.#early = undefined
      this.resume()
      try {
        if (early) this.received(early)
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  /** Ends only this connection by a defect: nothing else catches what is thrown outside the handlers of the socket. */
  #fail(error: unknown): void {
    this.server.options.onDefect(error)
    this.close()
  }

  #refuse(fault: HttpFault): void {
    this.#isLast = true
    this.#isBroken = true
    if (!this.#request) this.#send(refusal(fault))
    // The rest of a request that is being answered, or was.
    else if (!this.#isAnswered) return this.#request.fail(fault)
    this.#request = undefined
    this.#closeWhenSent()
  }

  #closeWhenSent(): void {
    if (this.#unsent.length > 0 || this.#isClosed) return
    this.resume()
    // The sending side only: a connection that is closed with unread bytes is reset, and the client would lose the answer.
    this.socket.shutdown()
    this.closed()
    this.server.lingering.add(this)
    this.socket.timeout(lingerSeconds)
  }
}

// ── Answers ──

/** For people who read what is on the wire; programs read the number. */
const reasons: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  303: 'See Other',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
}

const hexDigits = Buffer.from('0123456789abcdef')

/** Writes a number above zero and returns where it ends. */
function writeHex(into: Uint8Array, start: number, number: number): number {
  let at = start
  for (let bits = (31 - Math.clz32(number)) & ~3; bits >= 0; bits -= 4)
    into[at++] = hexDigits[(number >>> bits) & 15] ?? 0
  return at
}

function hasToken(value: string | null | undefined, token: string): boolean {
  return (
    value != null &&
    (value === token ||
      value
        .toLowerCase()
        .split(/[\s,]+/)
        .includes(token))
  )
}

function refusal({ message, status }: HttpFault): Buffer {
  const text = `Tollgate cannot read this request: ${message}.\n`
  const lines = ['content-type: text/plain', `content-length: ${text.length}`, 'connection: close']
  return Buffer.from(`${statusLine(status)}${lines.join(crlf)}${crlf}${crlf}${text}`, 'latin1')
}

function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${reasons[status] ?? ''}\r\n`
}

/** Written by the server itself. */
const framingHeaders = new Set(['content-length', 'transfer-encoding', 'connection', 'date'])

/** Reused: a text that grows by each header would leave a chain of texts behind. */
const parts: string[] = []

/** An error if a header would break out of its line. */
function linesOf(status: number, headers: AnswerHeaders, date: string): string | Error {
  parts.length = 0
  parts.push(statusLine(status), date)
  for (const name in headers) {
    if (framingHeaders.has(name)) continue
    const value = headers[name] ?? ''
    const isValid = typeof value === 'string' ? addLine(name, value) : value.every((each) => addLine(name, each))
    if (!isValid) return new TypeError(`the header ${name} has a character that headers cannot have`)
  }
  return parts.join('')
}

function addLine(name: string, value: string): boolean {
  parts.push(name, ': ', value, crlf)
  return fieldValue.test(value)
}

/** The client left before its answer. */
function abandon(answer: Answer, server: HttpServer): void {
  if (!(answer.body instanceof Uint8Array)) leave(answer.body, server)
}

function leave(stream: AnswerStream, { options }: HttpServer): void {
  stream.clientLeft().catch(options.onDefect)
}
