// Reserves an upper estimate of a request's cost before anything is sent to a provider.

import { freePrice, hasRow, type Price, pricedUnits } from '../catalog/price.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import { hashOfEndUser } from '../kernel/attribution.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Failure } from '../kernel/failure.ts'
import type { Nano } from '../kernel/money.ts'
import type { Bucket, UnitBucket, UnitCounts } from '../kernel/usage.ts'
import { type Budget, tagScope, tightestSpend, userScope, windowAt } from '../ledger/budget.ts'
import { type HoldOutcome, type HoldRequest, type Ledger, usualHoldLifetimeMs } from '../ledger/ledger.ts'
import { requestTotalMs } from '../routing/failover.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Candidate } from '../routing/plan.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import type { Caller } from '../tenancy/caller.ts'
import {
  bytesPerToken,
  expectedInputTokens,
  hasCacheMark,
  type InputRatios,
  mayHaveAudio,
  mayNameRegion,
  parsedBytesMax,
  windowOf,
} from './estimate.ts'
import { Hold, type HoldFacts, holdAmount, requiredFree } from './hold.ts'
import { reserveOnLowBalance } from './low-balance.ts'
import { type GatewayRequest, unparsed } from './request.ts'
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
  const dear = dearest(request, ratios)
  const { workspaceId, keyId, projectId } = request.caller
  const lifetime = lifetimeMs(request)
  const asked: HoldRequest = {
    requestId: request.record.id,
    workspaceId,
    keyId,
    projectId,
    amount: dear.usual.amount,
    requiredFree: dear.required,
    budgets: budgetsOf(request.caller, clock, request.record),
    lifetimeMs: lifetime,
  }
  const outcome = ledger.hold(asked)
  return outcome instanceof Promise
    ? outcome.then((known) => takeHold(ledger, request, dear, asked, known))
    : takeHold(ledger, request, dear, asked, outcome)
}

function takeHold(
  ledger: Ledger,
  request: GatewayRequest,
  { model, facts, usual, required, factsOf }: ReturnType<typeof dearest>,
  asked: HoldRequest,
  outcome: HoldOutcome,
): Failure | undefined | Promise<Failure | undefined> {
  if (outcome.kind !== 'held') {
    return reserveOnLowBalance(ledger, request, { model, facts, factsOf }, asked, required, outcome)
  }
  request.spend = outcome.budgets && tightestSpend(outcome.budgets)
  request.hold = new Hold(request.record.id, ledger, model, facts, usual, factsOf)
  return undefined
}

/** The model for which most must be held, of those that may answer. */
function dearest(request: GatewayRequest, ratios: InputRatios) {
  const { models } = request
  if (models === undefined) return holdFor(request, request.model, ratios)
  const holds = [...new Set(models.values())].map((model) => holdFor(request, model, ratios))
  const most = holds.reduce((a, b) => (b.usual.amount > a.usual.amount ? b : a))
  const required = holds.reduce((amount, hold) => (hold.required > amount ? hold.required : amount), most.required)
  return { ...most, required, factsOf: new Map(holds.map(({ model, facts }) => [model, facts])) }
}

function holdFor(request: GatewayRequest, model: OfferedModel, ratios: InputRatios) {
  const facts = holdFacts(request, model)
  const usual = holdAmount(facts, expectedTokens(request, model, ratios), facts.cap)
  const factsOf: ReadonlyMap<OfferedModel, HoldFacts> | undefined = undefined
  return { model, facts, usual, required: requiredFree(facts, usual), factsOf }
}

/** Expected input and maximum output, which count against token limits until the usage is known. */
export function estimateAllTokens(request: GatewayRequest, ratios: InputRatios): number {
  const { envelope, model } = request
  return expectedTokens(request, model, ratios) + outputCapOf(envelope, model) * envelope.choices
}

function expectedTokens(request: GatewayRequest, model: OfferedModel, ratios: InputRatios): number {
  const { envelope } = request
  const parse = request.mayHaveMoreThanText ? () => request.sentConversation() : unparsed
  const ratio = ratios.of(model.id)
  const inBody = expectedInputTokens(
    envelope.body,
    ratio,
    parse,
    windowOf(envelope, model),
    request.mayHaveMoreThanText,
  )
  return inBody + Math.ceil((request.recalledBytes / bytesPerToken) * ratio)
}

/** Whether a request may use a bucket. The price of a token bucket that is not listed is held for every request. */
const conditionalBuckets: readonly (readonly [Bucket, mayUse: (request: GatewayRequest) => boolean])[] = [
  ['cache_write_1h', ({ envelope }) => hasCacheMark(envelope.body)],
  ['audio_input', mayContainAudio],
  ['audio_cache_read', mayContainAudio],
  ['audio_output', wantsAudio],
]

/** The most units that a request can use. Of a unit bucket that is not listed, the most of its row is held for every request. */
const unitBounds: { readonly [Name in UnitBucket]?: (request: GatewayRequest) => number } = {
  web_search: (request) => (request.mayHaveMoreThanText ? request.requestedSearches() : 0),
}

function heldUnits(price: Price, request: GatewayRequest): UnitCounts {
  const counts = pricedUnits(price).map(({ bucket, count, most }) => [count, unitBounds[bucket]?.(request) ?? most])
  return Object.fromEntries(counts)
}

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

function holdFacts(request: GatewayRequest, model: OfferedModel): HoldFacts {
  const { envelope, plan } = request
  const isOwnOnly = plan.ordered.length > 0 && plan.ordered.every(({ isOwn }) => isOwn)
  const price = isOwnOnly ? (model.fee?.price ?? freePrice) : model.price
  const without = unusableBuckets(price, request)
  const isSpoken = hasRow(price, 'audio_output') && !without.includes('audio_output')
  return {
    price,
    cap: outputCapOf(envelope, model),
    choices: envelope.choices,
    isUsOnly: price.factors.us_only !== undefined && mayNameRegion(envelope.body),
    units: pricedUnits(price).length > 0 ? heldUnits(price, request) : undefined,
    without,
    // Reasoning and audio are billed but only partly visible in the stream, so hold the full cap.
    holdsWholeCap: !envelope.stream || isSpoken || model.tags.includes('reasoning'),
    minCap: 0,
  }
}

function mayContainAudio(request: GatewayRequest): boolean {
  return request.mayHaveMoreThanText && mayHaveAudio(parsedIfSmall(request))
}

/** Whether the answer may contain audio. */
function wantsAudio(request: GatewayRequest): boolean {
  const conversation = parsedIfSmall(request)
  return conversation === undefined || conversation.unsupported.some((field) => field.wantsAudio)
}

/** undefined if the body cannot be parsed, or is so large that parsing would delay other requests. */
function parsedIfSmall(request: GatewayRequest): Conversation | undefined {
  return request.envelope.body.length > parsedBytesMax ? undefined : request.sentConversation()
}

// Not inline, where it would be made again for every request.
const hasUsualTimeout = ({ route }: Candidate) => route.timeouts.totalMs === undefined

/** Longer deadlines of routes extend the ledger's default lifetime; nothing shortens it. */
function lifetimeMs({ envelope, plan: { ordered } }: GatewayRequest): number | undefined {
  if (ordered.every(hasUsualTimeout)) return undefined
  const longestMs = Math.max(...ordered.map(({ route }) => route.timeouts.totalMs ?? requestTotalMs(envelope.stream)))
  return Math.max(usualHoldLifetimeMs, longestMs * ordered.length + lifetimeMarginMs)
}

/**
 * The daily, weekly and monthly spend limits of key, project and workspace, of the end user and of the tags; undefined = none, as
 * for most callers.
 */
export function budgetsOf(
  { limits }: Caller,
  clock: Clock,
  { endUser, tags = [] }: Partial<Pick<RequestRecord, 'endUser' | 'tags'>> = {},
): readonly Budget[] | undefined {
  if (limits.length === 0) return undefined
  const now = clock.now()
  const budgets: Budget[] = []
  const add = (scopeId: string, window: string, cap: Nano | undefined) => {
    if (cap !== undefined) budgets.push({ scopeId, window, cap })
  }
  for (const { id, limits: of } of limits) {
    const { startsAt } = of
    if (startsAt !== undefined && startsAt > now) continue
    const [day, week, month] = [windowAt('day', now), windowAt('week', now, startsAt), windowAt('month', now, startsAt)]
    add(id, day, of.spendPerDay)
    add(id, week, of.spendPerWeek)
    add(id, month, of.spendPerMonth)
    if (endUser !== undefined) {
      const scope = userScope(id, hashOfEndUser(endUser))
      add(scope, day, of.userSpendPerDay)
      add(scope, week, of.userSpendPerWeek)
      add(scope, month, of.userSpendPerMonth)
    }
    for (const tag of tags) {
      add(tagScope(id, tag), day, of.tagSpendPerDay?.[tag])
      add(tagScope(id, tag), week, of.tagSpendPerWeek?.[tag])
      add(tagScope(id, tag), month, of.tagSpendPerMonth?.[tag])
    }
  }
  return budgets.length === 0 ? undefined : budgets
}
