// The operator's providers, the provider keys that workspaces bring, and testing both. No key is ever shown.

import { z } from 'zod'
import { catalogModelSchema } from './catalog.ts'
import { listSchema, must, time } from './fields.ts'
import { type Definitions, emptyBody } from './operation.ts'

export const credentialSchema = z.object({
  id: z.string(),
  provider: z.string(),
  last4: z.string().describe('The last four characters of the key; empty for a very short one.'),
  base_url: z.string().nullable().describe("null = the provider's own."),
  created_at: time,
  updated_at: time.describe('When the key was last replaced.'),
})

const providerSchema = z.object({
  id: z.string(),
  origin: z
    .enum(['environment', 'file', 'built_in', 'found'])
    .describe('Where it was enabled; `found`: a model server on this machine.'),
  source: z.string().describe('The variable, the line of the file, or the address where it was found.'),
  last4: z.string().nullable().describe('Of the key; empty for a very short one, null without a key.'),
  address: z.string().nullable().describe('The host that is called; null = it answers inside the gateway.'),
  models: z.number().describe('How many models can be called through it.'),
})

export type ShownProvider = z.input<typeof providerSchema>

const { price: priceField } = catalogModelSchema.shape

const providerDetailsSchema = providerSchema.extend({
  routes: z
    .array(
      z.object({
        model: z.string(),
        upstream_model: z.string(),
        price: priceField.describe('Of the model in the catalog; null = unknown.'),
        cost: priceField.describe('What the provider charges the operator; null = unknown.'),
      }),
    )
    .describe('By model.'),
})

export type ProviderDetails = z.input<typeof providerDetailsSchema>

const testResultSchema = z
  .object({
    verdict: z
      .enum(['ok', 'refused', 'no_credit', 'throttled', 'failing', 'wrong_address', 'unreachable'])
      .describe('`ok`: the provider accepts the key.'),
    message: z.string().describe('The verdict as a sentence. It contains nothing the provider said.'),
    status: z.number().nullable().describe("The provider's HTTP status; null = no response."),
    tested_at: time,
  })
  .describe('Result of an empty request, which generates nothing and costs nothing.')

export type TestResult = z.input<typeof testResultSchema>

export const historyPeriods = ['24h', '7d', '30d'] as const

const historySchema = z
  .object({
    from: time.describe('The start of the first bucket.'),
    to: time,
    bucket_seconds: z.number(),
    routes: z.array(
      z.object({
        provider: z.string(),
        upstream_model: z.string(),
        buckets: z
          .array(z.tuple([z.number(), z.number()]).nullable())
          .readonly()
          .describe('Successful and failed attempts, oldest first; null = none.'),
        first_event_ms: z
          .number()
          .nullable()
          .describe('Average time to the first token of streamed requests that the first attempt answered.'),
      }),
    ),
    incidents: z.array(
      z
        .object({
          provider: z.string(),
          upstream_models: z.array(z.string()).readonly(),
          started_at: time.describe('Of the first failed attempt.'),
          ended_at: time
            .nullable()
            .describe('Of the last failed attempt; null = it goes on, because a route still fails.'),
          causes: z
            .array(z.object({ outcome: z.string(), attempts: z.number() }))
            .describe('How the failed attempts ended, the most frequent first: `503`, `timed out`.'),
          requests_rescued: z.number().describe('Requests with a failed attempt that another attempt answered.'),
          requests_failed: z.number(),
        })
        .describe(
          'A time in which at least half of the attempts at a route failed, with three failures or one that pauses the route. It ends when the route answers again.',
        ),
    ),
  })
  .describe('From the request log: attempts of all workspaces, also with their own provider keys.')

export const credentialOperations = {
  listCredentials: {
    summary: "Lists the workspace's own provider keys by their last four characters.",
    answer: listSchema(credentialSchema),
  },
  getCredential: {
    summary: "Reads what may be shown of the workspace's key for a provider.",
    answer: credentialSchema,
  },
  putCredential: {
    summary: "Stores or replaces the workspace's own key for a provider. It can never be read back.",
    body: z.strictObject({
      api_key: z
        .string(must("the provider's key"))
        .describe("The provider's key; for a Google service account, its JSON key file as one string."),
      base_url: z
        .string(must('a URL'))
        .max(2000, must('a URL'))
        .nullish()
        .describe("Called instead of the provider's own address."),
    }),
    example: { api_key: 'sk-of-the-provider' },
    answer: credentialSchema,
  },
  deleteCredential: {
    summary: "Deletes the workspace's key for a provider.",
    status: 204,
  },
  testCredential: {
    summary: "Tests the workspace's own key at a provider with a request that costs nothing.",
    body: emptyBody,
    answer: testResultSchema,
  },
} satisfies Definitions

export const providerOperations = {
  listProviders: {
    summary: 'Lists the enabled providers and where each was enabled.',
    answer: listSchema(providerSchema),
  },
  getProvider: {
    summary: 'Reads an enabled provider, its routes, and what they charge and cost.',
    answer: providerDetailsSchema,
  },
  getProviderHistory: {
    summary:
      'Shows how the attempts at each route ended in the last day, week or 30 days, and the incidents of that time.',
    query: z.strictObject({
      period: z
        .enum(historyPeriods, must('24h, 7d or 30d'))
        .default('24h')
        .describe('`24h` has a bucket for each hour, `7d` one for every six hours, `30d` one for each day (UTC).'),
    }),
    answer: historySchema,
  },
  testProvider: {
    summary: "Tests the operator's key at a provider with a request that costs nothing.",
    body: emptyBody,
    answer: testResultSchema,
  },
} satisfies Definitions
