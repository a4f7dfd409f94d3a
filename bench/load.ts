// The load generator: a process of its own that keeps N connections busy in a closed loop on raw sockets, with the request
// prepared once, and prints one JSON line. It reads the contender's CPU time itself, at the very edges of the window.

import type { Socket } from 'bun'
import { systemClock } from '../src/kernel/clock.ts'
import { MessageReader } from './http-framing.ts'
import { costOf } from './measure.ts'
import { percentile } from './statistics.ts'

export interface LoadPlan {
  readonly port: number
  readonly path: string
  /** One set for each caller; connections take turns with them. */
  readonly headers: readonly Readonly<Record<string, string>>[]
  readonly body: string
  readonly connections: number
  readonly warmupMs: number
  readonly windowMs: number
  /** Root of the process tree whose cost is read. */
  readonly pid: number
  /** Events a whole stream must have at least; 0 for JSON replies. */
  readonly eventsExpected: number
}

export interface LoadResult {
  readonly seconds: number
  readonly requests: number
  readonly events: number
  /** Reads that carried body bytes; events ÷ reads above 1 means events arrived glued together. */
  readonly reads: number
  readonly cpuMicros: number
  readonly rssBytes: number
  /** Whole request for JSON replies, first event for streams; null where none fell into the window. */
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly errors: number
  readonly firstError: string | null
}

/** How long running requests may take to end after the window before their connections are cut. */
const DRAIN_MS = 3_000
const LF = 10

class Counters {
  requests = 0
  events = 0
  reads = 0
  errors = 0
  firstError: string | null = null
  latenciesMs: number[] = []
  stopping = false

  restart(): void {
    this.requests = this.events = this.reads = 0
    this.latenciesMs = []
  }

  failed(reason: string): void {
    this.errors++
    this.firstError ??= reason
  }
}

class Client {
  readonly #socket: Socket<Client>
  readonly #plan: LoadPlan
  readonly #counters: Counters
  readonly #request: Buffer
  readonly reader: MessageReader
  idle = true
  #unsent: Buffer | undefined
  #startedAt = 0
  #eventsSeen = 0
  #endedOnLineFeed = false
  #status = ''
  #bodyStart = ''

  constructor(socket: Socket<Client>, plan: LoadPlan, counters: Counters, request: Buffer) {
    this.#socket = socket
    this.#plan = plan
    this.#counters = counters
    this.#request = request
    this.reader = new MessageReader({
      head: (head) => {
        this.#status = head.slice(9, 12)
      },
      body: (bytes) => this.#readBody(bytes),
      end: () => this.#finish(),
    })
  }

  send(): void {
    this.idle = false
    this.#eventsSeen = 0
    this.#endedOnLineFeed = false
    this.#bodyStart = ''
    this.#startedAt = systemClock.monotonicMs()
    this.#write(this.#request)
  }

  #write(bytes: Buffer): void {
    const taken = this.#socket.write(bytes)
    this.#unsent = taken < bytes.length ? bytes.subarray(Math.max(0, taken)) : undefined
  }

  drain(): void {
    if (this.#unsent) this.#write(this.#unsent)
  }

  #readBody(bytes: Uint8Array): void {
    if (this.#status !== '200') {
      if (this.#bodyStart.length < 300) this.#bodyStart += Buffer.from(bytes).toString('utf8')
      return
    }
    if (this.#plan.eventsExpected === 0) return
    const events = this.#countEvents(bytes)
    if (events > 0 && this.#eventsSeen === 0) this.#counters.latenciesMs.push(this.#elapsedMs())
    this.#eventsSeen += events
    this.#counters.events += events
  }

  /** Blank lines that end in these bytes; the last one's first line feed may have come with the bytes before. */
  #countEvents(bytes: Uint8Array): number {
    let count = 0
    let previous = this.#endedOnLineFeed ? -1 : -2
    for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) {
      if (at === previous + 1) {
        count++
        previous = -2
      } else previous = at
    }
    this.#endedOnLineFeed = previous === bytes.length - 1
    return count
  }

  #finish(): void {
    const { eventsExpected } = this.#plan
    if (this.#status !== '200') this.#counters.failed(`status ${this.#status}: ${this.#bodyStart.slice(0, 300)}`)
    else if (this.#eventsSeen < eventsExpected) {
      this.#counters.failed(`${this.#eventsSeen} of ${eventsExpected} events`)
    } else {
      this.#counters.requests++
      if (eventsExpected === 0) this.#counters.latenciesMs.push(this.#elapsedMs())
    }
    this.idle = true
    if (!this.#counters.stopping) this.send()
  }

  #elapsedMs(): number {
    return systemClock.monotonicMs() - this.#startedAt
  }
}

export async function generateLoad(plan: LoadPlan): Promise<LoadResult> {
  const counters = new Counters()
  const prepared = plan.headers.map((headers) => preparedRequest(plan, headers))
  const attempts = await Promise.allSettled(
    Array.from({ length: plan.connections }, (_, at) =>
      connect(plan, counters, prepared[at % prepared.length] as Buffer),
    ),
  )
  const sockets: Socket<Client>[] = []
  for (const attempt of attempts) {
    if (attempt.status === 'fulfilled') sockets.push(attempt.value)
    else counters.failed(`cannot connect: ${attempt.reason}`)
  }
  await Bun.sleep(plan.warmupMs)
  counters.restart()
  const startedAt = systemClock.monotonicMs()
  const before = costOf(plan.pid)
  await Bun.sleep(plan.windowMs)
  const after = costOf(plan.pid)
  const seconds = (systemClock.monotonicMs() - startedAt) / 1000
  const { requests, events, reads, latenciesMs } = counters
  counters.stopping = true
  const drainUntil = systemClock.monotonicMs() + DRAIN_MS
  while (sockets.some((socket) => !socket.data.idle) && systemClock.monotonicMs() < drainUntil) await Bun.sleep(5)
  for (const socket of sockets) socket.end()
  return {
    seconds,
    requests,
    events,
    reads,
    cpuMicros: after.cpuMicros - before.cpuMicros,
    rssBytes: after.rssBytes,
    p50Ms: latenciesMs.length > 0 ? percentile(latenciesMs, 50) : null,
    p99Ms: latenciesMs.length > 0 ? percentile(latenciesMs, 99) : null,
    errors: counters.errors,
    firstError: counters.firstError,
  }
}

function connect(plan: LoadPlan, counters: Counters, request: Buffer): Promise<Socket<Client>> {
  return Bun.connect<Client>({
    hostname: '127.0.0.1',
    port: plan.port,
    socket: {
      open(socket) {
        socket.setNoDelay(true)
        socket.data = new Client(socket, plan, counters, request)
        socket.data.send()
      },
      data(socket, bytes) {
        counters.reads++
        socket.data.reader.read(bytes)
      },
      drain: (socket) => socket.data.drain(),
      close: (socket) => {
        if (!socket.data.idle) counters.failed('connection closed during a request')
        socket.data.idle = true
      },
      error: (_socket, error) => counters.failed(error.message),
    },
  })
}

function preparedRequest(plan: LoadPlan, headers: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = Buffer.byteLength(plan.body)
  return Buffer.from(
    `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\n${lines.join('')}content-length: ${length}\r\n\r\n${plan.body}`,
  )
}

if (import.meta.main) {
  const plan = JSON.parse(await Bun.stdin.text()) as LoadPlan
  console.log(JSON.stringify(await generateLoad(plan)))
  process.exit(0)
}
