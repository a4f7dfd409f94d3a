// The catalog and the playground show the models and prices of whoever looks: what GET /v1/models says and the ledger
// charges. Two workspaces, one of them on a price list of +15 %, in a real browser over the real gateway.

import { Database } from 'bun:sqlite'
import { afterAll, expect } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { browserTest, openContext, openPage } from '../parts/browser.ts'
import { button, field, type Made, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
const { manage, gateway, browser } = harness

interface Tenant {
  readonly workspace: Made
  readonly project: Made
  readonly key: Made
}

async function makeTenant(name: string, priceList?: string): Promise<Tenant> {
  const workspace = await manage('POST /api/workspaces', { name })
  if (priceList !== undefined) await manage(`PATCH /api/workspaces/${workspace.id}`, { price_list: priceList })
  await manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '5.00' })
  const project = await manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
  const key = await manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
  return { workspace, project, key }
}

/** A browser in which someone has accepted an invitation to the workspace. */
async function enter(tenant: Tenant, email: string) {
  const invitation = { email, role: 'member', workspace_id: tenant.workspace.id }
  const { url } = (await manage('POST /api/invitations', invitation)) as Made & { readonly url: string }
  return await harness.accept(url, email, 'correct horse battery staple')
}

/** USD per million tokens, in the shape of the pages, from USD per token as GET /v1/models states it. */
async function listedPrices(secret: string, id: string) {
  const models = (await harness.modelsOf(secret)) as readonly {
    readonly id: string
    readonly pricing: { readonly prompt: string; readonly completion: string }
  }[]
  const pricing = models.find((model) => model.id === id)?.pricing
  const perMillion = (text = '') => `$${(Number(text) * 1e6).toFixed(2)}`
  return { input: perMillion(pricing?.prompt), output: perMillion(pricing?.completion) }
}

interface Charged {
  readonly input: bigint
  readonly output: bigint
  readonly nanos: bigint
  readonly version: string
}

/** By plain SQL over the database. */
async function chargeOf(id: string): Promise<Charged> {
  // A read of the gateway moves journaled charges into the tables.
  await manage(`GET /api/requests/${id}`)
  const database = new Database(join(gateway.dataFolder, 'tollgate.db'), { readonly: true, safeIntegers: true })
  try {
    return database
      .query(
        'SELECT input_tokens AS input, output_tokens AS output, charge AS nanos, price_version AS version FROM requests WHERE id = ?',
      )
      .get(id) as Charged
  } finally {
    database.close()
  }
}

function cell(page: Page, id: string, label: string) {
  return page.locator(`[data-row="${id}"] td[data-label="${label}"]`)
}

async function waitForCell(page: Page, id: string, label: string, text: string): Promise<void> {
  await page.locator(`[data-row="${id}"] td[data-label="${label}"]:has-text("${text}")`).waitFor()
}

const listName = 'plus'
const setMarkup = (percent: string) => manage(`PUT /api/price-lists/${listName}`, { markup_percent: percent })

browserTest('a member sees the prices of their workspace, which /v1/models states and the ledger charges', async () => {
  await setMarkup('15')
  const [dear, plain] = [await makeTenant('dear', listName), await makeTenant('plain')]
  // docs/sandbox.md: $1.00 in, $2.00 out; with 15 % more $1.15 and $2.30.
  expect(await listedPrices(dear.key.secret, 'sandbox/echo')).toEqual({ input: '$1.15', output: '$2.30' })
  expect(await listedPrices(plain.key.secret, 'sandbox/echo')).toEqual({ input: '$1.00', output: '$2.00' })
  const id = await harness.ask('sandbox/echo', {}, 'test-client/1.0', dear.key.secret)
  const charged = await chargeOf(id)
  // 1.15 and 2.30 dollars per million tokens are 1,150 and 2,300 nano-dollars per token.
  expect(charged.nanos).toBe(charged.input * 1150n + charged.output * 2300n)

  const { page, go, reports } = await enter(dear, 'ada@example.com')
  await go(gateway.url)
  // Also before scripts run.
  const html = await (await page.context().request.get(gateway.url)).text()
  expect(html).toContain('Prices and models of dear / web')
  await page.getByText('Prices and models of dear / web').waitFor()
  expect(await cell(page, 'sandbox/echo', 'Input').textContent()).toBe('$1.15')
  expect(await cell(page, 'sandbox/echo', 'Output').textContent()).toBe('$2.30')
  // (3 × 1.15 + 2.30) / 4 = 1.4375.
  expect(await cell(page, 'sandbox/echo', 'Blended (3:1)').textContent()).toBe('$1.44')

  await go(`${gateway.url}/catalog/sandbox/echo?in=${charged.input}&cached=0&out=${charged.output}&calls=1`)
  const inputRow = page.locator('.price-card tr', { hasText: 'Input' }).first()
  expect(await inputRow.textContent()).toContain('$1.15')
  const sum = await page.locator('.receipt .sum.total dd').textContent()
  expect(BigInt((sum ?? '').replace('$0.', '').padEnd(9, '0'))).toBe(charged.nanos)
  expect(await page.locator('.price-card-foot').textContent()).toContain(charged.version)
  expect(await page.locator('.price-card-foot').textContent()).toContain('price list')
  expect(await page.content()).not.toContain('+15')
  expect(await page.locator('[aria-label="Price history"] tbody tr').first().textContent()).toContain('$1.15')

  await go(`${gateway.url}/compare?m=sandbox/echo&m=sandbox/think`)
  const input = page.locator('.comparison tr', { hasText: /^Input/ })
  expect(await input.textContent()).toContain('$1.15')
  expect(reports).toEqual([])
  await page.context().close()
})

browserTest(
  'prices of an open page follow its price list, and an allowlist its models; visitors keep theirs',
  async () => {
    await setMarkup('15')
    const tenant = await makeTenant('moving', listName)
    const { page, go, reports } = await enter(tenant, 'bob@example.com')
    const visitor = await openPage(browser, gateway.url)
    await go(gateway.url)
    await page.waitForSelector('.live .status-ok')
    await waitForCell(page, 'sandbox/echo', 'Input', '$1.15')
    await setMarkup('20')
    await waitForCell(page, 'sandbox/echo', 'Input', '$1.20')
    await manage(`PUT /api/models/sandbox%2Fecho/price?list=${listName}`, { input: '7.00', output: '8.00' })
    await waitForCell(page, 'sandbox/echo', 'Input', '$7.00')
    expect(await listedPrices(tenant.key.secret, 'sandbox/echo')).toEqual({ input: '$7.00', output: '$8.00' })
    await manage(`PATCH /api/projects/${tenant.project.id}`, { models: ['sandbox/echo'] })
    await page.locator('.result-count:text-is("1 models"), .result-count:text-is("1 model")').waitFor()
    expect(await cell(visitor.page, 'sandbox/echo', 'Input').textContent()).toBe('$1.00')
    // A model that the project may not call is not shown as if it could.
    await go(`${gateway.url}/catalog/sandbox/think`)
    await page.getByText('Project web cannot call this model').waitFor()
    await manage(`PATCH /api/workspaces/${tenant.workspace.id}`, { price_list: null })
    await go(gateway.url)
    await waitForCell(page, 'sandbox/echo', 'Input', '$1.00')
    expect([...reports, ...visitor.reports]).toEqual([])
    await manage(`DELETE /api/models/sandbox%2Fecho/price?list=${listName}`)
    await visitor.close()
    await page.context().close()
  },
)

browserTest('a pasted key shows its own prices on the list, the model page and the calculator', async () => {
  await setMarkup('15')
  const tenant = await makeTenant('keyed', listName)
  const { page, go, reports, close } = await openPage(browser, gateway.url)
  expect(await cell(page, 'sandbox/echo', 'Input').textContent()).toBe('$1.00')
  await page.click('summary:has-text("What can my key use?")')
  await field(page, 'Your key').fill(tenant.key.secret)
  await button(page, 'Show its models').click()
  await waitForCell(page, 'sandbox/echo', 'Input', '$1.15')
  await go(`${gateway.url}/catalog/sandbox/echo?in=1000000&cached=0&out=1000000&calls=1`)
  await page.locator('.receipt .sum.total dd:has-text("$3.45")').waitFor()
  await page.locator('[aria-label="Price history"] tbody tr:has-text("$1.15")').first().waitFor()
  await button(page, 'Forget the key').click()
  await page.locator('.receipt .sum.total dd:has-text("$3.00")').waitFor()
  expect(reports).toEqual([])
  await close()
})

browserTest(
  'operators and members of several projects choose whose prices they see, and the choice is kept',
  async () => {
    await setMarkup('15')
    await makeTenant('chosen', listName)
    await makeTenant('unchosen')
    const { page, reports, go, close } = await harness.signIn('/', { context: await openContext(browser, {}) })
    await page.waitForSelector('html[data-alive]')
    expect(await cell(page, 'sandbox/echo', 'Input').textContent()).toBe('$1.00')
    const choose = async (label: string) => {
      await page.focus('#access-project')
      await page.locator(`#access-project option:text-is("${label}")`).waitFor({ state: 'attached' })
      await page.selectOption('#access-project', { label })
    }
    await choose('chosen / web')
    await waitForCell(page, 'sandbox/echo', 'Input', '$1.15')
    await go(`${gateway.url}/catalog/sandbox/echo`)
    expect(await page.locator('.price-card').textContent()).toContain('$1.15')
    await choose('unchosen / web')
    await page.locator('.price-card tr:has-text("Input"):has-text("$1.00")').first().waitFor()
    await choose('chosen / web')
    await page.locator('.price-card tr:has-text("Input"):has-text("$1.15")').first().waitFor()
    await choose('the public catalog')
    await page.locator('.price-card tr:has-text("Input"):has-text("$1.00")').first().waitFor()
    expect(await page.evaluate('document.cookie')).not.toContain('tollgate-project')
    expect(reports).toEqual([])
    await close()
  },
)

browserTest(
  'the playground shows the models and prices of the project, and of a key that is entered instead',
  async () => {
    await setMarkup('15')
    const [dear, plain] = [await makeTenant('playing', listName), await makeTenant('typing')]
    await manage(`PATCH /api/projects/${plain.project.id}`, { models: ['sandbox/echo', 'sandbox/think'] })
    const { page, reports, close } = await harness.signIn(
      `/console/${dear.workspace.id}/playground?model=sandbox/echo&other=sandbox/cache`,
    )
    const estimate = page.locator('[data-composer] .hint', { hasText: 'sandbox/echo' })
    // docs/sandbox.md: $2.00 out; with 15 % more $2.30, and 200 tokens cost $0.00046.
    await estimate.getByText('at most $0.00046 (200 tokens × $2.30 per million), the message $1.15').waitFor()
    await setMarkup('20')
    await estimate.getByText('200 tokens × $2.40 per million').waitFor()
    await page.locator('.model-button').first().click()
    await page.getByLabel('Search models').fill('sandbox/echo')
    expect(await page.locator('[role=menuitemradio]').first().textContent()).toContain('$1.20 / $2.40')
    await page.keyboard.press('Escape')
    await page.fill('input[type=password]', plain.key.secret)
    await page.locator('input[type=password]').blur()
    await page.getByText('200 tokens × $2.00 per million').waitFor()
    // The key cannot call sandbox/cache.
    expect(await page.locator('[data-answer]').count()).toBe(1)
    await button(page, 'Send').click()
    await page.locator('[data-answer] [data-cost]').waitFor()
    const href = await page.getByText('View request').getAttribute('href')
    const charged = await chargeOf(href?.split('/').at(-1) ?? '')
    expect(charged.nanos).toBe(charged.input * 1000n + charged.output * 2000n)
    expect(reports).toEqual([])
    await close()
  },
)

browserTest('a model page has the uptime of its routes, and for operators what they pay there', async () => {
  const tenant = await makeTenant('looking')
  for (let calls = 0; calls < 2; calls++) {
    expect(await harness.call(tenant.key.secret, 'a client', 'sandbox/flaky')).toBe(200)
  }
  const { page, go, reports, close } = await harness.signIn('/catalog/sandbox/flaky')
  // docs/sandbox.md: its first route fails on every other call, and the second one answers then.
  const uptimes = page.locator('td[data-label="Uptime (30 days)"]')
  await uptimes.first().getByText('50.0 %').waitFor()
  expect(await uptimes.allTextContents()).toEqual(['50.0 %2 attempts', '100.0 %1 attempt'])
  // No provider bills the sandbox.
  const costs = page.locator('td[data-label="You pay (in / out)"]')
  expect(await costs.allTextContents()).toEqual(['free', 'free'])
  await go(`${gateway.url}/catalog/anthropic/claude-opus-5`)
  // Built-in prices are what providers charge: $5 in and $25 out (platform.claude.com/docs/en/models/opus-5/overview).
  expect(await costs.first().textContent()).toBe('$5.00 / $25.00')
  const facts = page.locator('.model-head')
  for (const fact of ['2026-07-24', '2026-05', 'Text, Image, PDF']) expect(await facts.textContent()).toContain(fact)
  const member = await enter(tenant, 'eve@example.com')
  await member.go(`${gateway.url}/catalog/sandbox/flaky`)
  await member.page.locator('td[data-label="Uptime (30 days)"]').first().getByText('50.0 %').waitFor()
  expect(await member.page.locator('td[data-label="You pay (in / out)"]').count()).toBe(0)
  expect(await member.page.content()).not.toContain('"costs"')
  expect([...reports, ...member.reports]).toEqual([])
  await member.page.context().close()
  await close()
})
