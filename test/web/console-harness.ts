// A real gateway and a signed-in browser for the tests of the console, with the management API to prepare what a page shows.

import { expect } from 'bun:test'
import type { Browser, BrowserContext, Page, ViewportSize } from 'playwright-core'
import { post } from '../parts/ask.ts'
import { browserTest, openBrowser, openContext, type WatchedPage, watchPage } from '../parts/browser.ts'
import { type Gateway, type GatewayOptions, startGateway } from '../parts/gateway.ts'
import { adminHeaders, adminToken, callManagement } from '../parts/manage.ts'

export interface Made {
  readonly id: string
  readonly secret: string
}

export interface OpenedConsole extends Omit<WatchedPage, 'close' | 'reports'> {
  readonly workspace: Made & { readonly name: string }
  readonly project: Made
  readonly key: Made
  /** Failed requests with this status are expected. */
  allow(status: number): void
}

export interface ConsoleHarness {
  readonly gateway: Gateway
  /** The management token. */
  readonly token: string
  /** Calls the management API with the management token; throws on an error. */
  manage(call: string, body?: object, headers?: Record<string, string>): Promise<Made>
  /** The id of the workspace that every installation starts with. */
  readonly firstWorkspaceId: string
  /** The page of someone who opens an invitation in a separate browser and accepts it. */
  accept(link: string, name: string, password: string): Promise<WatchedPage>
  /** The models that GET /v1/models lists for a key, by id. */
  modelsOf(secret: string): Promise<readonly { readonly id: string; readonly own_key?: boolean }[]>
  readonly browser: Browser | undefined
  /**
   * A signed-in page. All pages of a harness share a browser context, which costs half as much
   * as a context for each; `context` is for a page that must not share cookies.
   */
  signIn(path?: string, options?: { viewport?: ViewportSize; context?: BrowserContext }): Promise<WatchedPage>
  /**
   * A test on a page of the console, in its own workspace with a project `web`, a key `ci` and 5 dollars. Its name starts
   * with the page's: `keys: …`. The browser must report nothing but what the test allows.
   */
  test(name: string, run: (opened: OpenedConsole) => Promise<void>): void
  /** Calls a model, sandbox/echo by default, and returns the status. */
  call(secret: string, client?: string, model?: string): Promise<number>
  /** Calls a model and returns the request's id. `secret` is the gateway's first key by default. */
  ask(model: string, more?: object, client?: string, secret?: string): Promise<string>
  stop(): Promise<void>
}

export async function startConsole({
  config,
  env,
  ...more
}: Pick<GatewayOptions, 'config' | 'env' | 'stripeUrl' | 'clock'> = {}): Promise<ConsoleHarness> {
  const browser = await openBrowser()
  const gateway = await startGateway({
    env: { ANTHROPIC_API_KEY: 'not-a-key', ...env },
    ...(config !== undefined && { config }),
    ...more,
  })
  const { url } = gateway
  const token = adminToken(gateway.dataFolder)
  const chat = async (secret: string, body: object, client: string): Promise<Response> => {
    const messages = [{ role: 'user', content: 'hello from the other side' }]
    const path = '/v1/chat/completions'
    const response = await post({ url, key: secret }, path, { messages, ...body }, { 'user-agent': client })
    await response.text()
    return response
  }
  const manage: ConsoleHarness['manage'] = async (call, body, more = {}) => {
    const [method = '', path = ''] = call.split(' ')
    const headers = { ...adminHeaders(gateway.dataFolder), ...more }
    return JSON.parse(await callManagement(url, headers, [method, path, body]))
  }
  /** A new session's cookie, as the sign-in page gets it. */
  const sessionCookie = async () => {
    const headers = { origin: url, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
    const response = await fetch(`${url}/console/session`, { method: 'POST', headers, body: JSON.stringify({ token }) })
    const [name = '', value = ''] = response.headers.get('set-cookie')?.split(';')[0]?.split('=') ?? []
    return { name, value, url }
  }
  let shared: BrowserContext | undefined
  const signIn: ConsoleHarness['signIn'] = async (path = '/console', { viewport, context } = {}) => {
    // Skeletons that shimmer while a page loads take a fifth of its time.
    if (!context) shared ??= await openContext(browser, { reducedMotion: 'reduce' }, `${url}/healthz`)
    const used = context ?? (shared as BrowserContext)
    await used.clearCookies()
    await used.addCookies([await sessionCookie()])
    const opened = await watchPage(used)
    const { page, go } = opened
    if (viewport) await page.setViewportSize(viewport)
    await go(url + path)
    if (path.startsWith('/console')) await page.waitForSelector('.console')
    const close = async () => {
      // The time zone is kept there.
      await page.evaluate('localStorage.clear()')
      await page.close()
    }
    return { ...opened, close }
  }
  const workspaces: unknown = await manage('GET /api/workspaces')
  const [first] = (workspaces as { data: readonly Made[] }).data
  return {
    gateway,
    browser,
    token,
    manage,
    signIn,
    firstWorkspaceId: first?.id ?? '',
    async accept(link, name, password) {
      const opened = await watchPage(await openContext(browser, { reducedMotion: 'reduce' }))
      const { page, go } = opened
      await go(link.replace(/^http:\/\/[^/]+/, url))
      await field(page, 'Your name').fill(name)
      await field(page, 'Choose a password').fill(password)
      await button(page, 'Accept and sign in').click()
      await page.waitForSelector('.console')
      return opened
    },
    async modelsOf(secret) {
      const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })
      const { data } = (await response.json()) as { data: { id: string; own_key?: boolean }[] }
      return data.sort((a, b) => (a.id < b.id ? -1 : 1))
    },
    test(name, run) {
      browserTest(name, async () => {
        const called = { name: name.slice(0, 60).trim() }
        const workspace = { ...(await manage('POST /api/workspaces', called)), ...called }
        const project = await manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
        const key = await manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
        await manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '5.00' })
        const { reports, close, ...opened } = await signIn(`/console/${workspace.id}/${name.split(':')[0]}`)
        const allowed: string[] = []
        await run({ ...opened, workspace, project, key, allow: (status) => void allowed.push(`status of ${status}`) })
        expect(reports.filter((report) => !allowed.some((text) => report.includes(text)))).toEqual([])
        await close()
      })
    },
    call: async (secret, client = 'test-client/1.0', model = 'sandbox/echo') =>
      (await chat(secret, { model }, client)).status,
    ask: async (model, more = {}, client = 'test-client/1.0', secret = gateway.key) =>
      (await chat(secret, { model, ...more }, client)).headers.get('x-request-id') ?? '',
    async stop() {
      await browser?.close()
      await gateway.stop()
    },
  }
}

export function button(page: Page, name: string) {
  return page.getByRole('button', { name, exact: true })
}

/** The name of the element with the focus. */
export const focused = (page: Page) =>
  page.evaluate('document.activeElement.ariaLabel ?? document.activeElement.textContent')

/** Chooses an action of a row from its menu. */
export async function act(page: Page, row: string, action: string): Promise<void> {
  await button(page, `Actions for ${row}`).click()
  await page.getByRole('menuitem', { name: action, exact: true }).click()
}

/** Chooses another workspace, or `All workspaces`, in the top bar. */
export async function chooseWorkspace(page: Page, name: string): Promise<void> {
  await page.locator('.workspace-button').click()
  await page.getByRole('menuitemradio', { name, exact: true }).click()
  await page.locator('.workspace-name', { hasText: name }).waitFor()
}

export function field(page: Page, name: string) {
  return page.getByLabel(name, { exact: true })
}

export const idsOf = (models: readonly { readonly id: string }[]) => models.map(({ id }) => id)

/** Each would set `window.ran` if a page ran it. */
export const hostileTexts = [
  '<script>window.ran=1</script>',
  '"><img src=x onerror=window.ran=1>',
  "'><svg onload=window.ran=1>",
  '</script><script>window.ran=1</script>',
  '<!--<script>window.ran=1//-->',
  'javascript:window.ran=1',
  `\`\${window.ran=1}\``,
  '</title><script>window.ran=1</script>',
  '{{constructor.constructor("window.ran=1")()}}',
  '<a href="javascript:window.ran=1">x</a>',
  '&lt;script&gt;window.ran=1&lt;/script&gt;',
]
