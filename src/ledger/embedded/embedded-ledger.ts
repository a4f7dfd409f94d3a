// The ledger of one process on the embedded engine. The process is the only writer, so holds live in memory and are
// decided at once; only movements of money are committed. After a crash the holds are gone, without any charge.

import { certainTime } from '../../kernel/clock.ts'
import { assert } from '../../kernel/failure.ts'
import { createId, type RequestId, type WorkspaceId } from '../../kernel/ids.ts'
import { type Nano, zeroNano } from '../../kernel/money.ts'
import { minuteAt, minuteWindow } from '../../kernel/spend-limit.ts'
import type { Database } from '../../store/database.ts'
import type { Journal } from '../../store/journal.ts'
import type { RequestRow } from '../../store/request-rows.ts'
import { timeToSql } from '../../store/sql.ts'
import { isStoreUnavailable, mayBeWritten } from '../../store/sql-error.ts'
import { type Insufficient, unavailable, type WalletId, workspaceOf } from '../account.ts'
import {
  type Budget,
  BudgetCounters,
  type BudgetName,
  type BudgetState,
  budgetName,
  budgetNames,
  chargedNames,
  isWindowPast,
  noBudgets,
  type OverBudget,
  type Promised,
} from '../budget.ts'
import { createBudgetSeeds, seedRoundMs } from '../budget-seeds.ts'
import { clean, cleanMs } from '../clean.ts'
import {
  type Correction,
  type CorrectOutcome,
  type Funding,
  type FundOutcome,
  recordCorrection,
  recordFunding,
} from '../fund.ts'
import type {
  Held,
  HoldOutcome,
  HoldRequest,
  HoldStats,
  Ledger,
  LedgerOptions,
  ReapReport,
  SettleEnd,
  Settlement,
  SettleOutcome,
  Wallet,
} from '../ledger.ts'
import { dueWorkspaces, type Renewed, renewMs, renewPlan } from '../plans.ts'
import {
  chargedRow,
  createEndCounters,
  createWriteHealth,
  dueOf,
  type EndCounters,
  readSettled,
  repeatedOutcome,
  type WriteHealth,
} from '../settlement.ts'
import { listTransfers, readTransfersOf } from '../transfer.ts'

const maintenanceMs = 1000

export async function createEmbeddedLedger(options: LedgerOptions, journal: Journal): Promise<Ledger> {
  const { database, clock, timers, reach, holdLifetimeMs } = options
  const writeHealth = createWriteHealth(clock, (error) =>
    options.onFault('cannot commit charges, so new requests are refused', error),
  )
  let isBroken = false
  const onBroken = (error: unknown) => {
    writeHealth.close()
    if (!isBroken) options.onBroken(error)
    isBroken = true
  }
  // The charges of a process that was killed.
  await journal.apply()
  const book = new WalletBook(
    await readPosted(database),
    new BudgetCounters(await readSpent(database), () => minuteAt(clock.now())),
  )
  const counters = createEndCounters()
  const keysNow = certainTime(clock)
  const settlements = new Settlements({ ...options, book, journal, writeHealth, counters, onBroken })
  const seeds = createBudgetSeeds({
    ...options,
    isShared: false,
    onRaised: (name, by) => book.budgets.spend([name], by),
  })

  const reap = async () => {
    await reach('in_reap')
    const reports = book.releaseExpired(clock.monotonicMs())
    counters.reaped(reports)
    return reports
  }
  const onSeedFault = (error: unknown) => options.onFault('a spend limit could not be brought up to date', error)
  const hold = (request: HoldRequest): HoldOutcome | Promise<HoldOutcome> => {
    const expiresAtMs = clock.monotonicMs() + (request.lifetimeMs ?? holdLifetimeMs)
    const outcome = book.hold(request, clock.now(), expiresAtMs)
    const pause = outcome.kind === 'held' ? reach('after_hold') : undefined
    return pause ? pause.then(() => outcome) : outcome
  }
  const renewPlans = async (workspaceId?: WorkspaceId) => {
    const terms = { now: clock.now(), expiresBy: keysNow() }
    const due = workspaceId ? [workspaceId] : await dueWorkspaces(database.sql, terms.now, terms.expiresBy)
    let isDone = true
    for (const each of due)
      isDone = (await renew({ ...options, onBroken }, { book, writeHealth }, each, terms)) && isDone
    return isDone
  }
  const stops = [
    timers.every(seedRoundMs, () => seeds.round().catch(onSeedFault)),
    timers.every(maintenanceMs, async () => {
      if (writeHealth.failed() || settlements.hasDoubtful()) {
        if (await probe(options, writeHealth)) settlements.endDoubtful()
      }
      await reap()
    }),
    timers.every(renewMs, () => renewPlans().catch((error) => options.onFault('plans could not be renewed', error))),
    timers.every(cleanMs, async () => {
      book.budgets.forget((window) => isWindowPast(window, clock.now()))
      // A failure is retried in the next round.
      await clean(options, keysNow()).catch((error) => options.onFault('old rows could not be removed', error))
    }),
  ]

  return {
    hold(request) {
      if (!writeHealth.admits()) return unavailable
      const seeding = seeds.ensure(request.budgets)
      return seeding ? seeding.then((isDone) => (isDone ? hold(request) : unavailable)) : hold(request)
    },
    // Failing commits do not end running requests: the hold is in memory, and its settlement is retried.
    extend: (requestId, more) => book.extend(requestId, more) ?? { kind: 'gone' },
    coverOverrun: (requestId, more) => book.coverOverrun(requestId, more),
    markSent: (requestId) => book.markSent(requestId),
    settle: (settlement) => settlements.settle(settlement),
    release: (requestId) => (book.release(requestId) ? { kind: 'released' } : { kind: 'gone' }),
    takePart(from, request) {
      const expiresAtMs = clock.monotonicMs() + (request.lifetimeMs ?? holdLifetimeMs)
      const amount = book.takePart(from, request, clock.now(), expiresAtMs)
      return amount === undefined ? { kind: 'gone' } : { kind: 'held', amount }
    },
    standing: async (requestId) => book.heldFor(requestId),
    endStanding: (requestId) => (book.release(requestId) ? { kind: 'released' } : { kind: 'gone' }),
    fund: (funding) => fund(options, { book, writeHealth }, funding),
    correct: (correction) => correct({ ...options, onBroken }, { book, writeHealth }, correction),
    recount: (...limited) => void seeds.recount(...limited).catch(onSeedFault),
    wallet: async (workspaceId) => book.wallet(workspaceId),
    budget: async (scopeId, window) => book.budgets.state(budgetName(scopeId, window)),
    leavesInMs: async (scopeId, window, amount) =>
      book.budgets.leavesAt(budgetName(scopeId, window), amount) - clock.now(),
    transfers: (workspaceId, query) => listTransfers(database.sql, workspaceId, query),
    transfersOf: (requestId) => readTransfersOf(database.sql, requestId),
    renewPlans,
    reap,
    admits: () => writeHealth.admits(),
    stats: () => ({ ...book.stats(), ...writeHealth.stats(), ...counters.stats }),
    async close() {
      for (const stop of stops) stop()
      await settlements.close()
    },
  }
}

async function readPosted(database: Database): Promise<(readonly [WorkspaceId, Nano])[]> {
  const rows = await database.sql<{ account_id: WalletId; posted: bigint }>`SELECT account_id, posted
    FROM balances JOIN accounts ON accounts.id = balances.account_id WHERE accounts.kind = 'wallet'`
  return rows.map((row) => [workspaceOf(row.account_id), row.posted as Nano] as const)
}

async function readSpent(database: Database): Promise<(readonly [BudgetName, BudgetState])[]> {
  const rows = await database.sql<{ scope_id: string; time_window: string; spent: bigint }>`
    SELECT scope_id, time_window, spent FROM budgets`
  const minutes = await database.sql<{ scope_id: string; time_window: string; minute: bigint; spent: bigint }>`
    SELECT scope_id, time_window, minute, spent FROM budget_minutes ORDER BY scope_id, time_window, minute`
  const inMinutes = minutes.map((row) => ({ ...row, time_window: minuteWindow(row.time_window, Number(row.minute)) }))
  return [...rows, ...inMinutes].map((row) => [
    budgetName(row.scope_id, row.time_window),
    { spent: row.spent as Nano, held: zeroNano },
  ])
}

/** After a failed commit, and with nothing left to commit, only another attempt can show that commits work again. */
async function probe({ database, clock }: LedgerOptions, writeHealth: WriteHealth): Promise<boolean> {
  const end = writeHealth.begin()
  try {
    await database.transaction(
      (sql) => sql`INSERT INTO replicas (id, epoch, heartbeat_at) VALUES ('embedded', 1, ${timeToSql(clock.now())})
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`,
    )
    end('committed')
    return true
  } catch (thrown) {
    end('failed', thrown)
    return false
  }
}

// ── Wallets and holds in memory ──

// An authoritative copy of every posted balance, and the holds, which exist only here. Pure bookkeeping, decided at once.

interface Balance {
  posted: bigint
  held: bigint
}

interface WalletHold {
  readonly requestId: RequestId
  readonly workspaceId: WorkspaceId
  readonly balance: Balance
  readonly budgets: readonly Budget[]
  readonly budgetNames: readonly BudgetName[]
  readonly heldAt: number
  readonly expiresAtMs: number
  amount: bigint
  /** The part of the amount that was added when the charge was known. */
  covered: bigint
  sent: boolean
  /** The amount that leaves the wallet; covered by the hold. Set when it is claimed. */
  charge: Nano | undefined
  /** The budgets in which the charge counts; set with it. */
  chargedIn: readonly BudgetName[]
  /** The outcome of the settlement of a claimed hold. */
  settling: Promise<SettleOutcome> | undefined
}

/** A hold that is being settled; nothing else can end it. */
type Claim = WalletHold & { readonly charge: Nano }

function heldBeforeCost({ amount, covered }: WalletHold): bigint {
  return amount - covered
}

/** In which budgets a charge counts, and in which minute of those that roll. */
interface ChargeTerms extends Pick<Settlement, 'countsIn'> {
  readonly minute: number
}

type HoldTerms = Pick<HoldRequest, 'requestId' | 'workspaceId' | 'amount' | 'requiredFree' | 'promised' | 'budgets'>

type Reservation = Held | Insufficient | OverBudget

const granted: Reservation = { kind: 'held' }

export class WalletBook {
  readonly budgets: BudgetCounters
  readonly #balances = new Map<WorkspaceId, Balance>()
  /** In the order in which they were held. */
  readonly #holds = new Map<RequestId, WalletHold>()
  #heldTotal = 0n

  constructor(posted: Iterable<readonly [WorkspaceId, Nano]>, budgets = new BudgetCounters()) {
    this.budgets = budgets
    for (const [workspaceId, amount] of posted) {
      this.#balances.set(workspaceId, { posted: amount, held: 0n })
    }
  }

  wallet(workspaceId: WorkspaceId): Wallet {
    const { posted, held } = this.#balances.get(workspaceId) ?? { posted: 0n, held: 0n }
    return { posted: posted as Nano, held: held as Nano, available: (posted - held) as Nano }
  }

  stats(): HoldStats {
    const oldest = this.#holds.values().next().value
    return { openHolds: this.#holds.size, heldTotal: this.#heldTotal as Nano, oldestHoldAt: oldest?.heldAt }
  }

  /** `expiresAtMs`: by the monotonic clock, because a clock that is set must end no hold. */
  hold(terms: HoldTerms, now: number, expiresAtMs: number): Reservation {
    const { requestId, workspaceId, amount, requiredFree = amount, promised, budgets = noBudgets } = terms
    assert(amount >= 0n, 'a hold is not negative')
    assert(!this.#holds.has(requestId), `${requestId} holds already`)
    const hold: WalletHold = {
      requestId,
      workspaceId,
      balance: this.#balanceOf(workspaceId),
      budgets,
      budgetNames: budgetNames(budgets),
      heldAt: now,
      expiresAtMs,
      amount: 0n,
      covered: 0n,
      sent: false,
      charge: undefined,
      chargedIn: [],
      settling: undefined,
    }
    const uses = budgets.length === 0 ? undefined : this.budgets.uses(budgets)
    const reservation = this.#reserve(hold, amount, requiredFree, promised)
    if (reservation.kind !== 'held') return reservation
    this.#holds.set(requestId, hold)
    return uses ? { kind: 'held', budgets: uses } : reservation
  }

  /** See `Ledger.takePart`. undefined: there is no such open hold. */
  takePart(
    from: RequestId,
    { requestId, amount: wanted }: HoldTerms,
    now: number,
    expiresAtMs: number,
  ): Nano | undefined {
    assert(!this.#holds.has(requestId), `${requestId} holds already`)
    const whole = this.#open(from)
    if (!whole) return undefined
    const amount = wanted < whole.amount ? wanted : whole.amount
    // What the wallet and its limits hold stays the same.
    whole.amount -= amount
    this.#holds.set(requestId, { ...whole, requestId, amount, covered: 0n, heldAt: now, expiresAtMs, sent: false })
    return amount as Nano
  }

  heldFor(requestId: RequestId): Nano | undefined {
    return this.#open(requestId)?.amount as Nano | undefined
  }

  /** undefined: there is no such open hold. */
  extend(requestId: RequestId, more: Nano): Reservation | undefined {
    assert(more >= 0n, 'an extension is not negative')
    const hold = this.#open(requestId)
    return hold && this.#reserve(hold, more)
  }

  /** See `Ledger.coverOverrun`. */
  coverOverrun(requestId: RequestId, more: Nano): Nano {
    const hold = this.#open(requestId)
    return (hold ? this.#coverOverrun(hold, more) : 0n) as Nano
  }

  markSent(requestId: RequestId): void {
    const hold = this.#open(requestId)
    if (hold) hold.sent = true
  }

  /** `due`: what the wallet pays if it can. undefined: there is no such open hold. */
  claim(requestId: RequestId, due: Nano, { countsIn, minute }: ChargeTerms): Claim | undefined {
    assert(due >= 0n, 'a charge is not negative')
    const hold = this.#open(requestId)
    if (!hold) return undefined
    // Reserve the rest now, so that the later commit is covered whatever happens before it. A quote has done so already.
    if (due > hold.amount) this.#coverOverrun(hold, due - hold.amount)
    hold.charge = (due < hold.amount ? due : hold.amount) as Nano
    hold.chargedIn = chargedNames(hold.budgetNames, countsIn, minute)
    return hold as Claim
  }

  settling(requestId: RequestId): Promise<SettleOutcome> | undefined {
    return this.#holds.get(requestId)?.settling
  }

  /** The claim's charge is durable. */
  commit(claim: Claim): void {
    const { requestId, charge, chargedIn, balance } = claim
    this.#end(claim)
    balance.posted -= charge
    this.budgets.spend(chargedIn, charge)
    assert(balance.posted >= balance.held, `${requestId} was charged more than it held`)
  }

  /** The hold ends without a charge. */
  drop(claim: Claim): void {
    this.#end(claim)
  }

  release(requestId: RequestId): boolean {
    const hold = this.#open(requestId)
    if (hold) this.#end(hold)
    return hold !== undefined
  }

  credit(workspaceId: WorkspaceId, amount: Nano): void {
    this.#balanceOf(workspaceId).posted += amount
  }

  /** Ends what is past its lifetime and not being settled. */
  releaseExpired(nowMs: number): readonly ReapReport[] {
    const reports: ReapReport[] = []
    for (const hold of this.#holds.values()) {
      const { requestId, charge, expiresAtMs, sent, amount } = hold
      if (charge !== undefined || expiresAtMs > nowMs) continue
      this.#end(hold)
      reports.push({ requestId, amount: amount as Nano, sent })
    }
    return reports
  }

  #balanceOf(workspaceId: WorkspaceId): Balance {
    const known = this.#balances.get(workspaceId)
    if (known) return known
    const fresh = { posted: 0n, held: 0n }
    this.#balances.set(workspaceId, fresh)
    return fresh
  }

  #open(requestId: RequestId): WalletHold | undefined {
    const hold = this.#holds.get(requestId)
    return hold?.charge === undefined ? hold : undefined
  }

  #reserve(hold: WalletHold, amount: bigint, requiredFree = amount, promised?: Promised): Reservation {
    const { posted, held: reserved } = hold.balance
    const needed = requiredFree > amount ? requiredFree : amount
    const kept = promised?.get(hold.workspaceId) ?? 0n
    if (posted - reserved < needed + kept)
      return { kind: 'insufficient', posted: posted as Nano, held: reserved as Nano }
    const over = this.budgets.refusal(hold.budgets, needed, promised)
    if (over) return over
    this.#add(hold, amount)
    return granted
  }

  #coverOverrun(hold: WalletHold, more: bigint): bigint {
    const { posted, held: reserved } = hold.balance
    const covered = more < posted - reserved ? more : posted - reserved
    if (covered <= 0n) return 0n
    const amount = this.budgets.within(hold.budgets, covered)
    hold.covered += amount
    this.#add(hold, amount)
    return amount
  }

  #add(hold: WalletHold, amount: bigint): void {
    hold.amount += amount
    hold.balance.held += amount
    this.#heldTotal += amount
    this.budgets.hold(hold.budgetNames, amount)
  }

  /** Takes the hold out, and its amount from what is held. */
  #end({ requestId, workspaceId, balance, amount, budgetNames }: WalletHold): void {
    assert(this.#holds.delete(requestId), `no hold of ${requestId}`)
    balance.held -= amount
    this.#heldTotal -= amount
    this.budgets.free(budgetNames, amount)
    assert(balance.held >= 0n, `the holds of ${workspaceId} do not add up`)
  }
}

// ── Settlements ──

// The one way a hold becomes a charge: it is claimed in memory, written with the row of its request, and only then taken
// from the balance. Group commit by back-pressure: while one commit syncs, settlements queue, and the next commit takes
// them all. An idle ledger commits at once, a busy one spends one sync on hundreds.

const batchMax = 512
/** How long a settlement is retried. After that its caller gets `unavailable`, or `unknown` if its commit is still running. */
const retryMs = 30_000
const firstRetryMs = 50
const retryMaxMs = 1000
/** How often a commit that does not return is checked. */
const watchMs = 1000

interface SettlementsOptions extends LedgerOptions {
  readonly book: WalletBook
  readonly journal: Journal
  readonly writeHealth: WriteHealth
  readonly counters: EndCounters
}

interface Entry {
  readonly claim: Claim
  readonly settlement: Settlement
  readonly row: RequestRow
  readonly submittedMs: number
  /** Resolves the call to `settle`; a promise that is rejected rejects it. */
  readonly resolve: Resolve<SettleOutcome>
  /** Set if that was resolved with `unknown`: resolves the end that its caller got a promise of. */
  resolveLate?: Resolve<SettleEnd>
  /** A commit of it failed, and SQLite's write-ahead log may have it all the same. */
  mayBeInLog?: boolean
}

type Resolve<Value> = (value: Value | Promise<Value>) => void

class Settlements {
  #queue: Entry[] = []
  #running: readonly Entry[] = []
  /** Given up, and may be in the write-ahead log: a crash now would charge them. They stay claimed until another commit succeeds. */
  #doubtful: Entry[] = []
  #busy: Promise<void> | undefined

  constructor(private readonly options: SettlementsOptions) {}

  settle(settlement: Settlement): Promise<SettleOutcome> {
    const { book, clock, database, journal, reach } = this.options
    const { requestId } = settlement
    const claim = book.claim(requestId, dueOf(settlement), {
      countsIn: settlement.countsIn,
      minute: minuteAt(clock.now()),
    })
    if (!claim) {
      const first = book.settling(requestId)
      const read = () => journal.apply().then(() => readSettled(database.sql, requestId))
      // If the first could not read its result, this one tries again.
      return first ? first.then(repeatedOutcome, read) : read()
    }
    const { promise, resolve, reject } = Promise.withResolvers<SettleOutcome>()
    try {
      const pause = reach('before_settle')
      if (pause)
        pause.then(() => this.#submit(claim, settlement, resolve)).catch((thrown) => this.#drop(claim, reject, thrown))
      else this.#submit(claim, settlement, resolve)
    } catch (thrown) {
      this.#drop(claim, reject, thrown)
    }
    claim.settling = promise
    return promise
  }

  /** Nothing was written for this claim, so it ends here. */
  #drop(claim: Claim, reject: (thrown: unknown) => void, thrown: unknown): void {
    this.options.book.drop(claim)
    reject(thrown)
  }

  /** Resolves when nothing is queued or running. The next process finds out how those ended that are still in doubt. */
  async close(): Promise<void> {
    await this.#busy
    for (const entry of this.#doubtful.splice(0)) {
      resolveEntry(entry, Promise.reject(new Error('no commit has succeeded since')))
    }
  }

  hasDoubtful(): boolean {
    return this.#doubtful.length > 0
  }

  #submit(claim: Claim, settlement: Settlement, resolve: Entry['resolve']): void {
    const row = chargedRow(settlement, claim.workspaceId, claim.charge, claim.chargedIn)
    const submittedMs = this.options.clock.monotonicMs()
    this.#queue.push({ claim, settlement, row, submittedMs, resolve })
    this.#busy ??= this.#work()
  }

  async #work(): Promise<void> {
    const { timers } = this.options
    let pauseMs = firstRetryMs
    while (this.#queue.length > 0) {
      // A commit wakes two threads and syncs a disk, whatever is in it: the replies that have arrived share one.
      await timers.endOfTurn()
      const batch = this.#queue.splice(0, batchMax)
      if (await this.#commit(batch)) {
        pauseMs = firstRetryMs
        continue
      }
      // Those whose callers were already answered with `unknown` are not tried again.
      this.#giveUp(batch.filter(isReportedUnknown))
      this.#queue.unshift(...batch.filter((entry) => !isReportedUnknown(entry)))
      this.#giveUpOld()
      await timers.wait(pauseMs)
      pauseMs = Math.min(2 * pauseMs, retryMaxMs)
    }
    this.#busy = undefined
  }

  /** False = the store failed, and the batch may be tried again: what is appended twice is charged once. */
  async #commit(batch: readonly Entry[]): Promise<boolean> {
    const { journal, writeHealth } = this.options
    const endWrite = writeHealth.begin()
    this.#running = batch
    const watch = setInterval(() => this.#giveUpOld(), watchMs)
    try {
      await journal.append(batch.map(({ row }) => row))
      endWrite('committed')
    } catch (thrown) {
      endWrite('failed', thrown)
      if (mayBeWritten(thrown)) for (const entry of batch) entry.mayBeInLog = true
      if (isStoreUnavailable(thrown)) return false
      // Retrying does not help against a defect of ours.
      for (const entry of batch) resolveEntry(entry, this.#endDefective(entry, thrown))
      return true
    } finally {
      clearInterval(watch)
      this.#running = []
    }
    this.#endAll(batch)
    this.endDoubtful()
    return true
  }

  /** To be called after any successful commit: it has overwritten what failed ones had left in the write-ahead log. */
  endDoubtful(): void {
    for (const entry of this.#doubtful.splice(0)) resolveEntry(entry, this.#endAsStored(entry))
  }

  #endAll(batch: readonly Entry[]): void {
    const { book, onBroken } = this.options
    const defects: unknown[] = []
    for (const entry of batch) {
      // The charge is durable even if the balances in memory are wrong, so the caller gets the answer it paid for.
      try {
        book.commit(entry.claim)
      } catch (thrown) {
        defects.push(thrown)
      }
      resolveEntry(entry, this.#endCommitted(entry))
    }
    // Only now, when every other settlement of this commit has its result.
    for (const thrown of defects) onBroken(thrown)
  }

  #endCommitted({ claim, settlement }: Entry): SettleEnd | Promise<SettleEnd> {
    const { reach, counters } = this.options
    const { charge, balance } = claim
    const writtenOff = (settlement.cost - charge) as Nano
    const posted = balance.posted as Nano
    const end: SettleEnd = { kind: 'settled', charge, posted, writtenOff, repeated: false }
    counters.settled(settlement, end, heldBeforeCost(claim))
    try {
      const pause = reach('after_commit')
      return pause ? pause.then(() => end) : end
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  /** The commit failed by a defect of ours, which may have come after it was written. */
  async #endDefective(entry: Entry, thrown: unknown): Promise<SettleEnd> {
    const end = await this.#endAsStored(entry)
    if (end.kind === 'settled') return end
    throw new Error(`${entry.claim.requestId} could not be settled; it was not charged: ${thrown}`, { cause: thrown })
  }

  async #endAsStored({ claim, settlement }: Entry): Promise<SettleEnd> {
    const { book, database, journal, counters } = this.options
    // If this read fails, it is unknown whether the claim was charged, and it stays open.
    await journal.apply()
    const stored = await readSettled(database.sql, claim.requestId)
    if (stored.kind === 'settled') book.commit(claim)
    else book.drop(claim)
    counters.settled(settlement, stored, heldBeforeCost(claim))
    return stored.kind === 'settled' ? stored : unavailable
  }

  /** Settlements that wait are given up. How one ends that is on its way to the disk is not known yet. */
  #giveUpOld(): void {
    const nowMs = this.options.clock.monotonicMs()
    const isOld = ({ submittedMs }: Entry) => nowMs - submittedMs > retryMs
    const old = this.#queue.filter(isOld)
    if (old.length > 0) this.#queue = this.#queue.filter((entry) => !isOld(entry))
    this.#giveUp(old)
    for (const entry of this.#running) if (!isReportedUnknown(entry) && isOld(entry)) this.#resolveUnknown(entry)
  }

  /**
   * They are not tried again. Those that no commit can have written end without a charge, also for a caller that was answered
   * with `unknown` and waits for the end.
   */
  #giveUp(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.mayBeInLog) {
        if (!isReportedUnknown(entry)) this.#resolveUnknown(entry)
        this.#doubtful.push(entry)
        continue
      }
      this.options.book.drop(entry.claim)
      resolveEntry(entry, unavailable)
    }
  }

  /** Its commit has not come back from the disk in time and may still succeed, or may have been written though it failed. */
  #resolveUnknown(entry: Entry): void {
    const { promise, resolve } = Promise.withResolvers<SettleEnd>()
    const end = promise.catch((thrown) => {
      this.options.onFault(`the settlement of ${entry.claim.requestId} could not be ended`, thrown)
      return undefined
    })
    entry.resolveLate = resolve
    entry.resolve({ kind: 'unknown', retryAfterMs: unavailable.retryAfterMs, end })
  }
}

function isReportedUnknown({ resolveLate }: Entry): boolean {
  return resolveLate !== undefined
}

function resolveEntry({ resolve, resolveLate }: Entry, ended: SettleEnd | Promise<SettleEnd>): void {
  const tell = resolveLate ?? resolve
  tell(ended)
}

// ── Top-ups and corrections ──

async function fund(
  { database, clock, reach }: LedgerOptions,
  { book, writeHealth }: { readonly book: WalletBook; readonly writeHealth: WriteHealth },
  funding: Funding,
): Promise<FundOutcome> {
  const end = writeHealth.begin()
  try {
    const outcome = await database.transaction((sql) => recordFunding(sql, funding, clock.now(), reach))
    end('committed')
    // Before anything else can happen: the next hold must see the money.
    if (outcome.kind === 'funded' && !outcome.repeated) book.credit(funding.workspaceId, funding.amount)
    return outcome
  } catch (thrown) {
    const isUnavailable = isStoreUnavailable(thrown)
    end(isUnavailable ? 'failed' : 'undecided', thrown)
    if (isUnavailable) return unavailable
    throw thrown
  }
}

/**
 * The amount is held in memory like that of a request, so that no request can use it meanwhile, and leaves the balance when
 * the transfer is durable.
 */
async function correct(
  { database, clock, reach, onBroken }: LedgerOptions,
  { book, writeHealth }: { readonly book: WalletBook; readonly writeHealth: WriteHealth },
  correction: Correction,
): Promise<CorrectOutcome> {
  let claim: Claim | undefined
  const reserve = () => {
    const set = setAside(book, correction, clock.now())
    if ('kind' in set) return set
    claim = set
    return set.charge
  }
  const end = writeHealth.begin()
  let outcome: CorrectOutcome
  try {
    outcome = await database.transaction((sql) =>
      recordCorrection(sql, correction, { now: clock.now(), reach, reserve }),
    )
    end('committed')
  } catch (thrown) {
    // SQLite has rolled the transaction back.
    if (claim) book.drop(claim)
    const isUnavailable = isStoreUnavailable(thrown)
    end(isUnavailable ? 'failed' : 'undecided', thrown)
    if (isUnavailable) return unavailable
    throw thrown
  }
  const isMade = outcome.kind === 'corrected' && !outcome.repeated
  // Before anything else can happen: the next hold must see what the database says.
  try {
    if (claim) isMade ? book.commit(claim) : book.drop(claim)
    else if (isMade) book.credit(correction.workspaceId, correction.amount)
  } catch (thrown) {
    onBroken(thrown)
  }
  return outcome
}

/** As with corrections: what expires is set aside in memory, so that no request can use it meanwhile. */
async function renew(
  { database, reach, onBroken }: LedgerOptions,
  { book, writeHealth }: { readonly book: WalletBook; readonly writeHealth: WriteHealth },
  workspaceId: WorkspaceId,
  terms: { readonly now: number; readonly expiresBy: number },
): Promise<boolean> {
  let claim: Claim | undefined
  const reserve = (due: Nano): Nano => {
    const { held } = book.wallet(workspaceId)
    if (due <= held) return zeroNano
    claim = claimFree(book, workspaceId, (due - held) as Nano, terms.now)
    return claim?.charge ?? zeroNano
  }
  const end = writeHealth.begin()
  let renewed: Renewed
  try {
    renewed = await database.transaction(async (sql) => {
      await reach('in_topup')
      const changed = await renewPlan(sql, workspaceId, { ...terms, reserve })
      await reach('in_topup')
      return changed
    })
    end('committed')
  } catch (thrown) {
    if (claim) book.drop(claim)
    const isUnavailable = isStoreUnavailable(thrown)
    end(isUnavailable ? 'failed' : 'undecided', thrown)
    if (isUnavailable) return false
    throw thrown
  }
  try {
    if (claim) book.commit(claim)
    book.credit(workspaceId, renewed.granted)
  } catch (thrown) {
    onBroken(thrown)
  }
  return true
}

/** Claimed at once: the reaper, which ends holds past their time, must not end this one. */
function setAside(book: WalletBook, correction: Correction, now: number): Claim | Insufficient {
  const { workspaceId, writeOff } = correction
  const { available } = book.wallet(workspaceId)
  const amount = writeOff === 'rest' && available < correction.amount ? available : correction.amount
  const claim = claimFree(book, workspaceId, amount, now)
  if (claim) return claim
  const { posted, held } = book.wallet(workspaceId)
  return { kind: 'insufficient', posted, held }
}

/** undefined: less is free. */
function claimFree(book: WalletBook, workspaceId: WorkspaceId, amount: Nano, now: number): Claim | undefined {
  const id = createId('req')
  const reservation = book.hold({ requestId: id, workspaceId, amount }, now, Number.POSITIVE_INFINITY)
  if (reservation.kind !== 'held') return undefined
  const claim = book.claim(id, amount, { minute: 0 })
  assert(claim, 'what was just held is open')
  return claim
}
