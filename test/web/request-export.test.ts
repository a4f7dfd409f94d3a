// What the page of requests shows is what it exports and what the database has: the same requests in the same order, for
// periods, filters and sorting, in a real browser over the real gateway.

import { Database } from 'bun:sqlite'
import { afterAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { button, field, startConsole } from './console-harness.ts'

const harness = await startConsole()
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
  expect(await page.title()).toBe('404 · sandbox/down · every route failed · Tollgate')
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
