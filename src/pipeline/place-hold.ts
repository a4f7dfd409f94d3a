// Reserves an upper estimate of a request's cost before anything is sent to a provider. A wallet with less gets a smaller
// hold, or the request is refused.

import { freePrice, hasRow, hasTiers, type Price, pricedTiers, pricedUnits } from '../catalog/price.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import { isRolling, matchesModel, parseScope } from '../kernel/spend-limit.ts'
import { type AskedTier, type Bucket, type Tier, tiers, type UnitBucket, type UnitCounts } from '../kernel/usage.ts'
import type { Unavailable } from '../ledger/account.ts'
import {
  type BudgetUse,
  budgetName,
  type OverBudget,
  type Promised,
  type RoomName,
  tightestSpend,
} from '../ledger/budget.ts'
import { type HoldOutcome, type HoldRequest, type Ledger, usualHoldLifetimeMs } from '../ledger/ledger.ts'
import { requestTotalMs } from '../routing/failover.ts'
import { candidateRecords } from '../routing/offer.ts'
import { type Candidate, type OfferedModel, onlyCandidates } from '../routing/plan.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import { isStrict } from './answer.ts'
import { budgetsOf, type LimitBudget, type LimitUse } from './budgets.ts'
import { type Content, parserOf } from './content.ts'
import { patienceMs } from './deadline.ts'
import {
  boundedInputTokens,
  bytesPerToken,
  expectedInputTokens,
  hasCacheMark,
  type InputRatios,
  isLongText,
  mayHaveAudio,
  mayNameRegion,
  parsedBytesMax,
  tokensPerByte,
  windowOf,
} from './estimate.ts'
import {
  affordableCap,
  Hold,
  type HoldAmount,
  type HoldFacts,
  holdAmount,
  requiredFree,
  smallestCap,
  stepTokens,
} from './hold.ts'
import type { PreviousTurns, UsualOutputs } from './learned.ts'
import { type Attempt, Blocked, type Rooms, type Turn } from './rooms.ts'
import { cannotCharge, fallbackNote, type Refused, refusalOf, spendableOf } from './spend-refusals.ts'
import { type Admitted, type Held, Refusal } from './stages.ts'
import { outputCapOf } from './usage.ts'

export interface PlaceHoldDependencies {
  /** As for a new request: a key, its limits and its workspace may change while a request waits. */
  authenticate(headers: RequestHeaders): Caller | Failure | Promise<Caller | Failure>
  readonly ledger: Ledger
  readonly ratios: InputRatios
  readonly turns: PreviousTurns
  readonly outputs: UsualOutputs
  readonly rooms: Rooms
  readonly clock: Clock
}

/** What is held for one of the models that may answer. */
interface ModelHold {
  readonly model: OfferedModel
  readonly facts: HoldFacts
  readonly usual: HoldAmount
  /** What must be free for the usual hold. */
  readonly required: Nano
  /** Of the dearest: the facts of all models that may answer, if there are several. */
  readonly factsByModel: ReadonlyMap<OfferedModel, HoldFacts> | undefined
}

/** The hold must outlive the request; a route may allow more time than the ledger's default lifetime. */
const lifetimeMarginMs = 5 * 60_000

/** What costs nothing waits for nobody. */
const nothingPromised: Promised = new Map()

export async function placeHold(deps: PlaceHoldDependencies, admitted: Admitted): Promise<Held | Refusal> {
  const { exchange, caller } = admitted
  const dearest = dearestHold(admitted, deps.ratios)
  const { workspaceId, keyId, projectId } = caller
  const asked: AskedHold = {
    requestId: exchange.record.id,
    workspaceId,
    keyId,
    projectId,
    budgets: budgetsOf(caller, deps.clock, exchange.record, admitted.models),
    lifetimeMs: lifetimeMs(admitted),
  }
  const kept = dearest.usual.amount === 0n ? nothingPromised : deps.rooms.keptIn(asked)
  const outcome = await askLedger(deps, asked, dearest.usual, dearest.required, kept)
  if (outcome.kind === 'held') return held(deps, admitted, asked, dearest, dearest.usual, outcome)
  if (outcome.kind === 'unavailable') return unavailable(admitted, outcome)
  const withoutFallbacks = outcome.kind === 'over budget' ? leaveOutFallbacks(admitted, outcome) : undefined
  if (withoutFallbacks) return await placeHold(deps, withoutFallbacks)
  const low = lowTerms(deps, admitted, dearest, asked)
  const placed = await placeBesideOthers(deps, low, outcome)
  if (placed instanceof Refusal) low.notSent()
  return placed
}

// ── Fallbacks of the operator ──

// The caller did not name them, so a spend limit that counts only such models takes nothing away from the requested one.

function countsOnlyFallbacks({ envelope, model }: Admitted, scopeId: string): boolean {
  const { models: pattern } = parseScope(scopeId)
  return pattern !== undefined && !envelope.fallbacks && !matchesModel(pattern, model.id)
}

/** The same request without the fallbacks that the limit counts; undefined = it counts the requested model, or no other has a route. */
function leaveOutFallbacks(admitted: Admitted, over: OverBudget): Admitted | undefined {
  if (!countsOnlyFallbacks(admitted, over.scopeId)) return undefined
  const { models: pattern = '' } = parseScope(over.scopeId)
  const isKept = ({ id }: OfferedModel) => !matchesModel(pattern, id)
  const plan = onlyCandidates(admitted.plan, ({ model }) => isKept(model))
  if (plan.ordered.length === 0) return undefined
  const { record } = admitted.exchange
  record.candidates = candidateRecords(plan)
  const models = admitted.models.filter(isKept)
  const leftOut = admitted.models.filter((model) => !models.includes(model)).map(({ id }) => id)
  record.notes.push(fallbackNote(admitted.caller, over, leftOut))
  return { ...admitted, models, plan }
}

/** What is asked of the ledger, but for the amount. */
interface AskedHold extends Omit<HoldRequest, 'amount' | 'requiredFree' | 'promised'> {
  readonly budgets: readonly LimitBudget[] | undefined
}

/**
 * `promised`: what must stay free beside the hold, at least what running streams may still take. The growth of the hold itself,
 * if its answer is streamed, is promised before the ledger decides, so that a request beside it counts it.
 */
async function askLedger(
  { ledger, rooms }: PlaceHoldDependencies,
  asked: AskedHold,
  { amount, growth }: HoldAmount,
  required: Nano,
  promised = rooms.promisedIn(asked),
): Promise<HoldOutcome> {
  let outcome: HoldOutcome | undefined
  rooms.promise(asked, growth)
  try {
    outcome = await ledger.hold({ ...asked, amount, requiredFree: amount === 0n ? amount : required, promised })
    return outcome
  } finally {
    if (outcome?.kind !== 'held') rooms.promise(asked, -growth)
  }
}

function unavailable({ limits }: Admitted, { retryAfterMs }: Unavailable): Refusal {
  return new Refusal(cannotCharge(retryAfterMs), limits)
}

function held(
  { ledger, rooms, clock }: PlaceHoldDependencies,
  admitted: Admitted,
  asked: AskedHold,
  { facts, factsByModel }: ModelHold,
  amount: HoldAmount,
  { budgets, amount: part = amount.amount }: Extract<HoldOutcome, { kind: 'held' }>,
): Held {
  const { exchange, limits } = admitted
  const initial = part === amount.amount ? amount : { ...amount, amount: part }
  const hold = new Hold(exchange.record.id, ledger, facts, initial, factsByModel, rooms, asked)
  exchange.hold = hold
  const limitsLeft = budgets?.length ? { ...limits, spend: () => tightestSpend(budgets, clock.now()) } : limits
  return { exchange, admitted, hold, limits: limitsLeft, slowing: slowingOf(admitted, asked, budgets), waitedMs: 0 }
}

const noneSlowing: readonly LimitUse[] = []

/** Most limits slow nothing down. */
function slowingOf(
  admitted: Admitted,
  { budgets: limits = [] }: AskedHold,
  uses: readonly BudgetUse[] = [],
): readonly LimitUse[] {
  if (!limits.some(isSlowing)) return noneSlowing
  return uses
    .map((use, at) => ({ ...limits[at], ...use }))
    .filter((use) => isSlowing(use) && !countsOnlyFallbacks(admitted, use.scopeId))
}

function isSlowing({ slowDown }: LimitBudget): boolean {
  return slowDown !== undefined
}

/** The model for which most must be held, of those that may answer. */
function dearestHold(admitted: Admitted, ratios: InputRatios): ModelHold {
  const { models } = admitted
  if (models.length === 1) return holdFor(admitted, admitted.model, ratios)
  const holds = models.map((model) => holdFor(admitted, model, ratios))
  const max = holds.reduce((a, b) => (b.usual.amount > a.usual.amount ? b : a))
  const most = holds.reduce((sum, { usual: { amount, growth } }) => greater(sum, amount + growth), 0n)
  const usual = { ...max.usual, growth: (most - max.usual.amount) as Nano }
  const required = holds.reduce((amount, hold) => greater(amount, hold.required), max.required)
  return { ...max, usual, required, factsByModel: new Map(holds.map(({ model, facts }) => [model, facts])) }
}

function greater<Amount extends bigint>(a: Amount, b: Amount): Amount {
  return a > b ? a : b
}

/** What a request to these candidates of one model is held by, and how much that is. */
export function usualHold(
  asked: Asked,
  model: OfferedModel,
  candidates: readonly Candidate[],
  ratios: InputRatios,
): { readonly facts: HoldFacts; readonly usual: HoldAmount } {
  return holdFor({ ...asked, plan: { ordered: candidates } }, model, ratios)
}

/** What the hold depends on. */
interface HoldTerms extends Asked {
  readonly plan: { readonly ordered: readonly Candidate[] }
}

function holdFor(admitted: HoldTerms, model: OfferedModel, ratios: InputRatios): ModelHold {
  const facts = holdFacts(admitted, model)
  const usual = holdAmount(facts, expectedTokens(admitted, model, ratios), facts.cap)
  return { model, facts, usual, required: requiredFree(usual), factsByModel: undefined }
}

/** Expected input and maximum output, which count against token limits until the usage is known. */
export function estimateAllTokens(asked: Asked, model: OfferedModel, ratios: InputRatios): number {
  const { envelope } = asked
  return expectedTokens(asked, model, ratios) + outputCapOf(envelope, model) * envelope.choices
}

/** What a request asks for. */
export type Asked = Pick<Admitted, 'envelope' | 'content'>

export function expectedTokens({ envelope, content }: Asked, model: OfferedModel, ratios: InputRatios): number {
  const { body, mayHaveMoreThanText, recalledBytes } = content
  const ratio = ratios.of(model.id)
  const window = windowOf(envelope, model)
  const inBody = expectedInputTokens(body, ratio, parserOf(content), window, mayHaveMoreThanText)
  return inBody + Math.ceil((recalledBytes / bytesPerToken) * ratio)
}

/** Whether a request may use a bucket. The price of a token bucket that is not listed is held for every request. */
const conditionalBuckets: readonly (readonly [Bucket, mayUse: (content: Content) => boolean])[] = [
  ['cache_write_1h', ({ body }) => hasCacheMark(body)],
  ['audio_input', mayContainAudio],
  ['audio_cache_read', mayContainAudio],
  ['audio_output', wantsAudio],
]

/** The most units that a request can use. For a unit bucket that is not listed, the maximum in its row is held. */
const unitBounds: { readonly [Name in UnitBucket]?: (content: Content) => number } = {
  web_search: (content) => (content.mayHaveMoreThanText ? content.requestedSearches() : 0),
}

function heldUnits(price: Price, content: Content): UnitCounts {
  const counts = pricedUnits(price).map(({ bucket, count, max }) => [count, unitBounds[bucket]?.(content) ?? max])
  return Object.fromEntries(counts)
}

/** The same list for the same buckets, because prices remember their highest rates by it. */
const bucketLists: (readonly Bucket[])[] = []

function unusableBuckets(price: Price, content: Content): readonly Bucket[] {
  let at = 0
  for (const [bucket, mayUse] of conditionalBuckets) at = at * 2 + (hasRow(price, bucket) && !mayUse(content) ? 1 : 0)
  const known = bucketLists[at]
  if (known) return known
  const last = conditionalBuckets.length - 1
  const list = conditionalBuckets.filter((_, index) => (at >> (last - index)) & 1).map(([bucket]) => bucket)
  bucketLists[at] = list
  return list
}

function holdFacts({ envelope, content, plan }: HoldTerms, model: OfferedModel): HoldFacts {
  const isOwnOnly = plan.ordered.length > 0 && plan.ordered.every(({ isOwn }) => isOwn)
  const inBatch = plan.ordered[0]?.inBatch
  const price = isOwnOnly ? (model.fee?.price ?? freePrice) : model.price
  const without = unusableBuckets(price, content)
  const isSpoken = hasRow(price, 'audio_output') && !without.includes('audio_output')
  return {
    price,
    cap: outputCapOf(envelope, model),
    choices: envelope.choices,
    isUsOnly: price.factors.us_only !== undefined && mayNameRegion(content.body),
    ...(inBatch && { tier: 'batch' }),
    tiers: !inBatch && hasTiers(price) ? possibleTiers(price, envelope.tier) : undefined,
    units: pricedUnits(price).length > 0 ? heldUnits(price, content) : undefined,
    without,
    // Reasoning and audio are billed but only partly visible in the stream, so hold the full cap.
    holdsWholeCap: !envelope.stream || isSpoken || model.tags.includes('reasoning'),
    // Set only for a low hold, which lowers the cap.
    minCap: 0,
  }
}

/** Of the tiers with a price. Capacity that the operator has bought may serve requests that ask for nothing. */
function possibleTiers(price: Price, asked: AskedTier | undefined): readonly Tier[] {
  const priced = pricedTiers(price)
  if (asked === 'auto') return priced.filter((tier) => tiers[tier].isChosen)
  return priced.filter((tier) => tiers[tier].isAsked && (tier === asked || (tier === 'scale' && !asked)))
}

function mayContainAudio(content: Content): boolean {
  return content.mayHaveMoreThanText && mayHaveAudio(parsedIfSmall(content))
}

/** Whether the answer may contain audio. */
function wantsAudio(content: Content): boolean {
  const conversation = parsedIfSmall(content)
  return conversation === undefined || conversation.unsupported.some((field) => field.wantsAudio)
}

/** undefined if the body cannot be parsed, or is so large that parsing would delay other requests. */
function parsedIfSmall(content: Content): Conversation | undefined {
  return content.bodyBytes > parsedBytesMax ? undefined : content.sentConversation()
}

// Not inline: a closure would be created for every request.
const hasUsualTimeout = ({ route }: Candidate) => route.timeouts.totalMs === undefined

/** Longer deadlines of routes extend the ledger's default lifetime; nothing shortens it. */
function lifetimeMs({ envelope, plan: { ordered } }: Admitted): number | undefined {
  if (ordered.every(hasUsualTimeout)) return undefined
  const longestMs = Math.max(...ordered.map(({ route }) => route.timeouts.totalMs ?? requestTotalMs(envelope.stream)))
  return Math.max(usualHoldLifetimeMs, longestMs * ordered.length + lifetimeMarginMs)
}

// ── Low balances ──

// A wallet or a spend limit without room for the usual hold: a hold of the whole answer, which needs not grow, whose cap is
// lowered to fit and whose input is estimated by earlier turns. If only running requests are in the way, the request waits.

type Placed = Held | Refusal

/** What a low hold of a request depends on. */
interface Low {
  readonly admitted: Admitted
  /** The usual hold, which refused. */
  readonly dearest: ModelHold
  readonly asked: AskedHold
  readonly facts: HoldFacts
  readonly inputTokens: number
  /** The output tokens that the answer will probably have at most. */
  readonly usualTokens: number
  /** To be called if the request is refused: gives back what it was estimated by. */
  notSent(): void
}

/** A hold beside those of running requests, or after some of them have ended. */
async function placeBesideOthers(deps: PlaceHoldDependencies, first: Low, refused: Refused): Promise<Placed> {
  const { exchange } = first.admitted
  const { clock, rooms } = deps
  // Those who wait already came before.
  const placed = rooms.isCrowded(first.asked)
    ? await blockedOrRefused(deps, first, refused)
    : await placeLowHold(deps, first, refused, alone)
  if (!(placed instanceof Blocked)) return placed
  let last = refused
  let low = first
  const attempt: Attempt<Placed> = async (turn) => {
    const caller = await deps.authenticate(exchange.http.headers)
    if (caller instanceof Failure) return new Refusal(caller)
    low = asNow(low, caller, clock)
    const { admitted, dearest, asked, facts } = low
    const usual = turn.othersWait ? lowHold(low, low.usualTokens) : dearest.usual
    const outcome = await askLedger(deps, asked, usual, turn.othersWait ? usual.amount : dearest.required)
    if (outcome.kind === 'unavailable') return unavailable(admitted, outcome)
    if (outcome.kind === 'held') {
      const terms = turn.othersWait ? { ...dearest, facts } : dearest
      return held(deps, admitted, asked, terms, { ...usual, within: spendableOf(last).of }, outcome)
    }
    last = outcome
    return await placeLowHold(deps, low, outcome, turn)
  }
  const sinceMs = clock.monotonicMs()
  // A line of a batch does not wait among requests of people: its batch tries again later.
  const patience = exchange.http.batchId === undefined ? patienceMs(exchange.http.headers) : 0
  const ended = await rooms.wait(first.asked, placed, attempt, exchange, patience)
  const waitedMs = clock.monotonicMs() - sinceMs
  // It is not the gateway's own time.
  exchange.record.waitedMs += waitedMs
  return ended instanceof Refusal ? ended : { ...ended, waitedMs }
}

/** The same request of a caller whose limits may have changed. */
function asNow(low: Low, caller: Caller, clock: Clock): Low {
  const { admitted, asked } = low
  if (caller === admitted.caller) return low
  const budgets = budgetsOf(caller, clock, admitted.exchange.record, admitted.models)
  return { ...low, admitted: { ...admitted, caller }, asked: { ...asked, budgets } }
}

const alone: Turn = { othersWait: false, isLast: false }

/** Holds as much as fits into the wallet or the spend limit that refused; into each in turn, if several do. */
async function placeLowHold(
  deps: PlaceHoldDependencies,
  low: Low,
  refused: Refused,
  turn: Turn,
): Promise<Placed | Blocked<Placed>> {
  const { admitted, dearest, asked, facts } = low
  for (let last = refused; ; ) {
    const free = freeOf(deps, asked, last)
    const { amount: spendable, of } = spendableOf(last)
    const least = leastCap(low, reachedOf(asked, last))
    const cap = capWithin(low, free, { ...turn, isAlone: free === spendable, least })
    if (cap === undefined) return await blockedOrRefused(deps, low, last)
    const hold = lowHold(low, cap)
    const outcome = await askLedger(deps, asked, hold, hold.amount)
    if (outcome.kind === 'held') {
      return held(deps, admitted, asked, { ...dearest, facts }, { ...hold, within: of }, outcome)
    }
    if (outcome.kind === 'unavailable') return unavailable(admitted, outcome)
    // Another one was faster.
    if (freeOf(deps, asked, outcome) >= free) return await blockedOrRefused(deps, low, outcome)
    last = outcome
  }
}

async function blockedOrRefused(
  { ledger }: PlaceHoldDependencies,
  low: Low,
  refused: Refused,
): Promise<Refusal | Blocked<Refusal>> {
  const { admitted, dearest, asked } = low
  const reached = reachedOf(asked, refused)
  const needed = lesser(dearest.required, lowHold(low, leastCap(low, reached)).amount)
  const spendable = spendableOf(refused).amount
  const leavesInMs =
    refused.kind === 'over budget' && isRolling(refused.window) && needed > spendable && needed <= refused.cap
      ? await ledger.leavesInMs(refused.scopeId, refused.window, refused.spent + needed - refused.cap)
      : undefined
  const refusal = refusalOf(admitted, refused, { needed, reached, leavesInMs })
  if (needed > spendable) return refusal
  const wanted = lowHold(low, low.usualTokens).amount
  // A request that needs more than half of it may be passed, or one key could stop all others of its workspace.
  return new Blocked(roomOf(asked, refused), refusal, 2n * wanted > spendable ? zeroNano : wanted)
}

/** What neither requests hold nor streams were promised of the wallet or the spend limit that refused. */
function freeOf({ rooms }: PlaceHoldDependencies, asked: AskedHold, refused: Refused): Nano {
  const promised = rooms.promisedIn(asked)?.get(roomOf(asked, refused)) ?? 0n
  return (spendableOf(refused).amount - refused.held - promised) as Nano
}

/** The wallet or the spend limit that refused. */
function roomOf({ workspaceId }: AskedHold, refused: Refused): RoomName {
  return refused.kind === 'insufficient' ? workspaceId : budgetName(refused.scopeId, refused.window)
}

/** `isAlone`: no other request holds any of the room. */
interface Crowd extends Turn {
  readonly isAlone: boolean
  /** Below this the request is not sent. */
  readonly least: number
}

/**
 * The cap whose price fits; undefined = it does not pay to start. While nobody waits, what is free beyond a step is shared
 * with requests that may come; otherwise the answer gets what it usually needs. With less than that it waits.
 */
function capWithin({ facts, inputTokens, usualTokens }: Low, free: Nano, crowd: Crowd): number | undefined {
  const { isAlone, othersWait, isLast, least } = crowd
  const affordable = affordableCap(facts, inputTokens, free)
  if (affordable < least) return undefined
  if (affordable >= facts.cap && !othersWait) return facts.cap
  if (affordable < usualTokens && !isAlone && !isLast) return undefined
  const share = othersWait ? usualTokens : Math.max(usualTokens, stepTokens, Math.floor(affordable / 2))
  return Math.min(affordable, share)
}

/** A limit that names another model has the whole answer from that one, rather than a part from this one. */
function leastCap({ facts, usualTokens }: Low, reached: LimitBudget | undefined): number {
  return reached?.then === undefined ? smallestCap(facts) : Math.max(usualTokens, smallestCap(facts))
}

/** The spend limit that refused; undefined = it is the wallet. */
function reachedOf({ budgets = [] }: AskedHold, refused: Refused): LimitBudget | undefined {
  if (refused.kind === 'insufficient') return undefined
  return budgets.find(({ scopeId, window }) => scopeId === refused.scopeId && window === refused.window)
}

function lowHold({ facts, inputTokens }: Pick<Low, 'facts' | 'inputTokens'>, cap: number): HoldAmount {
  return holdAmount(facts, inputTokens, cap)
}

function lowTerms(
  { turns, outputs, ratios }: PlaceHoldDependencies,
  admitted: Admitted,
  dearest: ModelHold,
  asked: AskedHold,
): Low {
  const { envelope, content, caller } = admitted
  const { model } = dearest
  const strict =
    boundedInputTokens(content.body, content.sentConversation(), windowOf(envelope, widest(dearest))) +
    content.recalledBytes
  const { promptBytes, mayHaveMoreThanText } = content
  const session = sessionOf(admitted, model)
  const bySize = Math.max(...admitted.models.map((each) => expectedTokens(admitted, each, ratios)))
  const continued =
    session === undefined ? undefined : turns.take(session, promptBytes, tokensPerByte(ratios.of(model.id)))
  const expected =
    continued ?? (isLongText(promptBytes, mayHaveMoreThanText) ? { inputTokens: bySize, cachedTokens: 0 } : undefined)
  // The turn before says nothing about images and documents that were added since.
  const expectedInput = Math.max(expected?.inputTokens ?? 0, mayHaveMoreThanText ? bySize : 0)
  const isExpected = expected !== undefined && expectedInput < strict
  // What was the dearest for a step need not be it for the whole answer.
  const [longest = dearest.facts, ...others] = [...(dearest.factsByModel?.values() ?? [])].sort((a, b) => b.cap - a.cap)
  const facts: HoldFacts = {
    ...longest,
    ...(others.length > 0 && { others }),
    holdsWholeCap: true,
    minCap: minCapOf(admitted),
    cachedTokens: isExpected ? expected.cachedTokens : 0,
  }
  const usual = Math.max(outputs.of(caller.keyId, model.id) ?? stepTokens, smallestCap(facts))
  return {
    ...{ admitted, dearest, asked, facts },
    inputTokens: isExpected ? expectedInput : strict,
    usualTokens: Math.min(facts.cap, usual),
    notSent: () => {
      if (session !== undefined && continued) turns.giveBack(session, continued.turn)
    },
  }
}

/** Identifies the earlier turns of the conversation; undefined without a session, and where another model may answer. */
export function sessionOf({ caller, session, models }: Admitted, { id }: OfferedModel): string | undefined {
  return session && models.length === 1 ? `${caller.workspaceId} ${id} ${session.id}` : undefined
}

/** The largest context window of those that may answer. */
function widest({ model, factsByModel }: ModelHold): { readonly contextTokens: number | undefined } {
  const windows = [...(factsByModel?.keys() ?? [model])].map(
    ({ contextTokens }) => contextTokens ?? Number.POSITIVE_INFINITY,
  )
  const max = Math.max(...windows)
  return { contextTokens: max === Number.POSITIVE_INFINITY ? undefined : max }
}

/** For a long prompt the strict bound may exceed what the usual hold, an estimate, would have needed. */
const lesser = (usual: Nano, bounded: Nano): Nano => (usual < bounded ? usual : bounded)

/** With x-tollgate-strict the caller's cap is not lowered. A thinking budget must fit in any case. */
function minCapOf({ exchange, content }: Admitted): number {
  if (isStrict(exchange.http.headers)) return Number.POSITIVE_INFINITY
  const budget = content.conversation()?.reasoning?.budgetTokens
  return budget === undefined ? 0 : budget + 1
}
