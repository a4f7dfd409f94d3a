// Limits the time that anonymous visitors may use for pages and the catalog. Rendering a long list blocks the event loop for
// milliseconds, so pages are rendered one at a time with a yield between them, and a flood is refused. Signed-in users have
// their own queue, so a flood of visitors delays them by one page at most.

import type { Clock } from '../kernel/clock.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'

export interface PageBudget {
  /**
   * Runs when its turn comes and counts the time; undefined = the budget is exhausted. The queue does not wait for a
   * returned promise: later work has to queue again.
   */
  spend<Result>(run: () => Result): Promise<Awaited<Result> | undefined>
  /** For the rest of work started by `spend`: the same queue, counted, never refused. */
  finish<Result>(run: () => Result): Promise<Awaited<Result>>
  /** For signed-in users: their own queue, not counted, never refused. */
  spendFreely<Result>(run: () => Result): Promise<Awaited<Result>>
}

/** Per second. */
const shareMs = 250
/** After a quiet period: 100 to 200 views of a list of 200 models. */
const burstMs = 2_000

export function createPageBudget(clock: Clock): PageBudget {
  const inTurn = createTurns()
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
  const admits = (): boolean => {
    settle()
    return spentMs < burstMs
  }
  return {
    // Checked at its turn: of a thousand concurrent views most would be admitted before the first has used any time.
    spend: (run) => inTurn('visitors', () => (admits() ? count(run) : undefined)),
    finish: (run) => inTurn('visitors', () => count(run)),
    spendFreely: (run) => inTurn('users', run),
  }
}

type Queue = 'visitors' | 'users'

/** One at a time, alternating between the queues, with a yield between two. */
function createTurns() {
  const queues: Readonly<Record<Queue, (() => void)[]>> = { visitors: [], users: [] }
  let isServing = false
  let last: Queue = 'visitors'
  const next = (): (() => void) | undefined => {
    const other = last === 'users' ? 'visitors' : 'users'
    last = queues[other].length > 0 ? other : last
    return queues[last].shift()
  }
  const serve = async (): Promise<void> => {
    if (isServing) return
    isServing = true
    // Never runs synchronously in the caller.
    await Promise.resolve()
    for (let run = next(); run; run = next()) {
      run()
      await yieldToEventLoop()
    }
    isServing = false
  }
  return <Result>(queue: Queue, run: () => Result): Promise<Awaited<Result>> => {
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<Result>>()
    queues[queue].push(() => {
      try {
        resolve(run() as Awaited<Result>)
      } catch (error) {
        reject(error)
      }
    })
    void serve()
    return promise
  }
}
