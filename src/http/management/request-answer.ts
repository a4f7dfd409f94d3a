// What the management API says of a request of the log, short in lists and explained when one is asked for. Only the
// form stands here; explain-request.ts fills it in.

import { z } from 'zod'
import { audioNames } from '../../catalog/audio-prices.ts'
import { time, transferSchema, usd } from './answers.ts'

const tokens = z.number().describe('Whole tokens.')
const milliseconds = z.number()
const texts = z.array(z.string()).readonly()

const usageSchema = z
  .object({
    input_tokens: tokens.describe('Neither read from nor written to a cache.'),
    cache_read_tokens: tokens,
    cache_write_tokens: tokens,
    cache_write_1h_tokens: tokens,
    output_tokens: tokens.describe('Reasoning included.'),
    reasoning_tokens: tokens.nullable().describe('null = not reported.'),
    audio_input_tokens: tokens.describe('The part of `input_tokens` that is sound.'),
    audio_cache_read_tokens: tokens.describe('The part of `cache_read_tokens` that is sound.'),
    audio_output_tokens: tokens.describe('The part of `output_tokens` that is sound.'),
    web_searches: z.number().describe('Run by the provider, beside the tokens.'),
    us_only: z.boolean().describe('Whether the provider says that it kept the work in the United States.'),
    source: z.enum(['reported', 'estimated']),
  })
  .describe('Counts that never overlap, but for reasoning and sound, which are parts of others.')

const place = { provider: z.string(), upstream_model: z.string() }

export const requestSchema = z.object({
  id: z.string(),
  started_at: time,
  workspace_id: z.string(),
  project_id: z.string(),
  key_id: z.string(),
  path: z.string(),
  stream: z.boolean(),
  model: z.string().nullable(),
  status: z
    .number()
    .describe('Of the answer; 499 = the client left before the end. A stream that failed has 200 and a `code`.'),
  code: z.string().nullable().describe('A code of docs/errors.md; null = it went well.'),
  reason: z.string().nullable().describe('Why it failed, in the words the caller got.'),
  provider: z.string().nullable(),
  upstream_model: z.string().nullable(),
  lane: z.string().nullable().describe('`bytes` or `translation`.'),
  candidates: z
    .array(z.object({ ...place, why: z.string().nullable().describe('Why it stands there, or was left out.') }))
    .describe('Where it could have gone, in the order of the plan.'),
  attempts: z
    .array(
      z.object({
        ...place,
        outcome: z.string().describe('`ok`, `interrupted: …` for an answer that broke off, or what went wrong.'),
        ms: milliseconds,
      }),
    )
    .describe('What was tried.'),
  warnings: texts.describe('What the translation dropped or approximated.'),
  notes: texts.describe("What was odd about the provider's reply or about the charge."),
  usage: usageSchema.nullable(),
  price_version: z.string().nullable(),
  cost: usd.nullable(),
  held: usd.nullable().describe('What was set aside for it.'),
  first_event_ms: milliseconds.nullable(),
  total_ms: milliseconds.describe('Until the commit of its charge began; a commit of 1 s or more is named in `notes`.'),
  client: z.string().nullable().describe('What the client calls itself.'),
})

const chargeSchema = z
  .object({
    price_version: z.string(),
    price_source: z.string(),
    price_effective_from: time,
    lines: z.array(
      z.object({
        kind: z.enum([
          ...(['input', 'cache_read', 'cache_write', 'cache_write_1h', 'output'] as const),
          ...Object.values(audioNames),
          'web_search',
        ]),
        tokens: z.number().describe('Whole tokens; of `web_search` the number of searches.'),
        price_per_million: usd,
        amount: usd.describe('Count × price, with up to twelve decimals.'),
      }),
    ),
    total: usd.describe(
      'The lines added up, and rounded up once; what no provider counted costs at most what was held for it.',
    ),
    written_off: usd.describe('What of that the wallet could not pay, and the operator lost.'),
    charged: usd.describe('What the wallet paid: the total without what was written off.'),
    released: usd.nullable().describe('What was set aside and not used.'),
  })
  .describe('The charge taken apart.')

export const explainedRequestSchema = requestSchema.extend({
  charge: chargeSchema.nullable().describe('null where nothing was charged by a price.'),
  transfers: z.array(transferSchema),
})

export type LoggedRequest = z.input<typeof requestSchema>
export type ExplainedRequest = z.input<typeof explainedRequestSchema>
