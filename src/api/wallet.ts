// The wallet of a workspace: balance, top-ups, corrections, card payments and the list of transfers.

import { z } from 'zod'
import { amountField, listSchema, must, pageQuery, time, usd } from './fields.ts'
import { operation } from './operation.ts'

export const walletSchema = z.object({
  balance: usd,
  held: usd.describe('Reserved by running requests.'),
  available: usd.describe('`balance` less `held`.'),
  currency: z.literal('USD'),
})

export const topUpSchema = z.object({ id: z.string(), amount: usd, balance: usd.describe('After this top-up.') })

export const correctionSchema = z.object({
  id: z.string(),
  amount: usd,
  direction: z.enum(['add', 'take']),
  balance: usd.describe('After this correction.'),
})

export const transferSchema = z.object({
  id: z.string(),
  kind: z.enum(['charge', 'writeoff', 'topup', 'grant', 'correction']),
  direction: z.enum(['in', 'out']).describe('As seen from the wallet.'),
  amount: usd,
  request_id: z.string().nullable(),
  reference: z.string().nullable(),
  price_version: z.string().nullable(),
  usage: z.unknown().describe('Token counts the amount was computed from; null for funding.'),
  estimated: z.boolean().describe('The provider reported no usage, so it was estimated.'),
  created_at: time,
})

export const checkoutSchema = z.object({
  id: z.string().describe('Id of the session (`cs_…`) and of the payment in the ledger.'),
  url: z.string().describe('Where to send the payer.'),
})

const reasonExpected = must('a text of 1 to 200 characters that says why')

export const walletOperations = {
  getWallet: operation('getWallet', {
    kind: 'workspace',
    summary: 'Reads the wallet of a workspace.',
    answer: walletSchema,
  }),
  topUp: operation('topUp', {
    kind: 'workspace',
    summary: 'Adds money to the wallet. Effective for the next request.',
    body: z.strictObject({
      amount: amountField.describe('More than 0 and at most 1000000.'),
      reference: z
        .string(must('a text of at most 200 characters'))
        .max(200, must('a text of at most 200 characters'))
        .nullish()
        .describe('Free text, not a key: two top-ups with the same reference are two top-ups.'),
    }),
    example: { amount: '25.00', reference: 'invoice 17' },
    answer: topUpSchema,
    status: 201,
  }),
  correctWallet: operation('correctWallet', {
    kind: 'workspace',
    summary: 'Removes money that should not be in the wallet, or adds money that is missing; requires a reason.',
    body: z.strictObject({
      amount: amountField.describe('More than 0 and at most 1000000.'),
      direction: z
        .enum(['add', 'take'], must('"add" or "take"'))
        .describe('`take` removes available money only, never what running requests hold.'),
      reason: z
        .string(reasonExpected)
        .max(200, reasonExpected)
        .refine((text) => text.trim() !== '', reasonExpected)
        .describe("Stored as the transfer's `reference` and in the audit log."),
    }),
    example: { amount: '0.50', direction: 'take', reason: 'invoice 17 was refunded' },
    answer: correctionSchema,
    status: 201,
  }),
  createCheckout: operation('createCheckout', {
    kind: 'workspace',
    summary: 'Starts a card payment. The wallet is credited once it is paid.',
    body: z.strictObject({ amount: amountField.describe('Whole cents, from 0.50 to 999999.99.') }),
    example: { amount: '25.00' },
    answer: checkoutSchema,
    status: 201,
  }),
  listTransfers: operation('listTransfers', {
    kind: 'workspace',
    summary: 'Lists payments into and out of the wallet, newest first.',
    query: pageQuery,
    answer: listSchema(transferSchema),
  }),
}
