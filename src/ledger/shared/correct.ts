// A correction where several replicas share the wallet: the row decides. Like a request, it is told that too little is free
// only after the slices that replicas have of the wallet were asked for.

import type { Nano } from '../../kernel/money.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention, isStoreUnavailable } from '../../store/sql-error.ts'
import { type WalletId, walletOf } from '../account.ts'
import { type Correction, type CorrectOutcome, recordCorrection } from '../correct.ts'
import type { Gate } from '../gate.ts'
import type { Insufficient } from '../insufficient.ts'
import type { LedgerOptions } from '../options.ts'
import { unavailable } from '../unavailable.ts'
import { commitEndOf } from './commit-end.ts'
import { SlicesOut } from './judge-refusals.ts'
import { sumSlices } from './lease-rows.ts'

const retriesMax = 3

export interface SharedMeans {
  readonly gate: Gate
  /** Asks for the slices of a wallet; true when there are none left to ask for. */
  recall(wallet: WalletId): Promise<boolean>
}

export async function correct(
  { database, clock, reach }: LedgerOptions,
  { gate, recall }: SharedMeans,
  correction: Correction,
): Promise<CorrectOutcome> {
  let isFinal = false
  for (let retries = 0; ; retries++) {
    const end = gate.begin()
    try {
      const outcome = await database.transaction(async (sql) => {
        const tried = await recordCorrection(sql, correction, { now: clock.now(), reach })
        return tried.kind === 'insufficient' ? await judge(sql, correction, { refused: tried, isFinal }) : tried
      })
      end('committed')
      return outcome
    } catch (thrown) {
      if (thrown instanceof SlicesOut) {
        end('withdrawn')
        isFinal = await recall(walletOf(correction.workspaceId))
        if (isFinal) continue
        return unavailable
      }
      end(commitEndOf(thrown))
      if (isContention(thrown) && retries < retriesMax) continue
      if (isStoreUnavailable(thrown) || isContention(thrown)) return unavailable
      throw thrown
    }
  }
}

/** Throws a SlicesOut where what is idle in slices might be enough, and nobody has asked for it yet. */
async function judge(
  sql: Sql,
  { workspaceId, amount }: Correction,
  { refused, isFinal }: { readonly refused: Insufficient; readonly isFinal: boolean },
): Promise<Insufficient> {
  const wallet = walletOf(workspaceId)
  const slices = (await sumSlices(sql, [wallet])).get(wallet)
  if (!slices) return refused
  const { posted, held } = refused
  if (!isFinal && amount <= posted - held + slices.idleMost) throw new SlicesOut([wallet])
  return { ...refused, posted: (posted - slices.spent) as Nano, held: (held - slices.amount + slices.inUse) as Nano }
}
