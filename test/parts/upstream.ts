// A provider's server made of a bare socket, so that a test decides every byte, every packet border and how the
// connection ends. It reads requests well enough for HTTP clients that we trust and keeps what they sent.

import type { Socket } from 'bun'
import { firstRestMs } from '../../src/providers/connection-pool.ts'

export interface UpstreamCall {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly body: Uint8Array<ArrayBuffer>
  /** The body as JSON. */
  json(): Record<string, unknown>
  /** Resolves when the client has closed the connection or we have. */
  readonly closed: Promise<void>
  isClosed(): boolean
}

export interface UpstreamReply {
  /** Raw bytes, as one packet where the socket takes them; resolves when they are handed to the system. */
  write(bytes: Uint8Array | string): Promise<void>
  /** A whole response with its length. */
  send(status: number, headers: Record<string, string>, body: Uint8Array | string): Promise<void>
  json(status: number, value: unknown, headers?: Record<string, string>): Promise<void>
  /** The head of an event stream; records follow by `chunk`, `finish` ends it properly. */
  startStream(headers?: Record<string, string>): Promise<void>
  /** One chunk of a chunked body. */
  chunk(bytes: Uint8Array | string): Promise<void>
  finish(): Promise<void>
  /** Closes in the middle of whatever was being said. */
  cut(): void
  /** Resets the connection. */
  reset(): void
}

export type UpstreamHandler = (call: UpstreamCall, reply: UpstreamReply) => void | Promise<void>

export interface Upstream {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly calls: UpstreamCall[]
  /** Connections that are open now. */
  openConnections(): number
  /** Connections that were opened since it started. */
  acceptedConnections(): number
  /**
   * From now on. A test whose calls never come here proves nothing, so the next one complains where this handler was
   * never called, unless it was said that it may stay unasked.
   */
  handle(handler: UpstreamHandler, may?: 'stay unasked'): void
  stop(): void
}

interface Connection {
  received: Uint8Array
  pending: Uint8Array[]
  waiting: (() => void)[]
  closed: boolean
  readonly onClose: PromiseWithResolvers<void>
}

/** Resolves when every connection that is kept now may be used again: each sleep is set after a timer of theirs. */
export async function connectionsRested(): Promise<void> {
  for (let timer = 0; timer < 4; timer++) await Bun.sleep(firstRestMs)
}

export function startUpstream(initial: UpstreamHandler): Upstream {
  let handler = initial
  /** A handler was set for calls of which none has come. */
  let isAwaited = false
  const calls: UpstreamCall[] = []
  const open = new Set<Socket<Connection>>()
  let accepted = 0
  const server = Bun.listen<Connection>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = {
          received: new Uint8Array(0),
          pending: [],
          waiting: [],
          closed: false,
          onClose: Promise.withResolvers<void>(),
        }
        socket.setNoDelay(true)
        open.add(socket)
        accepted++
      },
      data(socket, bytes) {
        socket.data.received = Buffer.concat([socket.data.received, bytes])
        for (;;) {
          const request = takeRequest(socket.data)
          if (!request) return
          const call = callOf(request, socket)
          calls.push(call)
          isAwaited = false
          // An uncaught rejection fails the test; thrown from here, the error would go to the `error` callback.
          void Promise.try(handler, call, replyOf(socket))
        }
      },
      drain: flush,
      close(socket) {
        open.delete(socket)
        socket.data.closed = true
        socket.data.onClose.resolve()
        for (const resume of socket.data.waiting.splice(0)) resume()
      },
      error() {},
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    calls,
    openConnections: () => open.size,
    acceptedConnections: () => accepted,
    handle(next, may) {
      const wasInVain = isAwaited
      handler = next
      isAwaited = may !== 'stay unasked'
      if (wasInVain) throw new Error('no call came for the handler that was set before: what did that test prove?')
    },
    stop: () => server.stop(true),
  }
}

interface RawRequest {
  readonly head: string
  readonly body: Uint8Array<ArrayBuffer>
}

/** Takes one complete request with a length off the front of what was received. */
function takeRequest(connection: Connection): RawRequest | undefined {
  const received = Buffer.from(connection.received)
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const head = received.subarray(0, headEnd).toString('latin1')
  const length = Number(/^content-length:\s*(\d+)/im.exec(head)?.[1] ?? 0)
  const end = headEnd + 4 + length
  if (received.length < end) return undefined
  connection.received = new Uint8Array(received.subarray(end))
  return { head, body: new Uint8Array(received.subarray(headEnd + 4, end)) }
}

function callOf({ head, body }: RawRequest, socket: Socket<Connection>): UpstreamCall {
  const [first = '', ...lines] = head.split('\r\n')
  const [method = '', path = ''] = first.split(' ')
  const headers = new Headers()
  for (const line of lines) headers.append(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim())
  return {
    method,
    path,
    headers,
    body,
    json: () => JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>,
    closed: socket.data.onClose.promise,
    isClosed: () => socket.data.closed,
  }
}

function flush(socket: Socket<Connection>): void {
  const { data } = socket
  while (data.pending.length > 0) {
    const next = data.pending[0] as Uint8Array
    const written = socket.write(next)
    if (written < next.length) {
      data.pending[0] = next.subarray(Math.max(0, written))
      return
    }
    data.pending.shift()
  }
  for (const resume of data.waiting.splice(0)) resume()
}

function replyOf(socket: Socket<Connection>): UpstreamReply {
  const write = (bytes: Uint8Array | string): Promise<void> => {
    if (socket.data.closed) return Promise.resolve()
    socket.data.pending.push(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
    return new Promise((resolve) => {
      socket.data.waiting.push(resolve)
      flush(socket)
    })
  }
  const send: UpstreamReply['send'] = async (status, headers, body) => {
    const bytes = Buffer.from(body)
    await write(
      Buffer.concat([Buffer.from(head(status, { ...headers, 'content-length': String(bytes.length) })), bytes]),
    )
  }
  return {
    write,
    send,
    json: (status, value, headers = {}) =>
      send(status, { 'content-type': 'application/json', ...headers }, JSON.stringify(value)),
    startStream: (headers = {}) =>
      write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked', ...headers })),
    async chunk(bytes) {
      const body = Buffer.from(bytes)
      if (body.length === 0) return
      await write(Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]))
    },
    finish: () => write('0\r\n\r\n'),
    cut: () => void socket.end(),
    reset: () => socket.terminate(),
  }
}

function head(status: number, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} X\r\n${lines.join('')}\r\n`
}
