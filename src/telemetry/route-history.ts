// How the attempts at each route of a model ended, by the hour, from the request log. It reads the requests of that model
// alone, in portions that the database adds up.

import { firstIdAt } from '../kernel/ids.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { grainMs } from '../store/request-rows.ts'
import { timeToSql } from '../store/sql.ts'
import type { AttemptRecord } from './request-record.ts'

export interface RouteHours {
  readonly provider: string
  readonly upstreamModel: string
  /** By the start of the hour; hours without attempts are left out. */
  readonly hours: ReadonlyMap<number, { readonly ok: number; readonly failed: number }>
}

export interface RouteHistoryQuery {
  readonly model: string
  /** Epoch milliseconds; `from` is the start of an hour, `to` is exclusive. */
  readonly from: number
  readonly to: number
}

interface Row {
  readonly provider: string
  readonly upstream_model: string
  readonly hour: bigint
  readonly details: string | null
  readonly requests: bigint
}

/** A few milliseconds on the embedded database. */
const portion = 2_000n
/** An id is made a moment before its request's time is taken. */
const marginMs = 60_000

export async function readRouteHistory(
  { sql }: Pick<Database, 'sql'>,
  { model, from, to }: RouteHistoryQuery,
): Promise<readonly RouteHours[]> {
  const routes = new Map<string, RouteHours & { readonly hours: Map<number, { ok: number; failed: number }> }>()
  const add = ({ provider, upstreamModel, outcome }: Outcome, start: number, count: number): void => {
    const side = sideOf(outcome)
    if (!side) return
    const key = `${provider} ${upstreamModel}`
    const route = routes.get(key) ?? { provider, upstreamModel, hours: new Map() }
    const hour = route.hours.get(start) ?? { ok: 0, failed: 0 }
    hour[side] += count
    route.hours.set(start, hour)
    routes.set(key, route)
  }
  const last = firstIdAt(to + marginMs)
  for (let after: string = firstIdAt(Math.max(0, from - marginMs)); ; ) {
    // The index by model answers this.
    const [upper] = await sql<{ id: string }>`SELECT id FROM requests WHERE model = ${model} AND id > ${after}
      AND id < ${last} ORDER BY id LIMIT 1 OFFSET ${portion - 1n}`
    // Only requests with a failed attempt have `attempts` in their details; each of those is a row.
    const rows = await sql<Row>`SELECT provider, upstream_model, started_at / 3600000 AS hour,
      CASE WHEN REPLACE(details, '"attempts":', '') <> details THEN details END AS details, COUNT(*) AS requests
      FROM requests WHERE model = ${model} AND id > ${after} AND id <= ${upper?.id ?? last}
      AND started_at >= ${timeToSql(from)} AND started_at < ${timeToSql(to)} AND provider IS NOT NULL GROUP BY 1, 2, 3, 4`
    for (const row of rows) {
      const start = Number(row.hour) * grainMs.hour
      for (const each of attemptsOf(row)) add(each, start, Number(row.requests))
    }
    if (!upper) return [...routes.values()]
    after = upper.id
    await yieldToEventLoop()
  }
}

type Outcome = Pick<AttemptRecord, 'provider' | 'upstreamModel' | 'outcome'>

function attemptsOf({ provider, upstream_model: upstreamModel, details }: Row): readonly Outcome[] {
  const { attempts }: { readonly attempts?: readonly AttemptRecord[] } = JSON.parse(details ?? '{}')
  return attempts ?? [{ provider, upstreamModel, outcome: 'ok' }]
}

/** Endings that say nothing about the route: of the client, of the gateway, and refusals of the request itself. */
const neutralOutcomes: ReadonlySet<string> = new Set([
  '',
  "caller's fault",
  'cannot carry the request',
  'client left',
  'had too little time',
  'lacks what was asked for',
  'shut down',
  'superseded',
  'too large',
])

/** `interrupted: broken` is a failure, `interrupted: client left` is not. */
function sideOf(outcome: string): 'ok' | 'failed' | undefined {
  if (outcome === 'ok') return 'ok'
  return neutralOutcomes.has(outcome.replace(/^interrupted: /, '')) ? undefined : 'failed'
}
