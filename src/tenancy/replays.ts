// Remembers what was answered under a caller's idempotency key, so that a retry gets the first answer and is not paid
// for twice. A key whose request came to nothing is free again; one whose answer was streamed, or is too large to keep,
// is spent: it is never generated a second time.

import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { open, seal } from './credentials/aes-gcm.ts'

export interface KeyedGeneration {
  readonly workspaceId: WorkspaceId
  readonly key: string
  /** Of the path and the body. */
  readonly bodySha256: string
  readonly requestId: RequestId
}

export type ReplayClaim =
  /** The key is this request's until `keep` or `free`. */
  | { readonly kind: 'claimed' }
  | { readonly kind: 'answered'; readonly requestId: RequestId; readonly body: Buffer }
  /** Answered, but the answer was not kept. */
  | { readonly kind: 'spent'; readonly requestId: RequestId }
  | { readonly kind: 'running'; readonly requestId: RequestId }
  /** The key was used with another body. */
  | { readonly kind: 'conflict'; readonly requestId: RequestId }

export interface Replays {
  claim(request: KeyedGeneration): Promise<ReplayClaim>
  /** The request was answered and paid for; without a body nothing can be shown again. */
  keep(request: KeyedGeneration, body: Uint8Array | undefined): Promise<void>
  /** The request came to nothing. */
  free(request: KeyedGeneration): Promise<void>
}

export interface ReplaysOptions {
  readonly database: Database
  readonly clock: Clock
  /** 32 bytes. */
  readonly sealKey: Uint8Array
  /** Of the master secret that a rotation leaves behind: it opens, and seals nothing. */
  readonly previousSealKey?: Uint8Array | undefined
  /** Whether a request has been charged: then its key is spent, whatever became of its process. */
  isCharged(requestId: RequestId): Promise<boolean>
}

const lifetimeMs = 24 * 60 * 60 * 1000
/** Longer than a request can run; one that is still called running then died with its process. */
const runningMaxMs = 20 * 60 * 1000
/** Larger answers are not kept. */
const bodyBytesMax = 256 * 1024

interface Row {
  readonly body_sha256: string
  readonly state: 'running' | 'done'
  readonly response: string | null
  readonly request_id: RequestId
  readonly expires_at: bigint
}

export function createReplays(options: ReplaysOptions): Replays {
  const { database, clock, sealKey, previousSealKey, isCharged } = options
  /** On the embedded engine whatever is not in here does not run: there is no other process. */
  const running = new Set<RequestId>()

  function isDead({ state, request_id: requestId, expires_at: expiresAt }: Row): boolean {
    if (state !== 'running' || running.has(requestId)) return false
    return database.engine === 'sqlite' || clock.now() - (timeFromSql(expiresAt) - lifetimeMs) > runningMaxMs
  }

  async function claim(request: KeyedGeneration): Promise<ReplayClaim> {
    const found = await database.transaction((sql) => insertOrRead(sql, request, clock.now()))
    if (found === 'claimed') {
      running.add(request.requestId)
      return { kind: 'claimed' }
    }
    const requestId = found.request_id
    if (found.body_sha256 !== request.bodySha256) return { kind: 'conflict', requestId }
    if (found.state === 'running') {
      if (!isDead(found)) return { kind: 'running', requestId }
      if (await isCharged(requestId)) return { kind: 'spent', requestId }
      await remove(database, { ...request, requestId })
      return await claim(request)
    }
    if (found.response === null) return { kind: 'spent', requestId }
    const binding = bindingOf(request)
    const body =
      open(sealKey, found.response, binding) ?? (previousSealKey && open(previousSealKey, found.response, binding))
    assert(body, 'a stored answer opens with the secret it was sealed with')
    return { kind: 'answered', requestId, body }
  }

  return {
    claim,
    async keep(request, body) {
      const isKept = body !== undefined && body.length <= bodyBytesMax
      const response = isKept ? seal(sealKey, Buffer.from(body), bindingOf(request)) : null
      await database.transaction((sql) => {
        return sql`UPDATE idempotency SET state = 'done', response = ${response}
          WHERE scope = ${scopeOf(request)} AND key = ${request.key} AND request_id = ${request.requestId}`
      })
      running.delete(request.requestId)
    },
    async free(request) {
      running.delete(request.requestId)
      await remove(database, request)
    },
  }
}

async function insertOrRead(sql: Sql, request: KeyedGeneration, now: number): Promise<Row | 'claimed'> {
  const { key, bodySha256, requestId } = request
  const scope = scopeOf(request)
  await sql`DELETE FROM idempotency WHERE scope = ${scope} AND key = ${key} AND expires_at <= ${timeToSql(now)}`
  const claimed = await sql`INSERT INTO idempotency (scope, key, body_sha256, state, request_id, expires_at)
    VALUES (${scope}, ${key}, ${bodySha256}, 'running', ${requestId}, ${timeToSql(now + lifetimeMs)})
    ON CONFLICT DO NOTHING RETURNING key`
  if (claimed.length === 1) return 'claimed'
  const [row] = await sql<Row>`SELECT body_sha256, state, response, request_id, expires_at FROM idempotency
    WHERE scope = ${scope} AND key = ${key}`
  assert(row, 'a key that cannot be claimed has a row')
  return row
}

/** Every answer that is kept for a workspace, inside a transaction of the caller's. */
export async function forgetReplays(sql: Sql, workspaceId: WorkspaceId): Promise<void> {
  await sql`DELETE FROM idempotency WHERE scope = ${scopeOf({ workspaceId })}`
}

async function remove(database: Database, request: KeyedGeneration): Promise<void> {
  await database.transaction((sql) => {
    return sql`DELETE FROM idempotency
      WHERE scope = ${scopeOf(request)} AND key = ${request.key} AND request_id = ${request.requestId}`
  })
}

function scopeOf({ workspaceId }: Pick<KeyedGeneration, 'workspaceId'>): string {
  return `generation:${workspaceId}`
}

/** An answer copied to another key's row does not open. */
function bindingOf(request: KeyedGeneration): string {
  return JSON.stringify([scopeOf(request), request.key, request.bodySha256])
}
