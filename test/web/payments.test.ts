// Paying on the Billing page: the amount on the button, Stripe's page, the way back, and automatic top-up.

import { afterAll, expect } from 'bun:test'

import { eventOf, signedEvent, startStripe } from '../parts/stripe.ts'
import { button, field, startConsole } from './console-harness.ts'

const secret = 'whsec_of_the_test_endpoint'
const stripe = startStripe()
const harness = await startConsole({
  env: { STRIPE_SECRET_KEY: 'sk_test_0123456789', STRIPE_WEBHOOK_SECRET: secret },
  stripeUrl: stripe.url,
})

afterAll(async () => {
  await harness.stop()
  await stripe[Symbol.asyncDispose]()
})

harness.test('wallet: pays by card, says when it has arrived, and turns automatic top-up on', async (opened) => {
  const { page, go, workspace } = opened
  await page.route('https://checkout.stripe.test/**', (route) => route.fulfill({ body: 'the payment page' }))
  await field(page, 'Amount to pay, in USD').fill('10.00')
  await page.getByLabel('Save the card for automatic top-up').check()
  await button(page, `Add $10.00 to ${workspace.name}`).click()
  await page.waitForSelector('text=the payment page')
  const [session] = [...stripe.sessions.values()]
  const payment = session?.metadata.tollgate_payment_id
  await go(`${harness.gateway.url}/console/${workspace.id}/wallet?payment=${payment}`)
  await page.waitForSelector('[role=status]:has-text("$10.00 has not arrived yet")')
  const url = `${harness.gateway.url}/api/payments/stripe/webhook`
  const event = eventOf('checkout.session.completed', session ?? {})
  expect((await fetch(signedEvent({ url, secret, nowMs: Date.now() }, event))).status).toBe(200)
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
