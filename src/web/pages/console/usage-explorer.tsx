/** @jsxImportSource preact */
// The usage explorer: one metric over time by one group, compared with the period before, and the table of the same figures.
// Everything shown comes from GET /api/usage/series; choices are in the address.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { formatUsd, type Nano } from '../../../kernel/money.ts'
import { csvLine } from '../../../wire/csv.ts'
import { exactCount, percentText, shortCount, shortMs, usd } from '../../catalog/format.ts'
import { type AnswerOf, withQuery } from '../api.ts'
import { Amount, Button, Percent, Segments } from '../components.tsx'
import { amountColumn, type Column, DataTable } from '../table.tsx'
import { causeText, saveFile } from './components.tsx'
import { useTimeFormats } from './context.tsx'
import { firstTokenText } from './figures.ts'
import { navigate } from './navigation.ts'
import { type ChartSeries, chartColors, colorOf, restLabel, UsageChart } from './usage-chart.tsx'

const refreshMs = 30_000

/** undefined until mounted, because the server's time would differ; then refreshed periodically. */
export function useNow(): number | undefined {
  const [now, setNow] = useState<number | undefined>(undefined)
  useEffect(() => {
    const tick = () => setNow(systemClock.now())
    tick()
    const timer = setInterval(tick, refreshMs)
    return () => clearInterval(timer)
  }, [])
  return now
}

export type UsageSeries = AnswerOf<'getUsageSeries'>
type Sums = UsageSeries['total']
type Point = Sums['points'][number]

export const metrics = [
  { value: 'spend', label: 'Spend', isSum: true },
  { value: 'requests', label: 'Requests', isSum: true },
  { value: 'tokens', label: 'Tokens', isSum: true },
  { value: 'errors', label: 'Errors', isSum: true },
  { value: 'p50', label: 'First token (p50)', isSum: false },
  { value: 'p95', label: 'First token (p95)', isSum: false },
  { value: 'cache', label: 'Cache hit rate', isSum: false },
] as const
export type Metric = (typeof metrics)[number]

/** null = nothing was measured. */
export function metricOf(name: Metric['value'], sums: Omit<Point, 'start'>): number | null {
  if (name === 'spend') return Number(sums.cost)
  if (name === 'requests') return sums.requests
  if (name === 'errors') return sums.errors
  if (name === 'tokens') return sums.input_tokens + sums.output_tokens
  if (name === 'cache') return sums.input_tokens === 0 ? null : sums.cache_read_tokens / sums.input_tokens
  return sums.first_event_ms?.[name] ?? null
}

function nanoOf(dollars: number): Nano {
  return BigInt(Math.round(dollars * 1e9)) as Nano
}

/** At the pointer: with every digit, so that the series add up to their total. */
export function metricText(name: Metric['value'], value: number): string {
  if (name === 'spend') return usd(nanoOf(value))
  return metrics.some((metric) => metric.value === name && metric.isSum) ? exactCount(value) : axisText(name, value)
}

/** Short, with steps that stay apart. */
export function axisText(name: Metric['value'], value: number): string {
  if (name === 'spend') return value === 0 ? '$0' : `$${Number(value.toPrecision(3))}`
  if (name === 'p50' || name === 'p95') return shortMs(value)
  return name === 'cache' ? percentText(value) : shortCount(value)
}

/** `filter`: the parameter of the request list that selects a group. */
export const seriesGroups = [
  { value: 'model', label: 'Model', filter: 'model' },
  { value: 'person', label: 'Person', filter: undefined },
  { value: 'group', label: 'Group', filter: undefined },
  { value: 'key', label: 'Key', filter: 'key' },
  { value: 'project', label: 'Project', filter: 'project' },
  { value: 'provider', label: 'Provider', filter: 'provider' },
  { value: 'route', label: 'Route', filter: undefined },
  { value: 'agent', label: 'Client', filter: 'agent' },
  { value: 'session', label: 'Session', filter: 'session' },
  { value: 'user', label: 'End user', filter: 'user' },
  { value: 'tag:', label: 'Tag', filter: 'tag' },
  { value: 'cause', label: 'Outcome', filter: 'cause' },
  { value: 'workspace', label: 'Workspace', filter: undefined },
] as const

/** The tag of a group `tag:NAME`; empty = not named yet, undefined = another group. */
export function tagOf(group: string): string | undefined {
  return group.startsWith('tag:') ? group.slice('tag:'.length) : undefined
}

function groupOf(group: string) {
  return seriesGroups.find(({ value }) => value === (tagOf(group) === undefined ? group : 'tag:')) ?? seriesGroups[0]
}

function groupLabel(group: string): string {
  return tagOf(group) || groupOf(group).label
}

export const intervalMs = { '1m': 60_000, '5m': 300_000, '1h': 3_600_000, '6h': 21_600_000, '1d': 86_400_000 } as const

export interface UsageExplorerProps {
  readonly usage: UsageSeries
  /** What it is compared with; undefined = not loaded. */
  readonly previous: UsageSeries | undefined
  /** `the period before` */
  readonly previousName: string
  readonly metric: Metric
  readonly group: string
  readonly offsetMinutes: number
  /** Of the request list, for links to it: a key or a project. */
  readonly filter: Readonly<Record<string, string>>
  readonly controls: preact.ComponentChildren
  onMetric(metric: string): void
}

export function UsageExplorer(props: UsageExplorerProps) {
  const { usage, metric, group, filter } = props
  const { hour, day, moment, zoneName } = useTimeFormats()
  const when = usage.interval === '1d' ? day : hour
  const save = () => saveFile(csvOf(props), `usage-${metric.value}.csv`)
  return (
    <figure class="chart card stack">
      <figcaption class="between">
        <Segments name="Metric" value={metric.value} options={metrics} onChange={props.onMetric} />
        <div class="row">
          {props.controls}
          <Button look="quiet small" onClick={save}>
            Export CSV
          </Button>
        </div>
      </figcaption>
      <SeriesChart {...props} />
      <p class="hint">
        {moment(usage.from)} to {moment(usage.to)}, {zoneName}. Hatched intervals are partial
        {previousValues(props) && `; the dashed line is ${props.previousName}`}. Click an interval to see its requests.
      </p>
      {usage.total.cache_read_tokens > 0 && (
        <p class="hint">
          <Percent share={metricOf('cache', usage.total)} /> of the input came from prompt caches, which saved{' '}
          <Amount usd={usage.total.cache_saved} />.
        </p>
      )}
      {usage.log_from !== null && usage.log_from > usage.from && (
        <p class="hint">From the request log, which begins at {moment(usage.log_from)}.</p>
      )}
      {group === 'group' && (
        <p class="hint">
          A request counts in each group that its key or the person who owns it is in now, and once in the total, so the
          groups may add up to more.
        </p>
      )}
      <SeriesTable usage={usage} group={group} filter={filter} />
      <details>
        <summary class="hint">Show as table</summary>
        <DataTable
          class="compact-table"
          caption={`${metric.label} over time`}
          columns={[
            { label: `Starting (${zoneName})`, show: ({ start }) => when(start) },
            amountColumn('Spend', ({ cost }: Point) => cost),
            { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
            { label: 'Errors', isNumber: true, show: ({ errors }) => exactCount(errors) },
            { label: 'Tokens', isNumber: true, show: (point) => exactCount(metricOf('tokens', point) ?? 0) },
          ]}
          rows={usage.total.points}
          keyOf={({ start }) => start}
        />
      </details>
    </figure>
  )
}

type SeriesChartProps = Pick<UsageExplorerProps, 'usage' | 'metric' | 'group' | 'offsetMinutes' | 'filter'> &
  Partial<Pick<UsageExplorerProps, 'previous' | 'previousName'>>

/** More than this many times the current values, and the chart would show little else. */
const previousMax = 3

/** The values of the previous period at the intervals of this one; undefined = they would not be readable. */
function previousValues({ usage, previous, metric, offsetMinutes }: SeriesChartProps) {
  if (!previous || !metric.isSum) return undefined
  const [from, to] = [Date.parse(usage.from), Date.parse(usage.to)]
  const starts = startsOf(from, to, intervalMs[usage.interval], offsetMinutes)
  const before = shifted(previous, metric.value, starts, from - Date.parse(previous.from))
  const most = (values: readonly (number | null)[]) => Math.max(0, ...values.map((value) => value ?? 0))
  const now = most(usage.total.points.map((point) => metricOf(metric.value, point)))
  const isLine = before.filter((value) => value !== null).length > 1
  return isLine && most(before) <= previousMax * now ? before : undefined
}

/** A metric over time by group; a click on an interval leads to its requests. */
export function SeriesChart(props: SeriesChartProps) {
  const { usage, metric, group, offsetMinutes, filter } = props
  const { hour, day } = useTimeFormats()
  const stepMs = intervalMs[usage.interval]
  const [from, to] = [Date.parse(usage.from), Date.parse(usage.to)]
  const starts = startsOf(from, to, stepMs, offsetMinutes)
  const open = (start: number) =>
    navigate(
      withQuery('/console/requests', {
        ...filter,
        from: isoTime(Math.max(from, start)),
        to: isoTime(Math.min(to, start + stepMs)),
      }),
    )
  return (
    <UsageChart
      {...{ starts, stepMs, from, to }}
      series={chartSeries(usage, metric, group, starts)}
      before={previousValues(props)}
      beforeName={props.previousName}
      // Groups overlap: stacked they would be higher than the total.
      isStacked={metric.isSum && group !== 'group'}
      when={usage.interval === '1d' ? day : hour}
      text={(value) => metricText(metric.value, value)}
      axisText={(value) => axisText(metric.value, value)}
      onOpen={open}
    />
  )
}

/** The starts of all intervals that the window touches. */
export function startsOf(from: number, to: number, stepMs: number, offsetMinutes: number): readonly number[] {
  const offset = offsetMinutes * 60_000
  const first = Math.floor((from + offset) / stepMs) * stepMs - offset
  return Array.from({ length: Math.max(0, Math.ceil((to - first) / stepMs)) }, (_, at) => first + at * stepMs)
}

function valuesOf(points: readonly Point[], metric: Metric, starts: readonly number[]): readonly (number | null)[] {
  const byStart = new Map(points.map((point) => [Date.parse(point.start), point]))
  return starts.map((start) => {
    const point = byStart.get(start)
    return point ? metricOf(metric.value, point) : metric.isSum ? 0 : null
  })
}

function chartSeries(
  usage: UsageSeries,
  metric: Metric,
  group: string,
  starts: readonly number[],
): readonly ChartSeries[] {
  const shown = usage.series.slice(0, chartColors)
  const series = shown.map((each) => ({ label: nameOf(each, group), values: valuesOf(each.points, metric, starts) }))
  if (!metric.isSum || (usage.series.length <= chartColors && usage.others === null)) return series
  const rest = [...usage.series.slice(chartColors), ...(usage.others ? [usage.others] : [])]
  const values = rest.map(({ points }) => valuesOf(points, metric, starts))
  return [
    ...series,
    { label: restLabel, values: starts.map((_, at) => values.reduce((sum, each) => sum + (each[at] ?? 0), 0)) },
  ]
}

function nameOf({ value, name }: UsageSeries['series'][number], group: string): string {
  if (group === 'cause' && value !== null) return causeText(value)
  return name ?? value ?? `(no ${groupLabel(group).toLowerCase()})`
}

/** By place: the interval of the previous period that lies as far from its start. */
function shifted(previous: UsageSeries, name: Metric['value'], starts: readonly number[], byMs: number) {
  const step = (starts[1] ?? 0) - (starts[0] ?? 0)
  const sums = new Map<number, number | null>()
  for (const point of previous.total.points) {
    const at = step > 0 ? Math.round((Date.parse(point.start) + byMs - (starts[0] ?? 0)) / step) : 0
    sums.set(at, metricOf(name, point))
  }
  return starts.map((_, at) => sums.get(at) ?? null)
}

function csvOf({ usage, metric, group, offsetMinutes }: SeriesChartProps): string {
  const [from, to] = [Date.parse(usage.from), Date.parse(usage.to)]
  const starts = startsOf(from, to, intervalMs[usage.interval], offsetMinutes)
  const series = chartSeries(usage, metric, group, starts)
  const head = csvLine(['start', ...series.map((each) => `${metric.label}: ${each.label}`)])
  const cell = (value: number | null | undefined) =>
    value == null || metric.value !== 'spend' ? (value ?? null) : formatUsd(nanoOf(value))
  const lines = starts.map((start, at) => csvLine([isoTime(start), ...series.map(({ values }) => cell(values[at]))]))
  return `${[head, ...lines].join('\r\n')}\r\n`
}

type SeriesRow = UsageSeries['series'][number] & { readonly color: string }

const seriesColumns: readonly Column<SeriesRow>[] = [
  amountColumn('Spend', ({ cost }) => cost),
  { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
  { label: 'Errors', isNumber: true, show: ({ errors }) => exactCount(errors) },
  { label: 'Tokens', isNumber: true, show: (row) => exactCount(metricOf('tokens', row) ?? 0) },
  {
    label: 'First token (p50)',
    isNumber: true,
    show: ({ first_event_ms: first }) => (first ? firstTokenText(first.p50) : '–'),
  },
  {
    label: 'First token (p95)',
    isNumber: true,
    show: ({ first_event_ms: first }) => (first ? firstTokenText(first.p95) : '–'),
  },
  {
    label: 'Cache hits',
    isNumber: true,
    show: (row) => <Percent share={metricOf('cache', row)} />,
  },
  amountColumn('Cache savings', ({ cache_saved }) => cache_saved),
]

function SeriesTable({ usage, group, filter: shared }: Pick<UsageExplorerProps, 'usage' | 'group' | 'filter'>) {
  const { filter } = groupOf(group)
  const tag = tagOf(group)
  const label = groupLabel(group)
  const hrefOf = ({ value }: SeriesRow) => {
    if (value === null || filter === undefined) return undefined
    return withQuery('/console/requests', {
      ...shared,
      from: usage.from,
      to: usage.to,
      [filter]: tag === undefined ? value : `${tag}=${value}`,
    })
  }
  const first: Column<SeriesRow> = {
    label,
    show: (row) => <span class={`series-name series-${row.color}`}>{nameOf(row, group)}</span>,
  }
  return (
    <div class="table-box">
      <DataTable
        class="data-table summary-table usage-table"
        caption={`Usage by ${label.toLowerCase()}, highest spend first`}
        columns={[first, ...seriesColumns]}
        rows={usage.series.map((row, place) => ({ ...row, color: colorOf(place, nameOf(row, group)) }))}
        keyOf={({ value }) => value ?? ''}
        hrefOf={hrefOf}
      />
      {usage.others && <p class="hint">{exactCount(usage.others.count)} more with lower spend are not shown.</p>}
    </div>
  )
}
