// Batches of all APIs that they can be created with. Creating one takes an API key, which pays for it, and is part of the public API.

import { z } from 'zod'
import { batchStatuses } from '../kernel/batch.ts'
import { fileTypeOf, idField, listSchema, must, pageFields, time, usd } from './fields.ts'
import type { Definitions } from './operation.ts'

const lines = (meaning: string) => z.int().describe(`Lines ${meaning}.`)

export const batchSchema = z.object({
  id: z.string(),
  workspace_id: z.string(),
  project_id: z.string(),
  key_id: z.string().describe('The key that created it and pays for it.'),
  endpoint: z.string().describe('The path of its lines; `/v1/messages` = created with the API of Anthropic.'),
  status: z.enum(batchStatuses).describe('As in docs/reference/batches.md.'),
  waits_for: z
    .enum(['balance', 'limit', 'provider'])
    .nullable()
    .describe('Why no line is started at the moment; null = nothing prevents it.'),
  total: lines('of the input; 0 if one of them is wrong and nothing was run'),
  succeeded: lines('with an answer'),
  errored: lines('with an error'),
  cancelled: lines('that were not run because it was cancelled'),
  expired: lines('that were not run because its time was over'),
  provider: z
    .string()
    .nullable()
    .describe(
      'The provider in whose own batches its lines run, at the price of the tier `batch`; null = they are called one by one, at the ordinary price.',
    ),
  cost: usd.describe('USD charged so far, as a decimal string.'),
  estimate: usd.describe('USD that were expected when it was created; at a provider, what was held for it.'),
  input_tokens: z.int(),
  output_tokens: z.int(),
  errors: z
    .array(
      z.object({
        code: z.string(),
        message: z.string(),
        line: z.int().nullable(),
        param: z.string().nullable(),
      }),
    )
    .nullable()
    .describe('What is wrong with its lines, at most 100 of them, or why it was stopped.'),
  metadata: z.record(z.string(), z.string()).nullable(),
  created_at: time,
  expires_at: time.describe('ISO 8601, UTC: no line is started from then on.'),
  cancelled_at: time.nullable(),
  ended_at: time.nullable(),
  erase_at: time.nullable().describe('ISO 8601, UTC: it and its results are deleted then; null = it has not ended.'),
})

export const batchOperations = {
  listBatches: {
    summary: 'Lists batches, newest first.',
    query: z.strictObject({
      ...pageFields,
      workspace_id: idField('workspace').optional().describe('Only batches of this workspace.'),
      state: z
        .enum(['running', 'ended'], must('running or ended'))
        .optional()
        .describe('Only batches that have not ended, or that have.'),
    }),
    answer: listSchema(batchSchema),
  },
  getBatch: {
    summary: 'Shows one batch: its status, counts and cost so far.',
    answer: batchSchema,
  },
  cancelBatch: {
    summary: 'Cancels a batch: no further line is started; running ones are finished and charged.',
    answer: batchSchema,
  },
  exportBatch: {
    summary:
      'Downloads the results so far, one line for each line that is done, as the API shows them that it was created with.',
    fileTypes: [fileTypeOf.jsonl],
  },
} satisfies Definitions
