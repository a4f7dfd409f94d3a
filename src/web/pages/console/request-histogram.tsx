/** @jsxImportSource preact */
// Requests over time by how they ended. A click on an interval narrows the page to it.

import { useState } from 'preact/hooks'
import { isoTime } from '../../../kernel/clock.ts'
import { countOf, exactCount, shortCount } from '../../catalog/format.ts'
import type { AnswerOf } from '../api.ts'
import { DataTable } from '../table.tsx'
import { causeLevel } from './components.tsx'
import { useTimeFormats } from './context.tsx'
import type { RequestPeriod } from './request-filters.tsx'
import { UsageChart } from './usage-chart.tsx'
import { intervalMs, startsOf } from './usage-explorer.tsx'

type Series = AnswerOf<'getUsageSeries'>

/** Of the colors and words of the list. */
const levels = [
  { level: 'ok', label: 'succeeded', color: '--data-1' },
  { level: 'warning', label: 'refused or interrupted', color: '--warn' },
  { level: 'error', label: 'failed', color: '--error' },
] as const

interface HistogramProps {
  /** By cause; undefined = not loaded. */
  readonly usage: Series | undefined
  readonly period: RequestPeriod
  onZoom(from: string, to: string): void
}

export function Histogram({ usage, period, onZoom }: HistogramProps) {
  const { hour, moment, zoneName } = useTimeFormats()
  const [isTable, setTable] = useState(false)
  const stepMs = usage ? intervalMs[usage.interval] : 1
  const [from, to] = usage ? [Date.parse(usage.from), Date.parse(usage.to)] : [0, 0]
  const starts = startsOf(from, to, stepMs, 0)
  const series = levels.map(({ level, label, color }) => ({ label, color, values: valuesOf(usage, level, starts) }))
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
  return (
    <section class="card stack tight" aria-label="Requests over time">
      <p class="hint">
        {usage
          ? `${countOf(usage.total.requests, 'request')} ${period.name || `from ${moment(usage.from)} to ${moment(usage.to)}`}: ${series.map(({ label, values }) => `${exactCount(sum(values))} ${label}`).join(', ')}`
          : 'Counting requests …'}
      </p>
      <div class="histogram">
        {usage && (
          <UsageChart
            {...{ starts, stepMs, from, to, series }}
            before={undefined}
            isStacked
            axisPixels={40}
            when={hour}
            text={exactCount}
            axisText={(value) => (Number.isInteger(value) ? shortCount(value) : '')}
            onOpen={(start) => onZoom(isoTime(Math.max(start, from)), isoTime(Math.min(start + stepMs, to)))}
          />
        )}
      </div>
      <details onToggle={({ currentTarget }) => setTable(currentTarget.open)}>
        <summary class="hint">Show as table</summary>
        {isTable && (
          <DataTable
            class="compact-table"
            caption="Requests over time"
            columns={[
              { label: `Starting (${zoneName})`, show: (at: number) => hour(starts[at] ?? 0) },
              ...series.map(({ label, values }) => ({
                label: label.slice(0, 1).toUpperCase() + label.slice(1),
                isNumber: true,
                show: (at: number) => exactCount(values[at] ?? 0),
              })),
            ]}
            rows={starts.flatMap((_, at) => (series.some(({ values }) => (values[at] ?? 0) > 0) ? [at] : []))}
            keyOf={String}
          />
        )}
      </details>
    </section>
  )
}

/** The requests of all causes of a level, for each interval. */
function valuesOf(usage: Series | undefined, level: string, starts: readonly number[]): readonly number[] {
  const sums = new Map<number, number>()
  // Causes that are too rare for a series of their own are failures of some kind.
  const others = usage?.others && level === 'warning' ? [usage.others] : []
  const all = [...(usage?.series.filter(({ value }) => causeLevel(value ?? 'ok') === level) ?? []), ...others]
  for (const { points } of all) {
    for (const { start, requests } of points) {
      const at = Date.parse(start)
      sums.set(at, (sums.get(at) ?? 0) + requests)
    }
  }
  return starts.map((start) => sums.get(start) ?? 0)
}
