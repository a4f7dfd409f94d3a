// Decides which wallets this replica leases, and keeps the leases: taken when a wallet is hot, renewed every second with
// as much as the last second needed, given back when idle, thin or wanted by others. Each change has a turn of its own
// between batches, so that what is remembered and what is committed never change at the same time.

import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention, isRowLocked, isStoreUnavailable } from '../../store/sql-error.ts'
import type { WalletId } from '../account.ts'
import type { Gate } from '../gate.ts'
import type { BatchQueue } from './batch-queue.ts'
import { waitLess } from './busy-wallets.ts'
import { closeLease, type Renewed, renewLease, surplusOf, takeSlice } from './change-lease.ts'
import { commitEndOf } from './commit-end.ts'
import type { Owner } from './hold-rows.ts'
import type { Lease, LeaseBook } from './lease-book.ts'
import { LeaseHeat } from './lease-heat.ts'
import { type LeaseName, leaseLifetimeMs, readWanted } from './lease-rows.ts'
import type { LeaseTally } from './lease-tally.ts'

/** Whether others want a lease back is looked up this often. */
export const leaseRoundMs = 250
const renewMs = 1000
/** Before the row's time is over: what was admitted at the last moment still has a slice behind it. */
const marginMs = 500
const idleMaxMs = 2000
/** A slice that covers fewer holds than this is not worth having: the wallet is thin, and exact. */
const holdsLeast = 8n
const thinPauseMs = 1000
const wantedPauseMs = 5000
/** A slice that runs out between two rounds is renewed at once, but not more often than this. */
const earlyMs = 100

export interface LeaseKeeperOptions {
  readonly database: Database
  readonly clock: Clock
  readonly gate: Gate
  readonly queue: Pick<BatchQueue, 'alone'>
  readonly book: LeaseBook
  readonly leaseTally: LeaseTally
  /** A wallet is hot from so many holds in a second. */
  readonly hotHoldsPerSecond: number
  owner(): Owner
  onFault(what: string, error: unknown): void
}

export interface LeaseKeeper {
  /** Somebody holds from the wallet; whether from the lease or not. */
  note(wallet: WalletId, amount: bigint): void
  /** The lease could not serve a hold. */
  ranOut(wallet: WalletId): void
  /** To be called every `leaseRoundMs`. */
  round(): Promise<void>
  /** Gives back what is idle, and admits nothing from the wallet's lease any more. */
  close(wallet: WalletId): Promise<void>
  /** Gives back everything, whatever still runs. */
  leave(): Promise<void>
}

export function createLeaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  const { database, clock, gate, queue, book, leaseTally, hotHoldsPerSecond, owner, onFault } = options
  const heat = new LeaseHeat()
  const pausedUntilMs = new Map<WalletId, number>()
  const taking = new Set<WalletId>()
  let epoch = 0n
  const nowMs = () => clock.monotonicMs()
  const nameOf = ({ wallet, epoch }: Pick<Lease, 'wallet' | 'epoch'>): LeaseName => ({
    wallet,
    owner: owner().id,
    epoch,
  })
  /** Never for less long than before: a lease that was asked for is not taken again because it is closed at last. */
  const pause = (wallet: WalletId, forMs: number) =>
    void pausedUntilMs.set(wallet, Math.max(pausedUntilMs.get(wallet) ?? 0, nowMs() + forMs))

  /** As much as the last second's holds, and at least enough to be worth it. */
  const needOf = (wallet: WalletId) => {
    const { amount, average } = heat.of(wallet, nowMs())
    const least = holdsLeast * average
    return { want: amount > least ? amount : least, least }
  }

  const commit = async <T>(work: (sql: Sql) => Promise<T>): Promise<T> => {
    const end = gate.begin()
    try {
      const result = await database.transaction(async (sql) => {
        // In a turn everybody waits.
        await waitLess(sql)
        return await work(sql)
      })
      end('committed')
      return result
    } catch (thrown) {
      end(commitEndOf(thrown))
      throw thrown
    }
  }
  /** Nobody waits for a lease, and what failed is tried in another round; only the unexpected is told. */
  const turn = (what: string, work: () => Promise<void>): Promise<void> =>
    queue.alone(work).catch((thrown: unknown) => {
      if (!isStoreUnavailable(thrown) && !isContention(thrown)) onFault(what, thrown)
    })

  const take = async (wallet: WalletId): Promise<void> => {
    const begunMs = nowMs()
    const { want, least } = needOf(wallet)
    const name = nameOf({ wallet, epoch: ++epoch })
    const slice = await commit((sql) => takeSlice(sql, name, { want, least })).catch((thrown: unknown) => {
      // The next hold would try again, and everybody wait with it.
      if (!isRowLocked(thrown)) throw thrown
    })
    if (!slice) return pause(wallet, thinPauseMs)
    const flags = { isWanted: false, isClosing: false, isLost: false }
    const times = { renewedMs: begunMs, validUntilMs: begunMs + leaseLifetimeMs - marginMs }
    const { amount: left, walletFree } = slice
    book.add({ wallet, epoch: name.epoch, left, inUse: 0n, walletFree, ...times, ...flags })
    leaseTally.taken++
  }
  const renew = async (lease: Lease): Promise<void> => {
    if (lease.isLost || lease.isClosing) return
    const begunMs = nowMs()
    const { want: wantLeft, least } = needOf(lease.wallet)
    // First out of memory, then out of the row: between the two it is nobody's.
    lease.left -= surplusOf(lease.left, wantLeft, lease.walletFree)
    lease.renewedMs = begunMs
    const { inUse, left } = lease
    const more = wantLeft > left ? wantLeft - left : 0n
    const renewed: Renewed = await commit((sql) => renewLease(sql, nameOf(lease), { inUse, left, more }))
    if (renewed.kind === 'lost') return book.lose(lease)
    if (renewed.kind === 'wanted') return await giveUp(lease, wantedPauseMs)
    lease.left += renewed.grown
    lease.walletFree = renewed.walletFree
    lease.validUntilMs = begunMs + leaseLifetimeMs - marginMs
    if (left + inUse + renewed.grown < least) await giveUp(lease, thinPauseMs)
  }
  /** In a turn. Also keeps a lease alive that is closing already. */
  const giveUp = async (lease: Lease, pauseMs: number): Promise<void> => {
    lease.isClosing = true
    lease.left = 0n
    pause(lease.wallet, pauseMs)
    if (lease.isLost) return
    lease.renewedMs = nowMs()
    const { inUse } = lease
    await commit((sql) => closeLease(sql, nameOf(lease), inUse))
    if (inUse > 0n) return
    book.remove(lease)
    leaseTally.returned++
  }
  const close = async (wallet: WalletId) => {
    const lease = book.find(wallet)
    if (!lease) return
    lease.isWanted = true
    await turn('a lease could not be given back', () => giveUp(lease, wantedPauseMs))
  }
  const learnWanted = async () => {
    for (const { wallet_id: wallet, epoch } of await readWanted(database.sql, owner().id)) {
      const lease = book.find(wallet)
      if (lease?.epoch === epoch) lease.isWanted = true
    }
  }
  const look = (lease: Lease): Promise<void> | undefined => {
    const { idleMs } = heat.of(lease.wallet, nowMs())
    const isDue = nowMs() - lease.renewedMs >= renewMs
    if (lease.isClosing) return isDue || lease.inUse === 0n ? turn(closing, () => giveUp(lease, 0)) : undefined
    if (lease.isWanted) return turn(closing, () => giveUp(lease, wantedPauseMs))
    if (idleMs >= idleMaxMs) return turn(closing, () => giveUp(lease, 0))
    return isDue ? turn('a lease could not be renewed', () => renew(lease)) : undefined
  }

  return {
    note(wallet, amount) {
      const now = nowMs()
      heat.note(wallet, amount, now)
      if (book.find(wallet) || taking.has(wallet) || heat.of(wallet, now).holds < hotHoldsPerSecond) return
      if ((pausedUntilMs.get(wallet) ?? 0) > now) return
      taking.add(wallet)
      void turn('a lease could not be taken', () => take(wallet)).finally(() => taking.delete(wallet))
    },
    ranOut(wallet) {
      const lease = book.find(wallet)
      if (!lease || lease.isClosing || lease.isWanted || nowMs() - lease.renewedMs < earlyMs) return
      lease.renewedMs = nowMs()
      void turn('a lease could not be renewed', () => renew(lease))
    },
    async round() {
      const now = nowMs()
      heat.forgetIdle(now)
      for (const [wallet, untilMs] of pausedUntilMs) if (untilMs <= now) pausedUntilMs.delete(wallet)
      const leases = book.all()
      if (leases.length === 0) return
      try {
        await learnWanted()
      } catch (thrown) {
        if (!isStoreUnavailable(thrown)) onFault('leases that others want could not be read', thrown)
      }
      await Promise.all(leases.map(look))
    },
    close,
    async leave() {
      for (const lease of book.all()) {
        lease.isWanted = true
        await turn(closing, () => commit((sql) => closeLease(sql, nameOf(lease), 0n)))
        book.lose(lease)
        leaseTally.returned++
      }
    },
  }
}

const closing = 'a lease could not be given back'
