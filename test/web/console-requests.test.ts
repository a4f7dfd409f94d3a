// Requests that went wrong, and addresses that are wrong, in a real browser over the real gateway: the pages say what
// happened, and nothing that did not.

import { afterAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { act, button, field, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
const { test } = harness

test('keys: an invalid time in the address is reported and ignored', async ({ page, key, go }) => {
  await harness.call(key.secret)
  let asked = 0
  const ofAll: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/api/')) asked++
    if (request.url().includes('/api/requests') && !request.url().includes('workspace_id=')) ofAll.push(request.url())
  })
  await go(`${harness.gateway.url}/console/requests?from=xx&to=yesterday`)
  await page.waitForSelector('[data-row]')
  await page.waitForSelector('button:has-text("from “xx”: not a time, ignored")')
  await page.waitForSelector('.live .status-ok')
  // Workspaces, the list when they are known, after the address was read and again when live, models, projects, the stream.
  expect(asked).toBeLessThan(15)
  // Requests of other workspaces are not shown even for a moment.
  expect(ofAll).toEqual([])
  await page.locator('button:has-text("before “yesterday”")').click()
  await page.waitForURL((url) => url.search === '?from=xx')
})

test('keys: a request without a provider says so, and a request for an unknown model names it and its cause', async ({
  page,
  key,
  go,
}) => {
  await harness.call(key.secret, 'test-client/1.0', 'sandbox/throttled')
  await harness.call(key.secret, 'test-client/1.0', 'acme/unknown')
  await harness.call(key.secret)
  const fact = (name: string) =>
    page
      .locator('.facts-grid > div', { has: page.locator(`dt:text-is("${name}")`) })
      .locator('dd')
      .textContent()
  const open = async (text: string) => {
    await go(`${harness.gateway.url}/console/requests?live=off`)
    // A request without a charge is written to the log a moment after its answer.
    while ((await page.locator('tbody tr').count()) < 3) {
      await Bun.sleep(200)
      await page.reload()
      await page.waitForSelector('tbody tr')
    }
    // Not in the text of the row: there a time and a status can look like another status.
    const cell = page.locator('td', { hasText: new RegExp(`^\\s*${text}`) })
    await page.locator('tbody tr', { has: cell }).locator('.row-link').click()
    await page.waitForSelector('.facts-grid')
  }
  await open('429')
  expect(await fact('Provider')).toBe('none')
  await open('404')
  expect(await fact('Cause')).toBe('unknown model')
  expect([await fact('Provider'), await fact('Model')]).toEqual(['none', 'acme/unknown'])
  await open('sandbox/echo')
  expect(await fact('Provider')).toBe('sandbox echo')
  await go(`${harness.gateway.url}/console`)
  await page.waitForSelector('.data-table th:has-text("(no model)")')
  expect(await page.locator('.data-table').nth(0).locator('tbody .row-link').allTextContents()).toEqual([
    'sandbox/echo',
    'sandbox/throttled',
  ])
  // The sandbox answers at once; below their lowest bound the counts know no more than that.
  const firstToken = page.locator('.tile', { hasText: 'Time to first token' }).locator('strong')
  expect(await firstToken.textContent()).toMatch(/^(under 25|≈ \d+) ms$/)
})

test('keys: a report by session leads to its requests, and these to what they were for', async ({ page, key, go }) => {
  const { secret } = key
  await harness.ask('sandbox/echo', { prompt_cache_key: 'session-9', user: 'alice' }, 'shell-x/1.0', secret)
  await harness.ask('sandbox/echo', {}, 'shell-y/1.0', secret)
  await go(`${harness.gateway.url}/console`)
  await field(page, 'Group by').selectOption('session')
  const report = page.locator('table', { hasText: 'Usage by session' })
  await report.locator('text=(no session)').waitFor()
  await report.locator('.row-link', { hasText: 'session-9' }).click()
  await page.waitForSelector('button:has-text("session session-9")')
  await page.waitForSelector('tbody .row-link')
  expect(await page.locator('tbody tr').count()).toBe(1)
  await page.locator('tbody .row-link').click()
  await page.waitForSelector('.facts-grid')
  const fact = (name: string) =>
    page
      .locator('.facts-grid > div', { has: page.locator(`dt:text-is("${name}")`) })
      .locator('dd')
      .textContent()
  expect(await fact('Session')).toBe('session-9')
  expect(await fact('Client')).toBe('shell-x')
  expect(await fact('End user')).toMatch(/^eu_/)
})

test('usage: a report that reads the log for long says how long it takes, and Cancel ends it', async ({
  page,
  key,
  go,
}) => {
  await harness.call(key.secret)
  await go(`${harness.gateway.url}/console`)
  await page.waitForSelector('.tile')
  // Never answered: the browser ends it.
  await page.route(/\/api\/usage\/series\?.*group_by=session/, () => {})
  await page.route(/\/api\/usage\/estimate\?/, (route) => route.fulfill({ json: { rows: 1_200_000, seconds: 10 } }))
  const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('group_by=session'))
  await go(`${harness.gateway.url}/console?group=session`)
  const notice = page.locator('[role=status]', { hasText: 'Reading 1,200,000 requests from the log: about 10 s.' })
  await notice.waitFor()
  await notice.locator('button', { hasText: 'Cancel' }).click()
  await page.waitForSelector('text=Cancelled before the log was read to its end.')
  await ended
  expect(await notice.count()).toBe(0)
})

test('keys: a refused playground request replaces the placeholder, and one token is singular', async ({
  page,
  go,
  allow,
}) => {
  allow(401)
  await go(`${harness.gateway.url}/console/playground?model=sandbox/echo`)
  await page.waitForSelector('text=The answer appears here.')
  await page.fill('input[type=password]', 'sk-tg-made-up')
  await field(page, 'Max output tokens').fill('1')
  await page.waitForSelector('.hint:has-text("1 token ×")')
  await button(page, 'Send').click()
  await page.waitForSelector('[data-answer] [role=alert]')
  expect(await page.locator('text=The answer appears here.').count()).toBe(0)
})

test('wallet: when a session ends, the sign-in page says why and leads back', async ({ page, allow }) => {
  allow(401)
  await field(page, 'Amount in USD').fill('1.00')
  await page.context().clearCookies()
  await button(page, 'Top up').click()
  await page.waitForSelector('[role=status]:has-text("Your session has ended.")')
  await page.fill('#token', readFileSync(join(harness.gateway.dataFolder, 'admin-token'), 'utf8').trim())
  await page.locator('section.sign-in').getByRole('button', { name: 'Sign in' }).click()
  await page.waitForSelector('h1:has-text("Billing")')
  expect(new URL(page.url()).pathname).toMatch(/^\/console\/ws_\w+\/wallet$/)
  await page.waitForSelector('.tile:has-text("Balance") >> text=$5.00')
  // Shown once.
  await page.context().clearCookies()
  await page.reload()
  await page.waitForSelector('#token')
  expect(await page.locator('text=Your session has ended').count()).toBe(0)
})

test('wallet: amount and count fields describe their format', async ({ page, go }) => {
  expect(await field(page, 'Amount in USD').getAttribute('title')).toContain('2.50')
  await go(`${harness.gateway.url}/console/keys`)
  await act(page, 'ci', 'Limits')
  expect(await field(page, 'Requests per minute').getAttribute('title')).toContain('whole number')
  expect(await field(page, 'Spend per day (UTC), USD').getAttribute('title')).toContain('US dollars')
})
