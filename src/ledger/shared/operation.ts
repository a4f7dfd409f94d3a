// What replicas ask of the shared database, one by one; batches are made of these. An operation is answered once, after
// the commit that decided it.

import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Budget } from '../budget.ts'
import type { ExtendOutcome, HoldOutcome, HoldRequest, ReleaseOutcome, Settlement, SettleOutcome } from '../ledger.ts'
import type { LeasedPart } from './lease-book.ts'

interface Common<Kind extends string, Outcome> {
  readonly kind: Kind
  readonly requestId: RequestId
  readonly workspaceId: WorkspaceId
  /** How long it is tried while the database cannot be reached; 0 = once. */
  readonly patienceMs: number
  answer(outcome: Outcome): void
  /** A defect: the operation could not be carried out, though the database is well. */
  fail(thrown: unknown): void
}

export interface HoldOperation extends Common<'hold', HoldOutcome> {
  readonly request: HoldRequest
  readonly lifetimeMs: number
}

export interface ExtendOperation extends Common<'extend', ExtendOutcome> {
  readonly more: Nano
  /** Those of the hold. */
  readonly budgets: readonly Budget[]
}

/** What a hold that ends consists of: a row, or a part of a lease, or, where an extension did not fit, both. */
interface End {
  readonly hasRow: boolean
  readonly leased?: LeasedPart | undefined
}

export interface SettleOperation extends Common<'settle', SettleOutcome>, End {
  readonly settlement: Settlement
}

export interface ReleaseOperation extends Common<'release', ReleaseOutcome>, End {}

/** Nobody waits for its answer. */
export type SentOperation = Common<'sent', unknown>

export type SharedOperation = HoldOperation | ExtendOperation | SettleOperation | ReleaseOperation | SentOperation

/** Those of one kind. */
export function ofKind<Kind extends SharedOperation['kind']>(
  batch: readonly SharedOperation[],
  kind: Kind,
): Extract<SharedOperation, { kind: Kind }>[] {
  return batch.filter((operation): operation is Extract<SharedOperation, { kind: Kind }> => operation.kind === kind)
}
