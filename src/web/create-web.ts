// The pages of the gateway: which path shows what, and to whom. It reads the catalog through what it is handed and
// changes nothing but sessions; a path that is not a page's is left to others.

import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { answer, answerAsset, answerEvents, answerHtml, answerJson, redirect } from './answer.ts'
import { type Assets, assetsPath, buildAssets } from './assets.ts'
import { createCatalogPages } from './catalog/catalog-pages.ts'
import { createChangeFeed } from './catalog/change-feed.ts'
import type { CatalogEntry, DatedPrice } from './catalog/entry.ts'
import { recentEntries } from './catalog/recent-entries.ts'
import { createConsolePages } from './console-pages.ts'
import { readCookie, type Visit } from './cookies.ts'
import type { PageBudget } from './page-budget.ts'
import { createPageCopies } from './page-copies.ts'
import { type Show, themeCookie, themes } from './page-data.ts'
import { renderDocument } from './pages.js'
import type { SessionEvent, Sessions } from './session.ts'

export interface WebDependencies {
  readonly clock: Clock
  readonly version: string
  readonly sessions: Sessions
  /** Everything that is sold, by id; the same that the management API's catalog serves. */
  catalog(): readonly CatalogEntry[]
  /** Built-in ones for which a workspace may store a key, by id. */
  keyedProviders(): readonly string[]
  /** Every price that a model had, newest first. */
  priceHistory(modelId: string): Promise<readonly DatedPrice[]>
  /** Whether the catalog is for everybody, or only for who is signed in to the console. */
  isPublic(): boolean
  /** What pages and the catalog may cost. */
  readonly budget: PageBudget
  /** undefined = it cannot be known. */
  addressOf(request: Request): string | undefined
  /** What the operator says the gateway is reached by. */
  publicUrl(): string | undefined
  visitOf(request: Request): Visit
  /** The day of the built-in prices, YYYY-MM-DD. */
  readonly builtInDate?: string
  /** For messages: where the management token is. */
  readonly tokenPlace: string
  /** Refuses a wrong management token, and slows down whoever guesses. */
  checkToken(token: string, request: Request): Promise<Failure | undefined>
  /** Before a link is tried, which may be a guess: slows down or refuses whoever tries many. */
  slowGuess(request: Request): Promise<Failure | undefined>
  /** A session was opened or ended, for the audit log. */
  onSession?(event: SessionEvent): void | Promise<void>
}

export interface Web {
  /** undefined = not a path of a page. */
  handle(request: Request, path: string): Response | Promise<Response> | undefined
  /** What keys and projects can use may be something else now: open pages that show it ask again. */
  accessChanged(): void
  /** Ends the streams of open pages, so that the gateway can stop. */
  close(): void
}

export function createWeb(deps: WebDependencies): Web {
  const { sessions, budget } = deps
  let assets: Promise<Assets> | undefined
  const bundled = (): Promise<Assets> => {
    assets ??= buildAssets()
    return assets
  }
  const render = createPageCopies(renderDocument)
  // Who cannot be looked up is a visitor: prices are shown also while the database is away.
  const isSignedIn = (request: Request): Promise<boolean> =>
    sessions.sessionOf(request).then(
      (session) => session !== undefined && !(session instanceof Failure),
      (thrown: unknown) => {
        if (isStoreUnavailable(thrown)) return false
        throw thrown
      },
    )
  const show: Show = async (request, page, status = 200) => {
    const { url } = await bundled()
    const isOperator = await isSignedIn(request)
    const isConsole = page.kind === 'console' || page.kind === 'sign-in'
    const frame = {
      theme: themes.find((theme) => theme === readCookie(request.headers, themeCookie)) ?? 'system',
      version: deps.version,
      isSignedIn: isOperator,
      styleUrl: url('style'),
      iconUrl: url('icon'),
      scriptUrl: url(isConsole ? 'console' : 'catalog'),
    }
    return await inBudget(request, isOperator, () => answerHtml(request, render(page, frame), status))
  }
  const inBudget = async <Made>(
    request: Request,
    isOperator: boolean,
    make: () => Made,
  ): Promise<Awaited<Made> | Response> =>
    isOperator ? await budget.spendFreely(make) : ((await budget.spend(make)) ?? tooBusy(request))
  const entries = recentEntries(deps.catalog, deps.clock)
  const feed = createChangeFeed({ entries })
  const inTurn = async <Made>(request: Request, make: () => Made): Promise<Awaited<Made> | Response> =>
    await inBudget(request, await isSignedIn(request), make)
  const catalog = createCatalogPages({ ...deps, catalog: entries, isSignedIn, inBudget: inTurn }, show)
  const consolePages = createConsolePages(deps, show)

  const asset = async (request: Request, path: string): Promise<Response> => {
    const found = (await bundled()).find(path)
    return found ? answerAsset(request, found) : answerJson(request, { error: 'no such asset' }, { status: 404 })
  }
  const events = (request: Request): Response => {
    const stream = feed.listen(request.signal, deps.addressOf(request))
    return stream ? answerEvents(stream) : answerJson(request, { error: 'too many listen' }, { status: 503 })
  }
  const catalogPage = (request: Request, path: string): Promise<Response> | undefined => {
    const isOpen = path === '/' || path === '/compare' || path.startsWith('/catalog/')
    return isOpen ? openPage(request, path) : undefined
  }
  const openPage = async (request: Request, path: string): Promise<Response> => {
    if (!deps.isPublic() && !(await isSignedIn(request))) return redirect('/console')
    if (path === '/catalog/events') return events(request)
    return await catalog(request, path)
  }

  return {
    handle(request, path) {
      if (path === '/console' || path.startsWith('/console/')) return consolePages(request, path)
      if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
      return path.startsWith(assetsPath) ? asset(request, path) : catalogPage(request, path)
    },
    accessChanged: () => feed.accessChanged(),
    close: () => feed.close(),
  }
}

function tooBusy(request: Request): Response {
  const body = 'Too many pages are asked for at once. Try again in a moment.\n'
  return answer(request, { status: 503, type: 'text/plain', body, headers: { 'retry-after': '1' } })
}
