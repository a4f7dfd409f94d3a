// The load generator: a process of its own that sends prepared requests, in a closed loop (each connection again and
// again) or in an open one (so many begun per second, latency from when each was meant to begin), and prints one JSON
// line. It reads the contender's CPU time itself, at the very edges of the window.

import { systemClock } from '../src/kernel/clock.ts'
import { type Client, Counters, openClient } from './load-client.ts'
import { costOf } from './measure.ts'
import { percentile } from './statistics.ts'

export interface LoadPlan {
  readonly port: number
  readonly path: string
  /** One set for each caller and one body for each shape of request; requests take turns with both. */
  readonly headers: readonly Readonly<Record<string, string>>[]
  readonly bodies: readonly string[]
  /** How many of these turns were taken before; 0. */
  readonly turnsTaken?: number
  readonly connections: number
  /** 0 is a closed loop. */
  readonly arrivalsPerSecond: number
  readonly warmupMs: number
  readonly windowMs: number
  /** How long running requests may take to end after the window before their connections are cut; five seconds. */
  readonly drainMs?: number
  /** Root of the process tree whose cost is read. */
  readonly pid: number
  /** Events a whole stream must have at least; 0 for JSON replies. */
  readonly eventsExpected: number
}

export interface LoadResult {
  readonly seconds: number
  readonly requests: number
  readonly events: number
  /** Reads that carried bytes; events ÷ reads above 1 means events arrived glued together. */
  readonly reads: number
  readonly cpuMicros: number
  readonly rssBytes: number
  /** Whole request for JSON replies, first token for streams; null where none fell into the window. */
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  /** In an open loop: requests due in the window and without an answer some seconds after it. */
  readonly unanswered: number
  readonly errors: number
  readonly firstError: string | null
}

const DRAIN_MS = 5_000
/** Shares no factor with sizes in use, so that neighbours are not asked for one after the other. */
const STEP = 7_919
const CONNECTIONS_AT_FIRST = 32

class Generator {
  readonly counters = new Counters()
  readonly #plan: LoadPlan
  readonly #requests: readonly Buffer[]
  readonly #clients: Client[] = []
  readonly #idle: Client[] = []
  /** When the requests that wait for a connection were meant to begin. */
  readonly #waiting: number[] = []
  #opening = 0
  #sent: number
  #isStopping = false

  constructor(plan: LoadPlan) {
    this.#plan = plan
    this.#sent = plan.turnsTaken ?? 0
    this.#requests = preparedRequests(plan)
  }

  async open(): Promise<void> {
    const { connections, arrivalsPerSecond } = this.#plan
    const count = arrivalsPerSecond > 0 ? Math.min(CONNECTIONS_AT_FIRST, connections) : connections
    await Promise.all(Array.from({ length: count }, () => this.#openOne()))
  }

  /** Begins requests until stopped. */
  start(): void {
    const { arrivalsPerSecond } = this.#plan
    if (arrivalsPerSecond === 0) {
      for (const client of this.#clients) this.#send(client, systemClock.monotonicMs())
      return
    }
    const startedAt = systemClock.monotonicMs()
    let begun = 0
    const timer = setInterval(() => {
      if (this.#isStopping) return clearInterval(timer)
      const now = systemClock.monotonicMs()
      for (; ; begun++) {
        const meantAt = startedAt + (begun * 1000) / arrivalsPerSecond
        if (meantAt > now) return
        this.#arrive(meantAt)
      }
    }, 1)
  }

  /** Ends the load and tells how many requests of the window were left without an answer, each with its time so far. */
  async stop(): Promise<number> {
    this.#isStopping = true
    const drainUntil = systemClock.monotonicMs() + (this.#plan.drainMs ?? DRAIN_MS)
    const isBusy = () => this.#waiting.length > 0 || this.#clients.some((client) => !client.isIdle)
    while (isBusy() && systemClock.monotonicMs() < drainUntil) await Bun.sleep(5)
    let unanswered = 0
    if (this.#plan.arrivalsPerSecond > 0) {
      const running = this.#clients.filter((client) => !client.isIdle).map((client) => client.meantAtMs)
      // A stream that has begun has left its latency; only what has not even begun counts.
      const unbegun = this.#plan.eventsExpected > 0 ? this.#waiting : [...this.#waiting, ...running]
      const before = this.counters.latenciesMs.length
      for (const meantAt of unbegun) this.counters.took(meantAt)
      unanswered = this.counters.latenciesMs.length - before
    }
    for (const client of this.#clients) client.end()
    return unanswered
  }

  async #openOne(): Promise<void> {
    this.#opening++
    const { port, eventsExpected } = this.#plan
    try {
      const client = await openClient({ port, eventsExpected, counters: this.counters, free: (it) => this.#free(it) })
      this.#clients.push(client)
      if (this.#plan.arrivalsPerSecond > 0) this.#free(client)
    } catch (error) {
      this.counters.failed(`cannot connect: ${error}`)
    } finally {
      this.#opening--
    }
  }

  #arrive(meantAt: number): void {
    let client = this.#idle.pop()
    while (client && !client.isOpen) client = this.#idle.pop()
    if (client) return this.#send(client, meantAt)
    this.#waiting.push(meantAt)
    const open = this.#clients.reduce((count, { isOpen }) => count + Number(isOpen), this.#opening)
    if (open < this.#plan.connections) void this.#openOne()
  }

  #free(client: Client): void {
    if (this.#plan.arrivalsPerSecond === 0) {
      if (!this.#isStopping) this.#send(client, systemClock.monotonicMs())
      return
    }
    const meantAt = this.#waiting.shift()
    if (meantAt === undefined) this.#idle.push(client)
    else this.#send(client, meantAt)
  }

  #send(client: Client, meantAt: number): void {
    const request = this.#requests[(this.#sent++ * STEP) % this.#requests.length]
    if (request) client.send(request, meantAt)
  }
}

export async function generateLoad(plan: LoadPlan): Promise<LoadResult> {
  const generator = new Generator(plan)
  const { counters } = generator
  await generator.open()
  generator.start()
  await Bun.sleep(plan.warmupMs)
  const startedAt = systemClock.monotonicMs()
  const window = { fromMs: startedAt, untilMs: Number.POSITIVE_INFINITY }
  counters.restart(plan.arrivalsPerSecond > 0 ? window : undefined)
  const before = costOf(plan.pid)
  await Bun.sleep(plan.windowMs)
  const after = costOf(plan.pid)
  window.untilMs = systemClock.monotonicMs()
  const { requests, events, reads, latenciesMs } = counters
  const closedLatencies = [...latenciesMs]
  const unanswered = await generator.stop()
  // In a closed loop what ends after the window no longer counts; in an open one it is the very thing that must not be left out.
  const latencies = plan.arrivalsPerSecond > 0 ? counters.latenciesMs : closedLatencies
  return {
    seconds: (window.untilMs - startedAt) / 1000,
    requests,
    events,
    reads,
    cpuMicros: after.cpuMicros - before.cpuMicros,
    rssBytes: after.rssBytes,
    p50Ms: latencies.length > 0 ? percentile(latencies, 50) : null,
    p99Ms: latencies.length > 0 ? percentile(latencies, 99) : null,
    unanswered,
    errors: counters.errors,
    firstError: counters.firstError,
  }
}

function preparedRequests(plan: LoadPlan): Buffer[] {
  const bodies = plan.bodies.map((text) => ({ text, bytes: Buffer.byteLength(text) }))
  const heads = plan.headers.map((headers) => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    return `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\n${lines.join('')}content-length: `
  })
  return Array.from({ length: Math.max(heads.length, bodies.length) }, (_, at) => {
    const body = bodies[at % bodies.length]
    return Buffer.from(`${heads[at % heads.length]}${body?.bytes}\r\n\r\n${body?.text}`)
  })
}

if (import.meta.main) {
  const plan = JSON.parse(await Bun.stdin.text()) as LoadPlan
  console.log(JSON.stringify(await generateLoad(plan)))
  process.exit(0)
}
