// Rotation of the master secret: moves every credential, stored response, file and result of a batch from one secret to another while gateways that have both keep
// serving, and reports what still needs the previous one. Only the data keys are rewrapped, a few at a time. The rows
// show what is done, so an interrupted run is continued by running it again.

import type { KeyId } from '../kernel/ids.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { createVerifier } from './api-key.ts'
import { rewrapFileParts } from './batch-files.ts'
import { rewrapLines } from './batches.ts'
import { type SealedCredential, sealedRow } from './credentials.ts'
import { type CredentialId, createWrappingKey, credentialBinding, rewrapKey, type WrappingKey } from './sealing.ts'
import { deriveSubkey, type MasterSecret } from './secrets.ts'
import { rewrapResponses } from './stored-responses.ts'

/** Rows per transaction: a few milliseconds, during which the embedded engine blocks other writes. */
const portion = 50

export interface RotateSecretsOptions {
  readonly database: Database
  readonly from: MasterSecret
  readonly to: MasterSecret
  /** After every commit. */
  readonly onProgress?: (progress: RotationProgress) => void
}

export interface RotationProgress {
  /** Processed in this run. */
  readonly done: number
  /** When it began; credentials stored meanwhile are not counted. */
  readonly total: number
}

export interface Rotation {
  readonly kind: 'rotated'
  readonly rewrapped: number
  /** Unchanged because they do not decrypt under any secret; their keys must be stored again. */
  readonly altered: readonly CredentialId[]
  /**
   * Credentials that need another secret than `to`, without the altered ones. Above 0: a gateway that has only the old
   * secret is still writing (run again), or there are rows from before an earlier rotation.
   */
  readonly remaining: number
}

/** `same_secret`: `from` and `to` are equal, nothing was done. */
export type RotationOutcome = Rotation | { readonly kind: 'same_secret' }

/** Start the gateways with both secrets first, the new one as the current one. */
export async function rotateSecrets(options: RotateSecretsOptions): Promise<RotationOutcome> {
  const { database, onProgress = () => {} } = options
  const from = createWrappingKey(options.from)
  const to = createWrappingKey(options.to)
  if (from.version === to.version) return { kind: 'same_secret' }
  const total = await countUnder(database, from)
  const altered: CredentialId[] = []
  let rewrapped = 0
  let done = 0
  let after = ''
  for (;;) {
    // Ids ascend with time and a replaced credential gets a new one, so one pass includes what is stored meanwhile.
    const sealed = await readPortion(database, from, after)
    const last = sealed.at(-1)
    if (last === undefined) break
    const moves = sealed.map((credential) => ({
      credential,
      wrappedKey: rewrapKey(credential.wrappedKey, credentialBinding(credential), { from, to }),
    }))
    for (const { credential, wrappedKey } of moves) if (wrappedKey === 'altered') altered.push(credential.id)
    rewrapped += await writeMoves(
      database,
      moves.filter(({ wrappedKey }) => wrappedKey !== 'altered'),
      to,
    )
    after = last.id
    done += sealed.length
    onProgress({ done, total: Math.max(total, done) })
  }
  await rewrapResponses(database, { from, to })
  await rewrapFileParts(database, { from, to })
  await rewrapLines(database, { from, to })
  const remaining = (await countNotUnder(database.sql, to)) - altered.length
  return { kind: 'rotated', rewrapped, altered, remaining: Math.max(0, remaining) }
}

interface Move {
  readonly credential: SealedCredential
  readonly wrappedKey: string
}

async function readPortion(database: Database, from: WrappingKey, after: string): Promise<readonly SealedCredential[]> {
  const rows = await database.sql`SELECT * FROM credentials
    WHERE key_version = ${from.version} AND id > ${after} ORDER BY id LIMIT ${BigInt(portion)}`
  return sealedRow.all(rows)
}

/** Returns how many were written; rows that changed since they were read are skipped. */
function writeMoves(database: Database, moves: readonly Move[], to: WrappingKey): Promise<number> {
  return database.transaction(async (sql) => {
    let written = 0
    for (const { credential, wrappedKey } of moves) {
      const updated = await sql`
        UPDATE credentials SET wrapped_key = ${wrappedKey}, key_version = ${to.version}
        WHERE id = ${credential.id} AND wrapped_key = ${credential.wrappedKey} RETURNING id`
      written += updated.length
    }
    return written
  })
}

async function countUnder({ sql }: Database, key: WrappingKey): Promise<number> {
  return countOf(await sql<Counted>`SELECT COUNT(*) AS n FROM credentials WHERE key_version = ${key.version}`)
}

async function countNotUnder(sql: Sql, key: WrappingKey): Promise<number> {
  return countOf(await sql<Counted>`SELECT COUNT(*) AS n FROM credentials WHERE key_version <> ${key.version}`)
}

interface Counted {
  readonly n: bigint
}

function countOf([row]: readonly Counted[]): number {
  return Number(row?.n ?? 0n)
}

const waitingRow = rowFormat({
  id: text<KeyId>(),
  name: text(),
  last4: text(),
  /** Accurate to a minute or two; undefined = never. */
  lastUsedAt: optional(time),
})

export interface RotationStatus {
  /** Valid keys that would stop working without the previous secret. */
  readonly keys: number
  readonly firstKeys: readonly ItemIn<typeof waitingRow>[]
  /** Replaced secrets that are still valid. */
  readonly overlaps: number
  readonly credentials: number
  readonly responses: number
  /** Parts of files of batches, and results. */
  readonly batches: number
}

const shownMax = 20

/** Counts what still needs the previous master secret: keys not used since, overlapping secrets, and credentials. */
export async function readRotationStatus(sql: Sql, current: MasterSecret, now: number): Promise<RotationStatus> {
  const { version } = createVerifier(deriveSubkey(current, 'api-key-pepper'))
  const at = timeToSql(now)
  const keys = await sql<Counted>`SELECT COUNT(*) AS n FROM api_keys
    WHERE pepper_version <> ${version} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${at})`
  const first = await sql`SELECT k.id, k.name, k.last4, u.last_used_at FROM api_keys k
    LEFT JOIN key_uses u ON u.key_id = k.id
    WHERE k.pepper_version <> ${version} AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ${at})
    ORDER BY k.id LIMIT ${BigInt(shownMax)}`
  const overlaps = await sql<Counted>`SELECT COUNT(*) AS n FROM rotated_secrets r JOIN api_keys k ON k.id = r.key_id
    WHERE r.pepper_version <> ${version} AND r.ends_at > ${at} AND k.revoked_at IS NULL`
  return {
    keys: countOf(keys),
    firstKeys: waitingRow.all(first),
    overlaps: countOf(overlaps),
    credentials: await countNotUnder(sql, createWrappingKey(current)),
    responses: countOf(
      await sql<Counted>`SELECT COUNT(*) AS n FROM stored_responses
        WHERE key_version <> ${createWrappingKey(current).version} AND expires_at > ${at}`,
    ),
    batches: countOf(
      await sql<Counted>`SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM batch_file_parts
          WHERE key_version <> ${createWrappingKey(current).version}
        UNION ALL SELECT 1 FROM batch_lines WHERE key_version <> ${createWrappingKey(current).version}) AS sealed`,
    ),
  }
}
