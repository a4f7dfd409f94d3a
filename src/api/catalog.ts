// The public catalog, prices, and where a request for a model would go. Anyone may read the catalog, so it has no field
// that could hold an address, a credential or a workspace's own route.

import { z } from 'zod'
import { modelEntrySchema } from '../catalog/entry.ts'
import { surfaceNames } from '../dialects/surface.ts'
import {
  type FactorName,
  factorNames,
  factors,
  listedBuckets,
  type PartBucket,
  type Tier,
  tierNames,
  type UnitBucket,
  unitBuckets,
  unpricedText,
  type WholeBucket,
} from '../kernel/usage.ts'
import { listNameField, listSchema, must, pageFields, time } from './fields.ts'
import type { Definitions } from './operation.ts'

const perMillion = z.string().describe('USD per million tokens, as a decimal string.')
const perPart = z
  .string()
  .optional()
  .describe('USD per million tokens; absent = the price of the bucket it is part of.')

const priceRow = Object.fromEntries(
  listedBuckets.map(({ bucket, partOf }) => [bucket, partOf === undefined ? perMillion : perPart]),
) as unknown as Record<WholeBucket, typeof perMillion> & Record<PartBucket, typeof perPart>

const perUnit = z.string().optional()

const over = z
  .record(z.string(), z.object(priceRow))
  .optional()
  .describe('Prices of requests with more input tokens than the key says.')
const tierSchema = z.object({ ...priceRow, over }).optional()

export const catalogPriceSchema = z.union([
  z.literal('free'),
  z.object({
    ...priceRow,
    ...(Object.fromEntries(
      unitBuckets.map((info) => [
        info.bucket,
        perUnit.describe(`USD per ${info.quantity}. ${info.meaning}; absent = ${unpricedText(info)}.`),
      ]),
    ) as Record<UnitBucket, typeof perUnit>),
    ...(Object.fromEntries(
      factorNames.map((name) => [name, perUnit.describe(`${factors[name].meaning}; absent = no surcharge.`)]),
    ) as Record<FactorName, typeof perUnit>),
    over,
    tiers: z
      .object(Object.fromEntries(tierNames.map((name) => [name, tierSchema])) as Record<Tier, typeof tierSchema>)
      .optional()
      .describe('Prices of service tiers; absent = none. Requests for a tier without a price are refused.'),
  }),
])

const figuresSchema = z
  .object({ p50: z.number(), p95: z.number(), samples: z.number(), window_ms: z.number() })
  .nullable()
  .describe('Of streamed answers; null = none in the last hour.')

const routeState = z
  .enum(['available', 'recovering', 'failing', 'cooldown', 'paused', 'unused', 'simulated'])
  .describe(
    '`available`: it answered in the last hour. `recovering`: it answers again, with less traffic for a while. `failing`: the latest attempt or connection test failed; it is still tried. `cooldown`: not tried for a while after failures. `paused`: its provider refuses the key, the model or more requests for now. `unused`: nothing in the last hour shows how it is. `simulated`: the sandbox.',
  )

const routeSchema = z.object({
  provider: z.string(),
  upstream_model: z.string(),
  priority: z.number().describe('Lower is tried first.'),
  weight: z.number().describe('Share among routes of one priority.'),
  state: routeState,
  health: z
    .enum(['healthy', 'ejected', 'probing', 'slow start', 'parked'])
    .describe('What the router makes of it: which share of its weight the route gets.'),
  factor: z.number().describe('The share of its weight that the route gets now, 0 to 1.'),
  wait_ms: z.number().nullable().describe('The minimum time until this state can change.'),
  why: z.string().nullable().describe('What was wrong with the latest attempt or test; null = nothing.'),
  rehearsal: z.boolean().describe('Served from inside the gateway, with failures on purpose.'),
  first_event_ms: figuresSchema,
  tokens_per_second: figuresSchema,
})

export const catalogModelSchema = z.object({
  id: z.string(),
  name: z.string(),
  owned_by: z.string(),
  context_tokens: z.number().nullable(),
  max_output_tokens: z.number().nullable(),
  tags: z.array(z.string()).readonly(),
  released: z.string().nullable().describe('A day, such as `2026-11-15`, or only its month.'),
  description: z.string().optional().describe('What it is for; absent = no source says.'),
  knowledge: z.string().optional().describe('The day or month up to which it was trained; absent = unknown.'),
  input: z.array(z.string()).readonly().optional().describe('The kinds of input it takes; absent = unknown.'),
  retires: z.string().optional().describe('The day its creator retires it; absent = unknown.'),
  source: z.string().describe('`built in`, or the file and line of the entry.'),
  price_source: z
    .string()
    .nullable()
    .describe('Who set the price: `management API`, or as `source`; null without a price.'),
  price_changed_at: time
    .optional()
    .describe('When the price changed last; absent = it is the first one this gateway knows.'),
  price_version: z.string().nullable().describe('The version that charges refer to.'),
  price: catalogPriceSchema.nullable().describe('null = unknown, and then the model cannot be called.'),
  callable: z.boolean(),
  routes: z.array(routeSchema),
  fallbacks: z
    .array(z.string())
    .readonly()
    .optional()
    .describe('The models that answer, in this order, if every route of this one fails; absent = none.'),
  off: z
    .array(
      z.object({
        provider: z.string(),
        needs: z.array(z.string()).describe('Variables that enable it; empty = only own keys of workspaces do.'),
      }),
    )
    .optional()
    .describe('Only with `all`, of a model that no enabled provider serves: the providers that would.'),
})

export type CatalogItem = z.input<typeof catalogModelSchema>

const datedPriceSchema = z.object({
  version: z.string().describe('Charges refer to it: `creator/model#3`.'),
  price: catalogModelSchema.shape.price,
  source: z.string().describe('`management API`, `built in`, or the file and line of the entry.'),
  effective_from: time,
})

const modelPriceSchema = z.object({
  model: z.string(),
  price: catalogModelSchema.shape.price,
  source: z.string().nullable().describe('Who set it: `management API`, `built in`, or a file and its line.'),
  version: z.string().nullable(),
  effective_from: time.nullable(),
  warnings: z.array(z.string()).describe('Possible mistakes, such as a price that changed more than tenfold.'),
  history: z.array(datedPriceSchema).describe('Every price the model had, newest first; each until the next one.'),
})

export type ModelPrice = z.input<typeof modelPriceSchema>

const priceChangeSchema = z.object({
  model: z.string(),
  before: catalogModelSchema.shape.price,
  after: catalogModelSchema.shape.price,
})

const planSchema = z.object({
  model: z.string(),
  surface: z.enum(surfaceNames),
  mode: z
    .enum(['ordinary', 'panic'])
    .describe('`panic`: no route is known to work, so every permitted route is tried.'),
  candidates: z.array(
    z.object({
      place: z.number().nullable().describe('1 is tried first; null = it would not be tried now.'),
      model: z.string().describe('The model that it serves: the requested one, or one of its fallbacks.'),
      provider: z.string(),
      upstream_model: z.string(),
      dialect: z.string(),
      lane: z.enum(['bytes', 'translation']),
      why: z.string(),
      state: routeState,
      wait_ms: z.number().nullable().describe('The minimum time until its state can change.'),
      fault: z.string().nullable().describe('What was wrong with the latest attempt or test; null = nothing.'),
    }),
  ),
})

const inList = z.strictObject({
  list: listNameField.optional().describe('The price in this price list; absent = in the catalog.'),
})

const belowCost = 'Accepts prices below what a route costs the operator, where that is known.'

const markupExpected = must(
  'a percentage such as "20" or "-2.5", above -100 and at most 1000, with at most two decimals',
)

/** In hundredths of a percent. */
const markupField = z
  .string(markupExpected)
  .regex(/^-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,2})?$/, markupExpected)
  .transform((text) => BigInt(Math.round(Number(text) * 100)))
  .refine((markup) => markup > -10_000n && markup <= 100_000n, markupExpected)

export const priceListSchema = z.object({
  name: z.string(),
  markup_percent: z.string().describe('Over the price of the catalog; negative = a discount.'),
  prices: z
    .record(z.string(), catalogPriceSchema)
    .describe('By model id: explicit prices, which the markup does not change. Set them with the price of a model.'),
  workspaces: z.int().describe('How many workspaces pay by it.'),
  set_at: time,
})

const pricedModelsSchema = priceListSchema.extend({
  models: z
    .array(
      z.object({
        model: z.string(),
        name: z.string(),
        catalog_price: catalogPriceSchema,
        price: catalogPriceSchema.describe('What workspaces with this list pay.'),
        is_explicit: z.boolean().describe('Set for this list; otherwise the catalog price and the markup.'),
        routes: z.array(
          z.object({
            provider: z.string(),
            upstream_model: z.string(),
            cost: catalogPriceSchema.nullable().describe('What its provider charges the operator; null = unknown.'),
          }),
        ),
      }),
    )
    .describe('Every model with a price, by id.'),
})

export const catalogOperations = {
  getCatalog: {
    summary:
      'Public unless `server.catalog` is signed-in: models with price, tags, context, routes and their health, by id.',
    public: 'by setting',
    query: z.strictObject({
      // All of them by default: a catalog that ends after fifty models would be mistaken for the complete one.
      limit: pageFields.limit.unwrap().optional().describe('Maximum number of items, 1 to 200. Absent = all.'),
      cursor: pageFields.cursor,
      all: z
        .literal('true', must('true'))
        .optional()
        .describe('Also models that no enabled provider serves, with what enables them.'),
    }),
    answer: listSchema(catalogModelSchema),
  },
  getPrice: {
    summary: 'Reads the price of a model, who set it, and every price it had, newest first.',
    query: inList,
    answer: modelPriceSchema,
  },
  putPrice: {
    summary: 'Sets the price of a model from the next request on; running requests keep their price.',
    query: inList.extend({ allow_below_cost: z.literal('true', must('true')).optional().describe(belowCost) }),
    body: modelEntrySchema.shape.price.unwrap(),
    example: { input: '2.50', output: '10.00', cache_read: '0.25' },
    answer: modelPriceSchema,
  },
  resetPrice: {
    summary: 'Removes a price that was set here, from the next request on; the built-in price applies again.',
    query: inList,
    answer: modelPriceSchema,
  },
  updatePrices: {
    summary:
      'Takes over prices of a list the operator trusts, from the next request on. Prices in the file and those set by hand stay; jumps are held back.',
    body: z.strictObject({
      from: z
        .string(must('where the list is from'))
        .min(1)
        .max(500)
        .describe('Shown in the audit log: a URL or a file.'),
      prices: z
        .array(
          z.strictObject({
            model: z.string(must('the id of a model')),
            price: modelEntrySchema.shape.price.unwrap(),
            cost: modelEntrySchema.shape.price.describe(
              'What its routes cost the operator, except those with a `cost` in the configuration file.',
            ),
          }),
        )
        .max(5000, must('at most 5000 prices')),
      accept_jumps: z
        .boolean(must('true or false'))
        .optional()
        .describe('Also applies prices that change more than tenfold, or to or from zero.'),
      dry_run: z.boolean(must('true or false')).optional().describe('Changes nothing and answers what would change.'),
    }),
    example: {
      from: 'https://prices.example/models.json',
      prices: [{ model: 'acme/large', price: { input: '2.00', output: '8.00' } }],
    },
    answer: z.object({
      changed: z.array(priceChangeSchema),
      held_back: z.array(priceChangeSchema.extend({ why: z.string() })),
      unchanged: z.number(),
      unknown: z.array(z.string()).describe('Models that this gateway does not have.'),
    }),
  },
  getPlan: {
    summary: 'Explains where a request for the model would go now, without sending anything.',
    query: z.strictObject({
      surface: z.enum(surfaceNames).default(surfaceNames[0]).describe('The dialect of the caller.'),
    }),
    answer: planSchema,
  },
  listPriceLists: {
    summary: 'Lists the price lists: what some workspaces pay instead of the prices of the catalog.',
    answer: listSchema(priceListSchema),
  },
  getPriceList: {
    summary: 'Reads one price list with what every model costs in it, in the catalog and at its providers.',
    answer: pricedModelsSchema,
  },
  putPriceList: {
    summary: 'Creates a price list or changes its markup, from the next request on; explicit prices stay.',
    body: z.strictObject({
      markup_percent: markupField.describe('Over the price of the catalog; negative = a discount.'),
      allow_below_cost: z.boolean(must('true or false')).optional().describe(belowCost),
    }),
    example: { markup_percent: '20' },
    answer: priceListSchema,
  },
  deletePriceList: {
    summary: 'Deletes a price list that no workspace pays by.',
    status: 204,
  },
} satisfies Definitions
