// Remembers what was answered under a caller's idempotency key, so that a retry gets the first answer and is not paid
// for twice. A key whose request came to nothing is free again; one whose answer was streamed, or is too large to keep,
// is spent: it is never generated a second time.

import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ReplicaId, RequestId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { timeFromSql, timeToSql } from '../store/sql.ts'
import { open, seal } from './envelope.ts'
import {
  insertOrRead,
  type KeyedGeneration,
  lifetimeMs,
  type ReplayRow,
  readReplay,
  removeDead,
  removeReplay,
  scopeOf,
} from './replay-rows.ts'

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
  /**
   * Whether the key is still this request's. To be asked when others can see its hold, by which they know that it runs:
   * whoever was silent before that may have been taken for dead.
   */
  confirm(request: KeyedGeneration): Promise<boolean>
  /** The request was answered and paid for; without a body nothing can be shown again. */
  keep(request: KeyedGeneration, body: Uint8Array | undefined): Promise<void>
  /** The request came to nothing. Never rejects: what cannot be freed now is tried again until it is. */
  free(request: KeyedGeneration): Promise<void>
  /** The request has ended, and it is not known whether it was charged: the next claim asks the ledger. */
  leave(request: KeyedGeneration): void
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
  /** This process among several on one database. */
  readonly replica?: Fellow | undefined
  /** For tests: does the work again and again; answers with how to stop. */
  every?(milliseconds: number, work: () => Promise<void>): () => void
}

export interface Fellow {
  readonly id: ReplicaId
  /** Whether another still runs; true also while nobody can say. */
  isLive(id: ReplicaId): Promise<boolean>
}

/** How often a process says which of its requests still run: an answer may take many hours. */
const renewMs = 5 * 60 * 1000
const freeRetryMs = 2000
/** Where the row does not say whose it is: three times renewed in vain, and some, means that its process has died. */
const silentMaxMs = 20 * 60 * 1000
/** Larger answers are not kept. */
const bodyBytesMax = 256 * 1024

export function createReplays(options: ReplaysOptions): Replays {
  const { database, clock, sealKey, previousSealKey, isCharged, replica, every = onTimer } = options
  /** On the embedded engine whatever is not in here does not run: there is no other process. */
  const running = new Map<RequestId, KeyedGeneration>()
  /** Came to nothing, and their rows are still there. */
  const unfreed = new Map<RequestId, KeyedGeneration>()

  async function isDead({
    request_id: requestId,
    response: owner,
    expires_at: expiresAt,
  }: ReplayRow): Promise<boolean> {
    if (running.has(requestId)) return false
    if (database.engine === 'sqlite' || (replica && owner === replica.id)) return true
    if (replica && owner !== null) return !(await replica.isLive(owner as ReplicaId))
    return clock.now() - (timeFromSql(expiresAt) - lifetimeMs) > silentMaxMs
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
  async function freeAll(): Promise<void> {
    for (const [requestId, request] of [...unfreed]) {
      await removeReplay(database, request)
      unfreed.delete(requestId)
    }
  }
  const stops = [every(renewMs, renew), every(freeRetryMs, freeAll)]

  /** Counted as running before its row can be seen: a twin in this process would take it for dead. */
  async function enter(request: KeyedGeneration): Promise<ReplayRow | 'claimed' | undefined> {
    const { requestId } = request
    running.set(requestId, request)
    let found: ReplayRow | 'claimed' | undefined
    try {
      found = await database.transaction((sql) => insertOrRead(sql, { request, owner: replica?.id, now: clock.now() }))
      return found
    } finally {
      if (found !== 'claimed') running.delete(requestId)
    }
  }

  async function claim(request: KeyedGeneration): Promise<ReplayClaim> {
    const found = await enter(request)
    if (found === 'claimed') return { kind: 'claimed' }
    // It was freed between the two looks.
    if (found === undefined) return await claim(request)
    const requestId = found.request_id
    if (found.body_sha256 !== request.bodySha256) return { kind: 'conflict', requestId }
    if (found.state === 'done') return ended(request, found)
    if (!(await isDead(found))) return { kind: 'running', requestId }
    if (await isCharged(requestId)) {
      // It may have ended only now.
      const now = await readReplay(database.sql, request)
      return now?.state === 'done' && now.request_id === requestId ? ended(request, now) : { kind: 'spent', requestId }
    }
    await removeDead(database, request, found)
    return await claim(request)
  }

  function ended(request: KeyedGeneration, { request_id: requestId, response }: ReplayRow): ReplayClaim {
    if (response === null) return { kind: 'spent', requestId }
    const binding = bindingOf(request)
    const body = open(sealKey, response, binding) ?? (previousSealKey && open(previousSealKey, response, binding))
    assert(body, 'a stored answer opens with the secret it was sealed with')
    return { kind: 'answered', requestId, body }
  }

  return {
    claim,
    async confirm({ key, requestId, ...scope }) {
      if (database.engine === 'sqlite') return true
      // Always another time than the one that was read with the row by whoever takes its request for dead.
      const [row] = await database.transaction((sql) => {
        return sql`UPDATE idempotency SET expires_at = expires_at + 1 WHERE scope = ${scopeOf(scope)} AND key = ${key}
          AND request_id = ${requestId} RETURNING key`
      }, 'at_once')
      return row !== undefined
    },
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
      unfreed.set(request.requestId, request)
      running.delete(request.requestId)
      await removeReplay(database, request).then(
        () => unfreed.delete(request.requestId),
        // It stays in the list; in this process the key can be used meanwhile.
        () => {},
      )
    },
    leave({ requestId }) {
      running.delete(requestId)
    },
    close() {
      for (const stop of stops) stop()
    },
  }
}

function onTimer(milliseconds: number, work: () => Promise<void>): () => void {
  // What fails is tried again the next time; until then the row is good for a while.
  const timer = setInterval(() => void work().catch(() => {}), milliseconds)
  timer.unref()
  return () => clearInterval(timer)
}

/** An answer copied to another key's row does not open. */
function bindingOf(request: KeyedGeneration): string {
  return JSON.stringify([scopeOf(request), request.key, request.bodySha256])
}
