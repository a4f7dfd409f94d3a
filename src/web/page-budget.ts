// How much of the gateway's time strangers may spend on pages and the catalog. Rendering a long list takes milliseconds
// in which no generation moves, so one is made at a time, with a breath between two, and a flood of views is refused.

import type { Clock } from '../kernel/clock.ts'
import { breathe } from '../telemetry/breathe.ts'

export interface PageBudget {
  /**
   * Runs it when its turn has come, and counts how long it took; undefined = too much was spent just now. It must not
   * wait for anything: others stand in line.
   */
  spend<Result>(run: () => Result): Promise<Awaited<Result> | undefined>
  /** The same for who is known, and never refused. */
  spendFreely<Result>(run: () => Result): Promise<Awaited<Result>>
}

/** Of every second. */
const shareMs = 250
/** What may be spent at once after a quiet time: 100 to 200 views of a list of 200 models. */
const burstMs = 2_000

export function createPageBudget(clock: Clock): PageBudget {
  let spentMs = 0
  let countedAt = clock.monotonicMs()
  const settle = (): number => {
    const now = clock.monotonicMs()
    spentMs = Math.max(0, spentMs - ((now - countedAt) * shareMs) / 1000)
    countedAt = now
    return now
  }
  const count = <Result>(run: () => Result): Result => {
    const from = settle()
    try {
      return run()
    } finally {
      spentMs += clock.monotonicMs() - from
    }
  }
  // Those who waited for the same thing would all run in one go, and nothing else in between.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <Result>(run: () => Result): Promise<Awaited<Result>> => {
    const done = last.then(run)
    last = done.then(breathe, breathe)
    return done as Promise<Awaited<Result>>
  }
  const admits = (): boolean => {
    settle()
    return spentMs < burstMs
  }
  return {
    // Looked at when its turn has come: of a thousand at once most were let in before the first has spent anything.
    spend: (run) => inTurn(() => (admits() ? count(run) : undefined)),
    spendFreely: (run) => inTurn(() => count(run)),
  }
}
