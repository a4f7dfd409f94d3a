/** @jsxImportSource preact */
// The list of models: prices, capabilities and health. The view is in the address. The list is complete without scripts and
// updates by itself with them.

import { useEffect, useMemo, useState } from 'preact/hooks'
import { type CatalogEntry, modelPath } from '../../catalog/entry.ts'
import { exactCount, shortCount } from '../../catalog/format.ts'
import {
  type CatalogQuery,
  choicesOf,
  comparedMax,
  creatorOf,
  describeSources,
  emptyQuery,
  isFiltered,
  renderQuery,
  selectEntries,
} from '../../catalog/query.ts'
import { modelStatus } from '../../catalog/status.ts'
import { isOwnKeyOnly, usableEntries } from '../../catalog/usable-models.ts'
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
import { useLiveCatalog } from '../live-catalog.ts'
import { type Column, DataTable } from '../table.tsx'
import { AccessFilter, useAccess } from './access-filter.tsx'
import { FilterForm } from './filter-form.tsx'
import { Badges, Busiest, Capabilities, ModelPrice } from './model-parts.tsx'

const all = (entries: readonly CatalogEntry[]) => entries

export function ListPage({ entries: initial, state, query: initialQuery, builtInDate, isSignedIn }: ListData) {
  const { entries: offered, live, accessVersion } = useLiveCatalog(initial, state, all)
  const access = useAccess(accessVersion)
  const entries = useMemo(() => usableEntries(offered, access.models), [offered, access.models])
  const [query, setQuery] = useState(() => withKnownModels(initialQuery, initial))
  const shown = useMemo(() => selectEntries(entries, query), [entries, query])
  const choices = useMemo(() => choicesOf(entries), [entries])
  const change = (part: Partial<CatalogQuery>) => setQuery((before) => ({ ...before, ...part }))
  const toggleCompared = (id: string) => setQuery((before) => ({ ...before, m: toggled(before.m, id) }))
  const compared = query.m.filter((id) => entries.some((entry) => entry.id === id))
  const hidden = compared.filter((id) => !shown.some((entry) => entry.id === id))
  useEffect(() => {
    const text = renderQuery(query)
    const address = text === '' ? '/' : `/?${text}`
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
        <p class="lede">{describeSources(entries, builtInDate)}.</p>
        <LiveStatus state={live} />
      </div>
      <AccessFilter access={access} isSignedIn={isSignedIn} />
      <FilterForm query={query} choices={choices} change={change} />
      <p class="result-count" role="status">
        {shown.length === entries.length ? `${shown.length} models` : `${shown.length} of ${entries.length} models`}
        {isFiltered(query) && (
          <>
            {' '}
            <a
              href="/"
              onClick={(event) => {
                event.preventDefault()
                setQuery({ ...emptyQuery, sort: query.sort, m: query.m })
              }}
            >
              Clear filters
            </a>
          </>
        )}
      </p>
      {shown.length > 0 ? (
        <DataTable
          class="data-table model-table"
          caption="Models and their prices in US dollars per million tokens"
          columns={columns}
          rows={shown.map((entry) => ({
            entry,
            isCompared: compared.includes(entry.id),
            isFull: compared.length >= comparedMax && !compared.includes(entry.id),
            toggleCompared: () => toggleCompared(entry.id),
          }))}
          keyOf={({ entry }) => entry.id}
          groupOf={({ entry }) => (query.sort === 'name' ? creatorOf(entry) : '')}
          isDim={({ entry }) => !entry.callable}
        />
      ) : (
        <p class="empty">
          {access.models !== undefined && entries.length === 0
            ? 'It can use none of the models. Its project’s allowlist decides which.'
            : offered.length === 0
              ? 'No models yet. Set a provider’s API key, such as OPENAI_API_KEY, or add a model to tollgate.yaml.'
              : 'No models match. Remove a filter or search for something else.'}
        </p>
      )}
      <CompareBar compared={compared} hidden={hidden} onClear={() => change({ m: [] })} />
      <ShortcutsDialog shortcuts={shortcuts} />
    </>
  )
}

/** Drops unknown models from an address, so that they do not take up places in the comparison. */
function withKnownModels(query: CatalogQuery, entries: readonly CatalogEntry[]): CatalogQuery {
  return { ...query, m: query.m.filter((id) => entries.some((entry) => entry.id === id)) }
}

function toggled(compared: readonly string[], id: string): readonly string[] {
  if (compared.includes(id)) return compared.filter((each) => each !== id)
  return compared.length < comparedMax ? [...compared, id] : compared
}

interface Row {
  readonly entry: CatalogEntry
  readonly isCompared: boolean
  /** The comparison is full without this model. */
  readonly isFull: boolean
  toggleCompared(): void
}

const columns: readonly Column<Row>[] = [
  { label: 'Model', show: (row) => <ModelCell {...row} /> },
  { label: 'Input', isNumber: true, show: ({ entry }) => <ModelPrice entry={entry} kind="input" /> },
  { label: 'Cached input', isNumber: true, show: ({ entry }) => <ModelPrice entry={entry} kind="cache_read" /> },
  { label: 'Output', isNumber: true, show: ({ entry }) => <ModelPrice entry={entry} kind="output" /> },
  { label: 'Context', isNumber: true, show: ({ entry }) => <TokenCount tokens={entry.context_tokens} /> },
  { label: 'Max output', isNumber: true, show: ({ entry }) => <TokenCount tokens={entry.max_output_tokens} /> },
  { label: 'Capabilities', show: ({ entry }) => <Capabilities tags={entry.tags} /> },
  {
    label: 'Status',
    show: ({ entry }) => <Status {...modelStatus(entry)} />,
    note: ({ entry: { routes } }) => (routes.length === 1 ? routes[0]?.provider : `${routes.length} routes`),
  },
  { label: 'Latency (p50)', isNumber: true, show: ({ entry }) => <Busiest entry={entry} kind="first_event_ms" /> },
  { label: 'Throughput', isNumber: true, show: ({ entry }) => <Busiest entry={entry} kind="tokens_per_second" /> },
]

function ModelCell({ entry, isCompared, isFull, toggleCompared }: Row) {
  const { id, name } = entry
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
      {isOwnKeyOnly(entry) ? (
        // It has no page, because it is not in the public catalog.
        <span class="model-link">{name}</span>
      ) : (
        <a class="model-link" href={modelPath(id)}>
          {name}
        </a>
      )}
      <Badges entry={entry} />
      <span class="id">
        <code>{id}</code>
        <CopyButton text={id} what={`id ${id}`} />
      </span>
    </>
  )
}

function TokenCount({ tokens }: { readonly tokens: number | null }) {
  if (tokens === null) return <span class="muted">unknown</span>
  return <span title={`${exactCount(tokens)} tokens`}>{shortCount(tokens)}</span>
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
