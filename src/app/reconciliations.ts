// The daily reconciliation: reads every configured bill once a day at the hour that the configuration says, and again an hour
// after a run that failed. Each bill is claimed in the database, so that one replica reads it.

import { createRounds } from '../kernel/timers.ts'
import { BillFault, dayMs } from '../reconcile/bill.ts'
import { listReconciliations, listSources, type SourceState } from '../reconcile/rows.ts'
import { type ConfiguredBill, reconcile } from '../reconcile/run.ts'
import type { Database } from '../store/database.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { type Base, errorFields } from './open-storage.ts'

export interface ReconciliationsDependencies extends Base {
  readonly database: Database
}

const checkMs = 60_000
const hourMs = 3_600_000
/** How far back a day that could not be compared is tried again. */
const retriedDays = 31

export function startReconciliations({ source, clock, log, database }: ReconciliationsDependencies) {
  const onFault = (error: unknown): void => {
    if (!isStoreUnavailable(error)) log.warn('bills could not be compared; trying again later', errorFields(error))
  }
  return createRounds({ milliseconds: checkMs, onFault }, async (isClosed) => {
    const { bills } = source.current
    const { daily, hour, days } = source.current.reconcile
    if (!daily || bills.length === 0) return
    const states = await listSources(database.sql)
    const pause = (milliseconds: number) => pauseUnless(isClosed, milliseconds)
    for (const bill of bills) {
      const now = clock.now()
      if (
        isClosed() ||
        !isDue(
          states.find(({ provider }) => provider === bill.provider),
          now,
          hour,
        )
      )
        continue
      const to = now - (now % dayMs)
      const from = Math.min(to - days * dayMs, await oldestMissing(database, bill, to))
      const { compared, missing, fault } = await reconcile({ database, clock, pause }, bill, { from, to })
      if (fault !== undefined) log.warn(`a bill could not be read completely: ${fault}`, { provider: bill.provider })
      else log.info('a bill was compared', { provider: bill.provider, days: compared, missing })
    }
  })
}

/** Since the hour was last passed, no run has ended, or the last one failed more than an hour ago. */
export function isDue(state: SourceState | undefined, now: number, hour: number): boolean {
  if (state?.endedAt === undefined) return true
  if (state.fault !== undefined && now - state.endedAt >= hourMs) return true
  const today = now - (now % dayMs) + hour * hourMs
  const due = now >= today ? today : today - dayMs
  return state.endedAt < due
}

async function oldestMissing(database: Database, { provider }: ConfiguredBill, to: number): Promise<number> {
  const rows = await listReconciliations(database.sql, { provider, from: to - retriedDays * dayMs, to })
  const missing = rows.filter((row) => row.missing !== undefined).map(({ day }) => day)
  return Math.min(to, ...missing)
}

/** Long waits for a provider end with the gateway. */
async function pauseUnless(isClosed: () => boolean, milliseconds: number): Promise<void> {
  for (let left = milliseconds; left > 0; left -= 1000) {
    if (isClosed()) throw new BillFault('The gateway stopped while the bill was read. The next run reads it again.')
    await Bun.sleep(Math.min(left, 1000))
  }
}
