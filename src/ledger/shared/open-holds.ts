// The list of the holds that are open in this replica, in the order in which they were held, and their sum. It is what
// this process remembers; the rows in the database decide.

import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Budget } from '../budget.ts'
import type { HoldRequest } from '../ledger.ts'
import type { HoldStats } from '../stats.ts'
import type { LeasedPart } from './lease-book.ts'

export interface OpenHold {
  readonly workspaceId: WorkspaceId
  readonly budgets: readonly Budget[]
  readonly heldAt: number
  amount: bigint
  /** What of the amount is part of a lease. */
  readonly leased: LeasedPart | undefined
  /** Whether the rest is a row in the database. */
  hasRow: boolean
  /** Of what has no row: whether the body has gone upstream, and when the hold is over. */
  sent: boolean
  readonly expiresAtMs: number
  readonly request: HoldRequest
  /** Not taken out yet. */
  listed: boolean
}

export interface OpenHolds {
  add(requestId: RequestId, hold: Omit<OpenHold, 'listed'>): void
  find(requestId: RequestId): OpenHold | undefined
  /** Also of one that was taken out since. */
  raise(hold: OpenHold, more: bigint): void
  /** Out of the list, so that nobody else here ends it. */
  take(requestId: RequestId): OpenHold | undefined
  /** Those with a part of a lease that are past their lifetime. */
  expired(nowMs: number): readonly (readonly [RequestId, OpenHold])[]
  stats(): HoldStats
}

export function createOpenHolds(): OpenHolds {
  const holds = new Map<RequestId, OpenHold>()
  let total = 0n
  return {
    add(requestId, hold) {
      holds.set(requestId, { ...hold, listed: true })
      total += hold.amount
    },
    find: (requestId) => holds.get(requestId),
    raise(hold, more) {
      hold.amount += more
      if (hold.listed) total += more
    },
    take(requestId) {
      const hold = holds.get(requestId)
      if (!hold) return undefined
      holds.delete(requestId)
      hold.listed = false
      total -= hold.amount
      return hold
    },
    expired: (nowMs) => [...holds].filter(([, hold]) => hold.leased !== undefined && hold.expiresAtMs < nowMs),
    stats() {
      const oldest = holds.values().next().value
      return { openHolds: holds.size, heldTotal: total as Nano, oldestHoldAt: oldest?.heldAt }
    },
  }
}
