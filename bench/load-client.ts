// One connection of the load generator: sends prepared requests on a raw socket, counts events, and says when it is free
// again. When to send is not its matter.

import type { Socket } from 'bun'
import { systemClock } from '../src/kernel/clock.ts'
import { MessageReader } from './http-framing.ts'
import { TOKEN } from './upstream-replies.ts'

const LF = 10

export class Counters {
  requests = 0
  events = 0
  /** Reads that carried bytes. */
  reads = 0
  errors = 0
  firstError: string | null = null
  latenciesMs: number[] = []
  /** Requests meant to begin outside of it leave no latency. */
  window: { readonly fromMs: number; untilMs: number } | undefined

  restart(window: { readonly fromMs: number; untilMs: number } | undefined): void {
    this.requests = this.events = this.reads = 0
    this.latenciesMs = []
    this.window = window
  }

  failed(reason: string): void {
    this.errors++
    this.firstError ??= reason
  }

  took(meantAtMs: number): void {
    const { window } = this
    if (window && (meantAtMs < window.fromMs || meantAtMs >= window.untilMs)) return
    this.latenciesMs.push(systemClock.monotonicMs() - meantAtMs)
  }
}

export interface ClientPlan {
  readonly port: number
  /** Events a whole stream must have at least; 0 for JSON replies. */
  readonly eventsExpected: number
  readonly counters: Counters
  /** Called when an answer has ended, well or not; not when the connection is lost. */
  free(client: Client): void
}

export class Client {
  readonly #socket: Socket<Client>
  readonly #plan: ClientPlan
  readonly reader: MessageReader
  isIdle = true
  isOpen = true
  /** When the running request was meant to begin, which in an open loop may be before it could. */
  meantAtMs = 0
  #unsent: Buffer | undefined
  #eventsSeen = 0
  #hasToken = false
  #endedOnLineFeed = false
  #status = ''
  #bodyStart = ''

  constructor(socket: Socket<Client>, plan: ClientPlan) {
    this.#socket = socket
    this.#plan = plan
    this.reader = new MessageReader({
      head: (head) => {
        this.#status = head.slice(9, 12)
      },
      body: (bytes) => this.#readBody(bytes),
      end: () => this.#finish(),
    })
  }

  send(request: Buffer, meantAtMs: number): void {
    this.isIdle = false
    this.#eventsSeen = 0
    this.#hasToken = false
    this.#endedOnLineFeed = false
    this.#bodyStart = ''
    this.meantAtMs = meantAtMs
    this.#write(request)
  }

  drain(): void {
    if (this.#unsent) this.#write(this.#unsent)
  }

  lost(): void {
    this.isOpen = false
    if (!this.isIdle) this.#plan.counters.failed('connection closed during a request')
    this.isIdle = true
  }

  /** Cut by us, so a request that still runs is no error. */
  end(): void {
    this.isIdle = true
    this.#socket.end()
  }

  #write(bytes: Buffer): void {
    const taken = this.#socket.write(bytes)
    this.#unsent = taken < bytes.length ? bytes.subarray(Math.max(0, taken)) : undefined
  }

  #readBody(bytes: Uint8Array): void {
    if (this.#status !== '200') {
      if (this.#bodyStart.length < 300) this.#bodyStart += Buffer.from(bytes).toString('utf8')
      return
    }
    const { eventsExpected, counters } = this.#plan
    if (eventsExpected === 0) return
    const events = this.#countEvents(bytes)
    if (!this.#hasToken && includes(bytes, TOKEN)) {
      this.#hasToken = true
      counters.took(this.meantAtMs)
    }
    this.#eventsSeen += events
    counters.events += events
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
    const { eventsExpected, counters } = this.#plan
    if (this.#status !== '200') counters.failed(`status ${this.#status}: ${this.#bodyStart.slice(0, 300)}`)
    else if (this.#eventsSeen < eventsExpected) counters.failed(`${this.#eventsSeen} of ${eventsExpected} events`)
    else {
      counters.requests++
      if (eventsExpected === 0) counters.took(this.meantAtMs)
    }
    this.isIdle = true
    this.#plan.free(this)
  }
}

function includes(bytes: Uint8Array, text: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(text)
}

export function openClient(plan: ClientPlan): Promise<Client> {
  return new Promise((resolve, reject) => {
    Bun.connect<Client>({
      hostname: '127.0.0.1',
      port: plan.port,
      socket: {
        open(socket) {
          socket.setNoDelay(true)
          socket.data = new Client(socket, plan)
          resolve(socket.data)
        },
        data(socket, bytes) {
          plan.counters.reads++
          socket.data.reader.read(bytes)
        },
        drain: (socket) => socket.data.drain(),
        close: (socket) => socket.data?.lost(),
        error: (_socket, error) => plan.counters.failed(error.message),
      },
    }).catch(reject)
  })
}
