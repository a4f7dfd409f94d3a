// Holds many streams open at a time on raw sockets and tells, line by line, what has become of them: `{"open": …}` when
// all have begun, and the totals when all have ended. Slow readers take one read at a time. Cheap on purpose: it
// looks for the last bytes of each stream and counts nothing else.

import type { Socket } from 'bun'
import { systemClock } from '../src/kernel/clock.ts'

export interface StreamPlan {
  readonly port: number
  readonly request: string
  readonly streams: number
  /** How many are begun in a second. */
  readonly perSecond: number
  /** For so long one read every fifth of a second, so that what is sent piles up somewhere; 0 reads as fast as it comes. */
  readonly slowMs: number
  /** How long the missing ones are waited for. */
  readonly waitMsMax: number
}

export interface StreamTotals {
  readonly open: number
  readonly ended: number
  readonly errors: number
  readonly firstError: string | null
  readonly bytes: number
}

interface Reader {
  hasBegun: boolean
  isDone: boolean
  /** The last bytes, to recognize the end even when it comes in two pieces. */
  tail: string
}

const END = '\r\n0\r\n\r\n'
const SLOW_TICK_MS = 200

class Streams {
  readonly #plan: StreamPlan
  readonly #sockets: Socket<Reader>[] = []
  #isSlow = false
  open = 0
  ended = 0
  errors = 0
  bytes = 0
  firstError: string | null = null

  constructor(plan: StreamPlan) {
    this.#plan = plan
  }

  async begin(): Promise<void> {
    const startedAt = systemClock.monotonicMs()
    this.#isSlow = this.#plan.slowMs > 0
    for (let begun = 0; begun < this.#plan.streams; begun++) {
      void this.#beginOne()
      const aheadMs = startedAt + (begun * 1000) / this.#plan.perSecond - systemClock.monotonicMs()
      if (aheadMs > 1) await Bun.sleep(aheadMs)
    }
    await this.#until(() => this.open + this.errors >= this.#plan.streams)
    if (this.#plan.slowMs > 0) await this.#readSlowly()
  }

  async end(): Promise<void> {
    await this.#until(() => this.ended + this.errors >= this.#plan.streams)
    for (const socket of this.#sockets) {
      if (!socket.data.isDone) this.#failed(socket, 'did not end')
      socket.end()
    }
  }

  totals(): StreamTotals {
    const { open, ended, errors, firstError, bytes } = this
    return { open, ended, errors, firstError, bytes }
  }

  async #until(isReached: () => boolean): Promise<void> {
    const giveUpAt = systemClock.monotonicMs() + this.#plan.waitMsMax
    while (!isReached() && systemClock.monotonicMs() < giveUpAt) await Bun.sleep(20)
  }

  async #beginOne(): Promise<void> {
    try {
      const socket = await Bun.connect<Reader>({
        hostname: '127.0.0.1',
        port: this.#plan.port,
        data: { hasBegun: false, isDone: false, tail: '' },
        socket: {
          open: (opened) => {
            opened.write(this.#plan.request)
          },
          data: (reading, bytes) => this.#read(reading, bytes),
          close: (closed) => this.#failed(closed, 'closed before its end'),
          error: (broken, error) => this.#failed(broken, error.message),
        },
      })
      this.#sockets.push(socket)
    } catch (error) {
      this.errors++
      this.firstError ??= `cannot connect: ${error instanceof Error ? error.message : String(error)}`
    }
  }

  #read(socket: Socket<Reader>, bytes: Buffer): void {
    const { data } = socket
    if (this.#isSlow) socket.pause()
    this.bytes += bytes.length
    if (!data.hasBegun) {
      data.hasBegun = true
      const start = bytes.toString('latin1', 0, 400)
      if (!start.startsWith('HTTP/1.1 200')) return this.#failed(socket, start.replace(/\s+/g, ' '))
      this.open++
    }
    data.tail = (data.tail + bytes.toString('latin1', Math.max(0, bytes.length - END.length))).slice(-END.length)
    if (data.tail !== END || data.isDone) return
    data.isDone = true
    this.ended++
  }

  #failed(socket: Socket<Reader>, reason: string): void {
    if (socket.data.isDone) return
    socket.data.isDone = true
    this.errors++
    this.firstError ??= reason
  }

  async #readSlowly(): Promise<void> {
    const resume = () => {
      for (const socket of this.#sockets) if (!socket.data.isDone) socket.resume()
    }
    const timer = setInterval(resume, SLOW_TICK_MS)
    await Bun.sleep(this.#plan.slowMs)
    clearInterval(timer)
    this.#isSlow = false
    resume()
  }
}

if (import.meta.main) {
  const plan = JSON.parse(await Bun.stdin.text()) as StreamPlan
  const streams = new Streams(plan)
  await streams.begin()
  console.log(JSON.stringify(streams.totals()))
  await streams.end()
  console.log(JSON.stringify(streams.totals()))
  process.exit(0)
}
