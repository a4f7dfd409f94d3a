// Hours of the statistics as the columns of a chart: every hour of the span, or its days in the viewer's zone. Amounts are
// added exactly.

import { formatUsd, type Nano, parseUsd } from '../../../../kernel/money.ts'
import type { StatFigures, StatsAnswer } from '../parts/api-answers.ts'

export interface StatColumn {
  /** Epoch milliseconds. */
  readonly start: number
  readonly requests: number
  readonly errors: number
  readonly tokens: number
  readonly cost: string
}

const hourMs = 3_600_000

/** `dayOf` names the day of a moment; hours of the same day become one column. */
export function statColumns(stats: StatsAnswer, dayOf: ((at: number) => string) | undefined): readonly StatColumn[] {
  const byHour = new Map(stats.hours.map((hour) => [Date.parse(hour.start), hour] as const))
  const columns = new Map<string, StatColumn>()
  for (let at = Date.parse(stats.from); at < Date.parse(stats.to); at += hourMs) {
    const name = dayOf ? dayOf(at) : String(at)
    const column = columns.get(name) ?? { start: at, requests: 0, errors: 0, tokens: 0, cost: '0.00' }
    const hour = byHour.get(at)
    columns.set(name, hour ? added(column, hour) : column)
  }
  return [...columns.values()]
}

function added(column: StatColumn, hour: StatFigures): StatColumn {
  const cost = (parseUsd(column.cost) ?? 0n) + (parseUsd(hour.cost) ?? 0n)
  return {
    start: column.start,
    requests: column.requests + hour.requests,
    errors: column.errors + hour.errors,
    tokens: column.tokens + hour.input_tokens + hour.output_tokens,
    cost: formatUsd(cost as Nano),
  }
}
