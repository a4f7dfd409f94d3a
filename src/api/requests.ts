// The request log: listed, explained, streamed as it grows, exported as a file, and added up.

import { z } from 'zod'
import {
  type Bucket,
  buckets,
  type FactorName,
  factorNames,
  factors,
  type PartBucket,
  tokenBuckets,
  type UnitBucket,
  unitBuckets,
  type WholeBucket,
  wholeBuckets,
} from '../kernel/usage.ts'
import { fileFormatField, fileTypes, idField, listSchema, must, pageFields, time, timeField, usd } from './fields.ts'
import { operation } from './operation.ts'
import { transferSchema } from './wallet.ts'

const tokens = z.number().describe('Number of tokens.')
const milliseconds = z.number()
const texts = z.array(z.string()).readonly()

type TokenField<Name extends string> = `${Name}_tokens`
const partBuckets = tokenBuckets.filter(({ partOf }) => partOf !== undefined)

const usageSchema = z
  .object({
    ...(Object.fromEntries(
      wholeBuckets.map(({ bucket, meaning }) => [`${bucket}_tokens`, tokens.describe(`${meaning}.`)]),
    ) as Record<TokenField<WholeBucket>, typeof tokens>),
    reasoning_tokens: tokens.nullable().describe('null = not reported.'),
    ...(Object.fromEntries(
      partBuckets.map(({ bucket, meaning, partOf }) => [
        `${bucket}_tokens`,
        tokens.describe(`${meaning}; part of \`${partOf}_tokens\`.`),
      ]),
    ) as Record<TokenField<PartBucket>, typeof tokens>),
    ...(Object.fromEntries(
      unitBuckets.map(({ json, meaning }) => [
        json,
        z.number().describe(`${meaning}; charged separately from tokens.`),
      ]),
    ) as Record<(typeof buckets)[UnitBucket]['json'], z.ZodNumber>),
    ...(Object.fromEntries(
      factorNames.map((name) => [name, z.boolean().describe(`Whether this applied: ${factors[name].label}.`)]),
    ) as Record<FactorName, z.ZodBoolean>),
    source: z.enum(['reported', 'estimated']),
  })
  .describe('Counts that never overlap, except reasoning and audio, which are parts of others.')

export type UsageItem = z.input<typeof usageSchema>
/** In the order of the columns of an export. */
export const usageFields = Object.keys(usageSchema.shape) as readonly (keyof UsageItem)[]

const route = { provider: z.string(), upstream_model: z.string() }

export const requestSchema = z.object({
  id: z.string(),
  started_at: time,
  workspace_id: z.string(),
  project_id: z.string(),
  key_id: z.string(),
  path: z.string(),
  stream: z.boolean(),
  model: z.string().nullable(),
  status: z
    .number()
    .describe('HTTP status; 499 = the client disconnected before the end. A stream that failed has 200 and a `code`.'),
  code: z.string().nullable().describe('A code of docs/errors.md; null = success.'),
  reason: z.string().nullable().describe('The error message the caller received.'),
  provider: z.string().nullable(),
  upstream_model: z.string().nullable(),
  lane: z.string().nullable().describe('`bytes` or `translation`.'),
  candidates: z
    .array(z.object({ ...route, why: z.string().nullable().describe('Why it has this position, or was left out.') }))
    .describe('The possible routes in the order of the plan.'),
  attempts: z
    .array(
      z.object({
        ...route,
        outcome: z.string().describe('`ok`, `interrupted: …` for an answer that broke off, or what went wrong.'),
        ms: milliseconds,
      }),
    )
    .describe('The routes that were tried.'),
  warnings: texts.describe('What the translation dropped or approximated.'),
  notes: texts.describe("Irregularities in the provider's reply or in the charge."),
  usage: usageSchema.nullable(),
  price_version: z.string().nullable(),
  cost: usd.nullable(),
  held: usd.nullable().describe('The amount held for it.'),
  first_event_ms: milliseconds.nullable(),
  total_ms: milliseconds.describe('Until the commit of its charge began; a commit of 1 s or more is named in `notes`.'),
  client: z.string().nullable().describe("The client's user agent."),
})

const chargeSchema = z
  .object({
    price_version: z.string(),
    price_source: z.string(),
    price_effective_from: time,
    lines: z.array(
      z.object({
        kind: z.enum(Object.keys(buckets) as Bucket[]),
        tokens: z.number().describe('Number of tokens; for `web_search`, of searches.'),
        price_per_million: usd,
        amount: usd.describe('Count × price, with up to twelve decimals.'),
      }),
    ),
    total: usd.describe('The sum of the lines, rounded up once. Estimated usage costs at most what was held.'),
    written_off: usd.describe('The part the wallet could not pay, which the operator lost.'),
    charged: usd.describe('What the wallet paid: the total less what was written off.'),
    released: usd.nullable().describe('The part of the hold that was not used.'),
  })
  .describe('The charge in detail.')

export const explainedRequestSchema = requestSchema.extend({
  charge: chargeSchema.nullable().describe('null if nothing was charged by a price.'),
  transfers: z.array(transferSchema),
})

export type LoggedRequest = z.input<typeof requestSchema>
export type ExplainedRequest = z.input<typeof explainedRequestSchema>

const requestFilters = {
  workspace_id: idField('workspace').optional().describe('Only requests of this workspace.'),
  project_id: idField('project').optional().describe('Only requests of this project.'),
  key_id: idField('key').optional().describe('Only requests of this key.'),
  model: z.string().min(1).max(300).optional().describe('Only requests for this model.'),
  outcome: z
    .enum(['ok', 'failed'], must('ok or failed'))
    .optional()
    .describe('`failed`: only requests with a `code`; `ok`: only those without.'),
}

const startedBetween = {
  from: timeField.optional().describe('Only requests that started at or after this time. ISO 8601, Z or an offset.'),
  to: timeField.optional().describe('Only requests that started before this time. ISO 8601, Z or an offset.'),
}

const sums = {
  requests: z.number(),
  errors: z.number().describe('Requests with a `code`.'),
  input_tokens: z.number().describe('Including cache.'),
  output_tokens: z.number(),
  cost: usd,
  first_event_ms: z
    .object({ count: z.number().describe('How many were measured.'), p50: z.number(), p95: z.number() })
    .nullable()
    .describe('Estimated from a histogram; null = nothing was measured.'),
}

export const statsGroupsMax = 50

const statsSchema = z.object({
  from: time,
  to: time,
  counted_until: time.describe('Requests that started later may be missing.'),
  total: z.object(sums),
  hours: z.array(z.object({ start: time, ...sums })).describe('Hours with requests, oldest first.'),
  groups: z
    .array(
      z.object({
        id: z.string().describe('Id of the key, project or model; empty = the request named none.'),
        name: z.string().nullable().describe('Name of the key or project.'),
        ...sums,
      }),
    )
    .describe(`The ${statsGroupsMax} most expensive, most expensive first.`),
  groups_left_off: z.number(),
})

const usageGroups = ['day', 'workspace', 'project', 'key', 'model', 'provider'] as const
type UsageGroup = (typeof usageGroups)[number]

const usageGroupsExpected = `a list such as "day,model" of ${usageGroups.join(', ')}`

const usageGroupsField = z
  .string(must(usageGroupsExpected))
  .default('day,model')
  .transform((text, context): readonly UsageGroup[] => {
    const names = [...new Set(text.split(','))]
    const groups = usageGroups.filter((group) => names.includes(group))
    if (groups.length === names.length) return names as UsageGroup[]
    context.addIssue({ code: 'custom', message: `must be ${usageGroupsExpected}` })
    return z.NEVER
  })
  .describe(`What to group by, in this order: ${usageGroupsExpected}. Default: \`day,model\`.`)

export const requestOperations = {
  followRequests: operation('followRequests', {
    summary: 'Streams requests as they end: events named `request`, each with one request as its data.',
    query: z.strictObject(requestFilters),
    answer: requestSchema,
    isEventStream: true,
  }),
  exportRequests: operation('exportRequests', {
    summary: 'Downloads the request log, newest first, as CSV or as one JSON object per line.',
    query: z.strictObject({ ...requestFilters, ...startedBetween, format: fileFormatField }),
    fileTypes,
  }),
  listRequests: operation('listRequests', {
    summary: 'Lists requests, newest first.',
    query: z.strictObject({ ...pageFields, ...requestFilters, ...startedBetween }),
    answer: listSchema(requestSchema),
  }),
  getRequest: operation('getRequest', {
    kind: 'request',
    summary: 'Explains one request: candidates and why, attempts, usage, price version, transfers.',
    answer: explainedRequestSchema,
  }),
  getStats: operation('getStats', {
    summary: 'Sums up requests by hour and by model, project or key.',
    query: z.strictObject({
      from: timeField.optional().describe('Rounded to whole hours, as is `to`. Absent = 24 hours before `to`.'),
      to: timeField.optional().describe('Absent = now.'),
      workspace_id: idField('workspace').optional().describe('Only requests of this workspace.'),
      group: z
        .enum(['model', 'project', 'key'], must('model, project or key'))
        .default('model')
        .describe('What to group by.'),
    }),
    answer: statsSchema,
  }),
  exportUsage: operation('exportUsage', {
    summary: 'Downloads tokens and cost, summed up by day, model and other groups.',
    query: z.strictObject({
      from: timeField.optional().describe('Requests that started at or after this time. Default: the last 30 days.'),
      to: timeField.optional().describe('Requests that started before this time. Default: now.'),
      group_by: usageGroupsField,
      workspace_id: idField('workspace').optional().describe('Only requests of this workspace.'),
      format: fileFormatField,
    }),
    fileTypes,
  }),
}
