// Answers under an idempotency key, so that a retry gets the first answer and nothing is done or paid for twice. A
// management call claims and completes its key in the transaction of its work. A generation runs for longer than a
// transaction: its key is taken until the request ends, and other replicas judge whether its process still lives.
// Answers may contain secrets, so they are stored encrypted.

import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { ReplicaId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import { type Every, OutOfTime, onTimer, withinTime } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { abandonKey, claimKey, completeKey, type KeyRow, keyLifetimeMs, readKey } from '../store/idempotency.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { CommitUnknown } from '../store/sql-error.ts'
import { open, seal } from './sealing.ts'

export interface KeyedRequest {
  readonly scope: string
  readonly key: string
  /** Hash of everything that decides the work. */
  readonly bodySha256: string
  readonly requestId: RequestId
}

/** `previous` belongs to the master secret that is being rotated out: it only decrypts. */
export interface SealKeys {
  /** 32 bytes. */
  readonly current: Uint8Array
  readonly previous?: Uint8Array | undefined
}

function sealAnswer({ current }: SealKeys, request: KeyedRequest, body: Uint8Array): string {
  return seal(current, Buffer.from(body), bindingOf(request))
}

function openAnswer({ current, previous }: SealKeys, request: KeyedRequest, sealed: string): Buffer {
  const binding = bindingOf(request)
  const body = open(current, sealed, binding) ?? (previous && open(previous, sealed, binding))
  assert(body, 'a stored answer opens with the secret it was sealed with')
  return body
}

/** An answer copied to another key's row does not open. */
function bindingOf({ scope, key, bodySha256 }: KeyedRequest): string {
  return JSON.stringify([scope, key, bodySha256])
}

export interface StoredAnswer {
  readonly status: number
  readonly body: string
}

export type KeyClaim =
  /** `complete` must follow in this transaction, or a rollback. */
  | { readonly kind: 'claimed' }
  | { readonly kind: 'answered'; readonly answer: StoredAnswer }
  /** The key was used for something else. */
  | { readonly kind: 'conflict' }

export type Idempotency = ReturnType<typeof createIdempotency>

/** For work that is done in one transaction. */
export function createIdempotency(keys: SealKeys) {
  return {
    /** Call first in the transaction. Waits for the same key in another process, and returns its answer. */
    async claim(sql: Sql, request: KeyedRequest, now: number): Promise<KeyClaim> {
      const found = await claimKey(sql, request, now)
      if (found === 'claimed') return { kind: 'claimed' }
      assert(found, 'a key that cannot be claimed has a row')
      if (found.body_sha256 !== request.bodySha256) return { kind: 'conflict' }
      const body = openAnswer(keys, request, found.response ?? '').toString()
      return { kind: 'answered', answer: { status: Number(found.status), body } }
    },
    /** Call last in the transaction. */
    complete: (sql: Sql, request: KeyedRequest, { status, body }: StoredAnswer): Promise<void> =>
      completeKey(sql, request, { status, response: sealAnswer(keys, request, Buffer.from(body)) }),
  }
}

export type GenerationClaim =
  /** The key belongs to this request until `complete`, `abandon` or `leaveUnresolved`. */
  | { readonly kind: 'claimed' }
  | { readonly kind: 'answered'; readonly requestId: RequestId; readonly body: Buffer }
  /** Answered and paid for, but the answer was not stored. */
  | { readonly kind: 'spent'; readonly requestId: RequestId }
  | { readonly kind: 'running'; readonly requestId: RequestId }
  /** The key was used with another body. */
  | { readonly kind: 'conflict'; readonly requestId: RequestId }
  /** The database hangs. If the key is claimed later, it is freed. */
  | { readonly kind: 'unavailable' }

export type GenerationKeys = ReturnType<typeof createGenerationKeys>

/** What a request needs of the keys: those of callers, or of the lines of batches. */
export interface RequestKeys
  extends Pick<GenerationKeys, 'claim' | 'confirm' | 'complete' | 'abandon' | 'leaveUnresolved'> {
  /**
   * Keeps a whole answer before it is charged; absent = it is kept after that. False = another one was kept under the key, and
   * this one must not be charged.
   */
  keep?(request: KeyedRequest, answer: Uint8Array): Promise<boolean>
}

export interface GenerationKeysOptions {
  readonly database: Database
  readonly clock: Clock
  readonly keys: SealKeys
  /** Whether a request has been charged: then its key is spent, even if its process died. */
  isCharged(requestId: RequestId): Promise<boolean>
  /** This process among several on one database. undefined: the embedded engine, which has one process. */
  readonly replica?: ReplicaLiveness | undefined
  readonly every?: Every
  /** For tests: how long a claim waits for the database. */
  readonly claimMaxMs?: number
}

export interface ReplicaLiveness {
  readonly id: ReplicaId
  /** Whether another one still runs; true also while that is unknown. */
  isReplicaLive(id: ReplicaId): Promise<boolean>
}

/** Keeps the rows of requests that run for longer than a key lives. */
const renewMs = 5 * 60 * 1000
const endRetryMs = 2000
/** As long as a hold waits. */
const usualClaimMaxMs = 5000
/** Larger answers are not stored. */
const bodyBytesMax = 256 * 1024

export function generationScope(workspaceId: WorkspaceId): string {
  return `generation:${workspaceId}`
}

/** Deletes every stored answer of a workspace, inside the caller's transaction. */
export async function deleteGenerationKeys(sql: Sql, workspaceId: WorkspaceId): Promise<void> {
  await sql`DELETE FROM idempotency WHERE scope = ${generationScope(workspaceId)}`
}

/** For generations. Their keys have the scope `generationScope`. */
export function createGenerationKeys(options: GenerationKeysOptions) {
  const { database, clock, keys, isCharged, replica, every = onTimer, claimMaxMs = usualClaimMaxMs } = options
  const running = new Map<RequestId, KeyedRequest>()
  /** What ends the keys of requests that have ended, where it is not committed yet. */
  const ending = new Map<RequestId, (sql: Sql) => Promise<void>>()
  /** Claims that nobody waits for any more and that still run. */
  let lateClaims = 0

  async function isDead({ request_id: requestId, response: owner }: KeyRow): Promise<boolean> {
    if (running.has(requestId as RequestId)) return false
    // A request of this process that is not in the map has ended.
    if (!replica || owner === null || owner === replica.id) return true
    return !(await replica.isReplicaLive(owner as ReplicaId))
  }

  async function renew(): Promise<void> {
    const expiresAt = timeToSql(clock.now() + keyLifetimeMs)
    for (const { scope, key, requestId } of [...running.values()]) {
      await database.transaction((sql) => {
        return sql`UPDATE idempotency SET expires_at = ${expiresAt}
          WHERE scope = ${scope} AND key = ${key} AND request_id = ${requestId} AND state = 'running'`
      })
    }
  }
  async function endAll(): Promise<void> {
    for (const requestId of [...ending.keys()]) await endKey(requestId)
  }
  async function endKey(requestId: RequestId): Promise<void> {
    const end = ending.get(requestId)
    if (!end) return
    await database.transaction(end)
    ending.delete(requestId)
  }
  // A round that fails is tried again by the next one. The row lives longer than the time between two rounds.
  const stops = [every(renewMs, () => renew().catch(() => {})), every(endRetryMs, () => endAll().catch(() => {}))]

  /** In the map before its row is visible, or the same key in this process would take it for dead. */
  async function enter(request: KeyedRequest): Promise<KeyRow | 'claimed' | undefined> {
    running.set(request.requestId, request)
    let found: KeyRow | 'claimed' | undefined
    try {
      found = await database.transaction((sql) => claimKey(sql, { ...request, owner: replica?.id }, clock.now()))
      return found
    } finally {
      if (found !== 'claimed') running.delete(request.requestId)
    }
  }

  async function claim(request: KeyedRequest): Promise<GenerationClaim> {
    const found = await enter(request)
    if (found === 'claimed') return { kind: 'claimed' }
    // It was freed between the two statements.
    if (found === undefined) return await claim(request)
    const requestId = found.request_id as RequestId
    if (found.body_sha256 !== request.bodySha256) return { kind: 'conflict', requestId }
    if (found.state === 'done') return ended(request, found)
    if (!(await isDead(found))) return { kind: 'running', requestId }
    if (await isCharged(requestId)) {
      // It may have been completed in the meantime.
      const now = await readKey(database.sql, request)
      if (now?.state === 'done' && now.request_id === requestId) return ended(request, now)
      // Its answer is about to be stored, or is lost with its process.
      return { kind: ending.has(requestId) ? 'running' : 'spent', requestId }
    }
    // Only the row that was read: one that was confirmed or renewed since then is checked again.
    await database.transaction((sql) => {
      return sql`DELETE FROM idempotency WHERE scope = ${request.scope} AND key = ${request.key}
        AND request_id = ${requestId} AND state = 'running' AND expires_at = ${found.expires_at}`
    })
    return await claim(request)
  }

  /** A client must not wait for as long as a disk or a database hangs. */
  async function claimInTime(request: KeyedRequest): Promise<GenerationClaim> {
    // It would wait as they do.
    if (lateClaims > 0) return { kind: 'unavailable' }
    const claiming = claim(request)
    try {
      return await withinTime(claimMaxMs, claiming)
    } catch (thrown) {
      const freed = freeAfter(claiming, request)
      if (!(thrown instanceof OutOfTime)) throw thrown
      lateClaims++
      void freed.finally(() => lateClaims--)
      return { kind: 'unavailable' }
    }
  }

  /** Frees what a claim of a request that has ended takes, or may have taken. */
  async function freeAfter(claiming: Promise<GenerationClaim>, request: KeyedRequest): Promise<void> {
    const end = await claiming.catch((thrown: unknown) => thrown)
    const isUnconfirmed = end instanceof CommitUnknown
    if (isUnconfirmed || (end as GenerationClaim).kind === 'claimed') await abandon(request, isUnconfirmed)
  }

  /** `isUnconfirmed`: the commit of its claim was sent and not confirmed, so that it may still come. */
  async function abandon(request: KeyedRequest, isUnconfirmed = false): Promise<void> {
    ending.set(request.requestId, async (sql) => {
      // Waits for the transaction that claims it, which other statements do not see.
      if (isUnconfirmed) await claimKey(sql, request, clock.now())
      await abandonKey(sql, request)
    })
    running.delete(request.requestId)
    // Retried by the timer. In this process the key can be used meanwhile.
    await endKey(request.requestId).catch(() => {})
  }

  function ended(request: KeyedRequest, { request_id, response }: KeyRow): GenerationClaim {
    const requestId = request_id as RequestId
    if (response === null) return { kind: 'spent', requestId }
    return { kind: 'answered', requestId, body: openAnswer(keys, request, response) }
  }

  return {
    claim: claimInTime,
    /**
     * Whether the key still belongs to this request. Call it once other replicas can see its hold, from which they know
     * that it runs: a process that was suspended before that may have been considered dead.
     */
    async confirm({ scope, key, requestId }: KeyedRequest): Promise<boolean> {
      if (database.engine === 'sqlite') return true
      // Changes the time, so that a process that has read the row and considers its request dead does not delete it.
      const [row] = await database.transaction((sql) => {
        return sql`UPDATE idempotency SET expires_at = expires_at + 1
          WHERE scope = ${scope} AND key = ${key} AND request_id = ${requestId} RETURNING key`
      }, 'at_once')
      return row !== undefined
    },
    /**
     * The request was answered and paid for. Without a body, or with a large one, the key is spent. If this rejects, it is
     * tried again; until then the ledger knows that the key was used.
     */
    async complete(request: KeyedRequest, body: Uint8Array | undefined): Promise<void> {
      const response = body && body.length <= bodyBytesMax ? sealAnswer(keys, request, body) : null
      const end = (sql: Sql) => completeKey(sql, request, { response })
      try {
        await database.transaction(end)
      } catch (thrown) {
        ending.set(request.requestId, end)
        throw thrown
      } finally {
        // Left in the map, the key would be renewed without end.
        running.delete(request.requestId)
      }
    },
    /** The request failed and cost nothing: the key is free again. Never rejects; retries until the row is deleted. */
    abandon: (request: KeyedRequest): Promise<void> => abandon(request),
    /** The request has ended and its charge is unknown: the key stays taken, and the next claim asks the ledger. */
    leaveUnresolved({ requestId }: KeyedRequest): void {
      running.delete(requestId)
    },
    close(): void {
      for (const stop of stops) stop()
    },
  }
}
