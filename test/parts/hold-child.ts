// Runs as a separate process: says "ready", and once its input ends holds 10 nano-dollars so many times at once, settles
// what was held, and prints how the holds ended. With a cap, all holds also count in one budget.

import { systemClock } from '../../src/kernel/clock.ts'
import type { WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { holdOf, settlementOf } from './ledger.ts'

const [url, dataFolder = '', workspaceId = '', count, cap] = process.argv.slice(2)
const database = await openDatabase({ url: url || undefined, dataFolder })
const ledger = await createLedger({ database, clock: systemClock })
const budgets = cap ? [{ scopeId: workspaceId, window: 'month:2100-01', cap: BigInt(cap) as Nano }] : undefined
console.log('ready')
await Bun.stdin.text()

const counts: Record<string, number> = { held: 0, insufficient: 0, unavailable: 0 }
await Promise.all(
  Array.from({ length: Number(count) }, async () => {
    const request = { ...holdOf(workspaceId as WorkspaceId, 10n), budgets }
    const { kind } = await ledger.hold(request)
    counts[kind] = (counts[kind] ?? 0) + 1
    if (kind === 'held') await ledger.settle(settlementOf(request.requestId, 10n))
  }),
)
await ledger.close()
await database.close()
console.log(JSON.stringify(counts))
