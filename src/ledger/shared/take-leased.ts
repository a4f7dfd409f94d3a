// The part of a batch that is paid from leases: charges go to the lease's own row, so that replicas on one wallet do not
// wait for each other. A lease that is gone covers nothing; its requests are then paid from the wallet, if it can.

import type { ReplicaId, RequestId } from '../../kernel/ids.ts'
import type { Sql } from '../../store/sql.ts'
import type { WalletId } from '../account.ts'
import type { Settlement } from '../ledger.ts'
import { dueOf } from '../settlement-transfers.ts'
import type { Lease, LeasedPart } from './lease-book.ts'
import { type LeaseName, lockLease, spendFromLease, writeLease } from './lease-rows.ts'
import { ofKind, type ReleaseOperation, type SettleOperation, type SharedOperation } from './operation.ts'

type LeasedOperation = (SettleOperation | ReleaseOperation) & { readonly leased: LeasedPart }

type Ending = { readonly kind: 'release' } | { readonly kind: 'settle'; readonly settlement: Settlement }

export interface LeasedEnds {
  /** How much of the request's charge its lease pays. */
  readonly covered: ReadonlyMap<RequestId, bigint>
  /** What the wallets' rows have to be moved by, because leases that are closing give back at once. */
  readonly moves: ReadonlyMap<WalletId, { readonly charged: bigint; readonly freed: bigint }>
  /** Charged before, by a commit whose answer was lost. */
  readonly charged: ReadonlySet<RequestId>
  /** To be told to the leases after the commit. */
  learn(): void
}

interface Ends {
  readonly covered: Map<RequestId, bigint>
  readonly moves: Map<WalletId, { readonly charged: bigint; readonly freed: bigint }>
  readonly lessons: (() => void)[]
}

/** `tried`: requests whose operation may have been committed before. */
export async function takeLeased(
  sql: Sql,
  owner: ReplicaId,
  batch: readonly SharedOperation[],
  tried: ReadonlySet<RequestId>,
): Promise<LeasedEnds> {
  const operations = [...ofKind(batch, 'settle'), ...ofKind(batch, 'release')].filter(isLeased)
  const ends: Ends = { covered: new Map(), moves: new Map(), lessons: [] }
  const charged = await readCharged(sql, operations, tried)
  const byLease = Map.groupBy(operations, ({ leased }) => leased.lease)
  for (const lease of [...byLease.keys()].sort((a, b) => (a.wallet < b.wallet ? -1 : 1))) {
    const ending = byLease.get(lease) ?? []
    const fresh = ending.filter(({ requestId }) => !charged.has(requestId))
    if (lease.isLost) continue
    const name = { wallet: lease.wallet, owner, epoch: lease.epoch }
    const inUse = lease.inUse - countedIn(ending)
    if (lease.isClosing) await endInClosing(sql, name, { lease, fresh, inUse, ends })
    else await endInOpen(sql, name, { lease, fresh, inUse, ends })
  }
  return {
    covered: ends.covered,
    moves: ends.moves,
    charged,
    learn() {
      for (const lesson of ends.lessons) lesson()
    },
  }
}

function isLeased(operation: SettleOperation | ReleaseOperation): operation is LeasedOperation {
  return operation.leased !== undefined
}

async function readCharged(
  sql: Sql,
  operations: readonly LeasedOperation[],
  tried: ReadonlySet<RequestId>,
): Promise<ReadonlySet<RequestId>> {
  const ids = operations.map(({ requestId }) => requestId).filter((id) => tried.has(id))
  if (ids.length === 0) return new Set()
  const rows = await sql<{ request_id: RequestId }>`SELECT request_id FROM transfers
    WHERE request_id = ANY(string_to_array(${ids.join(',')}, ',')) AND kind = 'charge'`
  return new Set(rows.map((row) => row.request_id))
}

interface LeaseEnds {
  readonly lease: Lease
  /** Not charged yet. */
  readonly fresh: readonly LeasedOperation[]
  /** What requests hold of the lease afterwards. */
  readonly inUse: bigint
  readonly ends: Ends
}

async function endInOpen(sql: Sql, name: LeaseName, { lease, fresh, inUse, ends }: LeaseEnds): Promise<void> {
  const spent = sum(fresh.map(shareOf))
  const state = await spendFromLease(sql, name, { spent, inUse })
  if (state === undefined) {
    ends.lessons.push(() => (lease.isLost = true))
    return
  }
  if (state === 'wanted') ends.lessons.push(() => (lease.isWanted = true))
  for (const operation of fresh) ends.covered.set(operation.requestId, shareOf(operation))
}

/** What is left in the row is set, not counted down: tried twice, it is the same. */
async function endInClosing(sql: Sql, name: LeaseName, { lease, fresh, inUse, ends }: LeaseEnds): Promise<void> {
  const row = await lockLease(sql, name)
  const spent = sum(fresh.map(shareOf))
  if (!row || row.amount - row.spent - inUse < spent) {
    if (!row) ends.lessons.push(() => (lease.isLost = true))
    return
  }
  await writeLease(sql, name, { amount: inUse, spent: 0n, state: 'closing', inUse })
  ends.moves.set(lease.wallet, { charged: row.spent + spent, freed: row.amount - inUse })
  for (const operation of fresh) ends.covered.set(operation.requestId, shareOf(operation))
}

/** What the lease pays of it. */
export function shareOf(operation: Pick<LeasedOperation, 'leased'> & Ending): bigint {
  if (operation.kind === 'release') return 0n
  const due = dueOf(operation.settlement)
  return due < operation.leased.amount ? due : operation.leased.amount
}

function countedIn(operations: readonly LeasedOperation[]): bigint {
  return sum(operations.map(({ leased }) => (leased.isCounted ? leased.amount : 0n)))
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n)
}
