/** @jsxImportSource preact */
// Usage: spend, requests, errors, latency and runway. Every figure is summed by the server and links to its requests.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { exactCount, usdText } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { ApiError, callApi, callTogether, withQuery } from '../api.ts'
import { useAddressQuery, useApi, useQuery } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Amount, Card, ColumnChart, Empty, ExampleRequest, QueryView, Tile } from './components.tsx'
import { useTimeFormats, useWorkspaces } from './context.tsx'
import { dayMs, firstTokenText, runwayText, type Stats, spendRateDays, spendRateOf, statColumns } from './figures.ts'
import { Choice } from './form.tsx'

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

export function UsagePage({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['range', 'group'])
  const range = ranges.find(({ value }) => value === query.range) ?? ranges[0]
  const { chosen, current, isDecided } = useWorkspaces()
  const now = useNow()
  const group = groups.find(({ value }) => value === query.group) ?? groups[0]
  const call = now === undefined || !isDecided ? undefined : statsCall(now - range.days * dayMs, chosen?.id, group)
  const stats = useApi('getStats', call, { keepPrevious: true })
  return (
    <>
      <div class="console-head">
        <h1>Usage</h1>
        <div class="controls">
          <Choice
            label="Time range"
            value={range.value}
            options={ranges}
            onChange={(next) => change({ range: next })}
          />
        </div>
      </div>
      <QueryView what="usage" query={stats}>
        {(value) => (
          <>
            <Period stats={value} />
            <StatTiles stats={value} now={now ?? 0} />
            {current && <FirstSteps key={current.id} workspaceId={current.id} now={now ?? 0} />}
            {value.total.requests === 0 ? (
              <Empty title="No requests in this period">
                <ExampleRequest address={address} />
              </Empty>
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

function Period({ stats }: { readonly stats: Stats }) {
  const { hour, moment, zoneName } = useTimeFormats()
  const isBehind = Date.parse(stats.counted_until) < Math.min(Date.parse(stats.to), systemClock.now()) - refreshMs * 4
  return (
    <p class="hint">
      {hour(stats.from)} to {hour(stats.to)}, in whole hours; times in {zoneName}.
      {isBehind && <strong> Counted up to {moment(stats.counted_until)}; newer requests follow.</strong>}
    </p>
  )
}

function StatTiles({ stats: { total, from }, now }: { readonly stats: Stats; readonly now: number }) {
  const requests = withQuery('/console/requests', { from })
  const failed = withQuery('/console/requests', { from, outcome: 'failed' })
  const first = total.first_event_ms
  return (
    <dl class="tiles">
      <Tile label="Spend" value={<Amount usd={total.cost} />} note="charged in this period" href={requests} />
      <Tile label="Requests" value={exactCount(total.requests)} href={requests} />
      <Tile
        label="Errors"
        value={total.requests === 0 ? '–' : percent(total.errors / total.requests)}
        note={`${exactCount(total.errors)} of ${exactCount(total.requests)}`}
        href={failed}
      />
      <Tile
        label="Time to first token (p50)"
        value={first ? firstTokenText(first.p50) : 'no traffic yet'}
        note={first && `p95: ${firstTokenText(first.p95)} (n = ${exactCount(first.count)}, estimated)`}
      />
      <Tile
        label="Tokens"
        value={exactCount(total.input_tokens + total.output_tokens)}
        note={`${exactCount(total.input_tokens)} in, ${exactCount(total.output_tokens)} out`}
      />
      <BalanceTiles now={now} />
    </dl>
  )
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(share < 0.1 ? 2 : 1))} %`
}

/** Of one workspace: each has its own wallet. */
function BalanceTiles({ now }: { readonly now: number }) {
  const { current } = useWorkspaces()
  const wallet = useApi('getWallet', current && { id: current.id }).value
  const week = useApi('getStats', current && statsCall(now - spendRateDays * dayMs, current.id), {
    keepPrevious: true,
  }).value
  if (!current) return <Tile label="Available" value="–" note="choose a workspace" />
  const rate = week && spendRateOf(week)
  const runway =
    !wallet || !week
      ? { value: '…' }
      : rate
        ? { value: runwayText(wallet.available, rate), note: `at the rate of the last ${rate.span}` }
        : { value: 'no spend yet', note: `in the last ${spendRateDays} days` }
  return (
    <>
      <Tile label="Available" value={wallet ? <Amount usd={wallet.available} /> : '…'} href="/console/wallet" />
      <Tile label="Runway" {...runway} />
    </>
  )
}

function StatCharts({ stats, unit }: { readonly stats: Stats; readonly unit: 'hour' | 'day' }) {
  const { day } = useTimeFormats()
  const columns = statColumns(stats, unit === 'day' ? day : undefined)
  const hours = unit === 'hour' ? columns : statColumns(stats)
  return (
    <div class="charts">
      <ColumnChart
        title="Spend"
        unit={unit}
        columns={columns.map(({ start, cost }) => ({ start, value: Number(cost), text: usdText(cost) }))}
      />
      <ColumnChart
        title="Requests"
        partName="errors"
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
      <ColumnChart
        title="Time to first token (p50)"
        unit="hour"
        columns={hours.map(({ start, firstEvent }) => ({
          start,
          value: firstEvent?.p50 ?? 0,
          text: latencyText(firstEvent),
        }))}
      />
    </div>
  )
}

function latencyText(first: Stats['total']['first_event_ms']): string {
  return first ? `${firstTokenText(first.p50)} (n = ${exactCount(first.count)})` : '–'
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
      action={<Choice label="Group by" value={value} options={groups} onChange={onChoose} />}
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
  const answers = await callTogether(
    callApi('listKeys', { query: { workspace_id: id, limit: 200 } }),
    callApi('getWallet', { id }),
    callApi('listRequests', { query: { workspace_id: id, outcome: 'ok', limit: 1 } }),
    callApi('listProviders', {}),
  )
  if (answers instanceof ApiError) return answers
  const [keys, wallet, requests, providers] = answers
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
      <ol class="steps">
        {steps.map(({ isDone, label, how, href }) => (
          <li key={label} class={isDone ? 'done-step' : undefined}>
            <span aria-hidden="true" class="step-mark">
              {isDone ? '✓' : '○'}
            </span>
            <span>
              {isDone ? label : <a href={href}>{label}</a>}
              <span class="visually-hidden">{isDone ? ': done' : ': to do'}</span>
              {!isDone && <small class="row-note">{how}</small>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  )
}
