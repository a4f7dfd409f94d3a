// The model list's search, filters, order and page. They are kept in the address, so that every view is a link. Invalid
// values are ignored. The server and the page use the same code.

import { type Pico, parsePrice } from '../../kernel/money.ts'
import { blendedPrice, type CatalogEntry, isOwnKeyOnly } from './entry.ts'
import { type FacetCounts, type FacetName, facetNames, facets } from './facets.ts'
import { countOf } from './format.ts'
import { busiestFigures, hasEnoughSamples } from './status.ts'

/** In the order of the menu. */
export const sortNames = {
  used: 'most used',
  newest: 'newest',
  name: 'name',
  blended: 'blended price (3:1)',
  price: 'input price',
  output: 'output price',
  context: 'context',
  'first-token': 'latency',
  speed: 'throughput',
} as const

export type SortKind = keyof typeof sortNames

/** By the names in the address, and in their order. Empty = any. */
export interface CatalogQuery extends Readonly<Record<Exclude<FacetName, 'tag' | 'modality'>, string>> {
  /** Words that id, name or creator must contain. */
  readonly q: string
  /** A model must have all of them. */
  readonly tag: readonly string[]
  /** A model must have all of them. */
  readonly modality: readonly string[]
  /** With a minus in front: the other way round. */
  readonly sort: SortKind | `-${SortKind}`
  /** From 2 on; empty = the first. */
  readonly page: string
  /** Ids of the models selected for comparison. */
  readonly m: readonly string[]
}

export const comparedMax = 4

/** Models on a page of the list. It bounds the size of the page, however many models there are. */
export const pageSize = 50

export const emptyQuery: CatalogQuery = {
  q: '',
  creator: '',
  provider: '',
  tag: [],
  modality: [],
  max_price: '',
  min_context: '',
  routes: '',
  sort: 'used',
  page: '',
  m: [],
}

const textMax = 200

/** Values without a check are free text. */
const checks: Readonly<Record<string, (text: string) => boolean>> = {
  max_price: (text) => parsePrice(text) !== undefined,
  min_context: (text) => /^[1-9][0-9]{0,14}$/.test(text),
  routes: (text) => text === '2',
  sort: (text) => Object.hasOwn(sortNames, text.replace(/^-/, '')),
  page: (text) => /^[1-9][0-9]{0,5}$/.test(text),
}

export function parseQuery(params: URLSearchParams): CatalogQuery {
  const values = Object.entries(emptyQuery).map(([name, empty]) => {
    const texts = params.getAll(name).filter((text) => text !== '' && text.length <= textMax)
    if (typeof empty !== 'string') return [name, [...new Set(texts)].slice(0, name === 'm' ? comparedMax : undefined)]
    const [text = ''] = texts
    return [name, (checks[name]?.(text.trim()) ?? true) ? text : empty]
  })
  return Object.fromEntries(values)
}

/** The query without the question mark; empty for the whole list. */
export function renderQuery(query: CatalogQuery): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (typeof value !== 'string') for (const each of value) params.append(name, each)
    else if (value.trim() !== emptyQuery[name as 'q']) params.set(name, value.trim())
  }
  return params.toString()
}

/** The address of a view of the list. */
export function listPath(query: CatalogQuery): string {
  const text = renderQuery(query)
  return text === '' ? '/' : `/?${text}`
}

/** The first page of the query without filters. */
export function withoutFilters({ sort, m }: CatalogQuery): CatalogQuery {
  return { ...emptyQuery, sort, m }
}

/** Whether the query hides any models. */
export function isFiltered(query: CatalogQuery): boolean {
  return renderQuery({ ...query, sort: 'used', page: '', m: [] }) !== ''
}

export function chosenValues(query: CatalogQuery, name: FacetName): readonly string[] {
  const value = query[name]
  return typeof value === 'string' ? (value === '' ? [] : [value.trim()]) : value
}

/** The first page of the query with the value of a facet chosen, or no longer chosen. */
export function toggleFacet(query: CatalogQuery, name: FacetName, value: string): CatalogQuery {
  const chosen = chosenValues(query, name)
  const isChosen = chosen.includes(value)
  const next = facets[name].isMulti
    ? isChosen
      ? chosen.filter((each) => each !== value)
      : [...chosen, value]
    : isChosen
      ? ''
      : value
  return { ...query, page: '', [name]: next }
}

/** The query with the order of a column; chosen again, the other way round. */
export function toggleSort(query: CatalogQuery, sort: SortKind): CatalogQuery {
  return { ...query, page: '', sort: query.sort === sort ? `-${sort}` : sort }
}

/** The part of the catalog that the list shows. */
export interface ListView {
  /** The models of the page, in the query's order. */
  readonly rows: readonly CatalogEntry[]
  readonly total: number
  readonly matching: number
  /** From 1. */
  readonly page: number
  readonly pages: number
  readonly facets: FacetCounts
}

/**
 * `used` has the most used models first. Unknown prices, contexts and measurements sort last and match no bound.
 */
export function viewOf(entries: readonly CatalogEntry[], query: CatalogQuery, used: readonly string[]): ListView {
  const { matching, counts } = selectEntries(entries, query)
  const sorted = sortEntries(matching, query.sort, used)
  const pages = Math.max(1, Math.ceil(sorted.length / pageSize))
  const page = Math.min(pages, Number(query.page) || 1)
  return {
    rows: sorted.slice((page - 1) * pageSize, page * pageSize),
    total: entries.length,
    matching: sorted.length,
    page,
    pages,
    facets: counts,
  }
}

/**
 * The matching models, and how many models each value of a facet would leave. A facet of which one value applies at a time
 * counts without its own choice, because another value would replace it.
 */
function selectEntries(entries: readonly CatalogEntry[], query: CatalogQuery) {
  const words = query.q.toLowerCase().split(/\s+/).filter(Boolean)
  const chosen = facetNames.map((name) => ({ name, values: chosenValues(query, name), row: facets[name] }))
  const counts = new Map(facetNames.map((name) => [name, new Map<string, number>()]))
  const matching: CatalogEntry[] = []
  for (const entry of entries) {
    if (words.length > 0) {
      const written = `${entry.id} ${entry.name} ${entry.owned_by}`.toLowerCase()
      if (!words.every((word) => written.includes(word))) continue
    }
    const failed = chosen.filter(({ values, row }) => values.some((value) => !row.has(entry, value)))
    if (failed.length === 0) matching.push(entry)
    for (const { name, row } of chosen) {
      const isCounted = failed.length === 0 || (failed.length === 1 && failed[0]?.name === name && !row.isMulti)
      if (isCounted) for (const value of row.valuesOf(entry)) add(counts.get(name), value)
    }
  }
  // A chosen value stays visible, also one that is not among the usual steps.
  for (const { name, values, row } of chosen) {
    for (const value of values) {
      const known = counts.get(name)
      if (known && !known.has(value)) known.set(value, matching.filter((entry) => row.has(entry, value)).length)
    }
  }
  const sorted = [...counts].map(([name, values]) => [name, [...values].sort(facets[name].compare)])
  return { matching, counts: Object.fromEntries(sorted) as FacetCounts }
}

function add(counts: Map<string, number> | undefined, value: string): void {
  counts?.set(value, (counts.get(value) ?? 0) + 1)
}

function sortEntries(
  entries: readonly CatalogEntry[],
  sort: CatalogQuery['sort'],
  used: readonly string[],
): readonly CatalogEntry[] {
  const kind = sort.replace(/^-/, '') as SortKind
  const sign = sort === kind ? 1 : -1
  const ranks = new Map(used.map((id, rank) => [id, rank]))
  const rankOf = kind === 'used' ? ({ id }: CatalogEntry) => ranks.get(id) : sortValues[kind]
  return entries
    .map((entry) => ({ entry, value: rankOf(entry), name: entry.name.toLowerCase() }))
    .sort(
      (a, b) => compareValues(a.value, b.value, sign) || compareTexts(a.name, b.name) || compareIds(a.entry, b.entry),
    )
    .map(({ entry }) => entry)
}

type SortValue = bigint | number | string | undefined

/** Unknown last, whichever way round. */
function compareValues(a: SortValue, b: SortValue, sign: 1 | -1): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  return a === b ? 0 : a < b ? -sign : sign
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

function compareIds(a: CatalogEntry, b: CatalogEntry): number {
  return compareTexts(a.id, b.id)
}

function priceIn({ price }: CatalogEntry, kind: 'input' | 'output'): Pico | undefined {
  return price === null ? undefined : price === 'free' ? (0n as Pico) : parsePrice(price[kind])
}

const negative = (value: number | null | undefined): number | undefined =>
  value === null || value === undefined ? undefined : -value

function measured({ routes }: CatalogEntry, kind: 'first_event_ms' | 'tokens_per_second'): number | undefined {
  const figures = busiestFigures(routes, kind)
  return hasEnoughSamples(figures) ? figures.p50 : undefined
}

/** The lowest is first: what people look for with each order. */
const sortValues: Readonly<Record<Exclude<SortKind, 'used'>, (entry: CatalogEntry) => SortValue>> = {
  name: ({ name }) => name.toLowerCase(),
  blended: blendedPrice,
  price: (entry) => priceIn(entry, 'input'),
  output: (entry) => priceIn(entry, 'output'),
  context: (entry) => negative(entry.context_tokens),
  newest: ({ released }) => (released === null ? undefined : -Date.parse(released)),
  'first-token': (entry) => measured(entry, 'first_event_ms'),
  speed: (entry) => negative(measured(entry, 'tokens_per_second')),
}

/** `42 models from 5 providers`, and how many of them lack a price. */
export function describeEntries(entries: readonly CatalogEntry[]): string {
  const providers = new Set(entries.flatMap(({ routes }) => routes.map(({ provider }) => provider))).size
  const unpriced = entries.filter((entry) => entry.price === null && !isOwnKeyOnly(entry)).length
  const from = `${countOf(entries.length, 'model')} from ${countOf(providers, 'provider')}`
  return unpriced === 0 ? from : `${from}, ${unpriced} without a price`
}
