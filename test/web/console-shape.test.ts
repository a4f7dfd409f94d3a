// The layout of the console's pages at common widths, with long names: nothing overflows, short texts are not wrapped, and
// axe-core finds no serious issue in light and dark mode.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { type AxeScope, seriousFaults, seriousFaultsInBoth } from '../parts/axe.ts'
import { browserTest, sidewaysPixels } from '../parts/browser.ts'
import { type Made, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
const answer: unknown = await harness.manage('GET /api/workspaces')
const [workspace] = (answer as { data: readonly Made[] }).data
const project = await harness.manage(`POST /api/workspaces/${workspace?.id}/projects`, { name: 'p'.repeat(60) })
const key = await harness.manage(`POST /api/projects/${project.id}/keys`, { name: 'k'.repeat(60) })
await harness.call(key.secret)
const messages = [{ role: 'user', content: 'one two three four five six' }]
const interrupted = await harness.ask('sandbox/breaks-off', { stream: true, messages }, 'a client', key.secret)
const requestIds = [interrupted, await harness.ask('sandbox/flaky'), await harness.ask('sandbox/throttled')]

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

const paths = [
  '',
  '?group=key',
  '?group=project',
  '/requests',
  ...requestIds.map((id) => `/requests/${id}`),
  '/playground?other=sandbox/echo',
  '/keys',
  '/projects',
  '/wallet',
  '/providers',
  '/settings',
]

/** Axe looks at each page at the largest and the smallest width. Colors do not depend on the width. */
const faultsAt: Readonly<Record<number, typeof seriousFaults>> = { 1280: seriousFaultsInBoth, 360: seriousFaults }

for (const width of [1280, 1100, 1024, 360]) {
  browserTest(`nothing overflows at ${width} pixels, and axe finds no serious issue`, async () => {
    const { page, go, close } = await harness.signIn({ viewport: { width, height: 800 } })
    const check = async (place: string, scope: AxeScope = {}) => {
      const serious = (await faultsAt[width]?.(page, scope)) ?? []
      expect({ place, serious, pixels: await sidewaysPixels(page) }).toEqual({ place, serious: [], pixels: 0 })
    }
    for (const path of paths) {
      await go(`${harness.gateway.url}/console${path}`)
      await page.waitForSelector('.console-page :is(.data-table, .facts-grid, .chart, textarea)')
      await page.waitForSelector('.loading', { state: 'detached' })
      await check(path)
      if (width > 960) expect({ path, broken: await brokenButtons(page) }).toEqual({ path, broken: 0 })
      // The menu is one row that scrolls to the current page.
      const box = await page.locator('.console-menu [aria-current]').boundingBox()
      const isSeen = box !== null && box.x >= 0 && box.x + box.width <= width
      expect({ path, isSeen }).toEqual({ path, isSeen: true })
      const opener = dialogs[path]
      if (opener === undefined || !(width in faultsAt)) continue
      await page.getByRole('button', { name: opener, exact: true }).click()
      await page.waitForSelector('dialog.sheet[open]')
      await check(`${path}, ${opener}`, { within: 'dialog.sheet[open]' })
    }
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.waitForSelector('.palette')
    await check('palette')
    await close()
  })

  browserTest(`the outcome of a request does not overflow at ${width} pixels`, async () => {
    const { page, go, close } = await harness.signIn({ viewport: { width, height: 800 } })
    await go(`${harness.gateway.url}/console/requests/${interrupted}`)
    await page.waitForSelector('.facts-grid .status:has-text("stream interrupted")')
    const over = await page
      .locator('.facts-grid .status')
      .evaluate(
        (status) => status.getBoundingClientRect().right - (status.parentElement?.getBoundingClientRect().right ?? 0),
      )
    expect(over).toBeLessThanOrEqual(0)
    await close()
  })
}

browserTest('ids and short words of the audit log are not wrapped', async () => {
  const { page, go, close } = await harness.signIn({ viewport: { width: 1280, height: 800 } })
  await go(`${harness.gateway.url}/console/settings`)
  const table = page.locator('section[aria-label="Audit log"]')
  await table.locator('tr:has-text("project.create")').waitFor()
  for (const column of ['th[scope=row] strong', 'td[data-label="Actor"]', 'td[data-label="Object"] code']) {
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
