// Alert rules in the console, and what forms say beside a field.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { button, field, startConsole } from './console-harness.ts'

const harness = await startConsole({ config: 'webhooks: { allow_hosts: ["192.0.2.9"] }\n' })
const { test, manage } = harness
afterAll(() => harness.stop())

const rulesOf = async (workspaceId: string) => {
  const answer: unknown = await manage(`GET /api/alert-rules?workspace_id=${workspaceId}`)
  return (answer as { data: Record<string, unknown>[] }).data
}
const errorsIn = (page: Page) => page.locator('dialog .field-error').allInnerTexts()

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
  expect(await errorsIn(page)).toEqual(['Enter percentages separated by commas: 80, 100.'])
  await dialog.getByLabel('Percent of the limit').fill('80, 101')
  await dialog.getByLabel('Further e-mail addresses').fill('eve@elsewhere.example')
  await dialog.getByRole('button', { name: 'Create rule' }).click()
  await page.waitForSelector(
    'dialog .field-error:text-is("Percent of the limit must be a whole number from 1 to 100.")',
  )
  expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Percent of the limit')
  await dialog.getByLabel('Percent of the limit').fill('80 %')
  expect(await errorsIn(page)).toEqual([])
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
  expect(await errorsIn(page)).toEqual(['Enter an address such as https://example.com/hook.'])
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
  expect(await errorsIn(page)).toEqual(['Name is required.'])
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
  expect(await errorsIn(page)).toEqual(['Enter US dollars as a number: 25 or 2.50.'])
  await dialog.getByLabel('Spend per month (UTC), USD').fill('$2,500')
  await dialog.getByText('More limits').click()
  const tags = dialog.getByRole('group', { name: 'Spend by tag per month, USD' })
  await tags.getByLabel('Tag 1', { exact: true }).fill('team=web')
  await create.click()
  expect(await errorsIn(page)).toEqual(['Spend by tag per month, USD is required.'])
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
