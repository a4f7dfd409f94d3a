// Starts a payment by card. There is no such call where no payments are configured. Nothing is credited here: that is
// the webhook's, once the payment was made.

import { createHash } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import type { Idempotency } from '../../tenancy/idempotency.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import type { Checkout, CheckoutSession } from '../payments/stripe-checkout.ts'
import { amountField } from './fields.ts'
import { defineRoute, notFound, type Route } from './route.ts'
import { createRunWrite } from './run-write.ts'

export interface CheckoutDependencies {
  readonly database: Database
  readonly idempotency: Idempotency
  /** undefined = no payments are configured. */
  readonly checkout?: Checkout | undefined
}

const checkoutSchema = z.object({
  id: z.string().describe('Of the session (`cs_…`); also of the payment in the ledger.'),
  url: z.string().describe('Where to send the payer.'),
})

/** Rolls back the look into the store of answers; nobody is told. */
const unanswered = new Failure('NOT_FOUND', 'No earlier request had this Idempotency-Key.')

export function checkoutRoutes(deps: CheckoutDependencies): readonly Route[] {
  const { database, checkout } = deps
  if (!checkout) return []
  const runWrite = createRunWrite(deps)
  return [
    defineRoute({
      method: 'POST',
      path: '/api/workspaces/{id}/checkouts',
      kind: 'workspace',
      operation: 'createCheckout',
      summary: 'Starts a payment by card; the wallet is credited when it was paid.',
      body: z.strictObject({ amount: amountField.describe('Whole cents, from 0.50 to 999999.99.') }),
      example: { amount: '25.00' },
      answer: checkoutSchema,
      status: 201,
      // Not a `write`: a transaction must not wait for another server.
      async run({ id, body: { amount }, act, idempotencyKey }) {
        if ((await getWorkspace(database.sql, id)) === 'not found') return notFound('workspace', id)
        const start = () => checkout(id, amount, act.requestId)
        if (idempotencyKey === undefined) return await start()
        const keyed = keyedRequest(id, idempotencyKey, amount)
        const request = { ...keyed, requestId: act.requestId, at: act.at }
        const earlier = await runWrite(request, async () => unanswered)
        if (earlier !== unanswered) return answered(earlier)
        const session = await start()
        if (session instanceof Failure) return session
        // A twin on another replica may have been faster; then its session counts, and this one expires unpaid.
        return answered(await runWrite(request, async () => ({ status: 201, body: JSON.stringify(session) })))
      },
    }),
  ]
}

function keyedRequest(workspaceId: WorkspaceId, key: string, amount: bigint) {
  const bodySha256 = createHash('sha256').update(String(amount)).digest('hex')
  return { scope: `api:/api/workspaces/${workspaceId}/checkouts`, key, bodySha256 }
}

function answered(answer: { readonly body: string } | Failure): CheckoutSession | Failure {
  return answer instanceof Failure ? answer : checkoutSchema.parse(JSON.parse(answer.body))
}
