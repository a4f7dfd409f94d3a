// Projects, which group keys and decide which models they may call, and API keys.

import { z } from 'zod'
import { redactionRules } from '../kernel/content-export.ts'
import { policyFailureModes, policyModes, policyMoments } from '../kernel/policy-words.ts'
import { catalogModelSchema } from './catalog.ts'
import {
  aliasesField,
  allowedModels,
  idField,
  limitsField,
  listSchema,
  managedBy,
  modelsField,
  must,
  nameField,
  pageFields,
  sourcesField,
  spendField,
  time,
  timeField,
} from './fields.ts'
import { type Definitions, emptyBody } from './operation.ts'
import { limitsRow } from './workspaces.ts'

export const projectSchema = z.object({
  id: z.string(),
  workspace_id: z.string(),
  name: z.string(),
  models: allowedModels,
  aliases: aliasesField,
  limits: limitsField,
  spend: spendField,
  managed_by: managedBy,
  exports_content: z
    .boolean()
    .describe('Whether its prompts and answers are sent to the collector that the operator has set, if there is one.'),
  created_at: time,
  archived_at: time.nullable().describe('When it was deleted after it had been used; null = in use.'),
})

const exportsContentField = z
  .boolean()
  .describe(
    'Whether its prompts and answers are sent to the collector that the operator has set. Absent at first = no.',
  )

/** As the workspace pays for it. */
const offeredModelSchema = catalogModelSchema.omit({ off: true }).extend({
  own_key: z.boolean().describe('A credential of the workspace is used for it.'),
  own_providers: z.array(z.string()).readonly().describe('The providers it is used at.'),
})

export type OfferedModel = z.input<typeof offeredModelSchema>

export const keySchema = z.object({
  id: z.string(),
  kind: z
    .enum(['secret', 'person'])
    .describe('`person`: stands for its owner, who signs in on devices. It has no secret and cannot be rotated.'),
  workspace_id: z.string(),
  project_id: z.string(),
  name: z.string().describe('Of a `person`: the e-mail address, followed by `(signs in)`.'),
  last4: z.string().describe('The last four characters of the secret; the rest is never shown. Empty for a `person`.'),
  status: z.enum(['active', 'expired', 'revoked']),
  models: allowedModels,
  sources: z.array(z.string()).nullable().describe('null = from anywhere.'),
  limits: limitsField,
  spend: spendField,
  managed_by: managedBy,
  owner_id: z.string().nullable().describe('The person who created it; null = the installation.'),
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  last_used_at: time.nullable().describe('Accurate to about a minute.'),
})

export const keyWithSecretSchema = keySchema.extend({
  secret: z.string().describe('The key itself, `sk-tg-…`. Shown only once.'),
})

export const projectOperations = {
  createProject: {
    summary: 'Creates a project in a workspace.',
    body: z.strictObject({
      name: nameField,
      models: modelsField.nullish(),
      aliases: aliasesField.nullish(),
      exports_content: exportsContentField.optional(),
    }),
    example: { name: 'web', models: ['acme/*', 'other/large'] },
    answer: projectSchema,
    status: 201,
  },
  listProjects: {
    summary: 'Lists the projects of a workspace, oldest first.',
    query: z.strictObject({
      ...pageFields,
      archived: z
        .literal('true', must('true'))
        .optional()
        .describe('`true` adds archived projects, for the names in reports.'),
    }),
    answer: listSchema(projectSchema),
  },
  getProject: {
    summary: 'Reads one project.',
    answer: projectSchema,
  },
  updateProject: {
    summary:
      'Changes the name, the allowlist, the aliases or whether content is exported. Absent fields stay as they are. Effective for the next request.',
    body: z.strictObject({
      name: nameField.optional(),
      models: modelsField.nullish().describe('The complete new allowlist; null = every model.'),
      aliases: aliasesField.nullish().describe('All further names of models; null = none.'),
      exports_content: exportsContentField.optional(),
    }),
    example: { models: ['acme/large'] },
    answer: projectSchema,
  },
  deleteProject: {
    summary:
      'Deletes a project and its keys, or archives it if it was used. Its keys stop working immediately here, within 5 s on other replicas.',
    answer: z.object({
      id: z.string(),
      outcome: z
        .enum(['deleted', 'archived'])
        .describe('`archived`: its keys made requests, so it stays for statements and usage, and is not listed.'),
      keys: z.int().describe('Keys that stopped working.'),
    }),
  },
  putProjectLimits: limitsRow('project'),
  getProjectContent: {
    summary:
      'Says where the prompts and answers of a project go beside the providers: the policies that judge them, and the collector that they are exported to.',
    answer: z.object({
      policies: z
        .array(
          z.object({
            id: z.string(),
            when: z.enum(policyMoments),
            mode: z.enum(policyModes),
            on_failure: z.enum(policyFailureModes),
            models: z.array(z.string()).readonly().nullable().describe('null = all models.'),
          }),
        )
        .readonly(),
      export: z
        .object({
          to: z.string().describe('Origin of the collector.'),
          sample_percent: z.number(),
          characters_max: z.int(),
          redact: z.array(z.enum(redactionRules)).readonly(),
          response_header: z.boolean(),
        })
        .nullable()
        .describe('null = the project exports no content, or the operator has set no collector.'),
      has_collector: z.boolean().describe('Whether the operator has set a collector.'),
    }),
  },
  listProjectModels: {
    summary:
      'Lists the models the keys of a project can call now, as GET /v1/models does: by id, without pages, at the prices of its workspace.',
    answer: listSchema(offeredModelSchema),
  },
} satisfies Definitions

export const keyOperations = {
  createKey: {
    summary: 'Creates a key. Its secret is shown only once.',
    body: z.strictObject({
      name: nameField,
      models: modelsField.nullish().describe("Narrows the project's allowlist. Absent or null = all it allows."),
      limits: limitsField.nullish(),
      expires_at: timeField.nullish().describe('ISO 8601, with Z or an offset, in the future. Absent = never.'),
      sources: sourcesField.nullish(),
    }),
    example: { name: 'ci', limits: { requests_per_minute: 60, spend_per_day: '5.00' } },
    answer: keyWithSecretSchema,
    status: 201,
  },
  listKeys: {
    summary: 'Lists keys, oldest first: all, or those of a workspace or project.',
    query: z.strictObject({
      ...pageFields,
      workspace_id: idField('workspace').optional().describe('Only keys of this workspace.'),
      project_id: idField('project').optional().describe('Only keys of this project.'),
    }),
    answer: listSchema(keySchema),
  },
  getKey: { summary: 'Reads one key.', answer: keySchema },
  putKeyLimits: limitsRow('key'),
  revokeKey: {
    summary: 'Revokes a key permanently: immediately here, within 5 s on other replicas.',
    body: emptyBody,
    answer: keySchema,
  },
  rotateKey: {
    summary: 'Gives a key a new secret, shown only once. The old one ends immediately, or after the overlap.',
    body: z.strictObject({
      overlap_seconds: z
        .int(must('a whole number of seconds'))
        .min(0, must('a whole number of seconds, 0 or more'))
        .nullish()
        .describe('How long the old secret stays valid. Absent = it ends immediately.'),
    }),
    example: { overlap_seconds: 3600 },
    answer: keyWithSecretSchema,
  },
} satisfies Definitions
