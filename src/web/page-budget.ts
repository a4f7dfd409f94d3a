// How much of the gateway's time strangers may spend on pages and the catalog. Rendering a long list takes milliseconds
// in which no generation moves, so one is made at a time, with a breath between two, and a flood of views is refused.
// Who is known stands in a line of their own, so that a flood of strangers holds them up by one page at most.

import type { Clock } from '../kernel/clock.ts'
import { breathe } from '../telemetry/breathe.ts'

export interface PageBudget {
  /**
   * Runs it when its turn has come, and counts how long it took; undefined = too much was spent just now. What it
   * returns is not waited for by who stands behind: work that goes on later is to be a further turn.
   */
  spend<Result>(run: () => Result): Promise<Awaited<Result> | undefined>
  /** The rest of what was begun so: in the same line, counted, and not refused any more. */
  finish<Result>(run: () => Result): Promise<Awaited<Result>>
  /** For who is known: in the other line, never refused, and nothing that strangers lack afterwards. */
  spendFreely<Result>(run: () => Result): Promise<Awaited<Result>>
}

/** Of every second. */
const shareMs = 250
/** What may be spent at once after a quiet time: 100 to 200 views of a list of 200 models. */
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
    // Looked at when its turn has come: of a thousand at once most were let in before the first has spent anything.
    spend: (run) => inTurn('strangers', () => (admits() ? count(run) : undefined)),
    finish: (run) => inTurn('strangers', () => count(run)),
    spendFreely: (run) => inTurn('known', run),
  }
}

type Line = 'strangers' | 'known'

/** One at a time from two lines by turns, with a breath between two: those who wait for the same would run in one go. */
function createTurns() {
  const lines: Readonly<Record<Line, (() => void)[]>> = { strangers: [], known: [] }
  let isServing = false
  let last: Line = 'strangers'
  const next = (): (() => void) | undefined => {
    const other = last === 'known' ? 'strangers' : 'known'
    last = lines[other].length > 0 ? other : last
    return lines[last].shift()
  }
  const serve = async (): Promise<void> => {
    if (isServing) return
    isServing = true
    // Never inside whatever the one who asks is doing.
    await Promise.resolve()
    for (let run = next(); run; run = next()) {
      run()
      await breathe()
    }
    isServing = false
  }
  return <Result>(line: Line, run: () => Result): Promise<Awaited<Result>> => {
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<Result>>()
    lines[line].push(() => {
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
