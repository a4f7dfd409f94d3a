// Holds a request within its spend limits. A limit without room may name another model: then that one is asked for, with its
// own limits. A limit that is nearly reached may slow its requests down. Neither is silent: the answer has a warning.

import { Failure } from '../kernel/failure.ts'
import { slowShare } from '../kernel/spend-limit.ts'
import { budgetName } from '../ledger/budget.ts'
import type { RateScope } from '../limits/limiter.ts'
import type { OfferedModel } from '../routing/plan.ts'
import type { Caller } from '../tenancy/caller.ts'
import { type AdmitDependencies, admitOther } from './admit.ts'
import { isStrict } from './answer.ts'
import type { LimitUse } from './budgets.ts'
import { type CheckPoliciesDependencies, checkPolicies } from './check-policies.ts'
import { type PlaceHoldDependencies, placeHold } from './place-hold.ts'
import { modelNote, noOtherModel, slowedDown } from './spend-refusals.ts'
import { type Admitted, type Held, Refusal } from './stages.ts'

export interface AtLimitsDependencies extends AdmitDependencies, CheckPoliciesDependencies, PlaceHoldDependencies {
  readonly settings: AdmitDependencies['settings'] & CheckPoliciesDependencies['settings']
}

/** A strict caller gets the model that it asked for, or the refusal. */
export async function holdWithinLimits(deps: AtLimitsDependencies, admitted: Admitted): Promise<Held | Refusal> {
  const tried: OfferedModel[] = []
  for (let current = admitted; ; ) {
    const placed = await holdRecalled(deps, current)
    if (!(placed instanceof Refusal)) return await slowDown(deps, placed)
    const { reached } = placed
    if (reached?.then === undefined || isStrict(admitted.exchange.http.headers)) return placed
    tried.push(current.model)
    const other = await admitOther(deps, current, reached.then)
    if (other instanceof Failure) return noOtherModel(placed, other)
    // Limits of key, project and workspace may lead in a circle.
    if (tried.includes(other.model)) return placed
    const { record } = admitted.exchange
    record.notes.push(modelNote(admitted.caller, reached, current.model.id))
    record.requestedModel = admitted.model.id
    const warning = { code: `model_by_spend_limit=${other.model.id}`, field: '/model' }
    // Another model may have other policies.
    const checked = await checkPolicies(deps, { ...other, warnings: [...admitted.warnings, warning] })
    if (checked instanceof Refusal) return checked
    current = checked
  }
}

/** With kept reasoning that one of its routes needs again: it is input that costs. */
async function holdRecalled(deps: PlaceHoldDependencies, admitted: Admitted): Promise<Held | Refusal> {
  await recallReasoning(admitted)
  return await placeHold(deps, admitted)
}

export async function recallReasoning({ keptReasoning, plan, content, exchange }: Admitted): Promise<void> {
  const speaksAnother = plan.ordered.some(({ dialect }) => dialect.id !== exchange.surface.id)
  if (keptReasoning && speaksAnother) await content.recallReasoning(keptReasoning)
}

// ── Slowing down ──

/** Counts the request among those that its nearly reached limits still admit per minute. */
async function slowDown({ limiter }: AtLimitsDependencies, held: Held): Promise<Held | Refusal> {
  const slowing = held.slowing.filter(isNearlyReached)
  if (slowing.length === 0) return held
  const { admitted, exchange } = held
  const { caller } = admitted
  const scopes = slowing.map((use) => slowScope(caller, use))
  const verdict = await limiter.admit(scopes, 0)
  if (verdict.kind === 'refused') {
    const use = slowing[scopes.indexOf(verdict.scope)] ?? slowing[0]
    exchange.record.limitSource = `${verdict.scope.kind} ${verdict.limit}`
    return new Refusal(slowedDown(caller, use as LimitUse, verdict.retryAfterMs), { ...held.limits, ...verdict.state })
  }
  // Only requests are counted, not how many run.
  verdict.end(0)
  const perMinute = Math.min(...slowing.map(({ slowDown: count }) => count ?? Number.POSITIVE_INFINITY))
  const warnings = [...admitted.warnings, { code: `slowed_by_spend_limit=${perMinute}_per_minute`, field: '' }]
  return { ...held, admitted: { ...admitted, warnings }, limits: { ...held.limits, ...verdict.state } }
}

function isNearlyReached({ slowDown: perMinute, spent, cap }: LimitUse): boolean {
  return perMinute !== undefined && spent * 100n >= cap * slowShare
}

/** The requests of the limit's subject are counted together, whichever keys they come with. */
function slowScope({ limits }: Caller, { scopeId, window, slowDown: requestsPerMinute }: LimitUse): RateScope {
  const owner = limits.find(({ id }) => scopeId.startsWith(id))
  const { kind = 'key', name = '' } = owner ?? {}
  return { kind, name, id: budgetName(scopeId, window), limits: { requestsPerMinute } }
}
