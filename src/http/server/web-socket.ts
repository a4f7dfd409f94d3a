// A WebSocket on a connection of the server: the library reads and writes the frames (docs/decisions/0097), this decides what
// is done with messages, pings and closes. Messages are answered one after another; connection.ts says when no more is read.

import { isUtf8 } from 'node:buffer'
import websocket from 'websocket-driver'
import { Answer, type AnswerHeaders } from '../../pipeline/answer.ts'
import type { RequestHead } from './request-reader.ts'

/** What the server does with the messages of one WebSocket. */
export interface MessageHandler {
  /** The next message is given when this resolves. */
  answer(message: string): Promise<void>
  /** The client has left or closes, perhaps while a message is being answered. */
  clientLeft(): Promise<void>
}

/** The client's end of a WebSocket. */
export interface MessageSink {
  send(message: string): void
  /** Keeps proxies from closing a silent connection. */
  ping(): void
  /** Resolves when the socket has taken everything; undefined = it has. */
  taken(): Promise<void> | undefined
  close(code: number, reason: string): void
}

/** Codes of RFC 6455, section 7.4, and of its registry. */
export const closeCodes = { normal: 1000, goingAway: 1001, notText: 1003, policy: 1008, defect: 1011, tryLater: 1013 }

/** In place of an answer: from now on the connection is a WebSocket. */
export class Upgrade extends Answer {
  constructor(
    headers: AnswerHeaders,
    readonly messageBytesMax: number,
    readonly open: (client: MessageSink) => MessageHandler,
  ) {
    super(101, headers)
  }
}

/** The connection that carries a WebSocket. */
export interface FrameCarrier {
  writeFrame(bytes: Uint8Array): Promise<void> | undefined
  messageBegins(): void
  messageAnswered(): void
  /** The close frame is written, and nothing follows it. */
  lastFrame(): void
  onDefect(error: unknown): void
}

/** Whether a request can become a WebSocket. Version 13 is the only one. */
export function isHandshake(headers: Pick<RequestHead, 'get'>): boolean {
  const options = headers.get('connection')?.toLowerCase().split(',') ?? []
  return (
    options.some((option) => option.trim() === 'upgrade') &&
    headers.get('upgrade')?.toLowerCase() === 'websocket' &&
    headers.get('sec-websocket-version') === '13' &&
    /^[A-Za-z0-9+/]{22}==$/.test(headers.get('sec-websocket-key') ?? '')
  )
}

const nothing = new Uint8Array(0)
/** A control frame with its longest payload. */
const controlBytesMax = 131
/** Pings without a message in between, before an idle WebSocket is closed. */
const idlePingsMax = 120

export class FramedSocket implements MessageSink {
  readonly #driver: ReturnType<typeof websocket.http>
  readonly #handler: MessageHandler
  readonly #waiting: string[] = []
  #waitingBytes = 0
  #isAnswering = false
  #isClosed = false
  /** Bytes since the last message, and how many control frames are among them. */
  #bytes = 0
  #controls = 0
  /** Since the last message. */
  #pings = 0
  #awaitsPong = false

  /** Answers the handshake. */
  constructor(
    head: RequestHead,
    upgrade: Upgrade,
    private readonly carrier: FrameCarrier,
  ) {
    const request = { method: head.method, url: head.target, headers: Object.fromEntries(head) }
    const driver = websocket.http(request, { maxLength: upgrade.messageBytesMax })
    this.#driver = driver
    // Its own regular expression takes a second for a megabyte, and refuses ten.
    driver.UTF8_MATCH = { test: (bytes) => isUtf8(Buffer.from(bytes, 'latin1')) }
    driver.io.on('data', (bytes) => void carrier.writeFrame(bytes))
    driver.on('message', ({ data }) => this.#receiveMessage(data))
    driver.on('ping', () => this.#controls++)
    driver.on('pong', () => this.#controls++)
    driver.on('close', () => this.#end())
    for (const [name, value] of Object.entries(upgrade.headers)) driver.setHeader(name, String(value))
    driver.start()
    this.#handler = upgrade.open(this)
  }

  // ── From the connection ──

  receive(bytes: Uint8Array): void {
    this.#awaitsPong = false
    this.#bytes += bytes.length
    this.#driver.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
  }

  /** What has arrived of a message that is not complete. Pings may hide some of it. */
  get partialBytes(): number {
    return Math.max(0, this.#bytes - this.#controls * controlBytesMax)
  }

  /** Messages and parts of one that are not being answered. */
  get backlogBytes(): number {
    return this.#waitingBytes + this.#bytes
  }

  /** Nothing was received for a while. Returns whether the client may still be there. */
  checkAlive(): boolean {
    if (this.#awaitsPong) return false
    if (++this.#pings > idlePingsMax) this.close(closeCodes.goingAway, 'no message for an hour')
    this.#awaitsPong = true
    this.ping()
    return true
  }

  /** The server stops: what is being answered is still answered. */
  stop(): void {
    if (!this.#isAnswering) this.close(closeCodes.goingAway, 'the gateway stops')
  }

  clientLeft(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#handler.clientLeft().catch((error) => this.carrier.onDefect(error))
  }

  // ── From the handler ──

  send(message: string): void {
    if (!this.#isClosed) this.#driver.text(message)
  }

  ping(): void {
    if (!this.#isClosed) this.#driver.ping()
  }

  taken(): Promise<void> | undefined {
    return this.#isClosed ? undefined : this.carrier.writeFrame(nothing)
  }

  close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#driver.close(reason, code)
    this.#end()
  }

  // ── Messages ──

  #receiveMessage(data: string | Buffer): void {
    this.#bytes = this.#controls = this.#pings = 0
    if (typeof data !== 'string') return this.close(closeCodes.notText, 'send JSON as text messages')
    this.#waiting.push(data)
    this.#waitingBytes += data.length
    if (!this.#isAnswering) void this.#answerAll()
  }

  async #answerAll(): Promise<void> {
    this.#isAnswering = true
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        this.#waitingBytes -= next.length
        this.carrier.messageBegins()
        await this.#handler.answer(next)
        await this.taken()
        this.#isAnswering = this.#waiting.length > 0
        if (this.#isClosed) return
        this.carrier.messageAnswered()
        // Thousands of short messages on one connection would keep all others waiting.
        if (this.#isAnswering) await new Promise<void>((resolve) => setImmediate(resolve))
        if (this.#isClosed) return
      }
    } catch (error) {
      this.carrier.onDefect(error)
      this.close(closeCodes.defect, 'the gateway failed; its log has the cause')
    }
  }

  #end(): void {
    if (this.#isClosed) return
    this.clientLeft()
    this.#waiting.length = 0
    this.carrier.lastFrame()
  }
}
