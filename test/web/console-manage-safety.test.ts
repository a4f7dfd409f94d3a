// Script-like text in everything that the console's management pages show.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserTest, type WatchedPage } from '../parts/browser.ts'
import { hostileTexts, startConsole } from './console-harness.ts'

/** A model's id cannot contain such text; its name, its creator and the provider's name for it can. */
const hostileModels = hostileTexts.map((text, at) => {
  const quoted = JSON.stringify(text)
  const routes = `[{ provider: anthropic, model: ${quoted} }]`
  return `  - { id: "hostile/m${at}", name: ${quoted}, owned_by: ${quoted}, price: free, routes: ${routes} }\n`
})

// One workspace in which every field that users fill in has such a text.
const harness = await startConsole({ config: `models:\n${hostileModels.join('')}` })
afterAll(() => harness.stop())
const workspaceId = harness.firstWorkspaceId
await harness.manage(`PATCH /api/workspaces/${workspaceId}`, { name: hostileTexts[0] })
for (const text of hostileTexts) {
  const project = await harness.manage(`POST /api/workspaces/${workspaceId}/projects`, { name: text })
  const key = await harness.manage(`POST /api/projects/${project.id}/keys`, { name: text })
  await harness.manage(`POST /api/workspaces/${workspaceId}/topups`, { amount: '1.00', reference: text })
  await harness.call(key.secret, text)
}

/** Waits until the page shows its data. */
async function loaded(page: Page): Promise<void> {
  await page.waitForSelector('.console-page .data-table')
  await page.waitForSelector('.console-page .loading', { state: 'detached' })
}

async function open(section: string): Promise<WatchedPage> {
  const watched = await harness.signIn(`/console/${section}`)
  await loaded(watched.page)
  return watched
}

async function visit({ page, go }: WatchedPage, section: string): Promise<void> {
  await go(`${harness.gateway.url}/console/${section}`)
  await loaded(page)
}

browserTest('script-like text is shown literally, in rows and in sheets', async () => {
  const watched = await open('settings')
  const { page, reports, close } = watched
  const state = async () => ({ ran: await page.evaluate('window.ran'), reports })
  const quiet = { ran: undefined, reports: [] }
  const expectQuiet = async (section: string) => expect({ section, ...(await state()) }).toEqual({ section, ...quiet })
  await expectQuiet('settings')
  await visit(watched, 'providers')
  await expectQuiet('providers')
  await visit(watched, 'wallet')
  const references = await page.locator('td[data-label="Reference"]').allTextContents()
  for (const text of hostileTexts) expect(references).toContain(text)
  await expectQuiet('wallet')
  await visit(watched, 'projects')
  const projects = await page.locator('tbody .row-name').allTextContents()
  for (const text of hostileTexts) expect(projects).toContain(text)
  await expectQuiet('projects')
  await visit(watched, 'keys')
  for (const text of hostileTexts) {
    const row = page.locator('tbody tr').filter({ has: page.locator('.row-name').getByText(text, { exact: true }) })
    expect(await row.locator('td[data-label="Last used"] .note').textContent()).toBe(`by ${text}`)
    await row.locator('.menu > button').click()
    await row.getByRole('menuitem', { name: 'Revoke' }).click()
    await page.waitForSelector('.last-use strong')
    expect(await page.textContent('.last-use strong')).toBe(text)
    expect(await page.textContent('dialog.sheet h2')).toBe(`Revoke ${text}?`)
    await page.keyboard.press('Escape')
    await page.waitForSelector('dialog.sheet', { state: 'detached' })
  }
  await expectQuiet('keys')
  await close()
})

browserTest('model names from a file are shown literally everywhere', async () => {
  const watched = await open('providers/anthropic')
  const { page, go, reports, close } = watched
  const routes = page.locator('section[aria-label="Routes"] tbody tr', { hasText: 'hostile/' })
  await routes.first().waitFor()
  // The table starts with a part of them.
  await page.getByLabel('Find a model').fill('hostile/')
  const upstream = await routes.locator('th .note code').allTextContents()
  for (const text of hostileTexts) expect(upstream).toContain(text)
  await page.keyboard.press('Control+k')
  await page.waitForSelector('.palette [role=option]')
  await page.keyboard.type('hostile/m')
  await page.waitForSelector('[role=option]:has-text("hostile/m10")')
  const notes = await page.locator('[role=option] small').allTextContents()
  for (const text of hostileTexts) expect(notes).toContain(`model · ${text}`)
  await page.keyboard.press('Escape')
  await visit(watched, 'projects')
  await page.getByRole('button', { name: 'New project', exact: true }).click()
  await page.waitForSelector('.model-ids >> text=hostile/m10')
  await go(`${harness.gateway.url}/console/playground?model=hostile/m1&other=hostile/m2`)
  await page.waitForSelector('[data-answer="hostile/m2"]')
  for (const path of ['/', '/catalog/hostile/m0', '/catalog/hostile/m1', '/compare?m=hostile/m0&m=hostile/m3']) {
    await go(harness.gateway.url + path)
    const text = await page.textContent('main')
    expect({ path, isShown: text?.includes(hostileTexts[path.endsWith('m1') ? 1 : 0] ?? '') }).toEqual({
      path,
      isShown: true,
    })
    expect({ path, ran: await page.evaluate('window.ran') }).toEqual({ path, ran: undefined })
  }
  expect(reports).toEqual([])
  await close()
})

browserTest('the first request of a new key may name any client and model', async () => {
  const { page, reports, close } = await open('keys')
  const hostile = hostileTexts[1] ?? ''
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name', { exact: true }).fill('hostile')
  await page.getByRole('button', { name: 'Create key' }).click()
  await harness.call((await page.textContent('[data-what=secret]')) ?? '', hostile, hostile)
  await page.waitForSelector('.first-request:has-text("received")')
  // The name of an unknown model is not recorded.
  expect(await page.textContent('.first-request a')).toBe('a request, status 404')
  expect(await page.textContent('.first-request small')).toBe(`from ${hostile}`)
  expect(await page.evaluate('window.ran')).toBeUndefined()
  expect(reports).toEqual([])
  await close()
})
