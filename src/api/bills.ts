// Providers' bills: how they compare with what was recorded, and FOCUS files of charges and costs.

import { z } from 'zod'
import { type BillCause, billCauses, billFormats } from '../kernel/bill.ts'
import { dateField, fileFormatField, fileTypes, must, time, usd } from './fields.ts'
import type { Definitions } from './operation.ts'

const day = z.string().describe('A UTC day such as 2026-11-03.')

const periodFields = {
  provider: z.string(must('the id of a provider')).optional().describe('Only the bill of this provider.'),
  from: dateField.optional().describe('The first UTC day. Default: 30 days before `to`.'),
  to: dateField.optional().describe('The day after the last one. Default: today, which is not over yet.'),
}

const figures = {
  billed: usd.describe('What the provider bills, without keys that the gateway does not use.'),
  recorded: usd.describe('What was recorded as its cost.'),
  difference: usd.describe('`billed` − `recorded`; may be negative.'),
  differences: usd.describe('The differences of all days, models and buckets, added up without signs.'),
  unexplained: usd.describe('The part of them that no cause fits.'),
  explained_share: z.number().nullable().describe('From 0 to 1; null = nothing differs.'),
  foreign_billed: usd.describe('Billed for keys that the gateway does not use. Not in `billed`.'),
}

const reportSchema = z.object({
  from: day,
  to: day,
  sources: z
    .array(
      z.object({
        provider: z.string(),
        format: z.enum(billFormats).nullable().describe('null = it is not configured any more.'),
        read_at: time.nullable().describe('When it was read last; null = never.'),
        fault: z.string().nullable().describe('Why the last run could not read everything.'),
      }),
    )
    .describe('The bills that the configuration names.'),
  total: z.object(figures),
  days: z
    .array(
      z.object({
        provider: z.string(),
        day,
        missing: z.string().nullable().describe('Why the day could not be compared yet.'),
        ...figures,
      }),
    )
    .describe('By provider, newest first.'),
  causes: z
    .array(
      z.object({
        provider: z.string(),
        day,
        model: z.string(),
        cause: z.enum(Object.keys(billCauses) as BillCause[]),
        meaning: z.string(),
        amount: usd.describe('Billed more for this reason; negative: less.'),
        quantity: z.number().describe('Tokens or units; 0 = only the price differs.'),
        requests: z.number().describe('How many requests fit.'),
        request_ids: z.array(z.string()).describe('The first hundred of them.'),
        foreign_key: z.string().nullable().describe('A key that the gateway does not use: not part of the difference.'),
        detail: z.string().nullable(),
      }),
    )
    .describe('Largest first.'),
  causes_left_off: z.number(),
})

const runSchema = z.object({
  runs: z.array(
    z.object({
      provider: z.string(),
      compared: z.number().describe('Days that were compared.'),
      missing: z.number().describe('Days that the report does not have yet.'),
      fault: z.string().nullable().describe('Why not everything was read. What was read before is kept.'),
    }),
  ),
  // Its own schema object: the document names one answer by each.
  report: z.object(reportSchema.shape),
})

export const focusContents = ['charges', 'costs'] as const
export const focusPeriods = ['day', 'request'] as const

export const billOperations = {
  runReconciliation: {
    summary: 'Reads the bills of providers now, compares them with what was recorded, and says why they differ.',
    body: z.strictObject(periodFields),
    answer: runSchema,
  },
  getReconciliation: {
    summary: 'Shows what providers billed, what was recorded, and why they differ, as the last runs found it.',
    query: z.strictObject(periodFields),
    answer: reportSchema,
  },
  exportReconciliation: {
    summary: 'Downloads the comparison by day, model and bucket, or its causes with the ids of the requests that fit.',
    query: z.strictObject({
      ...periodFields,
      content: z.enum(['lines', 'causes'], must('lines or causes')).default('lines').describe('`lines` or `causes`.'),
      format: fileFormatField,
    }),
    fileTypes,
  },
  exportFocus: {
    summary: 'Downloads charges or costs in FOCUS 1.2, one row for each kind of token.',
    query: z.strictObject({
      from: dateField.optional().describe('The first UTC day. Default: 30 days before `to`.'),
      to: dateField.optional().describe('The day after the last one. Default: tomorrow.'),
      content: z
        .enum(focusContents, must('charges or costs'))
        .default('charges')
        .describe('`charges`: what workspaces paid; `costs`: what providers probably bill.'),
      by: z.enum(focusPeriods, must('day or request')).default('day').describe('One set of rows a day, or a request.'),
    }),
    fileTypes: ['text/csv; charset=utf-8'],
  },
} satisfies Definitions
