// How the ledger waits: between two attempts, and between two rounds of maintenance. Tests pass their own, so that none
// of them depends on how long something takes.

import { onTimer } from '../kernel/timers.ts'

export interface Pace {
  wait(milliseconds: number): Promise<void>
  /** Calls the work again and again, never twice at once; answers with how to stop. Must not keep a process alive. */
  every(milliseconds: number, work: () => Promise<unknown>): () => void
}

export const realPace: Pace = {
  wait: (milliseconds) => Bun.sleep(milliseconds),
  every: onTimer,
}
