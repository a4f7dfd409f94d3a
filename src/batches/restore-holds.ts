// Places the holds of batches at their providers again. The embedded engine keeps holds in memory, so after a restart the money is
// free that these batches have promised to pay; this takes it back before any other request can have it.

import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { createId, type KeyId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { budgetsOf } from '../pipeline/budgets.ts'
import { dayMs } from '../tenancy/batch-files.ts'
import type { BatchJobStore } from '../tenancy/batch-jobs.ts'
import type { BatchStore } from '../tenancy/batches.ts'
import type { Caller } from '../tenancy/caller.ts'

export interface RestoreHoldsDependencies {
  readonly clock: Clock
  readonly store: Pick<BatchStore, 'answered' | 'findAny'>
  readonly jobs: Pick<BatchJobStore, 'holding' | 'wholeHold' | 'nameHold' | 'list'>
  readonly ledger: Pick<Ledger, 'hold' | 'standing' | 'wallet'>
  authenticate(keyId: KeyId): Promise<Caller | Failure>
}

export async function restoreHolds(deps: RestoreHoldsDependencies): Promise<void> {
  const { clock, store, jobs, ledger } = deps
  for (const claim of await jobs.holding()) {
    const [whole, batch] = [await jobs.wholeHold(claim.id), await store.findAny(claim.id)]
    // A hold is named before it is granted. It was, if something was to be sent; any other batch asks for its hold like a new one.
    if ((await jobs.list(claim.id)).length === 0) continue
    if (!whole?.holdId || !batch || (await ledger.standing(whole.holdId)) !== undefined) continue
    const { lines, kept } = await store.answered(claim.id)
    for (const { line } of kept) lines.delete(line)
    let amount = 0n
    for (const [line, share] of whole.shares) if (!lines.has(line)) amount += share
    const { available } = await ledger.wallet(batch.workspaceId)
    const requestId = createId('req')
    const { workspaceId, projectId, keyId } = batch
    const caller = await deps.authenticate(keyId)
    const budgets = caller instanceof Failure ? [] : (budgetsOf(caller, clock, {}, [{ id: whole.model }]) ?? [])
    if (!(await jobs.nameHold(claim, requestId))) continue
    await ledger.hold({
      ...{ requestId, workspaceId, keyId, projectId, isStanding: true, lifetimeMs: 2 * dayMs },
      amount: (amount < available ? amount : available) as Nano,
      // It was granted before: no limit may refuse it now.
      budgets: budgets.map((budget) => ({ ...budget, cap: unlimitedCap })),
    })
  }
}

const unlimitedCap = (10n ** 18n) as Nano
