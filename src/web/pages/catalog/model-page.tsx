/** @jsxImportSource preact */
// One model: its facts, price, routes, code that calls it, and price history.

import { useState } from 'preact/hooks'
import type { CatalogEntry, CatalogRoute, DatedPrice } from '../../catalog/entry.ts'
import { exactCount } from '../../catalog/format.ts'
import { creatorOf } from '../../catalog/query.ts'
import type { Snippet } from '../../catalog/snippets.ts'
import { modelStatus, orderRoutes, routeStatus } from '../../catalog/status.ts'
import type { ModelData } from '../../page-data.ts'
import { CopyButton, LiveStatus, Status } from '../components.tsx'
import { useLiveCatalog, usePriceHistory } from '../live-catalog.ts'
import { Badges, Capabilities, Measured } from './model-parts.tsx'
import { Calculator, PriceCard } from './price-card.tsx'

export function ModelPage({ entry: initial, state, sample, snippets, history: initialHistory }: ModelData) {
  const select = (all: readonly CatalogEntry[]) => all.filter(({ id }) => id === initial.id)
  const { entries, live } = useLiveCatalog([initial], state, select)
  // The page of a removed model stays readable.
  const entry = entries[0] ?? initial
  const history = usePriceHistory(entry, initialHistory)
  const creator = creatorOf(entry)
  return (
    <article class="model-page">
      <p class="breadcrumbs">
        <a href="/">Models</a> / <a href={`/?creator=${encodeURIComponent(creator)}`}>{creator}</a>
      </p>
      <header class="model-head">
        <h1>{entry.name}</h1>
        <p class="id large">
          <code>{entry.id}</code>
          <CopyButton text={entry.id} what="id" label="Copy id" />
        </p>
        <p class="facts-line">
          <Status {...modelStatus(entry)} />
          <Badges entry={entry} />
          <LiveStatus state={live} />
        </p>
        {entries.length === 0 && (
          <p class="warning" role="alert">
            This model was just removed from the catalog.
          </p>
        )}
        <Facts entry={entry} />
      </header>
      <section aria-labelledby="pricing">
        <h2 id="pricing">Pricing</h2>
        <div class="price-columns">
          <PriceCard entry={entry} current={history.find(({ version }) => version === entry.price_version)} />
          <Calculator entry={entry} sample={sample} />
        </div>
      </section>
      <section aria-labelledby="routes">
        <h2 id="routes">Routes, in the order they are tried now</h2>
        <RouteTable routes={entry.routes} />
      </section>
      <section aria-labelledby="call">
        <h2 id="call">Use this model</h2>
        <CodeTabs snippets={snippets} />
      </section>
      <section aria-labelledby="history">
        <h2 id="history">Price history</h2>
        <PriceHistory history={history} />
      </section>
    </article>
  )
}

function Facts({ entry }: { readonly entry: CatalogEntry }) {
  const tokens = (count: number | null) => (count === null ? 'unknown' : `${exactCount(count)} tokens`)
  const facts = [
    ['Context', tokens(entry.context_tokens)],
    ['Max output', tokens(entry.max_output_tokens)],
    ['Creator', entry.owned_by],
    ['Released', entry.released ?? 'unknown'],
    ['Capabilities', <Capabilities key="capabilities" tags={entry.tags} />],
  ] as const
  return (
    <dl class="facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function RouteTable({ routes }: { readonly routes: readonly CatalogRoute[] }) {
  if (routes.length === 0) return <p class="empty">No provider that serves this model is enabled.</p>
  return (
    <>
      <table class="detail-table routes">
        <caption class="visually-hidden">Routes</caption>
        <thead>
          <tr>
            <th scope="col">Order</th>
            <th scope="col">Provider</th>
            <th scope="col">Status</th>
            <th scope="col" class="figure">
              Latency (p50)
            </th>
            <th scope="col" class="figure">
              Throughput
            </th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          {orderRoutes(routes).map(({ route, place, why }) => (
            <tr key={`${route.provider} ${route.upstream_model}`} class={place === undefined ? 'dim' : undefined}>
              <td class="place" data-label="Order">
                {place ?? 'skip'}
              </td>
              <th scope="row">
                {route.provider}
                <code class="upstream">{route.upstream_model}</code>
              </th>
              <td data-label="Status">
                <Status {...routeStatus(route)} />
              </td>
              <td class="figure" data-label="Latency (p50)">
                <Measured figures={route.first_event_ms} unit="time" isSandbox={route.rehearsal} />
              </td>
              <td class="figure" data-label="Throughput">
                <Measured figures={route.tokens_per_second} unit="tokens" isSandbox={route.rehearsal} />
              </td>
              <td class="why" data-label="Reason">
                {why}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="hint">
        A failed attempt automatically moves on to the next route. Latency is the time to the first token; figures are
        medians of this gateway’s traffic in the last hour. The sandbox is not measured.
      </p>
    </>
  )
}

/** Code that calls the model, one tab per client. Without scripts all are shown one below the other. */
function CodeTabs({ snippets }: { readonly snippets: readonly Snippet[] }) {
  const [open, setOpen] = useState(0)
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowRight: open + 1, ArrowLeft: open - 1, Home: 0, End: snippets.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    const next = (to + snippets.length) % snippets.length
    setOpen(next)
    document.getElementById(`tab-${next}`)?.focus()
  }
  return (
    <div class="code">
      <div class="tabs needs-script" role="tablist" aria-label="Clients">
        {snippets.map(({ client }, index) => (
          <button
            key={client}
            type="button"
            role="tab"
            id={`tab-${index}`}
            aria-selected={index === open}
            aria-controls={`panel-${index}`}
            tabIndex={index === open ? 0 : -1}
            onClick={() => setOpen(index)}
            onKeyDown={onKeyDown}
          >
            {client}
          </button>
        ))}
      </div>
      {snippets.map((snippet, index) => (
        <div
          key={snippet.client}
          class="panel"
          role="tabpanel"
          id={`panel-${index}`}
          aria-labelledby={`tab-${index}`}
          hidden={index !== open}
        >
          <h3 class="without-script">{snippet.client}</h3>
          {snippet.install !== '' && (
            <p class="install">
              <code>{snippet.install}</code>
              <CopyButton text={snippet.install} what="install command" />
            </p>
          )}
          <div class="code-block">
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
            <pre tabIndex={0}>
              <code>{snippet.code}</code>
            </pre>
            <CopyButton text={snippet.code} what={`code for ${snippet.client}`} label="Copy" />
          </div>
          <p class="hint">
            Set <code>TOLLGATE_KEY</code> to your API key. For tools, images, errors and more see{' '}
            <code>docs/recipes/{snippet.recipe}</code>
          </p>
        </div>
      ))}
    </div>
  )
}

function PriceHistory({ history }: { readonly history: readonly DatedPrice[] }) {
  if (history.length === 0) return <p class="empty">No price yet.</p>
  return (
    <>
      <table class="detail-table history">
        <caption class="visually-hidden">Prices in US dollars per million tokens, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Since</th>
            {amountColumns.map(({ label }) => (
              <th key={label} scope="col" class="figure">
                {label}
              </th>
            ))}
            <th scope="col">Set by</th>
            <th scope="col">Version</th>
          </tr>
        </thead>
        <tbody>
          {history.map((dated, at) => (
            <HistoryRow key={dated.version} dated={dated} isFirst={at === history.length - 1} />
          ))}
        </tbody>
      </table>
      <p class="hint">A price applies until the next one. Running requests keep the price they started with.</p>
    </>
  )
}

const amountColumns = [
  { label: 'Input', kind: 'input' },
  { label: 'Cached', kind: 'cache_read' },
  { label: 'Output', kind: 'output' },
] as const

function HistoryRow({ dated, isFirst }: { readonly dated: DatedPrice; readonly isFirst: boolean }) {
  const { price, source, effective_from: since, version } = dated
  const amounts = price === 'free' ? null : price
  const tiers = Object.keys(amounts?.over ?? {})
  return (
    <tr>
      <th scope="row">
        <time dateTime={since}>{utcText(since)}</time>
        {isFirst && <small class="muted"> first seen</small>}
      </th>
      {amountColumns.map(({ label, kind }) => (
        <td key={label} class="figure" data-label={label}>
          {amounts ? `$${amounts[kind]}` : (price ?? 'none')}
        </td>
      ))}
      <td data-label="Set by">
        {source}
        {tiers.length > 0 && (
          <small> other prices over {tiers.map((each) => exactCount(Number(each))).join(', ')} input tokens</small>
        )}
        {amounts?.audio_input !== undefined && <small> audio ${amounts.audio_input}</small>}
      </td>
      <td data-label="Version">
        <code>{version}</code>
      </td>
    </tr>
  )
}

/** In UTC, so that server and browser render the same. */
function utcText(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`
}
