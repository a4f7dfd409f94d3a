// The pages of the catalog: the list, one model, a comparison, and the JSON that open pages load. The caller has already
// decided that the viewer may see them.

import { type Clock, isoTime } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/failure.ts'
import { nearestNames } from '../../kernel/nearest.ts'
import { Answer } from '../../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../../pipeline/client-request.ts'
import type { CatalogViewer, NoticeData } from '../page-data.ts'
import { jsonAnswer, type ShowPage } from '../responses.ts'
import { originOf, type Visit } from '../session.ts'
import { stateOf } from './change-feed.ts'
import {
  type CatalogEntry,
  type DatedPrice,
  isEmbedder,
  isSandbox,
  modelPath,
  type RouteCost,
  type RouteDay,
  type RouteMonth,
} from './entry.ts'
import { describeEntries, parseQuery, viewOf } from './query.ts'
import { parseSample } from './sample-cost.ts'
import { snippetsFor } from './snippets.ts'
import { createViewedCatalogs, type ViewedCatalogDependencies } from './viewed-catalog.ts'

export interface CatalogPagesDependencies extends ViewedCatalogDependencies {
  readonly clock: Clock
  /** Ids of the built-in providers for which a workspace may store a key. */
  keyedProviders(): readonly string[]
  /** The gateway's public address, if configured. */
  publicUrl(): string | undefined
  visitOf(request: ClientRequest): Visit
  /** Newest first; empty for an unknown model. The id may be that of a price in a list: `creator/model#list-retail`. */
  priceHistory(modelId: string): Promise<readonly DatedPrice[]>
  /** How the attempts at the routes of a model ended in the last 24 hours. */
  routeDays(modelId: string): Promise<readonly RouteDay[]>
  /** The same for the last 30 days. */
  routeMonths(modelId: string): Promise<readonly RouteMonth[]>
  /** What the operator pays at the routes of a model. */
  routeCosts(modelId: string): readonly RouteCost[]
  /** Ids of the models with the most requests in the last days, first the most used. */
  usedModels(): Promise<readonly string[]>
  /** Runs within the page budget; an Answer says that the gateway is too busy. */
  inBudget<Result>(request: ClientRequest, run: () => Result): Promise<Awaited<Result> | Answer>
}

const suggestionsMax = 3

export function createCatalogPages(deps: CatalogPagesDependencies, show: ShowPage) {
  const { catalog, publicUrl, visitOf, inBudget } = deps
  const historyIn = cachePriceHistory(deps.priceHistory)
  const usedModels = cacheLists(deps.usedModels, deps.clock)
  const routeDays = cacheLists(deps.routeDays, deps.clock)
  const routeMonths = cacheLists(deps.routeMonths, deps.clock)
  const viewed = createViewedCatalogs(deps)
  const today = () => isoTime(deps.clock.now()).slice(0, 10)
  const list = async (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const { viewer, entries, snapshot } = await viewed.ofViewer(request)
    const used = usedBy(viewer, entries, await usedModels(''))
    const asked = parseQuery(params)
    // Unknown models would take up places in the comparison.
    const query = { ...asked, m: asked.m.filter((id) => entries.some((entry) => entry.id === id)) }
    const view = await inBudget(request, () => viewOf(entries, query, used))
    if (view instanceof Answer) return view
    const data = {
      view,
      viewer,
      state: stateOf(snapshot),
      summary: describeEntries(entries),
      today: today(),
      query,
      used,
    }
    return await show(request, { kind: 'list', title: 'Models', data })
  }
  const model = async (request: ClientRequest, id: string, params: URLSearchParams): Promise<Answer> => {
    const { viewer, entries, snapshot } = await viewed.ofViewer(request)
    const found = entries.find((each) => each.id === id)
    const entry = found ?? snapshot.find((each) => each.id === id)
    if (!entry) return show(request, { kind: 'notice', title: 'Model not found', data: unknownModel(id, entries) }, 404)
    const snippets = snippetsFor({
      address: publicUrl() ?? originOf(visitOf(request)),
      modelId: id,
      maxOutputTokens: entry.max_output_tokens ?? undefined,
      isEmbedder: isEmbedder(entry),
    })
    // Started within the budget, because SQLite reads on this thread; wrapped in an object, so that the budget does not wait
    // for the database.
    const started = await inBudget(request, () => ({ history: historyIn(snapshot, entry), days: routeDays(id) }))
    if (started instanceof Answer) return started
    const [history, days] = await Promise.all([started.history, started.days])
    const data = {
      viewer,
      entry,
      isOutside: found === undefined,
      state: stateOf(snapshot),
      sample: parseSample(params),
      snippets,
      history,
      days,
      ...((await deps.viewerOf(request))?.isOperator && { costs: deps.routeCosts(id) }),
      today: today(),
    }
    return show(request, { kind: 'model', title: entry.name, data })
  }
  const compare = async (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const { viewer, entries, snapshot } = await viewed.ofViewer(request)
    const found = parseQuery(params).m.flatMap((id) => entries.find((entry) => entry.id === id) ?? [])
    const data = { viewer, entries: found, state: stateOf(snapshot), sample: parseSample(params), today: today() }
    return await show(request, { kind: 'compare', title: 'Compare', data })
  }

  const allEntries = async (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const entries = await viewed.ofRequest(request, params.get('project'))
    if (entries instanceof Failure) return refusal(request, entries)
    return await inBudget(request, () => jsonAnswer(request, { state: stateOf(catalog()), entries }))
  }

  /** Loaded by open pages: the first one reads a month of the request log. */
  const uptime = async (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const id = params.get('model') ?? ''
    const isKnown = catalog().some((entry) => entry.id === id)
    const started = await inBudget(request, () => ({ routes: isKnown ? routeMonths(id) : [] }))
    return started instanceof Answer ? started : jsonAnswer(request, { routes: await started.routes })
  }

  /** Loaded by open pages when a price changes. */
  const history = async (request: ClientRequest, params: URLSearchParams): Promise<Answer> => {
    const entries = await viewed.ofRequest(request, params.get('project'))
    if (entries instanceof Failure) return refusal(request, entries)
    const entry = entries.find(({ id }) => id === params.get('model'))
    const started = await inBudget(request, () => ({ history: entry ? historyIn(catalog(), entry) : [] }))
    return started instanceof Answer ? started : jsonAnswer(request, { history: await started.history })
  }

  return async (request: ClientRequest, path: string): Promise<Answer> => {
    const params = queryOf(request.url)
    if (path === '/') return await list(request, params)
    if (path === '/compare') return await compare(request, params)
    if (path === '/catalog/entries') return await allEntries(request, params)
    if (path === '/catalog/history') return await history(request, params)
    if (path === '/catalog/uptime') return await uptime(request, params)
    if (path === '/catalog/providers') return jsonAnswer(request, { providers: deps.keyedProviders() })
    return await model(request, decodePath(path.slice('/catalog/'.length)), params)
  }
}

/** Visitors do not come for the sandbox, which only rehearses. */
function usedBy(viewer: CatalogViewer, entries: readonly CatalogEntry[], used: readonly string[]): readonly string[] {
  if (viewer.isSignedIn || entries.every(isSandbox)) return used
  const rehearsals = new Set(entries.filter(isSandbox).map(({ id }) => id))
  return used.filter((id) => !rehearsals.has(id))
}

function refusal(request: ClientRequest, failure: Failure): Answer {
  return jsonAnswer(request, { error: { message: failure.message } }, { status: failure.status })
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
 * Price histories in the catalog or in the price list of the entry's price, read once per snapshot of the public catalog:
 * SQLite answers on the thread that serves requests. A changed price makes a new snapshot.
 */
export function cachePriceHistory(
  read: CatalogPagesDependencies['priceHistory'],
): (
  snapshot: readonly CatalogEntry[],
  entry: Pick<CatalogEntry, 'id' | 'price_version'>,
) => Promise<readonly DatedPrice[]> {
  const bySnapshot = new WeakMap<readonly CatalogEntry[], Map<string, Promise<readonly DatedPrice[]>>>()
  return (snapshot, { id, price_version: version }) => {
    const known = bySnapshot.get(snapshot) ?? new Map<string, Promise<readonly DatedPrice[]>>()
    bySnapshot.set(snapshot, known)
    // `creator/model#list-retail#3` is a version of the price in that list.
    const pricedId = version?.replace(/#\d+$/, '') ?? id
    const cached = known.get(pricedId)
    if (cached) return cached
    const started = read(pricedId)
    known.set(pricedId, started)
    // Failures are not cached.
    started.catch(() => known.delete(pricedId))
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
