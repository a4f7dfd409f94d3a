// The table of idempotency keys: claim, complete, abandon. A key belongs to a scope; the same text in another scope is
// another key. Who claims says what its digest covers and what the response holds.

import { type Sql, timeToSql } from './sql.ts'

export interface KeyClaimant {
  readonly scope: string
  readonly key: string
  /** Hash of everything that decides the work: a different one under the same key is a conflict. */
  readonly bodySha256: string
  readonly requestId?: string | undefined
  /** The replica in which the request runs, if that is longer than the transaction. */
  readonly owner?: string | undefined
}

export interface KeyRow {
  readonly body_sha256: string
  readonly state: 'running' | 'done'
  readonly status: bigint | null
  /** While the request runs, its owner. */
  readonly response: string | null
  readonly request_id: string | null
  readonly expires_at: bigint
}

export const keyLifetimeMs = 24 * 60 * 60 * 1000

/**
 * The row of the request that has the key. Waits for a transaction that claims the same key. undefined = just freed.
 * A key whose time is over is taken until its row is removed, which does not trust a clock that was set.
 */
export async function claimKey(sql: Sql, claimant: KeyClaimant, now: number): Promise<KeyRow | 'claimed' | undefined> {
  const { scope, key, bodySha256, requestId, owner } = claimant
  const claimed = await sql`INSERT INTO idempotency (scope, key, body_sha256, state, response, request_id, expires_at)
    VALUES (${scope}, ${key}, ${bodySha256}, 'running', ${owner ?? null}, ${requestId ?? null},
      ${timeToSql(now + keyLifetimeMs)})
    ON CONFLICT DO NOTHING RETURNING key`
  return claimed.length === 1 ? 'claimed' : await readKey(sql, claimant)
}

export async function readKey(sql: Sql, { scope, key }: KeyClaimant): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow>`SELECT body_sha256, state, status, response, request_id, expires_at FROM idempotency
    WHERE scope = ${scope} AND key = ${key}`
  return row
}

/** Only if the key is still the claimant's. Without a response nothing can be replayed. */
export async function completeKey(
  sql: Sql,
  { scope, key, requestId = '' }: KeyClaimant,
  { status, response }: { readonly status?: number; readonly response: string | null },
): Promise<void> {
  await sql`UPDATE idempotency SET state = 'done', status = ${status === undefined ? null : BigInt(status)},
      response = ${response}
    WHERE scope = ${scope} AND key = ${key} AND COALESCE(request_id, '') = ${requestId}`
}

/** Only if the key is still the claimant's: it is free again. */
export async function abandonKey(sql: Sql, { scope, key, requestId = '' }: KeyClaimant): Promise<void> {
  await sql`DELETE FROM idempotency
    WHERE scope = ${scope} AND key = ${key} AND COALESCE(request_id, '') = ${requestId}`
}
