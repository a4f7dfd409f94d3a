// What calls that move money by hand have in common: the line in the audit log behind the money, and how they are refused.

import { unreachable } from '../../kernel/assert.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import type { Unavailable } from '../../ledger/unavailable.ts'
import type { Database } from '../../store/database.ts'
import { type AuditEntry, appendAuditOnce } from '../../tenancy/audit.ts'
import { usedOtherwise } from './run-write.ts'

export interface MoveDependencies {
  readonly database: Database
  /** What the caller is told of a defect of ours; the details go to the log, under the same id. */
  onDefect(error: unknown, id: RequestId): Failure
}

type Entry = AuditEntry & { readonly requestId: RequestId }

/** A transfer that was made, now or by an earlier call. */
interface Moved {
  readonly transfer: Transfer
  readonly repeated: boolean
}

/**
 * After the money and not with it: the ledger commits by itself. Should this fail, the transfer is there all the same,
 * and a caller who was told of a failure might move it twice; so only the log is told. A repeated call writes the line
 * where the first was cut off before it.
 */
export async function noteMove(
  { database, onDefect }: MoveDependencies,
  entry: Entry,
  { transfer: { id }, repeated }: Moved,
): Promise<void> {
  const details = { transfer: id, ...entry.details, ...(repeated && { repeated }) }
  try {
    await database.transaction((sql) => appendAuditOnce(sql, { ...entry, details }, 'transfer'))
  } catch (error) {
    onDefect(error, entry.requestId)
  }
}

export type RefusedMove =
  | { readonly kind: 'conflict' }
  | { readonly kind: 'out_of_range'; readonly max: Nano }
  | Unavailable

/** `done`, `does`: what was to be done, as in "whether this was credited", "which credits it once". */
export function moveFailure(
  outcome: RefusedMove,
  amount: Nano,
  { done, does }: { readonly done: string; readonly does: string },
): Failure {
  switch (outcome.kind) {
    case 'conflict':
      return usedOtherwise()
    case 'out_of_range':
      return invalidRequest(
        amount > 0n && amount <= outcome.max
          ? `\`amount\` would bring the balance above ${formatUsd(outcome.max)}, which is the most that a wallet takes.`
          : `\`amount\` must be more than 0 and at most ${formatUsd(outcome.max)}.`,
        'amount',
      )
    case 'unavailable':
      return notConfirmed(outcome.retryAfterMs, done, does)
    default:
      return unreachable(outcome)
  }
}

/** A commit whose answer was lost may have been made. */
function notConfirmed(retryAfterMs: number, done: string, does: string): Failure {
  const message =
    `The ledger cannot confirm a commit at the moment; whether this was ${done} is not known. ` +
    `Retry with the same \`Idempotency-Key\`, which ${does} it once; without one, look at the transfers first.`
  return new Failure('OVERLOADED', message, { retryAfterMs })
}
