// Takes screenshots of a real gateway with sandbox traffic. `npm run screenshots` renews the few in docs/screenshots.
// `npm run screenshots -- --sheets FOLDER [NAME…]` looks at every page, or the named ones, at four widths in light and dark
// mode, and writes two pictures per page. The providers have invalid keys and are never called.

import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { isoTime, systemClock } from '../../src/kernel/clock.ts'
import { batchesOn, chatLine, createOf } from '../batches/parts.ts'
import { openBrowser, openContext, watchPage } from '../parts/browser.ts'
import { startGateway } from '../parts/gateway.ts'
import { allPages, type ListedPage, type ListedThings } from './all-pages.ts'
import { shrinkPng } from './shrink-png.ts'

/** The clock starts behind, so that the requests are spread over a day, and is right when the screenshots are taken. */
let behindMs = 22 * 3_600_000
const clock = { now: () => systemClock.now() - behindMs, monotonicMs: systemClock.monotonicMs }

const gateway = await startGateway({
  clock,
  env: { ...batchesOn, ANTHROPIC_API_KEY: 'not-a-key-of-anybody-4Qxa', OPENAI_API_KEY: 'not-a-key-of-anybody-Tz81' },
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
  return (await response.json()) as { id: string; secret: string; url: string; data: readonly { id: string }[] }
}

/** A team with projects, keys, limits and a top-up, and calls of every kind. */
async function makeTraffic(): Promise<ListedThings> {
  const { data } = await manage('GET', '/api/workspaces')
  const workspaceId = data[0]?.id ?? ''
  const workspace = `/api/workspaces/${workspaceId}`
  const { id: newWorkspaceId } = await manage('POST', '/api/workspaces', { name: 'Contoso' })
  const web = await manage('POST', `${workspace}/projects`, { name: 'web', models: ['sandbox/*'] })
  const batch = await manage('POST', `${workspace}/projects`, { name: 'batch' })
  const site = await manage('POST', `/api/projects/${web.id}/keys`, { name: 'website' })
  const ci = await manage('POST', `/api/projects/${web.id}/keys`, { name: 'ci', expires_at: '2027-06-30T00:00:00Z' })
  const nightly = await manage('POST', `/api/projects/${batch.id}/keys`, { name: 'nightly' })
  await manage('PUT', '/api/price-lists/retail', { markup_percent: '15' })
  await manage('PUT', '/api/managed-settings', { rules: [{ settings: { cleanupPeriodDays: 7 } }] })
  await manage('PUT', `/api/keys/${ci.id}/limits`, { requests_per_minute: 120, spend_per_day: '1.50' })
  await manage('PUT', `/api/projects/${web.id}/limits`, { requests_per_minute: 600, spend_per_month: '40.00' })
  const topUp = await manage('POST', `${workspace}/topups`, { amount: '25.00', reference: 'invoice 2026-117' })
  await manage('POST', '/api/invitations', { email: 'grace@example.com', role: 'viewer', workspace_id: workspaceId })
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
  const lines = questions.map((question, at) => chatLine(`invoice-${at}`, question, { model: 'sandbox/echo' }))
  const { id: batchId } = (await createOf({ url: gateway.url, key: nightly.secret }, lines)).body
  behindMs = 0
  // A model without traffic, so that no charge depends on it.
  for (const input of ['1.20', '0.90'])
    await manage('PUT', '/api/models/sandbox%2Fslow/price', { input, output: '2.00' })
  const month = isoTime(clock.now()).slice(0, 7)
  return {
    ...{
      workspaceId,
      newWorkspaceId,
      projectId: web.id,
      keyId: ci.id,
      requestId: flaky,
      batchId,
      topUpId: topUp.id,
      month,
    },
  }
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

/** What has to be done before a page shows what it is for. */
const acts: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async playground(page) {
    await page.fill('input[type=password]', gateway.key)
    await page.getByLabel(/^Offer a tool/).check()
    await page.click('button:text-is("Send")')
    await page.waitForSelector('[data-answer="sandbox/tools"] [data-cost]')
    await page.waitForSelector('[data-answer="sandbox/think"] [data-cost]')
    // On a phone the button is below the answers.
    await page.mouse.move(0, 0)
    await page.evaluate('scrollTo(0, 0)')
  },
}

/** Signed in as the installation, and as a person who accepted an invitation. */
async function signIn(browser: Browser | undefined, workspaceId: string) {
  const operator = await openContext(browser, { reducedMotion: 'reduce', timezoneId: 'UTC' })
  const { page, go } = await watchPage(operator)
  await go(gateway.url + (await gateway.app.createSignInPath()))
  await page.waitForSelector('.console')
  const invitation = { email: 'ada@example.com', role: 'admin', workspace_id: workspaceId }
  const { url } = await manage('POST', '/api/invitations', invitation)
  const person = await openContext(browser, { reducedMotion: 'reduce', timezoneId: 'UTC' })
  const accepting = await watchPage(person)
  await accepting.go(url.replace(/^https?:\/\/[^/]+/, gateway.url))
  await accepting.page.getByLabel('Your name').fill('Ada Lovelace')
  await accepting.page.getByLabel('Choose a password').fill('correct horse battery')
  await accepting.page.getByRole('button', { name: 'Accept and sign in' }).click()
  await accepting.page.waitForSelector('.console')
  const visitor = await openContext(browser, { reducedMotion: 'reduce', timezoneId: 'UTC' })
  return (page: ListedPage) => (page.isPublic ? visitor : page.needsAccount ? person : operator)
}

const [option, folder, ...wanted] = process.argv.slice(2)
const isSheets = option === '--sheets' && folder !== undefined
const things = await makeTraffic()
const browser = await openBrowser()
const contextOf = await signIn(browser, things.workspaceId)
const schemes = ['light', 'dark'] as const

async function show(listed: ListedPage, width: number, height: number): Promise<Page> {
  const { page, go } = await watchPage(contextOf(listed))
  await page.setViewportSize({ width, height })
  await go(gateway.url + listed.path)
  await page.waitForSelector(listed.ready)
  await page.waitForSelector('.loading', { state: 'detached' })
  await acts[listed.name]?.(page)
  return page
}

/** The widths, how much of each page is shown, and how wide it is on a sheet. */
const sizes = [
  { width: 1440, height: 1400, shown: 640 },
  { width: 1024, height: 1400, shown: 440 },
  { width: 390, height: 1290, shown: 260 },
  { width: 320, height: 1290, shown: 220 },
] as const

/** A picture in light and one in dark mode, each with all widths side by side. */
async function writeSheets(listed: ListedPage, into: string): Promise<void> {
  const shots = { light: '', dark: '' }
  for (const { width, height, shown } of sizes) {
    const page = await show(listed, width, height)
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme })
      const png = await page.screenshot({ animations: 'disabled', caret: 'hide' })
      shots[colorScheme] += `<img width="${shown}" alt="" src="data:image/png;base64,${png.toString('base64')}">`
    }
    await page.close()
  }
  const sheet = await (await openContext(browser)).newPage()
  await sheet.setViewportSize({ width: sizes.reduce((sum, { shown }) => sum + shown + 4, 0), height: 600 })
  for (const colorScheme of schemes) {
    const style = 'margin:0;display:flex;gap:4px;align-items:start;background:gray'
    await sheet.setContent(`<body style="${style}">${shots[colorScheme]}</body>`)
    await sheet.screenshot({ path: join(into, `${listed.name}-${colorScheme}.png`), fullPage: true })
  }
  await sheet.context().close()
}

/** The pages of the README and the documentation. */
const documented = ['catalog', 'model', 'usage', 'requests', 'request', 'playground', 'providers', 'billing']
const documentedSizes = [
  { name: 'wide', width: 1280, height: 860 },
  { name: 'phone', width: 390, height: 844 },
] as const

for (const listed of allPages(things)) {
  if (isSheets && (wanted.length === 0 || wanted.includes(listed.name))) {
    mkdirSync(folder, { recursive: true })
    await writeSheets(listed, folder)
    process.stdout.write(`${listed.name}\n`)
  }
  if (isSheets || !documented.includes(listed.name)) continue
  for (const { name, width, height } of documentedSizes) {
    const page = await show(listed, width, height)
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme })
      const png = await page.screenshot({ animations: 'disabled', caret: 'hide' })
      const path = join(import.meta.dir, '../../docs/screenshots', `${listed.name}-${name}-${colorScheme}.png`)
      await Bun.write(path, shrinkPng(png))
    }
    await page.close()
  }
  process.stdout.write(`${listed.name}\n`)
}
await browser?.close()
await gateway.stop()
