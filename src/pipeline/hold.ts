// The hold: an upper estimate of a request's cost is reserved before anything is sent to a provider. A wallet or a spend
// limit with less room than that gets a smaller hold with strict bounds, or the request is refused with the numbers and
// what to do.

import { freePrice, hasRow } from '../catalog/price.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import type { Bucket } from '../kernel/usage.ts'
import type { Insufficient } from '../ledger/account.ts'
import { type Budget, dayWindow, monthWindow, type OverBudget, windowEnd } from '../ledger/budget.ts'
import { type HoldOutcome, type HoldRequest, type Ledger, usualHoldLifetimeMs } from '../ledger/ledger.ts'
import { requestTotalMs } from '../routing/failover.ts'
import type { Caller } from '../tenancy/caller.ts'
import {
  boundedInputTokens,
  expectedInputTokens,
  type HoldFacts,
  hasCacheMark,
  holdAmount,
  holdsWithin,
  type InputRatios,
  mayHaveAudio,
  mayNameRegion,
  parsedBytesMax,
  requiredFree,
  smallestHold,
} from './estimate.ts'
import { isStrict } from './headers.ts'
import { type GatewayRequest, Hold } from './request.ts'
import { outputCapOf } from './usage.ts'

export interface HoldDependencies {
  readonly ledger: Ledger
  readonly ratios: InputRatios
  readonly clock: Clock
}

/** Running requests end one after another; about this long until one does. */
const inFlightRetryMs = 5_000
/** The hold must outlive the request; a route may allow more time than the ledger's default lifetime. */
const lifetimeMarginMs = 5 * 60_000

/** Sets `request.hold`, or returns why nothing can be held. Synchronous with the embedded ledger and enough balance. */
export function hold(
  deps: HoldDependencies,
  request: GatewayRequest,
): Failure | undefined | Promise<Failure | undefined> {
  const facts = holdFacts(request)
  const template = holdRequest(request, budgetsOf(request.caller, deps.clock))
  const usual = holdAmount(facts, expectedTokens(request, deps.ratios), facts.cap)
  const required = requiredFree(facts, usual)
  const take = (outcome: HoldOutcome): Failure | undefined | Promise<Failure | undefined> => {
    if (outcome.kind !== 'held') return holdOnLowBalance(deps, request, facts, template, required, outcome)
    request.hold = new Hold(request.record.id, deps.ledger, request.model, facts, usual)
    return undefined
  }
  const outcome = deps.ledger.hold({ ...template, amount: usual.amount, requiredFree: required })
  return outcome instanceof Promise ? outcome.then(take) : take(outcome)
}

/** Expected input and maximum output, which count against token limits until the usage is known. */
export function estimateAllTokens(request: GatewayRequest, ratios: InputRatios): number {
  const { envelope, model } = request
  return expectedTokens(request, ratios) + outputCapOf(envelope, model) * envelope.choices
}

function expectedTokens(request: GatewayRequest, ratios: InputRatios): number {
  const { envelope, model } = request
  const parse = () => request.conversation()
  return expectedInputTokens(envelope.body, ratios.of(model.id), parse, model, request.mayHaveMedia)
}

/** Whether a request may use a bucket. The price of a token bucket that is not listed is held for every request. */
const conditionalBuckets: readonly (readonly [Bucket, mayUse: (request: GatewayRequest) => boolean])[] = [
  ['cache_write_1h', ({ envelope }) => hasCacheMark(envelope.body)],
  ['audio_input', mayContainAudio],
  ['audio_cache_read', mayContainAudio],
  ['audio_output', wantsAudio],
]

function holdFacts(request: GatewayRequest): HoldFacts {
  const { envelope, model, plan, mayHaveMedia } = request
  const isOwnOnly = plan.ordered.length > 0 && plan.ordered.every(({ isOwn }) => isOwn)
  const price = isOwnOnly ? (model.fee?.price ?? freePrice) : model.price
  const without: Bucket[] = []
  for (const [bucket, mayUse] of conditionalBuckets) if (hasRow(price, bucket) && !mayUse(request)) without.push(bucket)
  const isSpoken = hasRow(price, 'audio_output') && !without.includes('audio_output')
  return {
    price,
    cap: outputCapOf(envelope, model),
    choices: envelope.choices,
    isUsOnly: price.factors.us_only !== undefined && mayNameRegion(envelope.body),
    webSearches: hasRow(price, 'web_search') && mayHaveMedia ? request.requestedSearches() : 0,
    without,
    // Reasoning and audio are billed but only partly visible in the stream, so hold the full cap.
    holdsWholeCap: !envelope.stream || isSpoken || model.tags.includes('reasoning'),
    minCap: 0,
  }
}

function mayContainAudio(request: GatewayRequest): boolean {
  return request.mayHaveMedia && mayHaveAudio(parsedIfSmall(request))
}

/** Whether the answer may contain audio. */
function wantsAudio(request: GatewayRequest): boolean {
  const conversation = parsedIfSmall(request)
  return conversation === undefined || conversation.unsupported.some((field) => field.wantsAudio)
}

/** undefined if the body cannot be parsed, or is so large that parsing would delay other requests. */
function parsedIfSmall(request: GatewayRequest): Conversation | undefined {
  return request.envelope.body.length > parsedBytesMax ? undefined : request.conversation()
}

function holdRequest(
  { record, caller, envelope, plan }: GatewayRequest,
  budgets: readonly Budget[] | undefined,
): Omit<HoldRequest, 'amount'> {
  const { workspaceId, keyId, projectId } = caller
  const request = { requestId: record.id, workspaceId, keyId, projectId, budgets }
  const totals = plan.ordered.map(({ route }) => route.timeouts.totalMs)
  if (totals.every((totalMs) => totalMs === undefined)) return request
  // Longer deadlines extend the ledger's default lifetime; nothing shortens it.
  const longestMs = Math.max(...totals.map((totalMs) => totalMs ?? requestTotalMs(envelope.stream)))
  return { ...request, lifetimeMs: Math.max(usualHoldLifetimeMs, longestMs * totals.length + lifetimeMarginMs) }
}

// ── Low balances ──

type Refused = Exclude<HoldOutcome, { kind: 'held' }>

/** Tries smaller holds, bounded strictly, that fit into the wallet or the spend limit that refused the usual one. */
async function holdOnLowBalance(
  { ledger }: HoldDependencies,
  request: GatewayRequest,
  usualFacts: HoldFacts,
  template: Omit<HoldRequest, 'amount'>,
  usualRequired: Nano,
  refused: Refused,
): Promise<Failure | undefined> {
  if (refused.kind === 'unavailable') return cannotCharge(refused.retryAfterMs)
  const inputTokens = boundedInputTokens(request.envelope.body, request.conversation(), request.model)
  const facts = { ...usualFacts, minCap: minCapOf(request) }
  let last = refused
  // The wallet and each limit have their own room; repeat while another one with less room refuses.
  for (let room = roomOf(refused); ; room = roomOf(last)) {
    const amounts = holdsWithin(facts, inputTokens, room.amount)
    for (const hold of amounts) {
      const outcome = await ledger.hold({ ...template, amount: hold.amount, requiredFree: hold.amount })
      if (outcome.kind === 'held') {
        request.hold = new Hold(request.record.id, ledger, request.model, facts, { ...hold, within: room.of })
        return undefined
      }
      if (outcome.kind === 'unavailable') return cannotCharge(outcome.retryAfterMs)
      last = outcome
    }
    if (amounts.length > 0 && roomOf(last).amount < room.amount) continue
    const bounded = amounts.at(-1)?.amount ?? neededAmount(facts, inputTokens)
    // For a long prompt the strict bound may exceed what the usual hold, an estimate, would have needed.
    const needed = usualRequired < bounded ? usualRequired : bounded
    return refusal(request, last, needed)
  }
}

interface Room {
  readonly amount: Nano
  readonly of: 'balance' | 'limit'
}

/** What could be spent if no other request were running. */
function roomOf(refused: Insufficient | OverBudget): Room {
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

function refusal({ caller, record }: GatewayRequest, refused: Insufficient | OverBudget, needed: Nano): Failure {
  const isInFlight = needed <= roomOf(refused).amount
  if (refused.kind === 'over budget') {
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

/** The daily and monthly spend limits of key, project and workspace; undefined = none, as for most callers. */
function budgetsOf({ limits }: Caller, clock: Clock): readonly Budget[] | undefined {
  let budgets: Budget[] | undefined
  for (const { id: scopeId, limits: of } of limits) {
    if (of.spendPerDay !== undefined) {
      budgets = [...(budgets ?? []), { scopeId, window: dayWindow(clock.now()), cap: of.spendPerDay }]
    }
    if (of.spendPerMonth !== undefined) {
      budgets = [...(budgets ?? []), { scopeId, window: monthWindow(clock.now()), cap: of.spendPerMonth }]
    }
  }
  return budgets
}

/** `retryMs`: set if only running requests are in the way, one of which may end soon. */
function overBudget(
  { keyName, limits }: Caller,
  { scopeId, window, spent, held, cap }: OverBudget,
  now: number,
  retryMs: number | undefined,
): Failure {
  const scope = limits.find(({ id }) => id === scopeId)
  const owner = scope && scope.kind !== 'key' ? ` (limit of ${scope.kind} "${scope.name}")` : ''
  const period = window.startsWith('day:') ? 'day' : 'month'
  const limit = `$${formatUsd(cap)} per ${period}${owner}`
  if (retryMs !== undefined) {
    const message = `Key "${keyName}" has used $${formatUsd(spent)} of ${limit}, and running requests hold $${formatUsd(held)}; this one does not fit beside them. Retry in ${retryMs / 1000} s.`
    return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs: retryMs, shouldRetry: true })
  }
  const retryAfterMs = Math.max(1000, (windowEnd(window) ?? now) - now)
  const used = formatUsd((spent + held) as Nano)
  const message = `Key "${keyName}" has used $${used} of ${limit}; this request does not fit. The ${period} ends in ${duration(retryAfterMs)} (UTC). Raise the limit: console → Keys, or \`tollgate limits put\`.`
  // The official clients handle waits this long differently, so they are told not to retry automatically.
  return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs, shouldRetry: false })
}

function duration(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / 60_000)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`
}
