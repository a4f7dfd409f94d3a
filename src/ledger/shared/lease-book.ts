// The leases of this replica, as it remembers them: what of each slice is still free to admit from, and what running
// requests hold of it. Decided at once, in memory; the rows in the database decide what may be charged.

import { assert } from '../../kernel/assert.ts'
import type { WalletId } from '../account.ts'

export interface Lease {
  readonly wallet: WalletId
  /** The number of the lease in this replica. */
  readonly epoch: bigint
  /** Free to admit from. */
  left: bigint
  /** What running requests hold, until the commit that ends them. */
  inUse: bigint
  /** By the monotonic clock: from then on others may take it back, so nothing more is admitted. */
  validUntilMs: number
  renewedMs: number
  /** What the wallet had beside all holds and slices when it was last looked at. */
  walletFree: bigint
  /** Another replica has asked for it. */
  isWanted: boolean
  /** Nothing more is admitted, and what requests give back goes to the wallet at once. */
  isClosing: boolean
  /** The row is gone: what is still running here has to be paid from the wallet itself. */
  isLost: boolean
}

/** What one request holds of a lease. */
export interface LeasedPart {
  readonly lease: Lease
  amount: bigint
  /** Whether it is still in the lease's `inUse`. */
  isCounted: boolean
}

export interface LeaseBook {
  /** undefined = not to be had from a lease: there is none, it ran out or is about to end. */
  take(wallet: WalletId, amount: bigint, room: bigint): LeasedPart | undefined
  raise(part: LeasedPart, more: bigint): boolean
  /** The request has ended, and `spent` of its part is gone. Once only; a second call changes nothing. */
  giveBack(part: LeasedPart, spent: bigint): void
  /** The request has ended, and nobody knows yet what of its part is gone: the next look at the row tells. */
  drop(part: LeasedPart): void
  add(lease: Lease): void
  lose(lease: Lease): void
  /** Closed and empty. */
  remove(lease: Lease): void
  find(wallet: WalletId): Lease | undefined
  all(): readonly Lease[]
}

export function createLeaseBook(monotonicMs: () => number): LeaseBook {
  const leases = new Map<WalletId, Lease>()
  const uncount = (part: LeasedPart): boolean => {
    if (!part.isCounted) return false
    part.isCounted = false
    part.lease.inUse -= part.amount
    assert(part.lease.inUse >= 0n, 'the parts of a lease do not add up')
    return true
  }
  const admits = (lease: Lease) =>
    !lease.isClosing && !lease.isWanted && !lease.isLost && monotonicMs() < lease.validUntilMs
  const remove = (lease: Lease) => {
    if (leases.get(lease.wallet) === lease) leases.delete(lease.wallet)
  }
  return {
    take(wallet, amount, room) {
      const lease = leases.get(wallet)
      if (lease === undefined || lease.left < room || !admits(lease)) return undefined
      lease.left -= amount
      lease.inUse += amount
      return { lease, amount, isCounted: true }
    },
    raise(part, more) {
      const { lease } = part
      if (!part.isCounted || lease.left < more || !admits(lease)) return false
      lease.left -= more
      lease.inUse += more
      part.amount += more
      return true
    },
    giveBack(part, spent) {
      if (uncount(part) && !part.lease.isClosing) part.lease.left += part.amount - spent
    },
    drop: uncount,
    add: (lease) => void leases.set(lease.wallet, lease),
    lose(lease) {
      lease.isLost = true
      remove(lease)
    },
    remove,
    find(wallet) {
      const lease = leases.get(wallet)
      if (lease?.isLost) remove(lease)
      return lease?.isLost ? undefined : lease
    },
    all: () => [...leases.values()].filter(({ isLost }) => !isLost),
  }
}
