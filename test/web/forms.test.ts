// What forms say beside a field, in place of the browser's bubbles, and that nothing is sent or saved then; alert rules and
// limits, whose forms have the most to say.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { seriousFaultsInBoth } from '../parts/axe.ts'
import { browserTest, openContext, watchPage } from '../parts/browser.ts'
import { button, field, startConsole } from './console-harness.ts'

const config = `
webhooks: { allow_hosts: ["192.0.2.9"] }
providers:
  - id: acme
    base_url: http://127.0.0.1:9/v1
    dialect: openai-chat
    api_key: not-a-key
models:
  - id: acme/large
    price: { input: "2.50", output: "10.00" }
    routes: [{ provider: acme, model: large, cost: { input: "2.00", output: "8.00" } }]
`
const harness = await startConsole({ config })
const { test, manage, gateway } = harness
afterAll(() => harness.stop())

const faults = (page: Page) => page.locator('.field-error').allInnerTexts()
const focusedLabel = (page: Page) => page.evaluate('document.activeElement.labels[0].textContent')

const rulesOf = async (workspaceId: string) => {
  const answer: unknown = await manage(`GET /api/alert-rules?workspace_id=${workspaceId}`)
  return (answer as { data: Record<string, unknown>[] }).data
}

/** What each page sends from now on, except GET. */
function watchSent(page: Page): string[] {
  const sent: string[] = []
  page.on('request', (request) => request.method() !== 'GET' && void sent.push(request.url()))
  return sent
}

async function openVisitor(path: string) {
  const opened = await watchPage(await openContext(harness.browser, { reducedMotion: 'reduce' }))
  await opened.go(gateway.url + path)
  return opened
}

browserTest('the sign-in says which field is missing or wrong, and sends nothing', async () => {
  const { page, reports } = await openVisitor('/console')
  const sent = watchSent(page)
  await button(page, 'Sign in').click()
  expect(await faults(page)).toEqual(['Management token is required.'])
  expect(await focusedLabel(page)).toBe('Management token')
  await field(page, 'Management token').fill('x')
  expect(await faults(page)).toEqual([])
  await manage('POST /api/invitations', { email: 'ada@example.com', role: 'operator' })
  const { url } = (await manage('POST /api/invitations', { email: 'grace@example.com', role: 'operator' })) as never
  const person = await harness.accept(url, 'Grace', 'correct horse battery')
  await person.close()
  await page.reload()
  await field(page, 'E-mail address').fill('grace')
  await button(page, 'Sign in').click()
  expect(await faults(page)).toEqual(['Enter an e-mail address such as ada@example.com.', 'Password is required.'])
  expect(await focusedLabel(page)).toBe('E-mail address')
  expect(await seriousFaultsInBoth(page)).toEqual([])
  expect([sent, reports]).toEqual([[], []])
})

browserTest('the catalog asks for the key beside its field, and the calculator marks only what is wrong', async () => {
  const { page, reports } = await openVisitor('/catalog/acme/large')
  await page.getByText('What can my key use?').click()
  await button(page, 'Show its models').click()
  expect(await faults(page)).toEqual(['Your key is required.'])
  const cached = field(page, 'Cached, %')
  expect(await page.locator('.calculator [aria-invalid]').count()).toBe(0)
  await cached.fill('101')
  expect(await page.locator('.calculator .field-error').allInnerTexts()).toEqual([
    'Enter a whole number from 0 to 100.',
  ])
  expect(await page.locator('.calculator [aria-invalid=true]').count()).toBe(1)
  expect(await page.locator('.receipt').count()).toBe(0)
  await cached.fill('50')
  await page.waitForSelector('.receipt')
  expect(reports).toEqual([])
})

browserTest('the playground says what is missing, and sends nothing', async () => {
  const { page, reports, close } = await harness.signIn(
    `/console/${harness.firstWorkspaceId}/playground?model=sandbox/echo`,
  )
  await field(page, 'Max output tokens').waitFor()
  const sent = watchSent(page)
  await field(page, 'Message').fill('')
  await field(page, 'Max output tokens').fill('0')
  await field(page, 'Temperature').fill('3')
  await button(page, 'Send').click()
  const [message, ...others] = await faults(page)
  expect(message).toBe('Message is required.')
  expect(others[0]).toStartWith('Max output tokens must be from 1 to ')
  expect(others[1]).toBe('Temperature must be from 0 to 2.')
  expect(await focusedLabel(page)).toBe('Message')
  await page.getByLabel(/^Offer a tool/).check()
  await field(page, 'Parameters (JSON Schema)').fill('[')
  expect(await faults(page)).toContain('The parameters are not a JSON object.')
  expect([sent, reports]).toEqual([[], []])
  await close()
})

browserTest('a price list below cost is refused beside the field that allows it, and nothing is saved', async () => {
  const { page, close } = await harness.signIn('/console/all/margin')
  const lists = async () => (await manage('GET /api/price-lists')) as unknown as { data: object[] }
  await button(page, 'New price list').click()
  const create = button(page, 'Create price list')
  await field(page, 'Name').fill('Big Customers')
  await field(page, 'Markup on the catalog prices, in percent').fill('ten')
  await create.click()
  expect(await faults(page)).toEqual([
    'Enter at most 40 lower-case letters, digits and hyphens.',
    'Enter a percentage such as 15 or -10.',
  ])
  await field(page, 'Name').fill('big')
  await field(page, 'Markup on the catalog prices, in percent').fill('-100.5')
  await create.click()
  await page.waitForSelector('.field-error:has-text("Markup on the catalog prices, in percent must be")')
  // $2.50 less 30 % is $1.75, below the cost of $2.00.
  await field(page, 'Markup on the catalog prices, in percent').fill('-30')
  await create.click()
  await page.waitForSelector('.field-error:has-text("This would sell input of acme/large, output of acme/large")')
  expect(await focusedLabel(page)).toBe('Prices below the cost of a route')
  expect((await lists()).data).toEqual([])
  await field(page, 'Prices below the cost of a route').selectOption({ label: 'Allow' })
  await create.click()
  await page.waitForSelector('td:has-text("−30 %")')
  expect((await lists()).data).toMatchObject([{ name: 'big', markup_percent: '-30' }])
  await close()
})

browserTest('a session without a personal account says how to get one', async () => {
  const { page, go, reports, close } = await harness.signIn()
  await go(`${gateway.url}/console/${harness.firstWorkspaceId}/account`)
  await page.waitForSelector('h1:text-is("This session has no personal account")')
  expect(await seriousFaultsInBoth(page)).toEqual([])
  await page.getByRole('link', { name: 'Invite yourself as an operator' }).click()
  await button(page, 'Invite an operator').click()
  await field(page, 'E-mail address').waitFor()
  expect(reports.filter((report) => !report.includes('status of 403'))).toEqual([])
  await close()
})

browserTest('a balance threshold of 0 and an amount that is no number are refused beside the field', async () => {
  const { page, close } = await harness.signIn(`/console/${harness.firstWorkspaceId}/alerts`)
  const rules = async () =>
    ((await manage(`GET /api/alert-rules?workspace_id=${harness.firstWorkspaceId}`)) as unknown as { data: object[] })
      .data.length
  const before = await rules()
  await button(page, 'New rule').click()
  const below = field(page, 'Balance below, USD')
  await below.fill('-5')
  await button(page, 'Create rule').click()
  expect(await faults(page)).toEqual(['Enter US dollars as a number: 25 or 2.50.'])
  await below.fill('0')
  await button(page, 'Create rule').click()
  await page.waitForSelector('.field-error:has-text("Balance below, USD")')
  expect(await focusedLabel(page)).toBe('Balance below, USD')
  expect(await rules()).toBe(before)
  await close()
})

test('alerts: an alert at 80 % of one key, with a wrong percentage and a stranger refused beside their fields', async ({
  page,
  workspace,
  key,
  allow,
}) => {
  allow(400)
  await page.waitForSelector('text=Every spend limit at 75, 90 and 100 %')
  await page.waitForSelector('text=Balance below $1.00')
  await button(page, 'New rule').click()
  const dialog = page.locator('dialog')
  await dialog.getByLabel('Alert when').selectOption({ label: 'Spend limit' })
  await dialog.getByLabel('Whose limits').selectOption({ label: 'key ci' })
  await dialog.getByLabel('Percent of the limit').fill('eighty')
  await dialog.getByRole('button', { name: 'Create rule' }).click()
  expect(await faults(page)).toEqual(['Enter percentages separated by commas: 80, 100.'])
  await dialog.getByLabel('Percent of the limit').fill('80, 101')
  await dialog.getByLabel('Further e-mail addresses').fill('eve@elsewhere.example')
  await dialog.getByRole('button', { name: 'Create rule' }).click()
  await page.waitForSelector(
    'dialog .field-error:text-is("Percent of the limit must be a whole number from 1 to 100.")',
  )
  expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Percent of the limit')
  await dialog.getByLabel('Percent of the limit').fill('80 %')
  expect(await faults(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Create rule' }).click()
  await page.waitForSelector('dialog .field-error:has-text("eve@elsewhere.example has no role in this workspace.")')
  expect(await rulesOf(workspace.id)).toHaveLength(3)
  await dialog.getByLabel('Further e-mail addresses').fill('')
  await dialog.getByRole('button', { name: 'Create rule' }).click()
  await page.waitForSelector('text=Spend limit of key ci at 80 %')
  expect((await rulesOf(workspace.id)).at(-1)).toMatchObject({
    ...{ kind: 'limit.reached', percents: [80], scope_id: key.id, roles: ['admin'], emails: [], webhooks: [] },
  })
})

test('alerts: a rule is changed and deleted, and names a webhook for Slack', async ({ page, workspace }) => {
  // Alerts about providers are of no workspace.
  const everywhere = page.getByRole('link', { name: 'Alerts of all workspaces and providers' })
  await everywhere.waitFor()
  expect(await everywhere.getAttribute('href')).toBe('/console/all/alerts')
  await button(page, 'New webhook').click()
  const dialog = page.locator('dialog')
  await dialog.getByLabel('URL').fill('hooks')
  await dialog.getByRole('button', { name: 'Create webhook' }).click()
  expect(await faults(page)).toEqual(['Enter an address such as https://example.com/hook.'])
  await dialog.getByLabel('URL').fill('https://192.0.2.9/hook')
  await dialog.getByLabel('Format').selectOption({ label: 'Slack message' })
  await dialog.getByLabel('Only those of rules that name it').check()
  await dialog.getByRole('button', { name: 'Create webhook' }).click()
  await button(page, 'Done, I have copied it').click()
  await page.waitForSelector('text=only those of rules')
  const balance = page.locator('tr', { hasText: 'Balance below $1.00' })
  await balance.getByRole('button', { name: 'Edit' }).click()
  await field(page, 'Balance below, USD').fill('$1,250.50')
  await dialog.getByLabel('Webhook 192.0.2.9').check()
  await dialog.getByRole('button', { name: 'Save rule' }).click()
  await page.waitForSelector('text=Balance below $1,250.50')
  const [hook] = ((await manage(`GET /api/webhooks?workspace_id=${workspace.id}`)) as unknown as { data: object[] })
    .data
  expect(hook).toMatchObject({ format: 'slack', kinds: [] })
  expect((await rulesOf(workspace.id))[0]).toMatchObject({ below: '1250.50', webhooks: [(hook as { id: string }).id] })
  await page.locator('tr', { hasText: 'Automatic top-up failed' }).getByRole('button', { name: 'Delete' }).click()
  await button(page, 'Delete rule').click()
  await page.locator('tr', { hasText: 'Automatic top-up failed' }).waitFor({ state: 'detached' })
  expect(await rulesOf(workspace.id)).toHaveLength(2)
})

test('keys: limits of a new key take 1,000 and tags in rows, and faults stay beside their fields', async ({
  page,
  workspace,
}) => {
  await button(page, 'New key').click()
  const dialog = page.locator('dialog')
  const create = dialog.getByRole('button', { name: 'Create key' })
  await create.click()
  expect(await faults(page)).toEqual(['Name is required.'])
  await dialog.getByLabel('Name', { exact: true }).fill('batch')
  expect(await dialog.locator('.columns').first().locator('label').allInnerTexts()).toEqual([
    'Name',
    'Project',
    'Requests per minute',
    'Spend per month (UTC), USD',
  ])
  await dialog.getByLabel('Requests per minute').fill('1,000')
  await dialog.getByLabel('Spend per month (UTC), USD').fill('12,5')
  await create.click()
  expect(await faults(page)).toEqual(['Enter US dollars as a number: 25 or 2.50.'])
  await dialog.getByLabel('Spend per month (UTC), USD').fill('$2,500')
  await dialog.getByText('More limits').click()
  const tags = dialog.getByRole('group', { name: 'Spend by tag per month, USD' })
  await tags.getByLabel('Tag 1', { exact: true }).fill('team=web')
  await create.click()
  expect(await faults(page)).toEqual(['Spend by tag per month, USD is required.'])
  await tags.getByLabel('USD for tag 1').fill('100')
  await tags.getByRole('button', { name: 'Add tag' }).click()
  await tags.getByLabel('Tag 2', { exact: true }).fill('job=nightly')
  await tags.getByLabel('USD for tag 2').fill('1,000.5')
  await create.click()
  await button(page, 'Done, I have copied it').click()
  const { data } = (await manage(`GET /api/keys?workspace_id=${workspace.id}`)) as unknown as {
    data: { name: string; limits: object }[]
  }
  expect(data.find(({ name }) => name === 'batch')?.limits).toEqual({
    ...{ requests_per_minute: 1000, spend_per_month: '2500.00' },
    tag_spend_per_month: { 'team=web': '100.00', 'job=nightly': '1000.50' },
  })
})
