// Paying on the Billing page: the amount on the button, Stripe's page, the way back, automatic top-up and refunds; and the
// way of an admin from the warning to the next call.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserTest, openContext, watchPage } from '../parts/browser.ts'
import { stopAll } from '../parts/gateway.ts'
import { eventOf, type StripeObject, signedEvent, startStripe } from '../parts/stripe.ts'
import { until } from '../tenancy/tenancy.ts'
import { button, chooseWorkspace, field, startConsole } from './console-harness.ts'

const secret = 'whsec_of_the_test_endpoint'
const stripe = startStripe()
const harness = await startConsole({
  env: { STRIPE_SECRET_KEY: 'sk_test_0123456789', STRIPE_WEBHOOK_SECRET: secret },
  stripeUrl: stripe.url,
})

afterAll(() => stopAll(harness, stripe))

/** For looking at; kept only where PAYMENT_SHOTS names a folder. */
async function shot(page: Page, name: string): Promise<void> {
  const folder = Bun.env.PAYMENT_SHOTS
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true })
}

const sessionFor = (workspaceId: string) =>
  [...stripe.sessions.values()].find(({ metadata }) => metadata.tollgate_workspace_id === workspaceId) ?? {}

/** As Stripe reports that a session was paid. */
async function reportPaid(session: StripeObject): Promise<void> {
  const url = `${harness.gateway.url}/api/payments/stripe/webhook`
  const event = eventOf('checkout.session.completed', session)
  expect((await fetch(signedEvent({ url, secret, nowMs: Date.now() }, event))).status).toBe(200)
}

harness.test('wallet: pays by card, says when it has arrived, and turns automatic top-up on', async (opened) => {
  const { page, go, workspace } = opened
  await page.route('https://checkout.stripe.test/**', (route) => route.fulfill({ body: 'the payment page' }))
  await field(page, 'Amount to pay, in USD').fill('10.00')
  await page.getByLabel('Save the card for automatic top-up').check()
  await button(page, `Add $10.00 to ${workspace.name}`).click()
  await page.waitForSelector('text=the payment page')
  const session = sessionFor(workspace.id)
  const payment = session.metadata.tollgate_payment_id
  await go(`${harness.gateway.url}/console/${workspace.id}/wallet?payment=${payment}`)
  await page.waitForSelector('[role=status]:has-text("$10.00 has not arrived yet")')
  await reportPaid(session)
  // The page asks again by itself.
  await page.waitForSelector('[role=status]:has-text("$10.00 has arrived")')
  await page.waitForSelector('.tile:has-text("Balance") >> text=$15.00')
  await page.reload()
  await field(page, 'Add, in USD').fill('20')
  await button(page, 'Turn on').click()
  await page.waitForSelector('text=On: adds $20.00 with visa 4242 when the balance is below $5.00')
  await button(page, 'Turn off').click()
  await page.waitForSelector('text=Off.')
})

harness.test('wallet: refunds a part of a payment, and says why more is not possible', async (opened) => {
  const { page, allow, workspace } = opened
  await harness.manage(`POST /api/workspaces/${workspace.id}/checkouts`, { amount: '10.00' })
  await reportPaid(sessionFor(workspace.id))
  await page.reload()
  await page.getByText('Refund a payment').first().click()
  await field(page, 'Amount to refund, in USD').fill('4.00')
  await field(page, 'Reason for the refund').fill('ordered twice')
  await shot(page, 'refund')
  await button(page, 'Refund').click()
  await page.waitForSelector('[role=status]:has-text("$4.00 refunded.")')
  // 5 + 10 − 4
  await page.waitForSelector('.tile:has-text("Balance") >> text=$11.00')
  expect([...stripe.refunds.values()]).toMatchObject([{ amount: 400, status: 'succeeded' }])
  allow(400)
  await field(page, 'Amount to refund, in USD').fill('6.01')
  await field(page, 'Reason for the refund').fill('too much')
  await button(page, 'Refund').click()
  await page.waitForSelector('text=at most 6.00')
})

/** At both widths and in both themes. */
async function shots(page: Page, name: string): Promise<void> {
  if (Bun.env.PAYMENT_SHOTS === undefined) return
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 900 })
      await shot(page, `${name}-${width}-${colorScheme}`)
    }
  }
}

const billSubscription = async (id: string) => {
  const url = `${harness.gateway.url}/api/payments/stripe/webhook`
  const invoice = stripe.bill(id, { at: Date.now() })
  const event = eventOf('invoice.paid', { id: invoice.id })
  const response = await fetch(signedEvent({ url, secret, nowMs: Date.now() }, event))
  expect([response.status, await response.json()]).toMatchObject([200, { outcome: 'credited' }])
}

harness.test('wallet: plans are made, subscribed to, changed, cancelled and read', async (opened) => {
  const { page, go, workspace } = opened
  const { url } = harness.gateway
  const put = (plan: string, body: object) => harness.manage(`PUT /api/plans/${plan}`, body)
  await put('max', { name: 'Max', credit: '50', period: 'month', price: '40' })
  await put('daily', { name: 'Daily', credit: '1', period: 'day', expires_days: 7 })
  await chooseWorkspace(page, 'All workspaces')
  await button(page, 'New plan').click()
  await field(page, 'Id').fill('pro')
  await field(page, 'Credit for each period, in USD').fill('20')
  await field(page, 'Price of a period, in USD').fill('15')
  await button(page, 'Create plan').click()
  await button(page, 'Change pro').waitFor()

  const admin = await signInAs('admin', workspace.id)
  await admin.page.route('https://checkout.stripe.test/**', (route) => route.fulfill({ body: 'the payment page' }))
  const wallet = `${url}/console/${workspace.id}/wallet`
  await admin.go(wallet)
  await field(admin.page, 'Subscribe to').selectOption('pro')
  expect(await admin.page.getByText('Give this workspace').count()).toBe(0)
  await shots(admin.page, 'plan-offered')
  await button(admin.page, 'Subscribe').click()
  await admin.page.waitForSelector('text=the payment page')
  await admin.go(`${wallet}?subscribed=pro`)
  await admin.page.waitForSelector('[role=status]:has-text("Your payment has not arrived yet")')
  const [subscription = ''] = [...stripe.subscriptions.keys()].slice(-1)
  await billSubscription(subscription)
  await admin.page.waitForSelector('text=$15.00 is paid by subscription.')
  // 5 of the test's, and the 20 of the plan.
  await admin.page.waitForSelector('.tile:has-text("Balance") >> text=$25.00')
  // A request says that it was paid from there.
  const request = await harness.ask('sandbox/echo', {}, 'test-client/1.0', opened.key.secret)
  const explained: object = await harness.manage(`GET /api/requests/${request}`)
  expect(explained).toMatchObject({ plan_credits: [{ plan: 'pro', amount: (explained as { cost: string }).cost }] })
  await admin.go(`${url}/console/${workspace.id}/requests/${request}`)
  await admin.page.waitForSelector('text=of it was paid from the credit of the plan pro')
  await admin.go(wallet)
  await field(admin.page, 'Subscribe to').selectOption('max')
  await button(admin.page, 'Change with the next payment').click()
  await admin.page.waitForSelector('text=Next: $50.00 of credit by max.')
  await shots(admin.page, 'plan-paid')
  await button(admin.page, 'Cancel the subscription').first().click()
  await admin.page.locator('dialog').getByRole('button', { name: 'Cancel the subscription', exact: true }).click()
  await admin.page.waitForSelector('text=Then it ends.')
  await admin.close()

  const viewer = await signInAs('viewer', workspace.id)
  await viewer.go(wallet)
  await viewer.page.waitForSelector('text=Then it ends.')
  for (const name of ['Subscribe', 'Change with the next payment', 'Cancel the subscription', 'Give the plan']) {
    expect([name, await button(viewer.page, name).count()]).toEqual([name, 0])
  }
  await shots(viewer.page, 'plan-viewer')
  await viewer.close()

  await page.reload()
  await page.locator('tr', { hasText: 'max' }).getByText(workspace.name).waitFor()
  await shots(page, 'plans')
  // The operator gives a plan to a workspace that pays for none.
  const other = await harness.manage('POST /api/workspaces', { name: 'initech' })
  await go(`${url}/console/${other.id}/wallet`)
  await field(page, 'Give this workspace').selectOption('daily')
  await button(page, 'Give the plan').click()
  await page.waitForSelector('text=initech has no funds available', { state: 'detached' })
  await button(page, 'End the plan with its period').click()
  await page.waitForSelector('text=Then it ends.')
  await shots(page, 'plan-given')
})

/** Invites somebody and signs in as them, in a separate browser context. */
async function signInAs(role: 'admin' | 'viewer', workspaceId: string) {
  const { url } = harness.gateway
  const email = `${role}-${workspaceId.slice(-6)}@example.com`.toLowerCase()
  const body = { email, role, workspace_id: workspaceId }
  const { url: link } = (await harness.manage('POST /api/invitations', body)) as unknown as { readonly url: string }
  const sent = { invitation: new URL(link).searchParams.get('i'), name: 'Ada', password: 'correct horse battery' }
  const headers = { origin: url, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
  const response = await fetch(`${url}/console/session`, { method: 'POST', headers, body: JSON.stringify(sent) })
  const [name = '', value = ''] = response.headers.get('set-cookie')?.split(';')[0]?.split('=') ?? []
  const context = await openContext(harness.browser, { reducedMotion: 'reduce' })
  await context.addCookies([{ name, value, url }])
  return await watchPage(context)
}

browserTest('an admin sees the warning, pays, and the next call works', async () => {
  const workspace = await harness.manage('POST /api/workspaces', { name: 'globex' })
  const project = await harness.manage(`POST /api/workspaces/${workspace.id}/projects`, { name: 'web' })
  const key = await harness.manage(`POST /api/projects/${project.id}/keys`, { name: 'ci' })
  await harness.manage(`POST /api/workspaces/${workspace.id}/topups`, { amount: '0.000000001' })
  expect(await harness.call(key.secret)).toBe(402)
  const { page, go } = await signInAs('admin', workspace.id)
  await page.route('https://checkout.stripe.test/**', (route) => route.fulfill({ body: 'the payment page' }))
  // Balances are looked at every ten seconds.
  const listed = async () => (await harness.manage(`GET /api/alerts?workspace_id=${workspace.id}`)) as object
  await until(async () => JSON.stringify(await listed()).includes('balance.low'))
  await go(`${harness.gateway.url}/console`)
  await page.waitForSelector('.alert-bell[aria-label="Alerts, 1 unread"]')
  await shot(page, 'warning-bell')
  await page.locator('.alert-bell').click()
  await page.waitForSelector('text=below $1.00. Calls are refused with 402 once it is used up.')
  await shot(page, 'warning-alerts')
  await page.locator('.console-menu a', { hasText: 'Billing' }).click()
  await field(page, 'Amount to pay, in USD').fill('25.00')
  await shot(page, 'warning-billing')
  await button(page, 'Add $25.00 to globex').click()
  await page.waitForSelector('text=the payment page')
  const session = sessionFor(workspace.id)
  await reportPaid(session)
  await go(`${harness.gateway.url}/console/${workspace.id}/wallet?payment=${session.metadata.tollgate_payment_id}`)
  await page.waitForSelector('[role=status]:has-text("$25.00 has arrived")')
  await shot(page, 'paid')
  expect(await harness.call(key.secret)).toBe(200)
  // An admin has no refunds, which are the operator's money.
  expect(await page.getByText('Refund a payment').count()).toBe(0)
})
