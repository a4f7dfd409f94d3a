// One connection of a client: reads its requests one after another, has each served, and writes the answers in the same
// order. A client that closes its connection, or only its sending side, has left. What may happen next is decided by the
// table of connection-states.ts and nothing else; bytes are read in request-reader.ts and written in answer-writer.ts.

import type { Socket } from 'bun'
import type { Clock } from '../../kernel/clock.ts'
import { type Answer, type AnswerSink, type AnswerStream, BrokenOff } from '../../pipeline/answer.ts'
import { HttpFault } from '../../wire/http-message.ts'
import { BodyFault } from '../../wire/read-body.ts'
import { AnswerWriter, continueLine, headOf, isBodyless, malformedHeader, refusalBytes } from './answer-writer.ts'
import { type Event, type State, table } from './connection-states.ts'
import { type ConnectionControl, IncomingRequest, type RequestConnection } from './incoming-request.ts'
import { isKept, RequestReader, refusalOf } from './request-reader.ts'
import { closeCodes, type FrameCarrier, FramedSocket, Upgrade } from './web-socket.ts'

export interface ConnectionOptions {
  /**
   * How long a connection may be silent within a request and before the first; between requests, twelve times as long. Also
   * the time that a head may take, and a body without its share for `bodyBytesPerMs`.
   */
  readonly idleSeconds: number
  readonly clock: Clock
  serve(request: IncomingRequest, socket: ConnectionControl): Answer | Promise<Answer>
  /** The answer to an unexpected error; its details go to the log, never to the caller. */
  onDefect(error: unknown): Answer
}

/** The part of the server that its connections use. */
export interface ConnectionServer {
  readonly options: ConnectionOptions
  /** The number of requests that have arrived completely and are being answered. */
  running: number
  /** As many are running as may. */
  readonly isFull: boolean
  /** Every request that begins now is the last one on its connection. */
  readonly isLeaving: boolean
  dateLine(): string
  opened(connection: ServerConnection): void
  /** From now on it waits for its client; called again, its wait begins anew. Connections that wait longest give way first. */
  waits(connection: ServerConnection): void
  /** It does not wait any more. */
  waitsNoMore(connection: ServerConnection): void
  /** Counts bytes of a body that is not complete. Returns whether there is room for them. */
  hold(connection: ServerConnection, bytes: number): boolean
  release(bytes: number): void
  /** Everything was sent, and only the client can still close. */
  lingers(connection: ServerConnection): void
  closed(connection: ServerConnection): void
}

/** Bytes of requests that were sent before the last one was answered; above them the socket is not read. */
const earlyMax = 64 * 1024
/**
 * What a client has to send of a body after the idle time, which every body has: 100 KB a second, as an uplink of 1 Mbit/s
 * does. By what has arrived and not by what was announced, so that nobody gets hours by announcing a gigabyte.
 */
const bodyBytesPerMs = 100
/** How far a body may be behind that before it has to give way to others. */
const slowMs = 5_000
const tooSlow = new BodyFault('too-slow')
const noRoom = new BodyFault('no-room')
const evicted = new HttpFault('it had not arrived completely when the gateway ran out of connections', 408)
/** How long a client that was sent its last answer may take to close its side. */
const lingerSeconds = 8
/**
 * How often the idle time may pass between two requests. Twelve minutes are longer than most proxies and clients keep a
 * connection (Google's load balancer: ten): a request that is sent while we close would be lost. Counted in parts, because
 * sockets of the runtime do not report a silence of more than four minutes.
 */
const silencesMax = 12
/** Half of the shortest time after which proxies close a silent connection (nginx and AWS: a minute). */
const pingSeconds = 30

export class ServerConnection implements ConnectionControl, AnswerSink, RequestConnection, FrameCarrier {
  #state: State = 'idle'
  readonly #reader = new RequestReader()
  readonly #writer: AnswerWriter
  /** The one that is being answered. */
  #request: IncomingRequest | undefined
  /** Its answer, while that is being streamed. */
  #stream: AnswerStream | undefined
  /** What the connection was upgraded to. */
  #webSocket: FramedSocket | undefined
  /** No request is read after the one that is being answered. */
  #isLast = false
  /** What the client sent before its last request was answered. */
  #early: Uint8Array | undefined
  /** When reading was paused, on the monotonic clock; undefined = it is not. */
  #pausedMs: number | undefined
  /** Since when the rest of a body is awaited, without the time in which reading was paused; undefined = none is. */
  #bodySinceMs: number | undefined
  /** How much of that body has arrived. */
  #bodyBytes = 0
  /** How much of it the server counts. */
  #heldBytes = 0
  /** How long it may be silent when no body is awaited; 0 = for ever. */
  #idleSeconds: number
  /** How often the idle time has passed since the last request; before the first it may not. */
  #silences = silencesMax

  constructor(
    private readonly server: ConnectionServer,
    private readonly socket: Socket<ServerConnection>,
  ) {
    this.#writer = new AnswerWriter(socket)
    this.#idleSeconds = server.options.idleSeconds
    server.opened(this)
    socket.setNoDelay(true)
    this.#arm()
  }

  // ── States ──

  #change(event: Event): void {
    const next = table[this.#state].next[event]
    if (!next) throw new Error(`a connection that is ${this.#state} has no ${event}`)
    this.#enter(next)
  }

  #enter(state: State): void {
    const before = table[this.#state]
    const { waits, runs } = table[state]
    this.server.running += runs - before.runs
    this.#state = state
    if (waits !== before.waits) waits ? this.server.waits(this) : this.server.waitsNoMore(this)
    if (this.#bodySinceMs !== undefined && state !== 'receiving') this.#leaveBody(state)
    if (state === 'flushing') {
      this.#reader.reset()
      if (this.#writer.isDrained) this.#readNext()
    } else if (state === 'closing') {
      this.#early = undefined
      this.resume()
      if (this.#writer.isDrained) this.#change('taken')
    } else if (state === 'lingering') {
      this.server.lingers(this)
      // Only the sending side: a connection that is closed with unread bytes is reset, and the client would lose the answer.
      this.socket.shutdown()
      this.socket.timeout(lingerSeconds)
    }
  }

  get #isOpen(): boolean {
    return this.#state !== 'lingering' && this.#state !== 'closed'
  }

  // ── For the server ──

  stop(): void {
    this.#isLast = true
    if (this.#webSocket && this.#isOpen) this.#webSocket.stop()
    else this.#change('stop')
  }

  /** Gives its place to a connection that is new. */
  evict(): void {
    this.#webSocket?.close(closeCodes.tryLater, 'too many connections')
    const isUnanswered = this.#state === 'head' || (this.#state === 'receiving' && !this.#stream)
    if (!isUnanswered) return this.close()
    this.#writer.send(refusalBytes(evicted))
    this.socket.end()
    this.closed()
  }

  /** Gives up the body that is arriving, if it arrives slowly, for the bodies of others. */
  giveWayIfSlow(): void {
    const isArriving = this.#state === 'receiving' || this.#state === 'message'
    if (isArriving && this.#behindMs() > slowMs) this.#refuse(noRoom)
  }

  /** A whole answer that the system has taken still reaches the client; part of one is reset, so that it does not look whole. */
  close(): void {
    if (this.#state === 'closed') return
    if (table[this.#state].runs > 0 || this.#request || !this.#writer.isDrained) this.socket.terminate()
    else this.socket.end()
    this.closed()
  }

  // ── For the handler and the body of a request ──

  get pendingRequests(): number {
    return this.server.running
  }

  timeout(seconds: number): void {
    this.#idleSeconds = seconds
    if (this.#isOpen && this.#bodySinceMs === undefined) this.socket.timeout(seconds)
  }

  get address(): string | undefined {
    return this.#isOpen ? this.socket.remoteAddress : undefined
  }

  pause(): void {
    if (this.#pausedMs !== undefined || !this.#isOpen) return
    this.#pausedMs = this.#nowMs()
    this.socket.pause()
    // A client whose bytes are not read cannot send more.
    if (this.#bodySinceMs !== undefined) this.socket.timeout(0)
  }

  resume(): void {
    if (this.#pausedMs === undefined || !this.#isOpen) return
    const pausedMs = this.#nowMs() - this.#pausedMs
    this.#pausedMs = undefined
    this.socket.resume()
    if (this.#bodySinceMs === undefined) return
    this.#bodySinceMs += pausedMs
    this.#arm()
  }

  /** The client waited for this, and its time to send the body starts now. */
  sendContinue(): void {
    if (this.#state !== 'receiving') return
    this.#writer.send(continueLine)
    if (this.#bodySinceMs !== undefined) this.#bodySinceMs = this.#nowMs()
  }

  // ── From the socket ──

  received(bytes: Uint8Array): void {
    const { bytes: action } = table[this.#state]
    if (action === 'read') this.#read(bytes)
    else if (action === 'keep') this.#keepEarly(bytes)
    else if (action === 'frames') this.#readFrames(bytes)
  }

  /** The socket takes more. */
  drained(): void {
    if (!this.#isOpen) return
    this.#arm()
    if (!this.#writer.flush()) return
    if (this.#state === 'flushing') this.#readNext()
    else if (this.#state === 'closing') this.#change('taken')
  }

  timedOut(): void {
    if (this.#state === 'idle' && ++this.#silences < silencesMax) this.#arm()
    else if (this.#bodySinceMs !== undefined) this.#refuse(tooSlow)
    else if (this.#state === 'upgraded' && this.#webSocket?.checkAlive()) this.#arm()
    else this.close()
  }

  closed(): void {
    if (this.#state === 'closed') return
    const request = this.#request
    const stream = this.#stream
    this.#enter('closed')
    this.#request = this.#stream = this.#early = undefined
    this.#writer.drop()
    this.server.closed(this)
    request?.clientLeft()
    this.#webSocket?.clientLeft()
    if (stream) this.#abandon(stream)
  }

  /** Something was received or sent. */
  #arm(): void {
    const seconds = this.#bodySinceMs === undefined ? this.#idleSeconds : this.#bodySecondsLeft()
    if (seconds > 0) this.socket.timeout(seconds)
  }

  #nowMs(): number {
    return this.server.options.clock.monotonicMs()
  }

  // ── Reading ──

  /** The head of a request has to arrive within the time that a connection may be silent; a body has more with each piece. */
  #read(bytes: Uint8Array): void {
    const reader = this.#reader
    let piece: Uint8Array
    try {
      piece = reader.read(bytes)
    } catch (fault) {
      if (!(fault instanceof HttpFault)) throw fault
      return this.#refuse(fault)
    }
    const { head } = reader
    if (this.#state === 'receiving' || this.#state === 'discarding') return this.#readBody(piece)
    if (this.#state === 'idle' || head) this.#arm()
    if (!head) {
      if (this.#state === 'idle' && reader.hasBegun) {
        this.#change('begin')
        this.server.waits(this)
      }
      return
    }
    const refusal = refusalOf(head)
    if (refusal) return this.#refuse(refusal)
    const request = new IncomingRequest(head, this, piece.length > 0 || !reader.isComplete)
    this.#request = request
    if (!isKept(head) || this.server.isLeaving) this.#isLast = true
    this.#change('request')
    if (!reader.isComplete) this.#awaitBody()
    this.#readBody(piece)
    void this.#serve(request)
  }

  /** If `#request` is undefined, the request was answered before, and the rest of its body is thrown away. */
  #readBody(piece: Uint8Array): void {
    if (!this.#reader.isComplete) {
      const fault = this.#bodyFault(piece.length)
      if (fault) return this.#refuse(fault)
    } else if (this.#arrivedInPieces && this.server.isFull) return this.#refuse(noRoom)
    this.#request?.receive(piece)
    if (!this.#reader.isComplete) return
    this.#request?.complete()
    if (this.#reader.rest.length > 0) this.#keepEarly(this.#reader.rest)
    this.#change('complete')
  }

  /** The body comes in more than one piece. */
  #awaitBody(): void {
    this.#bodySinceMs = this.#nowMs()
    this.#bodyBytes = 0
    this.server.waits(this)
  }

  /**
   * The handler let the request in when its head had arrived (`overloaded` in http/handler.ts), but a request is running only
   * once its body has arrived: others may have begun since.
   */
  get #arrivedInPieces(): boolean {
    return this.#state === 'receiving' && this.#bodySinceMs !== undefined
  }

  /** Counts bytes of a body that is not complete. */
  #bodyFault(bytes: number): BodyFault | undefined {
    this.#bodyBytes += bytes
    const seconds = this.#bodySecondsLeft()
    if (seconds < 0) return tooSlow
    if (seconds > 0) this.socket.timeout(seconds)
    if (this.#state === 'discarding') return undefined
    this.#heldBytes += bytes
    return this.server.hold(this, bytes) ? undefined : noRoom
  }

  /** How much longer the body has taken than its bytes account for. */
  #behindMs(): number {
    return this.#nowMs() - (this.#bodySinceMs ?? 0) - this.#bodyBytes / bodyBytesPerMs
  }

  /** Until the client has to send something; negative = it is too late, 0 = for ever. */
  #bodySecondsLeft(): number {
    const { idleSeconds } = this.server.options
    if (idleSeconds === 0) return 0
    const left = idleSeconds - this.#behindMs() / 1000
    return left > 0 ? Math.min(idleSeconds, Math.ceil(left)) : -1
  }

  /** Nothing of the body is kept by the server any more. */
  #leaveBody(state: State): void {
    if (this.#heldBytes > 0) this.server.release(this.#heldBytes)
    this.#heldBytes = 0
    if (state === 'discarding') return
    this.#bodySinceMs = undefined
    this.timeout(this.#idleSeconds)
  }

  #keepEarly(bytes: Uint8Array): void {
    this.#early = this.#early ? Buffer.concat([this.#early, bytes]) : bytes
    if (this.#early.length > earlyMax) this.pause()
  }

  /**
   * Called when the client has taken the answer: a client that only asks and never reads would fill the memory with answers
   * otherwise.
   */
  #readNext(): void {
    if (!this.#early) return this.#change('taken')
    // Not at once: thousands of short requests on one connection would keep all others waiting.
    setImmediate(() => {
      if (this.#state !== 'flushing' || !this.#writer.isDrained) return
      const early = this.#early
      this.#early = undefined
      this.resume()
      try {
        this.#change('taken')
        if (early) this.received(early)
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  #refuse(fault: HttpFault | BodyFault): void {
    this.#isLast = true
    if (this.#state === 'message') return this.#refuseMessage(fault === noRoom)
    if (this.#state === 'receiving') this.#request?.fail(fault)
    // The rest of a request that was answered needs no second answer.
    else if (fault instanceof HttpFault && this.#state !== 'discarding') this.#writer.send(refusalBytes(fault))
    this.#change('fault')
  }

  // ── Answering ──

  /** Never rejects. */
  async #serve(request: IncomingRequest): Promise<void> {
    const { options } = this.server
    let answer: Answer
    try {
      answer = await options.serve(request, this)
    } catch (error) {
      answer = options.onDefect(error)
    }
    try {
      const wrong = malformedHeader(answer.headers)
      if (wrong !== undefined) {
        this.#abandon(answer.body)
        answer = options.onDefect(new TypeError(`the header ${wrong} has a character that headers cannot have`))
      }
      if (this.#request !== request) this.#abandon(answer.body)
      else this.#send(answer, request)
    } catch (error) {
      this.#fail(error)
    }
  }

  #send(answer: Answer, request: IncomingRequest): void {
    if (answer instanceof Upgrade) return this.#upgrade(answer, request)
    const { body } = answer
    const { isHttp10 } = request.headers
    const isStream = !(body instanceof Uint8Array)
    // HTTP/1.0 has no chunks, so only the end of the connection ends a stream. A client that asked about its body and got no
    // 100 may send the body or not, and a 100 cannot follow the answer.
    if (answer.headers.connection === 'close' || (isStream && isHttp10) || request.awaitsContinue) this.#isLast = true
    request.awaitsContinue = false
    const head = headOf(answer, { isHttp10, isLast: this.#isLast, date: this.server.dateLine() })
    if (request.method === 'HEAD' || isBodyless(answer)) {
      this.#abandon(body)
      this.#writer.send(Buffer.from(head, 'latin1'))
      this.#answered()
    } else if (isStream) {
      this.#writer.startStream(head, !isHttp10)
      this.#run(body)
    } else {
      this.#writer.sendWhole(head, body)
      this.#answered()
    }
  }

  #run(stream: AnswerStream): void {
    this.#stream = stream
    stream.run(this).then(
      () => {
        if (this.#stream === stream) this.end()
      },
      (error) => {
        if (!(error instanceof BrokenOff)) this.server.options.onDefect(error)
        // The client must see that its answer is not complete.
        if (this.#stream === stream) this.close()
      },
    )
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    if (!this.#stream) return undefined
    const taken = this.#writer.sendPiece(bytes)
    this.#arm()
    return taken
  }

  end(last?: Uint8Array): void {
    if (!this.#stream) return
    this.#stream = undefined
    this.#writer.endStream(last)
    this.#answered()
  }

  /** The answer is written, or waits for the socket to take it. */
  #answered(): void {
    // A client that is still sending would not see an answer on a connection that is closed.
    if (this.#state === 'receiving') this.#request?.discard()
    this.#request = undefined
    this.#idleSeconds = this.server.options.idleSeconds
    this.#silences = 0
    this.#arm()
    this.#change(this.#isLast ? 'last answer' : 'answer')
  }

  // ── WebSockets ──

  #upgrade(upgrade: Upgrade, request: IncomingRequest): void {
    this.#request = undefined
    this.#webSocket = new FramedSocket(request.headers, upgrade, this)
    this.#change('upgrade')
    this.timeout(this.#pingSeconds)
    const early = this.#early
    this.#early = undefined
    this.resume()
    if (this.#isLast) this.#webSocket.stop()
    else if (early) this.received(early)
  }

  get #pingSeconds(): number {
    return Math.min(pingSeconds, this.server.options.idleSeconds)
  }

  /** A message has to arrive as fast as a body, and its parts count as those of one. */
  #readFrames(bytes: Uint8Array): void {
    const socket = this.#webSocket
    if (!socket) return
    this.#arm()
    socket.receive(bytes)
    if (this.#state === 'turn' && socket.backlogBytes > earlyMax) this.pause()
    if (this.#state === 'upgraded' && socket.partialBytes > 0) {
      this.#change('begin')
      this.#awaitBody()
    }
    const fault = this.#state === 'message' ? this.#bodyFault(bytes.length) : undefined
    if (fault) this.#refuse(fault)
  }

  #refuseMessage(hasNoRoom: boolean): void {
    if (hasNoRoom) this.#webSocket?.close(closeCodes.tryLater, 'too many large messages at once')
    else this.#webSocket?.close(closeCodes.policy, 'the message took too long to arrive')
  }

  writeFrame(bytes: Uint8Array): Promise<void> | undefined {
    if (!this.#isOpen) return undefined
    this.#writer.send(bytes)
    this.#arm()
    return this.#writer.taken()
  }

  messageBegins(): void {
    this.#change('message')
    this.timeout(0)
  }

  messageAnswered(): void {
    const socket = this.#webSocket
    if (this.#isLast || this.server.isLeaving) return socket?.close(closeCodes.goingAway, 'the gateway stops')
    this.#change('answer')
    this.timeout(this.#pingSeconds)
    if (socket && socket.backlogBytes <= earlyMax) this.resume()
  }

  lastFrame(): void {
    if (!this.#isOpen) return
    this.#isLast = true
    this.timeout(lingerSeconds)
    this.#change('last answer')
  }

  onDefect(error: unknown): void {
    this.server.options.onDefect(error)
  }

  /** Nobody reads this body. */
  #abandon(body: Uint8Array | AnswerStream): void {
    if (!(body instanceof Uint8Array)) body.clientLeft().catch(this.server.options.onDefect)
  }

  /** Ends only this connection by a defect: nothing else catches what is thrown outside the handlers of the socket. */
  #fail(error: unknown): void {
    this.server.options.onDefect(error)
    this.close()
  }
}
