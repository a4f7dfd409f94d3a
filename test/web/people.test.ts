// People in the console, in a real browser over the real gateway: the operator invites an admin, who signs in with a password
// and with the identity provider, creates a project and a key and makes a first call; a member sees what is their own; a
// viewer can change nothing.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { Webhook } from 'standardwebhooks'
import { isoTime, systemClock } from '../../src/kernel/clock.ts'
import { browserTest, openContext, watchPage } from '../parts/browser.ts'
import { stopAll } from '../parts/gateway.ts'
import { followToCallback, type IdentityProvider, startIdentityProvider } from '../parts/identity-provider.ts'
import { until } from '../tenancy/tenancy.ts'
import { button, type ConsoleHarness, chooseWorkspace, field, startConsole } from './console-harness.ts'

let harness: ConsoleHarness
let provider: IdentityProvider
const password = 'correct horse battery'
let aheadMs = 0
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
const config = `
sign_in: { provider_name: Example ID }
webhooks: { allow_hosts: ["127.0.0.1"] }
`

beforeAll(async () => {
  provider = await startIdentityProvider()
  harness = await startConsole({ clock, env: provider.env, config })
  await provider.serve(harness.gateway.url)
})

afterAll(() => stopAll(harness, provider))

/** Opens an invitation in a separate browser, and accepts it. */
const accept = async (link: string, name: string) => (await harness.accept(link, name, password)).page

const menuOf = (page: Page) => page.locator('.console-menu a').allInnerTexts()

async function invite(page: Page, email: string, role: string): Promise<string> {
  await button(page, 'Invite someone').click()
  await field(page, 'E-mail address').fill(email)
  await field(page, 'Role').selectOption(role)
  await button(page, 'Create invitation').click()
  const link = await page.locator('dialog pre code, dialog pre').first().innerText()
  await button(page, 'Done, I have copied it').click()
  return link.trim()
}

/** Opens the form for a correction, and sends it. */
async function correct(page: Page): Promise<void> {
  await page.locator('summary', { hasText: 'Correct the balance' }).click()
  const form = page.getByRole('form', { name: 'Correct the balance' })
  await form.getByLabel('Amount').fill('1.00')
  await form.getByLabel('Reason').fill('counted twice')
  await form.getByRole('button', { name: 'Correct', exact: true }).click()
}

browserTest(
  'an invited admin sets up a project and makes a first call; a member and a viewer see what is theirs',
  async () => {
    const workspace = await harness.manage('POST /api/workspaces', { name: 'acme' })
    await harness.manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '5.00' })
    const { page: operator, go } = await watchPage(await openContext(harness.browser, { reducedMotion: 'reduce' }))
    await go(`${harness.gateway.url}/console/people`)
    await operator.locator('summary').click()
    await field(operator, 'Management token').fill(harness.token)
    await button(operator, 'Sign in with the token').click()
    await operator.waitForSelector('.console')
    await chooseWorkspace(operator, 'acme')
    await operator.waitForSelector('text=Members of acme')

    const admin = await accept(await invite(operator, 'ada@example.com', 'admin'), 'Ada')
    expect(await menuOf(admin)).toEqual([
      ...[
        'Usage',
        'Requests',
        'Playground',
        'API keys',
        'Projects & limits',
        'Billing',
        'Alerts',
        'People',
        'Providers & routes',
      ],
      'Account',
    ])
    await admin.waitForSelector('text=Getting started')
    // The same person at the identity provider, which leads back to the page that asked for the sign-in.
    await admin.context().clearCookies()
    await admin.goto(`${harness.gateway.url}/console/projects?from=x`)
    provider.account = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada Lovelace' }
    await admin.click('text=Sign in with Example ID')
    await admin.waitForSelector('.console')
    expect(new URL(admin.url())).toMatchObject({ pathname: `/console/${workspace.id}/projects`, search: '?from=x' })
    await admin.waitForSelector('text=ada@example.com')
    await button(admin, 'New project').click()
    await field(admin, 'Name').fill('web')
    await button(admin, 'Create project').click()
    await admin.waitForSelector('.row-name:text-is("web")')
    await admin.goto(`${harness.gateway.url}/console/keys`)
    await button(admin, 'New key').click()
    await field(admin, 'Name').fill('first')
    await button(admin, 'Create key').click()
    await admin.waitForSelector('text=waiting for the first request')
    const secret = (await admin.locator('dialog pre').first().innerText()).trim()
    expect(await harness.call(secret)).toBe(200)
    await admin.waitForSelector('dialog .first-request:not(:has-text("waiting"))')
    await button(admin, 'Done, I have copied it').click()

    await admin.goto(`${harness.gateway.url}/console/people`)
    const member = await accept(await invite(admin, 'bob@example.com', 'member'), 'Bob')
    await button(admin, 'Invite someone').waitFor()
    const viewer = await accept(await invite(admin, 'eve@example.com', 'viewer'), 'Eve')
    await admin.reload()
    await admin.waitForSelector('text=eve@example.com')

    expect(await menuOf(member)).toEqual([
      'Usage',
      'Requests',
      'Playground',
      'API keys',
      'Projects & limits',
      'Account',
    ])
    await member.waitForSelector('text=No requests in this period')
    await member.goto(`${harness.gateway.url}/console/keys`)
    await member.waitForSelector('text=No keys yet')
    await button(member, 'New key').waitFor()
    // The project has the admin's key, which a member does not see.
    await member.goto(`${harness.gateway.url}/console/projects`)
    await member.locator('tr', { hasText: 'web' }).getByText('0 active keys of yours').waitFor()
    await member.goto(`${harness.gateway.url}/console/account`)
    await button(member, 'New token').click()
    await field(member, 'Name').fill('script')
    await button(member, 'Create token').click()
    await member.waitForSelector('text=This token is shown only once')
    await button(member, 'Done, I have copied it').click()
    await member.waitForSelector('.row-name:text-is("script")')
    // Signed in with another browser too, and signed out from here.
    const sent = { email: 'bob@example.com', password }
    const elsewhere = await fetch(`${harness.gateway.url}/console/session`, {
      method: 'POST',
      headers: {
        ...{ 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
        'user-agent': 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0',
      },
      body: JSON.stringify(sent),
    })
    expect(elsewhere.status).toBe(200)
    await member.reload()
    await member.waitForSelector('.row-name:text-is("Firefox on Windows")')
    await button(member, 'Sign out Firefox on Windows').click()
    await button(member, 'Sign out').click()
    await member.waitForSelector('.row-name:text-is("Firefox on Windows")', { state: 'detached' })
    const cookie = elsewhere.headers.get('set-cookie')?.split(';')[0] ?? ''
    expect((await fetch(`${harness.gateway.url}/api/me`, { headers: { cookie } })).status).toBe(401)

    expect(await menuOf(viewer)).toEqual([
      'Usage',
      'Requests',
      'API keys',
      'Projects & limits',
      'Billing',
      'Alerts',
      'Account',
    ])
    for (const path of ['keys', 'projects', 'wallet']) {
      await viewer.goto(`${harness.gateway.url}/console/${path}`)
      await viewer.waitForSelector(path === 'wallet' ? 'text=Available' : '.row-name')
      for (const name of ['New key', 'Rotate', 'Revoke', 'New project', 'Change', 'Top up', 'Correct']) {
        expect([path, name, await button(viewer, name).count()]).toEqual([path, name, 0])
      }
    }
    expect((await viewer.goto(`${harness.gateway.url}/console/people`))?.status()).toBe(403)
    expect(await viewer.locator('main h1').textContent()).toBe('No access to this page')

    // The operator sees what a viewer sees, and stops.
    await operator.reload()
    await button(operator, 'viewer').click()
    await operator.waitForSelector('text=You are viewing the console as viewer')
    expect(await menuOf(operator)).toEqual(['Usage', 'Requests', 'API keys', 'Projects & limits', 'Billing', 'Alerts'])
    await button(operator, 'Stop').click()
    await operator.waitForSelector('.console-menu a:has-text("Settings")')

    // What cannot be undone needs a recent sign-in, which leads back.
    const billing = `${harness.gateway.url}/console/${workspace.id}/wallet`
    await operator.goto(billing)
    aheadMs = 15 * 60_000
    await correct(operator)
    await operator.waitForSelector('[role=alert]:has-text("within the last 15 minutes")')
    await button(operator, 'Sign in again').click()
    await operator.waitForSelector('[role=status]:has-text("Sign in again.")')
    await operator.locator('summary').click()
    await field(operator, 'Management token').fill(harness.token)
    await button(operator, 'Sign in with the token').click()
    await operator.waitForSelector('.console')
    expect(operator.url()).toBe(billing)
    await correct(operator)
    await operator.waitForSelector('td:has-text("counted twice")')
    aheadMs = 0

    // Removed: the next click leads to the sign-in page, which knows accounts now.
    await admin
      .locator('tr', { hasText: 'bob@example.com' })
      .getByRole('button', { name: 'Remove bob@example.com' })
      .click()
    await button(admin, 'Remove').click()
    await admin.waitForSelector('text=bob@example.com', { state: 'detached' })
    await member.goto(`${harness.gateway.url}/console/keys`)
    await member.waitForSelector('#email')
    await field(member, 'E-mail address').fill('eve@example.com')
    await field(member, 'Password').fill('not the password')
    await button(member, 'Sign in').click()
    await member.waitForSelector('[role=alert]:has-text("is wrong")')
    await field(member, 'Password').fill(password)
    await button(member, 'Sign in').click()
    await member.waitForSelector('.console')
  },
)

test('wrong, replayed and forged sign-ins are refused and recorded in the audit log', async () => {
  const { url } = harness.gateway
  const refusals = async () => {
    const { data } = (await harness.manage('GET /api/audit?limit=200')) as unknown as {
      data: { action: string; details: { by: string } }[]
    }
    return data.flatMap(({ action, details }) => (action === 'session.refused' ? [details.by] : []))
  }
  const before = await refusals()
  const post = async (body: object) => {
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    const response = await fetch(`${url}/console/session`, { method: 'POST', headers, body: JSON.stringify(body) })
    return response.status
  }
  expect(await post({ email: 'nobody@example.com', password: 'a guess of mine' })).toBe(401)
  expect(await post({ invitation: 'no such link', name: 'x', password: 'a guess of mine' })).toBe(401)
  // An invitation that was used.
  const invited = { email: 'zoe@example.com', role: 'operator' }
  const { url: link } = (await harness.manage('POST /api/invitations', invited)) as unknown as { url: string }
  const accepted = { invitation: new URL(link).searchParams.get('i'), name: 'Zoe', password }
  expect([await post(accepted), await post(accepted)]).toEqual([200, 401])
  // Sign-up is off unless the operator turns it on.
  expect(await post({ email: 'new@example.com', name: 'New', password: 'a fine password' })).toBe(403)
  const forged = await fetch(`${url}/api/me`, { headers: { authorization: 'Bearer tg-mt-forged' } })
  expect(forged.status).toBe(401)
  // The identity provider's answer: one that was never asked for, and a real one twice.
  const callback = `${url}/console/oidc/callback`
  const come = async (address: string, cookie: string) =>
    (await fetch(address, { headers: { cookie }, redirect: 'manual' })).status
  expect(await come(`${callback}?code=forged&state=forged`, '')).toBe(401)
  provider.account = { sub: 'zoe', email: 'zoe@example.com', email_verified: true, name: 'Zoe' }
  const started = await fetch(`${url}/console/oidc`, { redirect: 'manual' })
  const cookie = started.headers.get('set-cookie')?.split(';')[0] ?? ''
  const answer = (await followToCallback(started.headers.get('location') ?? '', callback)).href
  expect([await come(answer, cookie), await come(answer, cookie)]).toEqual([200, 401])
  // Written in the background, in any order.
  const added = ['link', 'link', 'oidc', 'oidc', 'password', 'token']
  while ((await refusals()).length < before.length + added.length) await Bun.sleep(5)
  expect((await refusals()).toSorted()).toEqual([...before, ...added].toSorted())
})

browserTest('a statement, a receipt, and alerts with their bell', async () => {
  const workspace = await harness.manage('POST /api/workspaces', { name: 'globex' })
  const { page } = await harness.signIn('/console/wallet')
  await chooseWorkspace(page, 'globex')
  await page.waitForSelector('text=globex has no funds available')
  await harness.manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '5.00', reference: 'invoice 17' })
  const lowBalance = { kind: 'balance.low', below: '10.00', workspace_id: workspace.id }
  await harness.manage('POST /api/alert-rules', lowBalance)
  await page.reload()
  await page.locator('a', { hasText: 'Receipt' }).first().click()
  await page.waitForSelector('text=Receipt number')
  expect(await page.locator('.paper').innerText()).toContain('invoice 17')
  await page.locator('a', { hasText: 'Back to Billing' }).click()
  await page.waitForSelector('text=Available')
  const month = isoTime(systemClock.now()).slice(0, 7)
  // None of a month before the workspace was made.
  expect(await field(page, 'Monthly statements').locator('option').allTextContents()).toEqual(['Choose a month', month])
  await field(page, 'Monthly statements').selectOption(month)
  await page.waitForSelector('text=Opening balance')
  const text = await page.locator('.paper').innerText()
  expect(text).toContain('Top-up: invoice 17')
  await page.emulateMedia({ media: 'print' })
  await page.emulateMedia({ media: 'screen' })
  type Listed = { readonly data?: readonly unknown[] }
  await until(async () => ((await harness.manage('GET /api/alerts')) as Listed).data?.length !== 0)
  await page.goto(`${harness.gateway.url}/console/${workspace.id}/alerts`)
  await page.waitForSelector('.alert-count')
  await page.waitForSelector('text=below $10.00')
  await button(page, 'Mark all as read').click()
  await page.waitForSelector('text=Mark all as read', { state: 'detached' })
})

browserTest(
  'a webhook is created, tested and deleted, and its secret checks the signature of what it gets',
  async () => {
    const received: { readonly headers: Record<string, string>; readonly body: string }[] = []
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    using receiver = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        received.push({ headers: Object.fromEntries(request.headers), body: await request.text() })
        await released
        return new Response()
      },
    })
    const workspace = await harness.manage('POST /api/workspaces', { name: 'umbrella' })
    const { page } = await harness.signIn(`/console/${workspace.id}/alerts`)
    await page.waitForSelector('text=No webhooks yet')
    await button(page, 'New webhook').click()
    const url = `http://127.0.0.1:${receiver.port}/hook`
    await field(page, 'URL').fill(url)
    await page.getByLabel('Only these kinds').check()
    await page.getByLabel('Low balance').check()
    await page.getByLabel('Prices changed').check()
    await button(page, 'Create webhook').click()
    await page.waitForSelector('text=This secret is shown only once')
    const secret = await page.locator('dialog pre').innerText()
    await button(page, 'Done, I have copied it').click()
    const row = page.locator('[data-row^="whk_"]')
    expect(await row.innerText()).toContain('Low balance, Prices changed')

    await row.getByText('Send test').click()
    // The attempt has begun, and the page keeps asking how it ends.
    await page.waitForSelector('[data-row] >> text=waiting for the next attempt')
    release()
    await page.waitForSelector('[data-row] >> text=delivered')
    const [test] = received
    expect(new Webhook(secret).verify(test?.body ?? '', test?.headers ?? {})).toMatchObject({ type: 'test' })

    await row.getByText('Delete').click()
    await button(page, 'Delete webhook').click()
    await page.waitForSelector('text=No webhooks yet')
    await page.waitForSelector('text=Nothing was sent yet')
    expect(await harness.manage(`GET /api/webhooks?workspace_id=${workspace.id}`)).toMatchObject({ data: [] })
  },
)

browserTest('an operator sells at a price list, and sees charges, costs and margin to the nano-dollar', async () => {
  const workspace = await harness.manage('POST /api/workspaces', { name: 'initech' })
  await harness.manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '5.00' })
  const project = await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
  const key = await harness.manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
  const at = `${harness.gateway.url}/console/${workspace.id}`
  const { page } = await harness.signIn(`/console/${workspace.id}/margin`)
  await page.waitForSelector('text=No price lists')
  expect(await harness.call(key.secret)).toBe(200)

  await button(page, 'New price list').click()
  await field(page, 'Name').fill('retail')
  await field(page, 'Markup on the catalog prices, in percent').fill('-20')
  await button(page, 'Create price list').click()
  await page.waitForSelector('dialog [role=alert]:has-text("below")')
  await field(page, 'Markup on the catalog prices, in percent').fill('20')
  await button(page, 'Create price list').click()
  await page.waitForSelector('.row-name:text-is("retail")')
  await page.getByRole('region', { name: 'What initech pays' }).getByRole('button').click()
  await field(page, 'Prices').selectOption('retail')
  await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click()
  await page.waitForSelector('text=The prices of the list retail.')
  expect(await harness.call(key.secret)).toBe(200)

  // 9 tokens in and 5 out of sandbox/echo, at $1.00 and $2.00 per million, then with 20 % more. The sandbox costs nothing.
  const tile = (name: string) => page.locator('.tile', { hasText: name }).locator('[data-usd]').getAttribute('data-usd')
  const figures = [
    ['Charged', '0.0000418'],
    ['Provider cost', '0.00'],
    ['Margin', '0.0000418'],
  ] as const
  await until(async () => {
    await page.goto(`${at}/margin`)
    await page.waitForSelector('.row-name:text-is("retail")')
    return (await tile('Charged')) === '0.0000418'
  })
  for (const [name, amount] of figures) expect([name, await tile(name)]).toEqual([name, amount])
  await field(page, 'Group by').selectOption('route')
  await page.waitForSelector('tr:has-text("sandbox echo") td[data-label="Charged"] [data-usd="0.0000418"]')
  await page.goto(`${at}/wallet/${isoTime(clock.now()).slice(0, 7)}`)
  await page.waitForSelector('tr:has-text("sandbox/echo, 2 requests"):has-text("−$0.0000418")')
  await page.waitForSelector('tr:has-text("Balance"):has-text("$4.9999582")')
})

browserTest('the limits of a group are on one page, with how much of each is used', async () => {
  const { manage } = harness
  const workspace = await manage('POST /api/workspaces', { name: 'studio' })
  const project = await manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
  const key = await manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
  await manage(`POST /api/workspaces/${workspace.id}/groups`, { name: 'design', members: [key.id] })
  await manage(`POST /api/workspaces/${workspace.id}/groups`, { name: 'board', members: [] })
  const limit = (subject: string, window: string, amount: string) => ({ subject, window, limit: amount })
  const ofWorkspace = [limit('group:design', 'month', '8.00'), limit('group:board', 'month', '7.00')]
  await manage(`PUT /api/workspaces/${workspace.id}/limits`, { spend_limits: ofWorkspace })
  await manage(`PUT /api/projects/${project.id}/limits`, { spend_limits: [limit('group:design', '5h', '2.00')] })
  const { page, go } = await harness.signIn()
  await go(`${harness.gateway.url}/console/${workspace.id}/people`)
  await page.getByRole('link', { name: 'design' }).click()
  await page.waitForSelector('h1:has-text("design")')
  const limits = page.locator('.limits li')
  expect(await limits.locator('.spend-bar').count()).toBe(2)
  const [monthly, rolling] = await limits.allInnerTexts()
  expect(monthly).toContain('group:design $8.00/month by workspace studio')
  expect(rolling).toContain('group:design $2.00/5h by project web')
})
