/** @jsxImportSource preact */
// The list of models: prices, capabilities and health. The view is in the address. The list is complete without scripts and
// updates by itself with them.

import { useEffect, useMemo, useState } from 'preact/hooks'
import { type CatalogEntry, isSandbox, modelPath } from '../../catalog/entry.ts'
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
import { busiestFigures, modelStatus } from '../../catalog/status.ts'
import { isOwnKeyOnly, usableEntries } from '../../catalog/usable-models.ts'
import type { ListData } from '../../page-data.ts'
import {
  CopyButton,
  focusNextRow,
  focusOn,
  isTyping,
  LiveStatus,
  openShortcuts,
  type Shortcuts,
  ShortcutsDialog,
  Status,
} from '../components.tsx'
import { useLiveCatalog } from '../live-catalog.ts'
import { AccessFilter, useAccess } from './access-filter.tsx'
import { FilterForm } from './filter-form.tsx'
import { Badges, Capabilities, Measured, ModelPrice } from './model-parts.tsx'

const all = (entries: readonly CatalogEntry[]) => entries

export function ListPage({ entries: initial, state, query: initialQuery, builtInDate, isSignedIn }: ListData) {
  const { entries: offered, live, accessVersion } = useLiveCatalog(initial, state, all)
  const access = useAccess(accessVersion)
  const entries = useMemo(() => usableEntries(offered, access.models), [offered, access.models])
  const [query, setQuery] = useState(() => withKnownModels(initialQuery, initial))
  const shown = useMemo(() => selectEntries(entries, query), [entries, query])
  const choices = useMemo(() => choicesOf(entries), [entries])
  const change = (part: Partial<CatalogQuery>) => setQuery((before) => ({ ...before, ...part }))
  const toggleCompared = (id: string) => setQuery((before) => ({ ...before, compared: toggled(before.compared, id) }))
  const compared = query.compared.filter((id) => entries.some((entry) => entry.id === id))
  const hidden = compared.filter((id) => !shown.some((entry) => entry.id === id))
  useEffect(() => {
    const text = renderQuery(query)
    const address = text === '' ? '/' : `/?${text}`
    if (address !== location.pathname + location.search) history.replaceState(null, '', address)
  }, [query])
  useListShortcuts(toggleCompared)
  return (
    <>
      <div class="page-head">
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
                setQuery({ ...emptyQuery, sort: query.sort, compared: query.compared })
              }}
            >
              Clear filters
            </a>
          </>
        )}
      </p>
      {shown.length > 0 ? (
        <ModelTable
          entries={shown}
          isGrouped={query.sort === 'name'}
          compared={compared}
          toggleCompared={toggleCompared}
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
      <CompareBar compared={compared} hidden={hidden} onClear={() => change({ compared: [] })} />
      <ShortcutsDialog shortcuts={shortcuts} />
    </>
  )
}

/** Drops unknown models from an address, so that they do not take up places in the comparison. */
function withKnownModels(query: CatalogQuery, entries: readonly CatalogEntry[]): CatalogQuery {
  return { ...query, compared: query.compared.filter((id) => entries.some((entry) => entry.id === id)) }
}

function toggled(compared: readonly string[], id: string): readonly string[] {
  if (compared.includes(id)) return compared.filter((each) => each !== id)
  return compared.length < comparedMax ? [...compared, id] : compared
}

const headings: readonly { readonly label: string; readonly kind?: string }[] = [
  { label: 'Model' },
  { label: 'Input', kind: 'price' },
  { label: 'Cached', kind: 'price' },
  { label: 'Output', kind: 'price' },
  { label: 'Context', kind: 'count' },
  { label: 'Max output', kind: 'count' },
  { label: 'Capabilities' },
  { label: 'Status' },
  { label: 'Latency (p50)', kind: 'figure' },
  { label: 'Throughput', kind: 'figure' },
]

interface ModelTableProps {
  readonly entries: readonly CatalogEntry[]
  /** By creator, each with a heading. */
  readonly isGrouped: boolean
  readonly compared: readonly string[]
  toggleCompared(id: string): void
}

function ModelTable({ entries, isGrouped, compared, toggleCompared }: ModelTableProps) {
  const groups = isGrouped ? [...Map.groupBy(entries, creatorOf)] : [['', entries] as const]
  return (
    <table class="model-table">
      <caption class="visually-hidden">Models and their prices in US dollars per million tokens</caption>
      <thead>
        <tr>
          <th scope="col" class="compare-cell">
            <span class="visually-hidden">Compare</span>
          </th>
          {headings.map(({ label, kind }) => (
            <th key={label} scope="col" class={kind}>
              {label}
            </th>
          ))}
        </tr>
      </thead>
      {groups.map(([creator, group]) => (
        <tbody key={creator}>
          {creator !== '' && (
            <tr class="creator">
              <th scope="rowgroup" colSpan={headings.length + 1}>
                {creator}
              </th>
            </tr>
          )}
          {group.map((entry) => (
            <ModelRow
              key={entry.id}
              entry={entry}
              isCompared={compared.includes(entry.id)}
              isFull={compared.length >= comparedMax && !compared.includes(entry.id)}
              toggleCompared={toggleCompared}
            />
          ))}
        </tbody>
      ))}
    </table>
  )
}

interface ModelRowProps {
  readonly entry: CatalogEntry
  readonly isCompared: boolean
  /** The comparison is full without this model. */
  readonly isFull: boolean
  toggleCompared(id: string): void
}

/** On a phone the row is a card with each column's label above its value. */
function ModelRow({ entry, isCompared, isFull, toggleCompared }: ModelRowProps) {
  const { id, name, routes } = entry
  const cachedAsInput = entry.price !== null && entry.price !== 'free' && entry.price.cache_read === entry.price.input
  return (
    <tr class={entry.callable ? undefined : 'dim'} data-model={id}>
      <td class="compare-cell">
        <input
          type="checkbox"
          form="compare"
          name="m"
          value={id}
          aria-label={`Compare ${id}`}
          checked={isCompared}
          disabled={isFull}
          onChange={() => toggleCompared(id)}
        />
      </td>
      <th scope="row" class="model">
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
      </th>
      <td class="price" data-label="Input">
        <ModelPrice entry={entry} kind="input" />
      </td>
      <td class={`price${cachedAsInput ? ' same' : ''}`} data-label="Cached input">
        <ModelPrice entry={entry} kind="cache_read" />
      </td>
      <td class="price" data-label="Output">
        <ModelPrice entry={entry} kind="output" />
      </td>
      <TokenCount label="Context" tokens={entry.context_tokens} />
      <TokenCount label="Max output" tokens={entry.max_output_tokens} />
      <td class="capabilities" data-label="Capabilities">
        <Capabilities tags={entry.tags} />
      </td>
      <td class="health" data-label="Status">
        <Status {...modelStatus(entry)} />
        <small>{routes.length === 1 ? routes[0]?.provider : `${routes.length} routes`}</small>
      </td>
      <td class="figure" data-label="Latency (p50)">
        <Measured figures={busiestFigures(routes, 'first_event_ms')} unit="time" isSandbox={isSandbox(entry)} />
      </td>
      <td class="figure" data-label="Throughput">
        <Measured figures={busiestFigures(routes, 'tokens_per_second')} unit="tokens" isSandbox={isSandbox(entry)} />
      </td>
    </tr>
  )
}

function TokenCount({ label, tokens }: { readonly label: string; readonly tokens: number | null }) {
  return (
    <td class="count" data-label={label}>
      {tokens === null ? (
        <span class="muted">unknown</span>
      ) : (
        <span title={`${exactCount(tokens)} tokens`}>{shortCount(tokens)}</span>
      )}
    </td>
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
    <form id="compare" class={`compare-bar${compared.length > 0 ? ' filled' : ''}`} method="get" action="/compare">
      {hidden.map((id) => (
        <input key={id} type="hidden" name="m" value={id} />
      ))}
      <span role="status">
        {compared.length === 0
          ? 'Select up to four models to compare.'
          : `${compared.length} of ${comparedMax} selected`}
      </span>
      {compared.length > 0 && (
        <button type="button" class="button quiet" onClick={onClear}>
          Clear
        </button>
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

function useListShortcuts(toggleCompared: (id: string) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (isTyping(event) && !leavesSearch(event)) return
      if (handleKey(event.key, toggleCompared)) event.preventDefault()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

/** The down arrow in the search field moves to the first model. */
function leavesSearch({ key, target }: KeyboardEvent): boolean {
  return key === 'ArrowDown' && target instanceof HTMLElement && target.id === 'q'
}

/** Whether the key is a shortcut. */
function handleKey(key: string, toggleCompared: (id: string) => void): boolean {
  if (key === '/') return focusOn(document.getElementById('q'))
  if (key === 'ArrowDown') return focusNextRow('.model-table .model-link', '[data-model]', 1)
  if (key === 'ArrowUp') return focusNextRow('.model-table .model-link', '[data-model]', -1)
  if (key === '?') return openShortcuts()
  const row = document.activeElement?.closest<HTMLElement>('[data-model]')
  if (!row) return false
  if (key === 'c') row.querySelector<HTMLElement>('[data-copy]')?.click()
  else if (key === 'x') toggleCompared(row.dataset.model ?? '')
  else return false
  return true
}
