// Journeys through the console in a real browser over the real gateway: each starts as a user does and follows the pages to
// the result, by their buttons and links. Figures are compared with the management API.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { formatUsd, type Nano, parseUsd } from '../../src/kernel/money.ts'
import { seriousFaults } from '../parts/axe.ts'
import { sidewaysPixels } from '../parts/browser.ts'
import { act, button, chooseWorkspace, field, type Made, startConsole } from './console-harness.ts'

/** A provider that accepts one key, and refuses the empty request of a test for its content. */
const upstream = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: (request) =>
    request.headers.get('authorization') === 'Bearer sk-good'
      ? Response.json({ error: { message: 'you must provide a model parameter' } }, { status: 400 })
      : Response.json({ error: { message: 'wrong key' } }, { status: 401 }),
})
const harness = await startConsole({
  env: { ANTHROPIC_API_KEY: '' },
  config: 'own_keys: { base_urls: true, plain_http: true, allow_hosts: ["127.0.0.1"] }',
})
afterAll(async () => {
  await harness.stop()
  await upstream.stop(true)
})
const { test, manage } = harness

/** The answer of a read of the management API. */
async function read<Answer>(path: string): Promise<Answer> {
  return (await manage(`GET ${path}`)) as unknown as Answer
}

interface RequestRow {
  readonly id: string
  readonly cost: string
  readonly status: number
}

const requestsOf = async (keyId: string) =>
  (await read<{ readonly data: readonly RequestRow[] }>(`/api/requests?key_id=${keyId}`)).data

/** A request without a charge is written to the log a moment after its answer. */
async function waitForRequests(keyId: string, count: number): Promise<readonly RequestRow[]> {
  for (;;) {
    const requests = await requestsOf(keyId)
    if (requests.length >= count) return requests
    await Bun.sleep(50)
  }
}

const fact = (page: Page, name: string) =>
  page.locator('.facts-grid > div', { has: page.locator(`dt:text-is("${name}")`) }).locator('dd')

/** At the width of a phone too, where all-pages.test.ts runs axe. Leaves the page wide. */
async function expectSound(page: Page): Promise<void> {
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 844 })
    expect({ width, pixels: await sidewaysPixels(page) }).toEqual({ width, pixels: 0 })
  }
  expect(await seriousFaults(page)).toEqual([])
}

test('keys: a limit is set, reached, and shown with its reset on the page of the key', async ({
  page,
  key,
  workspace,
}) => {
  const limitTo = async (amount: string) => {
    await act(page, 'ci', 'Limits')
    await field(page, 'Spend per month (UTC), USD').fill(amount)
    await button(page, 'Save limits').click()
    await page.waitForSelector('dialog.sheet', { state: 'detached' })
  }
  await limitTo('1.00')
  await page.waitForSelector('.limits:has-text("$0.00 of $1.00/month")')
  expect(await harness.call(key.secret)).toBe(200)
  const [first] = await waitForRequests(key.id, 1)
  const cost = first?.cost ?? ''
  expect(Number(cost)).toBeGreaterThan(0)
  // As much as was spent: the next request is refused.
  await limitTo(cost)
  await page.locator('tr:has-text("ci") .status', { hasText: 'limit reached' }).waitFor()
  expect(await harness.call(key.secret)).toBe(429)
  const [refused] = await waitForRequests(key.id, 2)
  await page.locator('.row-link', { hasText: 'ci' }).click()
  await page.waitForSelector('h1:text-is("ci")')
  expect(new URL(page.url()).pathname).toBe(`/console/${workspace.id}/keys/${key.id}`)
  // After the heading.
  await page.waitForFunction("document.title === 'ci · Tollgate'")
  expect(await fact(page, 'Status').textContent()).toBe('limit reached')
  expect(await page.locator('.spend-bar.error').textContent()).toMatch(
    /^limit reached, resets (at 00:00 UTC|on \d{4}-\d\d-01)$/,
  )
  expect(await page.locator('.spend-bar progress').getAttribute('value')).toBe('1')
  // The sums of the page are those of the API.
  const series = await read<{ total: { cost: string; requests: number; errors: number } }>(
    `/api/usage/series?key_id=${key.id}`,
  )
  expect(series.total).toMatchObject({ cost, requests: 2, errors: 1 })
  await fact(page, 'Spend').waitFor()
  expect(await fact(page, 'Spend').locator('[data-usd]').getAttribute('data-usd')).toBe(cost)
  const counts = ['Requests', 'Errors'].map((name) => fact(page, name).textContent())
  expect(await Promise.all(counts)).toEqual(['2', '1'])
  await page.locator('.usage-chart canvas').waitFor()
  await page.locator('.snippet:not(.without-script) [data-what="code for curl"]').waitFor()
  await expectSound(page)
  await page.setViewportSize({ width: 390, height: 844 })
  // The usage explorer shows the same key.
  await page.click('text=Open in the usage explorer')
  await page.waitForSelector('button:has-text("key ci")')
  expect(await page.locator('.tile:has-text("Requests") strong').textContent()).toBe('2')
  await page.goBack()
  // From the refusal to its cause.
  await page.locator(`[data-row="${refused?.id}"] .row-link`).click()
  await fact(page, 'Cause').waitFor()
  expect(await fact(page, 'Cause').textContent()).toBe('spend limit reached')
})

test('projects: the page of a project has its models, keys and usage', async ({ page, project, key }) => {
  await manage(`PATCH /api/projects/${project.id}`, { models: ['sandbox/*'], aliases: { parrot: 'sandbox/echo' } })
  expect(await harness.call(key.secret)).toBe(200)
  await page.locator('.row-link', { hasText: 'web' }).click()
  await page.waitForSelector('h1:text-is("web")')
  expect(await fact(page, 'Allowlist').textContent()).toBe('sandbox/*')
  expect(await fact(page, 'Aliases').textContent()).toBe('parrot → sandbox/echo')
  await page.locator('.usage-chart canvas').waitFor()
  expect(await fact(page, 'Requests').textContent()).toBe('1')
  await expectSound(page)
  await page.locator('section[aria-label="API keys"] .row-link', { hasText: 'ci' }).click()
  await page.waitForSelector('h1:text-is("ci")')
})

test('usage: a new workspace creates a key and runs a request from the page', async ({ page, workspace }) => {
  await button(page, 'Create key and run').first().click()
  await field(page, 'Name of the key').fill('laptop')
  // Only models that answer messages.
  const offered = await field(page, 'Model').locator('option').allTextContents()
  expect(offered).toContain('sandbox/echo')
  expect(offered).not.toContain('sandbox/embed')
  await field(page, 'Message').fill('hello from the first run')
  await page.locator('dialog').getByRole('button', { name: 'Create key and run' }).click()
  const answer = page.locator('[data-answer="sandbox/echo"]')
  const shown = await answer.locator('[data-cost]').getAttribute('data-cost')
  expect(await answer.locator('.answer-text').textContent()).toContain('hello from the first run')
  const secret = (await page.textContent('[data-what=secret]')) ?? ''
  expect(await harness.call(secret)).toBe(200)
  await expectSound(page)
  // In another tab: the secret stays on the page until it is copied.
  const [opened] = await Promise.all([page.waitForEvent('popup'), answer.locator('text=View request').click()])
  await opened.waitForSelector('h1:text-matches("^200 · ")')
  const id = new URL(opened.url()).pathname.split('/').at(-1) ?? ''
  const request = await read<{ cost: string; workspace_id: string }>(`/api/requests/${id}`)
  expect(request).toMatchObject({ cost: shown, workspace_id: workspace.id })
  expect(await opened.locator('[data-charge]').getAttribute('data-charge')).toBe(request.cost)
  await opened.close()
  await button(page, 'Done, I have copied it').click()
  await page.waitForSelector('dialog.sheet', { state: 'detached' })
  await page.locator('.done-step', { hasText: 'Send a request' }).waitFor()
})

test('usage: a provider is added with its key, tested, and its models appear', async ({ page, workspace, key }) => {
  await button(page, 'Add provider').click()
  await field(page, 'Provider').selectOption('openai')
  await field(page, 'API key').fill('sk-good')
  await field(page, 'Base URL').fill(`http://127.0.0.1:${upstream.port}/v1`)
  await button(page, 'Save key').click()
  await page.waitForSelector('h2:text-is("openai is added")')
  await page.locator('dialog .status-ok').waitFor()
  await page.locator('[aria-label="Models of openai"] li').first().waitFor()
  const listed = await page.locator('[aria-label="Models of openai"] li').allTextContents()
  const offered = (await harness.modelsOf(key.secret)).filter(({ own_key: isOwn }) => isOwn)
  expect(listed).toEqual(offered.map(({ id }) => id))
  expect(await page.content()).not.toContain('sk-good')
  await button(page, 'Done').click()
  await page.locator('.done-step', { hasText: 'Add a provider' }).waitFor()
  expect(await read(`/api/workspaces/${workspace.id}/credentials`)).toMatchObject({ data: [{ provider: 'openai' }] })
})

test('playground: a model is found by typing and answers with a system prompt, without a pasted key', async ({
  page,
  project,
}) => {
  await page.locator('.model-button').first().click()
  await page.waitForSelector('.menu-search:focus')
  await page.keyboard.type('think sand')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.locator('.model-button').first().getByText('sandbox/think').waitFor()
  await page.locator('.model-button').nth(1).click()
  await page.getByLabel('Search models').fill('embed')
  await page.waitForSelector('text=No models match.')
  await page.keyboard.press('Escape')
  await field(page, 'System prompt').fill('Be brief.')
  await field(page, 'Temperature').fill('0.5')
  const sent = page.waitForRequest('**/v1/chat/completions')
  await button(page, 'Send').click()
  expect((await sent).postDataJSON()).toMatchObject({
    model: 'sandbox/think',
    temperature: 0.5,
    messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }],
  })
  await page.locator('[data-answer="sandbox/think"] [data-cost]').waitFor()
  const { data: keys } = await read<{ data: readonly { name: string; expires_at: string | null }[] }>(
    `/api/keys?project_id=${project.id}`,
  )
  const own = keys.find(({ name }) => name === 'playground')
  // It ends by itself.
  expect(Date.parse(own?.expires_at ?? '')).toBeLessThan(Date.now() + 3_700_000)
  await button(page, 'View code').click()
  await page.waitForSelector('dialog.sheet[open]')
  expect(await page.textContent('[data-what=request]')).toContain('"temperature":0.5')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.sheet', { state: 'detached' })
  await expectSound(page)
})

test('playground: a conversation is sent whole, its last message is edited and regenerated, and the costs add up', async ({
  page,
}) => {
  const message = field(page, 'Message')
  const ask = async (press: () => Promise<void>) => {
    const sent = page.waitForRequest('**/v1/chat/completions')
    await press()
    return (await sent).postDataJSON().messages as readonly object[]
  }
  const answers = page.locator('[data-answer] [data-cost]')
  const totalOf = (count: number) => page.locator('[data-total]', { hasText: `${count} answer` })
  const user = (content: string) => ({ role: 'user', content })
  await message.fill('one')
  expect(await ask(() => button(page, 'Send').click())).toEqual([user('one')])
  await totalOf(1).waitFor()
  const reply = { role: 'assistant', content: await page.locator('.answer-text').textContent() }
  expect(await message.inputValue()).toBe('')
  await message.fill('two')
  expect(await ask(() => page.keyboard.press('Control+Enter'))).toEqual([user('one'), reply, user('two')])
  await totalOf(2).waitFor()
  expect(await answers.count()).toBe(2)
  expect(await ask(() => button(page, 'Regenerate').click())).toEqual([user('one'), reply, user('two')])
  await totalOf(3).waitFor()
  await button(page, 'Edit').click()
  expect(await message.inputValue()).toBe('two')
  await message.fill('three')
  await button(page, 'View code').click()
  await page.waitForSelector('dialog.sheet[open]')
  const code = await page.textContent('[data-what=request]')
  for (const text of ['"content":"one"', '"role":"assistant"', '"content":"three"']) expect(code).toContain(text)
  expect(code).not.toContain('"content":"two"')
  await page.keyboard.press('Escape')
  expect(await ask(() => button(page, 'Send').click())).toEqual([user('one'), reply, user('three')])
  await totalOf(4).waitFor()
  // All four requests were charged, also those whose answers are gone.
  const { data } = await read<{ data: readonly { cost: string | null }[] }>('/api/requests?limit=4')
  const nanos = data.map(({ cost }) => BigInt((cost ?? '').replace('.', '').padEnd(10, '0')))
  const total = await page.locator('[data-total]').getAttribute('data-total')
  expect(BigInt((total ?? '').replace('.', '').padEnd(10, '0'))).toBe(nanos.reduce((sum, each) => sum + each, 0n))
  // Looking at a request does not lose the conversation.
  await page.getByText('View request').first().click()
  await page.waitForSelector('.waterfall')
  await page.goBack()
  await totalOf(4).waitFor()
  expect(await page.locator('.user-message p').allTextContents()).toEqual(['one', 'three'])
  expect(await ask(() => button(page, 'Regenerate').click())).toEqual([user('one'), reply, user('three')])
  await totalOf(5).waitFor()
  await button(page, 'New conversation').click()
  await page.waitForSelector('text=The answer appears here.')
  expect(await page.locator('[data-total]').count()).toBe(0)
  await expectSound(page)
})

test('playground: every answer names the model that gave it and links its request, whichever is chosen later', async ({
  page,
}) => {
  const choose = async (at: number, id: string) => {
    await page.locator('.model-button').nth(at).click()
    await page.getByLabel('Search models').fill(id)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.locator('.model-button').nth(at).getByText(id).waitFor()
  }
  await choose(1, 'sandbox/think')
  await choose(2, 'sandbox/tools')
  await choose(3, 'sandbox/cache')
  expect(await page.locator('.model-button').count()).toBe(4)
  await button(page, 'Send').click()
  await page.locator('[data-total]', { hasText: '4 answers' }).waitFor()
  await choose(0, 'sandbox/slow')
  await page.locator('.model-button').nth(1).click()
  await page.locator('[role=menuitemradio]', { hasText: 'no other model' }).click()
  const turn = (at: number) => page.locator(`[aria-label="Turn ${at}"] [data-answer]`)
  const modelsOf = async (at: number) =>
    await turn(at).evaluateAll((cards) => cards.map((card) => card.getAttribute('data-answer')))
  const before = ['sandbox/echo', 'sandbox/think', 'sandbox/tools', 'sandbox/cache']
  expect(await modelsOf(1)).toEqual(before)
  await field(page, 'Message').fill('again')
  const sent = page.waitForRequest((request) => request.postData()?.includes('sandbox/tools') ?? false)
  await button(page, 'Send').click()
  // A model that moved still gets its own answer to the first message.
  const own = await turn(1).nth(2).locator('.answer-text').textContent()
  expect((await sent).postDataJSON().messages[1]).toEqual({ role: 'assistant', content: own })
  await page.locator('[data-total]', { hasText: '7 answers' }).waitFor()
  expect(await modelsOf(1)).toEqual(before)
  expect(await modelsOf(2)).toEqual(['sandbox/slow', 'sandbox/tools', 'sandbox/cache'])
  await page.reload()
  await page.waitForSelector('[aria-label="Turn 2"]')
  expect(await modelsOf(1)).toEqual(before)
  for (const card of await page.locator('[data-answer]').all()) {
    const href = await card.getByText('View request').getAttribute('href')
    const request = await read<{ readonly model: string }>(`/api/requests/${href?.split('/').at(-1)}`)
    expect(request.model).toBe((await card.getAttribute('data-answer')) ?? '')
  }
  await expectSound(page)
})

test('playground: a schema and an effort reach every API, and prompts are kept in the browser', async ({
  page,
  go,
}) => {
  const schema = { type: 'object', properties: { city: { enum: ['Ulm'] } }, required: ['city'] }
  const asked = {
    chat: {
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
    },
    responses: {
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'json_schema', name: 'answer', schema, strict: false } },
    },
    messages: { output_config: { effort: 'low', format: { type: 'json_schema', schema } } },
  } as const
  for (const [surface, expected] of Object.entries(asked)) {
    const url = new URL(page.url())
    await go(`${url.origin}${url.pathname}?model=sandbox/think&other=sandbox/echo&surface=${surface}`)
    await field(page, 'Reasoning effort').selectOption('low')
    await page.getByLabel(/^Answer as JSON/).check()
    await page.getByLabel('JSON Schema', { exact: true }).fill('no schema')
    await page.waitForSelector('[role=alert]:has-text("The schema is not a JSON object")')
    await page.getByLabel('JSON Schema', { exact: true }).fill(JSON.stringify(schema))
    const sent = page.waitForRequest((request) => request.postData()?.includes('"sandbox/think"') ?? false)
    const other = page.waitForRequest((request) => request.postData()?.includes('"sandbox/echo"') ?? false)
    await button(page, 'Send').click()
    expect((await sent).postDataJSON()).toMatchObject(expected)
    // It does not reason.
    expect((await other).postData()).not.toContain('effort')
    await page.locator('[data-answer="sandbox/think"] [data-cost]').waitFor()
    await button(page, 'New conversation').click()
  }
  await field(page, 'Message').fill('a good question')
  await field(page, 'System prompt').fill('Be brief.')
  await button(page, 'Saved prompts').click()
  await page.getByLabel('Save the current message and system prompt as').fill('short')
  await button(page, 'Save prompt').click()
  await page.waitForSelector('.saved-prompts .row-name:text-is("short")')
  await page.reload()
  await button(page, 'Saved prompts').click()
  await expectSound(page)
  await button(page, 'Use short').click()
  expect(await field(page, 'Message').inputValue()).toBe('a good question')
  expect(await field(page, 'System prompt').inputValue()).toBe('Be brief.')
  await button(page, 'Saved prompts').click()
  await button(page, 'Delete short').click()
  await page.waitForSelector('text=No prompts yet')
})

test('requests: a failed request is followed to its cause in the panel, and the list stays in place', async ({
  page,
  key,
  workspace,
}) => {
  for (let count = 0; count < 30; count++) await harness.call(key.secret)
  await harness.call(key.secret, 'test-client/1.0', 'sandbox/down')
  const [failed] = await waitForRequests(key.id, 31)
  await page.goto(`${harness.gateway.url}/console/${workspace.id}/requests?live=off`)
  await page.setViewportSize({ width: 1280, height: 700 })
  const row = page.locator(`[data-row="${failed?.id}"]`)
  await row.waitFor()
  // The table fits its box.
  expect(await page.locator('.table-box').evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0)
  await page.evaluate('scrollTo(0, 500)')
  const before = await page.evaluate('scrollY')
  expect(before).toBe(500)
  const last = page.locator('tbody tr').last()
  const lastId = await last.getAttribute('data-row')
  await last.locator('.row-link').focus()
  const focusedAt = await page.evaluate('scrollY')
  await page.keyboard.press('Enter')
  await page.locator('.side-panel [data-charge]').waitFor()
  expect(new URL(page.url()).searchParams.get('request')).toBe(lastId)
  await page.keyboard.press('Escape')
  await page.waitForSelector('.side-panel', { state: 'detached' })
  expect(await page.evaluate('scrollY')).toBe(focusedAt)
  expect(new URL(page.url()).searchParams.has('request')).toBe(false)
  // The address of a panel opens it.
  await page.goto(`${harness.gateway.url}/console/${workspace.id}/requests?live=off&request=${failed?.id}`)
  await fact(page, 'Cause').waitFor()
  expect(await fact(page, 'Cause').textContent()).toBe('every route failed')
  await expectSound(page)
  await page.locator('.side-panel').getByRole('link', { name: 'every route failed' }).click()
  await page.waitForSelector('.side-panel', { state: 'detached' })
  await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' })
  expect(await page.locator('tbody tr').evaluateAll((rows) => rows.map((each) => each.dataset.row))).toEqual([
    failed?.id,
  ])
})

test('people: the page of a person has what they used of their limits and of those of their groups', async ({
  page,
  workspace,
  project,
  go,
}) => {
  const invitation = { email: `${workspace.id.toLowerCase()}@example.com`, role: 'member', workspace_id: workspace.id }
  const { url } = (await manage('POST /api/invitations', invitation)) as Made & { readonly url: string }
  const ada = await harness.accept(url, 'Ada', 'correct horse battery')
  const create = async (path: string) => {
    const headers = { 'content-type': 'application/json' }
    return await (await fetch(path, { method: 'POST', headers, body: JSON.stringify({ name: 'laptop' }) })).json()
  }
  const key = (await ada.page.evaluate(create, `/api/projects/${project.id}/keys`)) as Made
  await manage(`POST /api/workspaces/${workspace.id}/groups`, { name: 'design', members: [invitation.email] })
  await manage(`POST /api/workspaces/${workspace.id}/groups`, { name: 'other', members: [] })
  const { data: members } = await read<{ data: readonly { person_id: string; email: string }[] }>(
    `/api/members?workspace_id=${workspace.id}`,
  )
  const personId = members.find(({ email }) => email === invitation.email)?.person_id ?? ''
  const limitTo = async (path: string, ...limits: readonly (readonly [subject: string, limit: string])[]) => {
    const spend = limits.map(([subject, limit]) => ({ subject, window: 'month', limit }))
    await manage(`PUT ${path}/limits`, { spend_limits: spend })
  }
  await limitTo(`/api/projects/${project.id}`, [`person:${personId}`, '2.00'])
  await limitTo(
    `/api/workspaces/${workspace.id}`,
    ['person', '9.00'],
    ['group:design', '4.00'],
    ['group:other', '5.00'],
  )
  expect(await harness.call(key.secret)).toBe(200)
  const [first] = await waitForRequests(key.id, 1)
  const cost = first?.cost ?? ''
  // Half of it is used.
  await limitTo(`/api/projects/${project.id}`, [`person:${personId}`, formatUsd((2n * (parseUsd(cost) ?? 0n)) as Nano)])
  await go(`${harness.gateway.url}/console/${workspace.id}/people`)
  await page.getByRole('link', { name: 'Ada', exact: true }).click()
  await page.waitForSelector(`h1:text-is("${invitation.email}")`)
  expect(new URL(page.url()).pathname).toBe(`/console/${workspace.id}/people/${personId}`)
  const facts = ['Role', 'Groups'].map((name) => fact(page, name).textContent())
  expect(await Promise.all(facts)).toEqual(['member', 'design'])
  const limitsIn = async (title: string) => {
    const items = page.locator(`.card:has(h2:text-is("${title}")) .limits li`)
    return await items.evaluateAll((list) =>
      list.map((item) => [
        item.querySelector('[data-usd]')?.getAttribute('data-usd') ?? null,
        item.querySelector('progress')?.getAttribute('value') ?? null,
        item.querySelector('small')?.textContent,
      ]),
    )
  }
  // Of the limit of each person too.
  const own = [
    [cost, '0.5', 'by project web'],
    [cost, String(Number(cost) / 9), `by workspace ${workspace.name}`],
  ]
  expect((await limitsIn('Spend limits')).toSorted()).toEqual(own.toSorted())
  expect(await limitsIn('Limits of their groups')).toEqual([
    [cost, String(Number(cost) / 4), `by workspace ${workspace.name}`],
  ])
  await expectSound(page)
  await ada.close()
})

test('usage: batches that are switched off are not in the menu, and their page says so', async ({
  page,
  workspace,
  go,
}) => {
  const menu = page.locator('.console-menu a')
  expect(await menu.allTextContents()).not.toContain('Batches')
  await go(`${harness.gateway.url}/console/${workspace.id}/batches`)
  await page.waitForSelector('.empty:has-text("Batches are switched off"):has-text("batches.enabled")')
})

test('wallet: a balance below the threshold warns before it is used up', async ({ page, workspace, go }) => {
  await page.waitForSelector('h1:text-is("Billing")')
  expect(await page.locator('.banner').count()).toBe(0)
  const lowBalance = { kind: 'balance.low', below: '6.00', workspace_id: workspace.id }
  await manage('POST /api/alert-rules', lowBalance)
  await go(`${harness.gateway.url}/console/${workspace.id}/usage`)
  await page.waitForSelector('.banner:has-text("has $5.00 left, which is less than $6.00")')
})

test('wallet: two tabs stay in their workspaces, and all workspaces are listed by what is left', async ({
  page,
  workspace,
}) => {
  const rich = await manage('POST /api/workspaces', { name: 'rich' })
  await manage(`POST /api/workspaces/${rich.id}/topups`, { amount: '900.00' })
  const poor = await manage('POST /api/workspaces', { name: 'poor' })
  const other = await page.context().newPage()
  await other.goto(`${harness.gateway.url}/console/${rich.id}/wallet`)
  await other.waitForSelector('.tile:has-text("Balance") >> text=$900.00')
  // The list of workspaces is loaded with the document.
  await page.reload()
  await chooseWorkspace(page, 'poor')
  await page.waitForSelector('.tile:has-text("Balance") >> text=$0.00')
  await other.reload()
  await other.waitForSelector('.tile:has-text("Balance") >> text=$900.00')
  await chooseWorkspace(page, 'All workspaces')
  await page.waitForSelector('td[data-label="Runway"]')
  const order = await page.locator('tbody tr').evaluateAll((rows) => rows.map((each) => each.dataset.row))
  const placeOf = (id: string) => order.indexOf(id)
  // Nothing left comes first; then, without spend, the smaller balance.
  expect(placeOf(poor.id)).toBeLessThan(placeOf(workspace.id))
  expect(placeOf(workspace.id)).toBeLessThan(placeOf(rich.id))
  const row = page.locator(`[data-row="${poor.id}"]`)
  expect(await row.locator('td[data-label="State"]').textContent()).toBe('no funds')
  await expectSound(page)
  // Keys and projects of all workspaces name theirs.
  await page.click('.console-menu a:has-text("API keys")')
  await page.locator('td[data-label="Workspace"]', { hasText: workspace.name }).waitFor()
  await expectSound(page)
  await page.click('.console-menu a:has-text("Projects")')
  await page.locator('td[data-label="Workspace"]', { hasText: workspace.name }).waitFor()
  await expectSound(page)
  await other.close()
})

test('keys: a key is created, limited and revoked by keyboard alone', async ({ page, workspace }) => {
  const focused = (selector: string) => page.waitForSelector(`${selector}:focus`)
  await page.locator('tbody tr').first().waitFor()
  await page.keyboard.press('Control+k')
  await focused('.palette input')
  await page.keyboard.type('create key')
  await page.waitForSelector('[role=option][aria-selected=true]:has-text("Create key")')
  await page.keyboard.press('Enter')
  await focused('dialog.sheet input')
  await page.keyboard.type('typed')
  await page.keyboard.press('Enter')
  await page.waitForSelector('[data-what=secret]')
  await button(page, 'Done, I have copied it').press('Enter')
  await page.waitForSelector('dialog.sheet', { state: 'detached' })
  await page.locator('tbody tr', { hasText: 'typed' }).waitFor()
  // The newest key is the first.
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.waitForSelector('h1:text-is("typed")')
  await button(page, 'Limits of typed').press('Enter')
  await focused('dialog.sheet input')
  await page.keyboard.type('3')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.limits:has-text("3 requests/min")')
  await button(page, 'Revoke typed').press('Enter')
  await button(page, 'Revoke key').press('Enter')
  await page.locator('.facts-grid .status', { hasText: 'revoked' }).waitFor()
  expect(new URL(page.url()).pathname).toStartWith(`/console/${workspace.id}/keys/`)
})
