// The gateway's pages: which path shows what, and to whom. Changes only sessions.

import { Failure } from '../kernel/failure.ts'
import { Answer } from '../pipeline/answer.ts'
import { type ClientRequest, queryOf } from '../pipeline/client-request.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import type { Principal } from '../tenancy/principal.ts'
import { type Assets, assetsPath, buildAssets } from './assets.ts'
import { type CatalogPagesDependencies, cacheEntries, createCatalogPages } from './catalog/catalog-pages.ts'
import { createChangeFeed } from './catalog/change-feed.ts'
import { type ConsolePagesDependencies, createConsolePages } from './console-pages.ts'
import { createDocs } from './docs-pages.ts'
import type { PageBudget } from './page-budget.ts'
import { isConsoleKind, themeCookie, themes } from './page-data.ts'
import { renderDocument } from './pages.js'
import { assetAnswer, eventsAnswer, htmlAnswer, jsonAnswer, pageAnswer, redirect, type ShowPage } from './responses.ts'
import { readCookie } from './session.ts'

export interface WebDependencies
  extends ConsolePagesDependencies,
    Omit<CatalogPagesDependencies, 'viewerOf' | 'inBudget'> {
  readonly version: string
  /** Another object once anything on sale has changed, prices in price lists included. */
  offered(): unknown
  /** Whether the catalog is visible without signing in. */
  isPublic(): boolean
  readonly budget: PageBudget
  /** undefined = unknown. */
  addressOf(request: ClientRequest): string | undefined
}

export interface Web {
  /** For people: what is at this address, which nothing serves. */
  notFound(request: ClientRequest): Promise<Answer>
  /** undefined = not a path of a page. */
  handle(request: ClientRequest, path: string): Promise<Answer | undefined>
  /** Access of keys and projects may have changed: open pages load it again. */
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
  // Without the database everyone is a visitor, so that prices stay visible.
  const viewerOf = (request: ClientRequest): Promise<Principal | undefined> =>
    sessions.sessionOf(request).then(
      (session) => (session instanceof Failure ? undefined : session),
      (thrown: unknown) => {
        if (isStoreUnavailable(thrown)) return undefined
        throw thrown
      },
    )
  const isSignedIn = async (request: ClientRequest): Promise<boolean> => (await viewerOf(request)) !== undefined
  /** Only operators are served beyond the budget: anyone may have an account where sign-up is open. */
  const isOperated = async (request: ClientRequest): Promise<boolean> => (await viewerOf(request))?.isOperator === true
  const show: ShowPage = async (request, page, status = 200) => {
    const { url } = await bundled()
    const viewer = await viewerOf(request)
    const isConsole = isConsoleKind(page.kind)
    const frame = {
      theme: themes.find((theme) => theme === readCookie(request.headers, themeCookie)) ?? 'system',
      version: deps.version,
      isSignedIn: viewer !== undefined,
      styleUrl: url('style'),
      iconUrl: url('icon'),
      fontUrls: [url('sans'), url('mono')],
      scriptUrl: url(isConsole ? 'console' : 'catalog'),
      ...(isConsole && { chartUrl: url('chart') }),
    }
    const answer = await inBudget(request, viewer?.isOperator === true, () =>
      htmlAnswer(request, renderDocument(page, frame), status),
    )
    if (isConsole) answer.headers['cache-control'] = 'no-store'
    if (deps.visitOf(request).isSecure) answer.headers['strict-transport-security'] = 'max-age=31536000'
    return answer
  }
  const inBudget = async <Result>(
    request: ClientRequest,
    isOperator: boolean,
    run: () => Result,
  ): Promise<Awaited<Result> | Answer> =>
    isOperator ? await budget.spendFreely(run) : ((await budget.spend(run)) ?? tooBusy(request))
  const entries = cacheEntries(deps.catalog, deps.clock)
  const feed = createChangeFeed({ entries, offered: deps.offered })
  const inViewersBudget = async <Result>(
    request: ClientRequest,
    run: () => Result,
  ): Promise<Awaited<Result> | Answer> => await inBudget(request, await isOperated(request), run)
  const catalog = createCatalogPages({ ...deps, catalog: entries, viewerOf, inBudget: inViewersBudget }, show)
  const consolePages = createConsolePages(deps, show)
  const docs = createDocs(deps.version)
  const notFound = (request: ClientRequest) =>
    show(request, { kind: 'notice', title: 'Page not found', data: noSuchPage }, 404)
  const docsPage = async (request: ClientRequest, path: string): Promise<Answer> => {
    const { groups, find } = await docs()
    // For the console's command palette.
    if (path === '/docs/pages.json') return jsonAnswer(request, { groups })
    const found = await inViewersBudget(request, () => ({ page: find(path, queryOf(request.url)) }))
    if (found instanceof Answer) return found
    const { page } = found
    return page ? await show(request, page) : await notFound(request)
  }

  const asset = async (request: ClientRequest, path: string): Promise<Answer> => {
    const found = (await bundled()).find(path)
    return found ? assetAnswer(request, found) : jsonAnswer(request, { error: 'asset not found' }, { status: 404 })
  }
  const events = (request: ClientRequest): Answer => {
    const stream = feed.listen(deps.addressOf(request))
    return stream ? eventsAnswer(stream) : jsonAnswer(request, { error: 'too many listeners' }, { status: 503 })
  }
  const catalogPage = async (request: ClientRequest, path: string): Promise<Answer> => {
    if (!deps.isPublic() && !(await isSignedIn(request))) return redirect('/console')
    if (path === '/catalog/events') return events(request)
    return await catalog(request, path)
  }

  return {
    notFound,
    async handle(request, path) {
      if (path === '/console' || path.startsWith('/console/')) return await consolePages(request, path)
      if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
      if (path.startsWith(assetsPath)) return await asset(request, path)
      if (path === '/docs' || path.startsWith('/docs/')) return await docsPage(request, path)
      const isCatalog = path === '/' || path === '/compare' || path.startsWith('/catalog/')
      return isCatalog ? await catalogPage(request, path) : undefined
    },
    accessChanged: () => feed.accessChanged(),
    close: () => feed.close(),
  }
}

const noSuchPage = {
  title: 'Page not found',
  text: 'This gateway has no page at this address.',
  links: [
    { href: '/', label: 'Models' },
    { href: '/docs', label: 'Documentation' },
    { href: '/console', label: 'Console' },
  ],
} as const

function tooBusy(request: ClientRequest): Answer {
  const body = 'The gateway is busy. Try again in a moment.\n'
  return pageAnswer(request, { status: 503, type: 'text/plain', body, headers: { 'retry-after': '1' } })
}
