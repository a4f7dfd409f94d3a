// How many extra attempts the whole process may make: a fifth of its requests. When everything is failing, trying each
// request three times would make it worse.

import type { Clock } from '../../kernel/clock.ts'

/** Counted in fifths of a token, which add up exactly. */
const token = 5
const perRequest = 1
const max = 100 * token
/** So much even a gateway with hardly any traffic can spend; time brings it back, nothing else would. */
const floor = 3 * token
const floorFifthMs = 2_000

export interface RetryBudget {
  /** A request came in. */
  earn(): void
  /** Whether one more attempt may be made, which it then pays for. */
  spend(): boolean
  /** In tokens, for the gauge. */
  level(): number
  /** How often `spend` said no. */
  refused(): number
}

export function createRetryBudget({ clock }: { clock: Clock }): RetryBudget {
  let level = floor
  let refilledMs = clock.monotonicMs()
  let refused = 0

  function refill(): void {
    const fifths = Math.floor((clock.monotonicMs() - refilledMs) / floorFifthMs)
    refilledMs += fifths * floorFifthMs
    if (level < floor) level = Math.min(floor, level + fifths)
  }

  return {
    earn() {
      if (level < max) level += perRequest
    },
    spend() {
      refill()
      if (level < token) {
        refused++
        return false
      }
      level -= token
      return true
    },
    level() {
      refill()
      return level / token
    },
    refused: () => refused,
  }
}
