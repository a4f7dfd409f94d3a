// The spend limits that count one subject: one person, group, end user or tag.

import { z } from 'zod'
import { namedSubjectForms } from '../kernel/spend-limit.ts'
import { must, spendStateField } from './fields.ts'
import type { Definitions } from './operation.ts'

const subjectExpected = must(`one of ${namedSubjectForms.map((form) => `"${form}"`).join(', ')}`)

const subjectLimitSchema = spendStateField.extend({
  subject: z.string().describe('As the limit names it: `person:ada@example.com`, or `person` for each of them.'),
  is_of_each: z.boolean().describe('Whether the limit is one of each person or end user. `spent` is that of this one.'),
  group: z
    .string()
    .optional()
    .describe(
      'Of a person: the name of the group through which the limit counts them. Absent = it counts the subject itself.',
    ),
  set_in: z
    .object({ kind: z.enum(['workspace', 'project', 'key']), id: z.string(), name: z.string() })
    .describe('In whose limits it is.'),
  set_by: z.enum(['admin']).optional().describe('`admin`: by an admin, in the limits of the workspace.'),
  then: z.string().optional().describe('The model that is used once it is reached. Absent = requests are refused.'),
  slow_down: z.int().optional().describe('Requests per minute from 80 % of it on. Absent = any number.'),
})

export const subjectLimitOperations = {
  getSubjectLimits: {
    summary:
      'Says how much of each spend limit one person, group, end user or tag has used. Members may ask about themselves.',
    query: z.strictObject({
      subject: z
        .string(subjectExpected)
        .describe('People by address or id, groups by name or id, end users by the id that clients send or its hash.'),
    }),
    answer: z.object({
      subject: z.string().describe('People by address, groups by name, end users by hash.'),
      id: z.string().nullable().describe('Of a person or group; null for end users and tags.'),
      role: z.string().nullable().describe('Of a person in this workspace; null for other subjects.'),
      groups: z
        .array(z.object({ id: z.string(), name: z.string() }))
        .describe('The groups that a person is in, also by one of their keys.'),
      limits: z
        .array(subjectLimitSchema)
        .describe('Of the workspace, its projects and its keys, in this order. Limits of all requests are not in it.'),
    }),
  },
} satisfies Definitions
