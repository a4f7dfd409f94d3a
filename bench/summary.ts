// From single measurements to what the table shows: medians over rounds, and ratios to the bare proxy taken within each
// round before their median, so that a slow moment of the machine weighs on both sides of a ratio alike.

import type { Cell } from './cells.ts'
import type { LoadResult } from './load.ts'
import { median } from './statistics.ts'

export interface Measurement {
  readonly cell: string
  readonly contender: string
  readonly round: number
  readonly result: LoadResult
}

export const METRICS = [
  'requestsPerSecond',
  'cpuMicrosPerRequest',
  'cpuMicrosPerEvent',
  'addedP50Ms',
  'addedP99Ms',
  'p50Ms',
  'p99Ms',
  'rssMegabytes',
  'eventsPerRead',
] as const

export type Metric = (typeof METRICS)[number]

export interface Figure {
  readonly value: number
  /** To the bare proxy in the same rounds, of the cell's twin where it cannot do this one; NaN where there is none. */
  readonly ratio: number
}

export interface Row {
  readonly cell: string
  readonly contender: string
  readonly rounds: number
  /** NaN where a metric has no meaning, such as CPU per event of a JSON reply. */
  readonly figures: Readonly<Record<Metric, Figure>>
  readonly errors: number
  readonly firstError: string | null
  /** In open loops: requests without an answer some seconds after the window, whose latency is reported too low. */
  readonly unanswered: number
}

export const BASE = 'bare'
const UNPROXIED = 'direct'

export function summarize(measurements: readonly Measurement[], cells: readonly Cell[]): Row[] {
  const rows: Row[] = []
  for (const cell of cells) {
    const inCell = measurements.filter((measurement) => measurement.cell === cell.id)
    for (const contender of new Set(inCell.map((measurement) => measurement.contender))) {
      rows.push(rowOf(cell, contender, measurements))
    }
  }
  return rows
}

/** The median of one contender's per-round ratio to another; NaN without a common round. */
export function ratioBetween(
  measurements: readonly Measurement[],
  cell: Cell,
  metric: Metric,
  pair: { readonly of: string; readonly to: string; readonly toCell?: string | undefined },
): number {
  const above = valuesByRound(cell, pair.of, measurements, metric)
  const own = valuesByRound({ ...cell, id: pair.toCell ?? cell.id }, pair.to, measurements, metric)
  const below =
    own.size > 0 || pair.toCell !== undefined
      ? own
      : valuesByRound({ ...cell, id: cell.twin }, pair.to, measurements, metric)
  const ratios: number[] = []
  for (const [round, value] of above) {
    const base = below.get(round)
    // Added latency can come out at or below nothing; a ratio to that says nothing.
    if (base !== undefined && base > 0) ratios.push(value / base)
  }
  return median(ratios)
}

function rowOf(cell: Cell, contender: string, measurements: readonly Measurement[]): Row {
  const figure = (metric: Metric): Figure => ({
    value: median([...valuesByRound(cell, contender, measurements, metric).values()]),
    ratio: contender === UNPROXIED ? Number.NaN : ratioBetween(measurements, cell, metric, { of: contender, to: BASE }),
  })
  const own = measurements.filter((measurement) => measurement.cell === cell.id && measurement.contender === contender)
  return {
    cell: cell.id,
    contender,
    rounds: own.length,
    figures: Object.fromEntries(METRICS.map((metric) => [metric, figure(metric)])) as Record<Metric, Figure>,
    errors: own.reduce((sum, measurement) => sum + measurement.result.errors, 0),
    firstError: own.find((measurement) => measurement.result.firstError)?.result.firstError ?? null,
    unanswered: own.reduce((sum, measurement) => sum + measurement.result.unanswered, 0),
  }
}

function valuesByRound(
  cell: Cell,
  contender: string,
  measurements: readonly Measurement[],
  metric: Metric,
): Map<number, number> {
  const values = new Map<number, number>()
  for (const { cell: id, contender: name, round, result } of measurements) {
    if (id !== cell.id || name !== contender) continue
    const unproxied = measurements.find(
      (other) => other.contender === UNPROXIED && other.round === round && other.cell === cell.twin,
    )
    const value = metricOf(metric, cell, result, unproxied?.result)
    if (Number.isFinite(value)) values.set(round, value)
  }
  return values
}

function metricOf(metric: Metric, cell: Cell, result: LoadResult, unproxied: LoadResult | undefined): number {
  const streamed = cell.events > 0
  switch (metric) {
    case 'requestsPerSecond':
      return result.requests / result.seconds
    case 'cpuMicrosPerRequest':
      return streamed ? Number.NaN : result.cpuMicros / result.requests
    case 'cpuMicrosPerEvent':
      return streamed ? result.cpuMicros / result.events : Number.NaN
    case 'addedP50Ms':
      return unproxied === result ? Number.NaN : added(result.p50Ms, unproxied?.p50Ms)
    case 'addedP99Ms':
      return unproxied === result ? Number.NaN : added(result.p99Ms, unproxied?.p99Ms)
    case 'p50Ms':
      return result.p50Ms ?? Number.NaN
    case 'p99Ms':
      return result.p99Ms ?? Number.NaN
    case 'rssMegabytes':
      return result.rssBytes / 1_000_000
    case 'eventsPerRead':
      return streamed ? result.events / result.reads : Number.NaN
  }
}

function added(proxiedMs: number | null, unproxiedMs: number | null | undefined): number {
  return proxiedMs === null || unproxiedMs === null || unproxiedMs === undefined ? Number.NaN : proxiedMs - unproxiedMs
}
