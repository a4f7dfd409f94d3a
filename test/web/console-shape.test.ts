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

for (const width of [1280, 1100, 1024, 360]) {
  browserTest(`nothing overflows at ${width} pixels`, async () => {
    const { page, go, close } = await harness.signIn({ viewport: { width, height: 800 } })
    const paths = ['?group=key', '?group=project', '/requests', `/requests/${interrupted}`, '/playground']
    for (const path of [...paths, '/keys', '/projects', '/wallet', '/providers', '/settings']) {
      await go(`${harness.gateway.url}/console${path}`)
      await page.waitForSelector('.loading', { state: 'detached' })
      expect({ path, pixels: await sidewaysPixels(page) }).toEqual({ path, pixels: 0 })
      if (width > 960) expect({ path, broken: await brokenButtons(page) }).toEqual({ path, broken: 0 })
    }
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
