// Why money refuses a request: the texts of errors about wallets and spend limits, and when to retry.

import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import { isRolling, parseScope, scopeTitle, slowShare } from '../kernel/spend-limit.ts'
import type { Insufficient } from '../ledger/account.ts'
import { type Budget, type OverBudget, periodOf, spendState, windowEnd } from '../ledger/budget.ts'
import { scopeTitles } from '../limits/limiter.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { LimitBudget, LimitUse } from './budgets.ts'
import { type Admitted, Refusal } from './stages.ts'

/** Running requests end one after another; about this long until one does. */
const inFlightRetryMs = 5_000

/** The wallet or the spend limit that has no room. */
export type Refused = Insufficient | OverBudget

interface Spendable {
  readonly amount: Nano
  readonly of: 'balance' | 'limit'
}

/** The amount that could be spent if no other request were running. */
export function spendableOf(refused: Refused): Spendable {
  if (refused.kind === 'insufficient') return { amount: refused.posted, of: 'balance' }
  const { cap, spent } = refused
  return { amount: (cap > spent ? cap - spent : 0n) as Nano, of: 'limit' }
}

export interface RefusalFacts {
  /** The least amount with which the request could be sent. */
  readonly needed: Nano
  /** The spend limit that refused. */
  readonly reached: LimitBudget | undefined
  /** Until enough has left a rolling window. */
  readonly leavesInMs: number | undefined
}

export function refusalOf(admitted: Admitted, refused: Refused, facts: RefusalFacts): Refusal {
  const { needed, reached, leavesInMs } = facts
  const { exchange, caller, limits } = admitted
  const isInFlight = needed <= spendableOf(refused).amount
  if (refused.kind === 'insufficient') return new Refusal(insufficient(caller, refused, needed, isInFlight), limits)
  const retryMs = isInFlight ? inFlightRetryMs : undefined
  const now = exchange.record.startedAt
  const endsAt = leavesInMs === undefined ? (windowEnd(refused.window, now) ?? now) : now + leavesInMs
  const failure = overBudget(caller, refused, needed, { now, endsAt, retryMs })
  const spend = () => ({ ...spendState(refused, now), isReached: true })
  return new Refusal(failure, isInFlight ? limits : { ...limits, spend }, reached)
}

function insufficient(caller: Caller, refused: Insufficient, needed: Nano, isInFlight: boolean): Failure {
  const { posted, held } = refused
  const metadata = {
    reason: isInFlight ? 'in_flight' : 'empty',
    balance: formatUsd(posted),
    held: formatUsd(held),
    needed: formatUsd(needed),
  }
  const workspace = caller.workspaceName
  if (!isInFlight) {
    const message = `Workspace "${workspace}" has $${metadata.balance}; this request needs at least $${metadata.needed}. Top up: console → Billing, or \`tollgate wallet topup\`. A shorter prompt or a lower \`max_tokens\` needs less.`
    return new Failure('INSUFFICIENT_BALANCE', message, { shouldRetry: false, metadata })
  }
  const free = formatUsd((posted - held) as Nano)
  const message = `$${metadata.held} of workspace "${workspace}" is held by running requests; this one needs at least $${metadata.needed}, and $${free} is free. Retry in ${inFlightRetryMs / 1000} s.`
  return new Failure('INSUFFICIENT_BALANCE', message, { shouldRetry: true, retryAfterMs: inFlightRetryMs, metadata })
}

export function cannotCharge(retryAfterMs: number): Failure {
  const message = 'Tollgate cannot record charges right now, so it takes no requests. Retry shortly.'
  return new Failure('OVERLOADED', message, { retryAfterMs })
}

/** `retryMs`: set if only running requests are in the way, one of which may end soon. */
function overBudget(
  caller: Caller,
  { scopeId, window, spent, held, cap }: OverBudget,
  needed: Nano,
  { now, endsAt, retryMs }: { readonly now: number; readonly endsAt: number; readonly retryMs: number | undefined },
): Failure {
  const { subject, limit, scope } = wordsOf(caller, { scopeId, window, cap })
  const rolls = isRolling(window)
  const metadata = {
    reason: retryMs === undefined ? 'limit' : 'in_flight',
    limit: formatUsd(cap),
    spent: formatUsd(spent),
    held: formatUsd(held),
    needed: formatUsd(needed),
  }
  if (retryMs !== undefined) {
    const message = `${subject} has used $${formatUsd(spent)} of ${limit}, and running requests hold $${formatUsd(held)}; this one needs at least $${metadata.needed}. Retry in ${retryMs / 1000} s.`
    return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: retryMs, shouldRetry: true, metadata })
  }
  const retryAfterMs = Math.max(1000, endsAt - now)
  const used = formatUsd((spent + held) as Nano)
  const wait = duration(retryAfterMs)
  const ending =
    needed > cap
      ? 'That is more than the whole limit, so waiting does not help. A shorter prompt or a lower `max_tokens` needs less.'
      : rolls
        ? `Enough of it is over in ${wait}.`
        : `The ${periodOf(window)} ends in ${wait} (UTC).`
  const message = `${subject} has used $${used} of ${limit}; this request needs at least $${metadata.needed}. ${ending} Raise the limit: console → ${limitPage(scope)}, or \`tollgate limits set\`.`
  // The official clients handle waits this long differently, so `x-should-retry` turns off their automatic retry.
  return new Failure('LIMIT_EXCEEDED', message, {
    retryAfterMs,
    shouldRetry: false,
    isSpendLimit: true,
    metadata,
    resetsAt: now + retryAfterMs,
  })
}

/** A spend limit in words: whose it is, and `$5.00 per day (limit of project "web")`. */
export function wordsOf({ keyName, limits, person, groups = [] }: Caller, { scopeId, window, cap }: Budget) {
  const limited = parseScope(scopeId)
  const scope = limits.find(({ id }) => id === limited.owner)
  const holder = scope ? `${scopeTitles[scope.kind]} "${scope.name}"` : `Key "${keyName}"`
  const label = limited.name === person?.id ? person?.email : groups.find(({ id }) => id === limited.name)?.name
  const subject = scopeTitle(limited, label) || (limited.models ? `${holder} with ${limited.models}` : holder)
  const owner = scope && !subject.startsWith(holder) ? ` (limit of ${scope.kind} "${scope.name}")` : ''
  const per = isRolling(window) ? `in any ${window}` : `per ${periodOf(window)}`
  return { subject, limit: `$${formatUsd(cap)} ${per}${owner}`, scope }
}

/** `needed`: what a batch will cost; `left`: what the limit leaves for it until it expires. */
export function batchOverBudget(
  caller: Caller,
  use: LimitUse,
  { needed, left, now }: { readonly needed: Nano; readonly left: Nano; readonly now: number },
): Failure {
  const { subject, limit, scope } = wordsOf(caller, use)
  const metadata = {
    reason: 'limit',
    limit: formatUsd(use.cap),
    spent: formatUsd(use.spent),
    needed: formatUsd(needed),
  }
  const message = `${subject} has used $${metadata.spent} of ${limit}. That leaves $${formatUsd(left)} for the 24 hours in which this batch may run, and it will cost up to about $${metadata.needed}. Raise the limit: console → ${limitPage(scope)}, or \`tollgate limits set\`. Fewer lines, or a lower \`max_tokens\` in them, need less.`
  const resetsAt = windowEnd(use.window, now) ?? now
  return new Failure('LIMIT_EXCEEDED', message, {
    ...{ retryAfterMs: Math.max(1000, resetsAt - now), shouldRetry: false, isSpendLimit: true, metadata, resetsAt },
  })
}

/** For the record of a request, which outlives addresses: people and groups by id. */
export function modelNote(caller: Caller, budget: LimitBudget, model: string): string {
  const { subject, limit } = wordsOf({ ...caller, person: undefined, groups: [] }, budget)
  return `${subject} reached the spend limit of ${limit}, so ${budget.then} is used instead of ${model}`
}

/** For the record, as well: what would not be used if the requested model failed. */
export function fallbackNote(caller: Caller, budget: Budget, models: readonly string[]): string {
  const { subject, limit } = wordsOf({ ...caller, person: undefined, groups: [] }, budget)
  return `${subject} has no room in the spend limit of ${limit}, so ${models.join(' and ')} ${models.length === 1 ? 'is not a fallback' : 'are no fallbacks'} of this request`
}

/** The spend limit is reached, and the model that it names cannot be used either. */
export function noOtherModel({ failure, limits }: Refusal, { message }: Failure): Refusal {
  const { code, facts } = failure
  return new Refusal(
    new Failure(code, `${failure.message} The model that the limit names cannot be used: ${message}`, facts),
    limits,
  )
}

/** The requests per minute that are left near the end of a spend limit are used up. */
export function slowedDown(caller: Caller, use: LimitUse, retryAfterMs: number): Failure {
  const { subject, limit } = wordsOf(caller, use)
  const [spent, seconds] = [formatUsd(use.spent), Math.max(1, Math.ceil(retryAfterMs / 1000))]
  const message = `${subject} has used $${spent} of ${limit}, which slows it down to ${use.slowDown} requests per minute from ${slowShare} % on. Retry in ${seconds} s.`
  return new Failure('LIMIT_EXCEEDED', message, {
    retryAfterMs,
    shouldRetry: true,
    metadata: { reason: 'slowed_down' },
  })
}

function limitPage(scope: Caller['limits'][number] | undefined): string {
  return scope?.kind === 'key' ? 'API keys' : 'Projects & limits'
}

function duration(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / 60_000)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`
}
