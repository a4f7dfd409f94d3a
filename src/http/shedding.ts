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
const windowMs = 5_000
/** A sample that comes later than this says that somebody was kept waiting. */
const lateMs = 100
/**
 * What part of the time the loop may stand still, and from where on nobody is let in; in between so many are turned away
 * as it is more. A few stalls, which one stranger can cause, are no reason to refuse everybody; a loop with more work
 * than time is late nearly always.
 */
const lateShareMin = 0.25
const lateShareMax = 0.75
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
  const stalls = new Stalls()
  let sampledMs = clock.monotonicMs()
  let workedBeforeMs = workedMs()
  let untilMemory = 0
  let rss = 0

  function sample(): void {
    const nowMs = clock.monotonicMs()
    const tookMs = nowMs - sampledMs
    const workedNowMs = workedMs()
    // To turn requests away helps against what they cause. Against a busy neighbour it only makes a delay a refusal.
    const isOwn = workedNowMs - workedBeforeMs >= tookMs * coreShare * ownShare
    stalls.add(nowMs, isOwn && tookMs - sampleMs > lateMs ? tookMs - sampleMs : 0)
    sampledMs = nowMs
    workedBeforeMs = workedNowMs
    if (untilMemory-- > 0) return
    untilMemory = memoryEverySamples
    rss = rssBytes()
  }
  const timer = setInterval(sample, sampleMs)
  timer.unref()

  function cause(): string | undefined {
    const excess = (stalls.share - lateShareMin) / (lateShareMax - lateShareMin)
    if (excess > 0 && random() < excess) return 'is too busy'
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

/** How much of the last seconds the loop stood still. */
class Stalls {
  /** 1 = all of it. */
  share = 0
  readonly #list: { readonly endedMs: number; readonly tookMs: number }[] = []

  /** 0 = none. Each takes its place on the clock, so that no more than fifty of them are known. */
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
export function memoryLimit(): number {
  const machine = totalmem()
  const constrained = process.constrainedMemory()
  return constrained > 0 && constrained < machine ? constrained : machine
}
