// The rows of holds: written and ended by the replica that owns them, and reaped by any replica once their owner is dead
// or their lifetime is over. A statement takes a row only if it is open and belongs to this replica in its current epoch,
// so a hold ends once. Three need no such check: `lowerHold` undoes what `raiseHolds` did in the same transaction,
// `markHoldsSent` moves no money, and `awaitHolds` only waits. Before it ends holds, the reaper raises the epoch of a dead
// replica: all holds of the old epoch will be reaped, even if the replica comes back. A process that only slept can
// still settle a hold that is not reaped yet, and none that is. Any number of replicas may reap at the same time.

import type { Failpoint } from '../../kernel/failpoint.ts'
import type { ReplicaId, RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { minuteAt } from '../../kernel/spend-limit.ts'
import { type Database, databaseNow } from '../../store/database.ts'
import { insertList } from '../../store/insert-rows.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'
import { isContention, isRowLocked } from '../../store/sql-error.ts'
import { type WalletId, walletOf } from '../account.ts'
import { type Budget, type BudgetName, budgetNames, noBudgets, parseBudgetNames, renderBudgetNames } from '../budget.ts'
import { type CleanOptions, cleanPortions, portionMax } from '../clean.ts'
import type {
  ExtendOutcome,
  HoldOutcome,
  HoldRequest,
  PartOutcome,
  ReapReport,
  ReleaseOutcome,
  SettleEnd,
  Settlement,
} from '../ledger.ts'
import { lockBudgets, writeBudgets } from './balances.ts'
import { type Owner, silenceOfDeathMs } from './replica.ts'

// The operations of a replica on the database. They are committed in batches, and each is answered once, after
// the commit that decided it.

interface Common<Kind extends string, Outcome> {
  readonly kind: Kind
  readonly requestId: RequestId
  readonly workspaceId: WorkspaceId
  /** How long it is retried while the database cannot be reached; 0 = one attempt. */
  readonly retryMs: number
  answer(outcome: Outcome): void
  /** Called instead of `answer` when the operation cannot be carried out although the database works: a defect. */
  fail(thrown: unknown): void
}

interface HoldTerms {
  readonly request: HoldRequest
  readonly lifetimeMs: number
}

export interface HoldOperation extends Common<'hold', HoldOutcome>, HoldTerms {}

export interface ExtendOperation extends Common<'extend', ExtendOutcome> {
  readonly more: Nano
  /** The budgets of the hold. */
  readonly budgets: readonly Budget[]
}

/** `unknown`: it may have been committed, and was not confirmed in time. It is not tried again. */
export interface SettleOperation extends Common<'settle', SettleEnd | { readonly kind: 'unknown' }> {
  readonly settlement: Settlement
  /** The budgets of the hold. */
  readonly budgets: readonly Budget[]
}

/** Takes the place of a part of a standing hold. */
export interface PartOperation extends Common<'part', PartOutcome>, HoldTerms {
  readonly from: RequestId
}

export interface ReleaseOperation extends Common<'release', ReleaseOutcome> {
  readonly isStanding?: true
  /** Set if the commit of the hold was sent and not confirmed, so that it may still come. */
  readonly unconfirmed?: HoldTerms | undefined
}

/** Its answer is not awaited. */
export type SentOperation = Common<'sent', unknown>

export type SharedOperation =
  | HoldOperation
  | PartOperation
  | ExtendOperation
  | SettleOperation
  | ReleaseOperation
  | SentOperation

export function ofKind<Kind extends SharedOperation['kind']>(
  batch: readonly SharedOperation[],
  kind: Kind,
): Extract<SharedOperation, { kind: Kind }>[] {
  return batch.filter((operation): operation is Extract<SharedOperation, { kind: Kind }> => operation.kind === kind)
}

// The rows.

/** In place of a replica: nobody's death ends a standing hold. */
const standing = { id: 'standing' as ReplicaId, epoch: 0n }

const reapPortionMax = 500n
const contentionRetriesMax = 3
const hourMs = 3_600_000n

/** Ids contain no comma. One text parameter keeps the statement the same for any number of ids. */
function listOf(ids: readonly RequestId[]): string {
  return ids.join(',')
}

export interface EndedHold {
  readonly amount: bigint
  readonly budgets: readonly BudgetName[]
}

/**
 * Waits for other transactions that change these holds, such as our own commit whose reply was lost. Ignores which replica
 * owns them: this replica's epoch may have changed since.
 */
export async function awaitHolds(sql: Sql, ids: readonly RequestId[]): Promise<void> {
  if (ids.length === 0) return
  await sql`SELECT 1 FROM holds WHERE request_id = ANY(string_to_array(${listOf(ids)}, ','))
    ORDER BY request_id FOR UPDATE`
}

/** Ends the holds that are still open, and returns what they held. */
export async function endHolds(
  sql: Sql,
  owner: Owner,
  state: 'settled' | 'released',
  ids: readonly RequestId[],
): Promise<Map<RequestId, EndedHold>> {
  if (ids.length === 0) return new Map()
  // Locks in the order of the ids, as the reaper does.
  const rows = await sql<{
    request_id: RequestId
    amount: bigint
    budgets: string | null
  }>`UPDATE holds SET state = ${state}
    WHERE state = 'open' AND request_id IN (SELECT request_id FROM holds
      WHERE request_id = ANY(string_to_array(${listOf(ids)}, ',')) AND state = 'open'
        AND owner = ${owner.id} AND epoch = ${owner.epoch} ORDER BY request_id FOR UPDATE)
    RETURNING request_id, amount, budgets`
  return new Map(rows.map((row) => [row.request_id, { amount: row.amount, budgets: parseBudgetNames(row.budgets) }]))
}

/** Ends standing holds, and returns what was left of them. */
export function endStandingHolds(
  sql: Sql,
  { now }: Owner,
  ids: readonly RequestId[],
): Promise<Map<RequestId, EndedHold>> {
  return endHolds(sql, { ...standing, now }, 'released', ids)
}

/** Undefined = it has ended. */
export async function readStanding({ sql }: Database, requestId: RequestId): Promise<Nano | undefined> {
  const [row] = await sql<{ amount: Nano }>`SELECT amount FROM holds
    WHERE request_id = ${requestId} AND state = 'open' AND owner = ${standing.id}`
  return row?.amount
}

/** Turns parts of standing holds into holds of this replica. What the wallet and its limits hold stays the same. */
export async function takeParts(
  sql: Sql,
  owner: Owner,
  operations: readonly PartOperation[],
): Promise<ReadonlyMap<PartOperation, Nano>> {
  const taken = new Map<PartOperation, Nano>()
  for (const operation of [...operations].sort((a, b) => (a.from < b.from ? -1 : 1))) {
    const { from, request, lifetimeMs } = operation
    const [whole] = await sql<{ amount: bigint; budgets: string | null }>`SELECT amount, budgets FROM holds
      WHERE request_id = ${from} AND state = 'open' AND owner = ${standing.id} FOR UPDATE`
    if (!whole) continue
    const amount = (request.amount < whole.amount ? request.amount : whole.amount) as Nano
    await sql`UPDATE holds SET amount = amount - ${amount} WHERE request_id = ${from}`
    const row = { ...holdRow(owner, { request, lifetimeMs }), amount, budgets: whole.budgets }
    await insertList(sql, 'holds', [row])
    taken.set(operation, amount)
  }
  return taken
}

/** Raises the holds before the balance is read, because a hold's row is locked before its balance. */
export async function raiseHolds(
  sql: Sql,
  owner: Owner,
  operations: readonly ExtendOperation[],
): Promise<ReadonlySet<ExtendOperation>> {
  const raised = new Set<ExtendOperation>()
  for (const operation of [...operations].sort((a, b) => (a.requestId < b.requestId ? -1 : 1))) {
    const rows =
      await sql`UPDATE holds SET amount = amount + ${operation.more} WHERE request_id = ${operation.requestId}
      AND state = 'open' AND owner = ${owner.id} AND epoch = ${owner.epoch} RETURNING request_id`
    if (rows.length === 1) raised.add(operation)
  }
  return raised
}

/** Takes back a raise of the same transaction, which has the row locked. */
export async function lowerHold(sql: Sql, { requestId, more }: ExtendOperation): Promise<void> {
  await sql`UPDATE holds SET amount = amount - ${more} WHERE request_id = ${requestId}`
}

export async function insertHolds(sql: Sql, owner: Owner, operations: readonly HoldOperation[]): Promise<void> {
  if (operations.length === 0) return
  await insertList(
    sql,
    'holds',
    operations.map((terms) => holdRow(owner, terms)),
  )
}

/**
 * Takes the ids of holds whose commit was not confirmed. This waits for a transaction that has inserted one, which other
 * statements do not see, and whose server may be about to end and find it in its log.
 */
export async function takeUnconfirmed(sql: Sql, owner: Owner, operations: readonly ReleaseOperation[]): Promise<void> {
  const terms = operations.flatMap(({ unconfirmed = [] }) => unconfirmed)
  if (terms.length === 0) return
  const rows = terms.map((one) => ({ ...holdRow(owner, one), amount: 0n, state: 'released' }))
  await insertList(sql, 'holds', rows, ' ON CONFLICT (request_id) DO NOTHING')
}

function holdRow(replica: Owner, { request, lifetimeMs }: HoldTerms) {
  const owner = request.isStanding ? { ...replica, ...standing } : replica
  return {
    request_id: request.requestId,
    wallet_id: walletOf(request.workspaceId),
    key_id: request.keyId,
    project_id: request.projectId,
    amount: request.amount,
    state: 'open',
    owner: owner.id,
    epoch: owner.epoch,
    expires_at: owner.now + timeToSql(lifetimeMs),
    sent_at: null,
    budgets: renderBudgetNames(budgetNames(request.budgets ?? noBudgets)),
  }
}

/** For the report of the reaper only. A deadlock with it rolls one side back, which then tries again or gives up. */
export async function markHoldsSent(sql: Sql, owner: Owner, ids: readonly RequestId[]): Promise<void> {
  if (ids.length === 0) return
  await sql`UPDATE holds SET sent_at = ${owner.now}
    WHERE request_id = ANY(string_to_array(${listOf(ids)}, ',')) AND state = 'open'`
}

interface ReapedRow {
  readonly request_id: RequestId
  readonly wallet_id: WalletId
  readonly amount: bigint
  readonly sent_at: bigint | null
  readonly budgets: string | null
}

export async function reapHolds(database: Database, reach: Failpoint): Promise<readonly ReapReport[]> {
  const reports: ReapReport[] = []
  const reap = async (scope: ReapScope) => {
    const portion = await insist(() => database.transaction((sql) => reapPortion(sql, scope, reach)))
    reports.push(...portion.rows.map(reportOf))
    return portion
  }
  const busy = new Set<WalletId>()
  for (;;) {
    const { found, locked } = await reap({ except: busy })
    for (const wallet of locked) busy.add(wallet)
    if (found < Number(reapPortionMax)) break
  }
  // Most of these are only busy, so wait for each in turn. One that stays locked does not hold up the others.
  for (const wallet of busy) {
    await unlessLocked(async () => {
      while ((await reap({ only: wallet })).found === Number(reapPortionMax));
    })
  }
  return reports
}

/** The next round looks again at what is locked now. */
async function unlessLocked(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (thrown) {
    if (!isRowLocked(thrown)) throw thrown
  }
}

/** Other replicas reap and settle at the same time. A deadlock rolls one of them back completely, so it can try again. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await work()
    } catch (thrown) {
      if (!isContention(thrown) || retries === contentionRetriesMax) throw thrown
    }
  }
}

function reportOf(row: ReapedRow): ReapReport {
  return { requestId: row.request_id, amount: row.amount as Nano, sent: row.sent_at !== null }
}

/** `except`: skips wallets that were locked. `only`: waits for this wallet's lock. */
type ReapScope = { readonly except: ReadonlySet<WalletId> } | { readonly only: WalletId }

interface ReapedPortion {
  readonly rows: readonly ReapedRow[]
  readonly locked: readonly WalletId[]
  /** Includes the holds of locked wallets. */
  readonly found: number
}

async function reapPortion(sql: Sql, scope: ReapScope, reach: Failpoint): Promise<ReapedPortion> {
  const now = await databaseNow(sql)
  const deadSince = now - silenceOfDeathMs
  await fence(sql, deadSince)
  await reach('in_reap')
  const found = await lockDead(sql, scope, { now, deadSince })
  if (found.length === 0) return { rows: [], locked: [], found: 0 }
  const wallets = [...new Set(found.map((row) => row.wallet_id))].sort()
  const free = 'only' in scope ? new Set(wallets) : await lockFree(sql, wallets)
  const rows = found.filter((row) => free.has(row.wallet_id))
  await sql`UPDATE holds SET state = 'reaped'
    WHERE request_id = ANY(string_to_array(${rows.map((row) => row.request_id).join(',')}, ','))`
  const freed = Map.groupBy(rows, (row) => row.wallet_id)
  for (const wallet of [...freed.keys()].sort()) {
    const amount = (freed.get(wallet) ?? []).reduce((sum, row) => sum + row.amount, 0n)
    await sql`UPDATE balances SET held = held - ${amount} WHERE account_id = ${wallet}`
  }
  await freeBudgets(sql, rows, minuteAt(Number(now)))
  await reach('in_reap')
  return { rows, locked: wallets.filter((wallet) => !free.has(wallet)), found: found.length }
}

async function fence(sql: Sql, deadSince: bigint): Promise<void> {
  await sql`UPDATE replicas SET epoch = epoch + 1 WHERE id IN (SELECT id FROM replicas
      WHERE heartbeat_at < ${deadSince} AND EXISTS (
        SELECT 1 FROM holds WHERE state = 'open' AND owner = replicas.id AND epoch = replicas.epoch)
      ORDER BY id FOR UPDATE SKIP LOCKED) AND heartbeat_at < ${deadSince}`
}

/** Includes holds of an older epoch: one may have been written while its owner was being fenced. */
function lockDead(
  sql: Sql,
  scope: ReapScope,
  { now, deadSince }: { readonly now: bigint; readonly deadSince: bigint },
): Promise<ReapedRow[]> {
  const only = 'only' in scope ? scope.only : ''
  const except = 'except' in scope ? [...scope.except].join(',') : ''
  return sql<ReapedRow>`SELECT request_id, wallet_id, amount, sent_at, budgets FROM holds
    WHERE state = 'open' AND (expires_at < ${now} OR (owner <> ${standing.id} AND NOT EXISTS (
        SELECT 1 FROM replicas WHERE id = holds.owner AND epoch = holds.epoch AND heartbeat_at >= ${deadSince})))
      AND (${only} = '' OR wallet_id = ${only}) AND wallet_id <> ALL(string_to_array(${except}, ','))
    ORDER BY request_id LIMIT ${reapPortionMax} FOR UPDATE OF holds SKIP LOCKED`
}

/** Locks and returns the wallets that are not locked already. A wallet that was never funded has no row to lock. */
async function lockFree(sql: Sql, wallets: readonly WalletId[]): Promise<ReadonlySet<WalletId>> {
  const ids = wallets.join(',')
  const rows = await sql<{ id: WalletId }>`WITH locked AS MATERIALIZED (SELECT account_id FROM balances
      WHERE account_id = ANY(string_to_array(${ids}, ',')) ORDER BY account_id FOR UPDATE SKIP LOCKED)
    SELECT id FROM unnest(string_to_array(${ids}, ',')) AS id
    WHERE id IN (SELECT account_id FROM locked) OR NOT EXISTS (SELECT 1 FROM balances WHERE account_id = id)`
  return new Set(rows.map(({ id }) => id))
}

async function freeBudgets(sql: Sql, rows: readonly ReapedRow[], minute: number): Promise<void> {
  const counted = rows.map(({ amount, budgets }) => ({ amount, names: parseBudgetNames(budgets) }))
  const counters = await lockBudgets(
    sql,
    counted.flatMap(({ names }) => names),
    minute,
  )
  for (const { amount, names } of counted) counters.free(names, amount)
  await writeBudgets(sql, counters, minute)
}

/** Removes ended holds whose lifetime was over an hour ago, because nothing reads them any more, and replicas of yesterday. */
export async function clearEnded(options: CleanOptions): Promise<void> {
  await cleanPortions(options, async (sql) => {
    const hourAgo = (await databaseNow(sql)) - hourMs
    const rows = await sql`DELETE FROM holds WHERE request_id IN (SELECT request_id FROM holds
      WHERE state <> 'open' AND expires_at < ${hourAgo} ORDER BY expires_at LIMIT ${BigInt(portionMax)})
      RETURNING 1 AS removed`
    return rows.length
  })
  await options.database.transaction(async (sql) => {
    const yesterday = (await databaseNow(sql)) - 24n * hourMs
    await sql`DELETE FROM replicas WHERE heartbeat_at < ${yesterday}`
  })
}
