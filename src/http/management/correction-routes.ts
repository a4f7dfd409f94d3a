// Corrections of a wallet: money that was put in wrongly, or paid back to whoever paid it. A new transfer with a reason;
// nothing that stands in the ledger is changed.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Correction } from '../../ledger/correct.ts'
import type { Insufficient } from '../../ledger/insufficient.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { correctionSchema } from './answers.ts'
import { amountField, must } from './fields.ts'
import { type MoveDependencies, moveFailure, noteMove } from './money-move.ts'
import { defineRoute, notFound, type Route } from './route.ts'

export interface CorrectionDependencies extends MoveDependencies {
  readonly ledger: Pick<Ledger, 'correct'>
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
        if (outcome.kind === 'insufficient') return tooLittleFree(outcome, amount)
        if (outcome.kind !== 'corrected') return moveFailure(outcome, amount, { done: 'corrected', does: 'corrects' })
        const told = {
          id: outcome.transfer.id,
          amount: formatUsd(amount),
          direction,
          balance: formatUsd(outcome.posted),
        }
        const details = { direction, amount: told.amount, reason }
        await noteMove(deps, { ...act, action: 'wallet.correct', object: id, details }, outcome)
        return told
      },
    }),
  ]
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
