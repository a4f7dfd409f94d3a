/** @jsxImportSource preact */
// Search, order and facets of the model list. Together they are a plain form that works without scripts, and chips are links;
// with scripts every change applies at once.

import type { TargetedMouseEvent, TargetedSubmitEvent } from 'preact'
import { type FacetCounts, type FacetName, facetNames, facets } from '../../catalog/facets.ts'
import {
  type CatalogQuery,
  chosenValues,
  isFiltered,
  listPath,
  sortNames,
  toggleFacet,
  withoutFilters,
} from '../../catalog/query.ts'
import { CloseButton } from '../components.tsx'
import { Field } from '../form.tsx'
import { Icon } from '../icons.tsx'

export type OpenQuery = (event: TargetedMouseEvent<HTMLAnchorElement>, next: CatalogQuery) => void

const facetsId = 'facets'
/** The facets are fields of it, wherever they are on the page. */
const formId = 'search'

export interface SearchFormProps {
  readonly query: CatalogQuery
  /** Whether the page can filter by itself; otherwise the server does. */
  readonly isReady: boolean
  change(part: Partial<CatalogQuery>): void
}

export function SearchForm({ query, isReady, change }: SearchFormProps) {
  const sorts = Object.entries(sortNames).map(([value, label]) => ({ value, label }))
  const reversed = query.sort.startsWith('-') ? [{ value: query.sort, label: reversedName(query.sort) }] : []
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    if (isReady) event.preventDefault()
  }
  const chosen = facetNames.flatMap((name) => chosenValues(query, name)).length
  return (
    <form id={formId} class="filters controls" method="get" action="/" aria-label="Search" onSubmit={submit}>
      {query.m.map((id) => (
        <input key={id} type="hidden" name="m" value={id} />
      ))}
      <Field
        label="Search"
        id="q"
        value={query.q}
        isWide
        attributes={{ type: 'search', name: 'q', 'data-search': true, placeholder: 'Name, id or creator' }}
        onChange={(q) => change({ q })}
      />
      <Field
        label="Sort by"
        id="sort"
        value={query.sort}
        options={[...sorts, ...reversed]}
        attributes={{ name: 'sort' }}
        onChange={(sort) => change({ sort: sort as CatalogQuery['sort'] })}
      />
      <button class="button quiet facets-open" type="button" popovertarget={facetsId}>
        <Icon name="filter" />
        Filter{chosen > 0 ? ` (${chosen})` : ''}
      </button>
      <button class="button without-script" type="submit">
        Apply
      </button>
    </form>
  )
}

function reversedName(sort: CatalogQuery['sort']): string {
  return `${sortNames[sort.slice(1) as keyof typeof sortNames]}, reversed`
}

export interface FacetsProps {
  readonly query: CatalogQuery
  readonly counts: FacetCounts
  readonly matching: number
  choose(next: CatalogQuery): void
}

/** Beside the list; on a narrow screen a sheet that the button opens, also without scripts. */
export function Facets({ query, counts, matching, choose }: FacetsProps) {
  const close = () => document.getElementById(facetsId)?.hidePopover()
  return (
    <aside id={facetsId} class="facets" popover="auto" aria-label="Filters">
      <div class="facets-head between">
        <h2>Filter</h2>
        <CloseButton onClick={close} />
      </div>
      {facetNames.map((name) => (
        <FacetGroup key={name} name={name} counts={counts[name]} query={query} choose={choose} />
      ))}
      <p class="without-script">
        <button type="submit" class="button" form={formId}>
          Apply filters
        </button>
      </p>
      <div class="facets-foot needs-script">
        <button type="button" class="button" onClick={close}>
          Show {matching} {matching === 1 ? 'model' : 'models'}
        </button>
      </div>
    </aside>
  )
}

/** More options are folded. */
const optionsMax = 8

interface FacetGroupProps extends Pick<FacetsProps, 'query' | 'choose'> {
  readonly name: FacetName
  readonly counts: FacetCounts[FacetName]
}

/** Checkboxes, or radio buttons where one value applies at a time. */
function FacetGroup({ name, counts, query, choose }: FacetGroupProps) {
  if (counts.length === 0) return null
  const chosen = chosenValues(query, name)
  const { isMulti, nameOf } = facets[name]
  const option = (value: string, label: string, count: number | undefined) => (
    <li key={value}>
      <label class="tick">
        <input
          type={isMulti ? 'checkbox' : 'radio'}
          form={formId}
          name={name}
          value={value}
          checked={value === '' ? chosen.length === 0 : chosen.includes(value)}
          onChange={() => choose(value === '' ? { ...query, page: '', [name]: '' } : toggleFacet(query, name, value))}
        />
        <span>{label}</span>
        {count !== undefined && <small>{count}</small>}
      </label>
    </li>
  )
  const options = [
    ...(isMulti ? [] : [option('', 'Any', undefined)]),
    ...counts.map(([value, count]) => option(value, nameOf(value), count)),
  ]
  const first = options.length <= optionsMax + 2 ? options : options.slice(0, optionsMax)
  const more = options.slice(first.length)
  return (
    <fieldset class="facet">
      <legend>{facets[name].label}</legend>
      <ul class="plain">{first}</ul>
      {more.length > 0 && (
        <details>
          <summary>{more.length} more</summary>
          <ul class="plain">{more}</ul>
        </details>
      )}
    </fieldset>
  )
}

/** The filters that apply, each with a link that removes it. */
export function Chips({ query, open }: { readonly query: CatalogQuery; readonly open: OpenQuery }) {
  if (!isFiltered(query)) return null
  const words = query.q.trim()
  const chips = [
    ...(words === '' ? [] : [{ label: `“${words}”`, next: { ...query, q: '', page: '' } }]),
    ...facetNames.flatMap((name) =>
      chosenValues(query, name).map((value) => ({
        label: facets[name].chipOf(value),
        next: toggleFacet(query, name, value),
      })),
    ),
  ]
  const all = withoutFilters(query)
  return (
    <ul class="plain chips row" aria-label="Filters that apply">
      {chips.map(({ label, next }) => (
        <li key={label}>
          <a
            class="chip"
            href={listPath(next)}
            rel="nofollow"
            aria-label={`Remove the filter ${label}`}
            onClick={(event) => open(event, next)}
          >
            {label}
            <Icon name="close" size={12} />
          </a>
        </li>
      ))}
      <li>
        <a href={listPath(all)} onClick={(event) => open(event, all)}>
          Clear filters
        </a>
      </li>
    </ul>
  )
}
