// Applies a batch of operations in one transaction. Rows are locked in the order that the whole ledger keeps: holds, then
// balances by id, then budgets, then inserts, then hours. The answers are returned, to be given after the commit.

import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import { type Nano, zeroNano } from '../../kernel/money.ts'
import { minuteAt } from '../../kernel/spend-limit.ts'
import { insertList } from '../../store/insert-rows.ts'
import { HourSums, type RequestRow, requestValues, writeHours } from '../../store/request-rows.ts'
import type { Sql } from '../../store/sql.ts'
import { type WalletId, walletOf } from '../account.ts'
import { budgetNames, chargedNames, noBudgets } from '../budget.ts'
import { type Spending, spendCredit } from '../credit.ts'
import type { HoldOutcome, HoldRequest, SettleOutcome } from '../ledger.ts'
import { chargedRow, dueOf, readSettled } from '../settlement.ts'
import { type Demand, grantAll, type MoveOutcome, moveBalances, type WalletMove } from './balances.ts'
import {
  awaitHolds,
  type EndedHold,
  type ExtendOperation,
  endHolds,
  endStandingHolds,
  insertHolds,
  lowerHold,
  markHoldsSent,
  ofKind,
  type PartOperation,
  raiseHolds,
  type SettleOperation,
  type SharedOperation,
  takeParts,
  takeUnconfirmed,
} from './holds.ts'
import type { Owner } from './replica.ts'

/** Gives one answer. */
export type Answer = () => void

/** No request may be in the batch twice. */
export async function applyBatch(
  sql: Sql,
  owner: Owner,
  batch: readonly SharedOperation[],
): Promise<readonly Answer[]> {
  const taken = await takeHolds(sql, owner, batch)
  const minute = minuteAt(Number(owner.now))
  const moved = await moveWallets(sql, batch, { taken, minute })

  await insertHolds(
    sql,
    owner,
    ofKind(batch, 'hold').filter((operation) => moved.isGranted(operation)),
  )
  for (const extension of taken.raised) if (!moved.isGranted(extension)) await lowerHold(sql, extension)
  const settled = await settle(sql, ofKind(batch, 'settle'), { taken, moved, minute })
  return batch.map((operation) => () => answer(operation, { taken, moved, settled }))
}

/** The holds whose rows this batch has locked. A hold that is missing here was ended before, or belongs to somebody else. */
interface TakenHolds {
  /** Settled and released ones. */
  readonly ended: ReadonlyMap<RequestId, EndedHold>
  readonly raised: ReadonlySet<ExtendOperation>
  /** What was taken of standing holds. */
  readonly parts: ReadonlyMap<PartOperation, Nano>
}

async function takeHolds(sql: Sql, owner: Owner, batch: readonly SharedOperation[]): Promise<TakenHolds> {
  const ids = (kind: SharedOperation['kind']) => ofKind(batch, kind).map(({ requestId }) => requestId)
  await markHoldsSent(sql, owner, ids('sent'))
  const settled = await endHolds(sql, owner, 'settled', ids('settle'))
  // Before their charges are looked for: one that is being committed would not be seen yet.
  await awaitHolds(
    sql,
    ids('settle').filter((id) => !settled.has(id)),
  )
  await takeUnconfirmed(sql, owner, ofKind(batch, 'release'))
  const released = await endHolds(sql, owner, 'released', ids('release'))
  const standing = ofKind(batch, 'release').flatMap(({ requestId, isStanding }) => (isStanding ? requestId : []))
  const ended = await endStandingHolds(sql, owner, standing)
  const parts = await takeParts(sql, owner, ofKind(batch, 'part'))
  const raised = await raiseHolds(sql, owner, ofKind(batch, 'extend'))
  return { ended: new Map([...settled, ...released, ...ended]), raised, parts }
}

/** The decisions of the wallets. */
interface Moved {
  /** True also for an operation that demanded nothing beyond its own hold. */
  isGranted(operation: SharedOperation): boolean
  /** The amount that the wallet paid of a demand that it could not pay in full. */
  paidInPart(operation: SharedOperation): bigint
  outcome(operation: SharedOperation): HoldOutcome
  /** Whether the wallet has credit of a plan. */
  hasCredit(workspaceId: WorkspaceId): boolean
}

/** Turns the operations into one move per wallet and carries the moves out. */
async function moveWallets(
  sql: Sql,
  batch: readonly SharedOperation[],
  { taken: { ended, raised }, minute }: { readonly taken: TakenHolds; readonly minute: number },
): Promise<Moved> {
  const demands = new Map<SharedOperation, Demand>()
  const moves = new Map<WalletId, WalletMove>()
  for (const operation of batch.toSorted((a, b) => ranks[a.kind] - ranks[b.kind])) {
    const hold = ended.get(operation.requestId)
    const isLive = operation.kind === 'extend' ? raised.has(operation) : operation.kind === 'hold' || hold !== undefined
    if (!isLive) continue
    const wallet = walletOf(operation.workspaceId)
    const move = moves.get(wallet) ?? { wallet, charged: 0n, freed: 0n, demands: [], budgetEnds: [] }
    moves.set(wallet, move)
    if (hold) addEnd(move, operation, hold, minute)
    const demand = demandOf(operation, hold, minute)
    if (demand === undefined) continue
    move.demands.push(demand)
    demands.set(operation, demand)
  }
  const all = [...moves.values()]
  const outcomes = await moveBalances(sql, all.filter(movesMoney), minute)
  for (const move of all) {
    if (!movesMoney(move)) outcomes.set(move.wallet, grantAll(move.demands, { posted: 0n, held: 0n, credit: 0n }))
  }
  return movedBy(demands, outcomes)
}

/** Delivered content comes before running requests, and these before new ones; otherwise the order of arrival holds. */
const ranks: Record<SharedOperation['kind'], number> = { settle: 0, extend: 1, hold: 2, part: 2, release: 3, sent: 3 }

function addEnd(move: WalletMove, operation: SharedOperation, { amount, budgets }: EndedHold, minute: number): void {
  const due = operation.kind === 'settle' ? dueOf(operation.settlement) : 0n
  const charged = due < amount ? due : amount
  move.freed += amount
  move.charged += charged
  if (budgets.length === 0) return
  const chargedIn = operation.kind === 'settle' ? chargedNames(budgets, operation.settlement.countsIn, minute) : []
  move.budgetEnds.push({ budgets, freed: amount, chargedIn, charged })
}

/** The demand of the operation on the free part of its wallet. */
function demandOf(operation: SharedOperation, hold: EndedHold | undefined, minute: number): Demand | undefined {
  switch (operation.kind) {
    case 'hold':
      return reservation(operation.request)
    case 'extend':
      return reservation({ amount: operation.more, budgets: operation.budgets })
    case 'settle': {
      const amount = dueOf(operation.settlement) - (hold?.amount ?? 0n)
      if (amount <= 0n) return undefined
      const caps = operation.budgets
      const budgets = chargedNames(hold?.budgets ?? [], operation.settlement.countsIn, minute)
      return { amount, requiredFree: amount, kept: 0n, takes: 'posted', caps, budgets }
    }
    default:
      return undefined
  }
}

type Reserved = Pick<HoldRequest, 'amount' | 'requiredFree' | 'promised' | 'budgets'> & Partial<HoldRequest>

function reservation({
  workspaceId,
  amount,
  requiredFree = amount,
  promised,
  budgets: caps = noBudgets,
}: Reserved): Demand {
  return {
    amount,
    requiredFree: requiredFree > amount ? requiredFree : amount,
    kept: (workspaceId && promised?.get(workspaceId)) ?? 0n,
    promised,
    takes: 'held',
    caps,
    budgets: budgetNames(caps),
  }
}

function movesMoney({ charged, freed, demands }: WalletMove): boolean {
  return charged > 0n || freed > 0n || demands.some(({ amount }) => amount > 0n)
}

function movedBy(demands: ReadonlyMap<SharedOperation, Demand>, outcomes: ReadonlyMap<WalletId, MoveOutcome>): Moved {
  const outcomeOf = (operation: SharedOperation) => outcomes.get(walletOf(operation.workspaceId))
  const isGranted = (operation: SharedOperation): boolean => {
    const demand = demands.get(operation)
    return demand === undefined || outcomeOf(operation)?.granted.has(demand) === true
  }
  return {
    isGranted,
    hasCredit: (workspaceId) => (outcomes.get(walletOf(workspaceId))?.credit ?? 0n) > 0n,
    paidInPart(operation) {
      const demand = demands.get(operation)
      return (demand && outcomeOf(operation)?.inPart.get(demand)) ?? 0n
    },
    outcome(operation) {
      const { posted = zeroNano, held = zeroNano, uses, overBudget } = outcomeOf(operation) ?? {}
      const demand = demands.get(operation)
      if (isGranted(operation)) {
        const budgets = demand && uses?.get(demand)
        return budgets ? { kind: 'held', budgets } : { kind: 'held' }
      }
      return (demand && overBudget?.get(demand)) ?? { kind: 'insufficient', posted, held }
    },
  }
}

interface SettleTerms {
  readonly taken: TakenHolds
  readonly moved: Moved
  readonly minute: number
}

/** Writes the charges of the holds that end here. For the others it reads the results. */
async function settle(
  sql: Sql,
  operations: readonly SettleOperation[],
  { taken, moved, minute }: SettleTerms,
): Promise<ReadonlyMap<RequestId, SettleOutcome>> {
  const outcomes = new Map<RequestId, SettleOutcome>()
  const rows: RequestRow[] = []
  const hours = new HourSums()
  const spendings = new Map<WorkspaceId, Spending[]>()
  for (const operation of operations) {
    const { settlement, workspaceId, requestId } = operation
    const hold = taken.ended.get(requestId)
    if (hold === undefined) {
      // It ended before: by a settlement whose answer was lost, or without a charge.
      outcomes.set(requestId, await readSettled(sql, requestId))
      continue
    }
    const due = dueOf(settlement)
    const isCovered = due <= hold.amount || moved.isGranted(operation)
    const charge = (isCovered ? due : hold.amount + moved.paidInPart(operation)) as Nano
    const row = chargedRow(settlement, workspaceId, charge, chargedNames(hold.budgets, settlement.countsIn, minute))
    rows.push(row)
    hours.add(requestValues(row))
    const writtenOff = (settlement.cost - charge) as Nano
    outcomes.set(requestId, { kind: 'settled', charge, writtenOff, repeated: false })
    if (charge === 0n || !moved.hasCredit(workspaceId)) continue
    const own = spendings.get(workspaceId) ?? []
    spendings.set(workspaceId, own)
    own.push({ transferId: `tr_${requestId.slice('req_'.length)}`, amount: charge })
  }
  // The balances are locked since they were moved.
  for (const [workspaceId, own] of spendings) await spendCredit(sql, workspaceId, own)
  await insertList(sql, 'requests', rows)
  await writeHours(sql, 'postgres', hours)
  return outcomes
}

interface Results {
  readonly taken: TakenHolds
  readonly moved: Moved
  readonly settled: ReadonlyMap<RequestId, SettleOutcome>
}

function answer(operation: SharedOperation, { taken, moved, settled }: Results): void {
  switch (operation.kind) {
    case 'hold':
      return operation.answer(moved.outcome(operation))
    case 'part': {
      const amount = taken.parts.get(operation)
      return operation.answer(amount === undefined ? { kind: 'gone' } : { kind: 'held', amount })
    }
    case 'extend':
      return operation.answer(taken.raised.has(operation) ? moved.outcome(operation) : { kind: 'gone' })
    case 'settle':
      return operation.answer(settled.get(operation.requestId) ?? { kind: 'gone' })
    case 'release':
      return operation.answer({ kind: taken.ended.has(operation.requestId) ? 'released' : 'gone' })
    case 'sent':
      return operation.answer(undefined)
  }
}
