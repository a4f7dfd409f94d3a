// What a replica asks of the shared database. Operations are committed in batches, and each is answered once, after the
// commit that decided it.

import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Budget } from '../budget.ts'
import type { ExtendOutcome, HoldOutcome, HoldRequest, ReleaseOutcome, SettleEnd, Settlement } from '../ledger.ts'

interface Common<Kind extends string, Outcome> {
  readonly kind: Kind
  readonly requestId: RequestId
  readonly workspaceId: WorkspaceId
  /** How long it is retried while the database cannot be reached; 0 = one attempt. */
  readonly patienceMs: number
  answer(outcome: Outcome): void
  /** Called instead of `answer` when the operation cannot be carried out although the database works: a defect. */
  fail(thrown: unknown): void
}

export interface HoldOperation extends Common<'hold', HoldOutcome> {
  readonly request: HoldRequest
  readonly lifetimeMs: number
}

export interface ExtendOperation extends Common<'extend', ExtendOutcome> {
  readonly more: Nano
  /** The budgets of the hold. */
  readonly budgets: readonly Budget[]
}

/** `unknown`: it may have been committed, and was not confirmed in time. It is not tried again. */
export interface SettleOperation extends Common<'settle', SettleEnd | { readonly kind: 'unknown' }> {
  readonly settlement: Settlement
}

export type ReleaseOperation = Common<'release', ReleaseOutcome>

/** Nobody waits for its answer. */
export type SentOperation = Common<'sent', unknown>

export type SharedOperation = HoldOperation | ExtendOperation | SettleOperation | ReleaseOperation | SentOperation

export function ofKind<Kind extends SharedOperation['kind']>(
  batch: readonly SharedOperation[],
  kind: Kind,
): Extract<SharedOperation, { kind: Kind }>[] {
  return batch.filter((operation): operation is Extract<SharedOperation, { kind: Kind }> => operation.kind === kind)
}
