// Usage, requests and the playground in the console, in a real browser over the real gateway: charges to the last digit, live
// requests, and filters in the address.

import { afterAll, describe, expect, test } from 'bun:test'
import { browserTest, openPage } from '../parts/browser.ts'
import { startGateway } from '../parts/gateway.ts'
import { hostileTexts, startConsole } from './console-harness.ts'

const harness = await startConsole()
afterAll(() => harness.stop())
const { gateway, ask, signIn } = harness

browserTest('a new user sees an example request, and then the request and its exact charge', async () => {
  const fresh = await startGateway()
  const { page, go, reports, close } = await openPage(harness.browser, fresh.url + (await fresh.app.createSignInPath()))
  await page.waitForSelector('text=No requests in this period')
  await page.waitForSelector(`text=curl -N ${fresh.url}/v1/chat/completions`)
  await go(`${fresh.url}/console/requests`)
  await page.waitForSelector('text=No requests in the last 24 hours')
  // Runs the code on the page.
  const code = await page.locator('pre code').textContent()
  const run = Bun.spawn(['sh', '-c', code ?? ''], {
    env: { ...process.env, TOLLGATE_KEY: fresh.key },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  expect(await new Response(run.stdout).text()).toContain('[DONE]')
  await page.waitForSelector('[data-row]')
  await page.click('.row-link')
  await page.waitForSelector('[data-charge]')
  // The sandbox counts the tokens; they cost $1.00 and $2.00 per million.
  const lines = await page.locator('.charge-table').first().locator('tbody tr').allTextContents()
  const counted = lines.map((line) => Number(/(\d+) × /.exec(line)?.[1]))
  const [input = 0, output = 0] = counted
  expect(input * output).toBeGreaterThan(0)
  const micros = input * 1 + output * 2
  const charge = `$0.${String(micros).padStart(6, '0').replace(/0+$/, '')}`
  expect(await page.locator('[data-charge]').textContent()).toBe(charge)
  await page.waitForSelector(`text=moved ${charge} out of the wallet`)
  // The key is shown by name and links to its requests.
  await page.click('.facts-grid a:has-text("first-key")')
  await page.waitForSelector('[data-row]')
  await page.waitForSelector('option:checked:has-text("first-key")', { state: 'attached' })
  expect(reports).toEqual([])
  await close()
  await fresh.stop()
})

browserTest('new requests appear on an open page, and the filter is in the address', async () => {
  const { page, go, close } = await signIn('/console/requests')
  await page.waitForSelector('.live .status-ok')
  const [ok, failed] = [await ask('sandbox/echo'), await ask('sandbox/throttled')]
  await page.waitForSelector(`[data-row="${ok}"]`)
  await page.waitForSelector(`[data-row="${failed}"] .status-error >> text=429`)
  await page.waitForSelector(`[data-row="${failed}"] >> text=provider rate limit`)
  await page.getByLabel('Status').selectOption('failed')
  await page.waitForSelector(`[data-row="${ok}"]`, { state: 'detached' })
  expect(new URL(page.url()).search).toBe('?outcome=failed')
  await go(`${gateway.url}/console/requests?model=sandbox/echo`)
  await page.waitForSelector(`[data-row="${ok}"]`)
  expect(await page.locator(`[data-row="${failed}"]`).count()).toBe(0)
  // Live, and still filtered.
  const [another, other] = [await ask('sandbox/echo'), await ask('sandbox/cache')]
  await page.waitForSelector(`[data-row="${another}"]`)
  expect(await page.locator(`[data-row="${other}"]`).count()).toBe(0)
  await close()
})

browserTest('a failover shows every attempt and every route considered', async () => {
  const id = await ask('sandbox/flaky')
  const { page, go, reports, close } = await signIn(`/console/requests/${id}`)
  await page.waitForSelector('.waterfall')
  const outcomes = await page.locator('.waterfall tbody td:nth-child(2)').allTextContents()
  expect(outcomes).toEqual(['503', 'ok', 'first token to end'])
  expect(await page.locator('[aria-label="Routes considered"] li').count()).toBe(2)
  await go(`${gateway.url}/console/requests/req_00000000000000000000000000`)
  await page.waitForSelector('[role=alert]:has-text("There is no request")')
  expect(reports.filter((report) => !report.includes('404'))).toEqual([])
  await close()
})

for (const surface of ['chat', 'responses', 'messages'] as const) {
  browserTest(`the playground streams an answer through ${surface} and shows what it cost`, async () => {
    const { page, reports, close } = await signIn(`/console/playground?model=sandbox/echo&surface=${surface}`)
    await page.fill('input[type=password]', gateway.key)
    await page.fill('textarea', 'say it again')
    await page.click('text=Send')
    await page.waitForSelector('.answer-text:has-text("say it again")')
    await page.waitForSelector('[data-cost]')
    const shown = await page.locator('[data-cost] [data-usd]').getAttribute('data-usd')
    await page.click('text=View request')
    await page.waitForSelector('[data-charge]')
    expect(await page.locator('[data-charge]').textContent()).toBe(`$${shown}`)
    expect(shown).toMatch(/^0\.0000\d+$/)
    expect(reports).toEqual([])
    await close()
  })
}

browserTest('a wrong key is refused with the gateway’s message', async () => {
  const { page, close } = await signIn('/console/playground')
  await page.fill('input[type=password]', 'sk-tg-made-up')
  await page.click('text=Send')
  await page.waitForSelector('[role=alert]:has-text("does not accept this key")')
  await close()
})

browserTest('usage equals what the wallet paid, and its figures link to the requests', async () => {
  await ask('sandbox/think')
  const { page, reports, close } = await signIn('/console?group=key')
  await page.waitForSelector('.tile')
  const spent = await page.locator('.tile', { hasText: 'Spend' }).locator('[data-usd]').getAttribute('data-usd')
  await page.waitForSelector('.tile:has-text("Available") strong .amount')
  const left = await page.locator('.tile', { hasText: 'Available' }).locator('[data-usd]').getAttribute('data-usd')
  const nanos = (text: string | null) => Math.round(Number((text ?? '').replace('$', '')) * 1e9)
  expect(nanos(spent) + nanos(left)).toBe(5_000_000_000)
  await page.waitForSelector('.data-table >> text=first')
  await page.click('.tile >> text=Error rate')
  await page.waitForSelector('h1:has-text("Requests")')
  expect(new URL(page.url()).searchParams.get('outcome')).toBe('failed')
  expect(reports).toEqual([])
  await close()
})

browserTest('shortcuts move between pages and rows', async () => {
  await ask('sandbox/echo')
  const { page, close } = await signIn()
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await page.waitForSelector('h1:has-text("Requests")')
  await page.waitForSelector('[data-row]')
  await page.keyboard.press('?')
  expect(await page.locator('dialog[open]').count()).toBe(1)
  await page.keyboard.press('Escape')
  await page.keyboard.press('j')
  expect(await page.evaluate('document.activeElement.className')).toBe('row-link')
  await page.keyboard.press('/')
  expect(await page.evaluate('document.activeElement.hasAttribute("data-search")')).toBe(true)
  await close()
})

browserTest('text from requests never runs', async () => {
  const ids: string[] = []
  for (const text of hostileTexts) ids.push(await ask(text, { messages: [{ role: 'user', content: text }] }, text))
  const { page, go, reports, close } = await signIn('/console/requests?outcome=failed')
  await page.waitForSelector(`[data-row="${ids.at(-1)}"]`)
  expect(await page.locator(`[data-row="${ids[0]}"]`).textContent()).toContain('unknown model')
  for (const [at, id] of ids.entries()) {
    await go(`${gateway.url}/console/requests/${id}`)
    await page.waitForSelector('.facts-grid')
    expect(await page.locator('.facts-grid').textContent()).toContain(hostileTexts[at] ?? '')
    expect({ id, ran: await page.evaluate('window.ran') }).toEqual({ id, ran: undefined })
  }
  await go(`${gateway.url}/console?group=model`)
  await page.waitForSelector('.data-table')
  expect(await page.evaluate('window.ran')).toBeUndefined()
  expect(reports).toEqual([])
  await close()
})

describe('without a browser', () => {
  test('without a session every console address shows the sign-in page', async () => {
    for (const path of ['/console/requests', '/console/requests/req_1', '/console/nothing']) {
      const html = await (await fetch(gateway.url + path)).text()
      expect([path, html.includes('id="token"')]).toEqual([path, true])
    }
  })

  test('the console’s script has at most 120 KB', async () => {
    const html = await (await fetch(`${gateway.url}/console`)).text()
    const script = /\/assets\/console-[^"]+\.js/.exec(html)?.[0] ?? ''
    const headers = { 'accept-encoding': 'gzip' }
    const { byteLength } = await (await fetch(gateway.url + script, { headers, decompress: false })).arrayBuffer()
    expect(byteLength).toBeGreaterThan(10_000)
    expect(byteLength).toBeLessThanOrEqual(120 * 1024)
  })
})
