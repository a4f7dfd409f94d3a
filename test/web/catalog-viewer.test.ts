// The catalog limited to a key or a project, and a model's price history, in a real browser over the real gateway.

import { afterAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserTest, openPage } from '../parts/browser.ts'
import { startGateway } from '../parts/gateway.ts'
import { button, field, idsOf, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())

async function makeKey(name: string) {
  const workspace = await harness.manage('POST /api/workspaces', { name })
  const project = await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
  const key = await harness.manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
  return { workspace, project, key }
}

async function shownIds(page: Page): Promise<readonly string[]> {
  const rows = await page.locator('[data-row]').all()
  const ids = await Promise.all(rows.map(async (row) => (await row.getAttribute('data-row')) ?? ''))
  return ids.sort()
}

async function waitForRows(page: Page, count: number): Promise<void> {
  await page.locator(`.result-count:has-text("${count} model")`).waitFor()
  await page.waitForFunction(`document.querySelectorAll('[data-row]').length === ${count}`)
}

browserTest('the list shows what a key can use, and an allowlist shrinks the list and /v1/models alike', async () => {
  const { project, key } = await makeKey('visitor')
  const { page, reports, close } = await openPage(harness.browser, harness.gateway.url)
  await page.click('summary:has-text("What can my key use?")')
  expect(await page.locator('#access-project').count()).toBe(0)
  await field(page, 'Your key').fill(key.secret)
  await button(page, 'Show its models').click()
  const wide = await harness.modelsOf(key.secret)
  await waitForRows(page, wide.length)
  expect(await shownIds(page)).toEqual(idsOf(wide))
  await page.waitForSelector('.live .status-ok')
  // An open page follows by itself.
  await harness.manage(`PATCH /api/projects/${project.id}`, { models: ['sandbox/echo', 'sandbox/cache'] })
  await waitForRows(page, 2)
  expect(await shownIds(page)).toEqual(['sandbox/cache', 'sandbox/echo'])
  expect(idsOf(await harness.modelsOf(key.secret))).toEqual(['sandbox/cache', 'sandbox/echo'])
  // The key survives a reload of the tab, and is stored nowhere that survives the tab.
  await page.reload()
  await waitForRows(page, 2)
  expect(await page.evaluate('JSON.stringify([document.cookie, localStorage])')).not.toContain(key.secret)
  await page.waitForSelector('.live .status-ok')
  expect(reports).toEqual([])
  await harness.manage(`POST /api/keys/${key.id}/revoke`)
  await page.locator('.access-filter .warning:has-text("out of date")').waitFor()
  expect(await shownIds(page)).toEqual(['sandbox/cache', 'sandbox/echo'])
  await button(page, 'Forget the key').click()
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
  await page.locator('[data-row="sandbox/think"]').waitFor()
  expect(reports.filter((report) => !report.includes('401'))).toEqual([])
  await close()
})

browserTest('models that an own provider key unlocks are marked, also those not in the catalog', async () => {
  const { workspace, key } = await makeKey('bringer')
  const before = new Set(idsOf(await harness.modelsOf(key.secret)))
  await harness.manage(`PUT /api/workspaces/${workspace.id}/credentials/groq`, { api_key: 'not-a-key-either' })
  const models = await harness.modelsOf(key.secret)
  const [fresh] = models.filter(({ id }) => !before.has(id))
  expect(fresh?.own_key).toBe(true)
  const { page, reports, close } = await harness.signIn('/')
  await page.focus('#access-project')
  await page.locator('#access-project option:has-text("bringer / web")').waitFor({ state: 'attached' })
  await page.selectOption('#access-project', { label: 'bringer / web' })
  await waitForRows(page, models.length)
  expect(await shownIds(page)).toEqual(idsOf(models))
  const marked = page.locator('[data-row]:has(.badge:text-is("own key"))')
  expect(await marked.count()).toBe(models.filter(({ own_key }) => own_key).length)
  const row = page.locator(`[data-row="${fresh?.id}"]`)
  expect(await row.locator('.status').textContent()).toContain('own key')
  expect(await row.locator('a.model-link').count()).toBe(0)
  expect(reports).toEqual([])
  await close()
})

browserTest('an invalid key is refused with a message, and nothing is stored', async () => {
  const { page, close } = await harness.signIn('/')
  await page.click('summary:has-text("Use a key")')
  for (const wrong of ['sk-tg-not-a-key', 'clé']) {
    await field(page, 'Your key').fill(wrong)
    await button(page, 'Show its models').click()
    await page.locator('.access-filter .warning').waitFor()
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
  }
  await close()
})

browserTest('a model page lists every price and who set it, and a new one while it is open', async () => {
  const { page, reports, close } = await harness.signIn('/catalog/sandbox/echo')
  const lines = page.locator('[aria-label="Price history"] tbody tr')
  expect(await lines.count()).toBe(1)
  expect(await lines.nth(0).textContent()).toContain('built in')
  await page.waitForSelector('.live .status-ok')
  await harness.manage('PUT /api/models/sandbox%2Fecho/price', { input: '3.25', output: '4.00' })
  await page.locator('[aria-label="Price history"] td:has-text("management API")').waitFor()
  expect(await lines.count()).toBe(2)
  const texts = await lines.allTextContents()
  expect(texts[0]).toContain('$3.25')
  expect(texts[0]).toContain('sandbox/echo#2')
  // docs/sandbox.md: $1.00 in.
  expect(texts[1]).toContain('$1.00')
  expect(texts[1]).toContain('sandbox/echo#1')
  await page.locator('.price-card-foot:has-text("management API")').waitFor()
  expect(reports).toEqual([])
  await close()
})

browserTest('a model page leads to the playground, which has the model chosen', async () => {
  const { page, reports, close } = await harness.signIn('/catalog/sandbox/think')
  await page.click('.model-head a:has-text("Try in playground")')
  await page.waitForSelector('html[data-alive] .model-button:has-text("sandbox/think")')
  expect(reports).toEqual([])
  await close()
})

test('the list begins with the models that had the most requests, and shows how their attempts ended', async () => {
  const gateway = await startGateway()
  try {
    for (const name of 'tools cache tools flaky cache tools flaky cache tools'.split(' ')) {
      const model = `sandbox/${name}`
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
      })
      expect(response.status).toBe(200)
      await response.text()
    }
    const read = async (path: string) => await (await fetch(gateway.url + path)).text()
    const rows = [...(await read('/')).matchAll(/data-row="([^"]+)"/g)].map(([, id]) => id)
    expect(rows.slice(0, 3)).toEqual(['sandbox/tools', 'sandbox/cache', 'sandbox/flaky'])
    // docs/sandbox.md: its first route fails on every other call.
    expect(await read('/catalog/sandbox/flaky')).toContain('50.0 % ok, 2 attempts')
    expect(await read('/catalog/sandbox/tools')).toContain('100.0 % ok, 4 attempts')
    expect(await read('/catalog/sandbox/echo')).toContain('no traffic')
  } finally {
    await gateway.stop()
  }
})
