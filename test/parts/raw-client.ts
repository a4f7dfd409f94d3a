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
  pause(): void
  resume(): void
  /** Leaves at once, whatever is still to come. */
  leave(): void
  readonly closed: Promise<void>
  isClosed(): boolean
}

export async function connect(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  let received = Buffer.alloc(0)
  let isClosed = false
  const closed = Promise.withResolvers<void>()
  let pending: Buffer[] = []
  /** Called when there are more bytes, or there will be none. */
  let waiting: (() => void)[] = []
  let drained: (() => void)[] = []
  const wake = (): void => {
    const all = waiting
    waiting = []
    for (const resume of all) resume()
  }
  const flush = (socket: Socket): void => {
    while (pending.length > 0) {
      const next = pending[0] as Buffer
      const written = Math.max(0, socket.write(next))
      if (written < next.length) {
        pending[0] = next.subarray(written)
        return
      }
      pending.shift()
    }
    const all = drained
    drained = []
    for (const resume of all) resume()
  }
  const end = (): void => {
    if (isClosed) return
    isClosed = true
    pending = []
    closed.resolve()
    for (const resume of drained) resume()
    wake()
  }
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, bytes) {
        received = received.length === 0 ? Buffer.from(bytes) : Buffer.concat([received, bytes])
        wake()
      },
      drain: flush,
      close: end,
      end,
      error: end,
    },
  })
  const more = (): Promise<void> => new Promise((resolve) => waiting.push(resolve))

  return {
    send(bytes) {
      if (isClosed) return Promise.resolve()
      pending.push(Buffer.from(bytes))
      return new Promise((resolve) => {
        drained.push(resolve)
        flush(socket)
      })
    },
    async response({ bodyless = false } = {}) {
      for (;;) {
        const taken = takeResponse(received, bodyless, isClosed)
        if (taken) {
          received = received.subarray(taken.end)
          if (taken.response.status >= 200) return taken.response
        } else if (isClosed) return 'closed'
        else await more()
      }
    },
    async until(text) {
      while (!received.includes(text)) {
        if (isClosed) throw new Error(`the connection ended without ${JSON.stringify(text)}: ${received}`)
        await more()
      }
      return received.toString()
    },
    received: () => received.toString(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    leave: () => socket.terminate(),
    closed: closed.promise,
    isClosed: () => isClosed,
  }
}

interface Taken {
  readonly response: RawResponse
  readonly end: number
}

/** One complete response off the front; a body without a length ends with the connection. */
function takeResponse(received: Buffer, bodyless: boolean, isClosed: boolean): Taken | undefined {
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
    const end = lineEnd + 2 + size + 2
    if (received.length < end) return undefined
    if (size === 0) return taken(Buffer.concat(chunks), end)
    chunks.push(received.subarray(lineEnd + 2, end - 2))
    at = end
  }
}
