// A workspace that brings its own provider key, in a real browser over the real gateway: which providers are offered, and
// where the models of that key are shown.

import { afterAll, beforeAll, expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { browserTest } from '../parts/browser.ts'
import { button, type ConsoleHarness, field, startConsole } from './console-manage-harness.ts'

let harness: ConsoleHarness

beforeAll(async () => {
  harness = await startConsole()
})
afterAll(() => harness.stop())

const menu = (page: Page, name: string) => page.getByRole('combobox', { name, exact: true })

const optionsOf = (page: Page, name: string) =>
  menu(page, name)
    .locator('option')
    .evaluateAll((options) => options.map((option) => option.getAttribute('value')))

/** What /v1/models answers, by id. */
async function offeredTo(secret: string): Promise<readonly string[]> {
  const response = await fetch(`${harness.gateway.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })
  const { data } = (await response.json()) as { data: readonly { id: string }[] }
  return data.map(({ id }) => id).sort()
}

/** The gateway reads its file again when that has changed. */
async function untilAllowed(): Promise<void> {
  for (;;) {
    const answer: unknown = await harness.manage('GET /api/config')
    const { data } = answer as { data: readonly { name: string; value: string }[] }
    if (data.some(({ name, value }) => name === 'own_keys.base_urls' && value === 'true')) return
    await Bun.sleep(10)
  }
}

browserTest(
  'every built-in provider that takes a key is offered, enabled or not, and a base URL only where allowed',
  async () => {
    const { page, reports, close } = await harness.openConsole('offered', 'providers')
    await button(page, 'Add key').click()
    await menu(page, 'Provider').locator('option[value=groq]').waitFor({ state: 'attached' })
    const offered = await optionsOf(page, 'Provider')
    for (const id of ['anthropic', 'openai', 'mistral']) expect(offered).toContain(id)
    // The sandbox takes no key, and the other has no address without the operator's settings.
    for (const id of ['sandbox', 'amazon-bedrock']) expect(offered).not.toContain(id)
    expect(await field(page, 'Base URL').count()).toBe(0)
    await page.keyboard.press('Escape')
    writeFileSync(harness.gateway.configPath, 'own_keys: { base_urls: true }\n')
    await untilAllowed()
    await button(page, 'Add key').click()
    await field(page, 'Base URL').waitFor()
    expect(reports).toEqual([])
    await close()
  },
)

browserTest('a key can be read from a file, and is not shown', async () => {
  const { page, workspace, reports, close } = await harness.openConsole('from a file', 'providers')
  await button(page, 'Add key').click()
  await menu(page, 'Provider').selectOption('groq')
  const file = { name: 'groq.key', mimeType: 'text/plain', buffer: Buffer.from('gsk-from-a-file-7788\n') }
  await field(page, 'Or from a file').setInputFiles(file)
  while ((await page.locator('input[type=password]').inputValue()) === '') await Bun.sleep(10)
  expect(await page.locator('dialog.sheet').textContent()).not.toContain('gsk-from')
  await button(page, 'Save key').click()
  await page.waitForSelector('td:has-text("…7788")')
  const stored: unknown = await harness.manage(`GET /api/workspaces/${workspace.id}/credentials/groq`)
  expect(stored).toMatchObject({ provider: 'groq', last4: '7788' })
  expect(reports).toEqual([])
  await close()
})

browserTest('models that only an own key unlocks work in the playground and in allowlists', async () => {
  const { page, workspace, key, go, reports, close } = await harness.openConsole('of its own', 'projects')
  const catalog = await offeredTo(key.secret)
  await harness.manage(`PUT /api/workspaces/${workspace.id}/credentials/openai`, { api_key: 'sk-of-nobody-1234' })
  const own = (await offeredTo(key.secret)).filter((id) => !catalog.includes(id))
  expect(own.length).toBeGreaterThan(0)
  const [first = ''] = own
  await go(`${harness.gateway.url}/console/playground?model=${first}`)
  await page.waitForSelector(`[data-answer="${first}"]`)
  expect(await optionsOf(page, 'Model')).toEqual([...catalog, ...own].sort())
  await page.waitForSelector('text=uses the workspace’s own provider key')
  // Only these: what the preview counts is what /v1/models will answer.
  await go(`${harness.gateway.url}/console/projects`)
  await button(page, 'Models of web').click()
  await field(page, 'Only these').check()
  await field(page, 'Search models and creators').fill(first)
  await page.getByLabel(first, { exact: true }).check()
  await page.waitForSelector('.preview:has-text("Its keys will see 1 of ")')
  expect(await page.locator('.preview').textContent()).not.toContain('refused')
  await button(page, 'Save').click()
  await page.waitForSelector('td:has-text("1 of ")')
  expect(await offeredTo(key.secret)).toEqual([first])
  // Now no project may call everything, so what else the key opens is not known.
  await button(page, 'Models of web').click()
  await page.waitForSelector('.preview:has-text("are counted")')
  expect(await page.locator('.model-ids code').allTextContents()).toEqual([first])
  expect(reports).toEqual([])
  await close()
})
