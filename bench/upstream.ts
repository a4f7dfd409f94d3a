// The fake upstream every contender calls: answers from ready bytes, on raw sockets, so that it is never what is measured.
// At once, or after a wait spread as a provider's is. A stream's events leave apart, each as its own packet; without that
// pacing they arrive glued together under load and CPU per event would say how many were glued rather than what one costs.

import type { Socket } from 'bun'
import { systemClock } from '../src/kernel/clock.ts'
import { PATHS, type Surface } from './cells.ts'
import { MessageReader } from './http-framing.ts'
import { jsonReply, REFUSED, refusal, streamReply } from './upstream-replies.ts'

/** The first prompt starts with what to reply (`upstreamDirective`); the rest of a body is ignored. */
const BODY_START_BYTES = 4_096
// Sixteen quantiles of a log-normal spread around 1 (sigma 0.5), mixed: a wait of 300 ms is 120 to 760 ms, the same ones
// for every contender.
const SPREAD = [1, 0.46, 1.56, 0.82, 2.54, 0.64, 1.17, 0.73, 1.37, 0.39, 0.91, 1.85, 0.55, 1.08, 2.17, 1.27]

const SURFACES: readonly Surface[] = ['messages', 'responses', 'chat']

class Connection {
  readonly #socket: Socket<Connection>
  readonly #upstream: Upstream
  readonly reader: MessageReader
  isOpen = true
  #surface: Surface = 'chat'
  #bodyStart = ''
  /** Bytes that the socket would not take yet, in order. */
  #unsent: Buffer[] = []
  #writes: readonly Buffer[] = []
  #next = 0
  #paceMs = 1

  constructor(socket: Socket<Connection>, upstream: Upstream) {
    this.#socket = socket
    this.#upstream = upstream
    this.reader = new MessageReader({
      head: (head) => {
        this.#surface = SURFACES.find((surface) => head.startsWith(`POST ${PATHS[surface]}`)) ?? 'chat'
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
    const start = this.#bodyStart
    if (start.includes(REFUSED)) return this.#write(refusal())
    const stream = /\[events=(\d+) pace=(\d+) size=(\d+)\]/.exec(start)
    const wait = /\[wait=(\d+)\]/.exec(start)
    if (!stream && !wait) {
      this.#write(this.#upstream.json[this.#surface])
      return
    }
    this.#writes = stream
      ? this.#upstream.stream(this.#surface, Number(stream[1]), Number(stream[3]))
      : [this.#upstream.json[this.#surface]]
    this.#paceMs = Number(stream?.[2] ?? 1)
    this.#next = 0
    if (wait) this.#upstream.wake(this, Number(wait[1]) * this.#upstream.nextSpread())
    else this.writeNext()
  }

  /** Writes the next event and schedules the one after it. */
  writeNext(): void {
    const bytes = this.#writes[this.#next++]
    if (!bytes || !this.isOpen) return
    this.#write(bytes)
    if (this.#next < this.#writes.length) this.#upstream.wake(this, this.#paceMs)
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
  readonly json: Record<Surface, Buffer> = {
    chat: jsonReply('chat'),
    messages: jsonReply('messages'),
    responses: jsonReply('responses'),
  }
  readonly #streams = new Map<string, Buffer[]>()
  /** Who is to be woken in which millisecond; ten thousand slow streams cost no more than what is due. */
  readonly #due = new Map<number, Connection[]>()
  #timer: Timer | undefined
  #doneUntilMs = 0
  #waits = 0

  stream(surface: Surface, events: number, eventBytes: number): Buffer[] {
    const key = `${surface} ${events} ${eventBytes}`
    const known = this.#streams.get(key)
    if (known) return known
    const built = streamReply(surface, events, eventBytes)
    this.#streams.set(key, built)
    return built
  }

  nextSpread(): number {
    return SPREAD[this.#waits++ % SPREAD.length] ?? 1
  }

  wake(connection: Connection, afterMs: number): void {
    const now = Math.floor(systemClock.monotonicMs())
    if (!this.#timer) this.#doneUntilMs = now
    const at = Math.max(this.#doneUntilMs, now) + Math.max(1, Math.round(afterMs))
    const others = this.#due.get(at)
    if (others) others.push(connection)
    else this.#due.set(at, [connection])
    // Ticks only while someone waits, so that cells without streams are not disturbed.
    this.#timer ??= setInterval(() => this.#tick(), 1)
  }

  #tick(): void {
    const now = Math.floor(systemClock.monotonicMs())
    while (this.#doneUntilMs < now) {
      this.#doneUntilMs++
      const due = this.#due.get(this.#doneUntilMs)
      if (!due) continue
      this.#due.delete(this.#doneUntilMs)
      for (const connection of due) connection.writeNext()
    }
    if (this.#due.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
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
        socket.data.isOpen = false
      },
      error: (socket) => {
        socket.data.isOpen = false
      },
    },
  })
  console.log(`listening on http://127.0.0.1:${listener.port}`)
}

serve()
