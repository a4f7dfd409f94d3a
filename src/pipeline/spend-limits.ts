// Spend limits of key, project and workspace, as the ledger counts them: budgets of the day and the month that a hold
// must fit into. Running into one is a limit, not a lack of money.

import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import { type Budget, dayWindow, monthWindow, type OverBudget, windowEnd } from '../ledger/budget.ts'
import type { Caller } from '../tenancy/caller.ts'

/** undefined = none: most callers have no spend limit, and cost nothing here. */
export function budgetsOf({ limits }: Caller, clock: Clock): readonly Budget[] | undefined {
  let budgets: Budget[] | undefined
  for (const { id, limits: of } of limits) {
    if (of.spendPerDay !== undefined) {
      budgets = [...(budgets ?? []), { scopeId: id, window: dayWindow(clock.now()), cap: of.spendPerDay }]
    }
    if (of.spendPerMonth !== undefined) {
      budgets = [...(budgets ?? []), { scopeId: id, window: monthWindow(clock.now()), cap: of.spendPerMonth }]
    }
  }
  return budgets
}

/** `inFlightRetryMs`: given where it is only running requests that leave too little, and one of them may soon end. */
export function overBudget(
  { keyName, limits }: Caller,
  { scopeId, window, spent, held, cap }: OverBudget,
  now: number,
  inFlightRetryMs?: number,
): Failure {
  const scope = limits.find(({ id }) => id === scopeId)
  const whose = scope && scope.kind !== 'key' ? ` (limit of ${scope.kind} "${scope.name}")` : ''
  const period = window.startsWith('day:') ? 'day' : 'month'
  const limit = `$${formatUsd(cap)} per ${period}${whose}`
  if (inFlightRetryMs !== undefined) {
    const message = `Key "${keyName}" has used $${formatUsd(spent)} of ${limit}, and running requests hold $${formatUsd(held)}; this one does not fit beside them. Retry in ${inFlightRetryMs / 1000} s.`
    return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: inFlightRetryMs, shouldRetry: true })
  }
  const retryAfterMs = Math.max(1000, (windowEnd(window) ?? now) - now)
  const used = formatUsd((spent + held) as Nano)
  const message = `Key "${keyName}" has used $${used} of ${limit}; this request does not fit. The ${period} ends in ${duration(retryAfterMs)} (UTC). Raise the limit: console → Keys, or \`tollgate limits put\`.`
  // Official clients disagree on waits this long, so they are told not to try by themselves.
  return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs, shouldRetry: false })
}

function duration(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / 60_000)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`
}
