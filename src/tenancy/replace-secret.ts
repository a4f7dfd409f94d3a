// Gives a key another secret and says how long the one it had lives on. It neither makes the secret nor shows one.

import type { KeyId } from '../kernel/ids.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { type ApiKey, type ComputeVerifier, lastFour } from './api-key.ts'
import type { Act } from './audit.ts'

export interface NewSecret {
  readonly secret: ApiKey
  readonly overlapMs: number
  readonly act: Act
  readonly computeVerifier: ComputeVerifier
}

/** False if the key is revoked. */
export async function replaceSecret(sql: Sql, id: KeyId, replacement: NewSecret): Promise<boolean> {
  const { secret, overlapMs, act, computeVerifier } = replacement
  // Written before it is read: a twin on another replica then replaces the secret that this one leaves behind.
  const [old] = await sql<{ verifier: string; pepper_version: bigint }>`UPDATE api_keys SET last4 = ${lastFour(secret)}
    WHERE id = ${id} AND revoked_at IS NULL RETURNING verifier, pepper_version`
  if (!old) return false
  const endsAt = timeToSql(act.at + overlapMs)
  // Secrets of earlier rotations must not outlive the one they led to: without an overlap only the new one is good.
  await sql`UPDATE rotated_secrets SET ends_at = CASE WHEN rotated_at > ${endsAt} THEN rotated_at ELSE ${endsAt} END
    WHERE key_id = ${id} AND ends_at > ${endsAt}`
  const row = {
    verifier: old.verifier,
    key_id: id,
    pepper_version: old.pepper_version,
    rotated_at: timeToSql(act.at),
    ends_at: endsAt,
  }
  await sql`INSERT INTO rotated_secrets ${sql([row])}`
  await sql`UPDATE api_keys SET verifier = ${computeVerifier(secret)}, pepper_version = ${computeVerifier.version}
    WHERE id = ${id}`
  return true
}
