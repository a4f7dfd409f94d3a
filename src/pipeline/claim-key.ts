// The caller's Idempotency-Key: the first request under it runs; later ones get its stored answer, or an error that says
// why they cannot. None is paid for twice.

import { createHash } from 'node:crypto'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { formatUsd, zeroNano } from '../kernel/money.ts'
import { storeUnavailable } from '../store/sql-error.ts'
import { type GenerationClaim, generationScope, type KeyedRequest, type RequestKeys } from '../tenancy/idempotency.ts'
import { type AnswerHeaders, requestIdHeaders } from './answer.ts'
import type { Exchange } from './exchange.ts'
import { type Admitted, type Held, Refusal } from './stages.ts'

const keyMax = 255
const retryMs = 1_000

/** Claims the caller's key. Returns undefined if the request may run, or the stored answer of the one that has run. */
export async function claimKey(
  idempotencyKeys: RequestKeys,
  { exchange, caller, content, limits }: Admitted,
  key: string,
): Promise<Buffer | Refusal | undefined> {
  const { record, http } = exchange
  if (key.length > keyMax || key === '') {
    const message = `The header \`idempotency-key\` must have 1 to ${keyMax} characters.`
    return new Refusal(invalidRequest(message, 'idempotency-key'), limits)
  }
  const bodySha256 = createHash('sha256').update(record.path).update('\n').update(content.body).digest('hex')
  const keyed: KeyedRequest = { scope: generationScope(caller.workspaceId), key, bodySha256, requestId: record.id }
  const claim = await idempotencyKeys.claim(keyed)
  if (claim.kind === 'claimed') {
    exchange.key = keyed
    return undefined
  }
  if (claim.kind === 'answered') return claim.body
  return new Refusal(claim.kind === 'unavailable' ? storeUnavailable() : refusedKey(claim, http.method), limits)
}

/** Confirms the claim once the hold is visible to other replicas and nothing has been sent. */
export async function confirmKey(
  idempotencyKeys: RequestKeys,
  key: KeyedRequest,
  { limits }: Held,
): Promise<Refusal | undefined> {
  if (await idempotencyKeys.confirm(key)) return undefined
  // This process was unresponsive for so long that another replica took it for dead.
  const message =
    'Another request has taken over this idempotency key, because this one was suspended for too long. Retry in 1 s.'
  return new Refusal(new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: retryMs }), limits)
}

function refusedKey(
  { kind, requestId }: Exclude<GenerationClaim, { kind: 'claimed' | 'answered' | 'unavailable' }>,
  method: string,
): Failure {
  const param = 'idempotency-key'
  switch (kind) {
    case 'running':
      return new Failure(
        'LIMIT_EXCEEDED',
        `Request ${requestId} has not ended yet under this idempotency key: it still runs, or its charge is still being confirmed. Retry in 1 s.`,
        { retryAfterMs: retryMs },
      )
    case 'conflict':
      return invalidRequest(
        `This idempotency key was used by request ${requestId} with another body. Use a new key for a new ${method}.`,
        param,
      )
    case 'spent':
      return invalidRequest(
        `Request ${requestId} was answered under this idempotency key, and its answer was not kept: it was streamed, has more than 256 KiB, or the gateway ended before it was stored. It is not generated again; use a new key.`,
        param,
      )
  }
}

export function replayHeaders({ record }: Exchange): AnswerHeaders {
  return {
    ...requestIdHeaders(record.id),
    'content-type': 'application/json',
    'x-tollgate-replayed': 'true',
    'x-tollgate-cost': formatUsd(zeroNano),
  }
}
