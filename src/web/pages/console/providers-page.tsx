/** @jsxImportSource preact */
// The list of providers with their status, history and incidents, a workspace's own provider keys, and what the configuration
// file declares. What can be done to a provider is on its page.

import type { ShownStatus } from '../../../api/route-state.ts'
import { exactCount } from '../../catalog/format.ts'
import { AttemptBars, type AttemptBuckets } from '../catalog/model-parts.tsx'
import { LiveStatus, Skeleton, Status } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { useLiveCatalog } from '../live-catalog.ts'
import { amountColumn } from '../table.tsx'
import { Actions, LongTable, Section } from './components.tsx'
import { ConfigFileSections, useConfigFile } from './config-file.tsx'
import { useViewer, WorkspaceContent } from './context.tsx'
import { useConsolePath } from './navigation.ts'
import { OwnKeys } from './own-keys.tsx'
import {
  disabledStatus,
  historyHint,
  Incidents,
  PeriodChoice,
  type Provider,
  ProviderKey,
  type RouteRow,
  routesByProvider,
  statusOf,
  sumBuckets,
  unavailable,
  useCharged,
  useHistory,
  type ViewerColumn,
} from './provider-history.tsx'

export function ProvidersView() {
  const { isOperator } = useViewer()
  const to = useConsolePath()
  const catalog = useLiveCatalog({ initial: [], state: '', select: (all) => all })
  const history = useHistory()
  const charged = useCharged()
  const listed = useApi('listProviders', isOperator ? {} : undefined)
  const file = useConfigFile(listed.reload)
  const disabled = file.entries?.disabled_providers ?? []
  const routes = routesByProvider(catalog.entries)
  const ids = new Set([
    ...routes.map(({ provider }) => provider),
    ...(listed.value?.data ?? []).map(({ id }) => id),
    ...(file.entries?.providers ?? []).map(({ id }) => String(id)),
    ...disabled,
  ])
  const rows = [...ids].map((id): ProviderRow => {
    const found = routes.find(({ provider }) => provider === id)?.rows ?? []
    const isDisabled = disabled.includes(id)
    return {
      id,
      provider: listed.value?.data.find((each) => each.id === id),
      isDisabled,
      status: isDisabled ? disabledStatus : statusOf(found, catalog.entries.length > 0),
      out: unavailable(found),
      buckets: sumBuckets(history, id),
      charged: charged(id),
    }
  })
  // Providers with unavailable routes first, disabled ones last.
  rows.sort((a, b) => b.out - a.out || Number(a.isDisabled) - Number(b.isDisabled) || (a.id < b.id ? -1 : 1))
  // Operators' first answer has it, so nothing moves when the catalog arrives.
  const isSandboxOnly = listed.value
    ? listed.value.data.every(({ address }) => address === null)
    : catalog.entries.length > 0 && routes.every(({ rows: all }) => all.every(isSandboxRoute))
  const own = <WorkspaceContent>{(workspaceId) => <OwnKeys workspaceId={workspaceId} />}</WorkspaceContent>
  return (
    <>
      {!isOperator && own}
      <Section
        title="Providers"
        action={
          isOperator ? (
            <span class="row">
              <PeriodChoice history={history} />
              {file.isWritable && (
                <Actions
                  actions={[{ label: 'Add provider', name: 'Add provider', look: 'primary', run: file.addProvider }]}
                />
              )}
            </span>
          ) : (
            <LiveStatus state={catalog.live} />
          )
        }
      >
        {ids.size === 0 && <Skeleton what="providers" rows={6} />}
        {isSandboxOnly && (
          <p class="empty">
            Only the sandbox is enabled. {isOperator && 'Add a provider, or start '}
            {isOperator
              ? 'the gateway with a provider’s API key variable.'
              : 'Add your own provider key, or ask an operator.'}
          </p>
        )}
        {ids.size > 0 && (
          <LongTable
            what="providers"
            caption="Providers"
            columns={providerColumns.filter((column) => isOperator || !column.isOperators)}
            isDim={({ isDisabled }) => isDisabled}
            rows={rows}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => to(`providers/${id}`)}
          />
        )}
        <p class="hint">{historyHint}</p>
      </Section>
      {isOperator && <Incidents history={history} />}
      {isOperator && own}
      {isOperator && <ConfigFileSections file={file} />}
    </>
  )
}

const isSandboxRoute = ({ route }: RouteRow) => route.rehearsal

interface ProviderRow {
  readonly id: string
  /** undefined = not loaded, not enabled, or the viewer is no operator. */
  readonly provider: Provider | undefined
  readonly isDisabled: boolean
  readonly status: ShownStatus
  /** How many of its routes are unavailable. */
  readonly out: number
  readonly buckets: AttemptBuckets
  /** null = not known. */
  readonly charged: string | null
}

const providerColumns: readonly ViewerColumn<ProviderRow>[] = [
  {
    label: 'Provider',
    show: ({ id }) => <span class="row-name">{id}</span>,
    note: ({ provider }) => provider?.address,
  },
  { label: 'Status', show: ({ status }) => <Status {...status} /> },
  { label: 'Attempts', isOperators: true, show: ({ buckets }) => <AttemptBars buckets={buckets} /> },
  {
    label: 'Models',
    isNumber: true,
    isOperators: true,
    show: ({ provider }) => provider && exactCount(provider.models),
  },
  { ...amountColumn('Charged, 7d', ({ charged }: ProviderRow) => charged), isOperators: true },
  {
    label: 'Key',
    isOperators: true,
    show: ({ provider }) => provider && <ProviderKey provider={provider} />,
    note: ({ provider }) => provider && provider.origin !== 'built_in' && <code>{provider.source}</code>,
  },
]
