/** @jsxImportSource preact */
// Usage: spend, requests, errors and latency of a period, and the spend of this month with its forecast. Every figure is summed by the server and links to its requests.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { exactCount, percentText } from '../../catalog/format.ts'
import { monthQuery, spendQuery, usageQuery } from '../../first-calls.ts'
import type { ConsoleData } from '../../page-data.ts'
import { withQuery } from '../api.ts'
import { Amount, Button, Meter, Percent } from '../components.tsx'
import { CommittedField, Field } from '../form.tsx'
import { cancelledText, firstTime, useAddressQuery, useApi } from '../hooks.ts'
import { ExampleRequest, emptyState, LongRead, NameOf, QueryView, type Tile, Tiles } from './components.tsx'
import { TimeField, useMay, useTimeFormats, useViewer, useWorkspaces } from './context.tsx'
import {
  firstTokenText,
  forecastOf,
  isoTimeOf,
  monthLimitOf,
  monthRanges,
  ranges,
  runwayText,
  spendRateDays,
  spendRateOf,
  usagePeriod,
  withPeriodBefore,
} from './figures.ts'
import { FirstSteps } from './first-run.tsx'
import {
  type Metric,
  metricOf,
  metrics,
  seriesGroups,
  tagOf,
  UsageExplorer,
  type UsageSeries,
} from './usage-explorer.tsx'

const refreshMs = 30_000

export function UsageView({ address, isOperator, now: answeredAt }: ConsoleData) {
  const [query, change] = useAddressQuery(['range', 'from', 'to', 'group', 'metric', 'key', 'project'])
  const { chosen, current, isDecided } = useWorkspaces()
  const { zoneName } = useTimeFormats()
  const isPaused = useRef(false)
  const [now, isMounted] = useNowFrom(answeredAt, isPaused)
  const typed = { from: Date.parse(isoTimeOf(query.from)), to: Date.parse(isoTimeOf(query.to)) }
  const isCustom = query.range === 'custom'
  const isPeriod = isCustom && typed.from < typed.to
  const period = isPeriod ? withPeriodBefore(typed.from, typed.to) : usagePeriod(query.range, now)
  const { from, to, before } = period
  const group = groupOptions.find(({ value }) => value === query.group)?.value ?? tagGroup(query.group) ?? 'model'
  const metric = metrics.find(({ value }) => value === query.metric) ?? metrics[0]
  const filter = { ...(query.key && { key: query.key }), ...(query.project && { project: query.project }) }
  const filters = { key_id: query.key || undefined, project_id: query.project || undefined }
  // The server does not know the zone.
  const offsetMinutes = zoneName === 'UTC' || !isMounted ? 0 : -new Date(to).getTimezoneOffset()
  const callFor = (start: number, end: number, groupBy: string) =>
    isDecided ? { query: { ...usageQuery(start, end, chosen?.id, groupBy, offsetMinutes), ...filters } } : undefined
  const call = callFor(from, to, tagOf(group) === '' ? 'none' : group)
  const usage = useApi('getUsageSeries', call, { keepPrevious: true })
  // A refresh would begin a long report again, or one that was cancelled.
  isPaused.current = usage.isLoading || usage.error?.message === cancelledText
  const previous = useApi('getUsageSeries', callFor(before.from, before.to, 'none'), { keepPrevious: true })
  const tiles = useMoneyTiles(now)
  const may = useMay()
  return (
    <>
      <div class="controls">
        <Field
          label="Time range"
          value={isCustom ? 'custom' : (periodOptions.find(({ value }) => value === query.range)?.value ?? '24h')}
          options={periodOptions}
          onChange={(range) =>
            change(range === 'custom' ? { range, from: isoTime(from), to: isoTime(to) } : { range, from: '', to: '' })
          }
        />
        {isCustom && (
          <>
            <TimeField label="From" at={typed.from || from} onChange={(next) => change({ from: next })} />
            <TimeField label="To" at={typed.to || to} onChange={(next) => change({ to: next })} />
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
      {isCustom && !isPeriod && (
        <p class="problem" role="alert">
          “From” must be before “To”. The last 24 hours are shown.
        </p>
      )}
      <LongRead query={usage} estimate={call && { report: 'series', ...call.query }} />
      <QueryView what="usage" query={usage}>
        {(value) => (
          <>
            <Tiles tiles={[...usageTiles(value, previous.value, before.name, filter), ...tiles]} />
            {current && may('createKey', current.id) && (
              <FirstSteps key={current.id} workspaceId={current.id} now={now} />
            )}
            {value.total.requests === 0 ? (
              emptyState('No requests in this period', <ExampleRequest address={address} isOperator={isOperator} />)
            ) : (
              <UsageExplorer
                usage={value}
                previous={previous.value}
                previousName={before.name}
                metric={metric}
                group={group}
                offsetMinutes={offsetMinutes}
                filter={filter}
                onMetric={(next) => change({ metric: next })}
                controls={<GroupFields group={group} onChange={(next) => change({ group: next })} />}
              />
            )}
          </>
        )}
      </QueryView>
    </>
  )
}

const periodOptions = [...ranges, ...monthRanges, { value: 'custom', label: 'Custom …' }].map(({ value, label }) => ({
  value,
  label,
}))
const groupOptions = seriesGroups.map(({ value, label }) => ({ value, label }))

function tagGroup(text: string): string | undefined {
  return /^tag:[A-Za-z][\w.-]*$/.test(text) ? text : undefined
}

/** What to group by; tags are named. */
function GroupFields({ group, onChange }: { readonly group: string; onChange(group: string): void }) {
  const tag = tagOf(group)
  return (
    <>
      <Field
        label="Group by"
        value={tag === undefined ? group : 'tag:'}
        options={groupOptions}
        onChange={(next) => onChange(next)}
      />
      {tag !== undefined && (
        <CommittedField
          label="Tag name"
          value={tag}
          attributes={{ placeholder: 'team', title: 'A tag that clients send in x-tollgate-tags' }}
          onChange={(name) => onChange(`tag:${name}`)}
        />
      )}
    </>
  )
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

/** Each compared with another period. */
function usageTiles(
  { total, from, to }: UsageSeries,
  before: UsageSeries | undefined,
  beforeName: string,
  filter: Readonly<Record<string, string>>,
) {
  const href = withQuery('/console/requests', { ...filter, from, to })
  const { requests, errors, first_event_ms: first } = total
  const tile = (value: ComponentChildren, figureOf: Figure, change: typeof changeText, note?: string) => ({
    value,
    note: (
      <>
        {/* The last interval is not over yet, and would look like a collapse. */}
        <Sparkline values={total.points.slice(0, -1).map((point) => figureOf(point) ?? 0)} />
        {[change(figureOf(total), before && figureOf(before.total), beforeName), note].filter(Boolean).join(' · ')}
      </>
    ),
  })
  return [
    { label: 'Spend', ...tile(<Amount usd={total.cost} />, figure('spend'), changeText), href },
    { label: 'Requests', ...tile(exactCount(requests), figure('requests'), changeText), href },
    {
      label: 'Error rate',
      ...tile(
        <Percent share={errorRate(total)} />,
        errorRate,
        pointsText,
        `${exactCount(errors)} of ${exactCount(requests)}`,
      ),
      href: withQuery('/console/requests', { ...filter, from, to, outcome: 'failed' }),
    },
    {
      label: 'Time to first token (p50)',
      ...tile(
        first ? firstTokenText(first.p50) : 'no traffic yet',
        figure('p50'),
        changeText,
        first ? `p95 ${firstTokenText(first.p95)}` : '',
      ),
    },
  ]
}

/** null = nothing was measured. */
type Figure = (sums: Omit<UsageSeries['total']['points'][number], 'start'>) => number | null

const figure =
  (name: Metric['value']): Figure =>
  (sums) =>
    metricOf(name, sums)

const errorRate: Figure = ({ requests, errors }) => (requests === 0 ? null : errors / requests)

/** `+12.0 % vs the period before` */
function changeText(now: number | null, before: number | null | undefined, name: string): string {
  if (now === null || before == null || before === 0) return ''
  const change = (now - before) / before
  if (change > 9) return `${exactCount(Math.round(now / before))} × ${name}`
  return `${change < 0 ? '−' : '+'}${percentText(Math.abs(change))} vs ${name}`
}

/** The change of a rate: `+2.1 percentage points vs the period before` */
function pointsText(now: number | null, before: number | null | undefined, name: string): string {
  if (now === null || before == null) return ''
  const points = ((now - before) * 100).toFixed(1)
  return `${points.startsWith('-') ? '−' : '+'}${points.replace('-', '')} percentage points vs ${name}`
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

/** What this month has cost, against its limit, and what is left. Each workspace has its own wallet. */
function useMoneyTiles(now: number): readonly Tile[] {
  const { chosen, current, isDecided } = useWorkspaces()
  const { isOperator } = useViewer()
  const may = useMay()
  const mayReadWallet = current !== undefined && may('getWallet', current.id)
  const wallet = useApi('getWallet', mayReadWallet ? { id: current.id } : undefined).value
  const isReady = isDecided && (current ? mayReadWallet : isOperator)
  const week = useApi('getStats', isReady ? { query: spendQuery(now, chosen?.id) } : undefined, {
    keepPrevious: true,
  }).value
  const month = useApi('getUsageSeries', isDecided ? { query: monthQuery(now, chosen?.id) } : undefined, {
    keepPrevious: true,
  }).value
  const rate = week && spendRateOf(week)
  const limit = mayReadWallet ? monthLimitOf(current.spend) : undefined
  const spent = month?.total.cost
  const thisMonth: Tile = {
    label: 'This month',
    value:
      spent === undefined ? (
        '…'
      ) : (
        <>
          <Amount usd={spent} />
          {limit !== undefined && (
            <small>
              {' '}
              of <Amount usd={limit} />
            </small>
          )}
        </>
      ),
    note: spent !== undefined && (
      <>
        {limit !== undefined && (
          <Meter share={Number(spent) / Number(limit)} name={`${percentText(Number(spent) / Number(limit))} spent`} />
        )}
        {rate ? (
          <>
            forecast <Amount usd={forecastOf(spent, rate, now)} />: so far, and the rest at the rate of the last{' '}
            {rate.span}
          </>
        ) : (
          'since the first, 00:00 UTC'
        )}
      </>
    ),
  }
  if (!mayReadWallet) return [thisMonth]
  const runway = rate
    ? `lasts ${runwayText(wallet?.available ?? '0', rate)} at the rate of the last ${rate.span}`
    : `no charges in the last ${spendRateDays} days`
  return [
    thisMonth,
    {
      label: 'Available',
      href: '/console/wallet',
      value: wallet ? <Amount usd={wallet.available} /> : '…',
      note: wallet && week && runway,
    },
  ]
}
