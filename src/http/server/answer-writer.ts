// Turns answers into bytes and hands them to the socket: heads, whole bodies and chunks. What the socket does not take is kept
// until it takes more. It decides nothing about the connection, and knows no requests.

import type { Socket } from 'bun'
import type { Answer, AnswerHeaders } from '../../pipeline/answer.ts'
import { carriageReturn, lineFeed } from '../../wire/bytes.ts'
import type { HttpFault } from '../../wire/http-message.ts'

const nothing = new Uint8Array(0)
const lastChunk = Buffer.from('0\r\n\r\n')
/** The size of a chunk with up to eight digits, and two ends of lines. */
const chunkFrameMax = 12
const copyOf = Uint8Array.prototype.slice
/** Where an answer is put together; everything in it is sent or copied before the next one. An array for each costs a microsecond. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

export class AnswerWriter {
  readonly #unsent: Uint8Array[] = []
  /** Resolves when everything was taken by the socket. */
  #taken: PromiseWithResolvers<void> | undefined
  /** The head of a streamed answer, until its first bytes are sent. */
  #heldHead = ''
  #isChunked = false

  constructor(private readonly socket: Pick<Socket, 'write'>) {}

  /** Whether the socket has taken everything. */
  get isDrained(): boolean {
    return this.#unsent.length === 0
  }

  sendWhole(head: string, body: Uint8Array): void {
    const length = head.length + body.length
    const bytes = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
    bytes.write(head, 'latin1')
    bytes.set(body, head.length)
    this.send(bytes, length)
  }

  /** The head is sent with the first piece. */
  startStream(head: string, isChunked: boolean): void {
    this.#heldHead = head
    this.#isChunked = isChunked
  }

  /** An empty piece sends only the head. Returns a promise if the socket takes no more for now. */
  sendPiece(piece: Uint8Array): Promise<void> | undefined {
    this.#sendFramed(piece, nothing)
    return this.taken()
  }

  /** Resolves when the socket has taken everything; undefined = it has. */
  taken(): Promise<void> | undefined {
    if (this.isDrained) return undefined
    this.#taken ??= Promise.withResolvers()
    return this.#taken.promise
  }

  endStream(last: Uint8Array = nothing): void {
    this.#sendFramed(last, this.#isChunked ? lastChunk : nothing)
  }

  /** `after`: what follows the piece. */
  #sendFramed(piece: Uint8Array, after: Uint8Array): void {
    const head = this.#heldHead
    this.#heldHead = ''
    const lengthMax = head.length + chunkFrameMax + piece.length + after.length
    const bytes = lengthMax <= scratch.length ? scratch : Buffer.allocUnsafe(lengthMax)
    const isFramed = this.#isChunked && piece.length > 0
    let end = head === '' ? 0 : bytes.write(head, 'latin1')
    if (isFramed) end = endLine(bytes, writeHex(bytes, end, piece.length))
    bytes.set(piece, end)
    end += piece.length
    if (isFramed) end = endLine(bytes, end)
    bytes.set(after, end)
    this.send(bytes, end + after.length)
  }

  /** Sends the first `length` bytes. */
  send(bytes: Uint8Array, length = bytes.length): void {
    if (length === 0) return
    const written = this.isDrained ? Math.max(0, this.socket.write(bytes, 0, length)) : 0
    if (written === length) return
    // Not the `slice` of a Buffer, which copies nothing.
    this.#unsent.push(bytes === scratch ? copyOf.call(bytes, written, length) : bytes.subarray(written, length))
  }

  /** The socket takes more. Returns whether it has taken everything. */
  flush(): boolean {
    while (this.#unsent.length > 0) {
      const next = this.#unsent[0] as Uint8Array
      const written = this.socket.write(next)
      // Closed; the socket reports that on its own.
      if (written < 0) return false
      if (written < next.length) {
        this.#unsent[0] = next.subarray(written)
        return false
      }
      this.#unsent.shift()
    }
    this.#resolveTaken()
    return true
  }

  /** The client has left: forgets what was not sent. */
  drop(): void {
    this.#unsent.length = 0
    this.#resolveTaken()
  }

  #resolveTaken(): void {
    this.#taken?.resolve()
    this.#taken = undefined
  }
}

const hexDigits = Buffer.from('0123456789abcdef')

/** Writes a number above zero and returns where it ends. */
function writeHex(into: Uint8Array, start: number, number: number): number {
  let at = start
  for (let bits = (31 - Math.clz32(number)) & ~3; bits >= 0; bits -= 4)
    into[at++] = hexDigits[(number >>> bits) & 15] ?? 0
  return at
}

function endLine(into: Uint8Array, start: number): number {
  into[start] = carriageReturn
  into[start + 1] = lineFeed
  return start + 2
}

// ── Heads ──

/** What a header may contain. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** The name of a header that would break out of its line; undefined: there is none. */
export function malformedHeader(headers: AnswerHeaders): string | undefined {
  for (const name in headers) {
    const value = headers[name] as string | readonly string[]
    const isValid = typeof value === 'string' ? fieldValue.test(value) : value.every((each) => fieldValue.test(each))
    if (!isValid) return name
  }
  return undefined
}

/** Written by the server itself. */
const framingHeaders = new Set(['content-length', 'transfer-encoding', 'connection', 'date'])

/** Reused: a text that grows by each header would leave a chain of texts behind. */
const parts: string[] = []

interface HeadFacts {
  readonly isHttp10: boolean
  /** The connection ends with the answer. */
  readonly isLast: boolean
  /** The line of the header. */
  readonly date: string
}

export function headOf(answer: Answer, { isHttp10, isLast, date }: HeadFacts): string {
  const { status, headers, body } = answer
  parts.length = 0
  parts.push(statusLine(status), date)
  for (const name in headers) {
    if (framingHeaders.has(name)) continue
    const value = headers[name] as string | readonly string[]
    if (typeof value === 'string') parts.push(name, ': ', value, '\r\n')
    else for (const each of value) parts.push(name, ': ', each, '\r\n')
  }
  if (!isBodyless(answer)) {
    if (body instanceof Uint8Array) parts.push('content-length: ', String(body.length), '\r\n')
    else if (!isHttp10) parts.push('transfer-encoding: chunked\r\n')
  }
  if (isLast) parts.push('connection: close\r\n')
  else if (isHttp10) parts.push('connection: keep-alive\r\n')
  parts.push('\r\n')
  return parts.join('')
}

/** Whether its status says that it has no body. */
export function isBodyless({ status }: Answer): boolean {
  return status === 204 || status === 304
}

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
  408: 'Request Timeout',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
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

function statusLine(status: number): string {
  return status === 200 ? 'HTTP/1.1 200 OK\r\n' : `HTTP/1.1 ${status} ${reasons[status] ?? ''}\r\n`
}

export const continueLine = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')

/** The answer to a request that cannot be read or is not served. */
export function refusalBytes({ message, status }: HttpFault): Buffer {
  const text = `Tollgate cannot read this request: ${message}.\n`
  const headers = `content-type: text/plain\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n`
  return Buffer.from(statusLine(status) + headers + text, 'latin1')
}
