// Signing in a device in a real browser: the page on which a person approves or denies it, the lists of devices, and the
// editor of managed settings. The device is the protocol's client over the wire.

import { afterAll, beforeAll, describe, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { systemClock } from '../../src/kernel/clock.ts'
import { modelPath } from '../../src/web/catalog/entry.ts'
import { consoleSections, isVisible, placeOf, sectionPath, type Viewer } from '../../src/web/page-data.ts'
import { viewAsCookie } from '../../src/web/session.ts'
import { seriousFaultsInBoth } from '../parts/axe.ts'
import { browserTest, openBrowser, openContext, sidewaysPixels, type WatchedPage, watchPage } from '../parts/browser.ts'
import { pollDevice, postForm } from '../parts/device-sign-in.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { type IdentityProvider, startIdentityProvider } from '../parts/identity-provider.ts'
import { callManagement, type Reply } from '../parts/manage.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { until } from '../tenancy/tenancy.ts'
import { button, type ConsoleHarness, field, type Made, startConsole } from './console-harness.ts'

const password = 'correct horse battery'

/** As a device that uses the address under which people open the console. */
async function start(url: string, device = 'laptop') {
  const form = { surface: 'claude_code', device_name: device }
  const { body } = await postForm(url, '/oauth/device_authorization', form, { host: new URL(url).host })
  return body as { device_code: string; user_code: string; verification_uri: string; verification_uri_complete: string }
}

const errorOf = ({ status, body }: Reply) => `${status} ${body.error}`

const modelsStatus = async (url: string, token: string) =>
  (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status

/** Enters or confirms the code, and waits for what the page says about it. */
async function openCode(page: Page, code?: string): Promise<void> {
  if (code !== undefined) await field(page, 'Code').fill(code)
  await button(page, 'Continue').click()
  await page.waitForSelector('h1:text-is("Sign in this device?"), .field-error, .warning[role=alert]')
}

async function signIn(page: Page, email: string): Promise<void> {
  await field(page, 'E-mail address').fill(email)
  await field(page, 'Password').fill(password)
  await button(page, 'Sign in').click()
}

let harness: ConsoleHarness
let provider: IdentityProvider
let aheadMs = 0
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }

describe('on the embedded database', () => {
  let workspace: Made
  let people = 0

  beforeAll(async () => {
    provider = await startIdentityProvider()
    const config = 'sign_in: { provider_name: Example ID }\n'
    harness = await startConsole({ clock, env: provider.env, config })
    await provider.serve(harness.gateway.url)
    workspace = await harness.manage('POST /api/workspaces', { name: 'acme' })
    for (const name of ['web', 'batch']) await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, { name })
  })
  afterAll(() => stopAll(harness, provider))

  const url = () => harness.gateway.url
  /** Someone who is signed in to the console. */
  const person = async (role = 'member') => {
    const email = `person${++people}@example.com`
    const invitation = { email, role, workspace_id: workspace.id }
    const { url: link } = (await harness.manage('POST /api/invitations', invitation)) as Made & { readonly url: string }
    return { email, ...(await harness.accept(link, 'Ada', password)) }
  }
  /** A device that someone has approved in the browser. */
  const approved = async ({ page, go }: WatchedPage, device: string) => {
    const started = await start(url(), device)
    await go(started.verification_uri_complete)
    await openCode(page)
    await button(page, 'Approve').click()
    await page.waitForSelector('h1:text-is("Device approved")')
    return (await pollDevice(url(), started.device_code)).body as { access_token: string; refresh_token: string }
  }

  browserTest(
    'a person signs in with a password, confirms the code, and chooses where the device is charged',
    async () => {
      const { email, page, go, reports } = await person()
      await page.context().clearCookies()
      await page.setViewportSize({ width: 320, height: 640 })
      const { device_code: deviceCode, user_code: code, ...shown } = await start(url())
      expect(shown.verification_uri).toBe(`${url()}/device`)
      const sent: string[] = []
      page.on('request', (request) => void sent.push(`${request.method()} ${new URL(request.url()).pathname}`))
      await go(shown.verification_uri_complete)
      await page.waitForSelector('text=Then you see which device asks')
      await signIn(page, email)
      await page.waitForSelector('h1:text-is("Sign in a device")')
      expect(new URL(page.url())).toMatchObject({ pathname: '/console/device', search: `?code=${code}` })
      expect(await field(page, 'Code').inputValue()).toBe(code)
      // Nothing is opened, let alone approved, by itself.
      expect(sent.filter((line) => line.includes('device-grants'))).toEqual([])
      expect(await sidewaysPixels(page)).toBe(0)
      expect(await seriousFaultsInBoth(page)).toEqual([])
      await page.emulateMedia({ colorScheme: 'light' })

      await openCode(page)
      const facts = await page.locator('.facts-grid').innerText()
      for (const fact of ['Claude Code', 'laptop', '127.0.0.1', code]) expect(facts).toContain(fact)
      // On a busy machine axe takes longer than the first minute, which is `just now`.
      expect(facts).toMatch(/just now|\b\d+ min ago/)
      expect(errorOf(await pollDevice(url(), deviceCode))).toBe('400 authorization_pending')
      const workspaces = field(page, 'Workspace').locator('option')
      await workspaces.first().waitFor({ state: 'attached' })
      expect(await workspaces.allInnerTexts()).toEqual(['acme'])
      await field(page, 'Project').selectOption({ label: 'batch' })
      expect(await sidewaysPixels(page)).toBe(0)
      expect(await seriousFaultsInBoth(page)).toEqual([])
      await button(page, 'Approve').click()
      await page.waitForSelector('h1:text-is("Device approved")')
      const { body: tokens } = await pollDevice(url(), deviceCode)
      expect(tokens).toMatchObject({ email, workspace: 'acme', project: 'batch' })
      expect(await modelsStatus(url(), tokens.access_token)).toBe(200)
      expect(reports).toEqual([])

      // No code and no token is in a log, or on a page that lists the device.
      await page.click('text=Your devices')
      const row = page.locator('.data-table tr', { hasText: 'laptop' })
      await row.waitFor()
      const seen = (await page.content()) + JSON.stringify(harness.gateway.logged())
      for (const secret of [deviceCode, code, tokens.access_token, tokens.refresh_token]) {
        expect(seen.includes(secret)).toBe(false)
      }
      expect(await row.innerText()).toMatch(/Claude Code[\s\S]*batch[\s\S]*acme/)
      await button(page, 'Sign out laptop').click()
      await button(page, 'Sign out').click()
      await page.waitForSelector('text=No device is signed in.')
      await until(async () => (await modelsStatus(url(), tokens.access_token)) === 401)
      await page.context().close()
    },
  )

  browserTest(
    'someone who signs in with the identity provider returns to the code, and denies the device',
    async () => {
      const { email, page } = await person()
      provider.account = { sub: email, email, email_verified: true, name: 'Ada' }
      await page.context().clearCookies()
      const { device_code: deviceCode, verification_uri_complete: address, user_code: code } = await start(url())
      await page.goto(address)
      await page.click('text=Sign in with Example ID')
      await page.waitForSelector('h1:text-is("Sign in a device")')
      expect(new URL(page.url())).toMatchObject({ pathname: '/console/device', search: `?code=${code}` })
      await openCode(page)
      await button(page, 'Deny').click()
      await page.waitForSelector('h1:text-is("Device denied")')
      expect(errorOf(await pollDevice(url(), deviceCode))).toBe('400 access_denied')
      await page.context().close()
    },
  )

  browserTest('a wrong, decided or expired code, and one of another browser, say so and sign nobody in', async () => {
    const [ada, eve] = [await person(), await person()]
    const errorOn = async ({ page, go }: WatchedPage, code: string) => {
      await go(`${url()}/device`)
      expect(await field(page, 'Code').inputValue()).toBe('')
      await openCode(page, code)
      return await page.locator('.field-error, .warning[role=alert]').innerText()
    }
    expect(await errorOn(ada, 'BCDF-GHJK')).toContain('mistyped, or is older than ten minutes')
    expect(await errorOn(ada, '<script>')).toContain('mistyped')
    const taken = await start(url())
    await ada.go(taken.verification_uri)
    // As people type it.
    await openCode(ada.page, taken.user_code.toLowerCase().replace('-', ' '))
    expect(await ada.page.locator('.facts-grid').innerText()).toContain(taken.user_code)
    expect(await errorOn(eve, taken.user_code)).toContain('opened in another browser')
    await button(ada.page, 'Approve').click()
    await ada.page.waitForSelector('h1:text-is("Device approved")')
    expect(await errorOn(ada, taken.user_code)).toContain('already approved')
    expect((await pollDevice(url(), taken.device_code)).body.email).toBe(ada.email)

    // The code expires while the page is open.
    const late = await start(url())
    await ada.go(late.verification_uri_complete)
    await openCode(ada.page)
    aheadMs += 600_000
    await button(ada.page, 'Approve').click()
    await ada.page.waitForSelector('text=older than ten minutes')
    expect(errorOf(await pollDevice(url(), late.device_code))).toBe('400 expired_token')
    for (const { page } of [ada, eve]) await page.context().close()
  })

  browserTest('someone who is signed in follows a link on another site without signing in again', async () => {
    const { page, reports } = await person()
    const { verification_uri_complete: address, user_code: code } = await start(url())
    const html = `<a href="${address}">sign in</a>`
    // Another site for the browser: its name is not that of the gateway.
    const site = Bun.serve({ port: 0, fetch: () => new Response(html, { headers: { 'content-type': 'text/html' } }) })
    const follow = async () => {
      await page.goto(`http://localhost:${site.port}/`)
      await page.click('a')
    }
    await follow()
    await page.waitForSelector('h1:text-is("Sign in a device")')
    expect(await field(page, 'Code').inputValue()).toBe(code)
    // A stranger gets the sign-in page.
    await page.context().clearCookies()
    await follow()
    await page.waitForSelector('h1:text-is("Sign in")')
    expect(new URL(page.url())).toMatchObject({ pathname: '/console/device', search: `?code=${code}` })
    expect(reports).toEqual([])
    await site.stop(true)
    await page.context().close()
  })

  browserTest('the installation and viewers cannot approve a device, and read what to do', async () => {
    const { page, close } = await harness.signIn('/console')
    const { verification_uri_complete: address, device_code: deviceCode } = await start(url())
    await page.goto(address)
    await page.waitForSelector('h1:text-is("Sign in with your account")')
    expect(await page.getByRole('button', { name: 'Continue' }).count()).toBe(0)
    await close()
    const viewer = await person('viewer')
    await viewer.go(address)
    await openCode(viewer.page)
    await viewer.page.waitForSelector('text=Ask an admin of your workspace for the role member')
    expect(await button(viewer.page, 'Approve').isDisabled()).toBe(true)
    expect(errorOf(await pollDevice(url(), deviceCode))).toBe('400 authorization_pending')
    await viewer.page.context().close()
  })

  browserTest('links lead only to pages that the viewer may open', async () => {
    const started = await start(url())
    for (const role of ['member', 'viewer', 'admin'] as const) {
      const { page, go } = await person(role)
      const grants = [{ workspaceId: workspace.id, role }]
      const seen: Viewer = {
        actor: '',
        isOperator: false,
        isPerson: true,
        isViewingAs: false,
        grants,
        hasBatches: false,
      }
      const sections = consoleSections.filter(({ name }) => isVisible(name, seen)).map(({ name }) => name)
      const paths = sections.map((name) => sectionPath(name, workspace.id))
      for (const path of [...paths, '/console/device', modelPath('sandbox/echo')]) {
        await go(url() + path)
        await page.waitForLoadState('networkidle')
        if (path === '/console/device') await openCode(page, started.user_code)
        const links = await page
          .locator('a[href]')
          .evaluateAll((all) => all.map((each) => String(each.getAttribute('href'))))
        const closed = links.filter((link) => {
          const place = placeOf(new URL(link, url()).pathname)
          return place !== undefined && !isVisible(place.section, seen)
        })
        expect([role, path, ...closed]).toEqual([role, path])
      }
      await page.context().close()
    }
    // The installation that views the console as a viewer has no People.
    const { page, close } = await harness.signIn('/console')
    await page.context().addCookies([{ name: viewAsCookie, value: `${workspace.id}.viewer`, url: url() }])
    await page.goto(`${url()}/console/device`)
    await page.waitForSelector('h1:text-is("Sign in with your account")')
    expect(await page.locator('a[href="/console/people"]').count()).toBe(0)
    await close()
  })

  browserTest('an admin sees the devices of a workspace and ends them; members see their own', async () => {
    const [admin, member] = [await person('admin'), await person()]
    const [one, two] = [await approved(member, 'desk'), await approved(member, 'train')]
    const own = await approved(admin, 'office')
    await member.go(`${url()}/console/account`)
    await member.page.waitForSelector('.data-table tr:has-text("desk")')
    expect(await member.page.locator('.data-table tr', { hasText: 'office' }).count()).toBe(0)
    await admin.go(`${url()}/console/people`)
    await admin.page.waitForSelector('.data-table tr:has-text("office")')
    const desk = await admin.page.locator('.data-table tr', { hasText: 'desk' }).innerText()
    expect(desk).toContain(member.email)
    await button(admin.page, `Sign out desk of ${member.email}`).click()
    await button(admin.page, 'Sign out').click()
    await until(async () => (await modelsStatus(url(), one.access_token)) === 401)
    expect(await modelsStatus(url(), two.access_token)).toBe(200)
    await button(admin.page, 'Sign out all').click()
    await button(admin.page, 'Sign out all devices').click()
    await admin.page.waitForSelector('text=No device is signed in.')
    for (const { access_token: token } of [two, own]) {
      await until(async () => (await modelsStatus(url(), token)) === 401)
    }
    for (const { page } of [admin, member]) await page.context().close()
  })

  browserTest('an operator orders rules of managed settings and sees what roles and people get', async () => {
    const member = await person()
    const { access_token: token } = await approved(member, 'laptop')
    const settings = async () => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${url()}/managed/settings`, { headers })
      return response.status === 200 ? ((await response.json()) as { settings: object }).settings : response.status
    }
    expect(await settings()).toBe(404)
    const { page, go, close } = await harness.signIn('/console/all/settings')
    await page.click('text=Edit managed settings')
    await page.waitForSelector('text=Claude Code gets no managed settings')
    const rule = (number: number) => page.getByRole('region', { name: `Rule ${number}`, exact: true })
    await button(page, 'Add rule').click()
    await rule(1).getByLabel('Settings').fill('{"cleanupPeriodDays": 7')
    await page.waitForSelector('.field-error:has-text("Enter a JSON object")')
    expect(await button(page, 'Save rules').isDisabled()).toBe(true)
    await rule(1).getByLabel('Settings').fill('{"cleanupPeriodDays": 7, "model": "sandbox/echo"}')
    await button(page, 'Add rule').click()
    await rule(2).getByLabel('Role').selectOption('member')
    await rule(2).getByLabel('Settings').fill('{"cleanupPeriodDays": 30}')
    const preview = page.locator('pre[data-what=settings]')
    const previewIs = (value: object) => until(async () => Bun.deepEquals(JSON.parse(await preview.innerText()), value))
    await previewIs({ cleanupPeriodDays: 30, model: 'sandbox/echo' })
    await field(page, 'Preview for').selectOption('viewer')
    await previewIs({ cleanupPeriodDays: 7, model: 'sandbox/echo' })
    await field(page, 'Preview for').selectOption({ label: `${member.email}, member of acme` })
    await previewIs({ cleanupPeriodDays: 30, model: 'sandbox/echo' })
    // The preview had rules that were not saved.
    expect(await settings()).toBe(404)
    await button(page, 'Move rule 2 up').click()
    await previewIs({ cleanupPeriodDays: 7, model: 'sandbox/echo' })
    await button(page, 'Move rule 1 down').click()
    await rule(2).getByLabel('Group').fill('platform')
    await button(page, 'Save rules').click()
    await page.waitForSelector('text=of the saved rules')
    expect(await settings()).toEqual({ cleanupPeriodDays: 7, model: 'sandbox/echo' })
    await field(page, 'Preview for').selectOption('member')
    await field(page, 'In the groups').fill('dev, platform')
    await page.keyboard.press('Tab')
    await previewIs({ cleanupPeriodDays: 30, model: 'sandbox/echo' })
    expect(await sidewaysPixels(page)).toBe(0)
    expect(await seriousFaultsInBoth(page)).toEqual([])
    await button(page, 'Remove rule 2').click()
    await button(page, 'Save rules').click()
    await page.waitForSelector('text=of the saved rules')
    expect(await harness.manage('GET /api/managed-settings')).toMatchObject({
      rules: [{ role: null, group: null, settings: { cleanupPeriodDays: 7, model: 'sandbox/echo' } }],
    })
    const byFile = { 'x-tollgate-managed-by': 'file' }
    await harness.manage('PUT /api/managed-settings', { rules: [{ settings: { model: 'x' } }] }, byFile)
    await go(`${url()}/console/all/settings/managed-settings`)
    await page.waitForSelector('text=These rules are managed by a file')
    expect(await page.getByRole('button', { name: 'Save rules' }).count()).toBe(0)
    expect(await rule(1).getByLabel('Settings').isDisabled()).toBe(true)
    await close()
    await member.page.context().close()
  })
})

describe.skipIf(findPostgresPrograms() === undefined)('on two replicas', () => {
  browserTest('a device that starts and polls at one replica is approved in the console of the other', async () => {
    const env = {
      DATABASE_URL: await (await sharedPostgres()).createDatabase(),
      TOLLGATE_SECRET: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64'),
      TOLLGATE_ADMIN_TOKEN: 'token-of-the-operator-0123456789',
    }
    const [here, there] = [await startGateway({ env }), await startGateway({ env })]
    const headers = { authorization: `Bearer ${env.TOLLGATE_ADMIN_TOKEN}`, 'content-type': 'application/json' }
    const made = async (path: string, body: object) =>
      JSON.parse(await callManagement(here.url, headers, ['POST', path, body])) as Made & { readonly url: string }
    const workspace = await made('/api/workspaces', { name: 'acme' })
    await made(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const invitation = { email: 'ada@example.com', role: 'member', workspace_id: workspace.id }
    const { url: link } = await made('/api/invitations', invitation)
    const browser = await openBrowser()
    const { page, go, reports } = await watchPage(await openContext(browser, { reducedMotion: 'reduce' }))
    await go(link.replace(/^http:\/\/[^/]+/, here.url))
    await field(page, 'Your name').fill('Ada')
    await field(page, 'Choose a password').fill(password)
    await button(page, 'Accept and sign in').click()
    await page.waitForSelector('.console')

    const { device_code: deviceCode, user_code: code } = await start(there.url)
    await go(`${here.url}/device?code=${code}`)
    await openCode(page)
    await button(page, 'Approve').click()
    await page.waitForSelector('h1:text-is("Device approved")')
    const { body: tokens } = await pollDevice(there.url, deviceCode)
    for (const { url } of [here, there]) expect(await modelsStatus(url, tokens.access_token)).toBe(200)
    await go(`${here.url}/console/account`)
    await button(page, 'Sign out laptop').click()
    await button(page, 'Sign out').click()
    await page.waitForSelector('text=No device is signed in.')
    for (const { url } of [here, there]) await until(async () => (await modelsStatus(url, tokens.access_token)) === 401)
    expect(reports).toEqual([])
    await browser?.close()
    await stopAll(here, there)
  })
})
