// Corrections of a wallet: money that was put in wrongly, or paid back to whoever paid it. A new transfer with a reason;
// nothing that stands in the ledger is changed.

import { z } from 'zod'
import { unreachable } from '../../kernel/assert.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Correction, CorrectOutcome } from '../../ledger/correct.ts'
import type { Insufficient } from '../../ledger/insufficient.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Database } from '../../store/database.ts'
import { type Act, appendAudit } from '../../tenancy/audit.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { correctionSchema } from './answers.ts'
import { amountField, must } from './fields.ts'
import { defineRoute, notFound, type Route } from './route.ts'
import { usedOtherwise } from './run-write.ts'

export interface CorrectionDependencies {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'correct'>
  /** What the caller is told of a defect of ours; the details go to the log, under the same id. */
  onDefect(error: unknown, id: RequestId): Failure
}

const reasonExpected = must('a text of 1 to 200 characters that says why')

export function correctionRoutes(deps: CorrectionDependencies): readonly Route[] {
  const { database, ledger } = deps
  return [
    defineRoute({
      method: 'POST',
      path: '/api/workspaces/{id}/corrections',
      kind: 'workspace',
      operation: 'correctWallet',
      summary: 'Takes money out of the wallet that should not be there, or adds what is missing; with a reason.',
      body: z.strictObject({
        amount: amountField.describe('More than 0 and at most 1000000.'),
        direction: z
          .enum(['add', 'take'], must('"add" or "take"'))
          .describe('`take`: out of what is free; what running requests hold stays.'),
        reason: z
          .string(reasonExpected)
          .max(200, reasonExpected)
          .refine((text) => text.trim() !== '', reasonExpected)
          .describe("For people: it becomes the transfer's `reference`, and stands in the audit log."),
      }),
      example: { amount: '0.50', direction: 'take', reason: 'invoice 17 was refunded' },
      answer: correctionSchema,
      status: 201,
      async run({ id, body: { amount, direction, reason }, act, idempotencyKey }) {
        if ((await getWorkspace(database.sql, id)) === 'not found') return notFound('workspace', id)
        const key = idempotencyKey === undefined ? {} : { idempotencyKey }
        const correction: Correction = { workspaceId: id, amount, direction, reason, ...key }
        const outcome = await ledger.correct(correction)
        if (outcome.kind !== 'corrected') return correctFailure(outcome, amount)
        await noteCorrection(deps, correction, { outcome, act })
        const balance = formatUsd(outcome.posted)
        return { id: outcome.transfer.id, amount: formatUsd(amount), direction, balance }
      },
    }),
  ]
}

type Corrected = Extract<CorrectOutcome, { kind: 'corrected' }>

interface Done {
  readonly outcome: Corrected
  readonly act: Act & { readonly requestId: RequestId }
}

/**
 * After the money, as with a top-up: it is moved whatever becomes of this, and a caller must not be told otherwise. A
 * repeated call is noted too, since the first may have been cut off before its line was written.
 */
async function noteCorrection(
  { database, onDefect }: CorrectionDependencies,
  { workspaceId, amount, direction, reason }: Correction,
  { outcome, act }: Done,
): Promise<void> {
  const { transfer, repeated } = outcome
  const details = { transfer: transfer.id, direction, amount: formatUsd(amount), reason, ...(repeated && { repeated }) }
  const entry = { ...act, action: 'wallet.correct', object: workspaceId, details } as const
  try {
    await database.transaction((sql) => appendAudit(sql, entry))
  } catch (error) {
    onDefect(error, act.requestId)
  }
}

function correctFailure(outcome: Exclude<CorrectOutcome, Corrected>, amount: Nano): Failure {
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
    case 'insufficient':
      return tooLittleFree(outcome, amount)
    case 'unavailable':
      return notConfirmed(outcome.retryAfterMs)
    default:
      return unreachable(outcome)
  }
}

/** The facts of every 402. It is not retried by itself: how much is taken is for a person to decide. */
function tooLittleFree({ posted, held }: Insufficient, amount: Nano): Failure {
  const free = formatUsd((posted > held ? posted - held : 0n) as Nano)
  const of = held > 0n ? `: a balance of $${formatUsd(posted)}, of which running requests hold $${formatUsd(held)}` : ''
  const message = `$${formatUsd(amount)} cannot be taken, $${free} is free${of}. A wallet never goes below zero; take at most $${free}.`
  const amounts = { balance: formatUsd(posted), held: formatUsd(held), needed: formatUsd(amount) }
  const reason = posted < amount ? 'empty' : 'in_flight'
  return new Failure('INSUFFICIENT_BALANCE', message, { shouldRetry: false, metadata: { reason, ...amounts } })
}

/** A commit whose answer was lost may have been made. */
function notConfirmed(retryAfterMs: number): Failure {
  const message =
    'The ledger cannot confirm a commit at the moment; whether this was corrected is not known. ' +
    'Retry with the same `Idempotency-Key`, which corrects it once; without one, look at the transfers first.'
  return new Failure('OVERLOADED', message, { retryAfterMs })
}
