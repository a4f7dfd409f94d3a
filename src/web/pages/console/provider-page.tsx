/** @jsxImportSource preact */
// One provider: its state and where it comes from, testing and replacing its key, disabling it, its incidents, its routes, and
// what they charge and cost.

import { useState } from 'preact/hooks'
import { routeStatus } from '../../../api/route-state.ts'
import { modelPath } from '../../catalog/entry.ts'
import { exactCount, percentText, shortMs } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { type AnswerOf, callApi } from '../api.ts'
import { AttemptBars, type AttemptBuckets, Measured } from '../catalog/model-parts.tsx'
import { Amount, CopyButton, Facts, LiveStatus, Skeleton, Status } from '../components.tsx'
import { Field } from '../form.tsx'
import { type Submit, useApi, useSubmit } from '../hooks.ts'
import { useLiveCatalog } from '../live-catalog.ts'
import { amountColumn, type Column } from '../table.tsx'
import {
  type Action,
  Actions,
  actionsColumn,
  DetailHead,
  emptyState,
  hasWords,
  LongTable,
  QueryView,
  Section,
} from './components.tsx'
import { type ConfigFileState, useConfigFile } from './config-file.tsx'
import { useViewer, useWorkspaces } from './context.tsx'
import { navigate, useConsolePath } from './navigation.ts'
import { Dialog, FormDialog, useOverlay } from './overlay.tsx'
import { OwnKeys, TestOutcome, type TestResult } from './own-keys.tsx'
import {
  disabledStatus,
  historyHint,
  Incidents,
  PeriodChoice,
  type Provider,
  ProviderKey,
  ProviderSource,
  type RouteRow,
  routesByProvider,
  statusOf,
  sumBuckets,
  useCharged,
  useHistory,
  type ViewerColumn,
} from './provider-history.tsx'
import { TierPriceDialog } from './tier-price.tsx'
import { modelYaml } from './workspace-data.ts'

/** So that the page of a provider with a thousand models opens at once. */
const routesListed = 20

export function ProviderView({ subject: id }: ConsoleData) {
  const { isOperator } = useViewer()
  const to = useConsolePath()
  const { entries, live } = useLiveCatalog({ initial: [], state: '', select: (all) => all })
  const history = useHistory()
  const charged = useCharged()
  const listed = useApi('listProviders', isOperator ? {} : undefined)
  const file = useConfigFile(listed.reload)
  const test = useKeyTest(id)
  const [model, setModel] = useState('')
  const { current } = useWorkspaces()
  const provider = listed.value?.data.find((each) => each.id === id)
  const isDisabled = file.entries?.disabled_providers.includes(id) ?? false
  const all = routesByProvider(entries).find((each) => each.provider === id)?.rows ?? []
  const isInside = all.some(({ route }) => route.rehearsal)
  const actions = useProviderActions({
    id,
    provider,
    file,
    isDisabled,
    test,
    onRemoved: () => navigate(to('providers')),
  })
  return (
    <>
      <DetailHead
        trail={[['Providers & routes', to('providers')]]}
        title={id}
        action={
          isOperator ? (
            <span class="row">
              <Actions actions={actions} />
            </span>
          ) : (
            <LiveStatus state={live} />
          )
        }
      >
        <TestOutcome {...test} />
      </DetailHead>
      <Facts
        facts={[
          ['Status', <Status key="status" {...(isDisabled ? disabledStatus : statusOf(all, entries.length > 0))} />],
          ...(provider
            ? ([
                ['Key', <ProviderKey key="key" provider={provider} />],
                ['Source', <ProviderSource key="source" provider={provider} />],
                ['Address', provider.address ?? 'inside the gateway'],
                ['Models', exactCount(provider.models)],
              ] as const)
            : []),
          ...(isOperator ? [['Charged, 7 days', <Amount key="charged" usd={charged(id)} />] as const] : []),
          ...(isOperator ? [['Attempts', <AttemptBars key="bars" buckets={sumBuckets(history, id)} />] as const] : []),
        ]}
      />
      {isOperator && <Incidents history={history} provider={id} action={<PeriodChoice history={history} />} />}
      {all.length > routesListed && (
        <div class="controls">
          <Field
            label="Find a model"
            value={model}
            attributes={{ type: 'search', placeholder: 'Name or id' }}
            onChange={setModel}
          />
        </div>
      )}
      <Routes
        id={id}
        rows={all.filter(({ entry, route }) => hasWords(`${entry.id} ${entry.name} ${route.upstream_model}`, model))}
        isLoaded={entries.length > 0}
        history={history}
      />
      {provider && <Prices id={id} model={model} file={file} />}
      {current && !isInside && <OwnKeys key={current.id} workspaceId={current.id} provider={id} />}
    </>
  )
}

interface KeyTestState extends Pick<Submit, 'isBusy' | 'error'> {
  readonly result: TestResult | undefined
  start(): void
}

function useKeyTest(provider: string): KeyTestState {
  const [result, setResult] = useState<TestResult | undefined>(undefined)
  const { isBusy, error, run } = useSubmit()
  const start = () => run(() => callApi('testProvider', { provider, body: {} }), setResult)
  return { isBusy, error, result, start }
}

interface ActionsInput {
  readonly id: string
  readonly provider: Provider | undefined
  readonly file: ConfigFileState
  readonly isDisabled: boolean
  readonly test: KeyTestState
  onRemoved(): void
}

/** What an operator may do with a provider. */
function useProviderActions({ id, provider, file, isDisabled, test, onRemoved }: ActionsInput): readonly Action[] {
  const { open } = useOverlay()
  const entry = file.entries?.providers.find((each) => each.id === id)
  const rotate = () => open(<RotateDialog {...{ id, provider, entry, file }} onDone={test.start} />)
  const [word, look] = isDisabled ? (['Enable', undefined] as const) : (['Disable', 'danger'] as const)
  const remove = () => file.removeProvider(id, onRemoved)
  return [
    ...(provider
      ? [{ label: test.isBusy ? 'Testing …' : 'Test', name: `Test the key for ${id}`, run: test.start }]
      : []),
    ...(provider && provider.last4 !== null
      ? [{ label: 'Rotate key', name: `Rotate key for ${id}`, run: rotate }]
      : []),
    ...(file.isWritable && entry ? [{ label: 'Edit', name: `Edit ${id}`, run: () => file.editProvider(entry) }] : []),
    ...(file.isWritable
      ? [{ label: word, name: `${word} ${id}`, ...(look && { look }), run: () => file.setDisabled(id, !isDisabled) }]
      : []),
    ...(file.isWritable && entry
      ? [{ label: 'Remove', name: `Remove ${id}`, look: 'danger' as const, run: remove }]
      : []),
  ]
}

interface RotateProps extends Pick<ActionsInput, 'id' | 'provider' | 'file'> {
  readonly entry: Readonly<Record<string, unknown>> | undefined
  onDone(): void
}

/** A key of the file is replaced here; one from the environment where the gateway is started. */
function RotateDialog({ id, provider, entry, file, onDone }: RotateProps) {
  const title = `Rotate the key for ${id}`
  if (!entry || !file.isWritable) {
    const place = entry ? <code>{file.entries?.path}</code> : <code>{provider?.source}</code>
    return (
      <Dialog title={title}>
        <div class="form">
          <p>
            The gateway reads this key from {place}, which it cannot change. Create a new key at the provider, put it
            there, and restart the gateway. Test it here, and delete the old key at the provider once the test passes.
          </p>
        </div>
      </Dialog>
    )
  }
  const reference = String(entry.api_key)
  const isVariable = reference.startsWith('${')
  return (
    <FormDialog
      title={title}
      label="Rotate key"
      intro={`Create a new key at the provider and enter it here. It is used from the next request on and tested at once. Delete the old key at the provider once the test passes.${isVariable ? ` The entry then no longer reads ${reference}.` : ''}`}
      rows={[
        {
          name: 'api_key',
          label: 'New API key',
          kind: 'password',
          hint: 'Stored in a private file of the data folder. It can be replaced, but never read back.',
          isRequired: true,
        },
      ]}
      send={({ api_key }) => file.putProvider(id, { ...entry, api_key })}
      onDone={onDone}
    />
  )
}

interface RoutesProps {
  readonly id: string
  readonly rows: readonly RouteRow[]
  readonly isLoaded: boolean
  readonly history: ReturnType<typeof useHistory>
}

function Routes({ id, rows, isLoaded, history }: RoutesProps) {
  const { isOperator } = useViewer()
  const routes = new Map(
    (history.value?.routes ?? []).filter(({ provider }) => provider === id).map((each) => [each.upstream_model, each]),
  )
  const withHistory = rows.map((row): RouteHistoryRow => {
    const { upstream_model: model } = row.route
    const none: AttemptBuckets = Array.from({ length: history.period.count }, () => null)
    const route = routes.get(model)
    return { ...row, buckets: route?.buckets ?? none, firstEventMs: route?.first_event_ms ?? null }
  })
  return (
    <Section title="Routes">
      {!isLoaded && <Skeleton what="routes" rows={8} />}
      {isLoaded && (
        <LongTable
          what="routes"
          listed={routesListed}
          caption={`Routes at ${id}`}
          columns={routeColumns.filter((column) => isOperator || !column.isOperators)}
          rows={withHistory}
          keyOf={({ entry, route }) => `${entry.id} ${route.upstream_model}`}
          empty={emptyState('No routes', 'No model of this gateway has a route to this provider.')}
        />
      )}
      <p class="hint">{historyHint} The sandbox fails only on purpose and is not timed.</p>
    </Section>
  )
}

interface RouteHistoryRow extends RouteRow {
  readonly buckets: AttemptBuckets
  readonly firstEventMs: number | null
}

const routeColumns: readonly ViewerColumn<RouteHistoryRow>[] = [
  {
    label: 'Model',
    show: ({ entry: { id } }) => (
      <a class="row-name" href={modelPath(id)}>
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
    show: ({ route: { priority } }) => <span class="nowrap">priority {priority}</span>,
    note: ({ route: { weight, factor } }) =>
      `weight ${weight}${factor < 1 ? `, currently ${percentText(factor)} of it` : ''}`,
  },
  {
    label: 'Source',
    isWhole: true,
    show: ({ entry }) => entry.source,
    note: ({ entry }) => <CopyButton text={modelYaml(entry)} what={`YAML of ${entry.id}`} label="YAML" />,
  },
]

type PricedRoute = AnswerOf<'getProvider'>['routes'][number]

interface PricesProps {
  readonly id: string
  /** What is searched for. */
  readonly model: string
  readonly file: ConfigFileState
}

/** What callers pay for its models, and what it charges the operator. */
function Prices({ id, model, file }: PricesProps) {
  const query = useApi('getProvider', { provider: id }, { keepPrevious: true })
  const { open } = useOverlay()
  const setPrice = actionsColumn<PricedRoute>(({ model: each }) => {
    const entry = file.entries?.models.find((declared) => declared.id === each)
    if (entry?.price === undefined) {
      return [
        { label: 'Set price', name: `Set price of ${each}`, run: () => file.setPrice(each, query.reload) },
        {
          label: 'Change a tier’s price',
          name: `Change a tier’s price of ${each}`,
          run: () => open(<TierPriceDialog model={each} onDone={query.reload} />),
        },
      ]
    }
    if (!file.isWritable) return []
    return [{ label: 'Edit', name: `Edit ${each}`, run: () => file.editModel(entry, query.reload) }]
  })
  return (
    <Section title="Prices" note="USD per million tokens">
      <QueryView what="prices" query={query}>
        {({ routes }) => (
          <LongTable
            what="prices"
            listed={routesListed}
            caption={`Prices and costs of the routes at ${id}`}
            columns={[...priceColumns, setPrice]}
            rows={routes.filter((route) => hasWords(`${route.model} ${route.upstream_model}`, model))}
            keyOf={(route) => `${route.model} ${route.upstream_model}`}
            empty={emptyState('No routes', 'No model of this gateway has a route to this provider.')}
          />
        )}
      </QueryView>
      <p class="hint">The price is what callers pay by the catalog, the cost what this provider charges.</p>
    </Section>
  )
}

type Price = PricedRoute['price']

const rateOf = (price: Price, kind: 'input' | 'output') => (price === null || price === 'free' ? price : price[kind])

const priceColumns: readonly Column<PricedRoute>[] = [
  {
    label: 'Model',
    show: ({ model }) => (
      <a class="row-name" href={modelPath(model)}>
        {model}
      </a>
    ),
  },
  amountColumn('Price in', ({ price }) => rateOf(price, 'input'), { isExact: true }),
  amountColumn('Price out', ({ price }) => rateOf(price, 'output'), { isExact: true }),
  amountColumn('Cost in', ({ cost }) => rateOf(cost, 'input'), { isExact: true }),
  amountColumn('Cost out', ({ cost }) => rateOf(cost, 'output'), { isExact: true }),
]
