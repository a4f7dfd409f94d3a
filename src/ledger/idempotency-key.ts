// The memory that money was moved, under the caller's own key: written in the transaction of the move, so that the same
// call again finds the first one instead of moving it twice.

import type { Nano } from '../kernel/money.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { readTransfer, type Transfer } from './transfer.ts'

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

const keyLifetimeMs = 24 * 60 * 60 * 1000

/** undefined = the key is ours now, or none was given. A twin in another process is waited for. */
export async function claimKey(
  sql: Sql,
  { scope, key, digest }: MoveKey,
  now: number,
): Promise<KeyedMove | 'conflict' | undefined> {
  if (key === undefined) return undefined
  await sql`DELETE FROM idempotency WHERE scope = ${scope} AND key = ${key} AND expires_at <= ${timeToSql(now)}`
  const claimed = await sql`INSERT INTO idempotency (scope, key, body_sha256, state, expires_at)
    VALUES (${scope}, ${key}, ${digest}, 'running', ${timeToSql(now + keyLifetimeMs)})
    ON CONFLICT DO NOTHING RETURNING key`
  if (claimed.length === 1) return undefined
  const [row] = await sql<{ body_sha256: string; response: string }>`SELECT body_sha256, response FROM idempotency
    WHERE scope = ${scope} AND key = ${key}`
  if (row?.body_sha256 !== digest) return 'conflict'
  const [id = '', posted = '0'] = row.response.split(' ')
  const transfer = await readTransfer(sql, id)
  if (!transfer) throw new Error(`the idempotency key ${key} names the transfer ${id}, which does not exist`)
  return { transfer, posted: BigInt(posted) as Nano }
}

/** What was refused is not remembered. */
export async function freeKey(sql: Sql, { scope, key }: MoveKey): Promise<void> {
  if (key === undefined) return
  await sql`DELETE FROM idempotency WHERE scope = ${scope} AND key = ${key}`
}

export async function rememberMove(sql: Sql, { scope, key }: MoveKey, { transfer, posted }: KeyedMove): Promise<void> {
  if (key === undefined) return
  await sql`UPDATE idempotency SET state = 'done', response = ${`${transfer.id} ${posted}`}
    WHERE scope = ${scope} AND key = ${key}`
}
