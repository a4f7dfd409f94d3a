// Handlers of the wallet: reading it, top-ups, corrections and card payments. A correction is a new transfer with a
// reason; existing transfers never change.

import { createHash } from 'node:crypto'
import { operations } from '../../api/operations.ts'
import { checkoutSchema } from '../../api/wallet.ts'
import { Failure } from '../../kernel/failure.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Insufficient } from '../../ledger/account.ts'
import type { Correction } from '../../ledger/fund.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import type { Checkout, CheckoutSession } from '../payments/stripe-checkout.ts'
import { given, pageAnswer, pageOf, transferAnswer, walletAnswer } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import { type Handler, implement, type Route } from './route.ts'
import { auditMove, moveFailure, runWrite } from './writes.ts'

export function walletRoutes(deps: RouteDependencies): readonly Route[] {
  const { database, ledger, checkout } = deps
  return [
    implement(operations.getWallet, {
      async run({ id }) {
        await getWorkspace(database.sql, id)
        return walletAnswer(await ledger.wallet(id))
      },
    }),
    implement(operations.topUp, {
      async run({ id, body: { amount, reference }, act, idempotencyKey }) {
        await getWorkspace(database.sql, id)
        const outcome = await ledger.fund({
          workspaceId: id,
          amount,
          kind: 'topup',
          ...given({ reference, idempotencyKey }),
        })
        if (outcome.kind !== 'funded') throw moveFailure(outcome, amount, { done: 'credited', does: 'credits' })
        const details = { amount: formatUsd(outcome.transfer.amount) }
        await auditMove(deps, { ...act, action: 'wallet.topup', object: id, details }, outcome)
        return { id: outcome.transfer.id, amount: formatUsd(amount), balance: formatUsd(outcome.posted) }
      },
    }),
    implement(operations.correctWallet, {
      async run({ id, body: { amount, direction, reason }, act, idempotencyKey }) {
        await getWorkspace(database.sql, id)
        const correction: Correction = { workspaceId: id, amount, direction, reason, ...given({ idempotencyKey }) }
        const outcome = await ledger.correct(correction)
        if (outcome.kind === 'insufficient') throw tooLittleAvailable(outcome, amount)
        if (outcome.kind !== 'corrected') throw moveFailure(outcome, amount, { done: 'corrected', does: 'corrects' })
        const details = { direction, amount: formatUsd(amount), reason }
        await auditMove(deps, { ...act, action: 'wallet.correct', object: id, details }, outcome)
        const balance = formatUsd(outcome.posted)
        return { id: outcome.transfer.id, amount: details.amount, direction, balance }
      },
    }),
    ...(checkout ? [implement(operations.createCheckout, startCheckout(deps, checkout))] : []),
    implement(operations.listTransfers, {
      async run({ id, query }) {
        await getWorkspace(database.sql, id)
        const { transfers, nextCursor } = await ledger.transfers(id, pageOf(query))
        return pageAnswer({ items: transfers, nextCursor }, (transfer) => transferAnswer(transfer, id))
      },
    }),
  ]
}

/** Has the values of every 402. Not retried automatically: a person decides how much to take. */
function tooLittleAvailable({ posted, held }: Insufficient, amount: Nano): Failure {
  const available = formatUsd((posted > held ? posted - held : 0n) as Nano)
  const of = held > 0n ? `: the balance is $${formatUsd(posted)}, and running requests hold $${formatUsd(held)}` : ''
  const message = `Cannot take $${formatUsd(amount)}; $${available} is available${of}. A wallet never goes below zero; take at most $${available}.`
  const amounts = { balance: formatUsd(posted), held: formatUsd(held), needed: formatUsd(amount) }
  const reason = posted < amount ? 'empty' : 'in_flight'
  return new Failure('INSUFFICIENT_BALANCE', message, { shouldRetry: false, metadata: { reason, ...amounts } })
}

/** Thrown to roll back the lookup of an earlier answer. */
const notAnswered = Symbol('no earlier request had this Idempotency-Key')

/** Nothing is credited here: the webhook does that once the payment was made. */
function startCheckout(deps: RouteDependencies, checkout: Checkout): Handler<typeof operations.createCheckout> {
  return {
    // Not a `write`: a transaction must not wait for another server.
    async run({ id, body: { amount }, act, idempotencyKey: key }) {
      await getWorkspace(deps.database.sql, id)
      const start = () => checkout(id, amount, act.requestId)
      if (key === undefined) return await start()
      const bodySha256 = createHash('sha256').update(String(amount)).digest('hex')
      const scope = `api:/api/workspaces/${id}/checkouts`
      const request = { scope, key, bodySha256, requestId: act.requestId, at: act.at }
      const rollBack = async () => {
        throw notAnswered
      }
      const earlier = await runWrite(deps, request, rollBack).catch((thrown) => {
        if (thrown !== notAnswered) throw thrown
      })
      if (earlier) return storedSession(earlier)
      const session = await start()
      // The same request on another replica may have been faster; then its session counts and this one expires unpaid.
      const made = async () => ({ status: 201, body: JSON.stringify(session) })
      return storedSession(await runWrite(deps, request, made))
    },
  }
}

function storedSession({ body }: { readonly body: string }): CheckoutSession {
  return checkoutSchema.parse(JSON.parse(body))
}
