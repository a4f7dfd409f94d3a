// Keys in the console, in a real browser over the real gateway: made, used for the first time, limited, rotated, revoked.

import { afterAll, beforeAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserTest } from '../parts/browser.ts'
import { button, type ConsoleHarness, field, startConsole } from './console-manage-harness.ts'

let harness: ConsoleHarness

beforeAll(async () => {
  harness = await startConsole()
})
afterAll(() => harness.stop())

const focused = (page: Page) => page.evaluate('document.activeElement.ariaLabel ?? document.activeElement.textContent')

browserTest('a new key shows its secret once, and its first request is received', async () => {
  const { page, reports, close } = await harness.openConsole('first call', 'keys')
  await button(page, 'New key').click()
  // The field has the focus: a name and Enter are enough.
  await page.waitForSelector('dialog.sheet[open]')
  await page.keyboard.type('laptop')
  await page.keyboard.press('Enter')
  const secret = (await page.textContent('[data-what=secret]')) ?? ''
  expect(secret).toMatch(/^sk-tg-\w{20,}$/)
  expect(await page.textContent('[data-what=".env lines"]')).toBe(
    `OPENAI_BASE_URL=${harness.gateway.url}/v1\nOPENAI_API_KEY=${secret}\nANTHROPIC_BASE_URL=${harness.gateway.url}\nANTHROPIC_API_KEY=${secret}`,
  )
  expect(await page.textContent('[data-what="connect command"]')).toContain(
    `TOLLGATE_KEY=${secret} npx tollgate connect`,
  )
  await page.waitForSelector('text=waiting for the first request')
  // Nothing can show it again, so that no key closes it by accident.
  await page.keyboard.press('Escape')
  expect(await harness.call(secret)).toBe(200)
  await page.waitForSelector('.first-request:has-text("received")')
  expect(await page.getAttribute('.first-request a', 'href')).toMatch(/^\/console\/requests\/req_/)
  await button(page, 'Done, I have copied it').click()
  await page.waitForSelector('th:has-text("laptop")')
  expect(await page.content()).not.toContain(secret)
  expect(await focused(page)).toBe('New key')
  expect(reports).toEqual([])
  await close()
})

browserTest('revoking shows the last use, returns the focus when cancelled, and revokes the key', async () => {
  const { page, key, close } = await harness.openConsole('revoking', 'keys')
  expect(await harness.call(key.secret, 'claude-cli/2.1')).toBe(200)
  await button(page, 'Revoke ci').click()
  await page.waitForSelector('.last-use:has-text("Last used just now by claude-cli/2.1")')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.sheet', { state: 'detached' })
  expect(await focused(page)).toBe('Revoke ci')
  expect(await harness.call(key.secret)).toBe(200)
  await page.keyboard.press('Enter')
  await button(page, 'Revoke key').click()
  await page.waitForSelector('tr:has-text("ci") >> text=revoked')
  expect(await harness.call(key.secret)).toBe(401)
  await close()
})

browserTest('rotating keeps the old secret for the chosen time, or not at all', async () => {
  const { page, key, close } = await harness.openConsole('rotating', 'keys')
  const rotate = async (overlap: string) => {
    await button(page, 'Rotate ci').click()
    await page.getByRole('combobox', { name: 'The old secret expires' }).selectOption({ label: overlap })
    await button(page, 'Rotate').click()
    const secret = (await page.textContent('[data-what=secret]')) ?? ''
    await button(page, 'Done, I have copied it').click()
    return secret
  }
  const second = await rotate('After 1 hour')
  expect([await harness.call(key.secret), await harness.call(second)]).toEqual([200, 200])
  const third = await rotate('Immediately')
  expect([await harness.call(second), await harness.call(third)]).toEqual([401, 200])
  await close()
})

browserTest('the tightest limit is shown with its holder, and changes are previewed', async () => {
  const { page, project, key, go, close } = await harness.openConsole('limits', 'keys')
  await harness.manage(`PUT /api/projects/${project.id}/limits`, { requests_per_minute: 3 })
  await harness.manage(`PUT /api/keys/${key.id}/limits`, { requests_per_minute: 50 })
  await go(`${harness.gateway.url}/console/keys`)
  await page.waitForSelector('.limits:has-text("3 requests/min by the project")')
  await button(page, 'Limits of ci').click()
  await field(page, 'Requests per minute').fill('2')
  await field(page, 'Spend per day (UTC), USD').fill('1.5')
  expect(await page.locator('.diff li').allTextContents()).toEqual([
    'Requests per minute: 50 requests/min → 2 requests/min',
    'Spend per day (UTC), USD: no limit → $1.50/day',
  ])
  await button(page, 'Save limits').click()
  await page.waitForSelector('.limits:has-text("$1.50/day")')
  expect(await page.locator('.limits li').allTextContents()).toEqual(['2 requests/min ', '$1.50/day '])
  await close()
})

browserTest('a failed page shows the error and request id, and can be retried', async () => {
  const { page, go, close } = await harness.openConsole('out of order', 'keys')
  const refusal = { status: 503, headers: { 'x-request-id': 'req_of_the_refusal' } }
  const body = JSON.stringify({ error: { message: 'The store does not answer.' } })
  await page.route('**/api/keys?**', (route) => route.fulfill({ ...refusal, contentType: 'application/json', body }))
  await go(`${harness.gateway.url}/console/keys`)
  await page.waitForSelector('[role=alert]:has-text("The store does not answer."):has-text("req_of_the_refusal")')
  await page.unroute('**/api/keys?**')
  await button(page, 'Try again').click()
  await page.waitForSelector('th:has-text("ci")')
  expect(await page.locator('[role=alert]').filter({ hasText: 'store' }).count()).toBe(0)
  await close()
})
