// The hold before anything is sent: what a request may cost is set aside, or it is refused with the numbers and what to
// do. Nothing goes to a provider without one.

import { assert } from '../kernel/assert.ts'
import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import type { HoldOutcome, Insufficient, Ledger } from '../ledger/ledger.ts'
import type { Admitted } from './admit.ts'
import { Bill } from './bill.ts'
import type { Call } from './call.ts'
import { hasCacheMark, roughInputTokens, strictInputTokens } from './input-bound.ts'
import type { InputRatios } from './input-ratio.ts'
import { leastSlice, type Slice, type SliceFacts, sliceOf, thinSlices } from './slice.ts'

export interface HoldDependencies {
  readonly ledger: Ledger
  readonly ratios: InputRatios
}

/** Where neither the caller nor the catalog sets a cap; more is held as a stream goes on. */
const capUnknown = 32_768
/** A hold must outlive the request; a route may allow more than the ledger's usual lifetime. */
const lifetimeMarginMs = 5 * 60_000
/** Holds of running requests end one by one; about this long until one does. */
const inFlightRetryMs = 5_000

export function hold(deps: HoldDependencies, call: Call, admitted: Admitted): Bill | Failure | Promise<Bill | Failure> {
  const { ledger, ratios } = deps
  const { envelope, model } = call
  const facts = factsOf(call)
  const rough = within(model.contextTokens, roughInputTokens(envelope.body, ratios.of(model.id)))
  const usual = sliceOf(facts, rough, facts.cap)
  const ask = (slice: Slice): HoldOutcome | Promise<HoldOutcome> =>
    ledger.hold(holdRequest(call, admitted, slice.amount))
  const outcome = ask(usual)
  if (!(outcome instanceof Promise)) {
    if (outcome.kind === 'held') return new Bill(call.story.record.id, ledger, model, facts, usual)
    return refusedHold(deps, call, admitted, facts, outcome, ask)
  }
  return outcome.then((known) => {
    if (known.kind === 'held') return new Bill(call.story.record.id, ledger, model, facts, usual)
    return refusedHold(deps, call, admitted, facts, known, ask)
  })
}

type Refused = Exclude<HoldOutcome, { kind: 'held' }>

/** A wallet that cannot pay the usual slice is held to strict bounds, and gets what it can pay for. */
async function refusedHold(
  { ledger }: HoldDependencies,
  call: Call,
  { caller }: Admitted,
  facts: SliceFacts,
  refused: Refused,
  ask: (slice: Slice) => HoldOutcome | Promise<HoldOutcome>,
): Promise<Bill | Failure> {
  if (refused.kind === 'unavailable') return cannotCharge(refused.retryAfterMs)
  assert(refused.kind === 'insufficient', 'no budgets were named')
  const { envelope, model } = call
  const strict = within(model.contextTokens, strictInputTokens(envelope.body))
  const withCap = { ...facts, capLeast: capLeast(call) }
  let wallet: Insufficient = refused
  for (const slice of thinSlices(withCap, strict, refused.posted)) {
    const outcome = await ask(slice)
    if (outcome.kind === 'held') return new Bill(call.story.record.id, ledger, model, withCap, slice)
    if (outcome.kind === 'unavailable') return cannotCharge(outcome.retryAfterMs)
    if (outcome.kind === 'insufficient') wallet = outcome
  }
  const needed = neededAmount(withCap, strict)
  return needed > wallet.posted
    ? emptyWallet(caller.workspaceName, wallet, needed)
    : inFlight(caller.workspaceName, wallet, needed)
}

function factsOf(call: Call): SliceFacts {
  const { envelope, model } = call
  const most = model.maxOutputTokens ?? Number.POSITIVE_INFINITY
  const asked = envelope.outputCap ?? model.defaultMaxTokens ?? model.maxOutputTokens ?? capUnknown
  return {
    price: model.price,
    isMarked: hasCacheMark(envelope.body),
    cap: Math.min(asked, most),
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

function holdRequest(call: Call, { caller, candidates }: Admitted, amount: Nano) {
  let longest = 0
  for (const { route } of candidates) longest = Math.max(longest, route.timeouts.totalMs ?? 0)
  return {
    requestId: call.story.record.id,
    workspaceId: caller.workspaceId,
    keyId: caller.keyId,
    projectId: caller.projectId,
    amount,
    ...(longest > 0 && { lifetimeMs: longest * candidates.length + lifetimeMarginMs }),
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
