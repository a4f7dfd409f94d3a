// The wallet of a workspace: balance, top-ups, corrections, card payments and the list of transfers.

import { z } from 'zod'
import { amountField, fileTypeOf, listSchema, must, pageQuery, time, usd } from './fields.ts'
import type { Definitions } from './operation.ts'

export const walletSchema = z.object({
  balance: usd,
  held: usd.describe('Reserved by running requests.'),
  available: usd.describe('`balance` less `held`.'),
  credit: usd.describe('The part of `balance` that a plan granted and that expires.'),
  currency: z.literal('USD'),
})

export const topUpSchema = z.object({ id: z.string(), amount: usd, balance: usd.describe('After this top-up.') })

export const correctionSchema = z.object({
  id: z.string(),
  amount: usd,
  direction: z.enum(['add', 'take']),
  balance: usd.describe('After this correction.'),
})

const transferKinds = ['charge', 'writeoff', 'topup', 'grant', 'plan_credit', 'expiry', 'correction'] as const

export const transferSchema = z.object({
  id: z.string(),
  kind: z.enum(transferKinds),
  direction: z
    .enum(['in', 'out', 'none'])
    .describe('As seen from the wallet. `none`: it did not touch the wallet (a write-off, or its reversal).'),
  amount: usd,
  debit_account: z.string().describe('The account that the money left, such as `wallet:ws_…`, `funding` or `plans`.'),
  credit_account: z.string().describe('The account that it went to.'),
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
  payment_id: z.string().describe('Its id (`pay_…`) in the list of payments.'),
})

export const paymentSchema = z.object({
  id: z.string(),
  kind: z.enum(['checkout', 'automatic']),
  amount: usd.describe('The requested amount; once paid, the amount that was paid.'),
  state: z
    .enum(['open', 'paid', 'failed'])
    .describe('`open`: Stripe has not reported a payment yet. `paid`: it is in the wallet.'),
  payment_intent: z.string().nullable().describe('Its id in Stripe; null = not known yet.'),
  failure: z.string().nullable().describe('Why it failed.'),
  created_at: time,
})

export const paymentSettingsSchema = z.object({
  available: z.boolean().describe('Whether this gateway takes payments.'),
  min: usd.describe('The least that one payment may be.'),
  max: usd.describe('The most that one payment may be.'),
  card: z.string().nullable().describe('The saved card, such as `visa 4242`; null = none.'),
  auto_topup: z.object({
    enabled: z.boolean(),
    threshold: usd,
    amount: usd,
    monthly_max: usd,
    spent_this_month: usd.describe('By automatic top-ups, also those that are not paid yet.'),
    failures: z.int().describe('In a row.'),
    stopped: z.string().nullable().describe('Why the gateway turned it off; null = it did not.'),
  }),
})

export const refundSchema = z.object({
  id: z.string(),
  payment_id: z.string(),
  amount: usd,
  state: z
    .enum(['open', 'done', 'failed'])
    .describe('`open`: taken from the wallet, and not confirmed by Stripe yet; the gateway tries again by itself.'),
  failure: z.string().nullable(),
  created_at: time,
})

const monthExpected = must('a month such as "2026-11"')
const monthQuery = z.strictObject({
  month: z
    .string(monthExpected)
    .regex(/^\d{4}-(0[1-9]|1[0-2])$/, monthExpected)
    .optional()
    .describe('A month in UTC: `2026-11`. Absent = the current one.'),
})

export const statementSchema = z.object({
  workspace_id: z.string(),
  workspace_name: z.string(),
  month: z.string(),
  from: time,
  until: time.describe('ISO 8601, exclusive.'),
  is_final: z.boolean().describe('The month is over.'),
  opening_balance: usd,
  closing_balance: usd.describe('The opening balance, plus all fundings, less all charges.'),
  fundings: z.array(
    z.object({
      id: z.string(),
      kind: z.enum(['topup', 'grant', 'plan_credit', 'expiry', 'correction']),
      amount: usd.describe('Less than 0 if it was taken from the wallet.'),
      debit_account: z.string().describe('The account that the money left.'),
      credit_account: z.string().describe('The account that it went to.'),
      reference: z.string().nullable(),
      created_at: time,
    }),
  ),
  charges: z
    .array(
      z.object({
        model: z.string(),
        requests: z.int(),
        amount: usd,
        plan_credit: usd.describe('How much of it was paid from the credit of plans.'),
      }),
    )
    .describe('By model.'),
})

export const receiptSchema = z.object({
  id: z.string(),
  workspace_id: z.string(),
  workspace_name: z.string(),
  amount: usd,
  reference: z.string().nullable(),
  payment_id: z.string().nullable().describe("The payment provider's id; null = entered by the operator."),
  created_at: time,
})

const reasonExpected = must('a text of 1 to 200 characters that says why')

export const walletOperations = {
  getWallet: {
    summary: 'Reads the wallet of a workspace.',
    answer: walletSchema,
  },
  topUp: {
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
  },
  correctWallet: {
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
  },
  createCheckout: {
    summary: 'Starts a card payment. The wallet is credited once it is paid.',
    body: z.strictObject({
      amount: amountField.describe('Whole cents, within `min` and `max` of the payment settings.'),
      save_card: z
        .boolean(must('true or false'))
        .optional()
        .describe('Keeps the card at Stripe for automatic top-ups.'),
    }),
    example: { amount: '25.00' },
    answer: checkoutSchema,
    status: 201,
  },
  listTransfers: {
    summary: 'Lists payments into and out of the wallet, newest first.',
    query: pageQuery.extend({
      kind: z
        .enum(transferKinds, must('charge, writeoff, topup, grant, plan_credit, expiry or correction'))
        .optional()
        .describe('Only transfers of this kind.'),
    }),
    answer: listSchema(transferSchema),
  },
  getStatement: {
    summary: 'Reads the statement of a month: balances, top-ups and corrections, and charges by model.',
    query: monthQuery,
    answer: statementSchema,
  },
  exportStatement: {
    summary: 'Downloads the statement of a month. The amounts add up to the closing balance.',
    query: monthQuery,
    fileTypes: [fileTypeOf.csv],
  },
  listReceipts: {
    summary: 'Lists the receipts of all top-ups, oldest first.',
    answer: listSchema(receiptSchema),
  },
  getPaymentSettings: {
    summary: 'Reads whether and how much can be paid by card, the saved card and the automatic top-up.',
    answer: paymentSettingsSchema,
  },
  putAutoTopUp: {
    summary: 'Turns automatic top-up on, with the saved card. It runs when the balance is below the threshold.',
    body: z.strictObject({
      threshold: amountField.describe('Tops up when the balance is below it.'),
      amount: amountField.describe(
        'What one top-up adds: whole cents, within `min` and `max` of the payment settings.',
      ),
      monthly_max: amountField.describe('What all automatic top-ups of a month (UTC) may add.'),
    }),
    example: { threshold: '5.00', amount: '25.00', monthly_max: '200.00' },
    answer: paymentSettingsSchema,
  },
  stopAutoTopUp: {
    summary: 'Turns automatic top-up off. A payment that has begun is still credited.',
    status: 204,
  },
  listPayments: {
    summary: 'Lists card payments that were started here or credited, newest first.',
    query: pageQuery,
    answer: listSchema(paymentSchema),
  },
  refundPayment: {
    summary: 'Refunds a payment through Stripe and takes it from the wallet, which never goes below zero.',
    body: z.strictObject({
      amount: amountField.optional().describe('Whole cents. Absent = what is not refunded yet.'),
      reason: z
        .string(reasonExpected)
        .max(200, reasonExpected)
        .refine((text) => text.trim() !== '', reasonExpected)
        .describe("Stored in the transfer's `reference` and in the audit log."),
    }),
    example: { amount: '10.00', reason: 'ordered twice' },
    answer: refundSchema,
    status: 201,
  },
} satisfies Definitions
