// A reply that was not read from a connection: what a provider's batch has answered to the same request. The request is rendered
// again for its lane, which reads the result as it reads a whole reply, so that everything that follows is the same.

import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { describeFault, Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import { type AttemptFault, cannotCarry, classifyFault, isBilled } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import type { Reply, WholeReply } from './attempt.ts'
import { acceptReply } from './attempt-routes.ts'
import { type LaneDependencies, openLane } from './lanes.ts'
import { Meter } from './meter.ts'
import type { Held } from './stages.ts'

/** What the provider answered, with its HTTP status; a Failure, if there is no answer. */
export type StoredResult = { readonly status: number; readonly body: Uint8Array<ArrayBuffer> } | Failure

export interface StoredResultDependencies extends LaneDependencies {
  readonly clock: Clock
}

export function replyOfResult(deps: StoredResultDependencies, held: Held, result: StoredResult): Reply | Failure {
  if (result instanceof Failure) return result
  const { exchange, admitted } = held
  const { model, content, plan } = admitted
  const [candidate] = plan.ordered
  if (!candidate) return noBatchRoute(model.id)
  const attempt = exchange.attempts.begin(candidate)
  const meter = new Meter(held, candidate)
  held.hold.markSent()
  attempt.markSent(meter)
  const reply = readResult(deps, { held, candidate, meter }, result)
  if ('kind' in reply) {
    exchange.attempts.end(attempt, 'ok')
    return acceptReply(held, reply)
  }
  exchange.attempts.end(attempt, describeFault(reply), isBilled(reply) ? meter : undefined)
  const exhausted = new Exhausted([{ candidate, fault: reply, calls: 1 }])
  return exhaustedFailure(model.id, exhausted, 'UNAVAILABLE', () => content.inputTokens())
}

export function noBatchRoute(id: string): Failure {
  const message = `\`${id}\` can no longer run in batches of its provider: the operator has changed its route or its price. Nothing was charged. Send the request in a new batch.`
  return new Failure('NOT_FOUND', message, { shouldRetry: false, cause: 'no_route' })
}

interface Sent {
  readonly held: Held
  readonly candidate: Candidate
  readonly meter: Meter
}

function readResult(
  deps: StoredResultDependencies,
  { held, candidate, meter }: Sent,
  { status, body }: Exclude<StoredResult, Failure>,
): WholeReply | AttemptFault {
  const lane = openLane(deps, held, candidate, meter)
  if (lane instanceof Failure) return cannotCarry(lane)
  if (status < 200 || status > 203) {
    const said = candidate.dialect.readFault(status, new Headers(), new TextDecoder().decode(body))
    return classifyFault(said, lane.body)
  }
  const read = lane.relayReply(body)
  if ('fault' in read) return classifyFault(read.fault, lane.body)
  const { name, warnings } = lane
  const repliedMs = deps.clock.monotonicMs()
  return { kind: 'whole', candidate, lane: name, warnings, meter, repliedMs, body: read.body, usage: read.usage }
}
