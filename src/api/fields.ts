// The fields that bodies, queries and answers are made of. They check the form and describe it in the OpenAPI document.
// Which names, allowlists and limits are allowed is decided in tenancy, once for the configuration file and the API.

import { z } from 'zod'
import { type Nano, parseUsd } from '../kernel/money.ts'
import { subjectForms } from '../kernel/spend-limit.ts'
import { type IdKind, type IdOf, idPrefixes, isIdOf } from './operation.ts'

/** The message of a failed check: what the field must be, or that it is missing. */
export function must(what: string) {
  return {
    error: (issue: { readonly input?: unknown }) =>
      issue.input === undefined ? `is required: ${what}` : `must be ${what}`,
  }
}

/** An id in a query. Only the form is checked, not whether it exists. */
export function idField<Kind extends IdKind>(kind: Kind) {
  const expected = must(`the id of a ${kind} (${idPrefixes[kind]}_…)`)
  return z
    .string(expected)
    .refine((text) => isIdOf(kind, text), expected)
    .transform((text) => text as IdOf[Kind])
}

export const nameField = z.string(must('a display name')).describe('Display name; need not be unique.')

const listNameExpected = must('a name of a-z, 0-9 and -, at most 40 characters')

export const listNameField = z
  .string(listNameExpected)
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, listNameExpected)
  .describe('The name of a price list.')

export const modelsField = z
  .array(z.string(must('a model id or a pattern such as "acme/*"')), must('a list of model ids and patterns'))
  .describe('Allowlist: model ids and patterns such as `acme/*` and `acme/large-*`. Absent or null = every model.')

export const aliasesField = z
  .record(z.string(), z.string(must('a model id')), must('an object of names and model ids'))
  .describe('Further names of models for the keys of the project: `{"gpt": "openai/gpt-5.6"}`.')

export const sourcesField = z
  .array(z.string(must('an address or a range such as "10.0.0.0/8"')), must('a list of addresses and ranges'))
  .describe('Addresses and CIDR ranges the key may be used from. Absent or null = from anywhere.')

const amountExpected = 'a decimal string in USD such as "5.00", with at most nine decimals and no sign'

/** An amount with too many digits. */
const isLarge = /^[1-9][0-9]{10,}(\.[0-9]{1,9})?$/

export const amountField = z
  .string(must(amountExpected))
  .regex(/^(0|[1-9][0-9]{0,9})(\.[0-9]{1,9})?$/, {
    error: ({ input }) =>
      isLarge.test(String(input)) ? 'must be below 10000000000 (USD)' : `must be ${amountExpected}`,
  })
  .transform((text, context): Nano => {
    const amount = parseUsd(text)
    if (amount !== undefined) return amount
    context.addIssue({ code: 'custom', message: `must be ${amountExpected}` })
    return z.NEVER
  })
  .describe('USD as a decimal string.')

const timeExpected = 'a time from 1970 to 9999 such as "2027-01-31T00:00:00Z"'
/** Request ids and both databases count milliseconds from 1970; later years have no four digits. */
const timeMax = Date.parse('9999-12-31T23:59:59.999Z')

export const timeField = z.iso
  .datetime({ offset: true, ...must(timeExpected) })
  .transform((text) => Date.parse(text))
  .refine((at) => at >= 0 && at <= timeMax, { error: `must be ${timeExpected}` })
  .describe('ISO 8601, with Z or an offset.')

const dateExpected = must('a date such as "2027-01-31"')

/** The first moment of a UTC day. */
export const dateField = z.iso
  .date(dateExpected)
  .transform((text) => Date.parse(text))
  .refine((at) => at >= 0, dateExpected)

const count = (meaning: string) =>
  z.int(must('a whole number of at least 1')).min(1, must('a whole number of at least 1')).nullish().describe(meaning)

const tagAmounts = z.record(z.string(), amountField, must('amounts by tag such as {"team=web": "5.00"}'))

const spendLimitsField = z
  .array(
    z.strictObject({
      subject: z
        .string(must('a subject such as "person:ada@example.com"'))
        .default('all')
        .describe(`Whose spend: ${subjectForms.map(([text, meaning]) => `\`${text}\` ${meaning}`).join('; ')}.`),
      models: z
        .string(must('a model id or a pattern such as "acme/*"'))
        .nullish()
        .describe(
          'Counts only these: a model id, or a pattern as in allowlists; `!acme/small` = every other model. Absent = every model.',
        ),
      window: z
        .string(must('a window such as "day"'))
        .describe(
          '`day`, `week` from Monday, or `month`, all UTC; or the last hours or days, exact to the minute: `5h`, `7d`, from `1h` to `31d`.',
        ),
      limit: amountField,
      then: z
        .string(must('a model id'))
        .nullish()
        .describe(
          'The id of the model that is used once the limit is reached, within its own limits; one that does not count in this limit. Absent = requests are refused.',
        ),
      slow_down: z
        .int(must('a whole number of at least 1'))
        .nullish()
        .describe(
          'From 80 % of the limit on, its subject may make that many requests per minute. Absent = any number.',
        ),
      set_by: z
        .enum(['admin'], must('"admin" or absent'))
        .nullish()
        .describe(
          "`admin`: set by an admin of the workspace, in the workspace's limits, for a person or group. Absent there = by the operator.",
        ),
    }),
    must('a list of spend limits'),
  )
  .nullish()
  .describe('Further spend limits. In limits of a key, no people and groups.')

/** null is the same as absent: no limit. */
export const limitsField = z
  .strictObject({
    requests_per_minute: count('A burst of that many, refilled evenly.'),
    tokens_per_minute: count('Input and output tokens.'),
    concurrent_requests: count('Requests that run at the same time.'),
    spend_per_day: amountField.nullish().describe('USD in a UTC day, as a decimal string.'),
    spend_per_week: amountField.nullish().describe('USD in a week from Monday, UTC, as a decimal string.'),
    spend_per_month: amountField.nullish().describe('USD in a UTC month, as a decimal string.'),
    starts_at: dateField
      .nullish()
      .describe('A UTC date: spend limits apply from then on, and what was spent before does not count.'),
    user_spend_per_day: amountField.nullish().describe('USD in a UTC day, of each end user.'),
    user_spend_per_week: amountField.nullish().describe('USD in a week from Monday, UTC, of each end user.'),
    user_spend_per_month: amountField.nullish().describe('USD in a UTC month, of each end user.'),
    tag_spend_per_day: tagAmounts.nullish().describe('USD in a UTC day by tag: `{"team=web": "5.00"}`.'),
    tag_spend_per_week: tagAmounts.nullish().describe('USD in a week from Monday, UTC, by tag.'),
    tag_spend_per_month: tagAmounts.nullish().describe('USD in a UTC month by tag: `{"team=web": "100.00"}`.'),
    spend_limits: spendLimitsField,
  })
  .describe('Absent limits are unlimited. The tightest limit of key, project and workspace applies.')

/** In answers. */
export const spendStateField = z.object({
  period: z.string().describe('`day`, `week`, `month`, or a rolling window such as `5h`.'),
  limit: z.string().describe('USD as a decimal string.'),
  spent: z.string().describe('USD charged so far in this period; running requests are not counted.'),
  starts_at: z.string().describe('ISO 8601. In the future: the limit does not apply yet.'),
  resets_at: z
    .string()
    .describe('ISO 8601: when the next period begins; of a rolling window, when nothing that counts now will count.'),
  subject: z.string().optional().describe('Absent = all requests.'),
  models: z.string().optional().describe('Absent = every model.'),
})

export const spendField = z
  .array(spendStateField)
  .describe('The state of its own spend limits, without those of each end user and each person.')
export const time = z.string().describe('ISO 8601, UTC.')
export const usd = z.string().describe('USD as a decimal string.')
export const managedBy = z.enum(['api', 'file']).describe('`file` if the configuration file declares it.')
export const allowedModels = z.array(z.string()).nullable().describe('null = every model.')

/** Files that an operation can send. */
export const fileFormats = ['csv', 'jsonl'] as const
export const fileTypeOf = { csv: 'text/csv; charset=utf-8', jsonl: 'application/x-ndjson' } as const
export const fileTypes = fileFormats.map((format) => fileTypeOf[format])
export const fileFormatField = z.enum(fileFormats, must('csv or jsonl')).default('csv').describe('`csv` or `jsonl`.')

// Lists take `limit` and `cursor` and answer `data` and `next_cursor`. Cursors are opaque and belong to one list.

const limitMax = 200
const limitDefault = 50
const limitExpected = `must be a whole number from 1 to ${limitMax}`

/** Visible characters only: cursors contain an id or a number. */
const cursorPattern = /^[!-~]{1,200}$/

export const pageFields = {
  limit: z.coerce
    .number({ error: limitExpected })
    .int({ error: limitExpected })
    .min(1, { error: limitExpected })
    .max(limitMax, { error: limitExpected })
    .default(limitDefault)
    .describe(`Maximum number of items, 1 to ${limitMax}.`),
  cursor: z
    .string()
    .max(400, { error: 'is not a cursor of this list' })
    .transform((text, context) => {
      const position = Buffer.from(text, 'base64url').toString('latin1')
      if (cursorPattern.test(position)) return position
      context.addIssue({ code: 'custom', message: 'is not a cursor of this list' })
      return z.NEVER
    })
    .optional()
    .describe('`next_cursor` of the previous page.'),
}

export const pageQuery = z.strictObject(pageFields)

export function listSchema<Item extends z.ZodType>(item: Item) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable() })
}

export function listAnswer<Item>(data: readonly Item[], nextCursor?: string) {
  return {
    data: [...data],
    next_cursor: nextCursor === undefined ? null : Buffer.from(nextCursor, 'latin1').toString('base64url'),
  }
}
