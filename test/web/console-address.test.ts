// Addresses: every page of the console names its workspace, moving between pages loads no document, and addresses outside of
// the pages lead somewhere.

import { afterAll, expect, test } from 'bun:test'
import { browserTest, openPage } from '../parts/browser.ts'
import { startConsole } from './console-harness.ts'

const harness = await startConsole()
const { gateway, manage, signIn } = harness
afterAll(() => harness.stop())
const acme = await manage('POST /api/workspaces', { name: 'acme' })
const contoso = await manage('POST /api/workspaces', { name: 'Contoso' })
await manage(`POST /api/workspaces/${contoso.id}/topups`, { amount: '12.50' })

browserTest('two tabs keep their workspaces, and pages change without loading a document', async () => {
  const first = await signIn(`/console/${acme.id}/keys`)
  const { page } = first
  const other = await page.context().newPage()
  await other.goto(`${gateway.url}/console/${contoso.id}/usage`)
  await other.waitForSelector('.workspace-balance:text-is("$12.50")')
  // The last workspace is Contoso now; the first tab stays where it is.
  await page.reload()
  await page.waitForSelector('.workspace-name:text-is("acme")')
  await page.evaluate('window.isSameDocument = true')
  await page.click('.console-menu a:has-text("Billing")')
  await page.waitForSelector('h1:text-is("Billing")')
  expect(new URL(page.url()).pathname).toBe(`/console/${acme.id}/wallet`)
  expect(await page.title()).toBe('Billing · Tollgate')
  await page.goBack()
  await page.waitForSelector('h1:text-is("API keys")')
  await page.click('.workspace-button')
  await page.getByRole('menuitemradio', { name: 'Contoso', exact: true }).click()
  await page.waitForSelector('.workspace-name:text-is("Contoso")')
  expect(new URL(page.url()).pathname).toBe(`/console/${contoso.id}/keys`)
  expect(await page.evaluate('window.isSameDocument')).toBe(true)
  // An address without a workspace leads to the last one.
  await page.goto(`${gateway.url}/console/requests?outcome=failed`)
  expect(page.url()).toBe(`${gateway.url}/console/${contoso.id}/requests?outcome=failed`)
  const unknown = await page.goto(`${gateway.url}/console/ws_00000000000000000000000000/keys`)
  expect(unknown?.status()).toBe(404)
  expect(first.reports.filter((report) => !report.includes('404'))).toEqual([])
  await other.close()
  await first.close()
})

browserTest('pages keep the period, also in another workspace, and begin anew when they are opened again', async () => {
  const { page, reports, close } = await signIn(`/console/${acme.id}/usage?range=last-month&group=key`)
  const follow = async (section: string) => {
    await page.click(`.console-menu a:has-text("${section}")`)
    await page.waitForSelector(`h1:text-is("${section}")`)
    return new URL(page.url()).search
  }
  await page.waitForSelector('.console-menu a[aria-current]:has-text("Usage")')
  expect(await follow('Requests')).toBe('?range=last-month')
  expect(await page.getByLabel('Time', { exact: true }).inputValue()).toBe('last-month')
  await page.waitForSelector('text=/0 requests last month/')
  expect(await follow('Prices & margin')).toBe('?range=last-month')
  expect(await follow('Usage')).toBe('?range=last-month')
  await page.click('.workspace-button')
  await page.getByRole('menuitemradio', { name: 'Contoso', exact: true }).click()
  await page.waitForSelector('.workspace-name:text-is("Contoso")')
  expect(new URL(page.url()).search).toBe('?range=last-month')
  expect(await follow('Usage')).toBe('')
  // Two times, as each page has them in its address.
  const times = { from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' }
  await page.goto(`${gateway.url}/console/${acme.id}/requests?${new URLSearchParams(times)}`)
  await page.waitForSelector('html[data-alive]')
  expect(await follow('Usage')).toBe(`?${new URLSearchParams({ range: 'custom', ...times })}`)
  expect(await follow('Requests')).toBe(`?${new URLSearchParams(times)}`)
  expect(reports).toEqual([])
  await close()
})

const open = (path: string, headers: Record<string, string>) =>
  fetch(gateway.url + path, { headers, redirect: 'manual', decompress: false })

test('a browser gets pages for unknown addresses and documentation, a program gets JSON', async () => {
  const forPeople = { accept: 'text/html', 'accept-encoding': 'identity' }
  const missing = await open('/nothing/here', forPeople)
  expect([missing.status, (await missing.text()).includes('Page not found')]).toEqual([404, true])
  const json = await open('/nothing/here', { accept: '*/*' })
  expect([json.status, json.headers.get('content-type')]).toEqual([404, 'application/json'])
  expect((await open('/models', forPeople)).headers.get('location')).toBe('/')
  expect((await open('/models', { ...forPeople, authorization: 'Bearer x' })).status).toBe(401)
  expect(await (await open('/docs/errors', forPeople)).text()).toContain('INSUFFICIENT_BALANCE')
  const configuration = await (await open('/docs/reference/configuration', forPeople)).text()
  expect(configuration).toContain(
    '<td data-label="variable"><code>TOLLGATE_<wbr>HOST</code></td><td data-label="in the file"><code>server.<wbr>host</code></td>',
  )
  expect(await (await open('/docs/api', forPeople)).text()).toContain('/api/projects/{id}/keys')
  expect((await open('/docs/decisions/0007-bun', forPeople)).status).toBe(404)
  const search = await (await open('/docs/search?q=%22%3E%3Cimg+src%3Dx%3E+daily', forPeople)).text()
  expect(search).not.toContain('<img')
  expect(search).toContain('0 results for “&quot;>&lt;img src=x> daily”')
})

browserTest('the documentation is searched by keyboard, and without scripts', async () => {
  const { page, reports, close } = await openPage(harness.browser, `${gateway.url}/docs/api`)
  await page.keyboard.press('/')
  await page.keyboard.type('post projects/{id}/keys')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.docs-results a:has-text("POST /api/projects/{id}/keys")')
  // From the field over its button to the first result.
  for (let presses = 0; presses < 2; presses++) await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('POST /api/projects/{id}/keys')
  await page.keyboard.press('Enter')
  // The link opens the operation.
  await page.waitForSelector('details[open] > summary:has-text("POST /api/projects/{id}/keys")')
  expect(reports).toEqual([])
  await close()
  const plain = await openPage(harness.browser, `${gateway.url}/docs`, { javaScriptEnabled: false })
  await plain.page.getByRole('searchbox').fill('insufficient_balance')
  await plain.page.getByRole('button', { name: 'Search' }).click()
  await plain.page.locator('.docs-results a').first().click()
  expect(plain.page.url()).toBe(`${gateway.url}/docs/errors#insufficient_balance`)
  await plain.close()
})

test('answers of the management API are closed to browsers and compressed, and console pages are not stored', async () => {
  const { headers } = await open('/api/openapi.json', {
    authorization: `Bearer ${harness.token}`,
    'accept-encoding': 'gzip',
  })
  expect(headers.get('content-encoding')).toBe('gzip')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
  const page = await open('/console', {})
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.headers.get('permissions-policy')).toContain('camera=()')
})

browserTest('usage and requests come with their first data in the document, without a call for it', async () => {
  const project = await manage(`POST /api/workspaces/${contoso.id}/projects`, { name: 'web' })
  const { secret } = await manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
  const id = await harness.ask('sandbox/echo', {}, 'curl/8', secret)
  const opened = await signIn(`/console/${contoso.id}/keys`)
  const { page } = opened
  const calls: string[] = []
  page.on('request', (request) => calls.push(new URL(request.url()).pathname))
  for (const { path, text, later, early } of [
    { path: 'usage', text: '0 of 1', later: '/api/alerts', early: ['/api/usage/series', '/api/stats'] },
    { path: 'requests', text: id, later: '/api/alerts', early: ['/api/requests/facets', '/api/usage/series'] },
  ]) {
    calls.length = 0
    const document = await page.goto(`${gateway.url}/console/${contoso.id}/${path}`)
    expect(await document?.text()).toContain(text)
    // What the page reads by itself is read in the same moment as the rest would be.
    while (!calls.includes(later)) await Bun.sleep(20)
    expect(calls.filter((call) => early.includes(call))).toEqual([])
  }
  expect(opened.reports).toEqual([])
  await opened.close()
})
