// The budgets of a request: the spend limits of its key, project and workspace that it is a subject of, each with its current
// window. Most depend on the caller and the model alone, and are made once a day.

import { hashOfEndUser } from '../kernel/attribution.ts'
import type { Clock } from '../kernel/clock.ts'
import { matchesModel, type SpendFacts, type SpendLimit, scopesOf, subjectKinds } from '../kernel/spend-limit.ts'
import { type Budget, type BudgetState, windowAt } from '../ledger/budget.ts'
import type { OfferedModel } from '../routing/plan.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import type { Caller } from '../tenancy/caller.ts'

/** A budget, and what its limit does besides refusing: the ledger does not know that. */
export interface LimitBudget extends Budget, Pick<SpendLimit, 'then' | 'slowDown'> {}

/** And what counted against it when the hold was granted. */
export interface LimitUse extends LimitBudget, BudgetState {}

type Attributed = Partial<Pick<RequestRecord, 'endUser' | 'tags'>>
type Models = readonly Pick<OfferedModel, 'id'>[] | undefined

const dayMs = 86_400_000
/** Callers may name any combination of models. */
const keptMax = 100

/** Budgets of one caller that are the same for all its requests of a day by the same models. */
interface Kept {
  readonly day: number
  readonly byModels: Map<string, readonly LimitBudget[]>
  /** Whether limits of end users or tags have to be looked at. */
  readonly hasAttributed: boolean
}

const keptOf = new WeakMap<Caller, Kept>()

/** undefined = none, as for most callers. `models`: those that may answer; absent = any. */
export function budgetsOf(
  caller: Caller,
  clock: Clock,
  attributed: Attributed = {},
  models?: Models,
): readonly LimitBudget[] | undefined {
  if (caller.limits.length === 0) return undefined
  const now = clock.now()
  const day = Math.floor(now / dayMs)
  let kept = keptOf.get(caller)
  if (kept?.day !== day) {
    kept = { day, byModels: new Map(), hasAttributed: limitsOf(caller, now).some(([, limit]) => isAttributed(limit)) }
    keptOf.set(caller, kept)
  }
  const key =
    models === undefined ? '' : models.length === 1 ? (models[0]?.id ?? '') : models.map(({ id }) => id).join(' ')
  let budgets = kept.byModels.get(key)
  if (budgets === undefined) {
    if (kept.byModels.size >= keptMax) kept.byModels.clear()
    budgets = makeBudgets(caller, now, {}, models, (limit) => !isAttributed(limit))
    kept.byModels.set(key, budgets)
  }
  if (kept.hasAttributed) {
    const further = makeBudgets(caller, now, attributed, models, isAttributed)
    if (further.length > 0) budgets = [...budgets, ...further]
  }
  return budgets.length === 0 ? undefined : budgets
}

function isAttributed({ subject: { kind } }: SpendLimit): boolean {
  return subjectKinds[kind].isOfRequest
}

/** Those that have begun, with their owner. `starts_at` is a day. */
function limitsOf({ limits }: Caller, now: number) {
  return limits.flatMap(({ id, limits: { spend = [], startsAt } }) =>
    startsAt !== undefined && startsAt > now ? [] : spend.map((limit) => [id, limit, startsAt] as const),
  )
}

function makeBudgets(
  caller: Caller,
  now: number,
  { endUser, tags = [] }: Attributed,
  models: Models,
  isWanted: (limit: SpendLimit) => boolean,
): readonly LimitBudget[] {
  const { person, groups = [] } = caller
  const groupIds = groups.map(({ id }) => id)
  const facts: SpendFacts = { endUser: endUser && hashOfEndUser(endUser), tags, personId: person?.id, groupIds }
  const budgets: LimitBudget[] = []
  for (const [owner, limit, startsAt] of limitsOf(caller, now)) {
    const { models: pattern, then, slowDown } = limit
    if (!isWanted(limit)) continue
    if (pattern !== undefined && models && !models.some((model) => matchesModel(pattern, model.id))) continue
    const window = windowAt(limit.window, now, startsAt)
    for (const scopeId of scopesOf(owner, limit, facts)) {
      addBudget(budgets, { scopeId, window, cap: limit.amount, then, slowDown })
    }
  }
  return budgets
}

/** A limit of each person and one of this person have one counter: the lower amount holds, and the slower pace. */
function addBudget(budgets: LimitBudget[], budget: LimitBudget): void {
  const at = budgets.findIndex(({ scopeId, window }) => scopeId === budget.scopeId && window === budget.window)
  const known = budgets[at]
  if (known === undefined) return void budgets.push(budget)
  const slowDown = Math.min(known.slowDown ?? Infinity, budget.slowDown ?? Infinity)
  const lower = budget.cap < known.cap ? budget : known
  budgets[at] = { ...lower, slowDown: slowDown === Infinity ? undefined : slowDown }
}
