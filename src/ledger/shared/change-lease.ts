// What a lease's owner does to its row and its wallet's balance together: take a slice, renew it larger or smaller, close
// it. Each is one transaction; what was spent meanwhile comes home to the wallet with it.

import type { Sql } from '../../store/sql.ts'
import {
  deleteLease,
  insertLease,
  type LeaseName,
  lockBalance,
  lockLease,
  moveBalance,
  writeLease,
} from './lease-rows.ts'

/** Of what a wallet has free, one replica takes no more: the others, and calls that need much at once, find the rest. */
const shareMax = 4n

export interface Slice {
  readonly amount: bigint
  readonly walletFree: bigint
}

/** undefined = the wallet is too thin for a slice that is worth it. */
export async function takeSlice(
  sql: Sql,
  name: LeaseName,
  { want, least }: { readonly want: bigint; readonly least: bigint },
): Promise<Slice | undefined> {
  const balance = await lockBalance(sql, name.wallet)
  const free = balance ? balance.posted - balance.held : 0n
  const amount = smaller(want, free / shareMax)
  if (amount < least || amount <= 0n) return undefined
  await sql`UPDATE balances SET held = held + ${amount} WHERE account_id = ${name.wallet}`
  await insertLease(sql, name, amount)
  return { amount, walletFree: free - amount }
}

export interface Renewal {
  /** What this replica has admitted from the lease and what it may still admit from: the slice is worth this now. */
  readonly inUse: bigint
  readonly left: bigint
  /** How much larger it should become. */
  readonly more: bigint
}

export type Renewed =
  | (Slice & { readonly kind: 'renewed'; readonly grown: bigint })
  | { readonly kind: 'wanted' }
  | { readonly kind: 'lost' }

export async function renewLease(sql: Sql, name: LeaseName, { inUse, left, more }: Renewal): Promise<Renewed> {
  const row = await lockLease(sql, name)
  if (!row) return { kind: 'lost' }
  if (row.state === 'wanted') return { kind: 'wanted' }
  const balance = await lockBalance(sql, name.wallet)
  if (!balance) return { kind: 'lost' }
  const kept = inUse + left
  // A charge whose commit nobody heard of: it is told apart when it is tried again, and until then nothing changes.
  if (kept > row.amount - row.spent) {
    await writeLease(sql, name, { ...row, inUse: smaller(inUse, row.amount) })
    return { kind: 'renewed', amount: row.amount, grown: 0n, walletFree: balance.posted - balance.held }
  }
  const free = balance.posted - balance.held + row.amount - row.spent - kept
  const room = (free + left) / shareMax - left
  const grown = room > 0n ? smaller(more, room) : 0n
  const amount = kept + grown
  await writeLease(sql, name, { amount, spent: 0n, state: row.state, inUse })
  await moveBalance(sql, name.wallet, { charged: row.spent, freed: row.amount - amount })
  return { kind: 'renewed', amount, grown, walletFree: free - grown }
}

/** What is in the slice beyond what requests still hold goes back; with nothing held the row goes too. */
export async function closeLease(sql: Sql, name: LeaseName, inUse: bigint): Promise<void> {
  const row = await lockLease(sql, name)
  if (!row) return
  const unspent = row.amount - row.spent
  const amount = smaller(inUse, unspent)
  if (amount === 0n) await deleteLease(sql, name)
  else await writeLease(sql, name, { amount, spent: 0n, state: 'closing', inUse: amount })
  await moveBalance(sql, name.wallet, { charged: row.spent, freed: row.amount - amount })
}

/** What a renewal should give back first, by what was known of the wallet then: a slice shrinks with its wallet. */
export function surplusOf(left: bigint, wantLeft: bigint, walletFree: bigint): bigint {
  const most = smaller(wantLeft, (walletFree + left) / shareMax)
  return left > most ? left - most : 0n
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
