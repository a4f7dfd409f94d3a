// Reserves an upper estimate of a request's cost before anything is sent to a provider.

import { freePrice, hasRow, type Price } from '../catalog/price.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Failure } from '../kernel/failure.ts'
import type { Bucket } from '../kernel/usage.ts'
import { type Budget, dayWindow, monthWindow } from '../ledger/budget.ts'
import { type HoldOutcome, type HoldRequest, type Ledger, usualHoldLifetimeMs } from '../ledger/ledger.ts'
import { requestTotalMs } from '../routing/failover.ts'
import type { Caller } from '../tenancy/caller.ts'
import {
  expectedInputTokens,
  hasCacheMark,
  type InputRatios,
  mayHaveAudio,
  mayNameRegion,
  parsedBytesMax,
} from './estimate.ts'
import { Hold, type HoldFacts, holdAmount, requiredFree } from './hold.ts'
import { reserveOnLowBalance } from './low-balance.ts'
import type { GatewayRequest } from './request.ts'
import { outputCapOf } from './usage.ts'

export interface ReserveDependencies {
  readonly ledger: Ledger
  readonly ratios: InputRatios
  readonly clock: Clock
}

/** The hold must outlive the request; a route may allow more time than the ledger's default lifetime. */
const lifetimeMarginMs = 5 * 60_000

/** Sets `request.hold`, or returns why nothing can be held. Synchronous with the embedded ledger and enough balance. */
export function reserve(
  { ledger, ratios, clock }: ReserveDependencies,
  request: GatewayRequest,
): Failure | undefined | Promise<Failure | undefined> {
  const facts = holdFacts(request)
  const usual = holdAmount(facts, expectedTokens(request, ratios), facts.cap)
  const required = requiredFree(facts, usual)
  const { workspaceId, keyId, projectId } = request.caller
  const lifetime = lifetimeMs(request)
  const asked: HoldRequest = {
    requestId: request.record.id,
    workspaceId,
    keyId,
    projectId,
    amount: usual.amount,
    requiredFree: required,
    budgets: budgetsOf(request.caller, clock),
    ...(lifetime !== undefined && { lifetimeMs: lifetime }),
  }
  const take = (outcome: HoldOutcome): Failure | undefined | Promise<Failure | undefined> => {
    if (outcome.kind !== 'held') return reserveOnLowBalance(ledger, request, facts, asked, required, outcome)
    request.hold = new Hold(request.record.id, ledger, request.model, facts, usual)
    return undefined
  }
  const outcome = ledger.hold(asked)
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

/** The same list for the same buckets, because prices remember their highest rates by it. */
const bucketLists: (readonly Bucket[])[] = []

function unusableBuckets(price: Price, request: GatewayRequest): readonly Bucket[] {
  let at = 0
  for (const [bucket, mayUse] of conditionalBuckets) at = at * 2 + (hasRow(price, bucket) && !mayUse(request) ? 1 : 0)
  const known = bucketLists[at]
  if (known) return known
  const last = conditionalBuckets.length - 1
  const list = conditionalBuckets.filter((_, index) => (at >> (last - index)) & 1).map(([bucket]) => bucket)
  bucketLists[at] = list
  return list
}

function holdFacts(request: GatewayRequest): HoldFacts {
  const { envelope, model, plan, mayHaveMedia } = request
  const isOwnOnly = plan.ordered.length > 0 && plan.ordered.every(({ isOwn }) => isOwn)
  const price = isOwnOnly ? (model.fee?.price ?? freePrice) : model.price
  const without = unusableBuckets(price, request)
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

/** Longer deadlines of routes extend the ledger's default lifetime; nothing shortens it. */
function lifetimeMs({ envelope, plan: { ordered } }: GatewayRequest): number | undefined {
  if (ordered.every(({ route }) => route.timeouts.totalMs === undefined)) return undefined
  const longestMs = Math.max(...ordered.map(({ route }) => route.timeouts.totalMs ?? requestTotalMs(envelope.stream)))
  return Math.max(usualHoldLifetimeMs, longestMs * ordered.length + lifetimeMarginMs)
}

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
