// How the attempts at each route ended, from the request log: the model page shows it by the hour, the provider history by
// slots of five minutes, from which it also finds incidents. The database adds up portions of the log.

import { type LogDatabase, readPortions } from './read-log.ts'
import type { AttemptRecord } from './request-record.ts'

/** The attempts at a route, of requests that began within a period. */
export interface Slot {
  ok: number
  failed: number
  /** Failed attempts by outcome. */
  readonly causes: Map<string, number>
  /** Epoch milliseconds of the first and the last failure. */
  firstFailedAt: number
  lastFailedAt: number
  /** Requests with a failed attempt here that another attempt answered, and those that failed. */
  rescued: number
  lost: number
  /** Requests that the first attempt answered as a stream, and the sum of their times to the first token. */
  timed: number
  firstEventMs: number
}

export interface RouteSlots {
  readonly provider: string
  readonly upstreamModel: string
  /** By the start of the slot; slots without attempts are left out. */
  readonly slots: Map<number, Slot>
}

export interface RouteHistoryQuery {
  /** undefined = all models. */
  readonly model?: string
  /** Epoch milliseconds; `from` is the start of a slot, `to` is exclusive. */
  readonly from: number
  readonly to: number
  readonly slotMs: number
}

interface Row {
  readonly provider: string
  readonly upstream_model: string
  readonly slot: bigint
  readonly details: string | null
  readonly rescued: bigint
  readonly first_at: bigint
  readonly last_at: bigint
  readonly requests: bigint
  readonly timed: bigint
  readonly first_event_ms: bigint
}

export async function readRouteHistory(
  database: LogDatabase,
  { slotMs, from, to, ...query }: RouteHistoryQuery,
): Promise<readonly RouteSlots[]> {
  const routes = new Map<string, RouteSlots>()
  const slotOf = ({ provider, upstreamModel }: Outcome, start: number): Slot => {
    const key = `${provider} ${upstreamModel}`
    const route = routes.get(key) ?? { provider, upstreamModel, slots: new Map() }
    routes.set(key, route)
    const slot = route.slots.get(start) ?? emptySlot()
    route.slots.set(start, slot)
    return slot
  }
  // Only requests with a failed attempt have `attempts` in their details; each of those is a row.
  const select = `SELECT provider, upstream_model, started_at / ${slotMs} AS slot, ${failedDetails} AS details,
    CASE WHEN code IS NULL AND status < 400 THEN 1 ELSE 0 END AS rescued, MIN(started_at) AS first_at,
    MAX(started_at) AS last_at, COUNT(*) AS requests, COUNT(first_event_ms) AS timed,
    CAST(COALESCE(SUM(first_event_ms), 0) AS BIGINT) AS first_event_ms`
  const end = ' AND provider IS NOT NULL GROUP BY 1, 2, 3, 4, 5'
  for await (const rows of readPortions<Row>(database, { ...query, from, to }, select, [end])) {
    for (const row of rows) addRow(row, (outcome) => slotOf(outcome, Number(row.slot) * slotMs))
  }
  return [...routes.values()]
}

const failedDetails = `CASE WHEN REPLACE(details, '"attempts":', '') <> details THEN details END`

type Outcome = Pick<AttemptRecord, 'provider' | 'upstreamModel' | 'outcome' | 'startMs'>

function addRow(row: Row, slotOf: (outcome: Outcome) => Slot): void {
  const count = Number(row.requests)
  if (row.details === null) {
    const slot = slotOf({ provider: row.provider, upstreamModel: row.upstream_model, outcome: 'ok' })
    slot.ok += count
    slot.timed += Number(row.timed)
    slot.firstEventMs += Number(row.first_event_ms)
    return
  }
  const { attempts }: { readonly attempts: readonly AttemptRecord[] } = JSON.parse(row.details)
  const failedAt = new Set<Slot>()
  for (const attempt of attempts) {
    const side = sideOf(attempt.outcome)
    if (!side) continue
    const slot = slotOf(attempt)
    slot[side] += count
    if (side === 'ok') continue
    const startMs = attempt.startMs ?? 0
    slot.firstFailedAt = Math.min(slot.firstFailedAt, Number(row.first_at) + startMs)
    slot.lastFailedAt = Math.max(slot.lastFailedAt, Number(row.last_at) + startMs)
    slot.causes.set(attempt.outcome, (slot.causes.get(attempt.outcome) ?? 0) + count)
    failedAt.add(slot)
  }
  for (const slot of failedAt) slot[Number(row.rescued) === 1 ? 'rescued' : 'lost'] += count
}

const emptySlot = (): Slot => ({
  ok: 0,
  failed: 0,
  causes: new Map(),
  firstFailedAt: Number.POSITIVE_INFINITY,
  lastFailedAt: 0,
  rescued: 0,
  lost: 0,
  timed: 0,
  firstEventMs: 0,
})

/** Outcomes that say nothing about the route: the client or the gateway ended the attempt, or the request was refused. */
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

/** A period in which at least half of the attempts at some routes of a provider failed. */
export interface Incident {
  readonly provider: string
  readonly upstreamModels: readonly string[]
  /** Epoch milliseconds of the first and the last failed attempt. */
  readonly startedAt: number
  readonly lastFailedAt: number
  /** Whether it is still going on. */
  readonly isOpen: boolean
  /** Failed attempts by outcome, the most frequent first. */
  readonly causes: readonly (readonly [outcome: string, attempts: number])[]
  readonly rescued: number
  readonly lost: number
}

/** Fewer failures are an incident only if one of them pauses the route. */
const incidentFailuresMin = 3
const pausingCauses: readonly string[] = ['refused our credential', 'out of quota', 'does not know the model']
/** A failure this long after the last one is another incident. */
const incidentGapMs = 3_600_000

/**
 * Newest first. Incidents of several routes of a provider at the same time are one. `isFailing`: whether the route fails now;
 * the latest incident of a route goes on exactly as long as that.
 */
export function findIncidents(
  routes: readonly RouteSlots[],
  isFailing: (route: Pick<RouteSlots, 'provider' | 'upstreamModel'>) => boolean,
): readonly Incident[] {
  const byProvider = Map.groupBy(routes, ({ provider }) => provider)
  const found = [...byProvider.values()].flatMap((members) =>
    merge(members.flatMap((route) => incidentsOf(route, isFailing(route)))),
  )
  return found.sort((a, b) => b.startedAt - a.startedAt)
}

function incidentsOf({ provider, upstreamModel, slots }: RouteSlots, isFailing: boolean): readonly Incident[] {
  const runs: Slot[][] = []
  let run: Slot[] | undefined
  for (const [, slot] of [...slots].sort(([a], [b]) => a - b)) {
    const isBad = slot.failed > 0 && slot.failed >= slot.ok
    const isLate = isBad && slot.firstFailedAt - (run?.at(-1)?.lastFailedAt ?? 0) > incidentGapMs
    // A slot with neutral outcomes only does not end a run.
    if (isLate || (!isBad && slot.ok > 0)) run = undefined
    if (!isBad) continue
    if (run) run.push(slot)
    else {
      run = [slot]
      runs.push(run)
    }
  }
  return runs.flatMap((each) => {
    const last = each.at(-1)?.lastFailedAt ?? 0
    const causes = sumCauses(each.flatMap((slot) => [...slot.causes]))
    const failed = each.reduce((sum, slot) => sum + slot.failed, 0)
    if (failed < incidentFailuresMin && !causes.some(([cause]) => pausingCauses.includes(cause))) return []
    return {
      provider,
      upstreamModels: [upstreamModel],
      startedAt: each[0]?.firstFailedAt ?? 0,
      lastFailedAt: last,
      isOpen: isFailing && each === run,
      causes,
      rescued: each.reduce((sum, slot) => sum + slot.rescued, 0),
      lost: each.reduce((sum, slot) => sum + slot.lost, 0),
    }
  })
}

function sumCauses(causes: Incident['causes']): Incident['causes'] {
  const sums = new Map<string, number>()
  for (const [cause, count] of causes) sums.set(cause, (sums.get(cause) ?? 0) + count)
  return [...sums].sort(([, a], [, b]) => b - a)
}

function merge(incidents: readonly Incident[]): readonly Incident[] {
  const merged: Incident[] = []
  for (const next of [...incidents].sort((a, b) => a.startedAt - b.startedAt)) {
    const before = merged.at(-1)
    if (!before || next.startedAt > before.lastFailedAt) {
      merged.push(next)
      continue
    }
    merged[merged.length - 1] = {
      ...before,
      upstreamModels: [...new Set([...before.upstreamModels, ...next.upstreamModels])],
      lastFailedAt: Math.max(before.lastFailedAt, next.lastFailedAt),
      isOpen: before.isOpen || next.isOpen,
      causes: sumCauses([...before.causes, ...next.causes]),
      rescued: before.rescued + next.rescued,
      lost: before.lost + next.lost,
    }
  }
  return merged
}

export type RouteHistory = ReturnType<typeof createRouteHistory>

const slotMs = 300_000
const hourMs = 3_600_000
const keptMs = 30 * 24 * hourMs
const freshMs = 2_000
/** A request is in the log once it has ended; none takes longer than this. */
const settledAfterMs = hourMs

const startOfHour = (time: number) => time - (time % hourMs)

/** Keeps the hours that no request can change any more in memory, so that their log is read once. */
export function createRouteHistory(database: LogDatabase) {
  let settled: readonly RouteSlots[] = []
  let settledFrom = 0
  let settledTo = 0
  let reading:
    | { readonly at: number; readonly from: number; readonly routes: Promise<readonly RouteSlots[]> }
    | undefined
  const renew = async (now: number, first: number): Promise<readonly RouteSlots[]> => {
    if (settledTo < first) {
      settled = []
      settledFrom = settledTo = first
    }
    const earlier =
      first < settledFrom ? await readRouteHistory(database, { from: first, to: settledFrom, slotMs }) : []
    const fresh = await readRouteHistory(database, { from: settledTo, to: now + 1, slotMs })
    const all = join([...earlier, ...settled, ...fresh])
    settledFrom = Math.max(Math.min(first, settledFrom), startOfHour(now - keptMs))
    settledTo = Math.max(settledTo, startOfHour(now - settledAfterMs))
    settled = all.map((route) => mergeQuietHours(within(route, settledFrom, settledTo)))
    return all
  }
  return {
    /** Slots since the start of an hour within the last thirty days, at most two seconds old. */
    async read(now: number, from: number): Promise<readonly RouteSlots[]> {
      if (!reading || now - reading.at >= freshMs || reading.from > from) {
        // One after the other, because each begins where the last one ended.
        const before = reading?.routes.catch(() => [])
        const routes = Promise.resolve(before).then(() => renew(now, from))
        reading = { at: now, from, routes }
        routes.catch(() => {
          reading = undefined
        })
      }
      const routes = await reading.routes
      return routes.map((route) => within(route, from, now + 1)).filter(({ slots }) => slots.size > 0)
    },
  }
}

/** Hours without a failure become one slot each: thirty days of five minutes would be 8,640 slots per route. */
function mergeQuietHours({ slots, ...route }: RouteSlots): RouteSlots {
  const hours = Map.groupBy(slots, ([start]) => startOfHour(start))
  const merged = [...hours].flatMap(([hour, members]): (readonly [number, Slot])[] => {
    if (members.some(([, { failed }]) => failed > 0)) return members
    const sum = emptySlot()
    for (const [, { ok, timed, firstEventMs }] of members) {
      sum.ok += ok
      sum.timed += timed
      sum.firstEventMs += firstEventMs
    }
    return [[hour, sum]]
  })
  return { ...route, slots: new Map(merged) }
}

function within({ slots, ...route }: RouteSlots, from: number, to: number): RouteSlots {
  return { ...route, slots: new Map([...slots].filter(([start]) => start >= from && start < to)) }
}

/** The slots of one route do not overlap. */
function join(routes: readonly RouteSlots[]): readonly RouteSlots[] {
  const groups = Map.groupBy(routes, ({ provider, upstreamModel }) => `${provider} ${upstreamModel}`)
  return [...groups.values()].flatMap(([first, ...rest]) => {
    if (!first) return []
    return { ...first, slots: new Map([...first.slots, ...rest.flatMap(({ slots }) => [...slots])]) }
  })
}
