// What still hangs on the previous master secret: keys that were not used since, secrets in their overlap, and
// credentials that were not wrapped anew. It only reads.

import type { KeyId } from '../kernel/ids.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { createVerifier } from './api-key.ts'
import { createWrappingKey } from './credentials/key-ring.ts'
import { deriveSubkey, type MasterSecret } from './secrets.ts'

export interface WaitingKey {
  readonly id: KeyId
  readonly name: string
  readonly last4: string
  /** To within a minute or two; undefined = never. */
  readonly lastUsedAt: number | undefined
}

export interface RotationStatus {
  /** Keys that are good, and would end with the previous secret. */
  readonly keys: number
  /** The first of them. */
  readonly firstKeys: readonly WaitingKey[]
  /** Replaced secrets of keys whose overlap is not over. */
  readonly overlaps: number
  readonly credentials: number
}

const shownMax = 20

export async function readRotationStatus(sql: Sql, current: MasterSecret, now: number): Promise<RotationStatus> {
  const { version } = createVerifier(deriveSubkey(current, 'api-key-pepper'))
  const at = timeToSql(now)
  const [keys] = await sql<Counted>`SELECT COUNT(*) AS n FROM api_keys
    WHERE pepper_version <> ${version} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${at})`
  const first = await sql<WaitingRow>`SELECT k.id, k.name, k.last4, u.last_used_at FROM api_keys k
    LEFT JOIN key_uses u ON u.key_id = k.id
    WHERE k.pepper_version <> ${version} AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ${at})
    ORDER BY k.id LIMIT ${BigInt(shownMax)}`
  const [overlaps] = await sql<Counted>`SELECT COUNT(*) AS n FROM rotated_secrets r JOIN api_keys k ON k.id = r.key_id
    WHERE r.pepper_version <> ${version} AND r.ends_at > ${at} AND k.revoked_at IS NULL`
  const [credentials] = await sql<Counted>`SELECT COUNT(*) AS n FROM credentials
    WHERE key_version <> ${createWrappingKey(current).version}`
  return {
    keys: countOf(keys),
    firstKeys: first.map(({ id, name, last4, last_used_at }) => ({
      id,
      name,
      last4,
      lastUsedAt: timeFromSql(last_used_at),
    })),
    overlaps: countOf(overlaps),
    credentials: countOf(credentials),
  }
}

interface Counted {
  readonly n: bigint
}

interface WaitingRow {
  readonly id: KeyId
  readonly name: string
  readonly last4: string
  readonly last_used_at: bigint | null
}

function countOf(row: Counted | undefined): number {
  return Number(row?.n ?? 0n)
}
