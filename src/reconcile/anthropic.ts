// The two forms in which Anthropic reports what it billed. Amounts are decimal texts in cents, after discounts and before
// credits: "123.45" is $1.2345. Checked against its documentation on 2026-11-18:
//
//   analytics   GET /v1/organizations/analytics/usage and /cost: rows with `group`; five dimensions beside cost and token type
//   reports     GET /v1/organizations/usage_report/messages and /cost_report: buckets of a day; costs without the API key

import { isoTime } from '../kernel/clock.ts'
import type { Bucket } from '../kernel/usage.ts'
import {
  type BillLine,
  type BillReport,
  type DayRange,
  dayMs,
  dayOf,
  type ExactJson,
  noKey,
  picoOf,
  quantityOf,
} from './bill.ts'
import { checkCurrency, uniqueRows } from './check-rows.ts'
import { isObject, type JsonObject, malformed, type PageReader, readPages, textIn } from './fetch-pages.ts'

export interface ApiSource {
  readonly reader: PageReader
  readonly baseUrl: string
  readonly adminKey: string
}

export const anthropicUrl = 'https://api.anthropic.com'
const version = '2023-06-01'
const analyticsBeta = 'analytics-usage-cost-2026-08-24'
const rights = 'Use an admin key of the organization (sk-ant-admin…), or a key with the right read:analytics.'
const dimensions = ['api_key_id', 'model', 'service_tier', 'speed', 'inference_geo']
const reportDimensions = ['api_key_id', 'model', 'service_tier', 'inference_geo']

/** The members of a usage, and the token types of a cost. */
const bucketOfType: Readonly<Record<string, Bucket>> = {
  uncached_input_tokens: 'input',
  cache_read_input_tokens: 'cache_read',
  'cache_creation.ephemeral_5m_input_tokens': 'cache_write',
  'cache_creation.ephemeral_1h_input_tokens': 'cache_write_1h',
  output_tokens: 'output',
}

export async function readAnthropicAnalytics(source: ApiSource, range: DayRange): Promise<BillReport> {
  const query = new URLSearchParams({
    starting_at: timeText(range.from),
    ending_at: timeText(range.to),
    time_bucket_width: '1d',
    limit: '1000',
  })
  const usageQuery = withGroups(query, dimensions)
  const usage = await read(source, `/v1/organizations/analytics/usage?${usageQuery}`, analyticsBeta)
  const costQuery = withGroups(query, [...dimensions, 'cost_type', 'token_type'])
  const cost = await read(source, `/v1/organizations/analytics/cost?${costQuery}`, analyticsBeta)
  const usageRows = rowsOf(source, usage.items)
  const costRows = rowsOf(source, cost.items)
  // The older of the two: a day is complete once both have it.
  const refreshed = Math.min(refreshedAt(usage.last), refreshedAt(cost.last))
  return {
    lines: [
      ...usageRows.flatMap((row) => usageLines(source, row, row.day, groupIn(row), memberIn(row, 'usage'))),
      ...costRows.map((row) => costLine(source, row.day, groupIn(row), memberIn(row, 'cost'))),
    ],
    missing: (day) =>
      day + dayMs <= refreshed
        ? undefined
        : 'the provider has not finished counting this day; the next run reads it again',
  }
}

export async function readAnthropicReports(source: ApiSource, range: DayRange): Promise<BillReport> {
  const query = new URLSearchParams({
    starting_at: timeText(range.from),
    ending_at: timeText(range.to),
    bucket_width: '1d',
    limit: '31',
  })
  const usage = await read(source, `/v1/organizations/usage_report/messages?${withGroups(query, reportDimensions)}`)
  const cost = await read(source, `/v1/organizations/cost_report?${withGroups(query, ['description'])}`)
  const usageDays = bucketsOf(source, usage.items)
  const costDays = bucketsOf(source, cost.items)
  const lines: BillLine[] = []
  for (const { day, results } of usageDays) {
    for (const result of results) lines.push(...usageLines(source, result, day, result, result))
  }
  // Costs have no key: the comparison takes the share of the gateway's keys in the tokens.
  for (const { day, results } of costDays) {
    for (const result of results) lines.push({ ...costLine(source, day, result, result), key: '' })
  }
  const known = new Set(usageDays.map(({ day }) => day).filter((day) => costDays.some((each) => each.day === day)))
  return { lines, missing: (day) => (known.has(day) ? undefined : 'the report has no data for this day yet') }
}

async function read({ reader, baseUrl, adminKey }: ApiSource, path: string, beta?: string) {
  const headers = { 'x-api-key': adminKey, 'anthropic-version': version, ...(beta && { 'anthropic-beta': beta }) }
  return await readPages(reader, { url: baseUrl + path, headers, rights })
}

function withGroups(query: URLSearchParams, names: readonly string[]): string {
  return [query.toString(), ...names.map((name) => `group_by[]=${name}`)].join('&')
}

function timeText(day: number): string {
  return isoTime(day)
}

function refreshedAt(page: JsonObject): number {
  const at = Date.parse(textIn(page, 'data_refreshed_at'))
  // Where it does not say, what it has counts.
  return Number.isNaN(at) ? Number.POSITIVE_INFINITY : at
}

type DayRow = JsonObject & { readonly day: number }

/** A day and a group have one row; a page that overlaps the one before repeats some. */
function rowsOf(
  { reader }: ApiSource,
  items: readonly ExactJson[],
): readonly (JsonObject & { readonly day: number })[] {
  return uniqueRows(reader, items, ({ starting_at, group }) => JSON.stringify([starting_at, group])).map((row) => {
    const day = dayOf(textIn(row, 'starting_at'))
    if (day === undefined) throw malformed(reader, 'has a row without a day')
    return { ...row, day } as unknown as DayRow
  })
}

function bucketsOf({ reader }: ApiSource, items: readonly ExactJson[]) {
  return uniqueRows(reader, items, ({ starting_at }) => String(starting_at)).map((bucket) => {
    const day = dayOf(textIn(bucket, 'starting_at'))
    const { results } = bucket
    if (day === undefined || !Array.isArray(results)) throw malformed(reader, 'has a bucket without a day or results')
    return { day, results: results.filter(isObject) as readonly JsonObject[] }
  })
}

/** Its names of tiers, where ours differ: its Priority Tier is capacity that was bought. */
const tierNames: Readonly<Record<string, string>> = { standard: '', priority: 'scale' }

function groupIn(row: JsonObject): JsonObject {
  return memberIn(row, 'group')
}

function memberIn(row: JsonObject, name: string): JsonObject {
  const value = row[name]
  return isObject(value) ? value : {}
}

function placeOf(group: JsonObject, day: number): Pick<BillLine, 'day' | 'model' | 'key' | 'tier' | 'region'> {
  const geo = textIn(group, 'inference_geo')
  const tier = textIn(group, 'service_tier')
  return {
    day,
    model: textIn(group, 'model'),
    key: textIn(group, 'api_key_id') || noKey,
    tier: textIn(group, 'speed') === 'fast' ? 'priority' : (tierNames[tier] ?? tier),
    region: geo === 'global' || geo === 'not_available' ? '' : geo,
  }
}

function usageLines(
  { reader }: ApiSource,
  row: JsonObject,
  day: number,
  group: JsonObject,
  usage: JsonObject,
): readonly BillLine[] {
  const place = placeOf(group, day)
  const count = (value: ExactJson | undefined): bigint => {
    if (value === undefined || value === null) return 0n
    const quantity = typeof value === 'string' ? quantityOf(value) : undefined
    if (quantity === undefined)
      throw malformed(reader, `has a count that is no whole number, on ${textIn(row, 'starting_at')}`)
    return quantity
  }
  const lines: BillLine[] = []
  for (const [type, bucket] of Object.entries(bucketOfType)) {
    const [outer = '', inner] = type.split('.')
    const quantity = count(inner === undefined ? usage[outer] : memberIn(usage, outer)[inner])
    if (quantity > 0n) lines.push({ ...place, bucket, quantity, pico: undefined, requests: undefined })
  }
  const searches = count(memberIn(usage, 'server_tool_use').web_search_requests)
  if (searches > 0n)
    lines.push({ ...place, bucket: 'web_search', quantity: searches, pico: undefined, requests: undefined })
  const { requests } = usage
  if (requests !== undefined && requests !== null)
    lines.push({ ...place, bucket: '', quantity: undefined, pico: undefined, requests: count(requests) })
  return lines
}

function costLine({ reader }: ApiSource, day: number, group: JsonObject, cost: JsonObject): BillLine {
  checkCurrency(reader, textIn(cost, 'currency') || 'USD')
  const pico = picoOf(textIn(cost, 'amount'), 'cents')
  if (pico === undefined) throw malformed(reader, 'has an amount that is no decimal')
  const bucket = bucketOfType[textIn(group, 'token_type')] ?? textIn(group, 'cost_type')
  return { ...placeOf(group, day), bucket, quantity: undefined, pico, requests: undefined }
}
