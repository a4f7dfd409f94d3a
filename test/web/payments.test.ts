// Paying on the Billing page: the amount on the button, Stripe's page, the way back, automatic top-up and refunds; and the
// way of an admin from the warning to the next call.

import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserTest, openContext, watchPage } from '../parts/browser.ts'
import { stopAll } from '../parts/gateway.ts'
import { eventOf, type StripeObject, signedEvent, startStripe } from '../parts/stripe.ts'
import { until } from '../tenancy/tenancy.ts'
import { button, field, startConsole } from './console-harness.ts'

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

/** Invites an admin and signs in as them, in a separate browser context. */
async function signInAsAdmin(workspaceId: string) {
  const { url } = harness.gateway
  const email = 'ada@example.com'
  const body = { email, role: 'admin', workspace_id: workspaceId }
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
  const { page, go } = await signInAsAdmin(workspace.id)
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
