// Puts the parts of a process that read or wait for the real world onto a simulated one: its clock, its timers, and for the
// length of a run the global timers and Math.random, which code of the ledger uses directly.

import type { Clock } from '../../src/kernel/clock.ts'
import type { Timers } from '../../src/ledger/ledger.ts'
import type { Dice } from './dice.ts'
import type { Scheduler, Turns } from './scheduler.ts'

/** `skewMs`: how far the wall clock of the process is off. */
export function virtualClock(scheduler: Scheduler, skewMs: number): Clock {
  const bootedAt = scheduler.now
  return { now: () => Math.floor(scheduler.now) + skewMs, monotonicMs: () => scheduler.now - bootedAt }
}

export function virtualPace(scheduler: Scheduler, owner: Turns): Timers {
  return {
    wait: (milliseconds) => scheduler.sleep(milliseconds, owner),
    endOfTurn: () => scheduler.turn(owner, 'ends its turn'),
    every(milliseconds, work) {
      let stopped = false
      let cancel = () => {}
      const arm = () => {
        if (stopped) return
        cancel = scheduler.after(milliseconds, owner, `every ${milliseconds} ms`, () => {
          // Not waited for here: its statements are separate turns.
          void Promise.resolve()
            .then(work)
            .catch(() => {})
            .finally(arm)
        })
      }
      arm()
      return () => {
        stopped = true
        cancel()
      }
    },
  }
}

/** `using globals = takeGlobals(…)`: until it is disposed of, no timer is real. */
export function takeGlobals(scheduler: Scheduler, dice: Dice): Disposable {
  const { setInterval: realSetInterval, clearInterval: realClearInterval } = globalThis
  const realRandom = Math.random
  const stops = new Map<object, () => void>()
  const virtualSetInterval = (work: () => void, milliseconds: number) => {
    const owner = scheduler.current
    const handle = {}
    const arm = () => {
      const cancel = scheduler.after(milliseconds, owner, 'interval', () => {
        arm()
        work()
      })
      stops.set(handle, cancel)
    }
    arm()
    return handle
  }
  const virtualClearInterval = (handle: object) => {
    stops.get(handle)?.()
    stops.delete(handle)
  }
  Object.assign(globalThis, { setInterval: virtualSetInterval, clearInterval: virtualClearInterval })
  Math.random = () => dice.unit()
  return {
    [Symbol.dispose]() {
      Object.assign(globalThis, { setInterval: realSetInterval, clearInterval: realClearInterval })
      Math.random = realRandom
    },
  }
}
