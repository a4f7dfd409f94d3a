import { expect, test } from 'bun:test'
import { systemClock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/failure.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Database } from '../../store/database.ts'
import { createStripePayments, type StripePaymentsOptions } from './stripe-payments.ts'

const unused = () => {
  throw new Error('nothing is asked of it at the start')
}

function create(settings: Partial<StripePaymentsOptions>) {
  const logged: string[] = []
  const say = (message: string) => void logged.push(message)
  const payments = createStripePayments({
    database: { sql: unused, transaction: unused } as unknown as Database,
    ledger: { fund: unused },
    clock: systemClock,
    log: { info: say, warn: say, error: say, line() {}, flush() {} },
    renderFailure: (failure) => failure.message,
    onDefect: () => new Failure('INTERNAL', 'Tollgate failed.'),
    publicUrl: () => 'https://gate.example/',
    ...settings,
  })
  return { payments, logged }
}

test('without a webhook secret there are no payments, and nothing to mount', () => {
  expect(create({})).toEqual({ payments: undefined, logged: [] })
})

test.each(['', '   ', '\n'])('a webhook secret of %p is none', (text) => {
  expect(create({ webhookSecret: new Secret(text) }).payments).toBeUndefined()
})

test('a secret key alone switches nothing on, and the operator is told what is missing', () => {
  const { payments, logged } = create({ secretKey: new Secret('sk_live_1') })
  expect(payments).toBeUndefined()
  expect(logged).toEqual([expect.stringContaining('STRIPE_WEBHOOK_SECRET is not set')])
})

test('a webhook secret that can be guessed switches nothing on', () => {
  const { payments, logged } = create({ webhookSecret: new Secret('whsec_901234567') })
  expect(payments).toBeUndefined()
  expect(logged).toEqual([expect.stringContaining('fewer than 16 characters')])
  expect(create({ webhookSecret: new Secret('whsec_9012345678') }).payments).toBeDefined()
})
