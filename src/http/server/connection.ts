// One connection of a client: reads its requests one after another, has each served, and writes the answers in the same
// order. A client that closes its connection, or only its sending side, has left. What may happen next is decided by the
// table below and nothing else; bytes are read in request-reader.ts and written in answer-writer.ts.

import type { Socket } from 'bun'
import { type Answer, type AnswerSink, type AnswerStream, BrokenOff } from '../../pipeline/answer.ts'
import { HttpFault } from '../../wire/http-message.ts'
import type { ConnectionControl } from '../handler.ts'
import { AnswerWriter, continueLine, headOf, isBodyless, malformedHeader, refusalBytes } from './answer-writer.ts'
import { IncomingRequest, type RequestConnection } from './incoming-request.ts'
import { isKept, RequestReader, refusalOf } from './request-reader.ts'

export interface ConnectionOptions {
  /** How long a connection may be silent within a request and before the first; between requests, twelve times as long. */
  readonly idleSeconds: number
  serve(request: IncomingRequest, socket: ConnectionControl): Answer | Promise<Answer>
  /** The answer to an unexpected error; its details go to the log, never to the caller. */
  onDefect(error: unknown): Answer
}

/** The part of the server that its connections use. */
export interface ConnectionServer {
  readonly options: ConnectionOptions
  /** The number of requests being answered. */
  running: number
  /** Every request that begins now is the last one on its connection. */
  readonly isLeaving: boolean
  dateLine(): string
  opened(connection: ServerConnection): void
  /** Everything was sent, and only the client can still close. */
  lingers(connection: ServerConnection): void
  closed(connection: ServerConnection): void
}

type State =
  /** No request has begun, and the client has taken every answer. */
  | 'idle'
  /** Part of the head of a request has arrived. */
  | 'head'
  /** A request is being served and its body is still arriving. */
  | 'receiving'
  /** A request is being served and has arrived completely. */
  | 'received'
  /** A request is being served whose body turned out not to be HTTP. */
  | 'broken'
  /** A request was answered before its body had arrived; the rest is thrown away. */
  | 'discarding'
  /** A request was answered; the next one waits for the client to take the answer. */
  | 'flushing'
  /** The last answer was written; the client has not taken all of it. */
  | 'closing'
  /** The sending side is closed; the client has yet to close its own. */
  | 'lingering'
  | 'closed'

type Event =
  /** The first bytes of a head have arrived. */
  | 'begin'
  /** A head has arrived, and its request is served. */
  | 'request'
  /** The whole request has arrived. */
  | 'complete'
  /** What has arrived is not HTTP, or a request that is not served. */
  | 'fault'
  /** The answer was written completely, and the connection is kept. */
  | 'answer'
  /** The same, and the connection is not kept. */
  | 'last answer'
  /** The client has taken everything, and the next request may be read. */
  | 'taken'
  /** The server stops. */
  | 'stop'

interface Row {
  /** What happens to bytes that arrive. */
  readonly bytes: 'read' | 'keep' | 'drop'
  /** Whether a request is being answered. */
  readonly answers: 0 | 1
  /** An event that is missing here cannot happen; if it does, that is a defect. */
  readonly next: Readonly<Partial<Record<Event, State>>>
}

/** Beside these, every state becomes `closed` when either side closes the connection. */
const table: Readonly<Record<State, Row>> = {
  idle: {
    bytes: 'read',
    answers: 0,
    next: { begin: 'head', request: 'receiving', fault: 'closing', stop: 'closing' },
  },
  head: { bytes: 'read', answers: 0, next: { request: 'receiving', fault: 'closing', stop: 'head' } },
  receiving: {
    bytes: 'read',
    answers: 1,
    next: {
      complete: 'received',
      fault: 'broken',
      answer: 'discarding',
      'last answer': 'closing',
      stop: 'receiving',
    },
  },
  received: {
    bytes: 'keep',
    answers: 1,
    next: { answer: 'flushing', 'last answer': 'closing', stop: 'received' },
  },
  broken: { bytes: 'drop', answers: 1, next: { 'last answer': 'closing', stop: 'broken' } },
  discarding: { bytes: 'read', answers: 0, next: { complete: 'flushing', fault: 'closing', stop: 'closing' } },
  flushing: { bytes: 'keep', answers: 0, next: { taken: 'idle', stop: 'closing' } },
  closing: { bytes: 'drop', answers: 0, next: { taken: 'lingering', stop: 'closing' } },
  lingering: { bytes: 'drop', answers: 0, next: {} },
  closed: { bytes: 'drop', answers: 0, next: {} },
}

/** Bytes of requests that were sent before the last one was answered; above them the socket is not read. */
const earlyMax = 64 * 1024
/** How long a client that was sent its last answer may take to close its side. */
const lingerSeconds = 8
/**
 * How often the idle time may pass between two requests. Twelve minutes are longer than most proxies and clients keep a
 * connection (Google's load balancer: ten): a request that is sent while we close would be lost. Counted in parts, because
 * sockets of the runtime do not report a silence of more than four minutes.
 */
const silencesMax = 12

export class ServerConnection implements ConnectionControl, AnswerSink, RequestConnection {
  #state: State = 'idle'
  readonly #reader = new RequestReader()
  readonly #writer: AnswerWriter
  /** The one that is being answered. */
  #request: IncomingRequest | undefined
  /** Its answer, while that is being streamed. */
  #stream: AnswerStream | undefined
  /** No request is read after the one that is being answered. */
  #isLast = false
  /** What the client sent before its last request was answered. */
  #early: Uint8Array | undefined
  #isPaused = false
  /** How long it may be silent; 0 = for ever. */
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
    this.server.running += table[state].answers - table[this.#state].answers
    this.#state = state
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

  get isIdle(): boolean {
    return this.#state === 'idle'
  }

  // ── For the server ──

  stop(): void {
    this.#isLast = true
    this.#change('stop')
  }

  /** A whole answer that the system has taken still reaches the client; part of one is reset, so that it does not look whole. */
  close(): void {
    if (this.#state === 'closed') return
    if (table[this.#state].answers > 0 || !this.#writer.isDrained) this.socket.terminate()
    else this.socket.end()
    this.closed()
  }

  // ── For the handler and the body of a request ──

  get pendingRequests(): number {
    return this.server.running
  }

  timeout(seconds: number): void {
    this.#idleSeconds = seconds
    if (this.#isOpen) this.socket.timeout(seconds)
  }

  get address(): string | undefined {
    return this.#isOpen ? this.socket.remoteAddress : undefined
  }

  pause(): void {
    if (!this.#isPaused && this.#isOpen) this.socket.pause()
    this.#isPaused = true
  }

  resume(): void {
    if (this.#isPaused && this.#isOpen) this.socket.resume()
    this.#isPaused = false
  }

  sendContinue(): void {
    if (this.#state === 'receiving') this.#writer.send(continueLine)
  }

  // ── From the socket ──

  received(bytes: Uint8Array): void {
    const { bytes: action } = table[this.#state]
    if (action === 'read') this.#read(bytes)
    else if (action === 'keep') this.#keepEarly(bytes)
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
    if (stream) this.#abandon(stream)
  }

  /** Something was received or sent. */
  #arm(): void {
    if (this.#idleSeconds > 0) this.socket.timeout(this.#idleSeconds)
  }

  // ── Reading ──

  /** The head of a request has to arrive within the time that a connection may be silent; its body, piece by piece. */
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
    if (this.#state === 'idle' || head) this.#arm()
    if (!head) {
      if (this.#state === 'idle' && reader.hasBegun) this.#change('begin')
      return
    }
    if (this.#state === 'receiving' || this.#state === 'discarding') return this.#readBody(piece)
    const refusal = refusalOf(head)
    if (refusal) return this.#refuse(refusal)
    const request = new IncomingRequest(head, this, piece.length > 0 || !reader.isComplete)
    this.#request = request
    if (!isKept(head) || this.server.isLeaving) this.#isLast = true
    this.#change('request')
    this.#readBody(piece)
    void this.#serve(request)
  }

  /** Without a request, it was answered and the rest of its body is thrown away. */
  #readBody(piece: Uint8Array): void {
    this.#request?.receive(piece)
    if (!this.#reader.isComplete) return
    this.#request?.complete()
    if (this.#reader.rest.length > 0) this.#keepEarly(this.#reader.rest)
    this.#change('complete')
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

  #refuse(fault: HttpFault): void {
    this.#isLast = true
    if (this.#state === 'receiving') this.#request?.fail(fault)
    // The rest of a request that was answered needs no second answer.
    else if (this.#state !== 'discarding') this.#writer.send(refusalBytes(fault))
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
