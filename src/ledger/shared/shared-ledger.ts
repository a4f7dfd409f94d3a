// The ledger of one replica among several on PostgreSQL. Holds are rows, committed before anything goes upstream. This
// process only remembers which of them are its own; the database decides everything.

import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention, isStoreUnavailable } from '../../store/sql-error.ts'
import { walletOf } from '../account.ts'
import { clean, cleanMs } from '../clean.ts'
import { recordCorrection } from '../correct.ts'
import { recordFunding } from '../fund.ts'
import { commitEndOf, createGate, type Gate } from '../gate.ts'
import type { Ledger, Wallet } from '../ledger.ts'
import type { LedgerOptions } from '../options.ts'
import { createBudgetSeeds, seedRoundMs } from '../seed-budgets.ts'
import { createTally } from '../tally.ts'
import { listTransfers, readTransfersOf } from '../transfer.ts'
import { type Unavailable, unavailable } from '../unavailable.ts'
import { readBudget } from './balances.ts'
import { createBatchQueue } from './batch-queue.ts'
import { clearEnded, reapHolds } from './holds.ts'
import { createOwnHolds } from './own-holds.ts'
import { describeSkew, heartbeatMs, joinReplicas } from './replica.ts'

const probeMs = 1000
const reapMs = 10_000
const contentionRetriesMax = 3

export async function createSharedLedger(options: LedgerOptions): Promise<Ledger> {
  const { database, clock, pace, reach, holdLifetimeMs, onFault, random } = options
  const gate = createGate(clock)
  const onSkew = (skewMs: number) => onFault("this machine's clock is wrong", describeSkew(skewMs))
  const replica = await joinReplicas({ database, clock, gate, onSkew })
  const queue = createBatchQueue({ database, clock, gate, pace, random, owner: () => replica.owner() })
  const tally = createTally()
  const holds = createOwnHolds({ queue, database, reach, holdLifetimeMs, clock, pace, tally })

  const seeds = createBudgetSeeds(options)
  const onSeedFault = (error: unknown) => onFault('a spend limit could not be brought up to date', error)

  const admits = () => gate.admits() && replica.isAlive()
  const reap = async () => {
    const reports = await reapHolds(database, reach)
    holds.forget(reports.map(({ requestId }) => requestId))
    tally.reaped(reports)
    return reports
  }
  const stops = [
    pace.every(heartbeatMs, () => replica.beat()),
    // Once a commit failed, only a successful one opens the gate again.
    pace.every(probeMs, async () => void (gate.failed() && (await replica.beat()))),
    pace.every(seedRoundMs, () => seeds.round().catch(onSeedFault)),
    // A round that fails is tried again in the next one.
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
    fund: (funding) => commit(options, gate, (sql) => recordFunding(sql, funding, clock.now(), reach)),
    correct: (correction) =>
      commit(options, gate, (sql) => recordCorrection(sql, correction, { now: clock.now(), reach })),
    recount: (scopeId) => void seeds.recount(scopeId).catch(onSeedFault),
    wallet: (workspaceId) => readWallet(database, workspaceId),
    budget: (scopeId, window) => readBudget(database, scopeId, window),
    transfers: (workspaceId, query) => listTransfers(database.sql, workspaceId, query),
    transfersOf: (requestId) => readTransfersOf(database.sql, requestId),
    reap,
    admits,
    replica,
    stats: () => ({ ...holds.stats(), ...gate.stats(), ...tally.stats, clockSkewMs: replica.clockSkewMs() }),
    async close() {
      for (const stop of stops) stop()
      holds.close()
      await queue.drain()
      // A row that stays behind is found dead later.
      await replica.leave().catch(() => {})
    },
  }
}

async function cleanAll(options: LedgerOptions): Promise<void> {
  await clean(options)
  await clearEnded(options)
}

async function readWallet({ sql }: Database, workspaceId: WorkspaceId): Promise<Wallet> {
  const [row] = await sql<{ posted: bigint; held: bigint }>`SELECT posted, held FROM balances
    WHERE account_id = ${walletOf(workspaceId)}`
  const { posted, held } = row ?? { posted: 0n, held: 0n }
  return { posted: posted as Nano, held: held as Nano, available: (posted - held) as Nano }
}

/** Commits a transaction of its own, outside the batches; used for what is rare. */
async function commit<T>(
  { database }: LedgerOptions,
  gate: Gate,
  work: (sql: Sql) => Promise<T>,
): Promise<T | Unavailable> {
  for (let retries = 0; ; retries++) {
    const end = gate.begin()
    try {
      const outcome = await database.transaction(work)
      end('committed')
      return outcome
    } catch (thrown) {
      end(commitEndOf(thrown))
      if (isContention(thrown) && retries < contentionRetriesMax) continue
      if (isStoreUnavailable(thrown) || isContention(thrown)) return unavailable
      throw thrown
    }
  }
}
