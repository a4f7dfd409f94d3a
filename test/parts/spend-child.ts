// Runs as a separate process: says "ready", and once its input ends holds and settles 10 nano-dollars, sixteen at a
// time, until the wallet is empty. Prints how many it charged.

import { systemClock } from '../../src/kernel/clock.ts'
import type { WorkspaceId } from '../../src/kernel/ids.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { holdOf, settlementOf } from './ledger.ts'

const [url, dataFolder = '', workspaceId = ''] = process.argv.slice(2)
const database = await openDatabase({ url: url || undefined, dataFolder })
const ledger = await createLedger({ database, clock: systemClock })
console.log('ready')
await Bun.stdin.text()

let charged = 0

async function spend(): Promise<void> {
  for (;;) {
    const request = holdOf(workspaceId as WorkspaceId, 10n)
    const { kind } = await ledger.hold(request)
    if (kind === 'insufficient') return
    if (kind !== 'held') continue
    const settled = await ledger.settle(settlementOf(request.requestId, 10n))
    if (settled.kind === 'settled') charged++
  }
}

await Promise.all(Array.from({ length: 16 }, spend))
await ledger.close()
await database.close()
console.log(JSON.stringify({ charged }))
