// Keys, billing, projects, provider keys and settings in the console, in a real browser over the real gateway. Every test has
// its own workspace.

import { afterAll, expect } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { seriousFaults } from '../parts/axe.ts'
import { act, button, field, focused, idsOf, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
const { test } = harness

const offeredTo = async (secret: string) => idsOf(await harness.modelsOf(secret))

test('keys: a new key shows its secret once, and its first request is received', async ({ page }) => {
  await button(page, 'New key').click()
  // The field has the focus: a name and Enter are enough.
  await page.waitForSelector('dialog.sheet[open]')
  await page.keyboard.type('laptop')
  await page.keyboard.press('Enter')
  const secret = (await page.textContent('[data-what=secret]')) ?? ''
  expect(secret).toMatch(/^sk-tg-\w{20,}$/)
  expect(await page.textContent('[data-what=".env lines"]')).toBe(
    `OPENAI_BASE_URL=${harness.gateway.url}/v1\nOPENAI_API_KEY=${secret}\nANTHROPIC_BASE_URL=${harness.gateway.url}\nANTHROPIC_API_KEY=${secret}\nGOOGLE_GEMINI_BASE_URL=${harness.gateway.url}\nGEMINI_API_KEY=${secret}`,
  )
  expect(await page.textContent('[data-what="connect command"]')).toContain(
    `TOLLGATE_KEY=${secret} npx tollgate connect`,
  )
  await page.waitForSelector('text=waiting for the first request')
  // Esc does not close it, because the secret cannot be shown again. The second one is not offered to the page.
  // The browser closes it then, and the page opens it again.
  for (let times = 0; times < 3; times++) await page.keyboard.press('Escape')
  await page.waitForSelector('[data-what=secret]')
  expect(await harness.call(secret)).toBe(200)
  await page.waitForSelector('.first-request:has-text("received")')
  expect(await page.getAttribute('.first-request a', 'href')).toMatch(/^\/console\/requests\/req_/)
  await button(page, 'Done, I have copied it').click()
  await page.waitForSelector('th:has-text("laptop")')
  expect(await page.content()).not.toContain(secret)
  expect(await focused(page)).toBe('New key')
})

test('keys: revoking shows the last use, returns the focus when cancelled, and revokes the key', async ({
  page,
  key,
}) => {
  expect(await harness.call(key.secret, 'claude-cli/2.1')).toBe(200)
  await act(page, 'ci', 'Revoke')
  await page.waitForSelector('.last-use:has-text("Last used just now by claude-cli/2.1")')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.sheet', { state: 'detached' })
  expect(await focused(page)).toBe('Actions for ci')
  expect(await harness.call(key.secret)).toBe(200)
  // By keyboard: the last action of the menu.
  await page.keyboard.press('Enter')
  await page.waitForSelector('[role=menuitem]:focus')
  await page.keyboard.press('End')
  await page.keyboard.press('Enter')
  await button(page, 'Revoke key').click()
  await page.waitForSelector('tr:has-text("ci") >> text=revoked')
  expect(await harness.call(key.secret)).toBe(401)
})

test('keys: rotating keeps the old secret for the chosen time, or not at all', async ({ page, key }) => {
  const rotate = async (overlap: string) => {
    await act(page, 'ci', 'Rotate')
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
})

test('keys: the tightest limit is shown with its holder, and changes are previewed', async ({
  page,
  project,
  key,
  go,
}) => {
  await harness.manage(`PUT /api/projects/${project.id}/limits`, { requests_per_minute: 3 })
  await harness.manage(`PUT /api/keys/${key.id}/limits`, { requests_per_minute: 50 })
  await go(`${harness.gateway.url}/console/keys/${key.id}`)
  await page.waitForSelector('.limits:has-text("3 requests/min by the project")')
  await button(page, 'Limits of ci').click()
  await field(page, 'Requests per minute').fill('2')
  await page.getByText('More limits').click()
  await field(page, 'Spend per day (UTC), USD').fill('1.5')
  expect(await page.locator('.diff li').allTextContents()).toEqual([
    'Requests per minute: 50 requests/min → 2 requests/min',
    'Spend per day (UTC), USD: no limit → $1.50/day',
  ])
  await button(page, 'Save limits').click()
  await page.waitForSelector('.limits:has-text("$1.50/day")')
  // When a limit resets depends on the time of day.
  const shown = async () =>
    (await page.locator('.limits li').allTextContents()).map((text) => text.replace(/resets in .*/, 'resets'))
  expect(await shown()).toEqual(['2 requests/min ', '$0.00 of $1.50/day resets'])
  await button(page, 'Limits of ci').click()
  const tags = page.getByRole('group', { name: 'Spend by tag per month, USD' })
  await tags.getByRole('button', { name: 'Add tag' }).click()
  for (const [at, tag, usd] of [
    [1, 'team=web', '100'],
    [2, 'job=nightly', '2.50'],
  ] as const) {
    await tags.getByLabel(`Tag ${at}`, { exact: true }).fill(tag)
    await tags.getByLabel(`USD for tag ${at}`).fill(usd)
  }
  await field(page, 'Spend of each end user per day, USD').fill('5')
  await button(page, 'Save limits').click()
  await page.waitForSelector('.limits:has-text("per user")')
  expect(await shown()).toEqual([
    ...[
      '2 requests/min ',
      '$0.00 of $1.50/day resets',
      '$5.00/day per user ',
      'team=web $100.00/month, job=nightly $2.50/month ',
    ],
  ])
})

test('keys: a failed page shows the error and request id, and can be retried', async ({ page, go, allow }) => {
  allow(503)
  const refusal = { status: 503, headers: { 'x-request-id': 'req_of_the_refusal' } }
  const body = JSON.stringify({ error: { message: 'The store does not answer.' } })
  await page.route('**/api/keys?**', (route) => route.fulfill({ ...refusal, contentType: 'application/json', body }))
  await go(`${harness.gateway.url}/console/keys`)
  await page.waitForSelector('[role=alert]:has-text("The store does not answer."):has-text("req_of_the_refusal")')
  await page.unroute('**/api/keys?**')
  await button(page, 'Try again').click()
  await page.waitForSelector('th:has-text("ci")')
  expect(await page.locator('[role=alert]').filter({ hasText: 'store' }).count()).toBe(0)
})

test('wallet: a top-up is booked once, however often the button is pressed, and the CSV has every transfer', async ({
  page,
  key,
}) => {
  await page.waitForSelector('.tile:has-text("Balance") >> text=$5.00')
  await field(page, 'Amount in USD').fill('2.5')
  await field(page, 'Reference').fill('=invoice "17"')
  await button(page, 'Top up').dblclick()
  await page.waitForSelector('.done:has-text("$2.50 added; the balance is $7.50.")')
  await page.waitForSelector('.tile:has-text("Available") >> text=$7.50')
  // The header has the same amount without a reload.
  await page.waitForSelector('.workspace-balance:text-is("$7.50")')
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
})

test('wallet: a refused top-up shows the error beside the amount', async ({ page, allow }) => {
  allow(400)
  await field(page, 'Amount in USD').fill('0')
  await button(page, 'Top up').click()
  await page.waitForSelector('.field-error:has-text("Amount in USD must be more than 0")')
  expect(await page.locator('tbody tr').count()).toBe(1)
})

test('wallet: a correction deducts at most the available amount, with its reason', async ({ page, allow }) => {
  allow(402)
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
})

test('projects: with an allowlist the preview, the page and /v1/models show the same models', async ({ page, key }) => {
  const preview = async () => (await page.locator('.model-ids code').allTextContents()).sort()
  const everything = await offeredTo(key.secret)
  await act(page, 'web', 'Models')
  expect(await preview()).toEqual([...everything])
  await field(page, 'Only these').check()
  await page.waitForSelector('.preview:has-text("every request will be refused")')
  await field(page, 'Search models and creators').fill('cach')
  await page.getByLabel('sandbox/cache').check()
  expect(await preview()).toEqual(['sandbox/cache'])
  await button(page, 'Save').click()
  await page.waitForSelector('td:has-text("1 of ")')
  expect(await offeredTo(key.secret)).toEqual(['sandbox/cache'])
  await act(page, 'web', 'Models')
  await page.getByLabel('sandbox/*').check()
  const sandbox = await preview()
  expect(sandbox).toEqual(everything.filter((id) => id.startsWith('sandbox/')))
  await button(page, 'Save').click()
  await page.waitForSelector('dialog.sheet', { state: 'detached' })
  expect(await offeredTo(key.secret)).toEqual(sandbox)
})

test('projects: deleting one that was used refuses its keys and takes it off the lists', async ({
  page,
  go,
  key,
  project,
}) => {
  expect(await harness.call(key.secret)).toBe(200)
  await go(`${harness.gateway.url}/console/projects`)
  await page.waitForSelector('th:has-text("web")')
  await act(page, 'web', 'Delete')
  await page.waitForSelector('dialog.sheet:has-text("All requests with its 1 active key will be refused.")')
  await button(page, 'Keep project').click()
  expect(await harness.call(key.secret)).toBe(200)
  await act(page, 'web', 'Delete')
  await button(page, 'Delete project').click()
  await page.waitForSelector('text=No projects yet')
  expect(await harness.call(key.secret)).toBe(401)
  // Its page still shows what it was used for, and its key is still named on the Keys page.
  await go(`${harness.gateway.url}/console/projects/${project.id}`)
  await page.waitForSelector('dt:has-text("Deleted")')
  expect(await button(page, 'Delete web').count()).toBe(0)
  await go(`${harness.gateway.url}/console/keys`)
  await page.waitForSelector('text=No projects yet')
})

test('projects: a further name of a model works in requests, and is shown', async ({ page, key }) => {
  expect(await harness.call(key.secret, undefined, 'parrot')).toBe(404)
  await act(page, 'web', 'Models')
  await field(page, 'Further names of models').fill('parrot=sandbox/echo')
  await button(page, 'Save').click()
  await page.waitForSelector('td:has-text("parrot=sandbox/echo")')
  expect(await harness.call(key.secret, undefined, 'parrot')).toBe(200)
  await act(page, 'web', 'Models')
  expect(await field(page, 'Further names of models').inputValue()).toBe('parrot=sandbox/echo')
  await field(page, 'Further names of models').fill('')
  await button(page, 'Save').click()
  await page.waitForSelector('td:has-text("parrot=")', { state: 'detached' })
  expect(await harness.call(key.secret, undefined, 'parrot')).toBe(404)
})

test('projects: objects from a file are read-only and can be copied as YAML', async ({ page, workspace, go }) => {
  const body = { name: 'declared', models: ['sandbox/*'] }
  await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, body, { 'x-tollgate-managed-by': 'file' })
  await go(`${harness.gateway.url}/console/projects`)
  const row = page.locator('tr:has-text("declared")')
  await row.waitFor()
  expect(await row.getByRole('button', { name: 'Actions for declared' }).count()).toBe(0)
  expect(await row.locator('[data-copy]').getAttribute('data-copy')).toBe(
    `workspaces:\n  - name: "${workspace.name}"\n    projects:\n      - name: "declared"\n        models: ["sandbox/*"]\n`,
  )
})

test('providers: a provider key is stored, shown by its last characters only, and deleted', async ({ page }) => {
  await button(page, 'Add key').click()
  await page.getByRole('combobox', { name: 'Provider' }).selectOption('anthropic')
  await field(page, 'API key').fill('sk-ant-of-my-own-7890')
  await button(page, 'Save key').click()
  await page.waitForSelector('td:has-text("…7890")')
  expect(await page.content()).not.toContain('of-my-own')
  await button(page, 'Delete the key for anthropic').click()
  await button(page, 'Delete key').click()
  await page.waitForSelector('text=No provider keys yet')
  await page.getByRole('link', { name: 'sandbox', exact: true }).click()
  await page.waitForSelector('section[aria-label="Routes"] tbody tr')
  expect(await page.locator('section[aria-label="Routes"] tbody tr').count()).toBeGreaterThan(5)
})

test('keys: the audit log lists the changes, and the settings sign out', async ({ page, workspace, go }) => {
  await go(`${harness.gateway.url}/console/audit`)
  await page.waitForSelector(`tr:has-text("wallet.topup"):has-text("${workspace.id}")`)
  await go(`${harness.gateway.url}/console/settings`)
  await button(page, 'Sign out of this browser').click()
  await page.waitForSelector('#token')
})

test('providers: an operator adds a provider and a model to the configuration file, edits and removes them', async ({
  page,
  go,
  workspace,
}) => {
  const address = `${harness.gateway.url}/console/${workspace.id}/providers`
  const keyFile = join(harness.gateway.dataFolder, 'provider-keys', 'beta')
  await button(page, 'Add provider').click()
  await field(page, 'Name').fill('beta')
  await field(page, 'Base URL').fill('https://beta.example/v1')
  await field(page, 'API key').fill('sk-of-beta-4321')
  expect(await seriousFaults(page)).toEqual([])
  await button(page, 'Save provider').click()
  const row = page.locator('section[aria-label="Providers"] tr', { hasText: 'beta' })
  await row.filter({ hasText: '…4321' }).waitFor()
  expect(await page.content()).not.toContain('sk-of-beta')
  await button(page, 'Add model').click()
  await field(page, 'Model id').fill('beta/one')
  await field(page, 'Routes').fill('beta one-v1')
  await field(page, 'Input price').fill('1.00')
  await field(page, 'Output price').fill('2.00')
  await button(page, 'Save model').click()
  await page.waitForSelector('section[aria-label="Declared models"] tr:has-text("$1.00 in, $2.00 out")')
  await button(page, 'Edit beta/one').click()
  await field(page, 'Output price').fill('3.00')
  await button(page, 'Save model').click()
  await page.waitForSelector('section[aria-label="Declared models"] tr:has-text("$1.00 in, $3.00 out")')
  expect(await seriousFaults(page)).toEqual([])
  // Everything else is on its page.
  await page.getByRole('link', { name: 'beta', exact: true }).click()
  await page.waitForSelector('section[aria-label="Prices"] tr:has-text("beta/one"):has-text("$3.00")')
  expect(await seriousFaults(page)).toEqual([])
  await button(page, 'Rotate key for beta').click()
  await button(page, 'Rotate key').click()
  await page.waitForSelector('.field-error:has-text("New API key is required.")')
  await field(page, 'New API key').fill('sk-of-beta-new-8765')
  await button(page, 'Rotate key').click()
  await page.waitForSelector('.facts-grid:has-text("…8765")')
  expect(await Bun.file(keyFile).text()).toBe('sk-of-beta-new-8765')
  expect(await page.content()).not.toContain('sk-of-beta')
  await button(page, 'Disable beta').click()
  await button(page, 'Disable').click()
  await page.locator('.facts-grid .status:has-text("disabled")').waitFor()
  await go(address)
  await row.locator('.status:has-text("disabled")').waitFor()
  await button(page, 'Remove beta/one').click()
  await button(page, 'Remove').click()
  await page.waitForSelector('text=No models declared')
  await page.getByRole('link', { name: 'beta', exact: true }).click()
  await button(page, 'Enable beta').click()
  await button(page, 'Enable').click()
  await page.locator('.facts-grid .status:has-text("no routes")').waitFor()
  await button(page, 'Remove beta').click()
  await button(page, 'Remove').click()
  await page.waitForURL(address)
  await row.waitFor({ state: 'detached' })
})

test('providers: a key from a variable is rotated where the gateway is started', async ({ page, go, workspace }) => {
  await go(`${harness.gateway.url}/console/${workspace.id}/providers/anthropic`)
  await button(page, 'Rotate key for anthropic').click()
  await page.waitForSelector('dialog.sheet[open]:has-text("ANTHROPIC_API_KEY"):has-text("restart the gateway")')
  expect(await page.locator('dialog.sheet input').count()).toBe(0)
})

test('keys: keys are searched, narrowed by status and project, and sorted; inherited limits are folded', async ({
  page,
  key,
  project,
  workspace,
}) => {
  const batch = await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'batch' })
  const made = async (projectId: string, name: string) =>
    await harness.manage(`POST /api/projects/${projectId}/keys`, { name })
  const nightly = await made(batch.id, 'nightly')
  const spender = await made(project.id, 'assistant')
  const old = await made(project.id, 'old')
  await harness.manage(`POST /api/keys/${old.id}/revoke`, {})
  await harness.manage(`PUT /api/projects/${project.id}/limits`, { requests_per_minute: 600, spend_per_month: '40.00' })
  await harness.manage(`PUT /api/workspaces/${workspace.id}/limits`, { spend_per_month: '160.00' })
  await harness.manage(`PUT /api/keys/${spender.id}/limits`, { spend_per_day: '1.50' })
  for (let calls = 0; calls < 2; calls++) expect(await harness.call(spender.secret)).toBe(200)
  expect(await harness.call(key.secret)).toBe(200)
  await page.reload()
  const rows = page.locator('tr[data-row]')
  const names = () => rows.locator('.row-name').allTextContents()
  await rows.first().waitFor()
  // The newest first, those that no longer work last.
  expect(await names()).toEqual(['assistant', 'nightly', 'ci', 'old'])
  const cell = (name: string, label: string) => rows.filter({ hasText: name }).locator(`td[data-label="${label}"]`)
  // What the key itself spent, also against its own limit; the project spent a third more, and the workspace as much.
  const stats: unknown = await harness.manage(`GET /api/stats?group=key&workspace_id=${workspace.id}`)
  const { groups } = stats as { groups: readonly { id: string; requests: number; cost: string }[] }
  const costOf = ({ id }: { readonly id: string }) => groups.find((group) => group.id === id)?.cost
  expect(groups.map(({ requests }) => requests).sort()).toEqual([1, 2])
  const spent = (name: string, label = 'This month') => cell(name, label).locator('.amount').getAttribute('data-usd')
  expect(await spent('assistant')).toBe(costOf(spender) ?? '')
  expect(await spent('assistant', 'Limits')).toBe(costOf(spender) ?? '')
  expect(await spent('ci')).toBe(costOf(key) ?? '')
  expect(await spent('nightly')).toBe('0')
  expect(await cell('assistant', 'Limits').locator('.own-limits').textContent()).toMatch(/^\$0\.0+\d+ of \$1\.50\/day$/)
  const inherited = cell('assistant', 'Limits').locator('details')
  expect(await inherited.locator('summary').textContent()).toBe('inherits 3 limits')
  expect(await inherited.locator('li').first().isVisible()).toBe(false)
  await inherited.locator('summary').click()
  expect(await inherited.locator('li').allTextContents()).toEqual([
    '600 requests/min by the project',
    '$40.00/month by the project',
    '$160.00/month by the workspace',
  ])
  expect(await cell('nightly', 'Limits').textContent()).toContain('inherits 1 limit')
  await field(page, 'Sort by').selectOption('name')
  expect(await names()).toEqual(['assistant', 'ci', 'nightly', 'old'])
  await field(page, 'Sort by').selectOption('used')
  expect(await names()).toEqual(['ci', 'assistant', 'nightly', 'old'])
  await field(page, 'Sort by').selectOption('spend')
  expect(await names()).toEqual(['assistant', 'ci', 'nightly', 'old'])
  await field(page, 'Project').selectOption({ label: 'batch' })
  expect(await names()).toEqual(['nightly'])
  await field(page, 'Project').selectOption('')
  await field(page, 'Status').selectOption('revoked')
  expect(await names()).toEqual(['old'])
  await field(page, 'Status').selectOption('')
  await field(page, 'Find a key').fill('BATCH night')
  expect(await names()).toEqual(['nightly'])
  // The view has an address of its own.
  await page.reload()
  await rows.first().waitFor()
  expect(await names()).toEqual(['nightly'])
  await field(page, 'Find a key').fill(nightly.secret.slice(-4))
  expect(await names()).toEqual(['nightly'])
  await field(page, 'Find a key').fill('none of these')
  await page.waitForSelector('text=No key matches')
})

const menu = (page: Page, name: string) => page.getByRole('combobox', { name, exact: true })

const optionsOf = (page: Page, name: string) =>
  menu(page, name)
    .locator('option')
    .evaluateAll((options) => options.map((option) => option.getAttribute('value')))

/** The gateway reloads its file when it changes. */
async function untilAllowed(): Promise<void> {
  for (;;) {
    const answer: unknown = await harness.manage('GET /api/config')
    const { data } = answer as { data: readonly { name: string; value: string }[] }
    if (data.some(({ name, value }) => name === 'own_keys.base_urls' && value === 'true')) return
    await Bun.sleep(10)
  }
}

test('providers: every built-in provider that takes a key is offered, enabled or not, and a base URL only where allowed', async ({
  page,
}) => {
  await button(page, 'Add key').click()
  await menu(page, 'Provider').locator('option[value=groq]').waitFor({ state: 'attached' })
  const offered = await optionsOf(page, 'Provider')
  for (const id of ['anthropic', 'openai', 'mistral']) expect(offered).toContain(id)
  // The sandbox takes no key, and amazon-bedrock has no address without the operator's settings.
  for (const id of ['sandbox', 'amazon-bedrock']) expect(offered).not.toContain(id)
  expect(await field(page, 'Base URL').count()).toBe(0)
  await page.keyboard.press('Escape')
  writeFileSync(harness.gateway.configPath, 'own_keys: { base_urls: true }\n')
  await untilAllowed()
  await button(page, 'Add key').click()
  await field(page, 'Base URL').waitFor()
})

test('providers: a key can be read from a file, and is not shown', async ({ page, workspace }) => {
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
})

test('projects: models that only an own key unlocks work in the playground and in allowlists', async ({
  page,
  workspace,
  key,
  go,
}) => {
  const catalog = await offeredTo(key.secret)
  await harness.manage(`PUT /api/workspaces/${workspace.id}/credentials/openai`, { api_key: 'sk-made-up-1234' })
  const own = (await offeredTo(key.secret)).filter((id) => !catalog.includes(id))
  expect(own.length).toBeGreaterThan(0)
  const [first = ''] = own
  await go(`${harness.gateway.url}/console/playground?model=${first}`)
  await page.waitForSelector(`[data-answer="${first}"]`)
  await page.locator('.model-button').first().click()
  await page.getByLabel('Search models').fill('openai/')
  // Models for embeddings answer no messages.
  const offered = [...catalog, ...own].filter((id) => id.startsWith('openai/') && !id.includes('embedding')).sort()
  await page.locator('[role=menuitemradio]').nth(offered.length).waitFor({ state: 'detached' })
  expect(await page.locator('[role=menuitemradio] > span').allTextContents()).toEqual(offered)
  await page.keyboard.press('Escape')
  await page.waitForSelector('text=uses the workspace’s own provider key')
  await go(`${harness.gateway.url}/console/projects`)
  await act(page, 'web', 'Models')
  await field(page, 'Only these').check()
  await field(page, 'Search models and creators').fill(first)
  await page.getByLabel(first, { exact: true }).check()
  await page.waitForSelector('.preview:has-text("Its keys will see 1 of ")')
  expect(await page.locator('.preview').textContent()).not.toContain('refused')
  await button(page, 'Save').click()
  await page.waitForSelector('td:has-text("1 of ")')
  expect(await offeredTo(key.secret)).toEqual([first])
  // Now no project may call all models, so the other models that the key unlocks are not known.
  await act(page, 'web', 'Models')
  await page.waitForSelector('.preview:has-text("are counted")')
  expect(await page.locator('.model-ids code').allTextContents()).toEqual([first])
})
