// What was used and charged, added up, as a file. Single requests are the list's own export.

import { z } from 'zod'
import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../store/database.ts'
import { exportUsage } from '../../telemetry/usage-export.ts'
import { type UsageGroup, usageGroups } from '../../telemetry/usage-sums.ts'
import { idField, must, timeField } from './fields.ts'
import { defineRoute, type Route } from './route.ts'

const formats = ['csv', 'jsonl'] as const
const types = { csv: 'text/csv; charset=utf-8', jsonl: 'application/x-ndjson' } as const
const groupsExpected = `a list such as "day,model" of ${usageGroups.join(', ')}`
const spanMs = 30 * 24 * 60 * 60_000

export interface UsageDependencies {
  readonly database: Database
  readonly clock: Clock
}

const groupsField = z
  .string(must(groupsExpected))
  .default('day,model')
  .transform((text, context): readonly UsageGroup[] => {
    const names = [...new Set(text.split(','))]
    if (names.every(isGroup)) return names
    context.addIssue({ code: 'custom', message: `must be ${groupsExpected}` })
    return z.NEVER
  })
  .describe(`Added up by these, in this order; ${groupsExpected}. By default \`day,model\`.`)

function isGroup(name: string): name is UsageGroup {
  return usageGroups.includes(name as UsageGroup)
}

export function usageRoutes({ database, clock }: UsageDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/usage/export',
      operation: 'exportUsage',
      summary: 'Sends tokens and cost as a file, added up by day, model or whatever is asked for.',
      query: z.strictObject({
        from: timeField.optional().describe('Requests that began then or later; by default the last 30 days.'),
        to: timeField.optional().describe('Requests that began before; by default now.'),
        group_by: groupsField,
        workspace_id: idField('workspace').optional().describe('Only of this workspace.'),
        format: z.enum(formats, must('csv or jsonl')).default('csv').describe('`csv` or `jsonl`.'),
      }),
      status: 200,
      fileTypes: formats.map((format) => types[format]),
      download({ query }) {
        const {
          to = clock.now(),
          from = Math.max(0, to - spanMs),
          format,
          group_by: groupBy,
          workspace_id: workspaceId,
        } = query
        const asked = { database, from, to, format, groupBy, ...(workspaceId && { workspaceId }) }
        return { type: types[format], name: `usage.${format}`, pieces: exportUsage(asked) }
      },
    }),
  ]
}
