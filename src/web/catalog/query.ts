// What a viewer looks for, kept in the address: every view of the catalog is a link, with or without scripts. Unknown
// or broken values are dropped, never refused.

import { parsePrice } from '../../kernel/money.ts'

/** In the order of the menu. */
export const sortKinds = ['name', 'price', 'output', 'context', 'newest', 'first-token', 'speed'] as const
export type SortKind = (typeof sortKinds)[number]

export interface CatalogQuery {
  /** Words that must all be in id, name or maker. */
  readonly text: string
  readonly creator: string
  readonly provider: string
  /** All of them. */
  readonly tags: readonly string[]
  /** Decimal USD per million input tokens; empty = any. */
  readonly inputMax: string
  /** Tokens; 0 = any. */
  readonly contextMin: number
  readonly severalRoutes: boolean
  readonly free: boolean
  readonly sort: SortKind
  /** Ids of models that are ticked, to be compared. */
  readonly compared: readonly string[]
}

/** So many fit beside each other. */
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

/** The same in the address of the list and of the comparison. */
export function parseCompared(params: URLSearchParams): readonly string[] {
  return [...new Set(params.getAll('m').filter((id) => id !== '' && id.length <= textMax))].slice(0, comparedMax)
}

/** The shortest address of a query, without the question mark; empty for the whole list. */
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

/** Whether anything is left out of the list. */
export function isNarrowed(query: CatalogQuery): boolean {
  return renderQuery({ ...query, sort: 'name', compared: [] }) !== ''
}
