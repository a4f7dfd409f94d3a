// The model list's search, filters and order. They are kept in the address, so that every view is a link. Invalid values are
// ignored. The server and the page use the same code.

import { type Pico, parsePrice } from '../../kernel/money.ts'
import { type CatalogEntry, sourceFile } from './entry.ts'
import { countOf } from './format.ts'
import { busiestFigures, hasEnoughSamples } from './status.ts'
import { isOwnKeyOnly } from './usable-models.ts'

/** In the order of the menu. */
export const sortNames = {
  name: 'creator and name',
  price: 'input price',
  output: 'output price',
  context: 'context',
  newest: 'newest',
  'first-token': 'latency',
  speed: 'throughput',
} as const

export type SortKind = keyof typeof sortNames

/** By the names in the address, and in their order. Empty = any. */
export interface CatalogQuery {
  /** Words that id, name or creator must contain. */
  readonly q: string
  readonly creator: string
  readonly provider: string
  /** A model must have all of them. */
  readonly tag: readonly string[]
  /** Decimal USD per million input tokens. */
  readonly max_input: string
  /** Tokens. */
  readonly min_context: string
  /** `2` = several. */
  readonly routes: string
  /** `1` = only free models. */
  readonly free: string
  readonly sort: SortKind
  /** Ids of the models selected for comparison. */
  readonly m: readonly string[]
}

export const comparedMax = 4

export const emptyQuery: CatalogQuery = {
  q: '',
  creator: '',
  provider: '',
  tag: [],
  max_input: '',
  min_context: '',
  routes: '',
  free: '',
  sort: 'name',
  m: [],
}

const textMax = 200

/** Values without a check are free text. */
const checks: Readonly<Record<string, (text: string) => boolean>> = {
  max_input: (text) => parsePrice(text) !== undefined,
  min_context: (text) => /^[1-9][0-9]{0,14}$/.test(text),
  routes: (text) => text === '2',
  free: (text) => text === '1',
  sort: (text) => Object.hasOwn(sortNames, text),
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

/** Whether the query hides any models. */
export function isFiltered(query: CatalogQuery): boolean {
  return renderQuery({ ...query, sort: 'name', m: [] }) !== ''
}

/** The matching models in the query's order. Unknown prices, contexts and measurements sort last and match no bound. */
export function selectEntries(entries: readonly CatalogEntry[], query: CatalogQuery): readonly CatalogEntry[] {
  const words = query.q.toLowerCase().split(/\s+/).filter(Boolean)
  const inputMax = parsePrice(query.max_input.trim())
  const wanted = entries.filter((entry) => {
    const written = `${entry.id} ${entry.name} ${entry.owned_by}`.toLowerCase()
    const input = priceIn(entry, 'input')
    return (
      words.every((word) => written.includes(word)) &&
      (query.creator === '' || creatorOf(entry) === query.creator) &&
      (query.provider === '' || entry.routes.some(({ provider }) => provider === query.provider)) &&
      query.tag.every((tag) => entry.tags.includes(tag)) &&
      (inputMax === undefined || (input !== undefined && input <= inputMax)) &&
      (entry.context_tokens ?? 0) >= Number(query.min_context) &&
      (query.routes === '' || entry.routes.length >= 2) &&
      (query.free === '' || entry.price === 'free')
    )
  })
  const compare = orders[query.sort]
  return wanted.sort((a, b) => compare(a, b) || (a.id < b.id ? -1 : 1))
}

export function creatorOf({ id }: Pick<CatalogEntry, 'id'>): string {
  return id.slice(0, id.indexOf('/'))
}

function priceIn({ price }: CatalogEntry, kind: 'input' | 'output'): Pico | undefined {
  return price === null ? undefined : price === 'free' ? (0n as Pico) : parsePrice(price[kind])
}

type Order = (a: CatalogEntry, b: CatalogEntry) => number

/** Lowest first, unknown last. */
const lowest =
  <Value extends bigint | number>(of: (entry: CatalogEntry) => Value | undefined): Order =>
  (a, b) => {
    const [left, right] = [of(a), of(b)]
    if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined)
    return left < right ? -1 : left > right ? 1 : 0
  }

const negative = (value: number | null | undefined): number | undefined =>
  value === null || value === undefined ? undefined : -value

function measured({ routes }: CatalogEntry, kind: 'first_event_ms' | 'tokens_per_second'): number | undefined {
  const figures = busiestFigures(routes, kind)
  return hasEnoughSamples(figures) ? figures.p50 : undefined
}

const orders: Readonly<Record<SortKind, Order>> = {
  name: () => 0,
  price: lowest((entry) => priceIn(entry, 'input')),
  output: lowest((entry) => priceIn(entry, 'output')),
  context: lowest((entry) => negative(entry.context_tokens)),
  newest: lowest(({ released }) => (released === null ? undefined : -Date.parse(released))),
  'first-token': lowest((entry) => measured(entry, 'first_event_ms')),
  speed: lowest((entry) => negative(measured(entry, 'tokens_per_second'))),
}

/** The entries of the menus, sorted. */
export interface Choices {
  readonly creators: readonly string[]
  readonly providers: readonly string[]
  readonly tags: readonly string[]
}

export function choicesOf(entries: readonly CatalogEntry[]): Choices {
  const sorted = (values: Iterable<string>) => [...new Set(values)].sort()
  return {
    creators: sorted(entries.map(creatorOf)),
    providers: sorted(entries.flatMap(({ routes }) => routes.map(({ provider }) => provider))),
    tags: sorted(entries.flatMap(({ tags }) => tags)),
  }
}

/** `42 models from 5 providers; prices: 40 built in, 2026-11-08; 2 set in tollgate.yaml` */
export function describeSources(entries: readonly CatalogEntry[], builtInDate: string | undefined): string {
  const providers = new Set(entries.flatMap(({ routes }) => routes.map(({ provider }) => provider))).size
  const counts = new Map<string, number>()
  for (const { source, price_source, price } of entries) {
    const setter = sourceFile(price_source ?? source)
    if (price !== null) counts.set(setter, (counts.get(setter) ?? 0) + 1)
  }
  const unpriced = entries.filter((entry) => entry.price === null && !isOwnKeyOnly(entry)).length
  const parts = [...counts].map(([source, count]) =>
    source === 'built in'
      ? `${count} built in${builtInDate === undefined ? '' : `, ${builtInDate}`}`
      : `${count} set ${source === 'management API' ? 'by the' : 'in'} ${source}`,
  )
  if (unpriced > 0) parts.push(`${unpriced} without a price`)
  const from = `${countOf(entries.length, 'model')} from ${countOf(providers, 'provider')}`
  return parts.length === 0 ? from : `${from}; prices: ${parts.join('; ')}`
}
