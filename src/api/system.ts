// The audit log, the configuration in effect and the OpenAPI document.

import { z } from 'zod'
import { fileFormatField, fileTypes, listSchema, must, pageFields, time, timeField } from './fields.ts'
import type { Definitions } from './operation.ts'

export const auditSchema = z.object({
  sequence: z.number(),
  at: time,
  actor: z.string(),
  action: z.string().describe('What was done to which kind of object: `key.revoke`.'),
  object: z.string().describe('The id of the changed object.'),
  details: z.record(z.string(), z.unknown()),
  request_id: z.string().nullable(),
  hash: z.string().describe('Over this entry and the hash of the previous one.'),
})

const word = (meaning: string, pattern: RegExp, expected: string) =>
  z.string(must(expected)).min(1, must(expected)).max(300).regex(pattern, must(expected)).optional().describe(meaning)

const auditFilters = {
  actor: word('Only changes by this actor: the id of a person, or a name such as `console`.', /./, 'an actor'),
  action: word(
    'Only this action, such as `key.revoke`; `key`: everything that was done to keys.',
    /^[a-z_]+(\.[a-z_]+)?$/,
    'an action such as "key.revoke", or the kind of object such as "key"',
  ),
  object: word('Only changes of the object with this id.', /./, 'the id of an object'),
  from: timeField.optional().describe('Only changes at or after this time. ISO 8601, Z or an offset.'),
  to: timeField.optional().describe('Only changes before this time. ISO 8601, Z or an offset.'),
}

export const listedAuditSchema = auditSchema.extend({
  actor_email: z
    .string()
    .nullable()
    .describe('The address of the person, also of a token of theirs; null = no person.'),
})

const settingSchema = z.object({
  name: z.string().describe('As in the configuration file, or the environment variable if the file has no such name.'),
  value: z.string().describe('Secrets are shown as `set`.'),
  source: z.string().describe('A variable, a line of the file, or `default`.'),
})

export type Setting = z.input<typeof settingSchema>

const entrySchema = z.looseObject({})

const configFileSchema = z.object({
  path: z.string(),
  read_only: z.string().nullable().describe('Why the gateway cannot change it; null = it can.'),
  digest: z.string().nullable().describe('Changes with the content; null = there is no file.'),
  providers: z.array(entrySchema),
  models: z.array(entrySchema),
  aliases: z.record(z.string(), z.string()),
  disabled_providers: z.array(z.string()),
})

export const systemOperations = {
  listAudit: {
    summary: 'Lists who changed what, newest first.',
    query: z.strictObject({ ...pageFields, ...auditFilters }),
    answer: listSchema(listedAuditSchema),
  },
  exportAudit: {
    summary: 'Downloads the audit log, newest first, as CSV or as one JSON object per line.',
    query: z.strictObject({ ...auditFilters, format: fileFormatField }),
    fileTypes,
  },
  getConfig: {
    summary: 'Lists the settings in effect and where each came from. Secrets are shown only as set.',
    answer: listSchema(settingSchema),
  },
  getConfigFile: {
    summary:
      'Reads the providers, models, aliases and disabled providers of the configuration file. Keys are shown as a reference or as set.',
    answer: configFileSchema,
  },
  updateConfigFile: {
    summary:
      'Adds, replaces or removes providers, models and aliases in the configuration file. Checked as at the start; in effect at once.',
    body: z.strictObject({
      providers: z
        .record(z.string(), entrySchema.nullable())
        .optional()
        .describe('By id: the entry without its id, or null to remove it. Without `api_key` it keeps its key.'),
      models: z.record(z.string(), entrySchema.nullable()).optional().describe('By id, as providers.'),
      aliases: z.record(z.string(), z.string().nullable()).optional().describe('By name: the model, or null.'),
      disabled_providers: z
        .record(z.string(), z.boolean())
        .optional()
        .describe('By id: true keeps the gateway from calling the provider, false lets it again.'),
      digest: z.string().nullish().describe('Of the file that was read: refused if it has changed since.'),
    }),
    example: { aliases: { fast: 'acme/large' } },
    answer: configFileSchema,
  },
  getOpenApi: {
    summary: 'Public: this document.',
    public: 'always',
    answer: z.looseObject({ openapi: z.string() }),
  },
} satisfies Definitions
