// Moves every credential from one master secret to another while gateways that know both keep serving: only the data
// keys are wrapped anew, few at a time. What is done is told by the rows themselves, so a run that was cut off anywhere
// is continued by running it again.

import type { Database } from '../../store/database.ts'
import type { MasterSecret } from '../secrets.ts'
import type { CredentialId } from './credential.ts'
import { type SealedCredential, type SealedRow, sealedFromRow } from './credential-records.ts'
import { rewrap } from './envelope.ts'
import { createWrappingKey, type WrappingKey } from './key-ring.ts'

/** Rows per transaction: a few milliseconds, in which the embedded engine lets nobody else write. */
const portion = 50

export interface RotateSecretsOptions {
  readonly database: Database
  readonly from: MasterSecret
  readonly to: MasterSecret
  /** After every commit. */
  readonly onProgress?: (progress: RotationProgress) => void
}

export interface RotationProgress {
  /** Looked at in this run. */
  readonly done: number
  /** As many as there were when it began; a credential stored meanwhile is not counted. */
  readonly total: number
}

export interface Rotation {
  readonly kind: 'rotated'
  readonly rewrapped: number
  /** Left as they were because they do not open: no secret brings them back, their keys must be stored again. */
  readonly altered: readonly CredentialId[]
  /**
   * Credentials that still need another secret than `to`, the altered ones not counted. Above 0: a gateway that has only
   * the old secret is still writing (run again), or there are rows from before an earlier rotation.
   */
  readonly remaining: number
}

/** `same_secret`: from and to are equal, nothing was done. */
export type RotationOutcome = Rotation | { readonly kind: 'same_secret' }

/** Gateways must have been started with both secrets first, the new one as their current one. */
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
    // Ids ascend in time and a replaced credential gets a new one, so one pass meets also what is stored meanwhile.
    const sealed = await readPortion(database, from, after)
    const last = sealed.at(-1)
    if (last === undefined) break
    const moves = sealed.map((credential) => ({
      credential,
      wrappedKey: rewrap(credential.wrappedKey, credential, { from, to }),
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
  const remaining = (await countNotUnder(database, to)) - altered.length
  return { kind: 'rotated', rewrapped, altered, remaining: Math.max(0, remaining) }
}

interface Move {
  readonly credential: SealedCredential
  readonly wrappedKey: string
}

async function readPortion(database: Database, from: WrappingKey, after: string): Promise<readonly SealedCredential[]> {
  const rows = await database.sql<SealedRow>`
    SELECT id, workspace_id, provider, origin, base_url, ciphertext, wrapped_key, key_version FROM credentials
    WHERE key_version = ${from.version} AND id > ${after} ORDER BY id LIMIT ${BigInt(portion)}`
  return rows.map(sealedFromRow)
}

/** How many were written; one that was replaced, deleted or moved since it was read is left alone. */
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

async function countUnder(database: Database, key: WrappingKey): Promise<number> {
  const [row] = await database.sql<{ n: bigint }>`
    SELECT COUNT(*) AS n FROM credentials WHERE key_version = ${key.version}`
  return Number(row?.n ?? 0n)
}

async function countNotUnder(database: Database, key: WrappingKey): Promise<number> {
  const [row] = await database.sql<{ n: bigint }>`
    SELECT COUNT(*) AS n FROM credentials WHERE key_version <> ${key.version}`
  return Number(row?.n ?? 0n)
}
