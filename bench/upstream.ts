// The fake upstream every contender calls: answers at once from ready bytes, on raw sockets, so that it is never what is
// measured. A stream's events leave one per millisecond, each as its own packet, as a provider's do; without that pacing
// they arrive glued together under load and CPU per event would say how many were glued rather than what one costs.

import type { Socket } from 'bun'
import type { Surface } from './cells.ts'
import { MessageReader } from './http-framing.ts'
import { jsonReply, streamReply } from './upstream-replies.ts'

const TICK_MS = 1
/** The wish for events stands at the beginning of the first prompt; the rest of a body is not looked at. */
const BODY_START_BYTES = 4_096

class Connection {
  readonly #socket: Socket<Connection>
  readonly #upstream: Upstream
  readonly reader: MessageReader
  #surface: Surface = 'chat'
  #bodyStart = ''
  /** What the socket would not take yet, in order. */
  #unsent: Buffer[] = []
  #events: Buffer[] = []
  #nextEvent = 0

  constructor(socket: Socket<Connection>, upstream: Upstream) {
    this.#socket = socket
    this.#upstream = upstream
    this.reader = new MessageReader({
      head: (head) => {
        this.#surface = head.startsWith('POST /v1/messages') ? 'messages' : 'chat'
        this.#bodyStart = ''
      },
      body: (bytes) => {
        const wanted = BODY_START_BYTES - this.#bodyStart.length
        if (wanted > 0) this.#bodyStart += Buffer.from(bytes.subarray(0, wanted)).toString('latin1')
      },
      end: () => this.#answer(),
    })
  }

  #answer(): void {
    const mark = /\[events=(\d+)\]/.exec(this.#bodyStart)
    if (!mark) {
      this.#write(this.#upstream.json[this.#surface])
      return
    }
    this.#events = this.#upstream.stream(this.#surface, Number(mark[1]))
    this.#nextEvent = 0
    this.#upstream.streaming.add(this)
    this.writeEvent()
    this.#upstream.keepTicking()
  }

  writeEvent(): void {
    const event = this.#events[this.#nextEvent++]
    if (event) this.#write(event)
    if (this.#nextEvent >= this.#events.length) this.#upstream.streaming.delete(this)
  }

  #write(bytes: Buffer): void {
    if (this.#unsent.length > 0) {
      this.#unsent.push(bytes)
      return
    }
    const taken = this.#socket.write(bytes)
    if (taken < bytes.length) this.#unsent.push(bytes.subarray(Math.max(0, taken)))
  }

  drain(): void {
    const waiting = this.#unsent
    this.#unsent = []
    for (const bytes of waiting) this.#write(bytes)
  }
}

class Upstream {
  readonly json: Record<Surface, Buffer> = { chat: jsonReply('chat'), messages: jsonReply('messages') }
  readonly streaming = new Set<Connection>()
  readonly #streams = new Map<string, Buffer[]>()
  #timer: Timer | undefined

  stream(surface: Surface, events: number): Buffer[] {
    const key = `${surface} ${events}`
    const known = this.#streams.get(key)
    if (known) return known
    const built = streamReply(surface, events)
    this.#streams.set(key, built)
    return built
  }

  /** Ticks only while a stream runs, so that cells without streams are not disturbed. */
  keepTicking(): void {
    this.#timer ??= setInterval(() => {
      for (const connection of this.streaming) connection.writeEvent()
      if (this.streaming.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }, TICK_MS)
  }
}

function serve(): void {
  const upstream = new Upstream()
  const listener = Bun.listen<Connection>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.setNoDelay(true)
        socket.data = new Connection(socket, upstream)
      },
      data: (socket, bytes) => socket.data.reader.read(bytes),
      drain: (socket) => socket.data.drain(),
      close: (socket) => {
        upstream.streaming.delete(socket.data)
      },
      error: (socket) => {
        upstream.streaming.delete(socket.data)
      },
    },
  })
  console.log(`listening on http://127.0.0.1:${listener.port}`)
}

serve()
