// A plan as people read it: who would be asked in which order and why, and who would not and for how long. It makes no
// attempt and changes nothing, so it may be asked at any time.

import type { Dialect } from '../dialects/dialect.ts'
import type { CandidateRecord } from '../telemetry/request-record.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { Candidate } from './candidate.ts'
import type { Health } from './health/health.ts'
import { exclusionReason } from './health/plan-reason.ts'
import type { HealthPlan } from './health/plan-with-health.ts'
import type { OfferedModel, WorkspaceOffer } from './offer.ts'

/** For the request's record: those that are tried, in order, then those that were left out. */
export function candidateRecords({ ordered, reasons, excluded }: HealthPlan<Candidate>): readonly CandidateRecord[] {
  const records = ordered.map((candidate, place) => recordOf(candidate, reasons[place] ?? ''))
  for (const { candidate, standing } of excluded) records.push(recordOf(candidate, exclusionReason(standing)))
  return records
}

function recordOf({ provider, route, why: endpointWhy }: Candidate, place: string): CandidateRecord {
  const why = endpointWhy === undefined ? place : `${place}, ${endpointWhy}`
  return { provider: provider.id, upstreamModel: route.upstreamModel, why }
}

export interface ExplainedCandidate extends CandidateRecord {
  /** 1 is tried first; undefined = it would not be tried now. */
  readonly place: number | undefined
  /** The dialect of the endpoint it would be called at. */
  readonly dialect: string
  readonly lane: 'bytes' | 'translation'
}

export interface PlanExplanation {
  readonly model: string
  /** Panic: no route is known to work, so all that are not parked are tried. */
  readonly mode: 'ordinary' | 'panic'
  readonly candidates: readonly ExplainedCandidate[]
}

export interface ExplainPlanInput {
  readonly offer: WorkspaceOffer
  readonly health: Pick<Health, 'plan'>
  readonly caller: Caller
  readonly model: OfferedModel
  readonly surface: Dialect
}

/** Where a request of this caller would go now. Among routes that share by weight, the order is one of many. */
export function explainPlan({ offer, health, caller, model, surface }: ExplainPlanInput): PlanExplanation {
  const plan = health.plan(offer.candidates(model, surface, caller), { policy: model.routing })
  const all = [...plan.ordered, ...plan.excluded.map(({ candidate }) => candidate)]
  const records = candidateRecords(plan)
  const candidates = all.map(({ dialect, provider, route }, at): ExplainedCandidate => {
    return {
      provider: provider.id,
      upstreamModel: route.upstreamModel,
      why: records[at]?.why ?? '',
      place: at < plan.ordered.length ? at + 1 : undefined,
      dialect: dialect.id,
      lane: dialect === surface ? 'bytes' : 'translation',
    }
  })
  return { model: model.id, mode: plan.mode, candidates }
}
