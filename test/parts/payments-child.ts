// A separate process that runs a round of automatic top-ups and a refund of $4.00, and dies by SIGKILL at the step that is
// given: before, between or after what it asks of Stripe and of the ledger.

import { systemClock } from '../../src/kernel/clock.ts'
import { createFailpoint } from '../../src/kernel/failpoint.ts'
import type { PaymentId, RefundId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { openPayments } from './payments.ts'

const [url, dataFolder = '', stripeUrl = '', passes = '', laterMs = '0'] = process.argv.slice(2)
const clock = { ...systemClock, now: () => systemClock.now() + Number(laterMs) }
const plan = { name: 'in_topup', action: 'kill', share: 1, passes: Number(passes) } as const
const means = { random: () => 0, kill: () => process.kill(process.pid, 'SIGKILL') }
const reach = createFailpoint(passes === '' ? [] : [plan], means)
const database = await openDatabase({ url: url || undefined, dataFolder })
const ledger = await createLedger({ database, clock })
const { payments } = openPayments({ database, ledger, clock, stripeUrl, reach })

await payments.round()
const [paid] = await database.sql<{
  id: PaymentId
}>`SELECT id FROM payments WHERE kind = 'automatic' AND state = 'paid'`
const [begun] = await database.sql<{ id: RefundId }>`SELECT id FROM refunds`
if (paid && !begun) {
  const terms = { amount: 4_000_000_000n as Nano, reason: 'test' }
  const refund = await database.transaction((sql) => payments.refunds.begin(sql, paid.id, terms))
  await reach('in_topup')
  await payments.refunds.run(refund.id)
}
await ledger.close()
await database.close()
process.exit(0)
