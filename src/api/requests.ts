// The request log: listed, explained, streamed as it grows, exported as a file, and added up.

import { z } from 'zod'
import { isTag, isTagName } from '../kernel/attribution.ts'
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
import type { Definitions } from './operation.ts'
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
    service_tier: z
      .string()
      .nullable()
      .describe('The tier at whose price it is charged, by the reply; null = the reply names none.'),
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
  model: z.string().nullable().describe('The model that was found; null = none.'),
  requested_model: z
    .string()
    .nullable()
    .describe('What the client asked for, if no model was found for it, or if a fallback answered.'),
  status: z
    .number()
    .describe('HTTP status; 499 = the client disconnected before the end. A stream that failed has 200 and a `code`.'),
  code: z.string().nullable().describe('A code of docs/errors.md; null = success.'),
  cause: z
    .string()
    .nullable()
    .describe(
      'Distinguishes failures with the same code: `unknown_model`, `model_not_allowed`, `no_route`, `routes_failed`, `provider_throttled`, `provider_refused`, `spend_limit`; otherwise the code in lower case. null = success.',
    ),
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
        start_ms: milliseconds.nullable().describe('When it began, after the start of the request; null = unknown.'),
        ms: milliseconds.describe('Until it began to answer or failed.'),
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
  session: z.string().nullable().describe('As the client names it.'),
  agent: z.string().nullable().describe("The client's program; behind a slash the agent within it."),
  end_user: z.string().nullable().describe('A hash, or the id that was sent if the operator records it.'),
  tags: z.record(z.string(), z.string()).describe('Of the header `x-tollgate-tags`.'),
  batch_id: z.string().nullable().describe('The batch of which it is a line.'),
})

const chargeSchema = z
  .object({
    price_version: z.string(),
    price_source: z.string(),
    price_effective_from: time,
    lines: z.array(
      z.object({
        kind: z.enum(Object.keys(buckets) as Bucket[]),
        tokens: z
          .number()
          .describe(
            `Number of tokens; ${unitBuckets.map(({ bucket, unit }) => `for \`${bucket}\`, of ${unit}`).join('; ')}.`,
          ),
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
  plan_credits: z
    .array(
      z.object({
        id: z.string().describe('Of the transfer that granted it.'),
        plan: z.string(),
        period: z.string().describe('The day, the Monday of the week, or the month: `2026-11`.'),
        amount: usd,
      }),
    )
    .describe('The credit of plans that paid for the charge; the rest was paid from other money.'),
})

export type LoggedRequest = z.input<typeof requestSchema>
export type ExplainedRequest = z.input<typeof explainedRequestSchema>

const usageFilters = {
  workspace_id: idField('workspace').optional().describe('Only requests of this workspace.'),
  project_id: idField('project').optional().describe('Only requests of this project.'),
  key_id: idField('key').optional().describe('Only requests of this key.'),
  model: z.string().min(1).max(300).optional().describe('Only requests for this model.'),
  session: z.string().min(1).max(300).optional().describe('Only requests of this session.'),
  agent: z.string().min(1).max(300).optional().describe('Only requests of this agent.'),
  end_user: z.string().min(1).max(300).optional().describe('Only requests of this end user.'),
  tag: z
    .string(must('a tag such as team=web'))
    .refine(isTag, must('a tag such as team=web'))
    .optional()
    .describe('Only requests with this tag, `name=value`.'),
}

const requestFilters = {
  ...usageFilters,
  provider: z.string().min(1).max(300).optional().describe('Only requests whose last attempt was at this provider.'),
  batch_id: idField('batch').optional().describe('Only the lines of this batch.'),
  cause: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe('Only requests that failed for this cause; `ok`: only successes.'),
  outcome: z
    .enum(['ok', 'failed'], must('ok or failed'))
    .optional()
    .describe('`failed`: only requests with a `code`; `ok`: only those without.'),
}

const startedBetween = {
  from: timeField.optional().describe('Only requests that started at or after this time. ISO 8601, Z or an offset.'),
  to: timeField.optional().describe('Only requests that started before this time. ISO 8601, Z or an offset.'),
}

export const requestSorts = [
  ...(['started_at', 'total_ms', 'first_event_ms'] as const),
  ...(['input_tokens', 'output_tokens', 'cost'] as const),
] as const
const sortsExpected = must(`one of ${requestSorts.join(', ')}`)

const sorting = {
  sort: z
    .enum(requestSorts, sortsExpected)
    .default('started_at')
    .describe(
      'What to sort by. Requests without a value come last, the newest first among equals. Orders other than newest first read every request of the period.',
    ),
  order: z.enum(['desc', 'asc'], must('desc or asc')).default('desc').describe('`desc`: the highest or newest first.'),
}

/** An export in another order than newest first has at most this many requests, because their order is kept in memory. */
export const sortedExportMax = 200_000

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

const usageGroups = [
  ...(['day', 'workspace', 'project', 'key', 'person', 'group'] as const),
  ...(['model', 'provider', 'route', 'session', 'agent', 'user'] as const),
]
type UsageGroup = (typeof usageGroups)[number] | `tag:${string}`

const usageGroupsExpected = `a list such as "day,model" of ${usageGroups.join(', ')} and tag:NAME`

function isUsageGroup(name: string): name is UsageGroup {
  return name.startsWith('tag:') ? isTagName(name.slice('tag:'.length)) : usageGroups.some((group) => group === name)
}

const ofKeysText =
  '`person`: by the owner of the key; `group`: by the groups that the key or its owner is in now, where a request counts in each of them, and once in the total.'

const usageGroupsField = (usual: string) =>
  z
    .string(must(usageGroupsExpected))
    .default(usual)
    .transform((text, context): readonly UsageGroup[] => {
      const names = [...new Set(text.split(','))]
      if (names.every(isUsageGroup)) return names
      context.addIssue({ code: 'custom', message: `must be ${usageGroupsExpected}` })
      return z.NEVER
    })
    .describe(`What to group by, in this order: ${usageGroupsExpected}. ${ofKeysText} Default: \`${usual}\`.`)

const usagePeriod = {
  from: timeField.optional().describe('Requests that started at or after this time. Default: the last 30 days.'),
  to: timeField.optional().describe('Requests that started before this time. Default: now.'),
}

const cacheSaved = usd.describe(
  'What the same tokens would have cost without a cache, less their price; negative if cache writes cost more than reads saved.',
)

const usageSums = {
  requests: z.number(),
  failed_requests: z.number().describe('Requests with a `code`.'),
  input_tokens: z.number().describe('Including cache.'),
  cache_read_tokens: tokens.describe('The part of the input that was read from a cache.'),
  cache_write_tokens: tokens.describe('The part of the input that was written to a cache.'),
  output_tokens: z.number(),
  cost: usd,
  cache_hit_rate: z.number().nullable().describe('Input read from a cache ÷ all input; null = there was no input.'),
  cache_saved: cacheSaved,
}

export const usageGroupsMax = 1000

const logFrom = time
  .nullable()
  .describe(
    'When the oldest request in the log started, if what retention removed before is not included. null = it is, because the answer comes from sums, or the log is empty.',
  )

const reportSchema = <Sums extends z.ZodRawShape>(sums: Sums) =>
  z.object({
    from: time,
    to: time,
    log_from: logFrom,
    total: z.object(sums),
    groups: z
      .array(
        z.object({
          values: z.array(z.string().nullable()).describe('One for each of `group_by`; null = the requests have none.'),
          names: z
            .array(z.string().nullable())
            .describe('Names of the workspaces, projects, keys, people and groups among the values.'),
          ...sums,
        }),
      )
      .describe(`The ${usageGroupsMax} most expensive, most expensive first; by day, oldest first.`),
    groups_left_off: z.number(),
  })

const seriesGroups = [
  ...([
    'none',
    'model',
    'key',
    'project',
    'workspace',
    'provider',
    'route',
    'agent',
    'session',
    'user',
    'person',
    'group',
    'cause',
  ] as const),
]
type SeriesGroup = (typeof seriesGroups)[number] | `tag:${string}`
const seriesGroupExpected = `one of ${seriesGroups.join(', ')} and tag:NAME`

export const seriesIntervals = {
  '1m': 60_000,
  '5m': 300_000,
  '1h': 3_600_000,
  '6h': 21_600_000,
  '1d': 86_400_000,
} as const

/** Series beyond it are added up in `others`. */
export const seriesMax = 20

const seriesSums = {
  ...sums,
  cache_read_tokens: tokens.describe('The part of the input that was read from a cache.'),
  cache_saved: cacheSaved,
}
const seriesFields = {
  ...seriesSums,
  points: z
    .array(z.object({ start: time, ...seriesSums }))
    .describe('Intervals with requests, oldest first. The first and the last may be cut by `from` and `to`.'),
}

const usageSeriesSchema = z.object({
  from: time,
  to: time,
  interval: z.enum(Object.keys(seriesIntervals) as (keyof typeof seriesIntervals)[]),
  log_from: logFrom,
  total: z.object(seriesFields),
  series: z
    .array(
      z.object({
        value: z.string().nullable().describe('null = the requests have none.'),
        name: z.string().nullable().describe('Of the key, project, workspace, person or group.'),
        ...seriesFields,
      }),
    )
    .describe(`The ${seriesMax} most expensive, most expensive first.`),
  others: z.object({ count: z.number().describe('How many series are added up here.'), ...seriesFields }).nullable(),
})

const facetSchema = z.array(
  z.object({ value: z.string(), name: z.string().nullable().describe('Of the key or project.'), requests: z.number() }),
)
export const facetValuesMax = 20

const facetsSchema = z.object({
  from: time,
  to: time,
  total: z.number().describe('Requests that match the filters.'),
  facets: z
    .object({
      cause: facetSchema.describe('`ok`, or as in `cause` of a request.'),
      model: facetSchema,
      provider: facetSchema,
      key: facetSchema,
      agent: facetSchema,
      project: facetSchema,
    })
    .describe(`The ${facetValuesMax} most frequent values of each, most frequent first.`),
})

const usageReportSchema = reportSchema(usageSums)

const marginReportSchema = reportSchema({
  requests: z.number(),
  charged: usd.describe('What workspaces were charged.'),
  upstream_cost: usd.describe('What providers bill for the answers of routes with a known cost.'),
  failed_cost: usd.describe(
    'What they probably bill for attempts without an answer: hedges, timeouts, broken and empty answers, callers that left.',
  ),
  margin: usd.describe('`charged` − `charged_without_cost` − `upstream_cost` − `failed_cost`; may be negative.'),
  requests_without_cost: z.number().describe('Charged requests on routes without a known cost.'),
  charged_without_cost: usd.describe('Their charges, which the margin does not count.'),
})

const estimateSchema = z.object({
  rows: z.number().describe('Rows of the request log that have to be read; the rest of the report comes from sums.'),
  seconds: z.number().describe('How long that will take, roughly.'),
})

export type UsageReport = z.input<typeof usageReportSchema>

export const requestOperations = {
  followRequests: {
    summary: 'Streams requests as they end: events named `request`, each with one request as its data.',
    query: z.strictObject(requestFilters),
    answer: requestSchema,
    isEventStream: true,
  },
  exportRequests: {
    summary: 'Downloads the request log as CSV or as one JSON object per line, in the order of the list.',
    query: z.strictObject({ ...requestFilters, ...startedBetween, ...sorting, format: fileFormatField }),
    fileTypes,
  },
  listRequests: {
    summary: 'Lists requests, newest first or sorted by duration, tokens or cost.',
    query: z.strictObject({ ...pageFields, ...requestFilters, ...startedBetween, ...sorting }),
    answer: listSchema(requestSchema),
  },
  getRequest: {
    summary: 'Explains one request: candidates and why, attempts, usage, price version, transfers.',
    answer: explainedRequestSchema,
  },
  getStats: {
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
  },
  exportUsage: {
    summary: 'Downloads tokens and cost, summed up by day, model, session, tag and other groups.',
    query: z.strictObject({
      ...usagePeriod,
      group_by: usageGroupsField('day,model'),
      ...usageFilters,
      format: fileFormatField,
    }),
    fileTypes,
  },
  getUsage: {
    summary: 'Sums up the request log by model, route, session, tag and other groups, with what prompt caches saved.',
    query: z.strictObject({ ...usagePeriod, group_by: usageGroupsField('model'), ...usageFilters }),
    answer: usageReportSchema,
  },
  estimateReport: {
    summary:
      'Says how long a report will take: how many rows of the request log it reads. A report stops when its caller disconnects.',
    query: z.strictObject({
      report: z
        .enum(['usage', 'margin', 'series', 'facets'], must('usage, margin, series or facets'))
        .default('usage')
        .describe('Which report; the other parameters are those of the report.'),
      ...requestFilters,
      ...usagePeriod,
      group_by: z.string().max(1000).optional(),
      interval: z.enum(Object.keys(seriesIntervals) as (keyof typeof seriesIntervals)[]).optional(),
      utc_offset_minutes: z.coerce.number().int().min(-840).max(840).default(0),
    }),
    answer: estimateSchema,
  },
  getUsageSeries: {
    summary:
      'Sums up requests by time and by model, key, provider, session, tag and other groups, within an exact window.',
    query: z.strictObject({
      from: timeField
        .optional()
        .describe('Requests that started at or after this time. Default: 24 hours before `to`.'),
      to: timeField.optional().describe('Requests that started before this time. Default: now.'),
      interval: z
        .enum(Object.keys(seriesIntervals) as (keyof typeof seriesIntervals)[])
        .optional()
        .describe('Default: by the length of the window.'),
      utc_offset_minutes: z.coerce
        .number()
        .int()
        .min(-840)
        .max(840)
        .default(0)
        .describe('How far local time is ahead of UTC, so that days begin at local midnight.'),
      group_by: z
        .string(must(seriesGroupExpected))
        .default('none')
        .refine(
          (name): name is SeriesGroup =>
            name.startsWith('tag:') ? isTagName(name.slice('tag:'.length)) : seriesGroups.some((each) => each === name),
          must(seriesGroupExpected),
        )
        .describe(`What to group by: ${seriesGroupExpected}. ${ofKeysText}`),
      ...requestFilters,
    }),
    answer: usageSeriesSchema,
  },
  getRequestFacets: {
    summary: 'Counts requests by cause, model, provider, key, agent and project.',
    query: z.strictObject({ ...usagePeriod, ...requestFilters }),
    answer: facetsSchema,
  },
  getMargin: {
    summary:
      "Sums up what was charged less what the routes' providers bill, by day, workspace, model, provider or route.",
    query: z.strictObject({ ...usagePeriod, group_by: usageGroupsField('day'), ...usageFilters }),
    answer: marginReportSchema,
  },
} satisfies Definitions
