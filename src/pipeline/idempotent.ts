// A caller's Idempotency-Key: the first request under it runs, every later one gets what the first one got, or is told
// why it cannot. None is paid for twice.

import { createHash } from 'node:crypto'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { formatUsd, zeroNano } from '../kernel/money.ts'
import {
  type GenerationClaim,
  type GenerationKeys,
  generationScope,
  type KeyedRequest,
} from '../tenancy/idempotency.ts'
import type { AnswerHeaders } from './answer-headers.ts'
import type { Call } from './call.ts'
import type { KeptKey } from './story.ts'

const keyMax = 255
const twinRetryMs = 1_000

export interface ClaimedKey {
  readonly kept: KeptKey
  /** Why the request must not run after all, asked when it is held for and nothing has been sent. */
  confirm(): Promise<Failure | undefined>
}

/** The key's request if it is ours to run, the stored answer, or why neither. */
export async function claimKey(
  keys: GenerationKeys,
  call: Call,
  key: string,
): Promise<ClaimedKey | { readonly body: Buffer } | Failure> {
  const { story, request, envelope } = call
  const { caller, id, path } = story.record
  if (key.length > keyMax || key === '' || !caller) {
    return invalidRequest(`The header \`idempotency-key\` must have 1 to ${keyMax} characters.`, 'idempotency-key')
  }
  const bodySha256 = createHash('sha256').update(path).update('\n').update(envelope.body).digest('hex')
  const keyed: KeyedRequest = { scope: generationScope(caller.workspaceId), key, bodySha256, requestId: id }
  const claim = await keys.claim(keyed)
  if (claim.kind === 'claimed') {
    return {
      kept: {
        keep: (body) => keys.complete(keyed, body),
        free: () => keys.abandon(keyed),
        leave: () => keys.leaveUnresolved(keyed),
      },
      confirm: async () => ((await keys.confirm(keyed)) ? undefined : overtaken()),
    }
  }
  if (claim.kind === 'answered') return { body: claim.body }
  return refusedKey(claim, request.method)
}

function refusedKey(
  { kind, requestId }: Exclude<GenerationClaim, { kind: 'claimed' | 'answered' }>,
  method: string,
): Failure {
  const param = 'idempotency-key'
  switch (kind) {
    case 'running':
      return new Failure(
        'LIMIT_EXCEEDED',
        `Request ${requestId} has not ended yet under this idempotency key: it still runs, or its charge is still being confirmed. Retry in 1 s.`,
        { retryAfterMs: twinRetryMs },
      )
    case 'conflict':
      return invalidRequest(
        `This idempotency key was used by request ${requestId} with another body. Use a new key for a new ${method}.`,
        param,
      )
    case 'spent':
      return invalidRequest(
        `Request ${requestId} was answered under this idempotency key, and its answer was not kept (streamed, or over 256 KiB). It is not generated again; use a new key.`,
        param,
      )
  }
}

/** This process said nothing for so long that the others thought it dead. */
function overtaken(): Failure {
  const message = 'Another request has taken over this idempotency key, since this one stood still. Retry in 1 s.'
  return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: twinRetryMs })
}

/** The headers of an answer that was given before. */
export function replayHeaders(headers: AnswerHeaders): AnswerHeaders {
  headers['content-type'] = 'application/json'
  headers['x-tollgate-replayed'] = 'true'
  headers['x-tollgate-cost'] = formatUsd(zeroNano)
  return headers
}
