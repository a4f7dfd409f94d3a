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
  close(): void
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
  /** For tests: does the work again and again; answers with how to stop. */
  every?(milliseconds: number, work: () => Promise<void>): () => void
}

const lifetimeMs = 24 * 60 * 60 * 1000
/** How often a process says which of its requests still run: an answer may take many hours. */
const renewMs = 5 * 60 * 1000
/** Three times renewed in vain, and some: what nobody has renewed for so long died with its process. */
const silentMaxMs = 20 * 60 * 1000
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
  const { database, clock, sealKey, previousSealKey, isCharged, every = onTimer } = options
  /** On the embedded engine whatever is not in here does not run: there is no other process. */
  const running = new Map<RequestId, KeyedGeneration>()

  function isDead({ state, request_id: requestId, expires_at: expiresAt }: Row): boolean {
    if (state !== 'running' || running.has(requestId)) return false
    return database.engine === 'sqlite' || clock.now() - (timeFromSql(expiresAt) - lifetimeMs) > silentMaxMs
  }

  /** For the other replicas, which see nothing of this process but its rows. */
  async function renew(): Promise<void> {
    const expiresAt = timeToSql(clock.now() + lifetimeMs)
    for (const { key, requestId, ...scope } of [...running.values()]) {
      await database.transaction((sql) => {
        return sql`UPDATE idempotency SET expires_at = ${expiresAt} WHERE scope = ${scopeOf(scope)} AND key = ${key}
          AND request_id = ${requestId} AND state = 'running'`
      })
    }
  }
  const stopRenewing = every(renewMs, renew)

  async function claim(request: KeyedGeneration): Promise<ReplayClaim> {
    const found = await database.transaction((sql) => insertOrRead(sql, request, clock.now()))
    if (found === 'claimed') {
      running.set(request.requestId, request)
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
      try {
        await database.transaction((sql) => {
          return sql`UPDATE idempotency SET state = 'done', response = ${response}
            WHERE scope = ${scopeOf(request)} AND key = ${request.key} AND request_id = ${request.requestId}`
        })
      } finally {
        // Were it left in, the key would be renewed for ever. Without it a twin learns from the ledger that it is spent.
        running.delete(request.requestId)
      }
    },
    async free(request) {
      running.delete(request.requestId)
      await remove(database, request)
    },
    close: stopRenewing,
  }
}

function onTimer(milliseconds: number, work: () => Promise<void>): () => void {
  // What fails is tried again the next time; until then the row is good for a while.
  const timer = setInterval(() => void work().catch(() => {}), milliseconds)
  timer.unref()
  return () => clearInterval(timer)
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
