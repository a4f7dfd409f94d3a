// Features across several pages of the console, in a real browser over the real gateway: exports, the palette, undo, two
// models side by side, key tests, getting started, and signing out everywhere.

import { afterAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { seriousFaults } from '../parts/axe.ts'
import { browserTest, openContext } from '../parts/browser.ts'
import { act, button, field, focused, startConsole } from './console-harness.ts'

/** Accepts one of the two keys, and answers with the types of what it gets. */
const upstream = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    if (!request.headers.get('authorization')?.includes('good')) {
      return Response.json({ error: { message: 'wrong key' } }, { status: 401 })
    }
    const { model, messages } = (await request.json()) as {
      readonly model?: string
      readonly messages: readonly { readonly content: string | readonly { readonly type: string }[] }[]
    }
    if (model === undefined) {
      return Response.json({ error: { message: 'you must provide a model parameter' } }, { status: 400 })
    }
    const { content: parts = [] } = messages.at(-1) ?? {}
    const content = typeof parts === 'string' ? 'text' : parts.map(({ type }) => type).join(' and ')
    const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model }
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }
    const chunks = [
      { ...head, choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: 'stop' }] },
      { ...head, choices: [], usage },
    ]
    const events = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`)
    return new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } })
  },
})
const address = `http://127.0.0.1:${upstream.port}/v1`
const harness = await startConsole({
  config: `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${address}", api_key: canary-good-9f3e }
  - { id: acme-eu, dialect: openai-chat, base_url: "${address}", api_key: canary-bad-77aa }
models:
  - { id: acme/small, price: { input: "1.00", output: "2.00" }, routes: [{ provider: acme-eu, model: small }] }
  - id: acme/large
    tags: [vision]
    price: { input: "1.00", output: "2.00" }
    routes: [{ provider: acme, model: large }]
`,
})
afterAll(async () => {
  await harness.stop()
  await upstream.stop(true)
})

const { test } = harness

test('keys: requests are filtered by project, and the exports contain the matching ones', async ({
  page,
  workspace,
  project,
  key,
  go,
}) => {
  const other = await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'batch' })
  const otherKey = await harness.manage(`POST /api/projects/${other.id}/keys`, { name: 'nightly' })
  await harness.call(key.secret, '=cmd()')
  await harness.call(key.secret)
  await harness.call(otherKey.secret)
  await go(`${harness.gateway.url}/console/requests?live=off`)
  await page.waitForSelector('tbody tr:nth-child(3)')
  await button(page, 'More').click()
  await field(page, 'Project').selectOption({ label: 'web (2)' })
  await page.waitForSelector('tbody tr:nth-child(3)', { state: 'detached' })
  expect(new URL(page.url()).searchParams.get('project')).toBe(project.id)
  const ids = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.getAttribute('data-row')))
  expect(ids).toHaveLength(2)
  const download = async (name: string) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name }).click()])
    return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') }
  }
  const csv = await download('CSV')
  expect(csv.name).toBe('requests.csv')
  const lines = csv.text.trimEnd().split('\r\n').slice(1)
  expect(lines.map((line) => line.split(',')[1] ?? null)).toEqual(ids)
  expect(lines[1]).toContain(",'=cmd(),")
  const jsonl = await download('JSON lines')
  const objects = jsonl.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect([jsonl.name, ...objects.map(({ id }) => id)]).toEqual(['requests.jsonl', ...ids])
  // A new request of another project stays out of the live list too.
  await go(`${harness.gateway.url}/console/requests?project=${project.id}`)
  await page.waitForSelector('.live .status-ok')
  await harness.call(otherKey.secret)
  await harness.call(key.secret)
  await page.waitForSelector('tbody tr:nth-child(3)')
  expect(await page.locator('tbody tr').count()).toBe(3)
})

test('keys: Ctrl K opens pages, models, keys and requests from the keyboard alone', async ({
  page,
  key,
  workspace,
  go,
  allow,
}) => {
  allow(404)
  await page.waitForSelector('tbody tr')
  const box = page.getByRole('combobox', { name: 'Page, action, model, key, provider, person, guide or request id' })
  const active = async () => {
    const id = await box.getAttribute('aria-activedescendant')
    return await page.locator(`#${id} > span`).textContent()
  }
  await button(page, 'New key').focus()
  await page.keyboard.press('Control+k')
  await box.waitFor()
  expect(await focused(page)).toBe('Page, action, model, key, provider, person, guide or request id')
  expect(await active()).toBe('Usage')
  await page.keyboard.press('ArrowDown')
  expect(await active()).toBe('Requests')
  expect(await page.locator('[role=option][aria-selected=true]').count()).toBe(1)
  expect(await seriousFaults(page)).toEqual([])
  await page.keyboard.press('Escape')
  await box.waitFor({ state: 'detached' })
  expect(await focused(page)).toBe('New key')
  // Not over a sheet, whose content would be lost.
  await page.keyboard.press('Enter')
  await page.waitForSelector('dialog.sheet[open]')
  await page.keyboard.press('Control+k')
  expect(await box.count()).toBe(0)
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.sheet', { state: 'detached' })

  const jump = async (typed: string, landed: RegExp, shown = '[role=option][aria-selected=true]') => {
    await page.keyboard.press('Meta+k')
    await box.waitFor()
    await page.keyboard.type(typed)
    await page.waitForSelector(shown)
    await page.keyboard.press('Enter')
    await page.waitForURL(landed)
    await go(`${harness.gateway.url}/console/keys`)
  }
  await jump('acme/lar', /\/catalog\/acme\/large$/, '[role=option]:has-text("acme/large")')
  await jump('acme-eu', /\/console\/ws_\w+\/providers\/acme-eu$/, '[role=option]:has-text("provider")')
  await jump('backup and', /\/docs\/operate\/backup$/, '[role=option]:has-text("docs · Operate")')
  await jump('bil', /\/console\/ws_\w+\/wallet$/)
  await jump('req_00000000000000000000000000', /\/console\/ws_\w+\/requests\/req_0{26}$/)
  await page.keyboard.press('Control+k')
  await box.waitFor()
  await page.keyboard.type('ci')
  const option = page.locator(`[role=option][data-href="/console/${workspace.id}/requests?key=${key.id}"]`)
  await option.waitFor()
  await option.click()
  await page.waitForURL((url) => url.searchParams.get('key') === key.id)
  await page.waitForSelector('html[data-alive]')
  await page.keyboard.press('Control+k')
  await box.waitFor()
  await page.keyboard.type('nothing is called that')
  await page.waitForSelector('[role=status]:has-text("No results.")')
})

test('projects: a changed allowlist and changed limits can be undone with the mouse or the keyboard', async ({
  page,
  project,
}) => {
  const models = async () => (await harness.manage(`GET /api/projects/${project.id}`)) as unknown as { models: unknown }
  await act(page, 'web', 'Models')
  await field(page, 'Only these').check()
  await page.getByLabel('sandbox/cache').check()
  await button(page, 'Save').click()
  await page.waitForSelector('.toast:has-text("Project web changed.")')
  // The toast stays while the pointer is on it, so a slow machine does not miss it.
  await page.hover('.toast')
  expect(await models()).toMatchObject({ models: ['sandbox/cache'] })
  expect(await seriousFaults(page)).toEqual([])
  await button(page, 'Undo').click()
  await page.waitForSelector('.toast:has-text("Undone")')
  await page.waitForSelector('td:has-text("all models")')
  expect(await models()).toMatchObject({ models: null })
  await act(page, 'web', 'Limits')
  await field(page, 'Requests per minute').fill('7')
  await button(page, 'Save limits').click()
  await page.waitForSelector('.limits:has-text("7 requests/min")')
  await page.keyboard.press('u')
  await page.waitForSelector('.limits:has-text("7 requests/min")', { state: 'detached' })
  expect(await models()).toMatchObject({ limits: {} })
})

for (const surface of ['chat', 'responses', 'messages'] as const) {
  test(`keys: two models answer side by side through ${surface}, one with a tool call, each with its cost`, async ({
    page,
    key,
    go,
  }) => {
    await go(`${harness.gateway.url}/console/playground?model=sandbox/tools&other=sandbox/think&surface=${surface}`)
    await page.fill('input[type=password]', key.secret)
    await page.getByLabel(/^Offer a tool/).check()
    await page.getByLabel('Parameters (JSON Schema)').fill('no schema')
    await page.waitForSelector('[role=alert]:has-text("not a JSON object")')
    const schema = { type: 'object', properties: { city: { enum: ['Ulm'] } }, required: ['city'] }
    await page.getByLabel('Parameters (JSON Schema)').fill(JSON.stringify(schema))
    await button(page, 'Send').click()
    const first = page.locator('[data-answer="sandbox/tools"]')
    const second = page.locator('[data-answer="sandbox/think"]')
    await first.locator('[data-cost]').waitFor()
    await second.locator('[data-cost]').waitFor()
    expect((await first.locator('.tool-call code').textContent())?.replaceAll(' ', '')).toBe(
      'get_weather({"city":"Ulm"})',
    )
    expect(await second.locator('.answer-text').textContent()).toBe(
      'After some thought: hello from the other side of the gate',
    )
    expect(await second.locator('.reasoning').getAttribute('open')).toBeNull()
    expect(await second.locator('.reasoning p').textContent()).toContain('The user wrote: hello')
    for (const answer of [first, second]) {
      expect(await answer.locator('[data-cost]').textContent()).toMatch(/^\$0\.0000?\d+$/)
    }
    const hrefs = await page.getByText('View request').evaluateAll((links) => links.map((a) => a.getAttribute('href')))
    expect(new Set(hrefs).size).toBe(2)
    if (surface === 'chat') expect(await seriousFaults(page)).toEqual([])
  })
}

/** What each API calls an image in a message. */
const imagePartOf = {
  chat: (data: string) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }),
  responses: (data: string) => ({ type: 'input_image', image_url: `data:image/png;base64,${data}` }),
  messages: (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }),
}

test('playground: an image is sent with the message, also to two models, and the answer is Markdown without HTML', async ({
  page,
  go,
  key,
}) => {
  const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const png = { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(data, 'base64') }
  await go(`${harness.gateway.url}/console/playground?model=sandbox/think`)
  await page.waitForSelector('text=Reasoning effort')
  expect(await button(page, 'Attach images').count()).toBe(0)
  const refused = page.locator('text=No images can be attached')
  expect(await refused.count()).toBe(0)
  // In a comparison, the model that takes none is named.
  await go(`${harness.gateway.url}/console/playground?model=sandbox/echo&other=sandbox/think`)
  await refused.waitFor()
  expect(await refused.textContent()).toBe('No images can be attached: sandbox/think does not take them.')
  expect(await button(page, 'Attach images').count()).toBe(0)
  for (const surface of ['chat', 'responses', 'messages'] as const) {
    await go(`${harness.gateway.url}/console/playground?model=sandbox/echo&surface=${surface}`)
    await page.fill('input[type=password]', key.secret)
    if (surface !== 'chat') await button(page, 'New conversation').click()
    await page.setInputFiles('input[type=file]', { ...png, name: 'no.txt', mimeType: 'text/plain' })
    await page.waitForSelector('[role=alert]:has-text("PNG, JPEG, GIF or WebP")')
    await page.setInputFiles('input[type=file]', png)
    await page.locator('.thumbnails img').waitFor()
    if (surface === 'chat') {
      // Only models that take images are offered to compare with.
      await page.locator('.model-button').nth(1).click()
      const offered = await page.locator('[role=menuitemradio]').allTextContents()
      expect(offered.filter((text) => /sandbox\/(echo|think)/.test(text)).map((text) => text.slice(0, 12))).toEqual([
        'sandbox/echo',
      ])
      await page.locator('[role=menuitemradio]', { hasText: 'acme/large' }).click()
    }
    await field(page, 'Message').fill('**bold** <img src="x">')
    const sent = page.waitForRequest('**/v1/**')
    await button(page, 'Send').click()
    const { messages, input } = (await sent).postDataJSON() as Record<string, readonly { readonly content: object[] }[]>
    expect((messages ?? input)?.[0]?.content[0]).toEqual(imagePartOf[surface](data))
    const answer = page.locator('[data-answer="sandbox/echo"]')
    await answer.locator('[data-cost]').waitFor()
    expect(await answer.locator('.answer-text strong').textContent()).toBe('bold')
    expect(await answer.locator('.answer-text').textContent()).toContain('<img src="x">')
    expect(await answer.locator('img').count()).toBe(0)
    if (surface !== 'chat') continue
    // The other model gets the image too: 9 × $1.00 and 3 × $2.00 per million.
    const other = page.locator('[data-answer="acme/large"]')
    expect(await other.locator('[data-cost]').textContent()).toBe('$0.000015')
    expect(await other.locator('.answer-text').textContent()).toContain('image_url and text')
  }
})

test('keys: an operator sees when a provider failed, why, and what became of the requests', async ({
  page,
  key,
  go,
}) => {
  // Every other call of its first route fails.
  for (let calls = 0; calls < 5; calls++) expect(await harness.call(key.secret, 'a client', 'sandbox/flaky')).toBe(200)
  await go(`${harness.gateway.url}/console/providers?period=30d`)
  const incident = page.locator('section[aria-label="Incidents"] tbody tr', { hasText: 'sandbox' })
  await incident.filter({ hasText: '503 (3)' }).filter({ hasText: '3 requests answered by another attempt' }).waitFor()
  await page.getByRole('link', { name: 'sandbox', exact: true }).click()
  // The sandbox fails on purpose, so its state is never that it fails.
  await page.waitForSelector('section[aria-label="Incidents"] tbody tr:has-text("over")')
  // The route that failed three times, and the one that answered instead.
  const routes = page.locator('section[aria-label="Routes"] tbody tr', { hasText: 'sandbox/flaky' })
  await routes.filter({ hasText: '40.0 % ok, 5 attempts' }).waitFor()
  await routes.filter({ hasText: '100.0 % ok, 3 attempts' }).waitFor()
  expect(await seriousFaults(page)).toEqual([])
})

test('providers: a key is tested at its provider, and providers show their source', async ({ page, go, workspace }) => {
  const row = (name: string) => page.locator('section[aria-label="Providers"] tbody tr', { hasText: name })
  await row('acme-eu').waitFor()
  expect(await row('acme-eu').locator('td[data-label="Key"]').textContent()).toBe('…77aatollgate.yaml:4')
  expect(await row('anthropic').locator('td[data-label="Key"] .note').textContent()).toBe('ANTHROPIC_API_KEY')
  await page.waitForSelector('section[aria-label="Providers"] .status:has-text("no recent traffic")')
  await page.waitForSelector('.hint:has-text("learned from real requests")')
  const provider = (name: string) => `${harness.gateway.url}/console/${workspace.id}/providers/${name}`
  await go(provider('acme-eu'))
  await button(page, 'Test the key for acme-eu').click()
  await page.locator('header .status-error:has-text("refused")').waitFor()
  await go(provider('acme'))
  await button(page, 'Test the key for acme').click()
  await page.locator('header .status-ok:has-text("ok")').waitFor()
  await page.waitForSelector('text=Status 400.')
  await go(`${harness.gateway.url}/console/${workspace.id}/providers`)
  await button(page, 'Add key').click()
  await page.getByRole('combobox', { name: 'Provider' }).selectOption('acme')
  await field(page, 'API key').fill('canary-bad-of-my-own-1234')
  await button(page, 'Save key').click()
  const own = page.locator('section[aria-label="Your provider keys (BYOK)"] tbody tr')
  await own.waitFor()
  expect(await own.locator('td[data-label="Source"]').textContent()).toBe('this workspace')
  await own.getByRole('button', { name: 'Test the key for acme' }).click()
  await own.locator('.status-error:has-text("refused")').waitFor()
  expect(await page.content()).not.toContain('canary')
  expect(await seriousFaults(page)).toEqual([])
})

test('keys: getting started shows what is left to do, and the runway names the period it is based on', async ({
  page,
  workspace,
  key,
  go,
}) => {
  const tile = page.locator('.tile', { hasText: 'Available' })
  await go(`${harness.gateway.url}/console`)
  await page.waitForSelector('.steps')
  expect(await tile.textContent()).toContain('no charges in the last 7 days')
  expect(await page.locator('.steps li:not(.done-step) .button').allTextContents()).toEqual(['Create key and run'])
  expect(await seriousFaults(page)).toEqual([])
  await harness.call(key.secret)
  await go(`${harness.gateway.url}/console`)
  // 5 dollars, at some hundred-thousandths of a dollar in an hour.
  await tile.locator('text=lasts more than 999 days at the rate of the last hour').waitFor()
  await page.waitForSelector('.chart')
  expect(await page.locator('.steps').count()).toBe(0)
  // By project, and from there to its requests.
  await page.getByLabel('Group by').selectOption('project')
  await page.locator('.data-table .row-link', { hasText: 'web' }).click()
  await page.waitForSelector('tbody tr')
  expect(new URL(page.url()).searchParams.get('project')).toMatch(/^prj_/)
  expect(workspace.id).toMatch(/^ws_/)
})

browserTest(
  'settings show the configuration, and sign out all browsers at once, which the audit log records',
  async () => {
    const here = await harness.signIn('/console/settings')
    const context = await openContext(harness.browser)
    const elsewhere = await harness.signIn('/console', { context })
    const link = harness.gateway.url + (await harness.gateway.app.createSignInPath())
    const { page } = here
    const setting = page.locator('section[aria-label=Configuration] tr', { hasText: 'TOLLGATE_PORT' })
    expect(await setting.textContent()).toBe('server.port0TOLLGATE_PORT')
    expect(await page.locator('section[aria-label=Configuration] tr', { hasText: 'ANTHROPIC' }).textContent()).toBe(
      'ANTHROPIC_API_KEYsetANTHROPIC_API_KEY',
    )
    const session = await page.locator('section[aria-label=Session]').textContent()
    expect(session).toContain('They survive a restart of the gateway.')
    await button(page, 'Sign out everywhere').click()
    await page.waitForSelector('dialog.sheet[open]')
    await button(page, 'Stay signed in').click()
    await button(page, 'Sign out everywhere').click()
    await page.locator('dialog.sheet').getByRole('button', { name: 'Sign out everywhere' }).click()
    await page.waitForSelector('#token')
    await elsewhere.page.reload()
    await elsewhere.page.waitForSelector('#token')
    await here.go(link)
    await page.waitForSelector('[role=alert]:has-text("already used")')
    const { data } = (await harness.manage('GET /api/audit?limit=5')) as unknown as {
      data: readonly { action: string }[]
    }
    expect(data.map(({ action }) => action)).toContain('session.end_all')
    await here.close()
    await context.close()
  },
)
