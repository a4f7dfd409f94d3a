/** @jsxImportSource preact */
// Providers: a workspace's own provider keys, the providers that the operator enabled, and the current health of every
// route.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { type CatalogEntry, type CatalogRoute, modelPath } from '../../catalog/entry.ts'
import { countOf, exactCount } from '../../catalog/format.ts'
import { routeStatus } from '../../catalog/status.ts'
import { callApi, type ItemOf } from '../api.ts'
import { Measured } from '../catalog/model-parts.tsx'
import { CopyButton, LiveStatus, Skeleton, Status } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { useLiveCatalog } from '../live-catalog.ts'
import { type Column, DataTable } from '../table.tsx'
import { Amount, QueryView, Section } from './components.tsx'
import { ConfigFileSections } from './config-file.tsx'
import { useViewer, WorkspaceContent } from './context.tsx'
import { dayMs, type Stats, sumOf } from './figures.ts'
import { KeyTest, OwnKeys } from './own-keys.tsx'
import { modelYaml } from './workspace-data.ts'

export function ProvidersView() {
  const { isOperator } = useViewer()
  const [changes, setChanges] = useState(0)
  const { entries, live } = useLiveCatalog([], '', (all) => all)
  const providers = routesByProvider(entries)
  const isSandboxOnly = providers.every(({ rows }) => rows.every(({ route }) => route.rehearsal))
  return (
    <>
      <WorkspaceContent>{(workspaceId) => <OwnKeys workspaceId={workspaceId} />}</WorkspaceContent>
      {isOperator && <EnabledProviders key={changes} providers={providers} />}
      {isOperator && <ConfigFileSections onChanged={() => setChanges(changes + 1)} />}
      <div class="between">
        <h2>Routes</h2>
        <LiveStatus state={live} />
      </div>
      <p class="hint">
        A route’s status is learned from real requests; testing a key does not change it. The sandbox is not measured.
      </p>
      {entries.length === 0 && live !== 'live' && <Skeleton what="routes" />}
      {entries.length > 0 && isSandboxOnly && (
        <p class="empty">
          Only the sandbox is enabled. Start the gateway with a provider’s API key variable, or declare the provider in{' '}
          <code>tollgate.yaml</code>, which needs no restart. <code>npx tollgate providers</code> lists all providers
          and their variables.
        </p>
      )}
      {providers.map((each) => (
        <RoutesTable key={each.provider} {...each} />
      ))}
    </>
  )
}

interface RouteRow {
  readonly entry: CatalogEntry
  readonly route: CatalogRoute
}

interface ProviderRoutes {
  readonly provider: string
  readonly rows: readonly RouteRow[]
}

/** Providers with unavailable routes first, then by name. */
function routesByProvider(entries: readonly CatalogEntry[]): readonly ProviderRoutes[] {
  const rows = entries.flatMap((entry) => entry.routes.map((route) => ({ entry, route })))
  return [...Map.groupBy(rows, ({ route }) => route.provider)]
    .map(([provider, group]) => ({ provider, rows: group }))
    .sort((a, b) => unavailable(b.rows) - unavailable(a.rows) || (a.provider < b.provider ? -1 : 1))
}

function unavailable(rows: readonly RouteRow[]): number {
  return rows.filter(({ route }) => routeStatus(route).level === 'error').length
}

function RoutesTable({ provider, rows }: ProviderRoutes) {
  const available = rows.length - unavailable(rows)
  const count = countOf(rows.length, 'route')
  return (
    <section class="stack" aria-label={`Routes at ${provider}`}>
      <h3>
        {provider}{' '}
        <small>
          {available < rows.length
            ? `${available} of ${count} available`
            : `${count}, ${rows.length === 1 ? 'available' : 'all available'}`}
        </small>
      </h3>
      <DataTable
        caption={`Routes at ${provider}`}
        columns={routeColumns}
        rows={rows}
        keyOf={({ entry, route }) => `${entry.id} ${route.upstream_model}`}
      />
    </section>
  )
}

const routeColumns: readonly Column<RouteRow>[] = [
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
    note: ({ route }) => routeStatus(route).detail,
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
    show: ({ route: { priority } }) => `priority ${priority}`,
    note: ({ route: { weight, factor } }) =>
      `weight ${weight}${factor < 1 ? `, currently ${Math.round(factor * 100)} % of it` : ''}`,
  },
  {
    label: 'Source',
    show: ({ entry }) => entry.source,
    note: ({ entry }) => <CopyButton text={modelYaml(entry)} what={`YAML of ${entry.id}`} label="YAML" />,
  },
]

type Provider = ItemOf<'listProviders'>

interface ProviderRow extends Provider {
  /** undefined = not known, because other providers serve its models too. */
  readonly spent: string | undefined
}

function EnabledProviders({ providers }: { readonly providers: readonly ProviderRoutes[] }) {
  const query = useApi('listProviders', {})
  const [from, setFrom] = useState<string | undefined>(undefined)
  useEffect(() => setFrom(isoTime(systemClock.now() - 7 * dayMs)), [])
  const { value: stats } = useApi('getStats', from === undefined ? undefined : { query: { from } })
  return (
    <Section title="Enabled providers">
      <QueryView what="providers" query={query}>
        {({ data }) => (
          <DataTable
            caption="Enabled providers"
            columns={providerColumns}
            rows={data.map((item) => ({ ...item, spent: stats && spentAt(item.id, providers, stats) }))}
            keyOf={({ id }) => id}
          />
        )}
      </QueryView>
      <p class="hint">
        A test sends an empty request, which generates nothing and costs nothing. Charges are shown for providers whose
        models no other provider serves.
      </p>
    </Section>
  )
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

const providerColumns: readonly Column<ProviderRow>[] = [
  { label: 'Provider', show: ({ id }) => <span class="row-name">{id}</span> },
  {
    label: 'Key',
    show: ({ last4 }) => (last4 === null ? <span class="muted">none needed</span> : <code>…{last4}</code>),
  },
  {
    label: 'Source',
    show: ({ origin }) => origins[origin],
    note: ({ origin, source }) => origin !== 'built_in' && <code>{source}</code>,
  },
  { label: 'Address', show: ({ address }) => address ?? 'inside the gateway' },
  { label: 'Models', isNumber: true, show: ({ models }) => exactCount(models) },
  {
    label: 'Charged, 7 days',
    isNumber: true,
    show: ({ spent }) => (spent === undefined ? <span class="muted">unknown</span> : <Amount usd={spent} />),
  },
  {
    label: 'Test',
    show: ({ id }) => <KeyTest provider={id} test={() => callApi('testProvider', { provider: id, body: {} })} />,
  },
]
