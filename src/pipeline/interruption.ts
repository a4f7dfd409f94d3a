// What a client is told of an answer that did not come to its end.

import type { ProviderFault } from '../dialects/canonical/faults.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { classifyFault, type FaultClass } from '../routing/fault.ts'

/** Why an answer ends before its end. */
export interface Cut {
  /** What the provider did, as the client is told. */
  readonly how: string
  /** Whether it is to blame is what its health makes of this. */
  readonly why: FaultClass
}

export const cuts = {
  closed: { how: 'closed the stream', why: 'broken' },
  broken: { how: 'broke off', why: 'broken' },
  endless: { how: 'sent an event without an end', why: 'garbled' },
  idle: { how: 'fell silent', why: 'timed out' },
  contentIdle: { how: 'sent only signs of life', why: 'timed out' },
  // The time is ours or the client's: a model that writes on, or a slow reader, says nothing about the provider.
  total: { how: 'took too long', why: 'had too little time' },
} as const satisfies Record<string, Cut>

/** It told of an error, by which it is judged; `isClosed`: as the last thing it said. */
export function reportedCut(fault: ProviderFault, isClosed: boolean): Cut {
  return { how: isClosed ? cuts.closed.how : 'reported an error', why: classifyFault(fault).class }
}

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
