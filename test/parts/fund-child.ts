// Runs as a separate process: tops a wallet up with 70 nano-dollars under the key "once", and kills itself with SIGKILL
// at the step given as last argument: 1 and 2 are the failpoints inside the transaction, 3 is after the commit.

import { systemClock } from '../../src/kernel/clock.ts'
import type { WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'

const [url, dataFolder = '', workspaceId, dieAt] = process.argv.slice(2)
let steps = 0

function step(): undefined {
  steps++
  if (steps === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
}

const database = await openDatabase({ url: url || undefined, dataFolder })
const ledger = await createLedger({ database, clock: systemClock, failpoint: step })
await ledger.fund({
  workspaceId: workspaceId as WorkspaceId,
  amount: 70n as Nano,
  kind: 'topup',
  idempotencyKey: 'once',
  paymentId: 'cs_1',
})
step()
await ledger.close()
await database.close()
