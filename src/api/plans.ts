// Plans: what the operator sells as credit for every day, week or month, and the plan of a workspace.

import { z } from 'zod'
import { periods } from '../kernel/spend-limit.ts'
import { amountField, listSchema, must, time, usd } from './fields.ts'
import type { Definitions } from './operation.ts'

export const planSchema = z.object({
  id: z.string(),
  name: z.string(),
  credit: usd.describe('Granted in every period.'),
  period: z.enum(periods),
  expires_days: z
    .int()
    .nullable()
    .describe('Credit expires so many days after it was granted; null = at the end of its period.'),
  price: usd
    .nullable()
    .describe(
      'For a period: paid by subscription where payments are configured, otherwise only shown; null = not stated.',
    ),
  workspaces: z.array(z.string()).describe('Those that have it, or will have it in their next period.'),
})

export const workspacePlanSchema = z.object({
  plan: z.string().nullable().describe('Of the current period; null = none.'),
  starts_at: time.nullable().describe('Of the current period.'),
  ends_at: time.nullable().describe('When the next period begins.'),
  next_plan: z.string().nullable().describe('From the next period on; null = the plan ends, or there is none.'),
  next_credit: usd.nullable().describe('Granted when the next period begins.'),
  credits: z
    .array(
      z.object({
        id: z.string().describe('Of the transfer that granted it.'),
        plan: z.string(),
        period: z
          .string()
          .describe(
            'The day, the Monday of the week, or the month: `2026-11`. Of a subscription, the invoice: `in_…`.',
          ),
        granted: usd,
        remaining: usd,
        expires_at: time,
      }),
    )
    .describe('What remains of granted credit, in the order in which it is spent.'),
  subscription: z
    .object({
      plan: z.string().describe('What the next payment is for.'),
      price: usd.describe('Of a period.'),
      state: z.string().describe("Stripe's word: `active`; `past_due` or `unpaid` = the last payment failed."),
      cancelled: z.boolean().describe('It ends with the period that is paid.'),
    })
    .nullable()
    .describe('By which the workspace pays for its plan; null = none.'),
  offers: z
    .array(planSchema.omit({ workspaces: true }))
    .describe('The plans that the workspace can subscribe to; none where payments are not configured.'),
})

const nameExpected = must('a name of 1 to 100 characters')
const daysExpected = must('a whole number of days from 1 to 366')

export const planOperations = {
  listPlans: {
    summary: 'Lists the plans.',
    answer: listSchema(planSchema),
  },
  putPlan: {
    summary: 'Creates a plan, or changes it for the next period of every workspace that has it.',
    body: z.strictObject({
      name: z.string(nameExpected).min(1, nameExpected).max(100, nameExpected).optional().describe('Absent = the id.'),
      credit: amountField.describe('Granted in every period: more than 0 and at most 1000000.'),
      period: z
        .enum(periods, must('"day", "week" or "month"'))
        .describe('Of the calendar, in UTC; weeks begin on Monday.'),
      expires_days: z
        .int(daysExpected)
        .min(1, daysExpected)
        .max(366, daysExpected)
        .nullish()
        .describe('Credit expires so many days after it was granted. Absent = at the end of its period.'),
      price: amountField
        .nullish()
        .describe(
          'For a period, at most 1000000. Admins can subscribe where payments are configured; otherwise it is only shown.',
        ),
    }),
    example: { name: 'Pro', credit: '20.00', period: 'month', price: '15.00' },
    answer: planSchema,
  },
  deletePlan: {
    summary: 'Deletes a plan that no workspace has. Credit that it granted stays until it expires.',
    status: 204,
  },
  getWorkspacePlan: {
    summary: 'Reads the plan of a workspace and what remains of its credit.',
    answer: workspacePlanSchema,
  },
  putWorkspacePlan: {
    summary: 'Gives a workspace a plan: at once if it has none, otherwise from its next period on.',
    body: z.strictObject({ plan: z.string(must('the id of a plan')) }),
    example: { plan: 'pro' },
    answer: workspacePlanSchema,
  },
  endWorkspacePlan: {
    summary: 'Ends the plan of a workspace with its current period.',
    answer: workspacePlanSchema,
  },
  subscribePlan: {
    summary: 'Starts a subscription to a plan with a price, or changes it from the next payment on.',
    body: z.strictObject({ plan: z.string(must('the id of a plan')) }),
    example: { plan: 'pro' },
    answer: z.object({
      url: z
        .string()
        .nullable()
        .describe('Where to pay; null = the subscription was changed, with nothing to pay now.'),
    }),
  },
  cancelSubscription: {
    summary: 'Cancels the subscription of a workspace. Its plan ends with the period that is paid.',
    answer: workspacePlanSchema,
  },
} satisfies Definitions
