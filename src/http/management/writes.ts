// How handlers change things: a transaction that runs once per idempotency key, and what all operations that move money
// by hand have in common.

import { createHash } from 'node:crypto'
import { Failure, invalidRequest, unreachable } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Insufficient, Unavailable } from '../../ledger/account.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention } from '../../store/sql-error.ts'
import { type AuditEntry, appendAuditOnce } from '../../tenancy/audit.ts'
import type { Idempotency, KeyedRequest, StoredAnswer } from '../../tenancy/idempotency.ts'

/** After a conflict between two transactions the loser's second attempt nearly always succeeds. */
const attemptsMax = 4

/**
 * An error of the work rolls back and is not remembered, so the key stays free for the corrected request. `replayed`: an
 * earlier request with this key did it.
 */
export async function runWrite(
  { database, idempotency }: { readonly database: Database; readonly idempotency: Idempotency },
  keyed: (KeyedRequest & { readonly at: number }) | undefined,
  work: (sql: Sql) => Promise<StoredAnswer>,
): Promise<StoredAnswer & { readonly replayed: boolean }> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await database.transaction(async (sql) => {
        const claim = keyed && (await idempotency.claim(sql, keyed, keyed.at))
        if (claim?.kind === 'answered') return { ...claim.answer, replayed: true }
        if (claim?.kind === 'conflict') throw keyReused()
        const answer = await work(sql)
        if (keyed) await idempotency.complete(sql, keyed, answer)
        return { ...answer, replayed: false }
      })
    } catch (thrown) {
      if (attempt === attemptsMax || !isContention(thrown)) throw thrown
    }
  }
}

function keyReused(): Failure {
  return invalidRequest('This Idempotency-Key was used for another request. Use a new one.', 'Idempotency-Key')
}

/** The hash of a body, by which a repeated idempotency key is recognised as the same request. */
export function digestOf(content: unknown): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex')
}

export interface MoveDependencies {
  readonly database: Database
  /** Logs the details under the request id and returns what the caller is shown. */
  onDefect(error: unknown, id: RequestId): Failure
}

type MoveEntry = AuditEntry & { readonly requestId: RequestId }

/**
 * Writes the audit entry of a transfer after the transfer, because the ledger commits by itself. If this fails, the
 * money has moved all the same and an error would make the caller move it twice, so the failure is only logged. A
 * repeated request writes the entry if the first was interrupted before it.
 */
export async function auditMove(
  { database, onDefect }: MoveDependencies,
  entry: MoveEntry,
  { transfer: { id }, repeated }: { readonly transfer: Transfer; readonly repeated: boolean },
): Promise<void> {
  const details = { transfer: id, ...entry.details, ...(repeated && { repeated }) }
  try {
    await database.transaction((sql) => appendAuditOnce(sql, { ...entry, details }, 'transfer'))
  } catch (error) {
    onDefect(error, entry.requestId)
  }
}

/** Has the values of every 402. Not retried automatically: a person decides how much to take. */
export function tooLittleAvailable(
  { posted, held }: Insufficient,
  amount: Nano,
  messageOf: (available: string) => string,
): Failure {
  const available = formatUsd((posted > held ? posted - held : 0n) as Nano)
  const amounts = { balance: formatUsd(posted), held: formatUsd(held), needed: formatUsd(amount) }
  const metadata = { reason: posted < amount ? 'empty' : 'in_flight', ...amounts }
  return new Failure('INSUFFICIENT_BALANCE', messageOf(available), { shouldRetry: false, metadata })
}

export type RefusedMove =
  | { readonly kind: 'conflict' }
  | { readonly kind: 'out_of_range'; readonly max: Nano }
  | Unavailable

/** `done`, `does`: as in "whether it was credited" and "which credits it once". */
export function moveFailure(
  outcome: RefusedMove,
  amount: Nano,
  { done, does }: { readonly done: string; readonly does: string },
): Failure {
  switch (outcome.kind) {
    case 'conflict':
      return keyReused()
    case 'out_of_range':
      return invalidRequest(
        amount > outcome.max
          ? `\`amount\` of $${formatUsd(amount)} is above $${formatUsd(outcome.max)}, the maximum of one transfer.`
          : amount > 0n
            ? `\`amount\` would bring the balance above ${formatUsd(outcome.max)}, the maximum of a wallet.`
            : '`amount` must be more than 0.',
        'amount',
      )
    case 'unavailable': {
      // A commit whose answer was lost may have been made.
      const message =
        `The ledger cannot confirm a commit at the moment, so it is unknown whether this was ${done}. ` +
        `Retry with the same \`Idempotency-Key\`, which ${does} it once; without one, look at the transfers first.`
      return new Failure('OVERLOADED', message, { retryAfterMs: outcome.retryAfterMs })
    }
    default:
      return unreachable(outcome)
  }
}
