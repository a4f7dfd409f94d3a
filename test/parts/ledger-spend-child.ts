// Runs as a separate process, to be killed: holds 10 nano-dollars again and again, eight at a time, in the budget
// `key_1 month:2100-01`, charges 7, and prints a dot for every charge once it is durable.

import { systemClock } from '../../src/kernel/clock.ts'
import type { WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { holdOf, settlementOf } from './ledger.ts'

const [url, dataFolder = '', workspaceId = ''] = process.argv.slice(2)
const database = await openDatabase({ url: url || undefined, dataFolder })
const ledger = await createLedger({ database, clock: systemClock })
const budgets = [{ scopeId: 'key_1', window: 'month:2100-01', cap: 1_000_000_000n as Nano }]

async function spend(): Promise<never> {
  for (;;) {
    const request = { ...holdOf(workspaceId as WorkspaceId, 10n), budgets }
    await ledger.hold(request)
    const { kind } = await ledger.settle(settlementOf(request.requestId, 7n))
    if (kind === 'settled') process.stdout.write('.')
  }
}

await Promise.all(Array.from({ length: 8 }, spend))
