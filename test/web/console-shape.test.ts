// The layout of the console's pages at common widths, with long names: nothing overflows, and short texts are not wrapped.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserTest, sidewaysPixels } from '../parts/browser.ts'
import { type Made, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
const answer: unknown = await harness.manage('GET /api/workspaces')
const [workspace] = (answer as { data: readonly Made[] }).data
const project = await harness.manage(`POST /api/workspaces/${workspace?.id}/projects`, { name: 'p'.repeat(60) })
const key = await harness.manage(`POST /api/projects/${project.id}/keys`, { name: 'k'.repeat(60) })
await harness.call(key.secret)
await harness.call(key.secret, 'a client', 'sandbox/throttled')
const messages = [{ role: 'user', content: 'one two three four five six' }]
const interrupted = await harness.ask('sandbox/breaks-off', { stream: true, messages }, 'a client', key.secret)
const flaky = await harness.ask('sandbox/flaky', {}, 'a client', key.secret)

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

const widths = [1280, 1100, 1024, 360]
const paths = ['?group=key', '?group=project', '/requests', `/requests/${flaky}`, '/playground']

browserTest.each([...paths, '/keys', '/projects', '/wallet', '/providers', '/settings'])(
  'nothing overflows at any width on /console%s',
  async (path) => {
    const { page, close } = await harness.signIn(`/console${path}`)
    await page.waitForSelector('.loading', { state: 'detached' })
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 })
      expect({ width, pixels: await sidewaysPixels(page) }).toEqual({ width, pixels: 0 })
      if (width > 960) expect({ width, broken: await brokenButtons(page) }).toEqual({ width, broken: 0 })
    }
    await close()
  },
)

browserTest(
  'the page of an interrupted request does not overflow at any width, and its outcome fits its column',
  async () => {
    const { page, close } = await harness.signIn(`/console/requests/${interrupted}`)
    await page.waitForSelector('.facts-grid .status:has-text("stream interrupted")')
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 })
      expect({ width, pixels: await sidewaysPixels(page) }).toEqual({ width, pixels: 0 })
      const over = await page
        .locator('.facts-grid .status')
        .evaluate(
          (status) => status.getBoundingClientRect().right - (status.parentElement?.getBoundingClientRect().right ?? 0),
        )
      expect(over).toBeLessThanOrEqual(0)
    }
    await close()
  },
)

browserTest('ids and short words of the audit log are not wrapped', async () => {
  const { page, close } = await harness.signIn('/console/settings', { viewport: { width: 1280, height: 800 } })
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
