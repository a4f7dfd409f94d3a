// The pages of requests in a real browser over the real gateway: what they show is what they export and what the database
// has, in the same order, for periods, filters and sorting. Requests that went wrong, and addresses that are wrong: the pages
// say what happened, and nothing that did not.

import { Database } from 'bun:sqlite'
import { afterAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { batchesOn, chatLine, createOf } from '../batches/parts.ts'
import { act, button, field, startConsole } from './console-harness.ts'

const harness = await startConsole({ env: batchesOn })
afterAll(() => harness.stop())
const { test, gateway, manage } = harness

const rowsOf = (page: Page) =>
  page.locator('.request-table tbody tr').evaluateAll((rows) => rows.map((row) => row.getAttribute('data-row') ?? ''))

async function exported(page: Page, name: 'CSV' | 'JSON lines'): Promise<readonly string[]> {
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name }).click()])
  const lines = readFileSync(await file.path(), 'utf8')
    .trimEnd()
    .split(/\r?\n/)
  return name === 'CSV'
    ? lines.slice(1).map((line) => line.split(',')[1] ?? '')
    : lines.map((line) => (JSON.parse(line) as { id: string }).id)
}

/** By plain SQL over the database. */
function selected(where: string, ...values: readonly (string | number)[]): readonly string[] {
  const database = new Database(join(gateway.dataFolder, 'tollgate.db'), { readonly: true })
  try {
    return database
      .query<{ id: string }, (string | number)[]>(`SELECT id FROM requests WHERE ${where}`)
      .all(...values)
      .map(({ id }) => id)
  } finally {
    database.close()
  }
}

/** The page still loads for a moment after a filter was changed. */
async function waitForRows(page: Page, ids: readonly string[]): Promise<void> {
  for (let tries = 0; tries < 100 && (await rowsOf(page)).join(' ') !== ids.join(' '); tries++) await Bun.sleep(100)
  expect(await rowsOf(page)).toEqual([...ids])
}

async function expectSame(page: Page, ids: readonly string[]): Promise<void> {
  await waitForRows(page, ids)
  expect({ csv: await exported(page, 'CSV'), jsonl: await exported(page, 'JSON lines') }).toEqual({
    csv: [...ids],
    jsonl: [...ids],
  })
}

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
  // Shown once. An open page would ask for something meanwhile, and learn that its session is over.
  const address = page.url()
  await page.goto('about:blank')
  await page.context().clearCookies()
  await page.goto(address)
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

test('requests: the export has the rows of the page, and both are what the database has', async ({
  page,
  workspace,
  key,
  go,
}) => {
  const calls = ['echo', 'cache', 'throttled', 'echo', 'tools', 'throttled', 'echo', 'think'] as const
  const made: string[] = []
  for (const name of calls) made.push(await harness.ask(`sandbox/${name}`, {}, 'test-client/1.0', key.secret))
  // A request without a charge is written a moment later, and a read moves charges into the tables.
  const list = `GET /api/requests?workspace_id=${workspace.id}`
  type Listed = { readonly data: readonly { readonly id: string; readonly started_at: string }[] }
  const listed = async () => (await manage(list)) as unknown as Listed
  while ((await listed()).data.length < calls.length) await Bun.sleep(100)
  const { data } = await listed()
  const startOf = (at: number) => data.find(({ id }) => id === made[at])?.started_at ?? ''
  const ofWorkspace = (more: string, ...values: readonly (string | number)[]) =>
    selected(`workspace_id = ? AND ${more}`, workspace.id, ...values)

  // The last 24 hours are a filter: an older request is neither listed nor counted nor exported.
  await go(`${gateway.url}/console/${workspace.id}/requests`)
  await page.waitForSelector('.live .status-ok')
  await expectSame(page, ofWorkspace('1 = 1 ORDER BY id DESC'))
  await page.waitForSelector('text=8 requests in the last 24 hours: 6 succeeded, 0 refused or interrupted, 2 failed')
  await page.waitForSelector('text=Export 8 requests:')

  // From and To filter, to the millisecond.
  const [from, to] = [startOf(2), startOf(6)]
  const between = ['started_at >= ? AND started_at < ?', Date.parse(from), Date.parse(to)] as const
  const period = `from=${from}&to=${to}`
  await go(`${gateway.url}/console/${workspace.id}/requests?${period}`)
  const inPeriod = ofWorkspace(`${between[0]} ORDER BY id DESC`, between[1], between[2])
  expect(inPeriod).toEqual([made[5], made[4], made[3], made[2]] as string[])
  await expectSame(page, inPeriod)
  await page.waitForSelector('text=Export 4 requests:')

  // A filter on top.
  await field(page, 'Status').selectOption({ label: 'Failed' })
  await expectSame(page, ofWorkspace(`${between[0]} AND code IS NOT NULL ORDER BY id DESC`, between[1], between[2]))
  await field(page, 'Status').selectOption({ label: 'All' })

  // Sorted by a column, in both directions; requests without a charge last.
  const byCost = (order: string) => `${between[0]} ORDER BY charge IS NULL, charge ${order}, id DESC`
  await button(page, 'Cost').click()
  await expectSame(page, ofWorkspace(byCost('DESC'), between[1], between[2]))
  expect(await page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('descending')
  await button(page, 'Cost').click()
  await expectSame(page, ofWorkspace(byCost('ASC'), between[1], between[2]))
  await button(page, 'Duration').click()
  const byDuration = `${between[0]} ORDER BY total_ms DESC, id DESC`
  await expectSame(page, ofWorkspace(byDuration, between[1], between[2]))

  // Without live updates, what comes later is on neither.
  await go(`${gateway.url}/console/${workspace.id}/requests?live=off`)
  const before = ofWorkspace('1 = 1 ORDER BY id DESC')
  await waitForRows(page, before)
  await harness.ask('sandbox/echo', {}, 'test-client/1.0', key.secret)
  await expectSame(page, before)
})

test('requests: the columns that were chosen stay chosen, and each filter is in the address', async ({
  page,
  workspace,
  key,
  go,
}) => {
  await harness.ask('sandbox/echo', { prompt_cache_key: 'session-9' }, 'shell-x/1.0', key.secret)
  await harness.ask('acme/unknown', {}, 'shell-y/1.0', key.secret)
  await go(`${gateway.url}/console/${workspace.id}/requests?live=off`)
  while ((await rowsOf(page)).length < 2) {
    await Bun.sleep(200)
    await page.reload()
    await page.waitForSelector('.request-table tbody tr')
  }
  const heads = async () => (await page.locator('.request-table thead th').allTextContents()).map((text) => text.trim())
  const usual = ['Time', 'Status', 'Cause', 'Model', 'Key', 'Tokens', 'Duration', 'Cost']
  expect(await heads()).toEqual(usual)
  await button(page, 'Columns').click()
  await page.getByRole('menuitemcheckbox', { name: 'Session' }).click()
  await page.getByRole('menuitemcheckbox', { name: 'Key' }).click()
  await page.keyboard.press('Escape')
  const chosen = ['Time', 'Status', 'Cause', 'Model', 'Session', 'Tokens', 'Duration', 'Cost']
  expect(await heads()).toEqual(chosen)
  await page.reload()
  await page.waitForSelector('.request-table th:has-text("Session")')
  expect(await heads()).toEqual(chosen)
  expect(await page.locator('td[data-label=Session]', { hasText: 'session-9' }).count()).toBe(1)
  await field(page, 'Cause').selectOption({ label: 'unknown model (1)' })
  await page.waitForSelector('.request-table tbody tr:nth-child(2)', { state: 'detached' })
  expect(new URL(page.url()).searchParams.get('cause')).toBe('unknown_model')
  await button(page, 'More').click()
  await field(page, 'Client').selectOption({ label: 'shell-y (1)' })
  await page.waitForSelector('button:has-text("client shell-y")')
  expect(new URL(page.url()).searchParams.get('agent')).toBe('shell-y')
})

test('requests: the title of a request says what happened, and leads those to its cause who may change it', async ({
  page,
  workspace,
  key,
  go,
}) => {
  const id = await harness.ask('sandbox/down', {}, 'test-client/1.0', key.secret)
  const path = `/console/${workspace.id}/requests/${id}`
  while (
    !(await fetch(`${gateway.url}/api/requests/${id}`, { headers: { authorization: `Bearer ${harness.token}` } })).ok
  ) {
    await Bun.sleep(100)
  }
  await go(gateway.url + path)
  await page.waitForSelector('h1:has-text("404 · sandbox/down · every route failed")')
  await page.waitForFunction("document.title === '404 · sandbox/down · every route failed · Tollgate'")
  const fix = page.getByRole('link', { name: 'Provider sandbox' })
  expect(await fix.getAttribute('href')).toBe(`/console/${workspace.id}/providers/sandbox`)
  // Code of the message is shown as code.
  expect(await page.locator('[role=note] .markdown code').first().textContent()).toBe('sandbox/down')
  // A viewer sees the request, and no link to what only admins may open.
  const invitation = { email: 'vera@example.com', role: 'viewer', workspace_id: workspace.id }
  const { url } = (await manage('POST /api/invitations', invitation)) as unknown as { readonly url: string }
  const viewer = await harness.accept(url, 'Vera', 'correct horse battery')
  await viewer.go(gateway.url + path)
  await viewer.page.waitForSelector('h1:has-text("every route failed")')
  expect(await viewer.page.getByRole('link', { name: 'Provider sandbox' }).count()).toBe(0)
  await viewer.close()
})

test('audit: entries are filtered by who, action, object and time, and exported as they are shown', async ({
  page,
  key,
  workspace,
}) => {
  await manage(`POST /api/keys/${key.id}/revoke`)
  await page.reload()
  const table = page.locator('.console-page .data-table')
  await table.waitFor()
  const actions = () => table.locator('td[data-label=Action]').allTextContents()
  const file = async () => {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV' }).click(),
    ])
    const lines = readFileSync(await download.path(), 'utf8')
      .trimEnd()
      .split('\r\n')
      .slice(1)
    return lines.map((line) => line.split(',')[4])
  }
  await field(page, 'Object').fill(key.id)
  await field(page, 'Object').blur()
  await page.waitForURL((url) => url.searchParams.get('object') === key.id)
  await table.locator('tbody tr:nth-child(3)').waitFor({ state: 'detached' })
  expect(await actions()).toEqual(['key.revoke', 'key.create'])
  expect(await file()).toEqual(['key.revoke', 'key.create'])
  await page.getByRole('link', { name: 'key.revoke' }).click()
  await table.locator('tbody tr:nth-child(2)').waitFor({ state: 'detached' })
  expect(await file()).toEqual(['key.revoke'])
  await button(page, 'Clear filters').click()
  await field(page, 'Action').fill('workspace')
  await field(page, 'Action').blur()
  await page.waitForURL((url) => url.searchParams.get('action') === 'workspace')
  await table.locator('td[data-label=Action]', { hasText: 'key.' }).first().waitFor({ state: 'detached' })
  expect(await page.getByRole('link', { name: workspace.id }).count()).toBe(1)
  expect(new Set(await actions())).toEqual(new Set(['workspace.create']))
  // Before the first entry there is none.
  await field(page, 'To').fill('2001-01-01T00:00')
  await field(page, 'To').blur()
  await page.waitForSelector('h2:has-text("No matching changes")')
})

test('keys: batches have progress, results and requests, and are cancelled', async ({ page, key, workspace, go }) => {
  const as = { url: harness.gateway.url, key: key.secret }
  const linesOf = (count: number, model: string) =>
    Array.from({ length: count }, (_, at) => chatLine(`line-${at}`, 'hi', { model }))
  const list = `${as.url}/console/${workspace.id}/batches`
  await go(list)
  await page.waitForSelector('.empty:has-text("No batches")')
  expect(await page.locator('.console-menu [aria-current]').textContent()).toBe('Batches')
  const { id: slow } = (await createOf(as, linesOf(60, 'sandbox/slow'))).body
  const { id: quick } = (await createOf(as, linesOf(2, 'sandbox/echo'))).body
  await go(list)
  const row = (id: string) => page.locator(`tr[data-row="${id}"]`)
  await row(slow).locator('text=in progress').waitFor()
  await row(slow).locator('button:has-text("Cancel")').click()
  await page.locator('dialog button:has-text("Cancel batch")').click()
  // Without a reload.
  await row(slow).locator('text=cancelled').waitFor()
  await row(slow).locator('text=60 of 60').waitFor()
  await row(quick).locator('text=completed').waitFor()
  expect(await row(quick).locator('progress').getAttribute('value')).toBe('1')

  const results = await page.request.get(as.url + (await row(quick).locator('a.button').getAttribute('href')))
  expect([results.status(), (await results.text()).trim().split('\n').length]).toEqual([200, 2])
  await row(quick).locator('.row-link').click()
  await page.waitForSelector(`h1:has-text("${quick}")`)
  await page.locator('a:has-text("In the request log")').click()
  await page.waitForSelector(`button:has-text("batch ${quick}")`)
  await page.locator('tbody tr').nth(1).waitFor()
  expect(await page.locator('tbody tr').count()).toBe(2)
  await page.locator('tbody .row-link').first().click()
  await page.locator(`.facts-grid a:has-text("${quick}")`).click()
  await page.waitForURL((url) => url.pathname.endsWith(`/batches/${quick}`))
})
