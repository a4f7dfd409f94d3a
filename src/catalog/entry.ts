// One entry of the `models:` list as people write it, and how it becomes a Model. Built-in models may be written in the
// same form. Whether the providers it names exist is not known here.

import { z } from 'zod'
import { assert } from '../kernel/assert.ts'
import { type Pico, parsePrice, parseSearchPrice } from '../kernel/money.ts'
import { tokensMax } from '../kernel/usage.ts'
import { readAudio } from './audio-prices.ts'
import { type Model, modelTags, type Route, type RouteCost, type RouteTimeouts, routingPolicies } from './model.ts'
import { completePriceRow, completeTierRow, freePrice, type ListedPrices, type Price } from './price.ts'
import { parseFactor } from './us-only.ts'

const dayMs = 86_400_000
const priceExpected = 'expected a decimal string of USD per million tokens such as "2.50"'
const searchPriceExpected = 'expected a decimal string of USD per thousand searches such as "10.00"'
const factorExpected = 'expected a decimal string from "1" to "10" such as "1.1", with at most four decimals'
const priceFormExpected = 'expected the word free, or prices such as { input: "2.50", output: "10.00" }'
const modelIdExpected = 'expected an id of the form creator/model such as acme/large'
const tierExpected = 'expected a number of input tokens from 1 to 2147483648 as the key'

/** The pattern is there for editors; parsePrice decides. */
const decimalOf = (description: string, expected: string) =>
  z
    .string({ error: expected })
    .refine((text) => parsePrice(text) !== undefined, {
      error: `${expected}, without a sign or exponent and with at most six decimals`,
    })
    .meta({ description, pattern: '^(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$' })
const decimal = (meaning: string) =>
  decimalOf(`${meaning}, USD per million tokens, as a decimal string such as "2.50".`, priceExpected)

const text = (meaning: string) =>
  z.string().min(1, { error: 'expected text, not an empty one' }).max(200).describe(meaning)
const tokens = (meaning: string) => z.int().min(1).max(tokensMax).describe(meaning)
const milliseconds = (meaning: string) => z.int().min(1).max(dayMs).describe(`${meaning}, in milliseconds.`)

const priceRowShape = {
  input: decimal('Input tokens that touch no cache'),
  output: decimal('Output tokens, reasoning included'),
  cache_read: decimal('Input tokens read from a cache').optional(),
  cache_write: decimal('Input tokens written to a short cache').optional(),
  cache_write_1h: decimal('Input tokens written to a one-hour cache').optional(),
  audio_input: decimal('Sound among the input tokens, where the provider counts it').optional(),
  audio_cache_read: decimal('Sound among the tokens read from a cache').optional(),
  audio_output: decimal('Sound among the output tokens').optional(),
}
const priceRowSchema = z.strictObject(priceRowShape)

const tierKeySchema = z
  .string()
  .regex(/^[1-9][0-9]{0,9}$/, { error: tierExpected })
  .refine((key) => Number(key) <= tokensMax, { error: tierExpected })

const priceSchema = z
  .union(
    [
      z.literal('free'),
      z.strictObject({
        ...priceRowShape,
        web_search: decimalOf(
          'Searches of the web that the provider runs and reports, USD per thousand searches, as a decimal string such as "10.00". Without it they are not charged.',
          searchPriceExpected,
        ).optional(),
        us_only: z
          .string({ error: factorExpected })
          .refine((text) => parseFactor(text) !== undefined, { error: factorExpected })
          .meta({
            description:
              'What every price of a token is multiplied by where the provider says that it kept the work in the United States (`inference_geo`), as a decimal string such as "1.1". Without it that costs no more.',
            pattern: '^([1-9]|10)([.][0-9]{1,4})?$',
          })
          .optional(),
        over: z
          .record(tierKeySchema, priceRowSchema)
          .optional()
          .describe('Other prices for requests with more input tokens than the key says.'),
      }),
    ],
    { error: priceFormExpected },
  )
  .describe('What a call costs. Without a price the model is listed but cannot be called; `free` says so on purpose.')

const timeoutsSchema = z
  .strictObject({
    connect_ms: milliseconds('Longest wait for a connection').optional(),
    first_event_ms: milliseconds('Longest wait for the first event of the answer').optional(),
    idle_ms: milliseconds('Longest silence inside an answer').optional(),
    content_idle_ms: milliseconds('Longest time inside an answer with nothing but signs of life').optional(),
    total_ms: milliseconds('Longest duration of a whole call').optional(),
  })
  .describe('Timeouts of this route; the ones left out keep their defaults.')

const routeSchema = z.strictObject({
  provider: text('Id of a provider, built in or from this file.'),
  model: text('What the provider calls the model.'),
  priority: z
    .int()
    .min(0)
    .max(1000)
    .optional()
    .describe('Lower is tried first; routes of one priority share the traffic. Default 1.'),
  weight: z
    .number()
    .positive({ error: 'expected a number above 0 (leave the route out to switch it off)' })
    .max(1_000_000)
    .optional()
    .describe('Share of the traffic among routes of the same priority. Default 1.'),
  timeouts: timeoutsSchema.optional(),
  cost: z
    .strictObject({ input: decimal('Input tokens'), output: decimal('Output tokens') })
    .optional()
    .describe('What the operator pays there; decides the order of routes under `routing: cheapest`, and no bill.'),
})

export const modelEntrySchema = z
  .strictObject({
    id: z
      .string({ error: modelIdExpected })
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/, { error: modelIdExpected })
      .describe('What callers pass as `model`: creator/model.'),
    owned_by: text('Who made the model. Default: the part of the id before the slash.').optional(),
    name: text('Name for people. Default: the id.').optional(),
    released: z.iso
      .date({ error: 'expected a date of the form YYYY-MM-DD' })
      .optional()
      .describe('Day of the release, YYYY-MM-DD.'),
    context_tokens: tokens('Size of the context window.').optional(),
    max_output_tokens: tokens('The most tokens one answer can have.').optional(),
    default_max_tokens: tokens('Output cap on the chat surface when the caller sends none.').optional(),
    tags: z.array(z.enum(modelTags)).optional().describe('What the model can do.'),
    price: priceSchema.optional(),
    routes: z
      .array(routeSchema)
      .min(1, { error: 'expected at least one route' })
      .describe('The providers that serve the model, in order of preference.'),
    hedge: z
      .boolean()
      .optional()
      .describe(
        'Ask a second route when the first is slower than usual, for at most one stream in twenty. Default false.',
      ),
    routing: z
      .enum(routingPolicies)
      .optional()
      .describe(
        'Order among routes of one priority: shared by weight, the cheapest, or the quickest. Default priority.',
      ),
  })
  .refine((entry) => !(Number(entry.default_max_tokens) > Number(entry.max_output_tokens)), {
    path: ['default_max_tokens'],
    error: 'expected at most max_output_tokens',
    // Also when another field is wrong: all faults are told at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })

export type ModelEntry = z.infer<typeof modelEntrySchema>
type PriceEntry = NonNullable<ModelEntry['price']>
type RouteEntry = ModelEntry['routes'][number]

/** `source` is `built in`, or the file and line of the entry. */
export function modelFromEntry(entry: ModelEntry, source: string): Model {
  return {
    id: entry.id,
    ownedBy: entry.owned_by ?? entry.id.slice(0, entry.id.indexOf('/')),
    name: entry.name ?? entry.id,
    contextTokens: entry.context_tokens,
    maxOutputTokens: entry.max_output_tokens,
    defaultMaxTokens: entry.default_max_tokens,
    tags: [...new Set(entry.tags)],
    price: entry.price === undefined ? undefined : priceFromEntry(entry.price),
    routes: entry.routes.map(routeFromEntry),
    routing: entry.routing ?? 'priority',
    hedge: entry.hedge ?? false,
    releasedAt: entry.released === undefined ? undefined : Date.parse(`${entry.released}T00:00:00Z`),
    source,
  }
}

export function priceFromEntry(entry: PriceEntry): Price {
  if (entry === 'free') return freePrice
  const base = completePriceRow(listedPrices(entry))
  const tiers = Object.entries(entry.over ?? {}).map(([key, row]) => ({
    overInputTokens: Number(key),
    ...completeTierRow(listedPrices(row), base),
  }))
  tiers.sort((a, b) => a.overInputTokens - b.overInputTokens)
  const search = entry.web_search === undefined ? {} : { webSearch: checkedPrice(entry.web_search, parseSearchPrice) }
  const usOnly = entry.us_only === undefined ? {} : { usOnly: parseFactor(entry.us_only) }
  return { free: false, ...base, ...search, ...usOnly, tiers }
}

function listedPrices(row: z.infer<typeof priceRowSchema>): ListedPrices {
  return {
    input: checkedPrice(row.input),
    output: checkedPrice(row.output),
    cacheRead: row.cache_read === undefined ? undefined : checkedPrice(row.cache_read),
    cacheWrite: row.cache_write === undefined ? undefined : checkedPrice(row.cache_write),
    cacheWriteLong: row.cache_write_1h === undefined ? undefined : checkedPrice(row.cache_write_1h),
    ...readAudio(row, (price) => checkedPrice(price)),
  }
}

function checkedPrice(decimalText: string, parse = parsePrice): Pico {
  const price = parse(decimalText)
  assert(price !== undefined, 'a price entry has passed its schema')
  return price
}

function routeFromEntry(route: RouteEntry): Route {
  return {
    providerId: route.provider,
    upstreamModel: route.model,
    priority: route.priority ?? 1,
    weight: route.weight ?? 1,
    timeouts: timeoutsFromEntry(route.timeouts ?? {}),
    ...(route.cost && { cost: costFromEntry(route.cost) }),
  }
}

function costFromEntry({ input, output }: NonNullable<RouteEntry['cost']>): RouteCost {
  return { input: checkedPrice(input), output: checkedPrice(output) }
}

function timeoutsFromEntry(entry: z.infer<typeof timeoutsSchema>): Partial<RouteTimeouts> {
  return {
    ...(entry.connect_ms !== undefined && { connectMs: entry.connect_ms }),
    ...(entry.first_event_ms !== undefined && { firstEventMs: entry.first_event_ms }),
    ...(entry.idle_ms !== undefined && { idleMs: entry.idle_ms }),
    ...(entry.content_idle_ms !== undefined && { contentIdleMs: entry.content_idle_ms }),
    ...(entry.total_ms !== undefined && { totalMs: entry.total_ms }),
  }
}
