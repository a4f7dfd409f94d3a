/** @jsxImportSource preact */
// The list of models: prices, capabilities and health. The view is in the address. Each page of the list is complete without
// scripts; with them the page loads the whole catalog, filters it by itself and follows changes.

import type { TargetedMouseEvent } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { modelStatus } from '../../../api/route-state.ts'
import { blendedPrice, type CatalogEntry, creatorOf, isOwnKeyOnly, modelPath } from '../../catalog/entry.ts'
import { tagName } from '../../catalog/facets.ts'
import { exactCount, roundPrice, shortCount } from '../../catalog/format.ts'
import {
  type CatalogQuery,
  comparedMax,
  describeEntries,
  type ListView,
  listPath,
  pageSize,
  type SortKind,
  toggleSort,
  viewOf,
} from '../../catalog/query.ts'
import type { ListData } from '../../page-data.ts'
import {
  Button,
  CopyButton,
  handleCommonKey,
  isTyping,
  LiveStatus,
  type Shortcuts,
  ShortcutsDialog,
  Status,
  useShortcuts,
} from '../components.tsx'
import { Icon } from '../icons.tsx'
import { useLiveCatalog } from '../live-catalog.ts'
import { type Column, DataTable } from '../table.tsx'
import { AccessFilter } from './access-filter.tsx'
import { Chips, Facets, type OpenQuery, SearchForm } from './filter-form.tsx'
import { Badges, Busiest, priceColumn, priceText } from './model-parts.tsx'

const all = (entries: readonly CatalogEntry[]) => entries

export function ListPage({ view: first, state, query: initialQuery, viewer, ...rest }: ListData) {
  const { used, summary, today } = rest
  const catalog = useLiveCatalog({ initial: undefined, state, viewer, select: all })
  const { entries, live, subject } = catalog
  const [query, setQuery] = useState(initialQuery)
  const view = useMemo(() => (entries ? viewOf(entries, query, used) : first), [entries, query])
  const change = (part: Partial<CatalogQuery>) => setQuery((before) => ({ ...before, page: '', ...part }))
  // Until the catalog is loaded the server answers.
  const open: OpenQuery = (event, next) => {
    if (!entries || opensElsewhere(event)) return
    event.preventDefault()
    setQuery(next)
  }
  // Until then a choice stays in the form, and the button sends it.
  const choose = (next: CatalogQuery) => setQuery(next)
  const toggleCompared = (id: string) => setQuery((before) => ({ ...before, m: toggled(before.m, id) }))
  const compared = entries ? query.m.filter((id) => entries.some((entry) => entry.id === id)) : query.m
  const hidden = compared.filter((id) => !view.rows.some((entry) => entry.id === id))
  useEffect(() => {
    const address = listPath(query)
    if (address !== location.pathname + location.search) history.replaceState(null, '', address)
  }, [query])
  useShortcuts((event) => {
    const { key, target } = event
    // The down arrow in the search field moves to the first model.
    const isLeaving = key === 'ArrowDown' && target instanceof HTMLElement && target.id === 'q'
    if (isTyping(event) && !isLeaving) return false
    const row = document.activeElement?.closest<HTMLElement>('[data-row]')
    if (key === 'c') row?.querySelector<HTMLElement>('[data-copy]')?.click()
    else if (key === 'x' && row) toggleCompared(row.dataset.row ?? '')
    else return handleCommonKey(key)
    return true
  })
  return (
    <>
      <div class="page-head row">
        <h1>Models</h1>
        <p class="lede">{entries ? describeEntries(entries) : summary}.</p>
        <LiveStatus state={live} />
      </div>
      <SearchForm query={query} isReady={entries !== undefined} change={change} />
      <div class="catalog">
        <Facets query={query} counts={view.facets} matching={view.matching} choose={choose} />
        <div class="catalog-list">
          <Chips query={query} open={open} />
          <div class="result-line between">
            <p class="result-count" role="status">
              {view.matching === view.total ? `${view.total} models` : `${view.matching} of ${view.total} models`}
            </p>
            <AccessFilter catalog={catalog} viewer={viewer} />
          </div>
          {view.rows.length > 0 ? (
            <DataTable
              class="model-table"
              caption="Models and their prices in US dollars per million tokens"
              columns={columnsFor(query, open)}
              rows={view.rows.map((entry) => ({
                entry,
                today,
                isCompared: compared.includes(entry.id),
                isFull: compared.length >= comparedMax && !compared.includes(entry.id),
                toggleCompared: () => toggleCompared(entry.id),
              }))}
              keyOf={({ entry }) => entry.id}
              isDim={({ entry }) => !entry.callable}
            />
          ) : (
            <p class="empty">
              {subject.kind !== 'public' && view.total === 0
                ? `${subject.kind === 'key' ? 'This key' : 'This project'} can call none of the models. The allowlist of the project decides which.`
                : view.total === 0
                  ? 'No models yet. Set a provider’s API key, such as OPENAI_API_KEY, or add a model to tollgate.yaml.'
                  : 'No models match. Remove a filter or search for something else.'}
            </p>
          )}
          <Pager view={view} query={query} open={open} />
          <p class="hint">
            Prices are in US dollars per million tokens. The blended price counts three input tokens for each output
            token. The default order is by the requests of this gateway in the last seven days, then by name.
          </p>
          <CompareBar compared={compared} hidden={hidden} onClear={() => change({ m: [] })} />
        </div>
      </div>
      <ShortcutsDialog shortcuts={shortcuts} />
    </>
  )
}

/** A click that opens a new tab or window. */
function opensElsewhere(event: TargetedMouseEvent<HTMLAnchorElement>): boolean {
  return event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey
}

function toggled(compared: readonly string[], id: string): readonly string[] {
  if (compared.includes(id)) return compared.filter((each) => each !== id)
  return compared.length < comparedMax ? [...compared, id] : compared
}

interface Row {
  readonly entry: CatalogEntry
  readonly today: string
  readonly isCompared: boolean
  /** The comparison is full without this model. */
  readonly isFull: boolean
  toggleCompared(): void
}

interface SortedColumn extends Column<Row> {
  readonly sort?: SortKind
  /** The highest value is first. */
  readonly isDescending?: boolean
}

const columns: readonly SortedColumn[] = [
  { label: 'Model', sort: 'name', show: (row) => <ModelCell {...row} /> },
  { ...priceColumn('Blended (3:1)', ({ entry }: Row) => blendedText(entry)), sort: 'blended' },
  { ...priceColumn('Input', ({ entry }: Row) => priceText(entry, 'input')), sort: 'price' },
  { ...priceColumn('Output', ({ entry }: Row) => priceText(entry, 'output')), sort: 'output' },
  {
    label: 'Context',
    sort: 'context',
    isDescending: true,
    isNumber: true,
    show: ({ entry }) => <TokenCount tokens={entry.context_tokens} />,
  },
  { label: 'Capabilities', show: ({ entry: { tags } }) => tags.map(tagName).join(', ') || '–' },
  {
    label: 'Latency (p50)',
    sort: 'first-token',
    isNumber: true,
    show: ({ entry }) => <Busiest entry={entry} kind="first_event_ms" isShort />,
  },
  {
    label: 'Throughput',
    sort: 'speed',
    isDescending: true,
    isNumber: true,
    show: ({ entry }) => <Busiest entry={entry} kind="tokens_per_second" isShort />,
  },
  { label: 'Status', show: ({ entry }) => <Status {...modelStatus(entry)} /> },
]

/** In place of the throughput when the newest are first. */
const releasedColumn: SortedColumn = {
  label: 'Released',
  sort: 'newest',
  isDescending: true,
  show: ({ entry: { released } }) => released ?? 'unknown',
}

/** With heads that sort by their column. */
function columnsFor(query: CatalogQuery, open: OpenQuery): readonly Column<Row>[] {
  const isByRelease = /^-?newest$/.test(query.sort)
  const shown = columns.map((column) => (isByRelease && column.sort === 'speed' ? releasedColumn : column))
  return shown.map(({ sort, isDescending = false, ...column }) => {
    if (sort === undefined) return column
    const next = toggleSort(query, sort)
    const isChosen = query.sort === sort || query.sort === `-${sort}`
    const sorted = isChosen ? (isDescending === (query.sort === sort) ? 'descending' : 'ascending') : undefined
    const head = (
      <a href={listPath(next)} rel="nofollow" onClick={(event) => open(event, next)}>
        {column.label}
        {sorted && <Icon name={sorted} size={12} />}
      </a>
    )
    return { ...column, head, sorted }
  })
}

function blendedText(entry: CatalogEntry): string {
  const price = blendedPrice(entry)
  return price === undefined ? '–' : entry.price === 'free' ? 'free' : roundPrice(price)
}

function ModelCell({ entry, today, isCompared, isFull, toggleCompared }: Row) {
  const { id, name } = entry
  const creator = creatorOf(entry)
  return (
    <>
      <input
        type="checkbox"
        form="compare"
        name="m"
        value={id}
        aria-label={`Compare ${id}`}
        checked={isCompared}
        disabled={isFull}
        onChange={toggleCompared}
      />
      <span class={`monogram series-${tintOf(creator)}`} aria-hidden="true">
        {creator.slice(0, 1)}
      </span>
      {isOwnKeyOnly(entry) ? (
        // It has no page, because it is not in the public catalog.
        <span class="model-link">{name}</span>
      ) : (
        <a class="model-link" href={modelPath(id)}>
          {name}
        </a>
      )}
      <Badges entry={entry} today={today} />
      <span class="id">
        <code>{id}</code>
        <CopyButton text={id} what={`id ${id}`} />
      </span>
    </>
  )
}

const tints = 7

/** The same color for all models of a creator, from 1. */
function tintOf(creator: string): number {
  let sum = 0
  for (const character of creator) sum += character.charCodeAt(0)
  return (sum % tints) + 1
}

function TokenCount({ tokens }: { readonly tokens: number | null }) {
  if (tokens === null) return <span class="muted">unknown</span>
  return <span title={`${exactCount(tokens)} tokens`}>{shortCount(tokens)}</span>
}

interface PagerProps {
  readonly view: ListView
  readonly query: CatalogQuery
  readonly open: OpenQuery
}

function Pager({ view: { page, pages, matching }, query, open }: PagerProps) {
  if (pages === 1) return null
  const link = (to: number, label: string) => {
    if (to < 1 || to > pages)
      return (
        <span class="button quiet" aria-disabled="true">
          {label}
        </span>
      )
    const next = { ...query, page: to === 1 ? '' : String(to) }
    const show: typeof open = (event) => {
      open(event, next)
      if (event.defaultPrevented) document.querySelector('.result-count')?.scrollIntoView()
    }
    return (
      <a class="button quiet" href={listPath(next)} onClick={(event) => show(event, next)}>
        {label}
      </a>
    )
  }
  return (
    <nav class="pager row" aria-label="Pages of the list">
      {link(page - 1, 'Previous')}
      <span>
        {exactCount((page - 1) * pageSize + 1)}–{exactCount(Math.min(matching, page * pageSize))} of{' '}
        {exactCount(matching)}, page {page} of {pages}
      </span>
      {link(page + 1, 'Next')}
    </nav>
  )
}

interface CompareBarProps {
  readonly compared: readonly string[]
  /** Selected models that a filter hides: without a checkbox in the table they are sent from here. */
  readonly hidden: readonly string[]
  onClear(): void
}

/** The table's checkboxes belong to this form, so that it works without scripts. */
function CompareBar({ compared, hidden, onClear }: CompareBarProps) {
  return (
    <form id="compare" class={`compare-bar row${compared.length > 0 ? ' filled' : ''}`} method="get" action="/compare">
      {hidden.map((id) => (
        <input key={id} type="hidden" name="m" value={id} />
      ))}
      <span role="status">
        {compared.length === 0
          ? 'Select up to four models to compare.'
          : `${compared.length} of ${comparedMax} selected`}
      </span>
      {compared.length > 0 && (
        <Button look="quiet" onClick={onClear}>
          Clear
        </Button>
      )}
      <button type="submit" class="button">
        Compare
      </button>
    </form>
  )
}

const shortcuts: Shortcuts = [
  ['/', 'search'],
  ['↓ ↑', 'next and previous model'],
  ['Enter', 'open the model'],
  ['c', 'copy its id'],
  ['x', 'select it for comparison, up to four'],
  ['?', 'show these shortcuts'],
]
