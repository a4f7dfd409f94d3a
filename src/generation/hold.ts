// The hold before anything is sent: what a request may cost is set aside, or it is refused with the numbers and what to
// do. Nothing goes to a provider without one.

import { type Price, sharePrice } from '../catalog/price.ts'
import type { Envelope } from '../dialects/canonical/envelope.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import type { Budget } from '../ledger/budget.ts'
import type { HoldOutcome, Insufficient, Ledger } from '../ledger/ledger.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Admitted } from './admit.ts'
import { Bill } from './bill.ts'
import type { Call } from './call.ts'
import { hasCacheMark, roughInputTokens, strictInputTokens } from './input-bound.ts'
import type { InputRatios } from './input-ratio.ts'
import { leastSlice, roomLeast, type Slice, type SliceFacts, sliceOf, thinSlices } from './slice.ts'
import { budgetsOf, overBudget } from './spend-limits.ts'

export interface HoldDependencies {
  readonly ledger: Ledger
  readonly ratios: InputRatios
  readonly clock: Clock
  /** What a call on the workspace's own credential costs, in hundredths of a percent of the price. */
  readonly ownKeyFee: bigint
}

/** Where neither the caller nor the catalog sets a cap; more is held as a stream goes on. */
const capUnknown = 32_768
/** A hold must outlive the request; a route may allow more than the ledger's usual lifetime. */
const lifetimeMarginMs = 5 * 60_000
/** Holds of running requests end one by one; about this long until one does. */
const inFlightRetryMs = 5_000

export function hold(deps: HoldDependencies, call: Call, admitted: Admitted): Bill | Failure | Promise<Bill | Failure> {
  const holder = holderOf(deps, call, admitted)
  const { facts, billOf, ask } = holder
  const rough = within(call.model.contextTokens, roughInputTokens(call.envelope.body, deps.ratios.of(call.model.id)))
  const usual = sliceOf(facts, rough, facts.cap)
  const conclude = (outcome: HoldOutcome): Bill | Failure | Promise<Bill | Failure> =>
    outcome.kind === 'held' ? billOf(facts, usual) : thinHold(call, admitted, holder, outcome)
  const outcome = ask(usual, roomLeast(facts, usual))
  return outcome instanceof Promise ? outcome.then(conclude) : conclude(outcome)
}

/** What the attempts at a hold for one request have in common. */
interface Holder {
  readonly facts: SliceFacts
  billOf(facts: SliceFacts, slice: Slice): Bill
  /** `room`: what must be free for it to be granted, where that is more than the slice. */
  ask(slice: Slice, room?: Nano): HoldOutcome | Promise<HoldOutcome>
}

function holderOf({ ledger, ownKeyFee, clock }: HoldDependencies, call: Call, admitted: Admitted): Holder {
  const { model, story } = call
  const own = admitted.plan.ordered.some(({ isOwn }) => isOwn) ? sharePrice(model.price, ownKeyFee) : undefined
  const isOwnOnly = own !== undefined && admitted.plan.ordered.every(({ isOwn }) => isOwn)
  const budgets = budgetsOf(admitted.caller, clock)
  return {
    facts: factsOf(call, isOwnOnly ? own : model.price),
    billOf: (facts, slice) => new Bill(story.record.id, ledger, model, facts, slice, own),
    ask: (slice, room = slice.amount) =>
      ledger.hold({ ...holdRequest(call, admitted, slice.amount, budgets), roomLeast: room }),
  }
}

type Refused = Exclude<HoldOutcome, { kind: 'held' }>

/** A wallet that could not pay for all that may come is held to strict bounds, and gets what it can pay for. */
async function thinHold(
  call: Call,
  admitted: Admitted,
  { facts, billOf, ask }: Holder,
  refused: Refused,
): Promise<Bill | Failure> {
  const { caller } = admitted
  if (refused.kind === 'unavailable') return cannotCharge(refused.retryAfterMs)
  if (refused.kind === 'over budget') return overBudget(caller, refused, call.story.record.startedAt)
  const { envelope, model } = call
  const parsed = call.conversation()
  const strict = strictInputTokens(envelope.body, parsed instanceof Failure ? undefined : parsed.conversation, model)
  const withCap = { ...facts, capLeast: capLeast(call) }
  const slices = thinSlices(withCap, strict, refused.posted)
  let wallet: Insufficient = refused
  for (const slice of slices) {
    const outcome = await ask(slice)
    if (outcome.kind === 'held') return billOf(withCap, slice)
    if (outcome.kind === 'unavailable') return cannotCharge(outcome.retryAfterMs)
    if (outcome.kind === 'over budget') return overBudget(caller, outcome, call.story.record.startedAt)
    wallet = outcome
  }
  const needed = slices.at(-1)?.amount ?? neededAmount(withCap, strict)
  return needed > wallet.posted
    ? emptyWallet(caller.workspaceName, wallet, needed)
    : inFlight(caller.workspaceName, wallet, needed)
}

/** Input and output together, as limits count them until the real number is known. */
export function estimateAllTokens(envelope: Envelope, model: OfferedModel, ratios: InputRatios): number {
  const input = within(model.contextTokens, roughInputTokens(envelope.body, ratios.of(model.id)))
  return input + capOf(envelope, model) * envelope.choices
}

/** The most output tokens of one answer. */
function capOf({ outputCap }: Envelope, model: OfferedModel): number {
  const asked = outputCap ?? model.defaultMaxTokens ?? model.maxOutputTokens ?? capUnknown
  return Math.min(asked, model.maxOutputTokens ?? Number.POSITIVE_INFINITY)
}

function factsOf(call: Call, price: Price): SliceFacts {
  const { envelope, model } = call
  return {
    price,
    isMarked: hasCacheMark(envelope.body),
    cap: capOf(envelope, model),
    choices: envelope.choices,
    holdsWholeCap: !envelope.stream || model.tags.includes('reasoning'),
    capLeast: 0,
  }
}

/** Under x-tollgate-strict the caller's cap is kept or the call refused; a budget for thinking must fit in any case. */
function capLeast(call: Call): number {
  if (call.request.headers.get('x-tollgate-strict') === 'true') return Number.POSITIVE_INFINITY
  const parsed = call.conversation()
  const budget = parsed instanceof Failure ? undefined : parsed.conversation.reasoning?.budgetTokens
  return budget === undefined ? 0 : budget + 1
}

function neededAmount(facts: SliceFacts, inputTokens: number): Nano {
  if (facts.capLeast === 0) return leastSlice(facts, inputTokens).amount
  const cap = Math.min(facts.cap, facts.capLeast)
  return sliceOf({ ...facts, holdsWholeCap: true }, inputTokens, cap).amount
}

function holdRequest(call: Call, { caller, plan }: Admitted, amount: Nano, budgets: readonly Budget[] | undefined) {
  let longest = 0
  for (const { route } of plan.ordered) longest = Math.max(longest, route.timeouts.totalMs ?? 0)
  return {
    requestId: call.story.record.id,
    workspaceId: caller.workspaceId,
    keyId: caller.keyId,
    projectId: caller.projectId,
    amount,
    budgets,
    ...(longest > 0 && { lifetimeMs: longest * plan.ordered.length + lifetimeMarginMs }),
  }
}

function within(contextTokens: number | undefined, tokens: number): number {
  return contextTokens === undefined ? tokens : Math.min(contextTokens, tokens)
}

function emptyWallet(workspace: string, { posted, held }: Insufficient, needed: Nano): Failure {
  const message = `Workspace "${workspace}" has $${formatUsd(posted)}; this request needs at least $${formatUsd(needed)}. Top up: console → Wallet, or \`tollgate wallet topup\`. A shorter prompt or a lower \`max_tokens\` needs less.`
  return new Failure('INSUFFICIENT_BALANCE', message, {
    shouldRetry: false,
    metadata: metadataOf('empty', posted, held, needed),
  })
}

function inFlight(workspace: string, { posted, held }: Insufficient, needed: Nano): Failure {
  const free = (posted - held) as Nano
  const message = `$${formatUsd(held)} of workspace "${workspace}" is held by running requests; this one needs at least $${formatUsd(needed)}, and $${formatUsd(free)} is free. Retry in ${inFlightRetryMs / 1000} s.`
  return new Failure('INSUFFICIENT_BALANCE', message, {
    shouldRetry: true,
    retryAfterMs: inFlightRetryMs,
    metadata: metadataOf('in_flight', posted, held, needed),
  })
}

function metadataOf(reason: 'empty' | 'in_flight', posted: Nano, held: Nano, needed: Nano) {
  return { reason, balance: formatUsd(posted), held: formatUsd(held), needed: formatUsd(needed) }
}

export function cannotCharge(retryAfterMs: number): Failure {
  return new Failure(
    'OVERLOADED',
    'Tollgate cannot record charges right now, so it takes no requests. Retry shortly.',
    {
      retryAfterMs,
    },
  )
}
