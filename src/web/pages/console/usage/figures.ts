// Figures of the usage page, computed from the statistics: chart columns, runway, and latency as text.

import { formatUsd, type Nano, parseUsd } from '../../../../kernel/money.ts'
import { firstEventBounds } from '../../../../store/request-rows.ts'
import { shortMs } from '../../../catalog/format.ts'
import type { StatFigures, StatsAnswer } from '../api-types.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/**
 * `≈ 420 ms`, `under 25 ms`. Times to the first token are counted in buckets, so a value in the lowest bucket is only
 * known to be below its bound.
 */
export function firstTokenText(milliseconds: number): string {
  const lowest = firstEventBounds[0]
  return milliseconds <= lowest ? `under ${shortMs(lowest)}` : `≈ ${shortMs(milliseconds)}`
}

export interface StatColumn {
  /** Epoch milliseconds. */
  readonly start: number
  readonly requests: number
  readonly errors: number
  readonly tokens: number
  readonly cost: string
}

/** One column per hour of the period, or per day where `dayOf` names the day of a time. Amounts are added exactly. */
export function statColumns(stats: StatsAnswer, dayOf: ((at: number) => string) | undefined): readonly StatColumn[] {
  const byHour = new Map(stats.hours.map((hour) => [Date.parse(hour.start), hour] as const))
  const columns = new Map<string, StatColumn>()
  for (let at = Date.parse(stats.from); at < Date.parse(stats.to); at += hourMs) {
    const name = dayOf ? dayOf(at) : String(at)
    const column = columns.get(name) ?? { start: at, requests: 0, errors: 0, tokens: 0, cost: '0.00' }
    const hour = byHour.get(at)
    columns.set(name, hour ? addHour(column, hour) : column)
  }
  return [...columns.values()]
}

function addHour(column: StatColumn, hour: StatFigures): StatColumn {
  const cost = (parseUsd(column.cost) ?? 0n) + (parseUsd(hour.cost) ?? 0n)
  return {
    start: column.start,
    requests: column.requests + hour.requests,
    errors: column.errors + hour.errors,
    tokens: column.tokens + hour.input_tokens + hour.output_tokens,
    cost: formatUsd(cost as Nano),
  }
}

export interface SpendRate {
  /** USD; approximate. */
  readonly perDay: number
  /** What it was measured over: `7 days`, `5 hours`, `hour`. */
  readonly span: string
}

export const spendRateDays = 7

/**
 * The average spend per day over the statistics' period, or since its first request where that is shorter. undefined =
 * nothing was charged.
 */
export function spendRateOf({ total, hours, from, counted_until: until }: StatsAnswer): SpendRate | undefined {
  const spent = Number(total.cost)
  if (!(spent > 0)) return undefined
  const first = Math.max(Date.parse(hours[0]?.start ?? from), Date.parse(from))
  // At least an hour: a burst of a minute says nothing about a day.
  const spanMs = Math.max(hourMs, Date.parse(until) - first)
  const days = Math.min(spendRateDays, Math.round(spanMs / dayMs))
  const wholeHours = Math.round(spanMs / hourMs)
  const span = days >= 2 ? `${days} days` : wholeHours === 1 ? 'hour' : `${wholeHours} hours`
  return { perDay: spent / (spanMs / dayMs), span }
}

/** How long the available amount lasts at the current rate: `≈ 12 days`. */
export function runwayText(available: string, { perDay }: SpendRate): string {
  const days = Math.max(0, Number(available)) / perDay
  if (days > 999) return 'more than 999 days'
  if (days >= 2) return `≈ ${Math.round(days)} days`
  const hours = Math.round(days * 24)
  return hours < 1 ? 'less than an hour' : hours === 1 ? '≈ 1 hour' : `≈ ${hours} hours`
}
