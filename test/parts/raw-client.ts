// An HTTP client made of a bare socket: it sends any bytes, well-formed or not, says what came back and whether the
// connection is still there, and can stop reading or leave at any moment.

import type { Socket } from 'bun'

export interface RawResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

export interface RawConnection {
  send(bytes: Uint8Array | string): Promise<void>
  /** The next response; 'closed' if the connection ended first. `bodyless` for the answer to a HEAD. */
  response(options?: { readonly bodyless?: boolean }): Promise<RawResponse | 'closed'>
  /** Everything received so far, framing included, as soon as it contains the text; rejects if the end comes first. */
  until(text: string): Promise<string>
  received(): string
  bytes(): Buffer
  pause(): void
  resume(): void
  /** Sends no more, but still reads: shutdown(SHUT_WR). */
  halfClose(): void
  /** Leaves at once, whatever is still to come. */
  leave(): void
  readonly closed: Promise<void>
  isClosed(): boolean
}

export async function connect(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  const connection = new Connection()
  const end = (): void => connection.end()
  connection.socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, bytes) => connection.take(bytes),
      drain: () => connection.flush(),
      close: end,
      end,
      error: end,
    },
  })
  return connection
}

class Connection implements RawConnection {
  socket: Socket | undefined
  #received = Buffer.alloc(0)
  #pending: Buffer[] = []
  #isClosed = false
  readonly #closed = Promise.withResolvers<void>()
  /** Called when there are more bytes, or there will be none. */
  #waiting: (() => void)[] = []
  /** Called when everything is sent, or nothing more can be. */
  #drained: (() => void)[] = []

  get closed(): Promise<void> {
    return this.#closed.promise
  }

  send(bytes: Uint8Array | string): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    // A view, so that many connections can send the same large body.
    const { buffer, byteOffset, length } = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
    this.#pending.push(Buffer.from(buffer, byteOffset, length))
    return new Promise((resolve) => {
      this.#drained.push(resolve)
      this.flush()
    })
  }

  async response({ bodyless = false } = {}): Promise<RawResponse | 'closed'> {
    for (;;) {
      const taken = takeResponse(this.#received, bodyless, this.#isClosed)
      if (taken) {
        this.#received = this.#received.subarray(taken.end)
        if (taken.response.status >= 200) return taken.response
      } else if (this.#isClosed) return 'closed'
      else await this.#more()
    }
  }

  async until(text: string): Promise<string> {
    while (!this.#received.includes(text)) {
      if (this.#isClosed) throw new Error(`the connection ended without ${JSON.stringify(text)}: ${this.#received}`)
      await this.#more()
    }
    return this.#received.toString()
  }

  received(): string {
    return this.#received.toString()
  }

  bytes(): Buffer {
    return this.#received
  }

  pause(): void {
    this.socket?.pause()
  }

  resume(): void {
    this.socket?.resume()
  }

  halfClose(): void {
    this.socket?.shutdown()
  }

  leave(): void {
    this.socket?.terminate()
  }

  isClosed(): boolean {
    return this.#isClosed
  }

  take(bytes: Uint8Array): void {
    this.#received = this.#received.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#received, bytes])
    callAll(this.#waiting)
  }

  flush(): void {
    while (this.#pending.length > 0) {
      const next = this.#pending[0] as Buffer
      const written = Math.max(0, this.socket?.write(next) ?? 0)
      if (written < next.length) {
        this.#pending[0] = next.subarray(written)
        return
      }
      this.#pending.shift()
    }
    callAll(this.#drained)
  }

  end(): void {
    this.#isClosed = true
    this.#pending = []
    this.#closed.resolve()
    callAll(this.#drained)
    callAll(this.#waiting)
  }

  #more(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}

/** Empties the list first: a callback may wait again. */
function callAll(waiting: (() => void)[]): void {
  for (const resume of waiting.splice(0)) resume()
}

interface Taken {
  readonly response: RawResponse
  readonly end: number
}

/** One complete response off the front; a body without a length ends with the connection. */
export function takeResponse(received: Buffer, bodyless: boolean, isClosed: boolean): Taken | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [first = '', ...lines] = received.subarray(0, headEnd).toString('latin1').split('\r\n')
  const headers = new Headers()
  for (const line of lines) headers.append(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim())
  const status = Number(first.split(' ')[1])
  const start = headEnd + 4
  const taken = (body: Buffer, end: number): Taken => ({ response: { status, headers, body: body.toString() }, end })
  if (bodyless || status < 200 || status === 204 || status === 304) return taken(Buffer.alloc(0), start)
  if (headers.get('transfer-encoding') === 'chunked') return takeChunked(received, start, taken)
  const length = headers.get('content-length')
  if (length === null) return isClosed ? taken(received.subarray(start), received.length) : undefined
  const end = start + Number(length)
  return received.length >= end ? taken(received.subarray(start, end), end) : undefined
}

function takeChunked(received: Buffer, start: number, taken: (body: Buffer, end: number) => Taken): Taken | undefined {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(received.subarray(at, lineEnd).toString('latin1'), 16)
    if (Number.isNaN(size)) throw new Error(`not a chunk: ${received.subarray(at, at + 100)}`)
    const end = lineEnd + 2 + size + 2
    if (received.length < end) return undefined
    if (size === 0) return taken(Buffer.concat(chunks), end)
    chunks.push(received.subarray(lineEnd + 2, end - 2))
    at = end
  }
}
