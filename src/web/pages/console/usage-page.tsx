/** @jsxImportSource preact */
// Usage: spend, requests, errors, latency and runway. Every figure is summed by the server and links to its requests.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { exactCount } from '../../catalog/format.ts'
import { spendQuery, usageQuery } from '../../first-calls.ts'
import type { ConsoleData } from '../../page-data.ts'
import { withQuery } from '../api.ts'
import { Button } from '../components.tsx'
import { Field } from '../form.tsx'
import { cancelledText, firstTime, useAddressQuery, useApi } from '../hooks.ts'
import { ExampleRequest, emptyState, Headline, LongRead, NameOf, QueryView, Tiles } from './components.tsx'
import { TimeField, useMay, useTimeFormats, useWorkspaces } from './context.tsx'
import { dayMs, firstTokenText, isoTimeOf, runwayText, spendRateDays, spendRateOf } from './figures.ts'
import { FirstSteps } from './first-run.tsx'
import {
  type Metric,
  metricOf,
  metrics,
  ranges,
  seriesGroups,
  UsageExplorer,
  type UsageSeries,
} from './usage-explorer.tsx'
import { UsageReport } from './usage-report.tsx'

const refreshMs = 30_000

export function UsageView({ address, isOperator, now: answeredAt }: ConsoleData) {
  const [query, change] = useAddressQuery(['range', 'from', 'to', 'group', 'metric', 'by', 'key', 'project'])
  const { chosen, current, isDecided } = useWorkspaces()
  const { zoneName } = useTimeFormats()
  const isPaused = useRef(false)
  const [now, isMounted] = useNowFrom(answeredAt, isPaused)
  const range = ranges.find(({ value }) => value === query.range) ?? ranges[0]
  const custom = { from: Date.parse(isoTimeOf(query.from)), to: Date.parse(isoTimeOf(query.to)) }
  const isCustom = query.range === 'custom' && custom.from < custom.to
  const to = isCustom ? custom.to : now
  const from = isCustom ? custom.from : to - range.days * dayMs
  const group = groupOptions.find(({ value }) => value === query.group)?.value ?? tagGroup(query.group) ?? 'model'
  const metric = metrics.find(({ value }) => value === query.metric) ?? metrics[0]
  const filter = { ...(query.key && { key: query.key }), ...(query.project && { project: query.project }) }
  const filters = { key_id: query.key || undefined, project_id: query.project || undefined }
  // The server does not know the zone.
  const offsetMinutes = zoneName === 'UTC' || !isMounted ? 0 : -new Date(to).getTimezoneOffset()
  const callFor = (start: number, end: number, groupBy: string) =>
    isDecided ? { query: { ...usageQuery(start, end, chosen?.id, groupBy, offsetMinutes), ...filters } } : undefined
  const call = callFor(from, to, group)
  const usage = useApi('getUsageSeries', call, { keepPrevious: true })
  // A refresh would begin a long report again, or one that was cancelled.
  isPaused.current = usage.isLoading || usage.error?.message === cancelledText
  const previous = useApi('getUsageSeries', callFor(from - (to - from), from, 'none'), { keepPrevious: true })
  const tiles = useBalanceTiles(now)
  const may = useMay()
  return (
    <>
      <div class="controls">
        <Field
          label="Time range"
          value={isCustom ? 'custom' : range.value}
          options={[...ranges, { value: 'custom', label: 'Custom …' }]}
          onChange={(next) => change({ range: next, from: isoTime(from), to: isoTime(to) })}
        />
        {query.range === 'custom' && (
          <>
            <TimeField label="From" at={from} onChange={(next) => change({ from: next })} />
            <TimeField label="To" at={to} onChange={(next) => change({ to: next })} />
          </>
        )}
        {(['key', 'project'] as const)
          .filter((name) => query[name] !== '')
          .map((name) => (
            <Button key={name} look="quiet small" onClick={() => change({ [name]: '' })}>
              {name} <NameOf kind={name === 'key' ? 'Key' : 'Project'} id={query[name]} />{' '}
              <span aria-hidden="true">×</span>
              <span class="visually-hidden">: remove this filter</span>
            </Button>
          ))}
      </div>
      <LongRead query={usage} estimate={call && { report: 'series', ...call.query }} />
      <QueryView what="usage" query={usage}>
        {(value) => (
          <>
            <Tiles tiles={[...usageTiles(value, previous.value, filter), ...tiles]} />
            {current && may('createKey', current.id) && (
              <FirstSteps key={current.id} workspaceId={current.id} now={now} />
            )}
            {value.total.requests === 0 ? (
              emptyState('No requests in this period', <ExampleRequest address={address} isOperator={isOperator} />)
            ) : (
              <>
                <UsageExplorer
                  usage={value}
                  previous={previous.value}
                  metric={metric}
                  group={group}
                  offsetMinutes={offsetMinutes}
                  filter={filter}
                  onMetric={(next) => change({ metric: next })}
                  controls={
                    <Field
                      label="Group by"
                      value={group}
                      options={
                        tagGroup(group)
                          ? [...groupOptions, { value: group, label: `Tag ${group.slice(4)}` }]
                          : groupOptions
                      }
                      onChange={(next) => change({ group: next })}
                    />
                  }
                />
                <UsageReport
                  days={(to - from) / dayMs}
                  filters={{ workspace_id: chosen?.id, ...filters }}
                  by={query.by}
                  onChoose={(next) => change({ by: next })}
                />
              </>
            )}
          </>
        )}
      </QueryView>
    </>
  )
}

const groupOptions = seriesGroups.map(({ value, label }) => ({ value, label }))

function tagGroup(text: string): string | undefined {
  return /^tag:[A-Za-z][\w.-]*$/.test(text) ? text : undefined
}

/** From the time of the first answers on, refreshed periodically; and whether the page is mounted. */
function useNowFrom(
  answeredAt: number,
  isPaused: { readonly current: boolean },
): readonly [now: number, isMounted: boolean] {
  const [now, setNow] = useState(() => firstTime(answeredAt))
  const [isMounted, setMounted] = useState(false)
  useEffect(() => {
    setMounted(true)
    const timer = setInterval(() => isPaused.current || setNow(systemClock.now()), refreshMs)
    return () => clearInterval(timer)
  }, [isPaused])
  return [now, isMounted]
}

/** Each compared with the period before. */
function usageTiles(
  { total, from, to }: UsageSeries,
  before: UsageSeries | undefined,
  filter: Readonly<Record<string, string>>,
) {
  const href = withQuery('/console/requests', { ...filter, from, to })
  const { requests, errors, first_event_ms: first } = total
  const tile = (name: Metric['value'], value: ComponentChildren, note?: string) => ({
    value,
    note: (
      <>
        {/* The last interval is not over yet, and would look like a collapse. */}
        <Sparkline values={total.points.slice(0, -1).map((point) => metricOf(name, point) ?? 0)} />
        {[deltaText(metricOf(name, total), before && metricOf(name, before.total)), note].filter(Boolean).join(' · ')}
      </>
    ),
  })
  return [
    { label: 'Spend', ...tile('spend', <Headline usd={total.cost} />), href },
    { label: 'Requests', ...tile('requests', exactCount(requests)), href },
    {
      label: 'Errors',
      ...tile(
        'errors',
        requests === 0 ? '–' : percent(errors / requests),
        `${exactCount(errors)} of ${exactCount(requests)}`,
      ),
      href: withQuery('/console/requests', { ...filter, from, to, outcome: 'failed' }),
    },
    {
      label: 'Time to first token (p50)',
      ...tile(
        'p50',
        first ? firstTokenText(first.p50) : 'no traffic yet',
        first ? `p95 ${firstTokenText(first.p95)}` : '',
      ),
    },
  ]
}

/** `+12 % vs the period before` */
function deltaText(now: number | null, before: number | null | undefined): string {
  if (now === null || before == null || before === 0) return ''
  const change = (now - before) / before
  if (change > 9) return `${exactCount(Math.round(now / before))} × the period before`
  return `${change < 0 ? '−' : '+'}${percent(Math.abs(change))} vs the period before`
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(share < 0.1 ? 2 : 1))} %`
}

function Sparkline({ values }: { readonly values: readonly number[] }) {
  const most = Math.max(...values, 0)
  if (values.length < 2 || most === 0) return null
  const points = values.map((value, at) => `${(at / (values.length - 1)) * 100},${20 - (value / most) * 18}`)
  return (
    <svg class="sparkline" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <polyline points={points.join(' ')} />
    </svg>
  )
}

/** Of one workspace: each has its own wallet. */
function useBalanceTiles(now: number) {
  const { current } = useWorkspaces()
  const may = useMay()
  const mayReadWallet = current !== undefined && may('getWallet', current.id)
  const wallet = useApi('getWallet', mayReadWallet ? { id: current.id } : undefined).value
  const call = current && mayReadWallet ? { query: spendQuery(now, current.id) } : undefined
  const week = useApi('getStats', call, { keepPrevious: true }).value
  if (!current) return [{ label: 'Available', value: '–', note: 'choose a workspace' }]
  if (!mayReadWallet) return []
  const available = { label: 'Available', href: '/console/wallet' }
  if (!wallet || !week)
    return [
      { ...available, value: '…' },
      { label: 'Runway', value: '…' },
    ]
  const rate = spendRateOf(week)
  const runway = rate
    ? { value: runwayText(wallet.available, rate), note: `at the rate of the last ${rate.span}` }
    : { value: 'no spend', note: `in the last ${spendRateDays} days` }
  return [
    { ...available, value: <Headline usd={wallet.available} /> },
    { label: 'Runway', ...runway },
  ]
}
