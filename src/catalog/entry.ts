// An entry of the `models:` list in the configuration file, and how it becomes a Model. Built-in models have the same form.
// Does not check whether the named providers exist.

import { z } from 'zod'
import { parsePrice, parsePricePer } from '../kernel/money.ts'
import {
  type FactorName,
  factorNames,
  factors,
  isRequiredInLists,
  listedBuckets,
  type Tier,
  type TokenBucket,
  tierNames,
  tiers,
  tokensMax,
  type UnitBucket,
  unitBuckets,
  unpricedText,
} from '../kernel/usage.ts'
import { inputKinds, type Model, modelTags, type Route, type RouteTimeouts, routingPolicies } from './model.ts'
import { type Price, parseFactor, readPrice } from './price.ts'

const dayMs = 86_400_000
const priceExpected = 'expected a decimal string of USD per million tokens such as "2.50"'
const factorExpected = 'expected a decimal string from "1" to "10" such as "1.1", with at most four decimals'
const priceFormExpected = 'expected the word free, or prices such as { input: "2.50", output: "10.00" }'
const dayExpected = 'expected a day of the form YYYY-MM-DD or a month of the form YYYY-MM'
const modelIdExpected = 'expected an id of the form creator/model such as acme/large'
const longExpected = 'expected a number of input tokens from 1 to 2147483648 as the key'

/** The pattern is only for editors; `parsePrice` decides. */
const decimalOf = (description: string, expected: string, parse = parsePrice) =>
  z
    .string({ error: expected })
    .refine((text) => parse(text) !== undefined, {
      error: `${expected}, without a sign or exponent and with at most six decimals`,
    })
    .meta({ description, pattern: '^(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$' })
const decimal = (meaning: string) =>
  decimalOf(`${meaning}, USD per million tokens, as a decimal string such as "2.50".`, priceExpected)

const text = (meaning: string) =>
  z.string().min(1, { error: 'expected text, not an empty one' }).max(200).describe(meaning)
const tokens = (meaning: string) => z.int().min(1).max(tokensMax).describe(meaning)
const milliseconds = (meaning: string) => z.int().min(1).max(dayMs).describe(`${meaning}, in milliseconds.`)

const isMonth = /^[0-9]{4}-(0[1-9]|1[0-2])$/
const dayOrMonth = (meaning: string) =>
  z
    .string({ error: dayExpected })
    .refine((text) => isMonth.test(text) || z.iso.date().safeParse(text).success, { error: dayExpected })
    .optional()
    .meta({ description: meaning, pattern: '^[0-9]{4}-(0[1-9]|1[0-2])(-[0-3][0-9])?$' })

type Decimal = ReturnType<typeof decimal>
type RowShape = { readonly [Name in 'input' | 'output']: Decimal } & {
  readonly [Name in Exclude<TokenBucket, 'input' | 'output'>]: z.ZodOptional<Decimal>
}
const priceRowShape = Object.fromEntries(
  listedBuckets.map(({ bucket, meaning }) => [
    bucket,
    isRequiredInLists(bucket) ? decimal(meaning) : decimal(meaning).optional(),
  ]),
) as unknown as RowShape
const priceRowSchema = z.strictObject(priceRowShape)

const unitShape = Object.fromEntries(
  unitBuckets.map((info) => {
    const { bucket, meaning, quantity, scale } = info
    const description = `${meaning}, USD per ${quantity}, as a decimal string such as "9.00". Without it ${unpricedText(info)}.`
    const expected = `expected a decimal string of USD per ${quantity} such as "9.00"`
    return [bucket, decimalOf(description, expected, (text) => parsePricePer(scale, text)).optional()]
  }),
) as unknown as Readonly<Record<UnitBucket, z.ZodOptional<Decimal>>>

const factorSchema = (meaning: string) =>
  z
    .string({ error: factorExpected })
    .refine((text) => parseFactor(text) !== undefined, { error: factorExpected })
    .meta({
      description: `${meaning}, as a decimal string such as "1.1". Without it there is no surcharge.`,
      pattern: '^([1-9]|10)([.][0-9]{1,4})?$',
    })
    .optional()
const factorShape = Object.fromEntries(
  factorNames.map((name) => [name, factorSchema(factors[name].meaning)]),
) as unknown as Readonly<Record<FactorName, ReturnType<typeof factorSchema>>>

const longKeySchema = z
  .string()
  .regex(/^[1-9][0-9]{0,9}$/, { error: longExpected })
  .refine((key) => Number(key) <= tokensMax, { error: longExpected })

const overSchema = z
  .record(longKeySchema, priceRowSchema)
  .optional()
  .describe('Other prices for requests with more input tokens than the key says.')

const tierSchema = (name: Tier) =>
  z
    .strictObject({ ...priceRowShape, over: overSchema })
    .optional()
    .describe(`${tiers[name].meaning}.`)
const tierShape = Object.fromEntries(tierNames.map((name) => [name, tierSchema(name)])) as Readonly<
  Record<Tier, ReturnType<typeof tierSchema>>
>

const priceSchema = z
  .union(
    [
      z.literal('free'),
      z.strictObject({
        ...priceRowShape,
        ...unitShape,
        ...factorShape,
        over: overSchema,
        tiers: z
          .strictObject(tierShape)
          .optional()
          .describe(
            'Prices of service tiers. A request for a tier without a price is refused, except on a provider key of its own workspace.',
          ),
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
    content_idle_ms: milliseconds('Longest time inside an answer without content, only keep-alives').optional(),
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
  cost: priceSchema
    .optional()
    .describe(
      'The price that the operator pays there, in the form of `price`. Orders routes under `routing: cheapest` and gives the margin; not charged.',
    ),
})

const modelId = z
  .string({ error: modelIdExpected })
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/, { error: modelIdExpected })

/** With the model itself as many as the healthy routes that one request tries (`attemptsMaxHealthy` in routing/failover.ts). */
export const fallbacksMax = 5

const fallbacksSchema = z
  .array(modelId)
  .max(fallbacksMax, { error: `expected at most ${fallbacksMax} models` })
  .describe(
    `Ids of up to ${fallbacksMax} models that answer, in this order, if every route of this one fails. Each is charged at its own price. Default none.`,
  )

export const modelEntrySchema = z
  .strictObject({
    id: modelId.describe('What callers pass as `model`: creator/model.'),
    owned_by: text('Who made the model. Default: the part of the id before the slash.').optional(),
    name: text('Name for people. Default: the id.').optional(),
    released: dayOrMonth('Day of the release, YYYY-MM-DD, or its month, YYYY-MM.'),
    retires: z.iso
      .date({ error: 'expected a date of the form YYYY-MM-DD' })
      .optional()
      .describe('Day its creator retires it, YYYY-MM-DD. The catalog marks the model as deprecated.'),
    description: text('One sentence about what the model is for.').optional(),
    knowledge: dayOrMonth('Day or month up to which it was trained, YYYY-MM-DD or YYYY-MM.'),
    input: z.array(z.enum(inputKinds)).optional().describe('The kinds of input it takes; shown in the catalog.'),
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
    cache_marks: z
      .boolean()
      .optional()
      .describe('Whether callers that set no cache marks get some on this model. Default: as `sessions.cache_marks`.'),
    fallbacks: fallbacksSchema.optional(),
    hosted_tools: z
      .array(z.string().regex(/^[a-z0-9_:]{1,60}$/, { error: 'expected the type of a tool such as code_interpreter' }))
      .optional()
      .describe(
        'Types of tools that the provider runs and bills apart from tokens, without their date, such as code_interpreter. Callers may use them, and you pay for them. Default none.',
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
    // Also when another field is wrong, so that all faults are reported at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })

/** An entry for a built-in model that keeps everything else of it, its price updates included. */
export const builtInChangeSchema: z.ZodType<{ readonly id: string; readonly fallbacks: readonly string[] }> = z
  .looseObject({
    id: modelId.describe('Id of a built-in model, which stays as it is except for its fallbacks.'),
    fallbacks: fallbacksSchema,
  })
  // Not strict: an entry with further keys is a whole one without its routes, and is reported as such.
  .refine((entry) => Object.keys(entry).length === 2, { abort: true })
  .meta({ additionalProperties: false })

export type ModelEntry = z.infer<typeof modelEntrySchema>
type PriceEntry = NonNullable<ModelEntry['price']>
type RouteEntry = ModelEntry['routes'][number]

/** `source` is `built in`, or the file and line of the entry. */
export function modelFromEntry(entry: ModelEntry, source: string): Model {
  const price = entry.price === undefined ? undefined : priceFromEntry(entry.price)
  // Built-in prices are what the providers charge.
  const usualCost = source === 'built in' ? price : undefined
  return {
    id: entry.id,
    ownedBy: entry.owned_by ?? entry.id.slice(0, entry.id.indexOf('/')),
    name: entry.name ?? entry.id,
    contextTokens: entry.context_tokens,
    maxOutputTokens: entry.max_output_tokens,
    defaultMaxTokens: entry.default_max_tokens,
    tags: [...new Set(entry.tags)],
    price,
    routes: entry.routes.map((route) => routeFromEntry(route, usualCost)),
    routing: entry.routing ?? 'priority',
    hedge: entry.hedge ?? false,
    ...(entry.cache_marks !== undefined && { cacheMarks: entry.cache_marks }),
    fallbacks: entry.fallbacks ?? [],
    hostedTools: entry.hosted_tools ?? [],
    released: entry.released,
    description: entry.description,
    knowledge: entry.knowledge,
    input: entry.input,
    retires: entry.retires,
    source,
  }
}

export function priceFromEntry(entry: PriceEntry): Price {
  return readPrice(entry)
}

function routeFromEntry(route: RouteEntry, usualCost: Price | undefined): Route {
  return {
    providerId: route.provider,
    upstreamModel: route.model,
    priority: route.priority ?? 1,
    weight: route.weight ?? 1,
    timeouts: timeoutsFromEntry(route.timeouts ?? {}),
    cost: route.cost === undefined ? usualCost : priceFromEntry(route.cost),
  }
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
