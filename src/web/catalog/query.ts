// The model list's search, filters and order. They are kept in the address, so that every view is a link. Invalid values are
// ignored. The server and the page use the same code.

import { type Pico, parsePrice } from '../../kernel/money.ts'
import { type CatalogEntry, sourceFile } from './entry.ts'
import { busiestFigures, hasEnoughSamples } from './status.ts'
import { isOwnKeyOnly } from './usable-models.ts'

/** In the order of the menu. */
const sortKinds = ['name', 'price', 'output', 'context', 'newest', 'first-token', 'speed'] as const
export type SortKind = (typeof sortKinds)[number]

export interface CatalogQuery {
  /** Words that id, name or creator must contain. */
  readonly text: string
  readonly creator: string
  readonly provider: string
  /** A model must have all of them. */
  readonly tags: readonly string[]
  /** Decimal USD per million input tokens; empty = any. */
  readonly inputMax: string
  /** Tokens; 0 = any. */
  readonly contextMin: number
  readonly severalRoutes: boolean
  readonly free: boolean
  readonly sort: SortKind
  /** Ids of the models selected for comparison. */
  readonly compared: readonly string[]
}

export const comparedMax = 4

export const emptyQuery: CatalogQuery = {
  text: '',
  creator: '',
  provider: '',
  tags: [],
  inputMax: '',
  contextMin: 0,
  severalRoutes: false,
  free: false,
  sort: 'name',
  compared: [],
}

const textMax = 200

export function parseQuery(params: URLSearchParams): CatalogQuery {
  const text = (name: string) => (params.get(name) ?? '').slice(0, textMax)
  const inputMax = text('max_input').trim()
  const contextMin = Number(text('min_context'))
  return {
    text: text('q'),
    creator: text('creator'),
    provider: text('provider'),
    tags: [...new Set(params.getAll('tag').filter((tag) => tag !== '' && tag.length <= textMax))],
    inputMax: parsePrice(inputMax) === undefined ? '' : inputMax,
    contextMin: Number.isSafeInteger(contextMin) && contextMin > 0 ? contextMin : 0,
    severalRoutes: text('routes') === '2',
    free: text('free') === '1',
    sort: sortKinds.find((kind) => kind === text('sort')) ?? 'name',
    compared: parseCompared(params),
  }
}

/** In the address of the list and of the comparison. */
export function parseCompared(params: URLSearchParams): readonly string[] {
  return [...new Set(params.getAll('m').filter((id) => id !== '' && id.length <= textMax))].slice(0, comparedMax)
}

/** The query without the question mark; empty for the whole list. */
export function renderQuery(query: CatalogQuery): string {
  const params = new URLSearchParams()
  if (query.text.trim() !== '') params.set('q', query.text.trim())
  if (query.creator !== '') params.set('creator', query.creator)
  if (query.provider !== '') params.set('provider', query.provider)
  for (const tag of query.tags) params.append('tag', tag)
  if (query.inputMax !== '') params.set('max_input', query.inputMax)
  if (query.contextMin > 0) params.set('min_context', String(query.contextMin))
  if (query.severalRoutes) params.set('routes', '2')
  if (query.free) params.set('free', '1')
  if (query.sort !== 'name') params.set('sort', query.sort)
  for (const id of query.compared) params.append('m', id)
  return params.toString()
}

/** Whether the query hides any models. */
export function isFiltered(query: CatalogQuery): boolean {
  return renderQuery({ ...query, sort: 'name', compared: [] }) !== ''
}

/** The matching models in the query's order. Unknown prices, contexts and measurements sort last and match no bound. */
export function selectEntries(entries: readonly CatalogEntry[], query: CatalogQuery): readonly CatalogEntry[] {
  const words = query.text.toLowerCase().split(/\s+/).filter(Boolean)
  const inputMax = query.inputMax === '' ? undefined : parsePrice(query.inputMax)
  const wanted = entries.filter((entry) => {
    const written = `${entry.id} ${entry.name} ${entry.owned_by}`.toLowerCase()
    return (
      words.every((word) => written.includes(word)) &&
      (query.creator === '' || creatorOf(entry) === query.creator) &&
      (query.provider === '' || entry.routes.some(({ provider }) => provider === query.provider)) &&
      query.tags.every((tag) => entry.tags.includes(tag)) &&
      (inputMax === undefined || isAtMost(inputPrice(entry), inputMax)) &&
      (entry.context_tokens ?? 0) >= query.contextMin &&
      (!query.severalRoutes || entry.routes.length >= 2) &&
      (!query.free || entry.price === 'free')
    )
  })
  const compare = orders[query.sort]
  return wanted.sort((a, b) => compare(a, b) || (a.id < b.id ? -1 : 1))
}

export function creatorOf({ id }: Pick<CatalogEntry, 'id'>): string {
  return id.slice(0, id.indexOf('/'))
}

function inputPrice({ price }: CatalogEntry): Pico | undefined {
  return price === null ? undefined : price === 'free' ? (0n as Pico) : parsePrice(price.input)
}

function outputPrice({ price }: CatalogEntry): Pico | undefined {
  return price === null ? undefined : price === 'free' ? (0n as Pico) : parsePrice(price.output)
}

function isAtMost(price: Pico | undefined, max: Pico): boolean {
  return price !== undefined && price <= max
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
  price: lowest(inputPrice),
  output: lowest(outputPrice),
  context: lowest((entry) => negative(entry.context_tokens)),
  newest: lowest(({ released }) => (released === null ? undefined : -Date.parse(released))),
  'first-token': lowest((entry) => measured(entry, 'first_event_ms')),
  speed: lowest((entry) => negative(measured(entry, 'tokens_per_second'))),
}

/** What the menus offer, sorted. */
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
  const from = `${plural(entries.length, 'model')} from ${plural(providers, 'provider')}`
  return parts.length === 0 ? from : `${from}; prices: ${parts.join('; ')}`
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
