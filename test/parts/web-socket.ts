// A client of a WebSocket: sends messages as JSON, and hands out what comes back in its order.

export type Message = Readonly<Record<string, unknown>>

export interface Closed {
  readonly code: number
  readonly reason: string
}

/** The types of the last message of a turn. */
const lasts = ['error', 'response.completed', 'response.failed', 'response.incomplete']

export class SocketClient {
  readonly closed: Promise<Closed>
  #messages: Message[] = []
  #wake: (() => void) | undefined
  #isClosed = false

  private constructor(readonly socket: WebSocket) {
    const closed = Promise.withResolvers<Closed>()
    this.closed = closed.promise
    socket.addEventListener('message', ({ data }) => {
      this.#messages.push(JSON.parse(String(data)) as Message)
      this.#wake?.()
    })
    socket.addEventListener('close', ({ code, reason }) => {
      this.#isClosed = true
      this.#wake?.()
      closed.resolve({ code, reason })
    })
  }

  /** Rejects if the gateway refuses. */
  static async open(
    { url, key }: { readonly url: string; readonly key: string },
    headers: Readonly<Record<string, string>> = {},
  ): Promise<SocketClient> {
    const sent = { authorization: `Bearer ${key}`, ...headers }
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`, { headers: sent })
    const client = new SocketClient(socket)
    const opened = Promise.withResolvers<void>()
    socket.addEventListener('open', () => opened.resolve())
    socket.addEventListener('error', () => opened.reject(new Error('the WebSocket was refused')))
    await opened.promise
    return client
  }

  send(message: object | string): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  /** undefined = the socket was closed before another one came. */
  async next(): Promise<Message | undefined> {
    while (this.#messages.length === 0) {
      if (this.#isClosed) return undefined
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    return this.#messages.shift()
  }

  /** All messages of a turn that was sent. */
  async answer(): Promise<Message[]> {
    const messages: Message[] = []
    for (let next = await this.next(); next; next = await this.next()) {
      messages.push(next)
      if (lasts.includes(String(next.type))) break
    }
    return messages
  }

  turn(body: object): Promise<Message[]> {
    this.send({ type: 'response.create', ...body })
    return this.answer()
  }

  async close(): Promise<Closed> {
    this.socket.close()
    return await this.closed
  }
}

// Frames as a client sends them, to be sent over a bare socket.

export const opcodes = { text: 1, binary: 2, close: 8, ping: 9 }

/** `isMasked`: clients have to mask theirs. `isLast`: of the message. */
export function frame(
  payload: Uint8Array | string,
  { opcode = opcodes.text, isMasked = true, isLast = true, announced = undefined as number | undefined } = {},
): Buffer {
  const body = Buffer.from(payload)
  const length = announced ?? body.length
  const head = length < 126 ? Buffer.alloc(2) : length < 65_536 ? Buffer.alloc(4) : Buffer.alloc(10)
  head[0] = (isLast ? 0x80 : 0) | opcode
  head[1] = (isMasked ? 0x80 : 0) | (head.length === 2 ? length : head.length === 4 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  if (!isMasked) return Buffer.concat([head, body])
  const mask = [7, 1, 9, 4]
  return Buffer.concat([head, Buffer.from(mask), body.map((byte, at) => byte ^ (mask[at % 4] ?? 0))])
}

export function handshake(key: string, headers: Readonly<Record<string, string>> = {}, path = '/v1/responses'): string {
  const all = {
    host: 'gateway.test',
    authorization: `Bearer ${key}`,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** The code of a close frame that the server sent last. */
export function closeCodeIn(received: Buffer): number | undefined {
  const at = received.lastIndexOf(0x88)
  return at < 0 ? undefined : received.readUInt16BE(at + 2)
}
