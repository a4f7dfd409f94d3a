// Signing in to the console by one-time link or management token, and signing out, in a real browser.

import { afterAll, expect, test } from 'bun:test'
import { browserTest, openBrowser, openPage } from '../parts/browser.ts'
import { startWeb } from '../parts/web.ts'

const browser = await openBrowser()
const web = await startWeb()
afterAll(async () => {
  await browser?.close()
  await web.stop()
})

browserTest('a link signs in and is removed from the address', async () => {
  const { page, reports, close } = await openPage(browser, `${web.url}/console?t=${await web.sessions.createLink()}`)
  await page.waitForSelector('.user-button')
  expect(page.url()).toBe(`${web.url}/console/all/usage`)
  const [cookie, ...others] = (await page.context().cookies()).sort((a, b) => Number(b.httpOnly) - Number(a.httpOnly))
  // The last workspace, for addresses without one.
  expect(others).toMatchObject([{ name: 'tollgate-workspace', value: 'all', path: '/console' }])
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', secure: false, path: '/' })
  // The browser reports 404, because there is no management API behind these pages.
  expect(reports.filter((report) => !report.includes('404'))).toEqual([])
  await close()
})

browserTest('a used link is refused with a message', async () => {
  const link = `${web.url}/console?t=${await web.sessions.createLink()}`
  const first = await openPage(browser, link)
  await first.page.waitForSelector('.user-button')
  const second = await openPage(browser, link)
  await second.page.waitForSelector('[role=alert]:has-text("was already used")')
  expect(await second.page.locator('#token').isVisible()).toBe(true)
  await first.close()
  await second.close()
})

browserTest('a link that was only previewed still works', async () => {
  const link = `${web.url}/console?t=${await web.sessions.createLink()}`
  await (await fetch(link)).text()
  await fetch(link, { method: 'HEAD' })
  const { page, close } = await openPage(browser, link)
  await page.waitForSelector('.user-button')
  await close()
})

browserTest('the management token signs in, a wrong one does not, and signing out ends the session', async () => {
  const { page, close } = await openPage(browser, `${web.url}/console`)
  await page.fill('#token', 'a guess')
  await page.click('button:text-is("Sign in")')
  await page.waitForSelector('[role=alert]:has-text("not the management token")')
  await page.fill('#token', web.token)
  await page.click('button:text-is("Sign in")')
  await page.waitForSelector('.user-button')
  const cookies = await page.context().cookies()
  await page.click('.user-button')
  await page.click('text=Sign out')
  await page.waitForSelector('#token')
  expect((await page.context().cookies()).filter(({ httpOnly }) => httpOnly)).toEqual([])
  // A copy of the cookie does not work either.
  await page.context().addCookies(cookies)
  await page.goto(`${web.url}/console`)
  expect(await page.locator('#token').isVisible()).toBe(true)
  await close()
})

browserTest('signing in by token or link leads to the requested page', async () => {
  const { page, go, close } = await openPage(browser, `${web.url}/console/wallet?from=x`)
  await page.fill('#token', web.token)
  await page.click('button:text-is("Sign in")')
  await page.waitForSelector('.user-button')
  expect(page.url()).toBe(`${web.url}/console/all/wallet?from=x`)
  await page.context().clearCookies()
  await go(`${web.url}/console/keys?t=${await web.sessions.createLink()}`)
  await page.waitForSelector('.user-button')
  expect(page.url()).toBe(`${web.url}/console/all/keys`)
  await close()
})

test('another site cannot sign a user in or out', async () => {
  const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'cross-site' }
  const body = JSON.stringify({ token: web.token })
  for (const init of [
    { method: 'POST', headers, body },
    { method: 'DELETE', headers },
  ]) {
    const response = await fetch(`${web.url}/console/session`, init)
    expect({ status: response.status, cookie: response.headers.get('set-cookie') }).toEqual({
      status: 403,
      cookie: null,
    })
  }
})
