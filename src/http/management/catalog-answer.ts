// One model of the public catalog. Everybody can read it, so it has no member that could hold an address, a credential
// or a route of a workspace's own.

import { z } from 'zod'

const perMillion = z.string().describe('USD per million tokens, as a decimal string.')

const perAudio = z.string().optional().describe('Of sound, the same; absent = that of text.')

const priceRow = {
  input: perMillion,
  output: perMillion,
  cache_read: perMillion,
  cache_write: perMillion,
  cache_write_1h: perMillion,
  audio_input: perAudio,
  audio_cache_read: perAudio,
  audio_output: perAudio,
}

const priceSchema = z.union([
  z.literal('free'),
  z.object({
    ...priceRow,
    web_search: z
      .string()
      .optional()
      .describe('USD per thousand searches of the web that the provider runs; absent = they are not charged.'),
    us_only: z
      .string()
      .optional()
      .describe('Token prices times this where the work is kept in the United States; absent = it costs no more.'),
    over: z
      .record(z.string(), z.object(priceRow))
      .optional()
      .describe('Prices of requests with more input tokens than the name says.'),
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
  wait_ms: z.number().nullable().describe('How long this state lasts at least.'),
  why: z.string().nullable().describe('What the last fault was about.'),
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
    .describe('Who set the price: `management API`, or as `source`; null where there is none.'),
  price_version: z.string().nullable().describe('As charges carry it.'),
  price: priceSchema.nullable().describe('null = not known, and then the model cannot be called.'),
  callable: z.boolean(),
  routes: z.array(routeSchema),
})

export type CatalogItem = z.input<typeof catalogModelSchema>
