// Groups: named sets of people and keys of a workspace, which spend limits can name.

import { z } from 'zod'
import { listSchema, managedBy, must, nameField, pageQuery, time } from './fields.ts'
import type { Definitions } from './operation.ts'

export const groupSchema = z.object({
  id: z.string(),
  workspace_id: z.string(),
  name: z.string(),
  members: z.array(
    z.object({
      id: z.string().describe('Of a person (`per_…`) or a key (`key_…`).'),
      name: z.string().describe("The person's address, or the key's name."),
    }),
  ),
  managed_by: managedBy,
  created_at: time,
})

const name = nameField.describe('Unique in the workspace; spend limits name the group by it.')
const members = z
  .array(z.string(must('an address, or the id of a person or key')), must('a list of addresses and ids'))
  .describe('People by address or id, and keys by id. A person counts with all their keys and sign-ins.')

export const groupOperations = {
  createGroup: {
    summary: 'Creates a group: a named set of people and keys for spend limits.',
    body: z.strictObject({ name, members: members.optional() }),
    example: { name: 'design', members: [] },
    answer: groupSchema,
    status: 201,
  },
  listGroups: {
    summary: 'Lists the groups of a workspace, oldest first.',
    query: pageQuery,
    answer: listSchema(groupSchema),
  },
  getGroup: {
    summary: 'Reads one group.',
    answer: groupSchema,
  },
  updateGroup: {
    summary:
      'Changes the name or the whole list of members. What was spent before stays in the limits in which it was counted.',
    body: z.strictObject({ name: name.optional(), members: members.optional() }),
    example: { members: [] },
    answer: groupSchema,
  },
  deleteGroup: {
    summary: 'Deletes a group; refused while a spend limit names it.',
    status: 204,
  },
} satisfies Definitions
