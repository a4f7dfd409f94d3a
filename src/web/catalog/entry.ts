// A model as the management API's catalog serves it: it contains no address and nothing of a credential. Visitors see the
// public catalog; a key or a project has its own: the models that GET /v1/models returns, at the prices of its workspace.

import type { CatalogItem, ModelPrice } from '../../api/catalog.ts'
import { type Pico, parsePrice } from '../../kernel/money.ts'

export interface CatalogEntry extends CatalogItem {
  /** Served with the workspace's own provider key; only known where the list is limited to a key or project. */
  readonly own_key?: boolean
}

export type CatalogRoute = CatalogItem['routes'][number]
export type Figures = NonNullable<CatalogRoute['first_event_ms']>
/** How the attempts at a route ended, for each of the last 24 hours, the current one last. null = no attempt. */
export interface RouteDay {
  readonly provider: string
  readonly upstream_model: string
  readonly hours: readonly (readonly [ok: number, failed: number] | null)[]
}

/** How the attempts at a route ended in the last 30 days. */
export interface RouteMonth {
  readonly provider: string
  readonly upstream_model: string
  readonly ok: number
  readonly failed: number
}

/** What the operator pays at a route; null = unknown. Only for operators. */
export interface RouteCost {
  readonly provider: string
  readonly upstream_model: string
  readonly cost: CatalogItem['price']
}

/** A price that applies until the next one. */
export type DatedPrice = ModelPrice['history'][number]

/** The address of a model's page; the id's slash is kept. */
export function modelPath(id: string): string {
  return `/catalog/${id.split('/').map(encodeURIComponent).join('/')}`
}

/** Whether all its routes are the sandbox's. */
export function isSandbox({ routes }: CatalogEntry): boolean {
  return routes.length > 0 && routes.every(({ rehearsal }) => rehearsal)
}

export function creatorOf({ id }: Pick<CatalogEntry, 'id'>): string {
  return id.slice(0, id.indexOf('/'))
}

/** Models that only `/v1/embeddings` serves. */
export function isEmbedder({ tags }: Pick<CatalogEntry, 'tags'>): boolean {
  return tags.includes('embeddings')
}

/** Input tokens for each output token in the blended price. */
export const blendRatio = 3n

/** One price to compare models by: of input and output, three to one. Embeddings have only input. undefined = no price. */
export function blendedPrice(entry: Pick<CatalogEntry, 'price' | 'tags'>): Pico | undefined {
  const { price } = entry
  if (price === null) return undefined
  if (price === 'free') return 0n as Pico
  const [input, output] = [parsePrice(price.input), parsePrice(price.output)]
  if (input === undefined || output === undefined) return undefined
  // Rounded to a millionth of a dollar per million tokens, half up.
  const parts = blendRatio + 1n
  return isEmbedder(entry) ? input : (((blendRatio * input + output + parts / 2n) / parts) as Pico)
}

const newDays = 30
const dayMs = 86_400_000

/** Whether it was released in the last 30 days. Days are `YYYY-MM-DD` in UTC. */
export function isNew({ released }: Pick<CatalogEntry, 'released'>, today: string): boolean {
  if (released === null) return false
  const ageDays = (Date.parse(today) - Date.parse(released)) / dayMs
  return ageDays >= 0 && ageDays <= newDays
}

export function hasNewPrice({ price_changed_at: changed }: CatalogEntry, today: string): boolean {
  return changed?.slice(0, 10) === today
}

/** The catalog with the models that own keys unlock, by id; catalog models that they also serve are marked. */
export function withOwnKeyModels(
  entries: readonly CatalogEntry[],
  own: readonly CatalogEntry[],
): readonly CatalogEntry[] {
  if (own.length === 0) return entries
  const ids = new Set(own.map(({ id }) => id))
  const known = new Set(entries.map(({ id }) => id))
  const more = own.filter(({ id }) => !known.has(id))
  const marked = entries.map((entry) => (ids.has(entry.id) ? { ...entry, callable: true, own_key: true } : entry))
  return [...marked, ...more].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Whether only the workspace's own key serves it, so that its provider bills it. */
export function isOwnKeyOnly({ own_key, routes }: CatalogEntry): boolean {
  return own_key === true && routes.length === 0
}
