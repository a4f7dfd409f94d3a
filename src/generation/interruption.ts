// What a client is told of an answer that did not come to its end.

import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'

export interface Interruption {
  readonly provider: string
  /** What the provider did. */
  readonly how: string
  /** Of output, as they are billed. */
  readonly tokens: number
  readonly requestId: RequestId
}

export function interruption({ provider, how, tokens, requestId }: Interruption): Failure {
  const after = tokens > 0 ? ` after ${tokens} output token${tokens === 1 ? '' : 's'}` : ''
  const message = `Provider ${provider} ${how}${after}; what came before is all there is. Request ${requestId}.`
  return new Failure('STREAM_INTERRUPTED', message)
}

/** What was charged for an answer that did not come to its end stands beside the reason. */
export function withCost(failure: Failure, cost: string | undefined): Failure {
  if (cost === undefined) return failure
  return new Failure(failure.code, failure.message, { ...failure.facts, metadata: { cost } })
}
