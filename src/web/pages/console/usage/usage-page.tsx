/** @jsxImportSource preact */
// Usage: spend, requests, errors, latency and runway. Every figure is summed by the server and links to its requests.

import { useEffect, useState } from 'preact/hooks'
import { systemClock } from '../../../../kernel/clock.ts'
import { exactCount } from '../../../catalog/format.ts'
import type { ConsoleData } from '../../../page-data.ts'
import { callApi, callTogether, withQuery } from '../api-client.ts'
import type { Key, ListAnswer, Provider, RequestItem, StatsAnswer, Wallet } from '../api-types.ts'
import { Amount, type Column, ColumnChart, DataTable, Empty, ExampleRequest, QueryView, Tile } from '../components.tsx'
import { useTimeFormats, useWorkspaces } from '../context.tsx'
import { Choice } from '../form.tsx'
import { useAddressQuery, useQuery } from '../hooks.ts'
import { usdText } from '../values.ts'
import { firstTokenText, runwayText, spendRateDays, spendRateOf, statColumns } from './figures.ts'

const ranges = [
  { value: '24h', label: 'Last 24 hours', days: 1 },
  { value: '7d', label: 'Last 7 days', days: 7 },
  { value: '30d', label: 'Last 30 days', days: 30 },
] as const

const dayMs = 86_400_000
const refreshMs = 30_000

export function UsagePage({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['range', 'group'])
  const range = ranges.find(({ value }) => value === query.range) ?? ranges[0]
  const { chosen, current, isDecided } = useWorkspaces()
  const now = useNow()
  const from = now === undefined ? '' : new Date(now - range.days * dayMs).toISOString()
  const group = query.group === '' ? 'model' : query.group
  const path = withQuery('/api/stats', { from, workspace_id: chosen?.id, group })
  const stats = useQuery<StatsAnswer>(now === undefined || !isDecided ? undefined : path, { keepPrevious: true })
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

function Period({ stats }: { readonly stats: StatsAnswer }) {
  const { hour, moment, zoneName } = useTimeFormats()
  const isBehind = Date.parse(stats.counted_until) < Math.min(Date.parse(stats.to), systemClock.now()) - refreshMs * 4
  return (
    <p class="hint">
      {hour(stats.from)} to {hour(stats.to)}, in whole hours; times in {zoneName}.
      {isBehind && <strong> Counted up to {moment(stats.counted_until)}; newer requests follow.</strong>}
    </p>
  )
}

function StatTiles({ stats: { total, from }, now }: { readonly stats: StatsAnswer; readonly now: number }) {
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
  const from = new Date(now - spendRateDays * dayMs).toISOString()
  const wallet = useQuery<Wallet>(current && `/api/workspaces/${current.id}/wallet`).value
  const week = useQuery<StatsAnswer>(current && withQuery('/api/stats', { from, workspace_id: current.id }), {
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

function StatCharts({ stats, unit }: { readonly stats: StatsAnswer; readonly unit: 'hour' | 'day' }) {
  const { day } = useTimeFormats()
  const columns = statColumns(stats, unit === 'day' ? day : undefined)
  // Quantiles cannot be added up, so latency stays per hour.
  const hours = new Map(stats.hours.map((hour) => [Date.parse(hour.start), hour] as const))
  const latency = statColumns(stats, undefined).map(({ start }) => {
    const first = hours.get(start)?.first_event_ms
    return { start, value: first?.p50 ?? 0, text: latencyText(first ?? null) }
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
      <ColumnChart title="Time to first token (p50)" unit="hour" columns={latency} />
    </div>
  )
}

function latencyText(first: StatsAnswer['total']['first_event_ms']): string {
  return first ? `${firstTokenText(first.p50)} (n = ${exactCount(first.count)})` : '–'
}

type Group = StatsAnswer['groups'][number]

const groupNames = [
  { value: 'model', label: 'Model' },
  { value: 'project', label: 'Project' },
  { value: 'key', label: 'Key' },
] as const

const groupColumns: readonly Column<Group>[] = [
  { label: 'Spend', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
  { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
  { label: 'Errors', isNumber: true, show: ({ errors }) => exactCount(errors) },
  { label: 'Input tokens', isNumber: true, show: ({ input_tokens: tokens }) => exactCount(tokens) },
  { label: 'Output tokens', isNumber: true, show: ({ output_tokens: tokens }) => exactCount(tokens) },
  { label: 'First token (p50)', isNumber: true, show: ({ first_event_ms: first }) => latencyText(first) },
]

interface StatGroupsProps {
  readonly stats: StatsAnswer
  readonly group: string
  onChoose(group: string): void
}

function StatGroups({ stats: { from, groups, groups_left_off: leftOff }, group, onChoose }: StatGroupsProps) {
  const known = groupNames.find(({ value }) => value === group)
  const label = known?.label ?? 'Model'
  // The log cannot be filtered by requests without a model.
  const hrefOf = ({ id }: Group) =>
    known === undefined || id === '' ? undefined : withQuery('/console/requests', { from, [known.value]: id })
  return (
    <section class="card" aria-labelledby="groups">
      <div class="console-head">
        <h2 id="groups">By {label.toLowerCase()}</h2>
        <Choice label="Group by" value={group} options={groupNames} onChange={onChoose} />
      </div>
      <DataTable
        caption={`Usage by ${label.toLowerCase()}, highest spend first`}
        columns={[{ label, show: ({ id, name }) => name ?? (id === '' ? 'unknown model' : id) }, ...groupColumns]}
        rows={groups}
        keyOf={({ id }) => id}
        hrefOf={hrefOf}
      />
      {leftOff > 0 && <p class="hint">{exactCount(leftOff)} more with lower spend are not shown.</p>}
    </section>
  )
}

interface Step {
  readonly isDone: boolean
  readonly label: string
  readonly how: string
  readonly href: string
}

type StepAnswers = [ListAnswer<Key>, Wallet, ListAnswer<RequestItem>, ListAnswer<Provider>]

/** Getting started; disappears when everything is done. `now` changes when the page refreshes. */
function FirstSteps({ workspaceId, now }: { readonly workspaceId: string; readonly now: number }) {
  const { value, reload } = useQuery<StepAnswers>(workspaceId, {
    load: () =>
      callTogether(
        callApi(withQuery('/api/keys', { workspace_id: workspaceId, limit: '200' })),
        callApi(`/api/workspaces/${workspaceId}/wallet`),
        callApi(withQuery('/api/requests', { workspace_id: workspaceId, outcome: 'ok', limit: '1' })),
        callApi('/api/providers'),
      ),
  })
  const steps = value && stepsOf(value)
  const isAllDone = steps?.every(({ isDone }) => isDone) === true
  useEffect(() => {
    if (steps && !isAllDone) reload()
  }, [now])
  if (!steps || isAllDone) return null
  const done = steps.filter(({ isDone }) => isDone).length
  return (
    <section class="card" aria-labelledby="first-steps">
      <h2 id="first-steps">
        Getting started{' '}
        <small>
          {done} of {steps.length} done
        </small>
      </h2>
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
    </section>
  )
}

function stepsOf([keys, wallet, requests, providers]: StepAnswers): readonly Step[] {
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
