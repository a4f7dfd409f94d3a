// What OpenAI's organization reports say. Counts: GET /v1/organization/usage/completions and /embeddings. Amounts: GET
// /v1/organization/costs, floats in dollars, with the model in `line_item`: "gpt-6-astra, cached input" or, in older reports,
// "gpt-6-astra, input_tokens". `input_tokens` includes what was read from and written to caches. Checked on 2026-11-18.

import type { Bucket } from '../kernel/usage.ts'
import type { ApiSource } from './anthropic.ts'
import {
  type BillLine,
  type BillReport,
  type DayRange,
  dayMs,
  type ExactJson,
  noKey,
  picoOf,
  quantityOf,
} from './bill.ts'
import { checkCurrency, uniqueRows } from './check-rows.ts'
import { isObject, type JsonObject, malformed, readPages, textIn } from './fetch-pages.ts'

export const openaiUrl = 'https://api.openai.com'
const rights = 'Use an admin key of the organization (sk-admin-…) with the right to read usage.'

const directions: Readonly<Record<string, Bucket>> = {
  input: 'input',
  'uncached input': 'input',
  'cached input': 'cache_read',
  'cache read': 'cache_read',
  'cache write': 'cache_write',
  'cache writes': 'cache_write',
  output: 'output',
  'audio input': 'audio_input',
  'audio cached input': 'audio_cache_read',
  'audio output': 'audio_output',
}

export async function readOpenaiReports(source: ApiSource, range: DayRange): Promise<BillReport> {
  const [completions, embeddings, costs] = [
    await readDays(source, '/v1/organization/usage/completions', range, [
      'api_key_id',
      'model',
      'service_tier',
      'batch',
    ]),
    await readDays(source, '/v1/organization/usage/embeddings', range, ['api_key_id', 'model']),
    await readDays(source, '/v1/organization/costs', range, ['line_item', 'api_key_id']),
  ]
  const known = new Set(completions.map(({ day }) => day).filter((day) => costs.some((each) => each.day === day)))
  const counted = [...completions, ...embeddings]
  return {
    lines: [
      ...counted.flatMap(({ day, results }) => results.flatMap((result) => usageLines(source, day, result))),
      ...costs.flatMap(({ day, results }) => results.flatMap((result) => costLines(source, day, result))),
    ],
    missing: (day) => (known.has(day) ? undefined : 'the report has no data for this day yet'),
  }
}

async function readDays(
  { reader, baseUrl, adminKey }: ApiSource,
  path: string,
  { from, to }: DayRange,
  groups: readonly string[],
) {
  const query = [
    `start_time=${from / 1000}&end_time=${to / 1000}&bucket_width=1d&limit=31`,
    ...groups.map((name) => `group_by[]=${name}`),
  ].join('&')
  const headers = { authorization: `Bearer ${adminKey}` }
  const { items } = await readPages(reader, { url: `${baseUrl}${path}?${query}`, headers, rights })
  return uniqueRows(reader, items, ({ start_time }) => String(start_time)).map((bucket) => {
    const day = Number(textIn(bucket, 'start_time')) * 1000
    const results = bucket.results ?? bucket.result
    if (!Number.isInteger(day / dayMs) || !Array.isArray(results))
      throw malformed(reader, 'has a bucket that is not one UTC day')
    return { day, results: results.filter(isObject) as readonly JsonObject[] }
  })
}

/** Its names of tiers, where ours differ. */
const tierNames: Readonly<Record<string, string>> = { default: '', auto: '', fast: 'priority' }

function usageLines({ reader }: ApiSource, day: number, result: JsonObject): readonly BillLine[] {
  const count = (name: string): bigint | undefined => {
    const value: ExactJson | undefined = result[name]
    if (value === undefined || value === null) return undefined
    const quantity = typeof value === 'string' ? quantityOf(value) : undefined
    if (quantity === undefined) throw malformed(reader, `has \`${name}\` that is no whole number`)
    return quantity
  }
  const tier = textIn(result, 'service_tier')
  const place = {
    day,
    model: textIn(result, 'model'),
    key: textIn(result, 'api_key_id') || noKey,
    tier: result.batch === true ? 'batch' : (tierNames[tier] ?? tier),
    region: '',
    pico: undefined,
  }
  const [read = 0n, written = 0n] = [count('input_cached_tokens'), count('input_cache_write_tokens')]
  const input = count('input_uncached_tokens') ?? (count('input_tokens') ?? 0n) - read - written
  if (input < 0n) throw malformed(reader, 'counts more cached input than input')
  const audio = count('input_audio_tokens') ?? 0n
  const spoken = count('output_audio_tokens') ?? 0n
  const quantities: Partial<Record<Bucket, bigint>> = {
    ...{
      input: input - audio,
      cache_read: read,
      cache_write: written,
      output: (count('output_tokens') ?? 0n) - spoken,
    },
    ...{ audio_input: audio, audio_output: spoken },
  }
  const lines: BillLine[] = []
  for (const [bucket, quantity] of Object.entries(quantities)) {
    if (quantity > 0n) lines.push({ ...place, bucket, quantity, requests: undefined })
  }
  const requests = count('num_model_requests')
  if (requests !== undefined) lines.push({ ...place, bucket: '', quantity: undefined, requests })
  return lines
}

function costLines({ reader }: ApiSource, day: number, result: JsonObject): readonly BillLine[] {
  const amount = isObject(result.amount) ? result.amount : {}
  checkCurrency(reader, textIn(amount, 'currency') || 'usd')
  const pico = picoOf(textIn(amount, 'value'), 'usd')
  if (pico === undefined) throw malformed(reader, 'has an amount that is no decimal')
  // Days without costs have one line without a name.
  if (pico === 0n) return []
  const line = {
    day,
    key: textIn(result, 'api_key_id') || noKey,
    region: '',
    quantity: undefined,
    pico,
    requests: undefined,
  }
  return [{ ...line, ...lineItemOf(textIn(result, 'line_item')) }]
}

/** `gpt-6-astra audio, cached input` → its model, bucket and tier. What is no token of a model keeps its name. */
export function lineItemOf(text: string): Pick<BillLine, 'model' | 'bucket' | 'tier'> {
  const comma = text.indexOf(',')
  const [named, said] = comma === -1 ? [text, ''] : [text.slice(0, comma).trim(), text.slice(comma + 1).trim()]
  const word = /\b(batch|flex|priority|fast|ultrafast|scale)\b/.exec(said.toLowerCase())?.[1] ?? ''
  const tier = tierNames[word] ?? word
  const [, model = named, modality = ''] = /^(\S+) (text|audio|image)$/.exec(named) ?? []
  const direction = said
    .toLowerCase()
    .replace(/_/g, ' ')
    .replace(/\b(batch|flex|priority|fast|ultrafast|scale|tokens|text)\b/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const bucket = directions[modality === 'audio' ? `audio ${direction}` : direction]
  return bucket === undefined ? { model: text, bucket: 'other', tier } : { model, bucket, tier }
}
