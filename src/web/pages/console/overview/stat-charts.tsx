/** @jsxImportSource preact */
// The same figures over time.

import { exactCount } from '../../../catalog/figures.ts'
import type { StatsAnswer } from '../parts/api-answers.ts'
import { ColumnChart } from '../parts/column-chart.tsx'
import { usdText } from '../parts/usd-text.ts'
import { useZone } from '../parts/zone.tsx'
import { firstTokenText } from './first-token-text.ts'
import { statColumns } from './stat-columns.ts'

export function StatCharts({ stats, unit }: { readonly stats: StatsAnswer; readonly unit: 'hour' | 'day' }) {
  const zone = useZone()
  const columns = statColumns(stats, unit === 'day' ? zone.day : undefined)
  // Quantiles cannot be added up, so these stay hours.
  const hours = new Map(stats.hours.map((hour) => [Date.parse(hour.start), hour] as const))
  const measured = statColumns(stats, undefined).map(({ start }) => {
    const first = hours.get(start)?.first_event_ms
    return {
      start,
      value: first?.p50 ?? 0,
      text: first ? `${firstTokenText(first.p50)} (n = ${exactCount(first.count)})` : '–',
    }
  })
  return (
    <div class="charts">
      <ColumnChart
        title="Spend"
        unit={unit}
        columns={columns.map(({ start, cost }) => ({ start, value: Number(cost), text: usdText(cost) }))}
      />
      <ColumnChart
        title="Requests"
        partName="of it errors"
        unit={unit}
        columns={columns.map(({ start, requests, errors }) => ({
          start,
          value: requests,
          part: errors,
          text: exactCount(requests),
        }))}
      />
      <ColumnChart
        title="Tokens"
        unit={unit}
        columns={columns.map(({ start, tokens }) => ({ start, value: tokens, text: exactCount(tokens) }))}
      />
      <ColumnChart title="First token, half within" unit="hour" columns={measured} />
    </div>
  )
}
