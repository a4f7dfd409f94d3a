// The memory that money was moved, under the caller's own key: written in the transaction of the move, so that the same
// call again finds the first one instead of moving it twice.

import type { Nano } from '../kernel/money.ts'
import { abandonKey, claimKey as claimRow, completeKey } from '../store/idempotency.ts'
import type { Sql } from '../store/sql.ts'
import { readFunding, type Transfer } from './transfer.ts'

export interface MoveKey {
  /** What kind of move, of which workspace. */
  readonly scope: string
  /** undefined = the caller gave none: nothing is remembered. */
  readonly key: string | undefined
  /** Of all that makes the move what it is: another one under the same key is a conflict. */
  readonly digest: string
}

export interface KeyedMove {
  readonly transfer: Transfer
  /** The balance after it. */
  readonly posted: Nano
}

/** undefined = the key is ours now, or none was given. A twin in another process is waited for. */
export async function claimKey(
  sql: Sql,
  { scope, key, digest }: MoveKey,
  now: number,
): Promise<KeyedMove | 'conflict' | undefined> {
  if (key === undefined) return undefined
  const found = await claimRow(sql, { scope, key, bodySha256: digest }, now)
  if (found === 'claimed') return undefined
  if (found?.body_sha256 !== digest) return 'conflict'
  const [id = '', posted = '0'] = (found.response ?? '').split(' ')
  const transfer = await readFunding(sql, id)
  if (!transfer) throw new Error(`the idempotency key ${key} names the transfer ${id}, which does not exist`)
  return { transfer, posted: BigInt(posted) as Nano }
}

/** What was refused is not remembered. */
export async function freeKey(sql: Sql, { scope, key, digest }: MoveKey): Promise<void> {
  if (key !== undefined) await abandonKey(sql, { scope, key, bodySha256: digest })
}

export async function rememberMove(sql: Sql, move: MoveKey, { transfer, posted }: KeyedMove): Promise<void> {
  const { scope, key, digest } = move
  if (key === undefined) return
  await completeKey(sql, { scope, key, bodySha256: digest }, { response: `${transfer.id} ${posted}` })
}
