// Takes the screenshots in docs/screenshots: every page in light and dark mode, on desktop and mobile, from a real gateway
// with sandbox traffic. `npm run screenshots` takes all, with names of pages only those. The providers have invalid keys and
// are never called.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { systemClock } from '../../src/kernel/clock.ts'
import { openBrowser, openPage } from '../parts/browser.ts'
import { startGateway } from '../parts/gateway.ts'
import { shrinkPng } from './shrink-png.ts'

const folder = join(import.meta.dir, '../../docs/screenshots')

/** The clock starts behind, so that the requests are spread over a day, and is right when the screenshots are taken. */
let behindMs = 22 * 3_600_000
const clock = { now: () => systemClock.now() - behindMs, monotonicMs: systemClock.monotonicMs }

const gateway = await startGateway({
  clock,
  env: { ANTHROPIC_API_KEY: 'not-a-key-of-anybody-4Qxa', OPENAI_API_KEY: 'not-a-key-of-anybody-Tz81' },
})
const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
const callsMax = 90

const questions = [
  'summarise the minutes of the harbour board',
  'write a haiku about a toll gate',
  'which of these invoices is overdue?',
  'translate: the bridge is closed tonight',
  'name three rivers that flow north',
]

const clients = ['openai-node/7.53.0', 'claude-cli/2.1.4', 'langchainjs-openai/1.6.0', 'curl/8.14.1']
/** Models of the sandbox, in turn. */
const models = 'echo echo cache think tools flaky echo throttled cache down think echo'.split(' ')

async function manage(method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(gateway.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
  return (await response.json()) as { id: string; secret: string; data: readonly { id: string }[] }
}

/** A team with projects, keys, limits and a top-up, and calls of every kind. Returns the id of a request that failed over. */
async function makeTraffic(): Promise<string> {
  const { data } = await manage('GET', '/api/workspaces')
  const workspace = `/api/workspaces/${data[0]?.id}`
  const web = await manage('POST', `${workspace}/projects`, { name: 'web', models: ['sandbox/*'] })
  const batch = await manage('POST', `${workspace}/projects`, { name: 'batch' })
  const site = await manage('POST', `/api/projects/${web.id}/keys`, { name: 'website' })
  const ci = await manage('POST', `/api/projects/${web.id}/keys`, { name: 'ci', expires_at: '2027-06-30T00:00:00Z' })
  const nightly = await manage('POST', `/api/projects/${batch.id}/keys`, { name: 'nightly' })
  await manage('PUT', `/api/keys/${ci.id}/limits`, { requests_per_minute: 120, spend_per_day: '1.50' })
  await manage('PUT', `/api/projects/${web.id}/limits`, { requests_per_minute: 600, spend_per_month: '40.00' })
  await manage('POST', `${workspace}/topups`, { amount: '25.00', reference: 'invoice 2026-117' })
  const secrets = [site.secret, ci.secret, nightly.secret, gateway.key]
  let flaky = ''
  for (let turn = 0; turn < callsMax; turn++) {
    // Few requests in the first hours, more in the later ones.
    behindMs = Math.round(22 * 3_600_000 * (1 - (turn / callsMax) ** 0.6))
    const model = models[turn % models.length]
    const { id, attempts } = await call({
      secret: secrets[turn % secrets.length] ?? '',
      model: `sandbox/${model}`,
      question: questions[turn % questions.length] ?? '',
      client: clients[turn % clients.length] ?? '',
      isMessages: turn % 3 === 1,
    })
    if (model === 'flaky' && attempts > 1) flaky = id
  }
  behindMs = 0
  return flaky
}

interface Call {
  readonly secret: string
  readonly model: string
  readonly question: string
  readonly client: string
  readonly isMessages: boolean
}

async function call({ secret, model, question, client, isMessages }: Call) {
  const messages = [
    { role: 'user', content: 'You work for a harbour. Be brief.' },
    { role: 'assistant', content: 'Understood.' },
    { role: 'user', content: question },
  ]
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const tool = isMessages
    ? { name: 'find_ship', input_schema: schema }
    : { type: 'function', function: { name: 'find_ship', parameters: schema } }
  const tools = model === 'sandbox/tools' && { tools: [tool] }
  const cap = isMessages ? { max_tokens: 400 } : { max_completion_tokens: 400 }
  const response = await fetch(`${gateway.url}/v1/${isMessages ? 'messages' : 'chat/completions'}`, {
    method: 'POST',
    headers: {
      ...(isMessages
        ? { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
        : { authorization: `Bearer ${secret}` }),
      'content-type': 'application/json',
      'user-agent': client,
    },
    body: JSON.stringify({ model, stream: true, messages, ...cap, ...tools }),
  })
  await response.text()
  return {
    id: response.headers.get('x-request-id') ?? '',
    attempts: Number(response.headers.get('x-tollgate-attempts') ?? 0),
  }
}

const flaky = await makeTraffic()
// A model without traffic, so that no charge depends on it.
for (const input of ['1.20', '0.90']) await manage('PUT', '/api/models/sandbox%2Fslow/price', { input, output: '2.00' })

interface Picture {
  readonly name: string
  readonly path: string
  /** Visible when the page is ready. */
  readonly ready: string
  act?(page: Page): Promise<void>
}

const pictures: readonly Picture[] = [
  { name: 'catalog', path: '/', ready: '.live .status-ok' },
  { name: 'narrowed', path: '/', ready: '.live .status-ok', act: narrow },
  { name: 'model', path: '/catalog/anthropic/claude-sonnet-4.5', ready: '.live .status-ok' },
  { name: 'history', path: '/catalog/sandbox/slow', ready: '.live .status-ok', act: showHistory },
  {
    name: 'compare',
    path: '/compare?m=anthropic/claude-sonnet-4.5&m=openai/gpt-5.1&m=sandbox/echo',
    ready: '.live .status-ok',
  },
  { name: 'overview', path: '/console', ready: '.usage-chart canvas' },
  { name: 'requests', path: '/console/requests', ready: '.live .status-ok' },
  { name: 'request', path: `/console/requests/${flaky}`, ready: '.waterfall' },
  {
    name: 'playground',
    path: '/console/playground?model=sandbox/tools&other=sandbox/think',
    ready: '.answers',
    act: ask,
  },
  { name: 'keys', path: '/console/keys', ready: '.data-table' },
  { name: 'projects', path: '/console/projects', ready: '.data-table' },
  { name: 'allowlist', path: '/console/projects', ready: '.data-table', act: openAllowlist },
  { name: 'wallet', path: '/console/wallet', ready: '.data-table' },
  { name: 'correction', path: '/console/wallet', ready: '.data-table', act: openCorrection },
  { name: 'providers', path: '/console/providers', ready: '.live .status-ok' },
  { name: 'settings', path: '/console/settings', ready: '.data-table' },
  {
    name: 'palette',
    path: '/console/requests',
    ready: '.data-table',
    async act(page) {
      await page.keyboard.press('Control+k')
      await page.waitForSelector('.palette [role=option]')
      await page.keyboard.type('claude')
      await page.waitForSelector('[role=option]:has-text("claude")')
    },
  },
]

async function ask(page: Page): Promise<void> {
  await page.fill('input[type=password]', gateway.key)
  await page.getByLabel(/^Offer a tool/).check()
  await page.click('button:text-is("Send")')
  await page.waitForSelector('[data-answer="sandbox/tools"] [data-cost]')
  await page.waitForSelector('[data-answer="sandbox/think"] [data-cost]')
  await page.locator('.answers').scrollIntoViewIfNeeded()
}

/** Filters by a project with an allowlist. */
async function narrow(page: Page): Promise<void> {
  await page.click('summary:has-text("What can my key use?")')
  await page.focus('#access-project')
  await page.locator('#access-project option:has-text("/ web")').waitFor({ state: 'attached' })
  await page.selectOption('#access-project', { label: 'default / web' })
  await page.waitForSelector('.access-filter:has-text("Showing only")')
}

async function showHistory(page: Page): Promise<void> {
  await page.locator('[aria-label="Price history"]').scrollIntoViewIfNeeded()
}

async function openCorrection(page: Page): Promise<void> {
  await page.click('summary:has-text("Correct the balance")')
  await page.getByRole('form', { name: 'Correct the balance' }).scrollIntoViewIfNeeded()
}

async function openAllowlist(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Actions for web' }).click()
  await page.getByRole('menuitem', { name: 'Models' }).click()
  await page.waitForSelector('dialog.sheet[open]')
}

const windows = [
  { name: 'wide', viewport: { width: 1280, height: 860 } },
  { name: 'phone', viewport: { width: 360, height: 760 } },
] as const

const wanted = process.argv.slice(2)
const isWanted = (name: string) => wanted.length === 0 || wanted.includes(name)
const browser = await openBrowser()

async function take(page: Page, name: string): Promise<void> {
  const png = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  await Bun.write(join(folder, `${name}.png`), shrinkPng(png))
}

for (const { name: size, viewport } of windows) {
  for (const colorScheme of ['light', 'dark'] as const) {
    const options = { viewport, colorScheme, timezoneId: 'UTC' }
    const signIn = await openPage(browser, `${gateway.url}/console`, options)
    if (isWanted('sign-in')) await take(signIn.page, `sign-in-${size}-${colorScheme}`)
    await signIn.close()
    const { page, go, close } = await openPage(browser, gateway.url + (await gateway.app.createSignInPath()), options)
    await page.waitForSelector('.console')
    for (const { name, path, ready, act } of pictures.filter((picture) => isWanted(picture.name))) {
      await go(gateway.url + path)
      await page.waitForSelector(ready)
      await page.waitForSelector('.loading', { state: 'detached' })
      await act?.(page)
      await take(page, `${name}-${size}-${colorScheme}`)
    }
    await close()
    process.stdout.write(`${size}, ${colorScheme}: done\n`)
  }
}
await browser?.close()
await gateway.stop()
