// The ledger of one replica among several on PostgreSQL. Holds are rows, committed before anything goes upstream; this
// process only remembers which of them are its own, and the database decides everything.

import { isContention, isStoreUnavailable } from '../../store/sql-error.ts'
import type { WalletId } from '../account.ts'
import { clean, cleanMs } from '../clean.ts'
import { type Funding, type FundOutcome, recordFunding } from '../fund.ts'
import { createGate, type Gate } from '../gate.ts'
import type { Ledger } from '../ledger.ts'
import type { LedgerOptions } from '../options.ts'
import { createBudgetSeeds, seedRoundMs } from '../seed-budgets.ts'
import { createTally } from '../tally.ts'
import { listTransfers, readTransfersOf } from '../transfer.ts'
import { unavailable } from '../unavailable.ts'
import { createBatchQueue } from './batch-queue.ts'
import { readBudget } from './budget-rows.ts'
import { describeSkew } from './clock-skew.ts'
import { commitEndOf } from './commit-end.ts'
import { correct } from './correct.ts'
import { createLeaseBook } from './lease-book.ts'
import { createLeaseKeeper, leaseRoundMs } from './lease-keeper.ts'
import { createLeaseTally, leaseStats } from './lease-tally.ts'
import { createOwnHolds } from './own-holds.ts'
import { readWallet } from './read-wallet.ts'
import { clearEnded, reapHolds } from './reap.ts'
import { recallSlices } from './recall.ts'
import { heartbeatMs, joinReplicas } from './replica.ts'

const probeMs = 1000
const reapMs = 10_000
const fundRetriesMax = 3

export async function createSharedLedger(options: LedgerOptions): Promise<Ledger> {
  const { database, clock, pace, reach, holdLifetimeMs, hotHoldsPerSecond, onFault, random } = options
  const gate = createGate(clock)
  const onSkew = (skewMs: number) => onFault("this machine's clock is wrong", describeSkew(skewMs))
  const replica = await joinReplicas({ database, clock, gate, onSkew })
  const owner = () => replica.owner()
  const book = createLeaseBook(() => clock.monotonicMs())
  const closeOwn = (wallet: WalletId) => keeper.close(wallet)
  const recall = (wallet: WalletId) => recallSlices({ database, pace, closeOwn, onFault }, wallet)
  const leaseTally = createLeaseTally()
  const queue = createBatchQueue({ database, clock, gate, pace, random, owner, recall, leaseTally })
  const keeper = createLeaseKeeper({
    database,
    clock,
    gate,
    queue,
    book,
    leaseTally,
    hotHoldsPerSecond,
    owner,
    onFault,
  })
  const tally = createTally()
  const holds = createOwnHolds({ queue, database, reach, holdLifetimeMs, clock, tally, leaseTally, book, keeper })

  const seeds = createBudgetSeeds(options)
  const onSeedFault = (error: unknown) => onFault('a spend limit could not be brought up to date', error)

  const admits = () => gate.admits() && replica.isAlive()
  const reap = async () => {
    const reaped = await reapHolds(database, reach)
    holds.forget(reaped.map(({ requestId }) => requestId))
    const reports = [...reaped, ...holds.reapLeased()]
    tally.reaped(reports)
    return reports
  }
  const stops = [
    pace.every(heartbeatMs, () => replica.beat()),
    // Once a commit failed, only a successful one opens the gate again.
    pace.every(probeMs, async () => void (gate.failed() && (await replica.beat()))),
    pace.every(leaseRoundMs, () => keeper.round()),
    pace.every(seedRoundMs, () => seeds.round().catch(onSeedFault)),
    // What fails now is tried again in the next round.
    pace.every(reapMs, async () => {
      if (!replica.mayJudge()) return
      await reap().catch((error) => onFault('holds of dead replicas could not be ended', error))
    }),
    pace.every(cleanMs, () => cleanAll(options).catch((error) => onFault('old rows could not be removed', error))),
  ]

  return {
    hold(request) {
      if (!admits()) return unavailable
      const seeding = seeds.ensure(request.budgets)
      return seeding ? seeding.then((isDone) => (isDone ? holds.hold(request) : unavailable)) : holds.hold(request)
    },
    extend: holds.extend,
    cover: () => undefined,
    markSent: holds.markSent,
    settle: holds.settle,
    release: holds.release,
    fund: (funding) => fund(options, gate, funding),
    correct: (correction) => correct(options, { gate, recall }, correction),
    recount: (scopeId) => void seeds.recount(scopeId).catch(onSeedFault),
    wallet: (workspaceId) => readWallet(database, workspaceId, { owner: owner().id, book }),
    budget: (scopeId, window) => readBudget(database, scopeId, window),
    transfers: (workspaceId, query) => listTransfers(database.sql, workspaceId, query),
    transfersOf: (requestId) => readTransfersOf(database.sql, requestId),
    reap,
    admits,
    replica,
    stats: () => ({
      ...holds.stats(),
      ...gate.stats(),
      ...tally.stats,
      leases: leaseStats(leaseTally, book),
      clockSkewMs: replica.clockSkewMs(),
    }),
    async close() {
      for (const stop of stops) stop()
      await queue.drain()
      await keeper.leave()
      // A row that stays is only found dead later.
      await replica.leave().catch(() => {})
    },
  }
}

async function cleanAll(options: LedgerOptions): Promise<void> {
  await clean(options)
  await clearEnded(options)
}

async function fund({ database, clock, reach }: LedgerOptions, gate: Gate, funding: Funding): Promise<FundOutcome> {
  for (let retries = 0; ; retries++) {
    const end = gate.begin()
    try {
      const outcome = await database.transaction((sql) => recordFunding(sql, funding, clock.now(), reach))
      end('committed')
      return outcome
    } catch (thrown) {
      end(commitEndOf(thrown))
      if (isContention(thrown) && retries < fundRetriesMax) continue
      if (isStoreUnavailable(thrown) || isContention(thrown)) return unavailable
      throw thrown
    }
  }
}
