// One process of the PostgreSQL benchmark: a ledger that holds, marks and settles as fast as it is answered, so many
// requests at a time, and prints one JSON line with how many it charged in the window. Run by postgres.ts.

import { systemClock } from '../src/kernel/clock.ts'
import { createId, type RequestId, type WorkspaceId } from '../src/kernel/ids.ts'
import type { Nano } from '../src/kernel/money.ts'
import { createLedger } from '../src/ledger/create-ledger.ts'
import type { Charge } from '../src/ledger/ledger.ts'
import { openDatabase } from '../src/store/open-database.ts'
import type { RequestRow } from '../src/store/request-rows.ts'
import { chargedRequestRow, RequestRecord } from '../src/telemetry/request-record.ts'

export interface ChildPlan {
  readonly url: string
  readonly workspaceIds: readonly WorkspaceId[]
  readonly concurrency: number
  readonly warmupMs: number
  readonly windowMs: number
}

export interface ChildResult {
  readonly charged: number
  readonly refused: number
  readonly cpuMicros: number
  readonly seconds: number
}

const held = 40_000_000n as Nano
const cost = 3_000_000n as Nano

/** The request's row, which the gateway writes with every charge. */
function rowOf(id: RequestId, charge: Charge): RequestRow {
  const record = new RequestRecord(id, systemClock.now(), '/v1/chat/completions')
  const caller = { workspaceId: charge.workspaceId, projectId: 'prj_1', keyId: 'key_1' } as const
  return chargedRequestRow({ ...record, caller, model: 'bench/model', status: 200, lane: 'bytes', held }, charge)
}

async function run(plan: ChildPlan): Promise<ChildResult> {
  const database = await openDatabase({ url: plan.url, dataFolder: '' })
  const ledger = await createLedger({ database, clock: systemClock })
  const counts = { charged: 0, refused: 0, next: 0, isOver: false }

  const spend = async () => {
    while (!counts.isOver) {
      const workspaceId = plan.workspaceIds[counts.next++ % plan.workspaceIds.length] as WorkspaceId
      const requestId = createId('req')
      const { kind } = await ledger.hold({ requestId, workspaceId, keyId: 'key_1', projectId: 'prj_1', amount: held })
      if (kind !== 'held') {
        counts.refused++
        await Bun.sleep(1)
        continue
      }
      ledger.markSent(requestId)
      // The answer's time: holds of several requests are open beside each other, as they are behind a provider.
      await Bun.sleep(0)
      const row = (charge: Charge) => rowOf(requestId, charge)
      const settled = await ledger.settle({ requestId, cost, estimated: false, row })
      if (settled.kind === 'settled') counts.charged++
    }
  }
  const running = Array.from({ length: plan.concurrency }, spend)
  await Bun.sleep(plan.warmupMs)
  const before = { ...counts, cpu: process.cpuUsage(), atMs: systemClock.monotonicMs() }
  await Bun.sleep(plan.windowMs)
  const cpu = process.cpuUsage(before.cpu)
  const seconds = (systemClock.monotonicMs() - before.atMs) / 1000
  const result = { charged: counts.charged - before.charged, refused: counts.refused - before.refused }
  counts.isOver = true
  await Promise.all(running)
  await ledger.close()
  await database.close()
  return { ...result, cpuMicros: cpu.user + cpu.system, seconds }
}

console.log(JSON.stringify(await run(JSON.parse(await Bun.stdin.text()) as ChildPlan)))
