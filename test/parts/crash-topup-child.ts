// Run as a process of its own while no gateway runs: pays into the only wallet under a key, through a ledger whose
// failpoints are those given as last argument, and prints how it ended. Arguments: URL FOLDER AMOUNT KEY [FAILPOINTS].

import { systemClock } from '../../src/kernel/clock.ts'
import { createFailpoint, parseFailpoints } from '../../src/kernel/failpoint.ts'
import type { WorkspaceId } from '../../src/kernel/ids.ts'
import { parseUsd } from '../../src/kernel/money.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'

const [url, dataFolder = '', usd = '', idempotencyKey = '', failpoints = ''] = process.argv.slice(2)
const amount = parseUsd(usd)
if (amount === undefined) throw new Error(`not an amount: ${usd}`)

const database = await openDatabase({ url: url || undefined, dataFolder })
const failpoint = createFailpoint(parseFailpoints(failpoints) ?? [], {
  random: Math.random,
  kill: () => process.kill(process.pid, 'SIGKILL'),
})
const ledger = await createLedger({ database, clock: systemClock, failpoint })
const [workspace] = await database.sql<{ id: WorkspaceId }>`SELECT id FROM workspaces`
if (workspace === undefined) throw new Error('there is no workspace')
const outcome = await ledger.fund({ workspaceId: workspace.id, amount, kind: 'topup', idempotencyKey })
process.stdout.write(outcome.kind)
await ledger.close()
await database.close()
