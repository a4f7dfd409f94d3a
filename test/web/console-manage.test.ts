// Wallet, projects, providers and settings in the console, in a real browser over the real gateway. Every test works in a
// workspace of its own.

import { afterAll, beforeAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { browserTest } from '../parts/browser.ts'
import { button, type ConsoleHarness, field, startConsole } from './console-manage-harness.ts'

let harness: ConsoleHarness

beforeAll(async () => {
  harness = await startConsole()
})
afterAll(() => harness.stop())

async function offeredTo(secret: string): Promise<readonly string[]> {
  const response = await fetch(`${harness.gateway.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })
  const { data } = (await response.json()) as { data: readonly { id: string }[] }
  return data.map(({ id }) => id).sort()
}

browserTest(
  'a top-up is booked once, however often the button is pressed, and the CSV has every transfer',
  async () => {
    const { page, key, close } = await harness.openConsole('topping up', 'wallet')
    await page.waitForSelector('.tile:has-text("Balance") >> text=$5.00')
    await field(page, 'Amount in USD').fill('2.5')
    await field(page, 'Reference').fill('=invoice "17"')
    await button(page, 'Top up').dblclick()
    await page.waitForSelector('.done:has-text("$2.50 added; the balance is $7.50.")')
    await page.waitForSelector('.tile:has-text("Available") >> text=$7.50')
    expect(await page.locator('tbody tr').count()).toBe(2)
    expect(await page.locator('td[data-label="Balance after"]').allTextContents()).toEqual(['$7.50', '$5.00'])
    expect(await harness.call(key.secret)).toBe(200)
    await page.reload()
    const link = page.locator('td[data-label="Reference"] a')
    expect(await link.getAttribute('href')).toMatch(/^\/console\/requests\/req_/)
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download all as CSV').click()])
    const lines = readFileSync(await download.path(), 'utf8')
      .trim()
      .split('\r\n')
    expect(lines).toHaveLength(4)
    expect(lines[2]).toMatch(/,topup,in,2\.50,7\.50,,"'=invoice ""17""",,false$/)
    expect(lines[3]).toMatch(/,topup,in,5\.00,5\.00,,,,false$/)
    await close()
  },
)

browserTest('a refused top-up shows the error and request id', async () => {
  const { page, close } = await harness.openConsole('refused', 'wallet')
  await field(page, 'Amount in USD').fill('0')
  await button(page, 'Top up').click()
  await page.waitForSelector('[role=alert]:has-text("must be more than 0")')
  expect(await page.textContent('[role=alert] code')).toMatch(/^req_/)
  expect(await page.locator('tbody tr').count()).toBe(1)
  await close()
})

browserTest('a correction deducts at most the available amount, with its reason', async () => {
  const { page, close } = await harness.openConsole('correcting', 'wallet')
  await page.click('summary:has-text("Correct the balance")')
  await field(page, 'Amount to correct, in USD').fill('5.01')
  await field(page, 'Reason').fill('invoice 17 was refunded')
  await button(page, 'Correct').click()
  await page.waitForSelector('[role=alert]:has-text("Cannot take $5.01; $5.00 is available.")')
  await field(page, 'Amount to correct, in USD').fill('2.5')
  await button(page, 'Correct').dblclick()
  await page.waitForSelector('.done:has-text("$2.50 deducted; the balance is $2.50.")')
  await page.waitForSelector('.tile:has-text("Available") >> text=$2.50')
  const [row] = await page.locator('tbody tr').allInnerTexts()
  expect(row).toMatch(/Correction[\s\S]*−\$2\.50[\s\S]*\$2\.50[\s\S]*invoice 17 was refunded/)
  expect(await page.locator('tbody tr').count()).toBe(2)
  await close()
})

browserTest('with an allowlist the preview, the page and /v1/models show the same models', async () => {
  const { page, key, close } = await harness.openConsole('narrowing', 'projects')
  const preview = async () => (await page.locator('.model-ids code').allTextContents()).sort()
  const everything = await offeredTo(key.secret)
  await button(page, 'Models of web').click()
  expect(await preview()).toEqual([...everything])
  await field(page, 'Only these').check()
  await page.waitForSelector('.preview:has-text("every request will be refused")')
  await field(page, 'Search models and creators').fill('cach')
  await page.getByLabel('sandbox/cache').check()
  expect(await preview()).toEqual(['sandbox/cache'])
  await button(page, 'Save').click()
  await page.waitForSelector('td:has-text("1 of ")')
  expect(await offeredTo(key.secret)).toEqual(['sandbox/cache'])
  await button(page, 'Models of web').click()
  await page.getByLabel('sandbox/*').check()
  const sandbox = await preview()
  expect(sandbox).toEqual(everything.filter((id) => id.startsWith('sandbox/')))
  await button(page, 'Save').click()
  await page.waitForSelector('dialog.sheet', { state: 'detached' })
  expect(await offeredTo(key.secret)).toEqual(sandbox)
  await close()
})

browserTest('objects from a file are read-only and can be copied as YAML', async () => {
  const { page, workspace, go, close } = await harness.openConsole('by file', 'projects')
  const body = { name: 'declared', models: ['sandbox/*'] }
  await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, body, { 'x-tollgate-managed-by': 'file' })
  await go(`${harness.gateway.url}/console/projects`)
  const row = page.locator('tr:has-text("declared")')
  await row.waitFor()
  expect(await row.getByRole('button', { name: 'Models of declared' }).count()).toBe(0)
  expect(await row.locator('[data-copy]').getAttribute('data-copy')).toBe(
    'workspaces:\n  - name: "by file"\n    projects:\n      - name: "declared"\n        models: ["sandbox/*"]\n',
  )
  await close()
})

browserTest('a provider key is stored, shown by its last characters only, and deleted', async () => {
  const { page, close } = await harness.openConsole('own key', 'providers')
  await button(page, 'Add key').click()
  await page.getByRole('combobox', { name: 'Provider' }).selectOption('anthropic')
  await field(page, 'API key').fill('sk-ant-of-my-own-7890')
  await button(page, 'Save key').click()
  await page.waitForSelector('td:has-text("…7890")')
  expect(await page.content()).not.toContain('of-my-own')
  await button(page, 'Delete the key for anthropic').click()
  await button(page, 'Delete key').click()
  await page.waitForSelector('text=No provider keys yet')
  expect(await page.locator('section[aria-label="Routes at sandbox"] tbody tr').count()).toBeGreaterThan(5)
  await close()
})

browserTest('settings list the changes, and sign out', async () => {
  const { page, workspace, go, close } = await harness.openConsole('audited', 'keys')
  await go(`${harness.gateway.url}/console/settings`)
  await page.waitForSelector(`tr:has-text("wallet.topup"):has-text("${workspace.id}")`)
  await button(page, 'Sign out of this browser').click()
  await page.waitForSelector('#token')
  await close()
})
