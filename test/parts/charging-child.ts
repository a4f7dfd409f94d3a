// A process that charges so many requests on the embedded database, one after the other, prints the id of each that is
// confirmed, and kills itself.

import { systemClock } from '../../src/kernel/clock.ts'
import type { WorkspaceId } from '../../src/kernel/ids.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { holdOf, settlementOf } from './ledger.ts'

const [dataFolder = '', workspaceId = '', count = ''] = process.argv.slice(2)
const database = await openDatabase({ url: undefined, dataFolder })
const ledger = await createLedger({ database, clock: systemClock })
for (let n = 0; n < Number(count); n++) {
  const request = holdOf(workspaceId as WorkspaceId, 10n)
  const { kind } = await ledger.hold(request)
  if (kind !== 'held') {
    // The gateway refuses it, and its caller tries again.
    n--
    await Bun.sleep(10)
    continue
  }
  const settled = await ledger.settle(settlementOf(request.requestId, 7n))
  if (settled.kind === 'settled') process.stdout.write(`${request.requestId}\n`)
  // Applies the journal.
  await ledger.transfersOf(request.requestId)
}
process.kill(process.pid, 'SIGKILL')
