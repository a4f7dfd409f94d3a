// Remembers the answer to a keyed request in the same transaction as its work, so that a retry after any failure gets
// the first answer and nothing is done twice. Answers may carry secrets and are sealed; the key's row never shows them.

import { assert } from '../kernel/assert.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { open, seal } from './envelope.ts'

export interface KeyedRequest {
  /** Where the key counts: the same key under another scope is another key. */
  readonly scope: string
  readonly key: string
  /** Of everything that decides the work. */
  readonly bodySha256: string
  /** For whoever looks into the table. */
  readonly requestId: string
}

export interface StoredAnswer {
  readonly status: number
  readonly body: string
}

export type KeyClaim =
  /** The key is ours in this transaction; `remember` must follow, or a rollback. */
  | { readonly kind: 'claimed' }
  | { readonly kind: 'answered'; readonly answer: StoredAnswer }
  /** The key was used for something else. */
  | { readonly kind: 'conflict' }

export interface Idempotency {
  /** First in the transaction. A twin in another process is waited for, and its answer is the answer. */
  claim(sql: Sql, request: KeyedRequest, now: number): Promise<KeyClaim>
  /** Last in the transaction. */
  remember(sql: Sql, request: KeyedRequest, answer: StoredAnswer): Promise<void>
}

const keyLifetimeMs = 24 * 60 * 60 * 1000

/** `previous` is of the master secret that a rotation leaves behind: it opens, and seals nothing. */
export function createIdempotency(sealKey: Uint8Array, previous?: Uint8Array): Idempotency {
  assert(sealKey.length === 32, 'a seal key has 32 bytes')
  return {
    async claim(sql, request, now) {
      const { scope, key, bodySha256, requestId } = request
      await sql`DELETE FROM idempotency WHERE scope = ${scope} AND key = ${key} AND expires_at <= ${timeToSql(now)}`
      const claimed = await sql`INSERT INTO idempotency (scope, key, body_sha256, state, request_id, expires_at)
        VALUES (${scope}, ${key}, ${bodySha256}, 'running', ${requestId}, ${timeToSql(now + keyLifetimeMs)})
        ON CONFLICT DO NOTHING RETURNING key`
      if (claimed.length === 1) return { kind: 'claimed' }
      const [row] = await sql<{ body_sha256: string; status: bigint; response: string }>`SELECT
        body_sha256, status, response FROM idempotency WHERE scope = ${scope} AND key = ${key}`
      assert(row, 'a key that cannot be claimed has a row')
      if (row.body_sha256 !== bodySha256) return { kind: 'conflict' }
      const binding = bindingOf(request)
      const body = open(sealKey, row.response, binding) ?? (previous && open(previous, row.response, binding))
      assert(body, 'a stored answer opens with the secret it was sealed with')
      return { kind: 'answered', answer: { status: Number(row.status), body: body.toString() } }
    },
    async remember(sql, request, { status, body }) {
      await sql`UPDATE idempotency SET state = 'done', status = ${BigInt(status)},
        response = ${seal(sealKey, Buffer.from(body), bindingOf(request))}
        WHERE scope = ${request.scope} AND key = ${request.key}`
    },
  }
}

/** An answer copied to another key's row does not open. */
function bindingOf({ scope, key, bodySha256 }: KeyedRequest): string {
  return JSON.stringify([scope, key, bodySha256])
}
