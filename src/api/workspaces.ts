// Workspaces: one wallet, projects, provider credentials. Also their data export and erasure.

import { z } from 'zod'
import {
  limitsField,
  listNameField,
  listSchema,
  managedBy,
  must,
  nameField,
  pageQuery,
  spendField,
  time,
  usd,
} from './fields.ts'
import type { Definitions } from './operation.ts'

export const workspaceSchema = z.object({
  id: z.string(),
  name: z.string(),
  limits: limitsField,
  spend: spendField,
  shares_routes: z.boolean().describe("Whether routes on the operator's credentials may follow those on its own."),
  low_balance: usd.nullable().describe('The highest balance that one of its alert rules names; null = no rule does.'),
  price_list: z.string().nullable().describe('The price list it pays by; null = the prices of the catalog.'),
  managed_by: managedBy,
  created_at: time,
})

/** The operation that sets the limits of a workspace, a project or a key. */
export function limitsRow(kind: 'workspace' | 'project' | 'key') {
  return {
    summary: `Replaces all limits of a ${kind}; absent limits are unlimited. Effective for the next request.`,
    body: limitsField,
    example: { requests_per_minute: 60, tokens_per_minute: 100_000, spend_per_month: '50.00' },
    answer: limitsField.extend({
      warnings: z
        .array(z.string())
        .optional()
        .describe('What is probably a mistake, such as a pattern that matches no model.'),
    }),
  }
}

export const workspaceOperations = {
  createWorkspace: {
    summary: 'Creates a workspace: one wallet, projects, credentials.',
    body: z.strictObject({ name: nameField }),
    example: { name: 'acme' },
    answer: workspaceSchema,
    status: 201,
  },
  listWorkspaces: {
    summary: 'Lists workspaces, oldest first.',
    query: pageQuery,
    answer: listSchema(workspaceSchema),
  },
  getWorkspace: {
    summary: 'Reads one workspace.',
    answer: workspaceSchema,
  },
  updateWorkspace: {
    summary:
      'Changes the name, the price list, or whether shared routes are used when its own fail. Absent fields stay as they are.',
    body: z.strictObject({
      name: nameField.optional(),
      shares_routes: z
        .boolean(must('true or false'))
        .optional()
        .describe("Whether routes on the operator's credentials, at the usual price, may follow those on its own."),
      price_list: listNameField
        .nullish()
        .describe('The price list it pays by from its next request on; null = the prices of the catalog.'),
    }),
    example: { shares_routes: true },
    answer: workspaceSchema,
  },
  putWorkspaceLimits: {
    ...limitsRow('workspace'),
    summary:
      'Replaces all limits of a workspace; absent limits are unlimited. An admin of it replaces those of people and groups that admins set; the others stay. Effective for the next request.',
    example: { spend_limits: [{ subject: 'person', window: 'day', limit: '5.00' }] },
  },
  exportWorkspace: {
    summary: 'Downloads everything stored about a workspace, one JSON object per line, without secrets.',
    fileTypes: ['application/x-ndjson'],
  },
  eraseWorkspace: {
    summary:
      'Revokes its keys and erases names, provider keys, stored responses and requests; charges and balance stay.',
    body: z.strictObject({
      confirm: z.literal('erase', must('"erase"')).describe('The word `erase`: this cannot be undone.'),
    }),
    example: { confirm: 'erase' },
    answer: z.object({
      id: z.string(),
      keys: z.int().describe('Keys revoked and erased.'),
      credentials: z.int(),
      responses: z.int().describe('Responses that callers had stored.'),
      batches: z.int().describe('Batches, with their files and results.'),
      requests: z.int(),
    }),
  },
} satisfies Definitions
