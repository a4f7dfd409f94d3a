// What a request would send to its route, without sending it: it is admitted, judged by the policies and rendered as any other.
// Nothing is held, recorded or charged: it takes the whole path once its provider's batch has answered (stored-result.ts).

import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from '../routing/plan.ts'
import { type AdmitDependencies, admit } from './admit.ts'
import { recallReasoning } from './at-limits.ts'
import { type CheckPoliciesDependencies, checkPolicies } from './check-policies.ts'
import type { ClientRequest } from './client-request.ts'
import { type Connection, Exchange } from './exchange.ts'
import { Hold } from './hold.ts'
import { type Lane, type LaneDependencies, openLane } from './lanes.ts'
import { Meter } from './meter.ts'
import { estimateAllTokens, type PlaceHoldDependencies, usualHold } from './place-hold.ts'
import { type Held, Refusal } from './stages.ts'
import { noBatchRoute } from './stored-result.ts'

export type PrepareRequest = (
  http: ClientRequest,
  surface: Dialect,
  path: string,
  connection: Connection,
) => Promise<PreparedRequest | Failure>

export interface PreparedRequest extends Pick<Lane, 'path' | 'headers' | 'body'> {
  readonly candidate: Candidate
}

export interface PrepareRequestDependencies
  extends AdmitDependencies,
    CheckPoliciesDependencies,
    PlaceHoldDependencies,
    LaneDependencies {
  readonly settings: AdmitDependencies['settings'] &
    CheckPoliciesDependencies['settings'] &
    LaneDependencies['settings']
}

export function createPrepareRequest(
  deps: PrepareRequestDependencies,
  readerOf: (surface: Dialect) => Dialect['readEnvelope'] = (surface) => surface.readEnvelope,
): PrepareRequest {
  const { clock, ratios, ledger, rooms } = deps
  return async (http, surface, path, connection) => {
    const exchange = new Exchange(clock, http, surface, path, connection)
    const admitted = await admit(deps, exchange, readerOf(surface), (asked, model) =>
      estimateAllTokens(asked, model, ratios),
    )
    if (admitted instanceof Refusal) return admitted.failure
    const checked = deps.settings.current.policies.length > 0 ? await checkPolicies(deps, admitted) : admitted
    if (checked instanceof Refusal) return checked.failure
    const { model, plan, caller, limits } = checked
    const [candidate] = plan.ordered
    if (!candidate) return noBatchRoute(model.id)
    await recallReasoning(checked)
    const { facts, usual } = usualHold(checked, model, plan.ordered, ratios)
    const place = { workspaceId: caller.workspaceId, budgets: undefined }
    const hold = new Hold(exchange.record.id, ledger, facts, usual, undefined, rooms, place)
    const held: Held = { exchange, admitted: checked, hold, limits, slowing: [], waitedMs: 0 }
    const lane = openLane(deps, held, candidate, new Meter(held, candidate))
    if (lane instanceof Failure) return lane
    return { candidate, path: lane.path, headers: lane.headers, body: lane.body }
  }
}
