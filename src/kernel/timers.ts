// Background work, and time limits. Tests pass their own `Every`, so that none of them waits for a timer.

import { systemClock } from './clock.ts'

/** Runs work repeatedly in the background, never twice at once. Returns a function that stops it. */
export type Every = (milliseconds: number, work: () => unknown) => () => void

/** Does not keep the process alive. */
export const onTimer: Every = (milliseconds, work) => {
  let isRunning = false
  const timer = setInterval(async () => {
    if (isRunning) return
    isRunning = true
    try {
      await work()
    } finally {
      isRunning = false
    }
  }, milliseconds)
  timer.unref()
  return () => clearInterval(timer)
}

/**
 * Rounds of background work, one after another. A round that fails is reported, and the next one tries again. `close`
 * waits for the current round; a long one checks `isClosed` in between.
 */
export function createRounds<Result>(
  { milliseconds, every = onTimer, onFault }: RoundOptions,
  round: (isClosed: () => boolean) => Promise<Result>,
) {
  let closed = false
  let running: Promise<Result | undefined> = Promise.resolve(undefined)
  const run = (): Promise<Result | undefined> => {
    running = running.then(() => round(() => closed)).catch((error) => void onFault(error))
    return running
  }
  const stop = every(milliseconds, run)
  return {
    run,
    async close(): Promise<void> {
      closed = true
      stop()
      await running
    },
  }
}

interface RoundOptions {
  readonly milliseconds: number
  readonly every?: Every | undefined
  onFault(error: unknown): void
}

/**
 * Lets waiting work run. Call it between pieces of synchronous work: SQLite is read on this thread, so several reads in a
 * row would hold up every running request.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A turn of the event loop with nothing else in it takes a few hundredths of this. */
const othersMs = 0.1
const pauseMs = 4

/**
 * Call it between the pieces of a long read: it pauses if other work was waiting. Without that, the read would take the rest of
 * the thread, and each step of each request would wait for a piece.
 */
export async function giveWay(): Promise<void> {
  const startedMs = systemClock.monotonicMs()
  await yieldToEventLoop()
  if (systemClock.monotonicMs() - startedMs > othersMs) await Bun.sleep(pauseMs)
}

export class OutOfTime extends Error {
  override readonly name = 'OutOfTime'
}

/** Rejects with OutOfTime if the work takes longer. The work itself goes on. */
export async function withinTime<Value>(milliseconds: number, work: Value | Promise<Value>): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new OutOfTime(`no answer within ${milliseconds} ms`)), milliseconds)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
