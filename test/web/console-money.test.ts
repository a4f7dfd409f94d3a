// Figures of money read from the console's pages in Chromium, and compared with the API and with plain SQL over the database:
// two workspaces, one of them on a price list, and periods that cut hours. Amounts are equal to the nano-dollar.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { isoTime, systemClock } from '../../src/kernel/clock.ts'
import { parseUsd } from '../../src/kernel/money.ts'
import { forecastOf, usagePeriod } from '../../src/web/pages/console/figures.ts'
import { seriousFaults } from '../parts/axe.ts'
import { browserTest } from '../parts/browser.ts'
import { act, button, field, startConsole } from './console-harness.ts'

const hourMs = 3_600_000

/** How far the gateway's clock is behind, so that requests are spread over days. */
let behindMs = 80 * hourMs
const clock = { now: () => systemClock.now() - behindMs, monotonicMs: systemClock.monotonicMs }
// Reports find the rows of a period by the time in their ids.
const realId = Bun.randomUUIDv7
const ids = spyOn(Bun, 'randomUUIDv7')
ids.mockImplementation(((encoding: 'buffer') => realId(encoding, clock.now())) as typeof Bun.randomUUIDv7)
const config = `
providers:
  - id: acme
    base_url: http://127.0.0.1:9/v1
    dialect: openai-chat
    api_key: not-a-key
models:
  - id: acme/large
    price: { input: "2.50", output: "10.00" }
    routes: [{ provider: acme, model: large, cost: { input: "2.00", output: "8.00" } }]
  - id: acme/shared
    price: { input: "1.00", output: "2.00" }
    routes: [{ provider: acme, model: shared }, { provider: sandbox, model: echo }]
`
const harness = await startConsole({ clock, config })
afterAll(async () => {
  await harness.stop()
  ids.mockRestore()
})

const { manage, gateway } = harness
const startedAt = systemClock.now()
const wholeHour = startedAt - (startedAt % hourMs)
const ago = (hours: number) => wholeHour - hours * hourMs
const minutes = (count: number) => count / 60
/** Cuts two hours, each with one call before and one after the cut. */
const custom = { from: ago(50 - minutes(20)), to: ago(3 - minutes(20)) }
const callsBefore = [72, 50 - minutes(10)]
const calls = [50 - minutes(40), 30.25, 26, 3 - minutes(10)]
const callsAfter = [3 - minutes(40), 0]
/** Of a call of sandbox/echo: 9 tokens in and 5 out at $1.00 and $2.00 per million, and with 15 % more. */
const [catalogCharge, listCharge] = [19_000n, 21_850n]

interface Tenant {
  readonly id: string
  readonly keys: readonly { readonly id: string; readonly secret: string }[]
}
const tenants: Record<'acme' | 'globex', Tenant> = { acme: { id: '', keys: [] }, globex: { id: '', keys: [] } }

beforeAll(async () => {
  await manage('PUT /api/price-lists/retail', { markup_percent: '15' })
  for (const name of ['acme', 'globex'] as const) {
    const { id } = await manage('POST /api/workspaces', { name })
    const project = await manage(`POST /api/workspaces/${id}/projects`, { name: 'web' })
    await manage(`POST /api/workspaces/${id}/topups`, { amount: '5.00', reference: 'invoice 17' })
    await manage(`PUT /api/workspaces/${id}/limits`, { spend_per_month: '160.00' })
    const keys = [await manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })]
    if (name === 'globex') {
      await manage(`PATCH /api/workspaces/${id}`, { price_list: 'retail' })
      keys.push(await keyOfPerson(id, project.id))
    }
    tenants[name] = { id, keys }
  }
  for (const hours of [...callsBefore, ...calls, ...callsAfter]) {
    behindMs = hours === 0 ? 0 : systemClock.now() - ago(hours)
    for (const { keys } of Object.values(tenants)) {
      const key = hours === 26 ? keys.at(-1) : keys[0]
      await harness.ask('sandbox/echo', {}, 'client/1', key?.secret)
    }
    if (hours === 26) await harness.ask('acme/unknown', {}, 'client/1', tenants.globex.keys[0]?.secret)
  }
})

/** The page of a new admin. */
async function joinAs(name: string, workspaceId: string) {
  const invitation = { email: `${name.toLowerCase()}@example.com`, role: 'admin', workspace_id: workspaceId }
  const { url } = (await manage('POST /api/invitations', invitation)) as unknown as { readonly url: string }
  return await harness.accept(url, name, 'correct horse battery')
}

/** Created by Ada in the console, so that it is hers. */
async function keyOfPerson(workspaceId: string, projectId: string) {
  const { page, close } = await joinAs('Ada', workspaceId)
  const created = await page.evaluate(async (path) => {
    const headers = { 'content-type': 'application/json' }
    return (await fetch(path, { method: 'POST', headers, body: '{"name":"adas"}' })).text()
  }, `/api/projects/${projectId}/keys`)
  await close()
  return JSON.parse(created) as { readonly id: string; readonly secret: string }
}

/** Plain SQL over the database of the gateway. */
function query<Row>(sql: string, ...values: (string | number)[]): readonly Row[] {
  using database = new Database(join(gateway.dataFolder, 'tollgate.db'), { readonly: true, safeIntegers: true })
  return database.query<Row, (string | number)[]>(sql).all(...values)
}

interface Sums {
  readonly subject: string | null
  readonly requests: bigint
  readonly errors: bigint
  readonly charge: bigint
}

const sumsOf = (subject: string, { from, to }: { from: number; to: number }, workspace = '%') =>
  query<Sums>(
    `SELECT ${subject} AS subject, COUNT(*) AS requests, COUNT(code) AS errors, COALESCE(SUM(charge), 0) AS charge
    FROM requests WHERE workspace_id LIKE ? AND started_at >= ? AND started_at < ? GROUP BY 1 ORDER BY charge DESC, requests DESC`,
    ...[workspace, from, to],
  )

async function nanosIn(place: Locator): Promise<bigint> {
  const usd = (await place.locator('[data-usd]').first().getAttribute('data-usd')) ?? 'nothing'
  const size = parseUsd(usd.replace('-', ''))
  if (size === undefined) throw new Error(`${usd} is no amount`)
  return usd.startsWith('-') ? -size : size
}

const tile = (page: Page, label: string) =>
  page.locator('.tile').filter({ has: page.locator('dt', { hasText: new RegExp(`^${label}$`) }) })
const cell = (row: Locator, label: string) => row.locator(`td[data-label="${label}"]`)

/** The rows of the page's only table as the database has them: name, spend, requests and errors. */
async function tableOf(page: Page) {
  await page.locator('.data-table tbody tr').first().waitFor()
  expect(await page.locator('.data-table').count()).toBe(1)
  const rows = await page.locator('.data-table tbody tr').all()
  return await Promise.all(
    rows.map(async (row) => ({
      name: await row.locator('th').innerText(),
      charge: await nanosIn(cell(row, 'Spend')),
      requests: BigInt(await cell(row, 'Requests').innerText()),
      errors: BigInt(await cell(row, 'Errors').innerText()),
    })),
  )
}

/** The card of the first interval whose series have this one, from the left. */
async function cardWith(page: Page, series: string): Promise<string> {
  const plot = page.locator('.usage-plot canvas')
  await plot.waitFor()
  const box = await plot.boundingBox()
  for (let part = 0; box && part < 1; part += 0.01) {
    await page.mouse.move(box.x + part * box.width, box.y + box.height / 2)
    const [text = ''] = await page.locator('.usage-card').allInnerTexts()
    if (text.includes(series)) return text
  }
  return 'no interval has it'
}

const total = (rows: readonly { readonly charge: bigint }[]) => rows.reduce((sum, { charge }) => sum + charge, 0n)
const figures = ({ charge, requests, errors }: Omit<Sums, 'subject'>) => ({ charge, requests, errors })
const customRange = `range=custom&from=${isoTime(custom.from)}&to=${isoTime(custom.to)}`

browserTest('usage of a custom period is one table of one period, equal to the API and the database', async () => {
  const { globex } = tenants
  const { page, go, reports, close } = await harness.signIn(`/console/${globex.id}/usage?${customRange}&group=key`)
  const rows = await tableOf(page)
  const inDatabase = sumsOf('key_id', custom, globex.id)
  expect(rows.map(figures)).toEqual(inDatabase.map(figures))
  // Four calls by the price list, and one that was refused.
  expect(rows.map(({ name, charge }) => [name, charge])).toEqual([
    ['ci', 3n * listCharge],
    ['adas', listCharge],
  ])
  expect(await nanosIn(tile(page, 'Spend'))).toBe(4n * listCharge)
  expect(await tile(page, 'Requests').locator('strong').innerText()).toBe('5')
  const period = `from=${isoTime(custom.from)}&to=${isoTime(custom.to)}`
  type Series = { readonly total: { readonly cost: string; readonly requests: number } }
  const api = (await manage(`GET /api/usage/series?workspace_id=${globex.id}&${period}`)) as unknown as Series
  expect([parseUsd(api.total.cost), api.total.requests]).toEqual([(4n * listCharge) as never, 5])
  // The rate is compared with the rate before: one of five after none of two.
  const errors = tile(page, 'Error rate')
  expect(await errors.locator('strong').innerText()).toBe('20.0 %')
  await errors.locator('text=+20.0 percentage points vs the period before · 1 of 5').waitFor()
  // Two calls like those of this period are a line that can be read; no call is none.
  await page.locator('.hint:has-text("the dashed line is the period before")').waitFor()
  await go(`${gateway.url}/console/${globex.id}/usage?range=custom&from=${isoTime(ago(31))}&to=${isoTime(ago(29))}`)
  await page.locator('.hint:has-text("partial. Click an interval")').waitFor()

  await go(`${gateway.url}/console/${globex.id}/usage?${customRange}&group=person`)
  await page.locator('th:has-text("(no person)")').waitFor()
  expect((await tableOf(page)).map(({ name, charge }) => [name, charge])).toEqual([
    ['(no person)', 3n * listCharge],
    ['Ada', listCharge],
  ])
  expect(await seriousFaults(page)).toEqual([])

  await go(`${gateway.url}/console/all/usage?${customRange}&group=workspace`)
  await page.locator('th:has-text("acme")').waitFor()
  const byWorkspace = await tableOf(page)
  expect(byWorkspace.map(figures)).toEqual(sumsOf('workspace_id', custom).map(figures))
  expect(byWorkspace.map(({ name, charge }) => [name, charge])).toEqual([
    ['globex', 4n * listCharge],
    ['acme', 4n * catalogCharge],
  ])
  expect(await nanosIn(tile(page, 'Spend'))).toBe(total(byWorkspace))
  // Both called at the same times. The card at the pointer has every digit.
  expect(await cardWith(page, 'acme')).toMatch(/Total\s+\$0\.00004085\s+globex\s+\$0\.00002185\s+acme\s+\$0\.000019$/)
  expect(reports).toEqual([])
  await close()
})

browserTest('an amount is shortened, and has every digit on hover and when it is copied', async () => {
  const { page, close } = await harness.signIn(`/console/${tenants.globex.id}/usage?${customRange}`)
  const amount = tile(page, 'Spend').locator('[data-usd]')
  await page.locator('.data-table tbody tr').first().waitFor()
  // 4 × 21,850 nano-dollars.
  expect([await amount.innerText(), await amount.getAttribute('title')]).toEqual(['$0.000087', '$0.0000874'])
  // As text, because the browser's types are not known here.
  const copied = await page.evaluate(`(() => {
    const element = document.querySelector('.tile [data-usd="0.0000874"]')
    getSelection().selectAllChildren(element)
    const clipboardData = new DataTransfer()
    element.dispatchEvent(new ClipboardEvent('copy', { clipboardData, bubbles: true, cancelable: true }))
    return clipboardData.getData('text/plain')
  })()`)
  expect(copied).toBe('$0.0000874')
  await close()
})

browserTest('this month is what the database has since its first, against the limit, with a forecast', async () => {
  const { id } = tenants.globex
  const { page, close } = await harness.signIn(`/console/${id}/usage?range=month`)
  const rows = await tableOf(page)
  const month = usagePeriod('month', systemClock.now())
  const spent = total(sumsOf("''", month, id))
  expect(await nanosIn(tile(page, 'This month'))).toBe(spent)
  expect(await nanosIn(tile(page, 'Spend'))).toBe(spent)
  expect(total(rows)).toBe(spent)
  expect(await tile(page, 'This month').locator('dd > strong').innerText()).toMatch(/^\$0\.000\d+ of \$160\.00$/)
  await tile(page, 'This month').locator('text=so far, and the rest at the rate of the last').waitFor()
  // What the wallet has left is what was put in less every charge.
  const all = total(sumsOf("''", { from: 0, to: Number.MAX_SAFE_INTEGER }, id))
  expect(await nanosIn(tile(page, 'Available'))).toBe(5_000_000_000n - all)
  await close()
})

test('a month begins and ends in UTC, and the forecast adds the rest of it at the current rate', () => {
  const now = Date.parse('2026-11-18T12:00:00.000Z')
  const days = (period: { from: number; to: number }) => [period.from, period.to].map((at) => isoTime(at).slice(0, 13))
  const month = usagePeriod('month', now)
  expect([days(month), days(month.before)]).toEqual([
    ['2026-11-01T00', '2026-11-18T12'],
    ['2026-10-01T00', '2026-10-18T12'],
  ])
  // March has more days than February: the comparison ends with February.
  expect(days(usagePeriod('month', Date.parse('2026-03-31T01:00:00.000Z')).before)).toEqual([
    '2026-02-01T00',
    '2026-03-01T00',
  ])
  const last = usagePeriod('last-month', now)
  expect([days(last), days(last.before)]).toEqual([
    ['2026-10-01T00', '2026-11-01T00'],
    ['2026-09-01T00', '2026-10-01T00'],
  ])
  // 12.5 days are left: 3.00 + 12.5 × 2.00.
  expect(forecastOf('3.00', { perDay: 2, span: '7 days' }, now)).toBe('28.00')
})

browserTest('the margin by day is in the order of time and adds up to the database', async () => {
  const { page, close } = await harness.signIn(`/console/${tenants.globex.id}/margin?range=7d`)
  await page.locator('.usage-chart canvas').waitFor()
  const colors = await page.evaluate(
    `[...document.querySelectorAll('.chart li')].map((each) => getComputedStyle(each, '::before').backgroundColor)`,
  )
  expect(new Set(colors as string[]).size).toBe(2)
  const rows = await page.locator('table:has(caption:has-text("Margin by day")) tbody tr').all()
  const shown = await Promise.all(
    rows.map(async (row) => ({
      day: await row.locator('th').innerText(),
      charged: await nanosIn(cell(row, 'Charged')),
      margin: await nanosIn(cell(row, 'Margin')),
      share: await cell(row, 'Margin rate').innerText(),
    })),
  )
  const from = startedAt - (startedAt % (24 * hourMs)) - 6 * 24 * hourMs
  const days = query<{ readonly day: string; readonly charge: bigint; readonly cost: bigint }>(
    `SELECT date(started_at / 1000, 'unixepoch') AS day, COALESCE(SUM(charge), 0) AS charge,
      COALESCE(SUM(upstream_cost), 0) AS cost
    FROM requests WHERE workspace_id = ? AND started_at >= ? GROUP BY 1 ORDER BY 1 DESC`,
    ...[tenants.globex.id, from],
  )
  expect(shown.length).toBeGreaterThan(2)
  // The sandbox costs nothing, so every charge is margin.
  expect(shown).toEqual(
    days.map(({ day, charge, cost }) => ({
      day,
      charged: charge,
      margin: charge - cost,
      share: charge === 0n ? '–' : '100.0 %',
    })),
  )
  expect(await nanosIn(tile(page, 'Margin'))).toBe(shown.reduce((sum, { margin }) => sum + margin, 0n))
  await close()
})

browserTest('billing lists the transfers of one type, with the balance only where all are listed', async () => {
  const { id } = tenants.globex
  const { page, close } = await harness.signIn(`/console/${id}/wallet`)
  const rows = page.locator('.transfer-table tbody tr')
  const charges = query<{ readonly charge: bigint }>(
    'SELECT charge FROM requests WHERE workspace_id = ? AND charge IS NOT NULL ORDER BY id DESC',
    id,
  )
  await rows.first().waitFor()
  expect(await rows.count()).toBe(charges.length + 1)
  expect(await nanosIn(cell(rows.first(), 'Balance after'))).toBe(5_000_000_000n - total(charges))
  await field(page, 'Type').selectOption('charge')
  await page.waitForURL(/kind=charge/)
  await rows.filter({ hasText: 'invoice 17' }).waitFor({ state: 'detached' })
  expect(await page.locator('td[data-label="Balance after"]').count()).toBe(0)
  expect(await Promise.all((await rows.all()).map((row) => nanosIn(cell(row, 'Amount'))))).toEqual(
    charges.map(({ charge }) => charge),
  )
  await field(page, 'Type').selectOption('topup')
  await rows.filter({ hasText: 'invoice 17' }).waitFor()
  expect(await rows.count()).toBe(1)
  // The confirmation is in the form whose button was pressed.
  await field(page, 'Amount in USD').fill('1.50')
  await button(page, 'Top up').click()
  await page
    .getByRole('region', { name: 'Top up' })
    .locator('[role=status]:has-text("$1.50 added; the balance is $6.50.")')
    .waitFor()
  await close()
})

browserTest('without card payments an admin reads whom to ask for funds', async () => {
  const { id } = tenants.globex
  const { page, go, close } = await joinAs('Grace', id)
  await go(`${gateway.url}/console/${id}/wallet`)
  const topUp = page.getByRole('region', { name: 'Top up' })
  await topUp.locator(`text=Ask its operator, who runs it, to add funds to this workspace (${id}).`).waitFor()
  await page.locator('.transfer-table tbody tr').first().waitFor()
  expect(await page.getByRole('button', { name: 'Top up' }).count()).toBe(0)
  await close()
})

browserTest(
  'a price below cost is refused in the price list until it is allowed, and then has its margin',
  async () => {
    const { page, close, reports } = await harness.signIn('/console/all/margin')
    await page.getByRole('link', { name: 'retail' }).click()
    await field(page, 'Find a model').fill('acme/large')
    const row = page.locator('tr[data-row="acme/large"]')
    // $2.50 and $10.00, and 15 % more. (3 × 2.875 + 11.50) / 4 = 5.03125, and the cost is (3 × 2.00 + 8.00) / 4 = 3.50.
    expect(await cell(row, 'Price in').innerText()).toBe('$2.875')
    expect(await cell(row, 'Margin (3:1)').innerText()).toBe('30.4 %')
    await act(page, 'acme/large', 'Set its price')
    await field(page, 'Input, USD per million tokens').fill('1.99')
    await page.waitForSelector('[role=alert]:has-text("Input at $1.99 is below the cost of $2.00.")')
    await button(page, 'Set the price').click()
    await page.waitForSelector(
      '[role=alert]:has-text("This would sell input of acme/large below what the provider charges.")',
    )
    type List = { readonly prices: Readonly<Record<string, object>> }
    const list = async () => (await manage('GET /api/price-lists/retail')) as unknown as List
    expect((await list()).prices).toEqual({})
    await field(page, 'Prices below cost').selectOption({ label: 'Allow' })
    await button(page, 'Set the price').click()
    await row.locator('text=a price of its own').waitFor()
    expect(await cell(row, 'Price in').innerText()).toBe('$1.99')
    // (3 × 1.99 + 11.50) / 4 = 4.3675 against 3.50.
    expect(await cell(row, 'Margin (3:1)').innerText()).toBe('19.9 %\nbelow cost')
    expect((await list()).prices['acme/large']).toMatchObject({ input: '1.99', output: '11.50' })
    await act(page, 'acme/large', 'Change a tier’s price')
    await field(page, 'Input in this tier, USD per million tokens').fill('1.25')
    await field(page, 'Output in this tier, USD per million tokens').fill('5.00')
    await field(page, 'Prices below cost').selectOption({ label: 'Allow' })
    await button(page, 'Change the tier’s price').click()
    await row.locator('text=a price of its own; Flex $1.25 in, $5.00 out').waitFor()
    expect((await list()).prices['acme/large']).toMatchObject({
      ...{ input: '1.99', output: '11.50' },
      tiers: { flex: { input: '1.25', output: '5.00' } },
    })
    expect(await seriousFaults(page)).toEqual([])
    await act(page, 'acme/large', 'Change a tier’s price')
    await field(page, 'Change').selectOption({ label: 'Remove its price' })
    await field(page, 'Input in this tier, USD per million tokens').waitFor({ state: 'detached' })
    await field(page, 'Prices below cost').selectOption({ label: 'Allow' })
    await button(page, 'Change the tier’s price').click()
    await row.locator('text=Flex').waitFor({ state: 'detached' })
    expect((await list()).prices['acme/large']).not.toHaveProperty('tiers')
    await act(page, 'acme/large', 'Use the markup')
    await page.getByRole('dialog').getByRole('button', { name: 'Use the markup' }).click()
    await row.locator('td[data-label="Price in"]:has-text("$2.875")').waitFor()
    expect((await list()).prices).toEqual({})
    expect(reports.filter((report) => !report.includes('status of 400'))).toEqual([])
    await close()
  },
)

browserTest('providers show what each of them charged, also where several serve a model', async () => {
  // Nothing listens at the address of acme, so the sandbox answers.
  const id = await harness.ask('acme/shared', {}, 'client/1', tenants.acme.keys[0]?.secret)
  // What the journal has is in the tables once something reads them.
  expect(await manage(`GET /api/requests/${id}`)).toMatchObject({ provider: 'sandbox' })
  const since = systemClock.now() - 7 * 24 * hourMs
  const charged = query<{ readonly provider: string; readonly charge: bigint }>(
    'SELECT provider, SUM(charge) AS charge FROM requests WHERE charge > 0 AND started_at >= ? GROUP BY 1',
    since,
  )
  expect(charged.map(({ provider }) => provider)).toEqual(['sandbox'])
  const { page, go, close } = await harness.signIn('/console/providers')
  const row = (name: string) => page.locator(`section[aria-label="Providers"] tr[data-row="${name}"]`)
  await row('sandbox').locator('[data-usd]').waitFor()
  expect(await nanosIn(cell(row('sandbox'), 'Charged, 7d'))).toBe(charged[0]?.charge ?? 0n)
  expect(await nanosIn(cell(row('acme'), 'Charged, 7d'))).toBe(0n)
  await go(`${gateway.url}/console/providers/sandbox`)
  await page.locator('.facts-grid [data-usd]').waitFor()
  expect(await nanosIn(page.locator('.facts-grid'))).toBe(charged[0]?.charge ?? 0n)
  await close()
})
