// The pages of the catalog, made from what is sold at this moment: the list, one model, a comparison, and what open pages
// ask for as JSON. Whether the viewer may see them was decided before.

import { nearestNames } from '../../kernel/nearest.ts'
import { answerJson } from '../answer.ts'
import { originOf, type Visit } from '../cookies.ts'
import type { NoticeData, Show } from '../page-data.ts'
import { stateOf } from './change-feed.ts'
import { type CatalogEntry, type DatedPrice, modelPath } from './entry.ts'
import { parseCompared, parseQuery } from './query.ts'
import { recentHistories } from './recent-histories.ts'
import { parseSample } from './shown-price.ts'
import { snippetsFor } from './snippets.ts'

export interface CatalogPagesDependencies {
  catalog(): readonly CatalogEntry[]
  keyedProviders(): readonly string[]
  publicUrl(): string | undefined
  visitOf(request: Request): Visit
  readonly builtInDate?: string
  /** Of one model, newest first; none for a model that is not there. */
  priceHistory(modelId: string): Promise<readonly DatedPrice[]>
  isSignedIn(request: Request): Promise<boolean>
  /** Makes something when its turn has come, or an answer that says that too many ask. */
  inBudget<Made>(request: Request, make: () => Made): Promise<Awaited<Made> | Response>
}

const suggestionsMax = 3

export function createCatalogPages(deps: CatalogPagesDependencies, show: Show) {
  const { catalog, publicUrl, visitOf, builtInDate, inBudget } = deps
  const historyIn = recentHistories(deps.priceHistory)
  // In a turn, because it may be read on this thread; wrapped, because nobody in line waits for a database.
  const historyFor = async (request: Request, entries: readonly CatalogEntry[], id: string) => {
    const begun = await inBudget(request, () => ({ history: historyIn(entries, id) }))
    return begun instanceof Response ? begun : await begun.history
  }
  // Reads all of the catalog, so once for each turn of it. Always of the entries that are shown: a page that names a later
  // turn than it shows would take the change for seen.
  let named: { readonly entries: readonly CatalogEntry[]; readonly state: string } | undefined
  const stateIn = (entries: readonly CatalogEntry[]): string => {
    if (named?.entries !== entries) named = { entries, state: stateOf(entries) }
    return named.state
  }
  const list = async (request: Request, params: URLSearchParams): Promise<Response> => {
    const entries = catalog()
    const isSignedIn = await deps.isSignedIn(request)
    const shared = { entries, state: stateIn(entries), query: parseQuery(params), isSignedIn }
    const data = builtInDate === undefined ? shared : { ...shared, builtInDate }
    return await show(request, { kind: 'list', title: 'Catalog', data })
  }
  const model = async (request: Request, id: string, params: URLSearchParams): Promise<Response> => {
    const entries = catalog()
    const entry = entries.find((each) => each.id === id)
    if (!entry) return show(request, { kind: 'notice', title: 'No such model', data: unknownModel(id, entries) }, 404)
    const snippets = snippetsFor({
      address: publicUrl() ?? originOf(visitOf(request)),
      modelId: id,
      maxOutputTokens: entry.max_output_tokens ?? undefined,
    })
    const history = await historyFor(request, entries, id)
    if (history instanceof Response) return history
    const data = { entry, state: stateIn(entries), sample: parseSample(params), snippets, history }
    return show(request, { kind: 'model', title: entry.name, data })
  }
  const compare = (request: Request, params: URLSearchParams): Promise<Response> => {
    const entries = catalog()
    const found = parseCompared(params).flatMap((id) => entries.find((entry) => entry.id === id) ?? [])
    const data = { entries: found, state: stateIn(entries), sample: parseSample(params) }
    return show(request, { kind: 'compare', title: 'Compare', data })
  }

  const everything = (request: Request): Response => {
    const entries = catalog()
    return answerJson(request, { state: stateIn(entries), entries })
  }

  /** For pages that are open when a price changes. */
  const history = async (request: Request, params: URLSearchParams): Promise<Response> => {
    const found = await historyFor(request, catalog(), params.get('model') ?? '')
    return found instanceof Response ? found : answerJson(request, { history: found })
  }

  return (request: Request, path: string): Promise<Response> | Response => {
    const params = URL.parse(request.url, 'http://gate')?.searchParams ?? new URLSearchParams()
    if (path === '/') return list(request, params)
    if (path === '/compare') return compare(request, params)
    if (path === '/catalog/entries') {
      return inBudget(request, () => everything(request))
    }
    if (path === '/catalog/history') return history(request, params)
    if (path === '/catalog/providers') return answerJson(request, { providers: deps.keyedProviders() })
    return model(request, decodePath(path.slice('/catalog/'.length)), params)
  }
}

function decodePath(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    // Not a percent-encoding, and then not an id either.
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
    title: 'No such model',
    text: `This gateway sells no model called ${id.slice(0, 200)}.${near.length > 0 ? ' Did you mean one of these?' : ''}`,
    links: [...near.map((each) => ({ href: modelPath(each), label: each })), { href: '/', label: 'The whole catalog' }],
  }
}
