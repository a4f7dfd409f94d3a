/** @jsxImportSource preact */
// One model: its facts, price, routes, code that calls it, and price history.

import type { ComponentChildren } from 'preact'
import { modelStatus, routeStatus } from '../../../api/route-state.ts'
import type { WholeBucket } from '../../../kernel/usage.ts'
import {
  type CatalogEntry,
  creatorOf,
  type DatedPrice,
  isEmbedder,
  type RouteCost,
  type RouteDay,
  type RouteMonth,
} from '../../catalog/entry.ts'
import { inputOf } from '../../catalog/facets.ts'
import { countOf, exactCount, tierTexts } from '../../catalog/format.ts'
import { type OrderedRoute, orderRoutes } from '../../catalog/status.ts'
import type { ModelData } from '../../page-data.ts'
import { readJson } from '../api.ts'
import { CodeChoice } from '../code-choice.tsx'
import { CopyButton, Facts, LiveStatus, Percent, Status } from '../components.tsx'
import { useQuery } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { type Subject, useLiveCatalog, usePriceHistory } from '../live-catalog.ts'
import { type Column, DataTable } from '../table.tsx'
import { AccessFilter } from './access-filter.tsx'
import { AttemptBars, Badges, Capabilities, Measured } from './model-parts.tsx'
import { Calculator, PriceCard } from './price-card.tsx'

export function ModelPage({ entry: initial, state, sample, snippets, days, today, viewer, ...data }: ModelData) {
  const select = (all: readonly CatalogEntry[]) => all.filter(({ id }) => id === initial.id)
  const catalog = useLiveCatalog({ initial: data.isOutside ? [] : [initial], state, viewer, select })
  const { entries, live, subject } = catalog
  // The page of a removed model stays readable.
  const entry = entries[0] ?? initial
  const history = usePriceHistory(entry, data.history, subject)
  const creator = creatorOf(entry)
  return (
    <article class="model-page stack">
      <p class="breadcrumbs">
        <a href="/">Models</a> / <a href={`/?creator=${encodeURIComponent(creator)}`}>{creator}</a>
      </p>
      <header class="model-head stack tight">
        <h1>{entry.name}</h1>
        <p class="id">
          <code>{entry.id}</code>
          <CopyButton text={entry.id} what="id" label="Copy id" />
        </p>
        {entry.description !== undefined && <p class="lede">{entry.description}</p>}
        <p class="row">
          <Status {...modelStatus(entry)} />
          <Badges entry={entry} today={today} />
          <LiveStatus state={live} />
        </p>
        {viewer.mayCall && (
          <p class="row no-print">
            {!isEmbedder(entry) && (
              <a class="button" href={`/console/playground?model=${encodeURIComponent(entry.id)}`}>
                <Icon name="play" size={14} />
                Try in playground
              </a>
            )}
            <a class="button quiet" href="/console/keys">
              <Icon name="key" size={14} />
              Create key
            </a>
          </p>
        )}
        <AccessFilter catalog={catalog} viewer={viewer} />
        {entries.length === 0 && (
          <p class="warning" role="alert">
            {missingText(subject)}
          </p>
        )}
        <Facts facts={factsOf(entry)} />
      </header>
      <Part title="Pricing">
        <div class="price-columns">
          <PriceCard entry={entry} current={history.find(({ version }) => version === entry.price_version)} />
          <Calculator entry={entry} sample={sample} />
        </div>
      </Part>
      <Part title="Routes, in the order they are tried now">
        <RouteTable entry={entry} days={days} costs={data.costs} />
      </Part>
      <Part title="Use this model">
        <CodeChoice snippets={snippets} />
      </Part>
      <Part title="Price history">
        <PriceHistory history={history} />
      </Part>
    </article>
  )
}

function missingText(subject: Subject): string {
  if (subject.kind === 'public') return 'This model was just removed from the catalog.'
  const who = subject.kind === 'key' ? 'This key' : `Project ${subject.project.name}`
  return `${who} cannot call this model, so the prices below are not its own.`
}

function Part({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="stack" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

function factsOf(entry: CatalogEntry) {
  const { context_tokens, max_output_tokens, owned_by, released, retires, tags, knowledge, fallbacks } = entry
  const tokens = (count: number | null) => (count === null ? 'unknown' : `${exactCount(count)} tokens`)
  return [
    ['Context', tokens(context_tokens)],
    ...(isEmbedder(entry) ? [] : [['Max output', tokens(max_output_tokens)] as const]),
    ['Input', inputOf(entry).map(kindName).join(', ')],
    ['Output', isEmbedder(entry) ? 'Vectors' : 'Text'],
    ['Knowledge cutoff', knowledge ?? 'unknown'],
    ['Creator', owned_by],
    ['Released', released ?? 'unknown'],
    ...(retires === undefined ? [] : [['Retires', retires] as const]),
    ...(fallbacks === undefined ? [] : [['Fallbacks', fallbacks.join(', ')] as const]),
    ['APIs', isEmbedder(entry) ? 'Embeddings' : 'Chat Completions, Messages, Responses, Gemini'],
    ['Capabilities', <Capabilities key="capabilities" tags={tags} />],
  ] as const
}

const kindName = (kind: string) => (kind === 'pdf' ? 'PDF' : kind.charAt(0).toUpperCase() + kind.slice(1))

interface RouteRow extends OrderedRoute {
  readonly day: RouteDay | undefined
  /** undefined = not loaded yet. */
  readonly month: RouteMonth | 'none' | undefined
  readonly cost: RouteCost | undefined
}

/** Without attempts. */
const noHours = Array.from({ length: 24 }, () => null)

const routeColumns: readonly Column<RouteRow>[] = [
  {
    label: 'Provider',
    show: ({ route }) => route.provider,
    note: ({ route }) => <code>{route.upstream_model}</code>,
  },
  { label: 'Order', show: ({ place }) => place ?? 'skip' },
  { label: 'Status', show: ({ route }) => <Status {...routeStatus(route)} /> },
  { label: 'Last 24 hours', show: ({ day }) => <AttemptBars buckets={day?.hours ?? noHours} /> },
  { label: 'Uptime (30 days)', isNumber: true, show: ({ month }) => <Uptime month={month} /> },
  {
    label: 'Latency (p50)',
    isNumber: true,
    show: ({ route }) => <Measured figures={route.first_event_ms} unit="time" isSandbox={route.rehearsal} />,
  },
  {
    label: 'Throughput',
    isNumber: true,
    show: ({ route }) => <Measured figures={route.tokens_per_second} unit="tokens" isSandbox={route.rehearsal} />,
  },
  { label: 'Reason', show: ({ why }) => why },
]

const costColumn: Column<RouteRow> = {
  label: 'You pay (in / out)',
  isNumber: true,
  show: ({ cost }) =>
    cost?.cost == null ? 'unknown' : cost.cost === 'free' ? 'free' : `$${cost.cost.input} / $${cost.cost.output}`,
}

/** The share of attempts that did not fail. */
function Uptime({ month }: Pick<RouteRow, 'month'>) {
  if (month === undefined) return <span class="muted">…</span>
  const total = month === 'none' ? 0 : month.ok + month.failed
  if (month === 'none' || total === 0) return <span class="muted">no traffic</span>
  return (
    <span class="measured">
      <Percent share={month.ok / total} />
      <small>{countOf(total, 'attempt')}</small>
    </span>
  )
}

interface RouteTableProps {
  readonly entry: CatalogEntry
  readonly days: readonly RouteDay[]
  readonly costs: readonly RouteCost[] | undefined
}

function RouteTable({ entry, days, costs }: RouteTableProps) {
  const path = `/catalog/uptime?model=${encodeURIComponent(entry.id)}`
  const { value: months } = useQuery(path, () => readJson<{ readonly routes: readonly RouteMonth[] }>(path))
  const rows = orderRoutes(entry.routes).map((ordered): RouteRow => {
    const { provider, upstream_model: model } = ordered.route
    const isOfRoute = (each: { readonly provider: string; readonly upstream_model: string }) =>
      each.provider === provider && each.upstream_model === model
    return {
      ...ordered,
      day: days.find(isOfRoute),
      month: months && (months.routes.find(isOfRoute) ?? 'none'),
      cost: costs?.find(isOfRoute),
    }
  })
  return (
    <>
      <DataTable
        caption="Routes"
        columns={costs ? [...routeColumns.slice(0, -1), costColumn, ...routeColumns.slice(-1)] : routeColumns}
        rows={rows}
        keyOf={({ route }) => `${route.provider} ${route.upstream_model}`}
        isDim={({ place }) => place === undefined}
        empty={<p class="empty">No provider that serves this model is enabled.</p>}
      />
      <p class="hint">
        A failed attempt automatically moves on to the next route. Each bar is an hour of attempts at the route: its red
        part failed, and a gray bar means no traffic. Uptime is the share of attempts that did not fail. Latency is the
        time to the first token; figures are medians of this gateway’s traffic in the last hour. The sandbox is not
        measured.
      </p>
    </>
  )
}

const amountColumn = (label: string, kind: WholeBucket): Column<DatedPrice> => ({
  label,
  isNumber: true,
  show: ({ price }) => (price === null ? 'none' : price === 'free' ? 'free' : `$${price[kind]}`),
})

const historyColumns: readonly Column<DatedPrice>[] = [
  { label: 'Since', show: ({ effective_from: at }) => <time dateTime={at}>{utcText(at)}</time> },
  amountColumn('Input', 'input'),
  amountColumn('Cached input', 'cache_read'),
  amountColumn('Output', 'output'),
  { label: 'Other prices', show: otherPrices },
  { label: 'Set by', show: ({ source }) => source },
  { label: 'Version', show: ({ version }) => <code>{version}</code> },
]

function otherPrices({ price }: DatedPrice): string {
  if (price === null || price === 'free') return '–'
  const long = Object.keys(price.over ?? {}).map((tokens) => `over ${exactCount(Number(tokens))} input tokens`)
  const audio = price.audio_input === undefined ? [] : [`audio $${price.audio_input}`]
  return [...long, ...audio, tierTexts(price)].filter(Boolean).join(', ') || '–'
}

function PriceHistory({ history }: { readonly history: readonly DatedPrice[] }) {
  return (
    <>
      <DataTable
        caption="Prices in US dollars per million tokens, newest first"
        columns={historyColumns}
        rows={history}
        keyOf={({ version }) => version}
        empty={<p class="empty">No price yet.</p>}
      />
      <p class="hint">
        A price applies until the next one. Running requests keep the price they started with. The oldest one counts
        from when this gateway first saw it.
      </p>
    </>
  )
}

/** In UTC, so that server and browser render the same. */
function utcText(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`
}
