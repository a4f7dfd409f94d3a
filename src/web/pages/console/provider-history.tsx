/** @jsxImportSource preact */
// What the list of providers and the page of one of them share: the history of attempts with its period, incidents, the routes
// of each provider, what it charged, and where its key comes from.

import { useEffect, useState } from 'preact/hooks'
import { causeName, providerStatus, routeStatus, type ShownStatus } from '../../../api/route-state.ts'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import type { CatalogEntry, CatalogRoute } from '../../catalog/entry.ts'
import { countOf, exactCount } from '../../catalog/format.ts'
import type { AnswerOf, ItemOf } from '../api.ts'
import type { AttemptBuckets } from '../catalog/model-parts.tsx'
import { Segments, Status } from '../components.tsx'
import { type Query, useAddressQuery, useApi } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { emptyState, QueryView, Section, type SectionProps } from './components.tsx'
import { Moment, useViewer } from './context.tsx'
import { dayMs } from './figures.ts'

export const historyHint =
  'Status is learned from real requests. Each bar is a part of the period (an hour, six hours, a day in UTC): the red part of its attempts failed, gray means no traffic.'

type History = AnswerOf<'getProviderHistory'>
type Incident = History['incidents'][number]

/** The number of buckets in each. */
const periods = [
  { value: '24h', label: '24 hours', count: 24 },
  { value: '7d', label: '7 days', count: 28 },
  { value: '30d', label: '30 days', count: 30 },
] as const
type Period = (typeof periods)[number]

export interface ShownHistory extends Query<History> {
  readonly period: Period
  choose(period: Period['value']): void
}

/** Operators only: it counts the requests of all workspaces. */
export function useHistory(): ShownHistory {
  const { isOperator } = useViewer()
  const [{ period: asked }, change] = useAddressQuery(['period'])
  const period = periods.find(({ value }) => value === asked) ?? periods[0]
  const call = isOperator ? { query: { period: period.value } } : undefined
  const query = useApi('getProviderHistory', call, { keepPrevious: true })
  return { ...query, period, choose: (next) => change({ period: next === '24h' ? '' : next }) }
}

export function PeriodChoice({ history: { period, choose } }: { readonly history: ShownHistory }) {
  return <Segments name="Period" value={period.value} options={periods} onChange={choose} />
}

/** Of one route, or of all routes of the provider. */
export function sumBuckets({ value, period }: ShownHistory, provider: string, model?: string): AttemptBuckets {
  const empty: AttemptBuckets = Array.from({ length: period.count }, () => null)
  const routes = (value?.routes ?? []).filter(
    (route) => route.provider === provider && (model === undefined || route.upstream_model === model),
  )
  return routes.reduce(
    (sum, { buckets }) =>
      buckets.map((bucket, at) => {
        const before = sum[at] ?? null
        return bucket && before ? [before[0] + bucket[0], before[1] + bucket[1]] : (bucket ?? before)
      }),
    empty,
  )
}

interface IncidentsProps extends Pick<SectionProps, 'action'> {
  readonly history: ShownHistory
  /** Only those of one. */
  readonly provider?: string
}

export function Incidents({ history, provider, action }: IncidentsProps) {
  const columns = provider === undefined ? incidentColumns : incidentColumns.slice(1)
  return (
    <Section title="Incidents" note={`last ${history.period.label}`} action={action ?? false}>
      <QueryView what="incidents" query={history}>
        {({ incidents }) => (
          <DataTable
            caption="Incidents, newest first"
            columns={columns}
            rows={incidents.filter((each) => provider === undefined || each.provider === provider)}
            keyOf={(each) => `${each.provider} ${each.started_at}`}
            empty={emptyState('No incidents', 'At no time did half of the attempts at a route fail.')}
          />
        )}
      </QueryView>
    </Section>
  )
}

const incidentColumns: readonly Column<Incident>[] = [
  { label: 'Provider', show: ({ provider }) => <span class="row-name">{provider}</span> },
  {
    label: 'Started',
    isWhole: true,
    show: ({ started_at }) => <Moment at={started_at} />,
    note: ({ started_at, ended_at }) =>
      ended_at !== null && ended_at.slice(0, 19) !== started_at.slice(0, 19) && <>until {<Moment at={ended_at} />}</>,
  },
  {
    label: 'State',
    show: ({ ended_at }) =>
      ended_at === null ? <Status level="error" text="ongoing" /> : <Status level="off" text="over" />,
  },
  {
    label: 'Cause',
    show: ({ causes }) =>
      causes.map(({ outcome, attempts }) => `${causeName(outcome)} (${exactCount(attempts)})`).join(', '),
    note: ({ upstream_models: models }) => <span class="wrap">{models.join(', ')}</span>,
  },
  { label: 'Effect on requests', show: effectOf },
]

function effectOf({ requests_rescued: rescued, requests_failed: failed }: Incident): string {
  const saved = `${countOf(rescued, 'request')} answered by another attempt`
  if (failed === 0) return saved
  return rescued === 0 ? `${countOf(failed, 'request')} failed` : `${saved}, ${exactCount(failed)} failed`
}

export interface RouteRow {
  readonly entry: CatalogEntry
  readonly route: CatalogRoute
}

export interface ProviderRoutes {
  readonly provider: string
  readonly rows: readonly RouteRow[]
}

export function routesByProvider(entries: readonly CatalogEntry[]): readonly ProviderRoutes[] {
  const rows = entries.flatMap((entry) => entry.routes.map((route) => ({ entry, route })))
  return [...Map.groupBy(rows, ({ route }) => route.provider)].map(([provider, group]) => ({ provider, rows: group }))
}

export function statusOf(rows: readonly RouteRow[], isLoaded: boolean): ShownStatus {
  return isLoaded ? providerStatus(rows.map(({ route }) => route)) : { level: 'off', text: 'loading …', detail: '' }
}

export function unavailable(rows: readonly RouteRow[]): number {
  return rows.filter(({ route }) => routeStatus(route).level === 'error').length
}

/** What requests that each provider answered were charged in the last seven days, by its id. Operators only. */
export function useCharged(): (provider: string) => string | null {
  const { isOperator } = useViewer()
  const [from, setFrom] = useState<string | undefined>(undefined)
  useEffect(() => setFrom(isoTime(systemClock.now() - 7 * dayMs)), [])
  const call = from === undefined || !isOperator ? undefined : { query: { from, group_by: 'provider' } }
  const { value } = useApi('getUsage', call)
  return (provider) => {
    if (!value) return null
    const group = value.groups.find(({ values }) => values[0] === provider)
    return group?.cost ?? (value.groups_left_off === 0 ? '0' : null)
  }
}

export type Provider = ItemOf<'listProviders'>

const origins: Readonly<Record<Provider['origin'], string>> = {
  built_in: 'built in',
  environment: 'environment',
  file: 'file',
  found: 'found on this machine',
}

export function ProviderKey({ provider: { last4 } }: { readonly provider: Provider }) {
  return last4 === null ? <span class="muted">none needed</span> : <code class="nowrap">…{last4}</code>
}

export function ProviderSource({ provider: { origin, source } }: { readonly provider: Provider }) {
  return (
    <>
      {origins[origin]} {origin !== 'built_in' && <code>{source}</code>}
    </>
  )
}

export const disabledStatus = { level: 'off', text: 'disabled', detail: '' } as const

export interface ViewerColumn<Row> extends Column<Row> {
  readonly isOperators?: true
}
