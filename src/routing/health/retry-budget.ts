// How many extra attempts the whole process may make: a fifth of its requests, and a floor for quiet gateways. When
// everything is failing, trying each of many requests three times would make it worse.

import type { Clock } from '../../kernel/clock.ts'

/** Counted in fifths of a token, which add up exactly. */
const token = 5
const perRequest = 1
const max = 100 * token
/**
 * What even a gateway with hardly any traffic can spend; time refills it, since its few requests would not. Ten agents
 * whose only route fails twice spend it at once, and one agent cannot: two retries take a second or more. While
 * everything fails it adds two calls a second to the fifth, however many requests there are.
 */
const floor = 20 * token
const floorFifthMs = 100

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
