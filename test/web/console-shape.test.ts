// The layout of the console's pages at common widths, with long names: nothing overflows, and short texts are not wrapped. In
// dialogs axe-core finds no serious issue in light and dark mode; all-pages.test.ts checks the pages.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { type AxeScope, seriousFaults } from '../parts/axe.ts'
import { browserTest, layoutShift, openContext, sidewaysPixels, type WatchedPage } from '../parts/browser.ts'
import { startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
const project = await harness.manage(`POST /api/workspaces/${harness.firstWorkspaceId}/projects`, {
  name: 'p'.repeat(60),
})
const key = await harness.manage(`POST /api/projects/${project.id}/keys`, { name: 'k'.repeat(60) })
await harness.call(key.secret)
const messages = [{ role: 'user', content: 'one two three four five six' }]
const interrupted = await harness.ask('sandbox/breaks-off', { stream: true, messages }, 'a client', key.secret)
const flaky = await harness.ask('sandbox/flaky', {}, 'a client', key.secret)
const throttled = await harness.ask('sandbox/throttled', {}, 'a client', key.secret)

/** The number of buttons that are wrapped, or not on one line with the other buttons of their row. */
async function brokenButtons(page: Page): Promise<unknown> {
  return await page.locator('.data-table .button').evaluateAll(
    (buttons) =>
      buttons.filter((button) => {
        const range = button.ownerDocument.createRange()
        range.selectNodeContents(button)
        const isBroken = new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1
        const first = button.parentElement?.querySelector('.button')
        return isBroken || first?.getBoundingClientRect().top !== button.getBoundingClientRect().top
      }).length,
  )
}

/** Each opens a dialog of its page. */
const dialogs: Readonly<Record<string, string>> = {
  '/keys': 'New key',
  '/projects': 'New project',
  '/providers': 'Add key',
  '/settings': 'New workspace',
}

const widths = [1280, 1100, 1024, 1000, 320]
const requestPaths = ['/requests', `/requests/${flaky}`, `/requests/${interrupted}`, `/requests/${throttled}`]
const managementPaths = [
  ...['/keys', '/projects', '/wallet', '/providers', '/providers/sandbox', '/providers/anthropic'],
  ...['/margin', '/settings'],
]

/** Axe checks the largest and the smallest width. */
const themeAt: Readonly<Record<number, 'light' | 'dark'>> = { 1280: 'light', 320: 'dark' }

async function check(page: Page, dialog?: AxeScope): Promise<void> {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 })
    const colorScheme = dialog && themeAt[width]
    if (colorScheme) await page.emulateMedia({ colorScheme })
    const serious = colorScheme ? await seriousFaults(page, dialog) : []
    // The bar on top clips what it has no room for.
    const bar = await page.locator('.topbar').evaluate((each) => each.scrollWidth - each.clientWidth)
    expect({ width, serious, pixels: await sidewaysPixels(page), bar }).toEqual({
      width,
      serious: [],
      pixels: 0,
      bar: 0,
    })
    if (width > 960) expect({ width, broken: await brokenButtons(page) }).toEqual({ width, broken: 0 })
  }
}

/** One for all pages: opening another one and signing in takes as long as a page. */
let pages: WatchedPage | undefined

browserTest.each([
  '',
  '?group=key',
  '?group=project',
  '/playground?other=sandbox/echo',
  ...requestPaths,
  ...managementPaths,
])('nothing moves while /console%s loads in a wide window, and nothing overflows at any width', async (path) => {
  pages ??= await harness.signIn()
  const { page, go } = pages
  await page.setViewportSize({ width: 1280, height: 800 })
  await go(`${harness.gateway.url}/console${path}`)
  await page.waitForSelector('.console-page :is(.data-table, .facts-grid, .chart, textarea)')
  await page.waitForSelector('.loading', { state: 'detached' })
  expect(await layoutShift(page)).toBeLessThan(0.05)
  await check(page)
  const opener = dialogs[path]
  if (opener !== undefined) {
    await page.getByRole('button', { name: opener, exact: true }).click()
    await page.waitForSelector('dialog.sheet[open]')
    await check(page, { within: 'dialog.sheet[open]' })
    await page.emulateMedia({ colorScheme: 'light' })
  }
})

browserTest('on a phone the menu shows the current page, and the palette fits', async () => {
  const { page, go, close } = await harness.signIn('/console', { viewport: { width: 360, height: 760 } })
  for (const section of ['', '/requests', '/providers', '/margin', '/settings', '/playground']) {
    if (section !== '') await go(`${harness.gateway.url}/console${section}`)
    const box = await page.locator('.console-menu [aria-current]').boundingBox()
    const [left, right] = [box?.x ?? -1, (box?.x ?? 0) + (box?.width ?? 0)]
    expect({ section, isSeen: left >= 0 && right <= 360 }).toEqual({ section, isSeen: true })
  }
  await page.keyboard.press('Control+k')
  await page.waitForSelector('.palette')
  await check(page, { within: '.palette' })
  await close()
})

/** Links and buttons of cards and facts that are lower than 44 px; a link may fill its card. */
const lowTargets = `[...document.querySelectorAll('main :is(.data-table, .facts-grid, .breadcrumbs) :is(a, button)')]
  .filter((target) => {
    const fillsCard = getComputedStyle(target, '::after').position === 'absolute'
    const { width, height } = (fillsCard ? target.closest('tr') : target).getBoundingClientRect()
    return width > 0 && height < 44
  })
  .map((target) => target.outerHTML)`

browserTest('on a phone cards are short, open wherever they are touched, and have large targets', async () => {
  const phone = {
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true,
    reducedMotion: 'reduce',
  } as const
  const context = await openContext(harness.browser, phone)
  const { page, go } = await harness.signIn('/console/wallet', { context })
  const heightOf = async (selector: string) => (await page.locator(selector).first().boundingBox())?.height ?? 0
  await page.waitForSelector('.transfer-table tr[data-row]')
  // Type and amount, time and balance, reference.
  expect(await heightOf('.transfer-table tr[data-row]')).toBeLessThan(90)
  expect(await page.evaluate(lowTargets)).toEqual([])
  await go(`${harness.gateway.url}/console/requests/${flaky}`)
  await page.waitForSelector('.waterfall')
  // Name and outcome, timeline and times.
  expect(await heightOf('.waterfall tbody tr')).toBeLessThan(70)
  expect(await page.evaluate(lowTargets)).toEqual([])
  await go(`${harness.gateway.url}/console/keys`)
  const used = page.locator('tr[data-row]', { hasText: 'first-key' }).locator('td[data-label="This month"]')
  await used.waitFor()
  // The label beside the value.
  expect(await heightOf('td[data-label="This month"]')).toBeLessThan(30)
  expect(await page.evaluate(lowTargets)).toEqual([])
  const { x = 0, y = 0 } = (await used.boundingBox()) ?? {}
  await page.touchscreen.tap(x + 5, y + 5)
  await page.waitForSelector('h1:text-is("first-key")')
  await context.close()
})

const rowHeights = (page: Page, selector: string) =>
  page.locator(`${selector} tr[data-row]`).evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height))

browserTest('on a phone the rows of tables have their values in two columns', async () => {
  const { page, close } = await harness.signIn('/console/providers', { viewport: { width: 390, height: 844 } })
  await page.waitForSelector('section[aria-label="Providers"] tr[data-row]')
  // Name and state; attempts beside models, with two lines for the bars; the charge beside the key.
  for (const height of await rowHeights(page, 'section[aria-label="Providers"]')) expect(height).toBeLessThan(150)
  const lefts = await page
    .locator('section[aria-label="Providers"] tr[data-row]:has-text("anthropic") td:not([data-label="Status"])')
    .evaluateAll((cells) => cells.map((cell) => Math.round(cell.getBoundingClientRect().left)))
  expect(lefts.length).toBe(4)
  expect(new Set(lefts).size).toBe(2)
  await close()
})

browserTest('ten keys fit on a screen', async () => {
  const workspace = await harness.manage('POST /api/workspaces', { name: 'ten keys' })
  // Without funds a banner is above the keys.
  await harness.manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '5.00' })
  await harness.manage(`PUT /api/workspaces/${workspace.id}/limits`, { spend_per_month: '160.00' })
  const web = await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
  await harness.manage(`PUT /api/projects/${web.id}/limits`, { requests_per_minute: 600, spend_per_month: '40.00' })
  for (let at = 0; at < 12; at++) {
    const made = await harness.manage(`POST /api/projects/${web.id}/keys`, {
      name: `assistant of team ${at}`,
      ...(at % 3 === 0 && { expires_at: '2099-06-30T00:00:00Z' }),
    })
    const limits = { requests_per_minute: 120, spend_per_day: '1.50' }
    if (at % 2 === 0) await harness.manage(`PUT /api/keys/${made.id}/limits`, limits)
  }
  const viewport = { width: 1440, height: 900 }
  const { page, close } = await harness.signIn(`/console/${workspace.id}/keys`, { viewport })
  await page.waitForSelector('tr[data-row]')
  const bottoms = await page
    .locator('tr[data-row]')
    .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().bottom))
  expect(bottoms.filter((bottom) => bottom <= 900).length).toBeGreaterThanOrEqual(10)
  await close()
})

browserTest('the outcome of an interrupted request fits its column at any width', async () => {
  const { page, close } = await harness.signIn(`/console/requests/${interrupted}`)
  await page.waitForSelector('.facts-grid .status-warning:has-text("200 interrupted")')
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 })
    const over = await page
      .locator('.facts-grid .status')
      .evaluate(
        (status) => status.getBoundingClientRect().right - (status.parentElement?.getBoundingClientRect().right ?? 0),
      )
    expect(over).toBeLessThanOrEqual(0)
  }
  await close()
})

browserTest('ids and short words of the audit log are not wrapped', async () => {
  const { page, close } = await harness.signIn('/console/audit', { viewport: { width: 1280, height: 800 } })
  const table = page.locator('.audit-table')
  await table.locator('tr:has-text("project.create")').first().waitFor()
  for (const column of ['td[data-label="Action"]', 'td[data-label="Who"]', 'td[data-label="Object"] code']) {
    const lines = await table.locator(`tbody ${column}`).evaluateAll((cells) =>
      cells.map((cell) => {
        const range = cell.ownerDocument.createRange()
        range.selectNodeContents(cell)
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size
      }),
    )
    expect({ column, lines: Math.max(...lines) }).toEqual({ column, lines: 1 })
  }
  await close()
})
