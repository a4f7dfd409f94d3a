// Journeys through the console in a real browser over the real gateway: each starts as a user does and follows the pages to
// the result, by their buttons and links. Figures are compared with the management API.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { seriousFaults } from '../parts/axe.ts'
import { sidewaysPixels } from '../parts/browser.ts'
import { act, button, field, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
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

/** At the width of a phone too. */
async function expectSound(page: Page): Promise<void> {
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 844 })
    expect({ width, pixels: await sidewaysPixels(page), faults: await seriousFaults(page) }).toEqual({
      width,
      pixels: 0,
      faults: [],
    })
  }
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
  expect(await page.title()).toBe('ci · Tollgate')
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
  const sums = ['Spend', 'Requests', 'Errors'].map((name) => fact(page, name).textContent())
  expect(await Promise.all(sums)).toEqual([`$${cost.replace(/(\.\d\d\d*?)0+$/, '$1')}`, '2', '1'])
  await page.locator('.usage-chart canvas').waitFor()
  await page.locator('[data-what="code for curl"]').waitFor()
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
