// The pages of the catalog: the list, one model, a comparison, and the JSON that open pages load. The caller has already
// decided that the viewer may see them.

import { type Clock, isoTime } from '../../kernel/clock.ts'
import { nearestNames } from '../../kernel/nearest.ts'
import { Answer } from '../../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../../pipeline/client-request.ts'
import type { NoticeData } from '../page-data.ts'
import { jsonAnswer, type ShowPage } from '../responses.ts'
import { originOf, type Visit } from '../session.ts'
import { stateOf } from './change-feed.ts'
import { type CatalogEntry, type DatedPrice, isEmbedder, modelPath, type RouteDay } from './entry.ts'
import { describeSources, parseQuery, viewOf } from './query.ts'
import { parseSample } from './sample-cost.ts'
import { snippetsFor } from './snippets.ts'

export interface CatalogPagesDependencies {
  readonly clock: Clock
  /** All models by id, as the management API's catalog serves them. */
  catalog(): readonly CatalogEntry[]
  /** Ids of the built-in providers for which a workspace may store a key. */
  keyedProviders(): readonly string[]
  /** The gateway's public address, if configured. */
  publicUrl(): string | undefined
  visitOf(request: ClientRequest): Visit
  /** The date of the built-in prices, YYYY-MM-DD. */
  readonly builtInDate?: string
  /** Newest first; empty for an unknown model. */
  priceHistory(modelId: string): Promise<readonly DatedPrice[]>
  /** How the attempts at the routes of a model ended in the last 24 hours. */
  routeDays(modelId: string): Promise<readonly RouteDay[]>
  /** Ids of the models with the most requests in the last days, first the most used. */
  usedModels(): Promise<readonly string[]>
  isSignedIn(request: ClientRequest): Promise<boolean>
  /** Runs within the page budget; an Answer says that the gateway is too busy. */
  inBudget<Result>(request: ClientRequest, run: () => Result): Promise<Awaited<Result> | Answer>
}

const suggestionsMax = 3

export function createCatalogPages(deps: CatalogPagesDependencies, show: ShowPage) {
  const { catalog, publicUrl, visitOf, builtInDate, inBudget } = deps
  const historyIn = cachePriceHistory(deps.priceHistory)
  const usedModels = cacheLists(deps.usedModels, deps.clock)
  const routeDays = cacheLists(deps.routeDays, deps.clock)
  const today = () => isoTime(deps.clock.now()).slice(0, 10)
  const list = async (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const entries = catalog()
    const isSignedIn = await deps.isSignedIn(request)
    const used = await usedModels('')
    const asked = parseQuery(params)
    // Unknown models would take up places in the comparison.
    const query = { ...asked, m: asked.m.filter((id) => entries.some((entry) => entry.id === id)) }
    const view = await inBudget(request, () => viewOf(entries, query, used))
    if (view instanceof Answer) return view
    const data = {
      view,
      state: stateOf(entries),
      sources: describeSources(entries, builtInDate),
      today: today(),
      query,
      used,
      isSignedIn,
      ...(builtInDate !== undefined && { builtInDate }),
    }
    return await show(request, { kind: 'list', title: 'Models', data })
  }
  const model = async (request: ClientRequest, id: string, params: URLSearchParams): Promise<Answer> => {
    const entries = catalog()
    const entry = entries.find((each) => each.id === id)
    if (!entry) return show(request, { kind: 'notice', title: 'Model not found', data: unknownModel(id, entries) }, 404)
    const snippets = snippetsFor({
      address: publicUrl() ?? originOf(visitOf(request)),
      modelId: id,
      maxOutputTokens: entry.max_output_tokens ?? undefined,
      isEmbedder: isEmbedder(entry),
    })
    // Started within the budget, because SQLite reads on this thread; wrapped in an object, so that the budget does not wait
    // for the database.
    const started = await inBudget(request, () => ({ history: historyIn(entries, id), days: routeDays(id) }))
    if (started instanceof Answer) return started
    const [history, days] = await Promise.all([started.history, started.days])
    const data = {
      entry,
      state: stateOf(entries),
      sample: parseSample(params),
      snippets,
      history,
      days,
      today: today(),
    }
    return show(request, { kind: 'model', title: entry.name, data })
  }
  const compare = (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const entries = catalog()
    const found = parseQuery(params).m.flatMap((id) => entries.find((entry) => entry.id === id) ?? [])
    const data = { entries: found, state: stateOf(entries), sample: parseSample(params), today: today() }
    return show(request, { kind: 'compare', title: 'Compare', data })
  }

  const allEntries = (request: ClientRequest): Answer => {
    const entries = catalog()
    return jsonAnswer(request, { state: stateOf(entries), entries })
  }

  /** Loaded by open pages when a price changes. */
  const history = async (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const started = await inBudget(request, () => ({ history: historyIn(catalog(), params.get('model') ?? '') }))
    return started instanceof Answer ? started : jsonAnswer(request, { history: await started.history })
  }

  return async (request: ClientRequest, path: string): Promise<Answer> => {
    const params = queryOf(request.url)
    if (path === '/') return await list(request, params)
    if (path === '/compare') return await compare(request, params)
    if (path === '/catalog/entries') return await inBudget(request, () => allEntries(request))
    if (path === '/catalog/history') return await history(request, params)
    if (path === '/catalog/providers') return jsonAnswer(request, { providers: deps.keyedProviders() })
    return await model(request, decodePath(path.slice('/catalog/'.length)), params)
  }
}

function decodePath(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    // Invalid percent-encoding; no model has such an id.
    return encoded
  }
}

function unknownModel(id: string, entries: readonly CatalogEntry[]): NoticeData {
  const near = nearestNames(
    id,
    entries.map((entry) => entry.id),
    suggestionsMax,
  )
  return {
    title: 'Model not found',
    text: `${id.slice(0, 200)} isn’t on this gateway.${near.length > 0 ? ' Did you mean one of these?' : ''}`,
    links: [...near.map((each) => ({ href: modelPath(each), label: each })), { href: '/', label: 'All models' }],
  }
}

const freshMs = 900

/**
 * A snapshot of the catalog, read at most once a second. Shorter than the change feed's interval: a page that was notified
 * of a change never gets the old entries.
 */
export function cacheEntries(read: () => readonly CatalogEntry[], clock: Clock): () => readonly CatalogEntry[] {
  let entries: readonly CatalogEntry[] = []
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock.monotonicMs()
    if (now - readAt < freshMs) return entries
    entries = read()
    readAt = now
    return entries
  }
}

/**
 * Price histories, read once per snapshot of the catalog: SQLite answers on the thread that serves requests. A changed price
 * makes a new snapshot. Empty for a model that is not in it.
 */
export function cachePriceHistory(
  read: CatalogPagesDependencies['priceHistory'],
): (entries: readonly CatalogEntry[], modelId: string) => Promise<readonly DatedPrice[]> {
  const bySnapshot = new WeakMap<readonly CatalogEntry[], Map<string, Promise<readonly DatedPrice[]>>>()
  return (entries, modelId) => {
    const known = bySnapshot.get(entries) ?? new Map<string, Promise<readonly DatedPrice[]>>()
    bySnapshot.set(entries, known)
    const cached = known.get(modelId)
    if (cached) return cached
    if (!entries.some(({ id }) => id === modelId)) return Promise.resolve([])
    const started = read(modelId)
    known.set(modelId, started)
    // Failures are not cached.
    started.catch(() => known.delete(modelId))
    return started
  }
}

const figuresFreshMs = 60_000

/** Lists that are read once a minute for each key. Without the database the last known one stays. */
export function cacheLists<Item>(
  read: (key: string) => Promise<readonly Item[]>,
  clock: Clock,
): (key: string) => Promise<readonly Item[]> {
  const known = new Map<string, { readonly at: number; readonly list: Promise<readonly Item[]> }>()
  return (key) => {
    const now = clock.monotonicMs()
    const before = known.get(key)
    if (before && now - before.at < figuresFreshMs) return before.list
    const list = read(key).catch(() => before?.list ?? [])
    known.set(key, { at: now, list })
    return list
  }
}
