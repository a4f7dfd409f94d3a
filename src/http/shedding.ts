// Load shedding: refuses new generations before their body is read when running ones would suffer, because the event loop
// lags under our own work, memory runs low, or too many are running. Running streams are never touched, and health probes
// are not affected.

import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'

export interface SheddingDependencies {
  /** Measures the delay of the event loop; absent = no request is refused for it. */
  readonly clock?: Clock | undefined
  /** A number in [0, 1). */
  random(): number
  readonly runningMax: number
  rssBytes?(): number
  readonly memoryBytesMax?: number
  /** CPU time of this process so far, in all its threads. */
  workedMs?(): number
  /** The share of a core it may use, 1 = a whole one. */
  readonly coreShare?: number
}

/** The sampling interval. */
export const sampleMs = 20
const windowMs = 5_000
/** A sample later than this means that requests were kept waiting. */
const lateMs = 100
/**
 * The share of time the loop may stall before requests are refused, and the share from which all are; in between the
 * probability rises linearly. A few stalls, which one client can cause, are no reason to refuse everyone; an overloaded
 * loop is late nearly always.
 */
const lateShareMin = 0.25
const lateShareMax = 0.75
/** A stall counts as our own only if the process used at least this share of its CPU; otherwise a neighbour caused it. */
const ownShare = 0.25

const memoryEverySamples = 50
const memoryShare = 0.85

/** Randomised, so that clients do not all come back at once. */
const retryMinMs = 1_000
const retrySpreadMs = 2_000

/** Never late. */
const stillClock: Clock = { now: () => 0, monotonicMs: () => 0 }

export function createShedding(deps: SheddingDependencies) {
  const { clock = stillClock, random, runningMax } = deps
  const { rssBytes = () => process.memoryUsage.rss(), memoryBytesMax = memoryLimit() } = deps
  const { workedMs = processWorkedMs, coreShare = readCoreShare() } = deps
  const stalls = new Stalls()
  let sampledMs = clock.monotonicMs()
  let workedBeforeMs = workedMs()
  let untilMemory = 0
  let rss = 0

  /** Reads the clock and, once a second, the memory. */
  function sample(): void {
    const nowMs = clock.monotonicMs()
    const tookMs = nowMs - sampledMs
    const workedNowMs = workedMs()
    // Refusing requests only helps against load they cause. Against a busy neighbour it turns a delay into an error.
    const isOwn = workedNowMs - workedBeforeMs >= tookMs * coreShare * ownShare
    stalls.add(nowMs, isOwn && tookMs - sampleMs > lateMs ? tookMs - sampleMs : 0)
    sampledMs = nowMs
    workedBeforeMs = workedNowMs
    if (untilMemory-- > 0) return
    untilMemory = memoryEverySamples
    try {
      rss = rssBytes()
    } catch {
      // It is read from a file, and there may be no descriptor left to open one. The last reading stays.
    }
  }
  const timer = setInterval(sample, sampleMs)
  timer.unref()

  function cause(running: number): string | undefined {
    const excess = (stalls.share - lateShareMin) / (lateShareMax - lateShareMin)
    if (excess > 0 && random() < excess) return 'is too busy'
    if (rss > memoryBytesMax * memoryShare) return 'is too short of memory'
    return running > runningMax ? 'has too many requests running' : undefined
  }

  return {
    sample,
    /** Why a new generation is refused now, while so many requests are answered; undefined = it is accepted. */
    refusal(running: number): Failure | undefined {
      const why = cause(running)
      if (why === undefined) return undefined
      const retryAfterMs = Math.round(retryMinMs + random() * retrySpreadMs)
      return new Failure('OVERLOADED', `Tollgate ${why} to take this request. Retry in a moment.`, { retryAfterMs })
    },
    /** Whether the event loop was late at all in the last seconds, or memory is short: a reason to begin nothing that can wait. */
    isStrained: () => stalls.share > 0 || rss > memoryBytesMax * memoryShare,
    close: () => clearInterval(timer),
  }
}

/** The share of the last seconds the loop was stalled. */
class Stalls {
  /** 1 = all of it. */
  share = 0
  readonly #list: { readonly endedMs: number; readonly tookMs: number }[] = []

  /** 0 = none. Each lasts more than 100 ms, so at most fifty fit into the window. */
  add(nowMs: number, tookMs: number): void {
    if (tookMs > 0) this.#list.push({ endedMs: nowMs, tookMs })
    while (this.#list[0] && this.#list[0].endedMs <= nowMs - windowMs) this.#list.shift()
    this.share = this.#list.reduce((sum, stall) => sum + stall.tookMs, 0) / windowMs
  }
}

function processWorkedMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** A container with a CPU quota is stopped for the rest of each period, so its stalls come with little CPU time. */
function readCoreShare(): number {
  try {
    const [quota, period] = readFileSync('/sys/fs/cgroup/cpu.max', 'utf8').split(' ').map(Number)
    const share = (quota ?? Number.NaN) / (period ?? Number.NaN)
    return share > 0 && share < 1 ? share : 1
  } catch {
    return 1
  }
}

/** The container's limit if it has one, otherwise the machine's memory. */
export function memoryLimit(): number {
  const machine = totalmem()
  const constrained = process.constrainedMemory()
  return constrained > 0 && constrained < machine ? constrained : machine
}
