// Payments on a database, a ledger and a server in Stripe's place.

import { createStripePayments, webhookPath } from '../../src/http/payments/stripe.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import type { Failpoint } from '../../src/kernel/failpoint.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import type { Database } from '../../src/store/database.ts'
import { received, responseOf } from './http.ts'
import { signedEvent } from './stripe.ts'

const secret = 'whsec_of_the_test_endpoint'

export interface PaymentParts {
  readonly database: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly stripeUrl: string
  readonly reach?: Failpoint
}

export function openPayments({ database, ledger, clock, stripeUrl, reach }: PaymentParts) {
  const logged: string[] = []
  const say = (message: string) => void logged.push(message)
  const payments = createStripePayments({
    ...{ database, ledger, clock, reach, baseUrl: stripeUrl },
    raising: () => ({ now: clock.now(), mail: undefined }),
    log: { info: say, warn: say, error: say, line() {}, flush() {} },
    renderFailure: (failure) => JSON.stringify({ error: failure.message }),
    onDefect: (error) => new Failure('INTERNAL', String(error)),
    secretKey: new Secret('sk_test_0123456789'),
    webhookSecret: new Secret(secret),
    publicUrl: () => 'https://gate.example',
  })
  if (!payments) throw new Error('payments are configured')
  return {
    payments,
    logged,
    /** The status and outcome of an event. */
    async deliver(event: object): Promise<string> {
      const request = signedEvent({ url: `http://gate${webhookPath}`, secret, nowMs: clock.now() }, event)
      const response = responseOf(await payments.webhook(received(request)))
      const body = (await response.json()) as { readonly outcome?: string }
      return `${response.status} ${body.outcome ?? ''}`.trim()
    },
  }
}
