// Creates a batch from a file of requests: checks every line, and that the wallet and the spend limits have room for what they
// will probably cost.

import type { Clock } from '../kernel/clock.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import { isRolling } from '../kernel/spend-limit.ts'
import { windowEnd } from '../ledger/budget.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { budgetsOf, type LimitBudget } from '../pipeline/budgets.ts'
import type { ExpectedCost } from '../pipeline/expected-cost.ts'
import { batchOverBudget } from '../pipeline/spend-refusals.ts'
import { type BatchFile, type BatchFiles, dayMs } from '../tenancy/batch-files.ts'
import type { Batch, BatchStore } from '../tenancy/batches.ts'
import type { Caller } from '../tenancy/caller.ts'
import { checkLines } from './check-lines.ts'
import { kindOf } from './kinds.ts'

export interface CreateBatchDependencies {
  readonly store: BatchStore
  readonly files: BatchFiles
  readonly clock: Clock
  readonly ledger: Pick<Ledger, 'wallet' | 'budget'>
  readonly expectedCost: ExpectedCost
}

export interface NewBatch {
  readonly file: BatchFile
  readonly endpoint: string
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly linesMax: number
  readonly outputDays: number
  /** A wrong line refuses the whole call. Otherwise the batch is created, and has failed. */
  readonly failsWhole?: boolean
}

export async function createBatch(
  deps: CreateBatchDependencies,
  caller: Caller,
  input: NewBatch,
): Promise<Batch | Failure> {
  const { store, files, clock } = deps
  const { file, endpoint, linesMax, outputDays, metadata } = input
  const kind = kindOf(endpoint)
  const isOpenai = kind.surfaceOfBatch === 'chat'
  const judge = await deps.expectedCost(caller, kind)
  const rules = { endpoint, linesMax, mixesModels: !isOpenai }
  const { total, estimates: live, errors, atProvider } = await checkLines(files.read(file), judge, rules)
  const hasFailed = errors.length > 0
  const estimates = atProvider ? new Map([[atProvider.model, sumOf(atProvider.shares.values())]]) : live
  const estimate = sumOf(estimates.values())
  const [first] = errors
  if (first && input.failsWhole) {
    return invalidRequest(`requests[${(first.line ?? 1) - 1}]: ${first.message}`, first.param ?? undefined)
  }
  if (!hasFailed) {
    const { available } = await deps.ledger.wallet(caller.workspaceId)
    if (estimate > available) return cannotPay(caller, { estimate, available })
    // What a provider runs is held at once; lines that are called one by one have until the batch expires.
    const refusal = await overLimit(deps, caller, estimates, clock.now() + (atProvider ? 0 : dayMs))
    if (refusal) return refusal
  }
  const now = clock.now()
  const ended = hasFailed ? now : undefined
  const batch: Batch = {
    ...{ id: createId(isOpenai ? 'batch' : 'msgbatch'), surface: kind.surfaceOfBatch, endpoint, inputFileId: file.id },
    ...{ workspaceId: caller.workspaceId, projectId: caller.projectId, keyId: caller.keyId, metadata },
    ...{ state: hasFailed ? 'ended' : 'running', outcome: hasFailed ? 'failed' : undefined },
    ...{ errors: hasFailed ? errors : undefined, waitsFor: undefined, total: hasFailed ? 0 : total, estimate },
    ...{ succeeded: 0, errored: 0, cancelled: 0, expired: 0, cost: zeroNano, inputTokens: 0, outputTokens: 0 },
    ...{ createdAt: now, expiresAt: now + dayMs, cancelledAt: undefined, endingAt: undefined, endedAt: ended },
    ...{ eraseAt: ended && ended + outputDays * dayMs, outputDays, outputFileId: undefined, errorFileId: undefined },
    provider: hasFailed ? undefined : atProvider?.providerId,
  }
  await store.create(batch, hasFailed ? undefined : atProvider)
  return batch
}

function sumOf(amounts: Iterable<Nano>): Nano {
  let sum = 0n
  for (const amount of amounts) sum += amount
  return sum as Nano
}

/**
 * The first spend limit that leaves less than its models will cost until then. Limits of end users and tags, which
 * each line names by itself, are left to the lines, and so are those that name another model.
 */
async function overLimit(
  { clock, ledger }: CreateBatchDependencies,
  caller: Caller,
  estimates: ReadonlyMap<string, Nano>,
  untilMs: number,
): Promise<Failure | undefined> {
  const now = clock.now()
  const needs = new Map<string, { readonly budget: LimitBudget; needed: bigint }>()
  for (const [id, estimate] of estimates) {
    for (const budget of budgetsOf(caller, clock, {}, [{ id }]) ?? []) {
      if (budget.then !== undefined) continue
      const name = `${budget.scopeId} ${budget.window}`
      const need = needs.get(name) ?? { budget, needed: 0n }
      need.needed += estimate
      needs.set(name, need)
    }
  }
  for (const { budget, needed } of needs.values()) {
    const state = await ledger.budget(budget.scopeId, budget.window)
    const left = leftUntil(untilMs, { ...budget, spent: state.spent }, now)
    if (needed > left) return batchOverBudget(caller, { ...budget, ...state }, { needed: needed as Nano, left, now })
  }
  return undefined
}

/** What a limit leaves until then: the rest of the current window, and each whole one that begins before then. */
function leftUntil(endMs: number, { window, cap, spent }: LimitBudget & { readonly spent: Nano }, now: number): Nano {
  const windowEndMs = windowEnd(window, now) ?? endMs
  const windows = isRolling(window) ? Math.ceil((endMs - windowEndMs) / (windowEndMs - now)) : 1
  const further = windowEndMs < endMs ? windows : 0
  return ((cap > spent ? cap - spent : 0n) + cap * BigInt(further)) as Nano
}

function cannotPay(
  { workspaceName }: Caller,
  { estimate, available }: Record<'estimate' | 'available', Batch['estimate']>,
) {
  const metadata = { reason: 'empty', balance: formatUsd(available), needed: formatUsd(estimate) }
  const message = `Workspace "${workspaceName}" has $${metadata.balance} to spend, and this batch will cost up to about $${metadata.needed}. Top up: console → Billing, or \`tollgate wallet topup\`. Fewer lines, or a lower \`max_tokens\` in them, need less.`
  return new Failure('INSUFFICIENT_BALANCE', message, { shouldRetry: false, metadata })
}
