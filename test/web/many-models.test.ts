// Pages of an installation with a thousand models have a bounded number of elements, and what they leave out can be found.

import { afterAll, expect } from 'bun:test'
import { browserTest } from '../parts/browser.ts'
import { field, startConsole } from './console-harness.ts'

const modelCount = 1_000
const elementsMax = 2_000

const models = Array.from({ length: modelCount }, (_, at) => {
  const cost = at === 7 ? ', cost: { input: "0.80", output: "1.60" }' : ''
  const routes = `[{ provider: acme, model: m-${at}${cost} }]`
  return `  - { id: acme/model-${at}, price: { input: "1.00", output: "2.00" }, routes: ${routes} }`
})

const harness = await startConsole({
  config: `
providers:
  - { id: acme, dialect: openai-chat, base_url: "http://127.0.0.1:1/v1", api_key: canary-never-called }
models:
${models.join('\n')}
`,
})
afterAll(() => harness.stop())

/** Each with what is there once it is loaded. */
const pages = {
  '/': '.live .status-ok',
  '/catalog/acme/model-7': '.live .status-ok',
  '/console/providers': 'section[aria-label="Declared models"] tr[data-row]',
  '/console/providers/acme': 'section[aria-label="Prices"] tr[data-row]',
  '/console/settings': 'tr[data-row]',
  '/console/all/margin/retail': 'tr[data-row]',
  '/console/keys': 'tr[data-row]',
  '/console/projects': 'tr[data-row]',
} as const

browserTest.each(Object.entries(pages))('%s has a bounded number of elements', async (path, ready) => {
  await harness.manage('PUT /api/price-lists/retail', { markup_percent: '15' })
  const { page, close } = await harness.signIn(path)
  await page.waitForSelector(ready)
  await page.waitForSelector('.loading', { state: 'detached' })
  expect(await page.locator('*').count()).toBeLessThan(elementsMax)
  await close()
})

browserTest('the routes and prices of a provider are searched, and shown in steps', async () => {
  const { page, close } = await harness.signIn('/console/providers/acme')
  const routes = page.locator('section[aria-label="Routes"] tr[data-row]')
  const prices = page.locator('section[aria-label="Prices"] tr[data-row]')
  await routes.first().waitFor()
  await prices.first().waitFor()
  expect([await routes.count(), await prices.count()]).toEqual([20, 20])
  await page.getByRole('button', { name: 'Show more of 1,000 routes' }).click()
  expect([await routes.count(), await prices.count()]).toEqual([40, 20])
  await field(page, 'Find a model').fill('model-999')
  expect(await routes.locator('th a').allTextContents()).toEqual(['acme/model-999'])
  await field(page, 'Find a model').fill('acme/model-7')
  // 7, 70 to 79 and 700 to 799.
  await page.getByRole('button', { name: 'Show more of 111 routes' }).waitFor()
  const priced = prices.filter({ has: page.locator('a', { hasText: /^acme\/model-7$/ }) })
  expect(await priced.locator('td .amount').allTextContents()).toEqual(['$1.00', '$2.00', '$0.80', '$1.60'])
  await close()
})
