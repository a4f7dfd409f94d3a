// The models a query asks for, in its order. Pure: the server uses it for the page it sends, and the page for every key
// that is pressed. What is unknown (a price, a context, a measurement) never wins a comparison.

import { type Pico, parsePrice } from '../../kernel/money.ts'
import { type CatalogEntry, sourceFile } from './entry.ts'
import type { CatalogQuery, SortKind } from './query.ts'
import { isPrivate } from './seen-entries.ts'
import { busiest, isTelling } from './standing.ts'

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

/** The lowest first, what is unknown last. */
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
  const figures = busiest(routes, kind)
  return isTelling(figures) ? figures.p50 : undefined
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

/** What the menus offer; each in the order of the alphabet. */
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

/** Where the prices come from, in one line. */
export function describeSources(entries: readonly CatalogEntry[], builtInDate: string | undefined): string {
  const providers = new Set(entries.flatMap(({ routes }) => routes.map(({ provider }) => provider))).size
  const counts = new Map<string, number>()
  for (const { source, price_source, price } of entries) {
    const setter = sourceFile(price_source ?? source)
    if (price !== null) counts.set(setter, (counts.get(setter) ?? 0) + 1)
  }
  const unpriced = entries.filter((entry) => entry.price === null && !isPrivate(entry)).length
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
