/** @jsxImportSource preact */
// Providers: a workspace's own provider keys, the providers of the gateway with their status, history and incidents, and a
// page for each with its routes.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { type CatalogEntry, type CatalogRoute, modelPath } from '../../catalog/entry.ts'
import { countOf, exactCount, shortMs } from '../../catalog/format.ts'
import { routeStatus, type ShownStatus } from '../../catalog/status.ts'
import type { ConsoleData } from '../../page-data.ts'
import { type AnswerOf, callApi, type ItemOf } from '../api.ts'
import { AttemptBars, type AttemptBuckets, Measured } from '../catalog/model-parts.tsx'
import { CopyButton, Facts, LiveStatus, Segments, Skeleton, Status } from '../components.tsx'
import { type Query, useAddressQuery, useApi } from '../hooks.ts'
import { useLiveCatalog } from '../live-catalog.ts'
import { type Column, DataTable } from '../table.tsx'
import { Amount, actionsColumn, DetailHead, emptyState, QueryView, Section } from './components.tsx'
import { ConfigFileSections } from './config-file.tsx'
import { Moment, useViewer, WorkspaceContent } from './context.tsx'
import { dayMs, type Stats, sumOf } from './figures.ts'
import { useConsolePath } from './navigation.ts'
import { useOverlay } from './overlay.tsx'
import { KeyTest, OwnKeys } from './own-keys.tsx'
import { modelYaml } from './workspace-data.ts'

export function ProvidersView() {
  const { isOperator } = useViewer()
  const to = useConsolePath()
  const { ask } = useOverlay()
  const catalog = useLiveCatalog([], '', (all) => all)
  const history = useHistory()
  const spent = useSpent()
  const listed = useApi('listProviders', isOperator ? {} : undefined)
  const file = useApi('getConfigFile', isOperator ? {} : undefined)
  const disabled = file.value?.disabled_providers ?? []
  const setDisabled = (id: string, isDisabled: boolean) =>
    ask({
      title: `${isDisabled ? 'Disable' : 'Enable'} ${id}?`,
      label: isDisabled ? 'Disable' : 'Enable',
      isDanger: isDisabled,
      intro: isDisabled
        ? 'From the next request on, the gateway does not call it, nor with workspaces’ own keys. Requests that are running finish.'
        : 'From the next request on, the gateway calls it again.',
      send: () => {
        const body = { disabled_providers: { [id]: isDisabled }, digest: file.value?.digest }
        return callApi('updateConfigFile', { body })
      },
      onDone: () => {
        file.reload()
        listed.reload()
      },
    })
  const routes = routesByProvider(catalog.entries)
  const ids = new Set([
    ...routes.map(({ provider }) => provider),
    ...(listed.value?.data ?? []).map(({ id }) => id),
    ...disabled,
  ])
  const rows = [...ids].map((id) => {
    const found = routes.find(({ provider }) => provider === id)?.rows ?? []
    const provider = listed.value?.data.find((each) => each.id === id)
    return {
      id,
      provider,
      isDisabled: disabled.includes(id),
      status: providerStatus(found, catalog.entries.length > 0),
      out: unavailable(found),
      buckets: sumBuckets(history, id),
      spent: spent && spentAt(id, routes, spent),
    }
  })
  // Providers with unavailable routes first.
  rows.sort((a, b) => b.out - a.out || (a.id < b.id ? -1 : 1))
  // Operators' first answer has it, so nothing moves when the catalog arrives.
  const isSandboxOnly = listed.value
    ? listed.value.data.every(({ address }) => address === null)
    : catalog.entries.length > 0 && routes.every(({ rows: all }) => all.every(isSandboxRoute))
  return (
    <>
      <WorkspaceContent>{(workspaceId) => <OwnKeys workspaceId={workspaceId} />}</WorkspaceContent>
      <Section
        title="Providers"
        action={isOperator ? <PeriodChoice history={history} /> : <LiveStatus state={catalog.live} />}
      >
        {ids.size === 0 && <Skeleton what="providers" rows={6} />}
        {isSandboxOnly && (
          <p class="empty">
            Only the sandbox is enabled. {isOperator && 'Add a provider below, or start '}
            {isOperator
              ? 'the gateway with a provider’s API key variable.'
              : 'Add your own provider key, or ask an operator.'}
          </p>
        )}
        {ids.size > 0 && (
          <DataTable
            caption="Providers"
            columns={[
              ...providerColumns.filter((column) => isOperator || !column.isOperators),
              ...(file.value?.read_only === null ? [switchColumn(setDisabled)] : []),
            ]}
            isDim={({ isDisabled }) => isDisabled}
            rows={rows}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => to(`providers/${id}`)}
          />
        )}
        <p class="hint">
          {historyHint} A test of a key sends an empty request, which generates nothing and costs nothing. Charges are
          known for providers whose models no other provider serves.
        </p>
      </Section>
      {isOperator && <Incidents history={history} />}
      {isOperator && <ConfigFileSections query={file} onChanged={listed.reload} />}
    </>
  )
}

const historyHint =
  'Status is learned from real requests. Each bar is a part of the period (an hour, six hours, a day in UTC): the red part of its attempts failed, gray means no traffic.'

const isSandboxRoute = ({ route }: RouteRow) => route.rehearsal

type History = AnswerOf<'getProviderHistory'>
type Incident = History['incidents'][number]

/** The number of buckets in each. */
const periods = [
  { value: '24h', label: '24 hours', count: 24 },
  { value: '7d', label: '7 days', count: 28 },
  { value: '30d', label: '30 days', count: 30 },
] as const
type Period = (typeof periods)[number]

interface ShownHistory extends Query<History> {
  readonly period: Period
  choose(period: Period['value']): void
}

/** Operators only: it counts the requests of all workspaces. */
function useHistory(): ShownHistory {
  const { isOperator } = useViewer()
  const [{ period: asked }, change] = useAddressQuery(['period'])
  const period = periods.find(({ value }) => value === asked) ?? periods[0]
  const call = isOperator ? { query: { period: period.value } } : undefined
  const query = useApi('getProviderHistory', call, { keepPrevious: true })
  return { ...query, period, choose: (next) => change({ period: next === '24h' ? '' : next }) }
}

function PeriodChoice({ history: { period, choose } }: { readonly history: ShownHistory }) {
  return <Segments name="Period" value={period.value} options={periods} onChange={choose} />
}

/** Of one route, or of all routes of the provider. */
function sumBuckets({ value, period }: ShownHistory, provider: string, model?: string): AttemptBuckets {
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

/** `provider`: only those of one. */
function Incidents({ history, provider }: { readonly history: ShownHistory; readonly provider?: string }) {
  const columns = provider === undefined ? incidentColumns : incidentColumns.slice(1)
  return (
    <Section title="Incidents" note={`last ${history.period.label}`}>
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

const causeNames: Readonly<Record<string, string>> = {
  throttled: 'rate limit',
  'refused our credential': 'API key refused',
  'does not know the model': 'unknown model',
  failing: 'server error',
  garbled: 'invalid response',
  broken: 'connection lost',
}

function causeName(outcome: string): string {
  const name = outcome.replace(/^interrupted: /, '')
  return `${causeNames[name] ?? name}${name === outcome ? '' : ' in mid-answer'}`
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

interface RouteRow {
  readonly entry: CatalogEntry
  readonly route: CatalogRoute
}

interface ProviderRoutes {
  readonly provider: string
  readonly rows: readonly RouteRow[]
}

function routesByProvider(entries: readonly CatalogEntry[]): readonly ProviderRoutes[] {
  const rows = entries.flatMap((entry) => entry.routes.map((route) => ({ entry, route })))
  return [...Map.groupBy(rows, ({ route }) => route.provider)].map(([provider, group]) => ({ provider, rows: group }))
}

function unavailable(rows: readonly RouteRow[]): number {
  return rows.filter(({ route }) => routeStatus(route).level === 'error').length
}

/** How many of its routes can be called. */
function providerStatus(rows: readonly RouteRow[], isLoaded: boolean): Pick<ShownStatus, 'level' | 'text'> {
  if (!isLoaded) return { level: 'off', text: 'loading …' }
  const count = countOf(rows.length, 'route')
  const out = unavailable(rows)
  if (rows.length === 0) return { level: 'off', text: 'no routes' }
  if (out > 0)
    return { level: out < rows.length ? 'warning' : 'error', text: `${rows.length - out} of ${count} available` }
  const isSeen = rows.some(({ route }) => routeStatus(route).level === 'ok')
  return { level: isSeen ? 'ok' : 'off', text: `${count}, ${rows.length === 1 ? 'available' : 'all available'}` }
}

/** One provider: where it comes from, its routes and its incidents. */
export function ProviderView({ subject: id }: ConsoleData) {
  const { isOperator } = useViewer()
  const to = useConsolePath()
  const { entries, live } = useLiveCatalog([], '', (all) => all)
  const history = useHistory()
  const provider = useApi('listProviders', isOperator ? {} : undefined).value?.data.find((each) => each.id === id)
  const found = routesByProvider(entries).find((each) => each.provider === id)?.rows ?? []
  const rows = found.map((row) => {
    const model = row.route.upstream_model
    const route = history.value?.routes.find((each) => each.provider === id && each.upstream_model === model)
    return { ...row, buckets: sumBuckets(history, id, model), firstEventMs: route?.first_event_ms ?? null }
  })
  return (
    <>
      <DetailHead
        trail={[['Providers & routes', to('providers')]]}
        title={id}
        action={isOperator ? <PeriodChoice history={history} /> : <LiveStatus state={live} />}
      />
      <Facts
        facts={[
          ['Status', <Status key="status" {...providerStatus(found, entries.length > 0)} />],
          ...(provider
            ? ([
                ['Key', <ProviderKey key="key" provider={provider} />],
                ['Source', <ProviderSource key="source" provider={provider} />],
                ['Address', provider.address ?? 'inside the gateway'],
              ] as const)
            : []),
          ...(isOperator ? [['Attempts', <AttemptBars key="bars" buckets={sumBuckets(history, id)} />] as const] : []),
        ]}
      />
      {isOperator && <Incidents history={history} provider={id} />}
      <Section title="Routes">
        {entries.length === 0 && <Skeleton what="routes" rows={8} />}
        {entries.length > 0 && (
          <DataTable
            caption={`Routes at ${id}`}
            columns={routeColumns.filter((column) => isOperator || !column.isOperators)}
            rows={rows}
            keyOf={({ entry, route }) => `${entry.id} ${route.upstream_model}`}
            empty={emptyState('No routes', 'No model of this gateway has a route to this provider.')}
          />
        )}
        <p class="hint">{historyHint} The sandbox fails only on purpose and is not timed.</p>
      </Section>
    </>
  )
}

interface RouteHistoryRow extends RouteRow {
  readonly buckets: AttemptBuckets
  readonly firstEventMs: number | null
}

interface ViewerColumn<Row> extends Column<Row> {
  readonly isOperators?: true
}

const routeColumns: readonly ViewerColumn<RouteHistoryRow>[] = [
  {
    label: 'Model',
    show: ({ entry: { id } }) => (
      <a class="wrap" href={modelPath(id)}>
        {id}
      </a>
    ),
    note: ({ entry, route: { upstream_model: model } }) => model !== entry.id && <>as {<code>{model}</code>}</>,
  },
  {
    label: 'Status',
    show: ({ route }) => <Status {...routeStatus(route)} />,
    note: ({ route }) => !route.rehearsal && routeStatus(route).detail,
  },
  {
    label: 'Attempts',
    isOperators: true,
    show: ({ buckets }) => <AttemptBars buckets={buckets} />,
    note: ({ firstEventMs }) => firstEventMs !== null && `first token ${shortMs(firstEventMs)} (avg)`,
  },
  {
    label: 'First token (p50)',
    isNumber: true,
    show: ({ route }) => <Measured figures={route.first_event_ms} unit="time" isSandbox={route.rehearsal} />,
  },
  {
    label: 'Throughput',
    isNumber: true,
    show: ({ route }) => <Measured figures={route.tokens_per_second} unit="tokens" isSandbox={route.rehearsal} />,
  },
  {
    label: 'Order',
    isWhole: true,
    show: ({ route: { priority } }) => `priority ${priority}`,
    note: ({ route: { weight, factor } }) =>
      `weight ${weight}${factor < 1 ? `, currently ${Math.round(factor * 100)} % of it` : ''}`,
  },
  {
    label: 'Source',
    isWhole: true,
    show: ({ entry }) => entry.source,
    note: ({ entry }) => <CopyButton text={modelYaml(entry)} what={`YAML of ${entry.id}`} label="YAML" />,
  },
]

type Provider = ItemOf<'listProviders'>

interface ProviderRow {
  readonly id: string
  readonly isDisabled: boolean
  readonly status: Pick<ShownStatus, 'level' | 'text'>
  /** undefined = not loaded, or the viewer is no operator. */
  readonly provider: Provider | undefined
  readonly buckets: AttemptBuckets
  /** undefined = not known, because other providers serve its models too. */
  readonly spent: string | undefined
}

/** Of the last seven days, for operators. */
function useSpent(): Stats | undefined {
  const { isOperator } = useViewer()
  const [from, setFrom] = useState<string | undefined>(undefined)
  useEffect(() => setFrom(isoTime(systemClock.now() - 7 * dayMs)), [])
  return useApi('getStats', from === undefined || !isOperator ? undefined : { query: { from } }).value
}

/** Known only if no other provider serves any of its models and no group was left off. */
function spentAt(id: string, providers: readonly ProviderRoutes[], stats: Stats): string | undefined {
  const entries = providers.find(({ provider }) => provider === id)?.rows.map(({ entry }) => entry) ?? []
  const isAlone = entries.every(({ routes }) => routes.every(({ provider }) => provider === id))
  if (entries.length === 0 || !isAlone || stats.groups_left_off > 0) return undefined
  const ids = new Set(entries.map((entry) => entry.id))
  return sumOf(stats.groups.filter((group) => ids.has(group.id)).map(({ cost }) => cost))
}

const origins: Readonly<Record<Provider['origin'], string>> = {
  built_in: 'built in',
  environment: 'environment',
  file: 'file',
  found: 'found on this machine',
}

function ProviderKey({ provider: { last4 } }: { readonly provider: Provider }) {
  return last4 === null ? <span class="muted">none needed</span> : <code>…{last4}</code>
}

function ProviderSource({ provider: { origin, source } }: { readonly provider: Provider }) {
  return (
    <>
      {origins[origin]} {origin !== 'built_in' && <code>{source}</code>}
    </>
  )
}

const disabledStatus = { level: 'off', text: 'disabled' } as const

const switchColumn = (setDisabled: (id: string, isDisabled: boolean) => void): Column<ProviderRow> =>
  actionsColumn(({ id, isDisabled }) => {
    const label = isDisabled ? 'Enable' : 'Disable'
    return [{ label, name: `${label} ${id}`, run: () => setDisabled(id, !isDisabled) }]
  })

const providerColumns: readonly ViewerColumn<ProviderRow>[] = [
  { label: 'Provider', isWhole: true, show: ({ id }) => id, note: ({ provider }) => provider?.address },
  { label: 'Status', show: ({ isDisabled, status }) => <Status {...(isDisabled ? disabledStatus : status)} /> },
  { label: 'Attempts', isOperators: true, show: ({ buckets }) => <AttemptBars buckets={buckets} /> },
  {
    label: 'Key',
    isOperators: true,
    isWhole: true,
    show: ({ provider }) => provider && <ProviderKey provider={provider} />,
    note: ({ provider }) => provider && provider.origin !== 'built_in' && <code>{provider.source}</code>,
  },
  {
    label: 'Charged, 7 days',
    isOperators: true,
    isNumber: true,
    show: ({ spent }) => (spent === undefined ? <span class="muted">unknown</span> : <Amount usd={spent} />),
  },
  {
    label: 'Test',
    isOperators: true,
    show: ({ id, provider }) =>
      provider && <KeyTest provider={id} test={() => callApi('testProvider', { provider: id, body: {} })} />,
  },
]
