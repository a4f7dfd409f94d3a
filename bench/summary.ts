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
  'rssMegabytes',
  'eventsPerRead',
] as const

export type Metric = (typeof METRICS)[number]

export interface Figure {
  readonly value: number
  /** To the bare proxy in the same rounds; NaN where there is none. */
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
}

export const BASE = 'bare'
const UNPROXIED = 'direct'

export function summarize(measurements: readonly Measurement[], cells: readonly Cell[]): Row[] {
  const rows: Row[] = []
  for (const cell of cells) {
    const inCell = measurements.filter((measurement) => measurement.cell === cell.id)
    for (const contender of new Set(inCell.map((measurement) => measurement.contender))) {
      rows.push(rowOf(cell, contender, inCell))
    }
  }
  return rows
}

/** The median of one contender's per-round ratio to another; NaN without a common round. */
export function ratioBetween(
  measurements: readonly Measurement[],
  cell: Cell,
  metric: Metric,
  pair: { readonly of: string; readonly to: string },
): number {
  const inCell = measurements.filter((measurement) => measurement.cell === cell.id)
  const above = valuesByRound(cell, pair.of, inCell, metric)
  const below = valuesByRound(cell, pair.to, inCell, metric)
  const ratios: number[] = []
  for (const [round, value] of above) {
    const base = below.get(round)
    // Added latency can come out at or below nothing; a ratio to that says nothing.
    if (base !== undefined && base > 0) ratios.push(value / base)
  }
  return median(ratios)
}

function rowOf(cell: Cell, contender: string, inCell: readonly Measurement[]): Row {
  const figure = (metric: Metric): Figure => ({
    value: median([...valuesByRound(cell, contender, inCell, metric).values()]),
    ratio: contender === UNPROXIED ? Number.NaN : ratioBetween(inCell, cell, metric, { of: contender, to: BASE }),
  })
  const own = inCell.filter((measurement) => measurement.contender === contender)
  return {
    cell: cell.id,
    contender,
    rounds: own.length,
    figures: {
      requestsPerSecond: figure('requestsPerSecond'),
      cpuMicrosPerRequest: figure('cpuMicrosPerRequest'),
      cpuMicrosPerEvent: figure('cpuMicrosPerEvent'),
      addedP50Ms: figure('addedP50Ms'),
      addedP99Ms: figure('addedP99Ms'),
      rssMegabytes: figure('rssMegabytes'),
      eventsPerRead: figure('eventsPerRead'),
    },
    errors: own.reduce((sum, measurement) => sum + measurement.result.errors, 0),
    firstError: own.find((measurement) => measurement.result.firstError)?.result.firstError ?? null,
  }
}

function valuesByRound(
  cell: Cell,
  contender: string,
  inCell: readonly Measurement[],
  metric: Metric,
): Map<number, number> {
  const values = new Map<number, number>()
  for (const measurement of inCell) {
    if (measurement.contender !== contender) continue
    const unproxied = inCell.find((other) => other.contender === UNPROXIED && other.round === measurement.round)
    const value = metricOf(metric, cell, measurement.result, unproxied?.result)
    if (Number.isFinite(value)) values.set(measurement.round, value)
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
    case 'rssMegabytes':
      return result.rssBytes / 1_000_000
    case 'eventsPerRead':
      return streamed ? result.events / result.reads : Number.NaN
  }
}

function added(proxiedMs: number | null, unproxiedMs: number | null | undefined): number {
  return proxiedMs === null || unproxiedMs === null || unproxiedMs === undefined ? Number.NaN : proxiedMs - unproxiedMs
}
