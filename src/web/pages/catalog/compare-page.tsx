/** @jsxImportSource preact */
// Up to four models side by side.

import type { ComponentChildren } from 'preact'
import { modelStatus } from '../../../api/route-state.ts'
import { priceUsage } from '../../../catalog/price.ts'
import { formatUsd, type Nano } from '../../../kernel/money.ts'
import { type FactorName, factorNames, factors, unitBuckets } from '../../../kernel/usage.ts'
import { type CatalogEntry, modelPath } from '../../catalog/entry.ts'
import { inputOf } from '../../catalog/facets.ts'
import { exactCount, tierTexts } from '../../catalog/format.ts'
import { emptyQuery, renderQuery } from '../../catalog/query.ts'
import { priceOf, type Sample, usageOf } from '../../catalog/sample-cost.ts'
import type { CompareData } from '../../page-data.ts'
import { Amount, LiveStatus, Status } from '../components.tsx'
import { useLiveCatalog } from '../live-catalog.ts'
import { DataTable } from '../table.tsx'
import { AccessFilter } from './access-filter.tsx'
import { Badges, Busiest, Capabilities, Money, priceText } from './model-parts.tsx'

interface Line {
  readonly label: string
  show(entry: CatalogEntry, sample: Sample): ComponentChildren
}

/** Enough that whole cents tell models apart. */
const exampleCalls = 1000

const lines: readonly Line[] = [
  { label: 'Status', show: (entry) => <Status {...modelStatus(entry)} /> },
  { label: 'Input', show: (entry) => <Money amount={priceText(entry, 'input')} /> },
  { label: 'Cached input', show: (entry) => <Money amount={priceText(entry, 'cache_read')} /> },
  { label: 'Cache write', show: (entry) => <Money amount={priceText(entry, 'cache_write')} /> },
  { label: 'Output', show: (entry) => <Money amount={priceText(entry, 'output')} /> },
  ...unitBuckets.map((info) => ({
    label: `Per ${info.quantity}`,
    show: ({ price }: CatalogEntry) => unitPrice(price, info),
  })),
  ...factorNames.map((name) => ({
    label: factors[name].label,
    show: ({ price }: CatalogEntry) => factorText(price, name),
  })),
  {
    label: 'Service tiers',
    show: ({ price }) => (price === null || price === 'free' ? '–' : tierTexts(price) || 'standard only'),
  },
  { label: `Cost of ${exactCount(exampleCalls)} example requests`, show: exampleCost },
  { label: 'Context', show: ({ context_tokens }) => tokenCount(context_tokens) },
  { label: 'Max output', show: ({ max_output_tokens }) => tokenCount(max_output_tokens) },
  { label: 'Capabilities', show: ({ tags }) => <Capabilities tags={tags} /> },
  { label: 'Routes', show: ({ routes }) => routes.map(({ provider }) => provider).join(', ') },
  { label: 'Latency (p50)', show: (entry) => <Busiest entry={entry} kind="first_event_ms" /> },
  { label: 'Throughput', show: (entry) => <Busiest entry={entry} kind="tokens_per_second" /> },
  { label: 'Accepts', show: (entry) => inputOf(entry).join(', ') },
  { label: 'Knowledge cutoff', show: ({ knowledge }) => knowledge ?? 'unknown' },
  { label: 'Released', show: ({ released }) => released ?? 'unknown' },
]

export function ComparePage({ entries: initial, state, sample, today, viewer }: CompareData) {
  const select = (all: readonly CatalogEntry[]) =>
    initial.flatMap(({ id }) => all.find((entry) => entry.id === id) ?? [])
  const catalog = useLiveCatalog({ initial, state, viewer, select })
  const { entries, live } = catalog
  if (entries.length === 0) {
    return (
      <section class="notice card stack">
        <h1>Compare</h1>
        <p>
          No models are selected. Select up to four in the <a href="/">model list</a>, or press x on them.
        </p>
      </section>
    )
  }
  const columns = entries.map((entry) => ({
    label: entry.name,
    head: (
      <>
        <a href={modelPath(entry.id)}>{entry.name}</a>
        <code>{entry.id}</code>
        <Badges entry={entry} today={today} />
      </>
    ),
    show: (line: Line) => line.show(entry, sample),
  }))
  return (
    <>
      <div class="page-head row">
        <h1>Compare</h1>
        <p class="lede">
          Example request: {exactCount(sample.in)} input tokens, {sample.cached} % of them cached,{' '}
          {exactCount(sample.out)} output tokens. <a href={selectionPath(entries)}>Change selection</a>
        </p>
        <LiveStatus state={live} />
      </div>
      <AccessFilter catalog={catalog} viewer={viewer} />
      <DataTable
        class="data-table comparison"
        caption="Models side by side"
        columns={[{ label: 'Property', show: ({ label }: Line) => label }, ...columns]}
        rows={lines}
        keyOf={({ label }) => label}
      />
    </>
  )
}

/** The list with these models selected. */
function selectionPath(entries: readonly CatalogEntry[]): string {
  return `/?${renderQuery({ ...emptyQuery, m: entries.map(({ id }) => id) })}`
}

function unitPrice(price: CatalogEntry['price'], info: (typeof unitBuckets)[number]): ComponentChildren {
  if (price === null) return <Money amount="–" />
  const amount = price === 'free' ? undefined : price[info.bucket]
  if (amount !== undefined) return <Money amount={amount} />
  return price === 'free' || info.unpriced === 'free' ? 'not charged' : 'not offered'
}

/** The same text for a model without US-only processing and one that does not charge more for it. */
function factorText(price: CatalogEntry['price'], name: FactorName): string {
  if (price === null) return '–'
  const factor = price === 'free' ? undefined : price[name]
  return factor === undefined ? 'no surcharge' : `× ${factor}`
}

function exampleCost(entry: CatalogEntry, sample: Sample): ComponentChildren {
  const price = priceOf(entry)
  return price ? (
    <Amount usd={formatUsd((priceUsage(price, usageOf(sample)) * BigInt(exampleCalls)) as Nano)} />
  ) : (
    'no price'
  )
}

function tokenCount(tokens: number | null): string {
  return tokens === null ? 'unknown' : exactCount(tokens)
}
