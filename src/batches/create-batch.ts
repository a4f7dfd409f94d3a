// Creates a batch from a file of requests: checks every line, and that the wallet has what they will probably cost.

import type { Clock } from '../kernel/clock.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import { formatUsd, zeroNano } from '../kernel/money.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ExpectedCost } from '../pipeline/expected-cost.ts'
import { type BatchFile, type BatchFiles, dayMs } from '../tenancy/batch-files.ts'
import type { Batch, BatchStore } from '../tenancy/batches.ts'
import type { Caller } from '../tenancy/caller.ts'
import { checkLines } from './check-lines.ts'
import { kindOf } from './kinds.ts'

export interface CreateBatchDependencies {
  readonly store: BatchStore
  readonly files: BatchFiles
  readonly clock: Clock
  readonly ledger: Pick<Ledger, 'wallet'>
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
  const { total, estimate, errors } = await checkLines(files.read(file), judge, rules)
  const hasFailed = errors.length > 0
  const [first] = errors
  if (first && input.failsWhole) {
    return invalidRequest(`requests[${(first.line ?? 1) - 1}]: ${first.message}`, first.param ?? undefined)
  }
  if (!hasFailed) {
    const { available } = await deps.ledger.wallet(caller.workspaceId)
    if (estimate > available) return cannotPay(caller, { estimate, available })
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
  }
  await store.create(batch)
  return batch
}

function cannotPay(
  { workspaceName }: Caller,
  { estimate, available }: Record<'estimate' | 'available', Batch['estimate']>,
) {
  const metadata = { reason: 'empty', balance: formatUsd(available), needed: formatUsd(estimate) }
  const message = `Workspace "${workspaceName}" has $${metadata.balance} to spend, and this batch will cost up to about $${metadata.needed}. Top up: console → Billing, or \`tollgate wallet topup\`. Fewer lines, or a lower \`max_tokens\` in them, need less.`
  return new Failure('INSUFFICIENT_BALANCE', message, { shouldRetry: false, metadata })
}
