// Whether new generations are turned away before their body is read, because those that run would suffer: the event loop
// lags under our own work, memory runs out, or too many run already. Running streams are never touched, and probes never
// ask here.

import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'

export interface Shedding {
  /** Why a new generation is refused now; undefined = it is not. */
  refusal(): Failure | undefined
  /** Looks at the clock and, once a second, at the memory. */
  sample(): void
  close(): void
}

export interface SheddingDependencies {
  readonly clock: Clock
  /** A number in [0, 1). */
  random(): number
  /** Requests that are being answered. */
  running(): number
  readonly runningMax?: number
  /** What this process has in memory. */
  rssBytes?(): number
  readonly memoryBytesMax?: number
  /** What this process has worked so far, in all its threads. */
  workedMs?(): number
  /** How much of a core it may use, 1 = all of one. */
  readonly coreShare?: number
}

/** How often it looks. */
export const sampleMs = 20
/** Five seconds. */
const samples = 250
/** More than one sample in a hundred later than this: the 99th percentile is. */
const lateMs = 100
const lateMax = samples / 100
/** Late for reasons of its own: a process that worked less than this of what it may waited for others on its machine. */
const ownShare = 0.25

const memoryEverySamples = 50
const memoryShare = 0.85

/** A little different for everyone, or all would come back at once. */
const retryMinMs = 1_000
const retrySpreadMs = 2_000

/** Each takes some 100 KB at worst; more than this is no traffic but a fault of somebody's. */
const runningMaxDefault = 10_000

export function createShedding(deps: SheddingDependencies): Shedding {
  const { clock, random, running, runningMax = runningMaxDefault } = deps
  const { rssBytes = () => process.memoryUsage.rss(), memoryBytesMax = memoryLimit() } = deps
  const { workedMs = processWorkedMs, coreShare = readCoreShare() } = deps
  const lateness = new LatenessRing()
  let sampledMs = clock.monotonicMs()
  let workedBeforeMs = workedMs()
  let untilMemory = 0
  let rss = 0

  function sample(): void {
    const nowMs = clock.monotonicMs()
    const tookMs = nowMs - sampledMs
    const workedNowMs = workedMs()
    // To turn requests away helps against what they cause. Against a busy neighbour it only makes a delay a refusal.
    lateness.add(tookMs - sampleMs > lateMs && workedNowMs - workedBeforeMs >= tookMs * coreShare * ownShare)
    sampledMs = nowMs
    workedBeforeMs = workedNowMs
    if (untilMemory-- > 0) return
    untilMemory = memoryEverySamples
    rss = rssBytes()
  }
  const timer = setInterval(sample, sampleMs)
  timer.unref()

  function cause(): string | undefined {
    if (lateness.late > lateMax) return 'is too busy'
    if (rss > memoryBytesMax * memoryShare) return 'is short of memory'
    return running() > runningMax ? 'has too many requests running' : undefined
  }

  return {
    sample,
    refusal() {
      const why = cause()
      if (why === undefined) return undefined
      const retryAfterMs = Math.round(retryMinMs + random() * retrySpreadMs)
      return new Failure('OVERLOADED', `Tollgate ${why} to take this request. Retry in a moment.`, { retryAfterMs })
    },
    close: () => clearInterval(timer),
  }
}

/** How many of the last samples were late. */
class LatenessRing {
  late = 0
  readonly #ring = new Uint8Array(samples)
  #at = 0

  add(isLate: boolean): void {
    const value = isLate ? 1 : 0
    this.late += value - (this.#ring[this.#at] ?? 0)
    this.#ring[this.#at] = value
    this.#at = (this.#at + 1) % samples
  }
}

function processWorkedMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** A container with a quota stands still for the rest of each period, late by its own work though it is mostly idle. */
function readCoreShare(): number {
  try {
    const [quota, period] = readFileSync('/sys/fs/cgroup/cpu.max', 'utf8').split(' ').map(Number)
    const share = (quota ?? Number.NaN) / (period ?? Number.NaN)
    return share > 0 && share < 1 ? share : 1
  } catch {
    return 1
  }
}

/** Of the container, where there is one that limits it; else the machine's. */
function memoryLimit(): number {
  const machine = totalmem()
  const constrained = process.constrainedMemory()
  return constrained > 0 && constrained < machine ? constrained : machine
}
