/** @jsxImportSource preact */
// Usage: spend, requests, errors, latency and runway. Every figure is summed by the server and links to its requests.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { exactCount, usdText } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { callApi, withQuery } from '../api.ts'
import { Field } from '../form.tsx'
import { useAddressQuery, useApi, useQuery } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Amount, Card, ExampleRequest, emptyState, QueryView, Tiles } from './components.tsx'
import { useTimeFormats, useWorkspaces } from './context.tsx'
import { dayMs, firstTokenText, runwayText, type Stats, spendRateDays, spendRateOf, statColumns } from './figures.ts'

const ranges = [
  { value: '24h', label: 'Last 24 hours', days: 1 },
  { value: '7d', label: 'Last 7 days', days: 7 },
  { value: '30d', label: 'Last 30 days', days: 30 },
] as const

const groups = [
  { value: 'model', label: 'Model' },
  { value: 'project', label: 'Project' },
  { value: 'key', label: 'Key' },
] as const

type Group = (typeof groups)[number]

const refreshMs = 30_000

export function UsageView({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['range', 'group'])
  const range = ranges.find(({ value }) => value === query.range) ?? ranges[0]
  const group = groups.find(({ value }) => value === query.group) ?? groups[0]
  const { chosen, current, isDecided } = useWorkspaces()
  const { hour, zoneName } = useTimeFormats()
  const now = useNow()
  const call = now === undefined || !isDecided ? undefined : statsCall(now - range.days * dayMs, chosen?.id, group)
  const stats = useApi('getStats', call, { keepPrevious: true })
  const tiles = useBalanceTiles(now ?? 0)
  return (
    <>
      <div class="controls">
        <Field label="Time range" value={range.value} options={ranges} onChange={(next) => change({ range: next })} />
        <p class="hint">
          {stats.value && `${hour(stats.value.from)} to ${hour(stats.value.to)}, in whole hours; times in ${zoneName}.`}
        </p>
      </div>
      <QueryView what="usage" query={stats}>
        {(value) => (
          <>
            <Tiles tiles={[...statTiles(value), ...tiles]} />
            {current && <FirstSteps key={current.id} workspaceId={current.id} now={now ?? 0} />}
            {value.total.requests === 0 ? (
              emptyState('No requests in this period', <ExampleRequest address={address} />)
            ) : (
              <>
                <StatCharts stats={value} unit={range.days === 1 ? 'hour' : 'day'} />
                <StatGroups stats={value} group={group} onChoose={(next) => change({ group: next })} />
              </>
            )}
          </>
        )}
      </QueryView>
    </>
  )
}

function statsCall(from: number, workspaceId: string | undefined, group: Group = groups[0]) {
  return { query: { from: isoTime(from), workspace_id: workspaceId, group: group.value } }
}

/** undefined until mounted, because the server's time would differ; then refreshed periodically. */
function useNow(): number | undefined {
  const [now, setNow] = useState<number | undefined>(undefined)
  useEffect(() => {
    const tick = () => setNow(systemClock.now())
    tick()
    const timer = setInterval(tick, refreshMs)
    return () => clearInterval(timer)
  }, [])
  return now
}

function statTiles({ total, from }: Stats) {
  const href = withQuery('/console/requests', { from })
  const { requests, errors, input_tokens: input, output_tokens: output, first_event_ms: first } = total
  return [
    { label: 'Spend', value: <Amount usd={total.cost} />, note: 'charged in this period', href },
    { label: 'Requests', value: exactCount(requests), href },
    {
      label: 'Errors',
      value: requests === 0 ? '–' : percent(errors / requests),
      note: `${exactCount(errors)} of ${exactCount(requests)}`,
      href: withQuery('/console/requests', { from, outcome: 'failed' }),
    },
    {
      label: 'Time to first token (p50)',
      value: first ? firstTokenText(first.p50) : 'no traffic yet',
      note: first && `p95: ${firstTokenText(first.p95)} (n = ${exactCount(first.count)}, estimated)`,
    },
    { label: 'Tokens', value: exactCount(input + output), note: `${exactCount(input)} in, ${exactCount(output)} out` },
  ]
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(share < 0.1 ? 2 : 1))} %`
}

/** Of one workspace: each has its own wallet. */
function useBalanceTiles(now: number) {
  const { current } = useWorkspaces()
  const wallet = useApi('getWallet', current && { id: current.id }).value
  const call = current && statsCall(now - spendRateDays * dayMs, current.id)
  const week = useApi('getStats', call, { keepPrevious: true }).value
  if (!current) return [{ label: 'Available', value: '–', note: 'choose a workspace' }]
  const available = { label: 'Available', href: '/console/wallet' }
  if (!wallet || !week)
    return [
      { ...available, value: '…' },
      { label: 'Runway', value: '…' },
    ]
  const rate = spendRateOf(week)
  const runway = rate
    ? { value: runwayText(wallet.available, rate), note: `at the rate of the last ${rate.span}` }
    : { value: 'no spend yet', note: `in the last ${spendRateDays} days` }
  return [
    { ...available, value: <Amount usd={wallet.available} /> },
    { label: 'Runway', ...runway },
  ]
}

function StatCharts({ stats, unit }: { readonly stats: Stats; readonly unit: Unit }) {
  const { day } = useTimeFormats()
  const columns = statColumns(stats, unit === 'day' ? day : undefined)
  const hours = unit === 'hour' ? columns : statColumns(stats)
  const spend = columns.map(({ start, cost }) => ({ start, value: Number(cost), text: usdText(cost) }))
  const requests = columns.map(({ start, requests: value, errors }) => {
    return { start, value, part: errors, text: exactCount(value) }
  })
  const tokens = columns.map(({ start, tokens: value }) => ({ start, value, text: exactCount(value) }))
  const latency = hours.map(({ start, firstEvent }) => {
    return { start, value: firstEvent?.p50 ?? 0, text: latencyText(firstEvent) }
  })
  return (
    <div class="charts">
      <ColumnChart title="Spend" unit={unit} columns={spend} />
      <ColumnChart title="Requests" partName="errors" unit={unit} columns={requests} />
      <ColumnChart title="Tokens" unit={unit} columns={tokens} />
      <ColumnChart title="Time to first token (p50)" unit="hour" columns={latency} />
    </div>
  )
}

function latencyText(first: Stats['total']['first_event_ms']): string {
  return first ? `${firstTokenText(first.p50)} (n = ${exactCount(first.count)})` : '–'
}

type Unit = 'hour' | 'day'

interface ChartColumn {
  /** Epoch milliseconds. */
  readonly start: number
  readonly value: number
  /** A part of the value that is highlighted, such as errors. */
  readonly part?: number
  /** The exact value, as the table shows it. */
  readonly text: string
}

interface ColumnChartProps {
  readonly title: string
  /** What the highlighted part is: `errors`. */
  readonly partName?: string
  readonly columns: readonly ChartColumn[]
  readonly unit: Unit
}

const width = 600
const height = 120

/** Columns over time with the same figures as a table. SVG, because the page's policy allows no inline styles. */
function ColumnChart({ title, partName, columns, unit }: ColumnChartProps) {
  const formats = useTimeFormats()
  const when = unit === 'hour' ? formats.hour : formats.day
  const highest = Math.max(...columns.map(({ value }) => value), 0)
  const peak = highest === 0 ? undefined : columns.find(({ value }) => value === highest)
  const step = width / Math.max(columns.length, 1)
  const bar = (name: string, at: number, value: number) => {
    const tall = value > 0 ? Math.max(1.5, (value / highest) * height) : 0
    return <rect class={name} x={at * step + step * 0.12} y={height - tall} width={step * 0.76} height={tall} />
  }
  const starting = `${unit === 'hour' ? 'Hour' : 'Day'} starting (${formats.zoneName})`
  const tableColumns: readonly Column<ChartColumn>[] = [
    { label: starting, show: ({ start }) => when(start) },
    { label: title, isNumber: true, show: ({ text }) => text },
    ...(partName === undefined
      ? []
      : [{ label: partName, isNumber: true, show: ({ part = 0 }: ChartColumn) => exactCount(part) }]),
  ]
  return (
    <figure class="chart card stack tight">
      <figcaption class="between">
        <strong>{title}</strong>
        {partName !== undefined && <small class="chart-legend">{partName}</small>}
        <small>{peak ? `peak ${peak.text}, ${when(peak.start)}` : 'no data yet'}</small>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <path class="chart-axis" d={`M0 ${height}H${width}`} />
        {columns.map(({ start, value, part = 0, text }, at) => (
          <g key={start}>
            <title>{`${when(start)}: ${text}`}</title>
            {bar('chart-all', at, value)}
            {part > 0 && bar('chart-part', at, part)}
          </g>
        ))}
      </svg>
      <div class="between" aria-hidden="true">
        {[columns[0], columns.at(-1)].map((end, at) => (
          <small key={at}>{end && when(end.start)}</small>
        ))}
      </div>
      <details>
        <summary class="hint">Show as table</summary>
        <DataTable
          class="compact-table"
          caption={title}
          columns={tableColumns}
          rows={columns.filter(({ value }) => value > 0)}
          keyOf={({ start }) => String(start)}
        />
      </details>
    </figure>
  )
}

type GroupRow = Stats['groups'][number]

const groupColumns: readonly Column<GroupRow>[] = [
  { label: 'Spend', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
  { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
  { label: 'Errors', isNumber: true, show: ({ errors }) => exactCount(errors) },
  { label: 'Input tokens', isNumber: true, show: ({ input_tokens: tokens }) => exactCount(tokens) },
  { label: 'Output tokens', isNumber: true, show: ({ output_tokens: tokens }) => exactCount(tokens) },
  { label: 'First token (p50)', isNumber: true, show: ({ first_event_ms: first }) => latencyText(first) },
]

interface StatGroupsProps {
  readonly stats: Stats
  readonly group: Group
  onChoose(group: string): void
}

function StatGroups({ stats, group: { value, label }, onChoose }: StatGroupsProps) {
  const { from, groups: rows, groups_left_off: leftOff } = stats
  // The log cannot be filtered by requests without a model.
  const hrefOf = ({ id }: GroupRow) => (id === '' ? undefined : withQuery('/console/requests', { from, [value]: id }))
  const first = { label, show: ({ id, name }: GroupRow) => name ?? (id === '' ? 'unknown model' : id) }
  return (
    <Card
      title={`By ${label.toLowerCase()}`}
      action={<Field label="Group by" value={value} options={groups} onChange={onChoose} />}
    >
      <DataTable
        caption={`Usage by ${label.toLowerCase()}, highest spend first`}
        columns={[first, ...groupColumns]}
        rows={rows}
        keyOf={({ id }) => id}
        hrefOf={hrefOf}
      />
      {leftOff > 0 && <p class="hint">{exactCount(leftOff)} more with lower spend are not shown.</p>}
    </Card>
  )
}

/** Getting started, with what is done already. */
async function readSteps(id: string) {
  const [keys, wallet, requests, providers] = await Promise.all([
    callApi('listKeys', { query: { workspace_id: id, limit: 200 } }),
    callApi('getWallet', { id }),
    callApi('listRequests', { query: { workspace_id: id, outcome: 'ok', limit: 1 } }),
    callApi('listProviders', {}),
  ])
  return [
    {
      isDone: keys.data.some(({ status }) => status === 'active'),
      label: 'Create an API key',
      how: 'Its secret is shown once.',
      href: '/console/keys',
    },
    {
      isDone: Number(wallet.available) > 0,
      label: 'Add funds',
      how: 'Requests are paid from the workspace’s balance.',
      href: '/console/wallet',
    },
    {
      isDone: requests.data.length > 0,
      label: 'Send a request',
      how: 'Run the command below, or try a model in the playground. The sandbox needs no provider.',
      href: '/console/playground',
    },
    {
      isDone: providers.data.some(({ origin }) => origin !== 'built_in'),
      label: 'Connect a provider',
      how: 'Set the provider’s API key variable and restart, declare it in tollgate.yaml, or add a workspace’s own key.',
      href: '/console/providers',
    },
  ]
}

/** Disappears when everything is done. `now` changes when the page refreshes. */
function FirstSteps({ workspaceId, now }: { readonly workspaceId: string; readonly now: number }) {
  const { value: steps, reload } = useQuery(workspaceId, () => readSteps(workspaceId))
  const done = steps?.filter(({ isDone }) => isDone).length
  const isAllDone = done === steps?.length
  useEffect(() => {
    if (steps && !isAllDone) reload()
  }, [now])
  if (!steps || isAllDone) return null
  return (
    <Card title="Getting started" note={`${done} of ${steps.length} done`}>
      <ol class="plain steps">
        {steps.map(({ isDone, label, how, href }) => (
          <li key={label} class={isDone ? 'done-step muted' : undefined}>
            <span aria-hidden="true">{isDone ? '✓' : '○'}</span>
            <span>
              {isDone ? label : <a href={href}>{label}</a>}
              <span class="visually-hidden">{isDone ? ': done' : ': to do'}</span>
              {!isDone && <small class="note">{how}</small>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  )
}
