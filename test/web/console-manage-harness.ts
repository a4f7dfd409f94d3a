// The real gateway and a signed-in browser for the tests of the console's managing pages, with the management API to
// prepare what a page will show.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { openBrowser, openPage, type WatchedPage } from '../parts/browser.ts'
import { type Gateway, type GatewayOptions, startGateway } from '../parts/gateway.ts'

export interface Made {
  readonly id: string
  readonly secret: string
}

export interface OpenedConsole extends WatchedPage {
  readonly workspace: Made
  readonly project: Made
  readonly key: Made
}

export interface ConsoleHarness {
  readonly gateway: Gateway
  /** A call to the management API, by the management token; throws where it is refused. */
  manage(call: string, body?: object, headers?: Record<string, string>): Promise<Made>
  /** A page that is signed in. */
  signIn(options?: BrowserContextOptions): Promise<WatchedPage>
  /** A new workspace with a project, a key and 5 dollars, and a page that shows it. */
  openConsole(name: string, section: string): Promise<OpenedConsole>
  /** Calls sandbox/echo unless told otherwise; answers with the status. */
  call(secret: string, client?: string, model?: string): Promise<number>
  stop(): Promise<void>
}

export async function startConsole({ config }: Pick<GatewayOptions, 'config'> = {}): Promise<ConsoleHarness> {
  const browser: Browser | undefined = await openBrowser()
  const gateway = await startGateway({
    env: { ANTHROPIC_API_KEY: 'not-a-key' },
    ...(config !== undefined && { config }),
  })
  const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()

  const manage: ConsoleHarness['manage'] = async (call, body, more = {}) => {
    const [method = '', path = ''] = call.split(' ')
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const response = await fetch(gateway.url + path, init)
    if (!response.ok) throw new Error(`${call}: ${await response.text()}`)
    return (await response.json()) as Made
  }
  const signIn: ConsoleHarness['signIn'] = async (options = {}) => {
    const opened = await openPage(browser, gateway.url + (await gateway.app.createSignInPath()), options)
    await opened.page.waitForSelector('.console')
    return opened
  }
  return {
    gateway,
    manage,
    signIn,
    async openConsole(name, section) {
      const workspace = await manage('POST /api/workspaces', { name })
      const project = await manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
      const key = await manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
      await manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '5.00' })
      const opened = await signIn()
      await opened.go(`${gateway.url}/console/${section}`)
      await button(opened.page, name).click()
      return { ...opened, workspace, project, key }
    },
    async call(secret, client = 'test-client/1.0', model = 'sandbox/echo') {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'user-agent': client }
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] })
      const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })
      await response.text()
      return response.status
    },
    async stop() {
      await browser?.close()
      await gateway.stop()
    },
  }
}

export function button(page: Page, name: string) {
  return page.getByRole('button', { name, exact: true })
}

export function field(page: Page, name: string) {
  return page.getByLabel(name, { exact: true })
}
