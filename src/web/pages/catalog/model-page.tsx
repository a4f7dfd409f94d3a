/** @jsxImportSource preact */
// One model: its facts, price, routes, code that calls it, and price history.

import type { ComponentChildren } from 'preact'
import type { WholeBucket } from '../../../kernel/usage.ts'
import { type CatalogEntry, creatorOf, type DatedPrice, isEmbedder, type RouteDay } from '../../catalog/entry.ts'
import { exactCount } from '../../catalog/format.ts'
import type { Snippet } from '../../catalog/snippets.ts'
import { modelStatus, type OrderedRoute, orderRoutes, routeStatus } from '../../catalog/status.ts'
import type { ModelData } from '../../page-data.ts'
import { CodeBlock, CopyButton, Facts, LiveStatus, Status, Tabs } from '../components.tsx'
import { Icon } from '../icons.tsx'
import { useLiveCatalog, usePriceHistory } from '../live-catalog.ts'
import { type Column, DataTable } from '../table.tsx'
import { AttemptBars, Badges, Capabilities, Measured } from './model-parts.tsx'
import { Calculator, PriceCard } from './price-card.tsx'

export function ModelPage({ entry: initial, state, sample, snippets, days, today, ...data }: ModelData) {
  const select = (all: readonly CatalogEntry[]) => all.filter(({ id }) => id === initial.id)
  const { entries, live } = useLiveCatalog([initial], state, select)
  // The page of a removed model stays readable.
  const entry = entries[0] ?? initial
  const history = usePriceHistory(entry, data.history)
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
        <p class="row">
          <Status {...modelStatus(entry)} />
          <Badges entry={entry} today={today} />
          <LiveStatus state={live} />
        </p>
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
        {entries.length === 0 && (
          <p class="warning" role="alert">
            This model was just removed from the catalog.
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
        <RouteTable entry={entry} days={days} />
      </Part>
      <Part title="Use this model">
        <CodeTabs snippets={snippets} />
      </Part>
      <Part title="Price history">
        <PriceHistory history={history} />
      </Part>
    </article>
  )
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
  const { context_tokens, max_output_tokens, owned_by, released, retires, tags } = entry
  const tokens = (count: number | null) => (count === null ? 'unknown' : `${exactCount(count)} tokens`)
  return [
    ['Context', tokens(context_tokens)],
    ...(isEmbedder(entry) ? [] : [['Max output', tokens(max_output_tokens)] as const]),
    ['Creator', owned_by],
    ['Released', released ?? 'unknown'],
    ...(retires === undefined ? [] : [['Retires', retires] as const]),
    ['APIs', isEmbedder(entry) ? 'Embeddings' : 'Chat Completions, Messages, Responses, Gemini'],
    ['Capabilities', <Capabilities key="capabilities" tags={tags} />],
  ] as const
}

interface RouteRow extends OrderedRoute {
  readonly day: RouteDay | undefined
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

function RouteTable({ entry, days }: { readonly entry: CatalogEntry; readonly days: readonly RouteDay[] }) {
  const rows = orderRoutes(entry.routes).map((ordered) => {
    const { provider, upstream_model: model } = ordered.route
    return { ...ordered, day: days.find((day) => day.provider === provider && day.upstream_model === model) }
  })
  return (
    <>
      <DataTable
        caption="Routes"
        columns={routeColumns}
        rows={rows}
        keyOf={({ route }) => `${route.provider} ${route.upstream_model}`}
        isDim={({ place }) => place === undefined}
        empty={<p class="empty">No provider that serves this model is enabled.</p>}
      />
      <p class="hint">
        A failed attempt automatically moves on to the next route. Each bar is an hour of attempts at the route: its red
        part failed, and a gray bar means no traffic. Latency is the time to the first token; figures are medians of
        this gateway’s traffic in the last hour. The sandbox is not measured.
      </p>
    </>
  )
}

/** Code that calls the model, one tab per client. */
function CodeTabs({ snippets }: { readonly snippets: readonly Snippet[] }) {
  const tabs = snippets.map((snippet) => ({
    label: snippet.client,
    content: (
      <>
        {snippet.install !== '' && (
          <p class="id">
            <code>{snippet.install}</code>
            <CopyButton text={snippet.install} what="install command" />
          </p>
        )}
        <CodeBlock code={snippet.code} what={`code for ${snippet.client}`} />
        <p class="hint">
          Set <code>TOLLGATE_KEY</code> to your API key. <a href={`/docs/${snippet.docs.replace(/\.md$/, '')}`}>More</a>{' '}
          about this API.
        </p>
      </>
    ),
  }))
  return <Tabs name="Clients" tabs={tabs} />
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
  const tiers = Object.keys(price.over ?? {}).map((tokens) => `over ${exactCount(Number(tokens))} input tokens`)
  return [...tiers, ...(price.audio_input === undefined ? [] : [`audio $${price.audio_input}`])].join(', ') || '–'
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
