// The fields that bodies of the management API are made of. They check the form and say it in the OpenAPI document;
// what a name, an allowlist or a limit may be is decided by tenancy, once, for the file and the API alike.

import { z } from 'zod'
import { isId } from '../../kernel/ids.ts'
import { formatUsd, type Nano, parseUsd } from '../../kernel/money.ts'
import type { Limits } from '../../tenancy/limits.ts'
import { type IdOf, idPrefixes, type ThingKind } from './route.ts'

/** The words of a field's checks: what it must be, or that it is missing. */
export function must(what: string) {
  return {
    error: (issue: { readonly input?: unknown }) =>
      issue.input === undefined ? `is required: ${what}` : `must be ${what}`,
  }
}

/** The id of a thing in a query; whether it names anything is another question. */
export function idField<Kind extends ThingKind>(kind: Kind) {
  const expected = must(`the id of a ${kind} (${idPrefixes[kind]}_…)`)
  return z
    .string(expected)
    .refine((text) => isId(idPrefixes[kind], text), expected)
    .transform((text) => text as IdOf[Kind])
}

export const nameField = z.string(must('a name for people')).describe('For people; need not be unique.')

export const modelsField = z
  .array(z.string(must('a model id or a pattern such as "acme/*"')), must('a list of model ids and patterns'))
  .describe('Allowlist: model ids and `prefix/*` patterns. Absent or null = every model.')

export const sourcesField = z
  .array(z.string(must('an address or a range such as "10.0.0.0/8"')), must('a list of addresses and ranges'))
  .describe('Addresses and CIDR ranges the key may be used from. Absent or null = from anywhere.')

const amountExpected = 'a decimal string in USD such as "5.00", with at most nine decimals and no sign'

export const amountField = z
  .string(must(amountExpected))
  .regex(/^(0|[1-9][0-9]{0,9})(\.[0-9]{1,9})?$/, must(amountExpected))
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

const count = (meaning: string) =>
  z.int(must('a whole number of at least 1')).min(1, must('a whole number of at least 1')).nullish().describe(meaning)

/** null is the same as absent: no limit. */
export const limitsField = z
  .strictObject({
    requests_per_minute: count('A burst of that many, refilled evenly.'),
    tokens_per_minute: count('Input and output tokens.'),
    concurrent_requests: count('Requests that run at the same time.'),
    spend_per_day: amountField.nullish().describe('USD in a UTC day, as a decimal string.'),
    spend_per_month: amountField.nullish().describe('USD in a UTC month, as a decimal string.'),
  })
  .describe('What is left out is unlimited; the tightest of key, project and workspace holds.')

export function limitsFromBody(body: z.output<typeof limitsField>): Limits {
  return {
    ...(body.requests_per_minute == null ? {} : { requestsPerMinute: body.requests_per_minute }),
    ...(body.tokens_per_minute == null ? {} : { tokensPerMinute: body.tokens_per_minute }),
    ...(body.concurrent_requests == null ? {} : { concurrentRequests: body.concurrent_requests }),
    ...(body.spend_per_day == null ? {} : { spendPerDay: body.spend_per_day }),
    ...(body.spend_per_month == null ? {} : { spendPerMonth: body.spend_per_month }),
  }
}

export function limitsAnswer(limits: Limits): z.input<typeof limitsField> {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, spendPerDay, spendPerMonth } = limits
  return {
    ...(requestsPerMinute === undefined ? {} : { requests_per_minute: requestsPerMinute }),
    ...(tokensPerMinute === undefined ? {} : { tokens_per_minute: tokensPerMinute }),
    ...(concurrentRequests === undefined ? {} : { concurrent_requests: concurrentRequests }),
    ...(spendPerDay === undefined ? {} : { spend_per_day: formatUsd(spendPerDay) }),
    ...(spendPerMonth === undefined ? {} : { spend_per_month: formatUsd(spendPerMonth) }),
  }
}
