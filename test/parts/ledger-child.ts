// A separate process with a ledger on the same database. Its arguments: what to do, the database, the workspace, and
// what the work needs.

import { systemClock } from '../../src/kernel/clock.ts'
import type { WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { holdOf, settlementOf } from './ledger.ts'
import type { LedgerWork } from './ledger-children.ts'
import { storyPlan } from './ledger-story.ts'

const [work = '', url, dataFolder = '', id, ...args] = process.argv.slice(2)
const workspaceId = id as WorkspaceId
let steps = 0

/** Dies at the step given to `fund` and `renew`: 1 and 2 are the failpoints inside the transaction, 3 is after the commit. */
function step(): undefined {
  steps++
  if ((work === 'fund' || work === 'renew') && steps === Number(args[0])) process.kill(process.pid, 'SIGKILL')
}

const database = await openDatabase({ url: url || undefined, dataFolder })
const ledger = await createLedger({ database, clock: systemClock, failpoint: step })
const atOnce = (count: number, task: () => Promise<void>) => Promise.all(Array.from({ length: count }, task))

/** Holds 10 nano-dollars and settles so many of them; returns how the hold ended. */
async function charge(amount: bigint, budget?: { readonly scopeId: string; readonly cap: bigint }) {
  const budgets = budget && [{ scopeId: budget.scopeId, window: 'month:2100-01', cap: budget.cap as Nano }]
  const request = { ...holdOf(workspaceId, 10n), budgets }
  const { kind } = await ledger.hold(request)
  const settled = kind === 'held' ? await ledger.settle(settlementOf(request.requestId, amount)) : undefined
  return { kind, isCharged: settled?.kind === 'settled' }
}

async function expireOneByOne(): Promise<void> {
  const plan = storyPlan(database, workspaceId, systemClock.now())
  for (;;) {
    await plan.expire(1)
    await ledger.renewPlans(workspaceId)
    process.stdout.write('x')
  }
}

const counts: Record<string, number> = { held: 0, insufficient: 0, unavailable: 0, charged: 0 }
const works: Record<LedgerWork, () => Promise<unknown>> = {
  /** So many at once, which also count in one budget if there is a cap. */
  hold: () =>
    atOnce(Number(args[0]), async () => {
      const { kind } = await charge(10n, args[1] ? { scopeId: workspaceId, cap: BigInt(args[1]) } : undefined)
      counts[kind] = (counts[kind] ?? 0) + 1
    }),
  /** Sixteen at a time, until the wallet is empty. */
  spend: () =>
    atOnce(16, async () => {
      for (;;) {
        const { kind, isCharged } = await charge(10n)
        if (kind === 'insufficient') return
        if (isCharged) counts.charged = (counts.charged ?? 0) + 1
      }
    }),
  /** Eight at a time, until it is killed; prints a dot for every charge once it is durable. */
  'spend in a budget': () =>
    atOnce(8, async () => {
      for (;;) {
        const { isCharged } = await charge(7n, { scopeId: 'key_1', cap: 1_000_000_000n })
        if (isCharged) process.stdout.write('.')
      }
    }),
  /** The same, while one credit after the other expires. */
  'spend a plan': () => Promise.all([works['spend in a budget'](), expireOneByOne()]),
  async renew() {
    await ledger.renewPlans(workspaceId)
    step()
  },
  async fund() {
    const funding = {
      workspaceId,
      amount: 70n as Nano,
      kind: 'topup',
      idempotencyKey: 'once',
      paymentId: 'cs_1',
    } as const
    await ledger.fund(funding)
    step()
  },
}

if (work === 'hold' || work === 'spend') {
  console.log('ready')
  await Bun.stdin.text()
}
await works[work as LedgerWork]()
await ledger.close()
await database.close()
console.log(JSON.stringify(counts))
