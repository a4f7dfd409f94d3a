// The hold before anything is sent: what a request may cost is set aside, or it is refused. Nothing goes to a provider
// without one.

import { freePrice, hasRow, type Price } from '../catalog/price.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import type { Envelope, ParsedRequest } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano } from '../kernel/money.ts'
import { type Bucket, tokenBuckets } from '../kernel/usage.ts'
import type { Budget } from '../ledger/budget.ts'
import { type HoldOutcome, type Ledger, usualHoldLifetimeMs } from '../ledger/ledger.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Admitted } from './admit.ts'
import { Bill } from './bill.ts'
import type { Call } from './call.ts'
import { hasCacheMark, mayHaveSound, mayNamePlace, readBytesMax, roughInputTokens } from './input-bound.ts'
import type { InputRatios } from './input-ratio.ts'
import { outputCapOf } from './judge-usage.ts'
import { parsedRequest } from './parsed-request.ts'
import { roomLeast, type SliceFacts, sliceOf } from './slice.ts'
import { budgetsOf } from './spend-limits.ts'
import { type Holder, thinHold } from './thin-hold.ts'
import { usualTotalMs } from './total-ms.ts'

export interface HoldDependencies {
  readonly ledger: Ledger
  readonly ratios: InputRatios
  readonly clock: Clock
}

/** A hold must outlive the request; a route may allow more than the ledger's usual lifetime. */
const lifetimeMarginMs = 5 * 60_000

export function hold(deps: HoldDependencies, call: Call, admitted: Admitted): Bill | Failure | Promise<Bill | Failure> {
  const holder = holderOf(deps, call, admitted)
  const { facts, billOf, ask } = holder
  const { envelope, model } = call
  const read = () => conversationOf(call.conversation())
  const rough = roughInputTokens(envelope.body, deps.ratios.of(model.id), read, model, call.mayHaveMedia)
  const usual = sliceOf(facts, rough, facts.cap)
  const usualRoom = roomLeast(facts, usual)
  const conclude = (outcome: HoldOutcome): Bill | Failure | Promise<Bill | Failure> =>
    outcome.kind === 'held' ? billOf(facts, usual) : thinHold(call, admitted.caller, { ...holder, usualRoom }, outcome)
  const outcome = ask(usual, usualRoom)
  return outcome instanceof Promise ? outcome.then(conclude) : conclude(outcome)
}

function holderOf({ ledger, clock }: HoldDependencies, call: Call, admitted: Admitted): Holder {
  const { model, story } = call
  const { ordered } = admitted.plan
  const isOwnOnly = ordered.length > 0 && ordered.every(({ isOwn }) => isOwn)
  const budgets = budgetsOf(admitted.caller, clock)
  return {
    facts: factsOf(call, isOwnOnly ? (model.fee?.price ?? freePrice) : model.price),
    billOf: (facts, slice) => new Bill(story.record.id, ledger, model, facts, slice),
    ask: (slice, room = slice.amount) =>
      ledger.hold({ ...holdRequest(call, admitted, slice.amount, budgets), roomLeast: room }),
  }
}

/** Input and output together, as limits count them until the real number is known. */
export function estimateAllTokens(
  surface: Dialect,
  envelope: Envelope,
  model: OfferedModel,
  ratios: InputRatios,
): number {
  const read = () => conversationOf(parsedRequest(surface, envelope))
  const input = roughInputTokens(envelope.body, ratios.of(model.id), read, model)
  return input + outputCapOf(envelope, model) * envelope.choices
}

function conversationOf(parsed: ParsedRequest | Failure): Conversation | undefined {
  return parsed instanceof Failure ? undefined : parsed.conversation
}

/** Whether a request may use a bucket. The price of a token bucket that is not listed is held for every request. */
const mayUse: Readonly<Partial<Record<Bucket, (call: Call) => boolean>>> = {
  cache_write_1h: ({ envelope }) => hasCacheMark(envelope.body),
  audio_input: mayHear,
  audio_cache_read: mayHear,
  audio_output: speaks,
}

function factsOf(call: Call, price: Price): SliceFacts {
  const { envelope, model } = call
  const without = tokenBuckets
    .map(({ bucket }) => bucket)
    .filter((bucket) => hasRow(price, bucket) && mayUse[bucket]?.(call) === false)
  const isSpoken = hasRow(price, 'audio_output') && !without.includes('audio_output')
  return {
    price,
    cap: outputCapOf(envelope, model),
    choices: envelope.choices,
    isUsOnly: price.factors.us_only !== undefined && mayNamePlace(envelope.body),
    webSearches: hasRow(price, 'web_search') && call.mayHaveMedia ? searchesOf(call) : 0,
    without,
    // Reasoning and audio are billed but only partly visible in the stream, so hold the full cap.
    holdsWholeCap: !envelope.stream || isSpoken || model.tags.includes('reasoning'),
    capLeast: 0,
  }
}

function mayHear(call: Call): boolean {
  return call.mayHaveMedia && mayHaveSound(readable(call))
}

/** Whether the answer may be in sound. */
function speaks(call: Call): boolean {
  const conversation = readable(call)
  return conversation === undefined || conversation.unsupported.some((field) => field.wantsAudio)
}

/** undefined where it cannot be read, or reading it would keep others waiting. */
function readable(call: Call): Conversation | undefined {
  return call.envelope.body.length > readBytesMax ? undefined : conversationOf(call.conversation())
}

/** What it asks a provider to look up, at most. */
function searchesOf(call: Call): number {
  const unsupported = conversationOf(call.conversation())?.unsupported ?? []
  return unsupported.reduce((sum, { maxSearches = 0 }) => sum + maxSearches, 0)
}

function holdRequest(call: Call, { caller, plan }: Admitted, amount: Nano, budgets: readonly Budget[] | undefined) {
  return {
    requestId: call.story.record.id,
    workspaceId: caller.workspaceId,
    keyId: caller.keyId,
    projectId: caller.projectId,
    amount,
    budgets,
    ...lifetimeOf(call, plan),
  }
}

/** The ledger's own lifetime is for requests whose routes have the usual deadlines; nothing shortens it. */
function lifetimeOf({ envelope }: Call, { ordered }: Admitted['plan']): { readonly lifetimeMs?: number } {
  if (ordered.every(({ route }) => route.timeouts.totalMs === undefined)) return {}
  const totals = ordered.map(({ route }) => route.timeouts.totalMs ?? usualTotalMs(envelope))
  return { lifetimeMs: Math.max(usualHoldLifetimeMs, Math.max(...totals) * ordered.length + lifetimeMarginMs) }
}
