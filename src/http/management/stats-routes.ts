// Requests in numbers, and requests as they happen. Nothing is changed here.

import { z } from 'zod'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { RequestTail } from '../../telemetry/request-tail.ts'
import type { Figures } from '../../telemetry/rollups/count-requests.ts'
import { firstEventsOf } from '../../telemetry/rollups/first-event.ts'
import { readStats, type StatGroup, statGroups } from '../../telemetry/rollups/read-stats.ts'
import { time, usd } from './answers.ts'
import { idField, must, timeField } from './fields.ts'
import { requestSchema } from './request-answer.ts'
import { createFollowRequests } from './request-events.ts'
import { requestFilterFields, requestFilters } from './request-filters.ts'
import { defineRoute, type Route } from './route.ts'

export interface StatsDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly tail: RequestTail
}

const dayMs = 86_400_000
/** A quarter of a year by the hour is some two thousand points. */
const spanDaysMax = 92
const groupsMax = 50

const figureFields = {
  requests: z.number(),
  errors: z.number().describe('Requests with a `code`.'),
  input_tokens: z.number().describe('Cache included.'),
  output_tokens: z.number(),
  cost: usd,
  first_event_ms: z
    .object({ count: z.number().describe('How many were measured.'), p50: z.number(), p95: z.number() })
    .nullable()
    .describe('Estimated from counts between fixed bounds; null = nothing was measured.'),
}

const statsSchema = z.object({
  from: time,
  to: time,
  counted_until: time.describe('Requests that began later may be missing.'),
  total: z.object(figureFields),
  hours: z.array(z.object({ start: time, ...figureFields })).describe('Hours with requests, oldest first.'),
  groups: z
    .array(
      z.object({
        id: z.string().describe('Of a key or project, or the model; empty = none was named.'),
        name: z.string().nullable().describe('Of a key or project.'),
        ...figureFields,
      }),
    )
    .describe(`What cost most first, at most ${groupsMax}.`),
  groups_left_off: z.number(),
})

export function statsRoutes({ database, clock, tail }: StatsDependencies): readonly Route[] {
  const follow = createFollowRequests(tail)
  return [
    defineRoute({
      method: 'GET',
      path: '/api/stats',
      operation: 'getStats',
      summary: 'Adds requests up, by the hour and by model, project or key.',
      query: z.strictObject({
        from: timeField.optional().describe('Widened to a whole hour, as is `to`. Absent = 24 hours before `to`.'),
        to: timeField.optional().describe('Absent = now.'),
        workspace_id: idField('workspace').optional().describe('Only requests of this workspace.'),
        group: z.enum(statGroups, must('model, project or key')).default('model').describe('What the groups are.'),
      }),
      answer: statsSchema,
      status: 200,
      async run({ query }) {
        const to = query.to ?? clock.now()
        const from = query.from ?? Math.max(0, to - dayMs)
        if (from >= to) return invalidRequest('`from` must be before `to`.', 'from')
        if (to - from > spanDaysMax * dayMs) {
          return invalidRequest(`At most ${spanDaysMax} days can be added up at once.`, 'from')
        }
        const { workspace_id: workspaceId, group } = query
        const stats = await readStats(database, clock, { from, to, group, ...(workspaceId && { workspaceId }) })
        const groups = stats.groups.slice(0, groupsMax)
        return {
          from: isoTime(stats.from),
          to: isoTime(stats.to),
          counted_until: isoTime(stats.countedUntil),
          total: shown(stats.total),
          hours: stats.hours.map(({ start, figures }) => ({ start: isoTime(start), ...shown(figures) })),
          groups: await Promise.all(
            groups.map(async ({ id, figures }) => ({ id, name: await nameOf(database, group, id), ...shown(figures) })),
          ),
          groups_left_off: stats.groups.length - groups.length,
        }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/requests/events',
      operation: 'followRequests',
      summary: 'Sends requests as they end: a stream of events called `request`, each with one request as its data.',
      query: z.strictObject(requestFilterFields),
      answer: requestSchema,
      status: 200,
      events({ query }, signal) {
        const stream = follow(requestFilters(query), signal)
        return stream ?? new Failure('OVERLOADED', 'Too many follow the requests already.', { retryAfterMs: 10_000 })
      },
    }),
  ]
}

function shown(figures: Figures) {
  return {
    requests: Number(figures.requests),
    errors: Number(figures.errors),
    input_tokens: Number(figures.inputTokens),
    output_tokens: Number(figures.outputTokens),
    cost: formatUsd(figures.charge as Nano),
    first_event_ms: firstEventsOf(figures.firstEvents),
  }
}

async function nameOf({ sql }: Database, group: StatGroup, id: string): Promise<string | null> {
  if (group === 'model') return null
  const [row] = await (group === 'key'
    ? sql<{ name: string }>`SELECT name FROM api_keys WHERE id = ${id}`
    : sql<{ name: string }>`SELECT name FROM projects WHERE id = ${id}`)
  return row?.name ?? null
}
