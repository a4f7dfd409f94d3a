// A wallet or a spend limit without room for the usual hold: smaller holds with strict bounds, or a refusal with the
// numbers and what to do.

import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import type { Insufficient } from '../ledger/account.ts'
import { type OverBudget, periodOf, spendState, splitScope, tightestSpend, windowEnd } from '../ledger/budget.ts'
import type { HoldOutcome, HoldRequest, Ledger } from '../ledger/ledger.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Caller } from '../tenancy/caller.ts'
import { boundedInputTokens, windowOf } from './estimate.ts'
import { isStrict } from './headers.ts'
import { Hold, type HoldFacts, holdAmount, holdsWithin, smallestHold } from './hold.ts'
import type { GatewayRequest } from './request.ts'

/** Running requests end one after another; about this long until one does. */
const inFlightRetryMs = 5_000

type Refused = Exclude<HoldOutcome, { kind: 'held' }>

/** Tries smaller holds, bounded strictly, that fit into the wallet or the spend limit that refused the usual one. */
export async function reserveOnLowBalance(
  ledger: Ledger,
  request: GatewayRequest,
  dearest: DearestModel,
  template: Omit<HoldRequest, 'amount'>,
  usualRequired: Nano,
  refused: Refused,
): Promise<Failure | undefined> {
  if (refused.kind === 'unavailable') return cannotCharge(refused.retryAfterMs)
  const inBody = boundedInputTokens(
    request.envelope.body,
    request.sentConversation(),
    windowOf(request.envelope, widest(dearest)),
  )
  const inputTokens = inBody + request.recalledBytes
  const { model, factsOf } = dearest
  const facts = { ...dearest.facts, minCap: minCapOf(request) }
  let last = refused
  // The wallet and each limit have their own room; repeat while another one with less room refuses.
  for (let room = spendableOf(refused); ; room = spendableOf(last)) {
    const amounts = holdsWithin(facts, inputTokens, room.amount)
    for (const hold of amounts) {
      const outcome = await ledger.hold({ ...template, amount: hold.amount, requiredFree: hold.amount })
      if (outcome.kind === 'held') {
        request.spend = outcome.budgets && tightestSpend(outcome.budgets)
        request.hold = new Hold(request.record.id, ledger, model, facts, { ...hold, within: room.of }, factsOf)
        return undefined
      }
      if (outcome.kind === 'unavailable') return cannotCharge(outcome.retryAfterMs)
      last = outcome
    }
    if (amounts.length > 0 && spendableOf(last).amount < room.amount) continue
    const bounded = amounts.at(-1)?.amount ?? neededAmount(facts, inputTokens)
    // For a long prompt the strict bound may exceed what the usual hold, an estimate, would have needed.
    const needed = usualRequired < bounded ? usualRequired : bounded
    return refusal(request, last, needed)
  }
}

/** The model for which most is held, and the facts of all that may answer if there are several. */
interface DearestModel {
  readonly model: OfferedModel
  readonly facts: HoldFacts
  readonly factsOf: ReadonlyMap<OfferedModel, HoldFacts> | undefined
}

/** The largest context window of those that may answer. */
function widest({ model, factsOf }: DearestModel): { readonly contextTokens: number | undefined } {
  const windows = [...(factsOf?.keys() ?? [model])].map(
    ({ contextTokens }) => contextTokens ?? Number.POSITIVE_INFINITY,
  )
  const most = Math.max(...windows)
  return { contextTokens: most === Number.POSITIVE_INFINITY ? undefined : most }
}

interface Spendable {
  readonly amount: Nano
  readonly of: 'balance' | 'limit'
}

/** The amount that could be spent if no other request were running. */
function spendableOf(refused: Insufficient | OverBudget): Spendable {
  if (refused.kind === 'insufficient') return { amount: refused.posted, of: 'balance' }
  const { cap, spent } = refused
  return { amount: (cap > spent ? cap - spent : 0n) as Nano, of: 'limit' }
}

/** With x-tollgate-strict the caller's cap is not lowered. A thinking budget must fit in any case. */
function minCapOf(request: GatewayRequest): number {
  if (isStrict(request.http.headers)) return Number.POSITIVE_INFINITY
  const budget = request.conversation()?.reasoning?.budgetTokens
  return budget === undefined ? 0 : budget + 1
}

function neededAmount(facts: HoldFacts, inputTokens: number): Nano {
  if (facts.minCap === 0) return smallestHold(facts, inputTokens).amount
  const cap = Math.min(facts.cap, facts.minCap)
  return holdAmount({ ...facts, holdsWholeCap: true }, inputTokens, cap).amount
}

// ── Refusals ──

function refusal(request: GatewayRequest, refused: Insufficient | OverBudget, needed: Nano): Failure {
  const { caller, record } = request
  const isInFlight = needed <= spendableOf(refused).amount
  if (refused.kind === 'over budget') {
    if (!isInFlight) request.spend = { ...spendState(refused), isReached: true }
    return overBudget(caller, refused, record.startedAt, isInFlight ? inFlightRetryMs : undefined)
  }
  const { posted, held } = refused
  const metadata = {
    reason: isInFlight ? 'in_flight' : 'empty',
    balance: formatUsd(posted),
    held: formatUsd(held),
    needed: formatUsd(needed),
  }
  const workspace = caller.workspaceName
  if (!isInFlight) {
    const message = `Workspace "${workspace}" has $${metadata.balance}; this request needs at least $${metadata.needed}. Top up: console → Wallet, or \`tollgate wallet topup\`. A shorter prompt or a lower \`max_tokens\` needs less.`
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

// ── Spend limits ──

/** `retryMs`: set if only running requests are in the way, one of which may end soon. */
function overBudget(
  { keyName, limits }: Caller,
  { scopeId, window, spent, held, cap }: OverBudget,
  now: number,
  retryMs: number | undefined,
): Failure {
  const { owner: ownerId, user, tag } = splitScope(scopeId)
  const scope = limits.find(({ id }) => id === ownerId)
  const isWithin = user !== undefined || tag !== undefined
  const subject = user !== undefined ? `End user ${user}` : tag !== undefined ? `The tag ${tag}` : `Key "${keyName}"`
  const owner = scope && (isWithin || scope.kind !== 'key') ? ` (limit of ${scope.kind} "${scope.name}")` : ''
  const period = periodOf(window)
  const limit = `$${formatUsd(cap)} per ${period}${owner}`
  if (retryMs !== undefined) {
    const message = `${subject} has used $${formatUsd(spent)} of ${limit}, and running requests hold $${formatUsd(held)}; this one does not fit beside them. Retry in ${retryMs / 1000} s.`
    return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: retryMs, shouldRetry: true })
  }
  const retryAfterMs = Math.max(1000, (windowEnd(window) ?? now) - now)
  const used = formatUsd((spent + held) as Nano)
  const message = `${subject} has used $${used} of ${limit}; this request does not fit. The ${period} ends in ${duration(retryAfterMs)} (UTC). Raise the limit: console → Keys, or \`tollgate limits put\`.`
  // The official clients handle waits this long differently, so `x-should-retry` turns off their automatic retry.
  return new Failure('LIMIT_EXCEEDED', message, {
    retryAfterMs,
    shouldRetry: false,
    isSpendLimit: true,
    resetsAt: now + retryAfterMs,
  })
}

function duration(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / 60_000)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`
}
