// The public catalog, prices, and where a request for a model would go. Anyone may read the catalog, so it has no field
// that could hold an address, a credential or a workspace's own route.

import { z } from 'zod'
import { modelEntrySchema } from '../catalog/entry.ts'
import {
  type FactorName,
  factorNames,
  factors,
  listedBuckets,
  type PartBucket,
  type UnitBucket,
  unitBuckets,
  type WholeBucket,
} from '../kernel/usage.ts'
import { listSchema, pageFields, time } from './fields.ts'
import { operation } from './operation.ts'

const perMillion = z.string().describe('USD per million tokens, as a decimal string.')
const perPart = z
  .string()
  .optional()
  .describe('USD per million tokens; absent = the price of the bucket it is part of.')

const priceRow = Object.fromEntries(
  listedBuckets.map(({ bucket, partOf }) => [bucket, partOf === undefined ? perMillion : perPart]),
) as unknown as Record<WholeBucket, typeof perMillion> & Record<PartBucket, typeof perPart>

const perUnit = z.string().optional()

const priceSchema = z.union([
  z.literal('free'),
  z.object({
    ...priceRow,
    ...(Object.fromEntries(
      unitBuckets.map(({ bucket, meaning, unit }) => [
        bucket,
        perUnit.describe(`USD per thousand ${unit}. ${meaning}; absent = not charged.`),
      ]),
    ) as Record<UnitBucket, typeof perUnit>),
    ...(Object.fromEntries(
      factorNames.map((name) => [name, perUnit.describe(`${factors[name].meaning}; absent = no surcharge.`)]),
    ) as Record<FactorName, typeof perUnit>),
    over: z
      .record(z.string(), z.object(priceRow))
      .optional()
      .describe('Prices of requests with more input tokens than the key says.'),
  }),
])

const figuresSchema = z
  .object({ p50: z.number(), p95: z.number(), samples: z.number(), window_ms: z.number() })
  .nullable()
  .describe('null = no traffic yet.')

const routeSchema = z.object({
  provider: z.string(),
  upstream_model: z.string(),
  priority: z.number().describe('Lower is tried first.'),
  weight: z.number().describe('Share among routes of one priority.'),
  health: z.enum(['healthy', 'ejected', 'probing', 'slow start', 'parked']),
  factor: z.number().describe('The share of its weight that the route gets now, 0 to 1.'),
  wait_ms: z.number().nullable().describe('The minimum time until this state can change.'),
  why: z.string().nullable().describe('The cause of the last failure.'),
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
  released: z.string().nullable().describe('A day, such as `2026-11-15`.'),
  source: z.string().describe('`built in`, or the file and line of the entry.'),
  price_source: z
    .string()
    .nullable()
    .describe('Who set the price: `management API`, or as `source`; null without a price.'),
  price_version: z.string().nullable().describe('The version that charges refer to.'),
  price: priceSchema.nullable().describe('null = unknown, and then the model cannot be called.'),
  callable: z.boolean(),
  routes: z.array(routeSchema),
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

const surfaces = ['chat', 'messages', 'responses'] as const

const planSchema = z.object({
  model: z.string(),
  surface: z.enum(surfaces),
  mode: z
    .enum(['ordinary', 'panic'])
    .describe('`panic`: no route is known to work, so every permitted route is tried.'),
  candidates: z.array(
    z.object({
      place: z.number().nullable().describe('1 is tried first; null = it would not be tried now.'),
      provider: z.string(),
      upstream_model: z.string(),
      dialect: z.string(),
      lane: z.enum(['bytes', 'translation']),
      why: z.string(),
    }),
  ),
})

export const catalogOperations = {
  getCatalog: operation('getCatalog', {
    summary:
      'Public unless `server.catalog` is signed-in: models with price, tags, context, routes and their health, by id.',
    public: 'by setting',
    query: z.strictObject({
      // All of them by default: a catalog that ends after fifty models would be mistaken for the complete one.
      limit: pageFields.limit.unwrap().optional().describe('Maximum number of items, 1 to 200. Absent = all.'),
      cursor: pageFields.cursor,
    }),
    answer: listSchema(catalogModelSchema),
  }),
  getPrice: operation('getPrice', {
    summary: 'Reads the price of a model, who set it, and every price it had, newest first.',
    answer: modelPriceSchema,
  }),
  putPrice: operation('putPrice', {
    summary: 'Sets the price of a model from the next request on; running requests keep their price.',
    body: modelEntrySchema.shape.price.unwrap(),
    example: { input: '2.50', output: '10.00', cache_read: '0.25' },
    answer: modelPriceSchema,
  }),
  resetPrice: operation('resetPrice', {
    summary: 'Removes a price that was set here, from the next request on; the built-in price applies again.',
    answer: modelPriceSchema,
  }),
  getPlan: operation('getPlan', {
    summary: 'Explains where a request for the model would go now, without sending anything.',
    query: z.strictObject({ surface: z.enum(surfaces).default('chat').describe('The dialect of the caller.') }),
    answer: planSchema,
  }),
}
