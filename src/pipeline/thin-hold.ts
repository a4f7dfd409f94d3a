// A request whose usual hold was refused: by a wallet or a spend limit with less room than it may cost. It is held to
// strict bounds and gets what there is room for, or it is refused with the numbers and what to do.

import { Failure } from '../kernel/failure.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import type { OverBudget } from '../ledger/budget.ts'
import type { Insufficient } from '../ledger/insufficient.ts'
import type { HoldOutcome } from '../ledger/ledger.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { Bill } from './bill.ts'
import type { Call } from './call.ts'
import { strictInputTokens } from './input-bound.ts'
import { leastSlice, type Slice, type SliceFacts, sliceOf, thinSlices } from './slice.ts'
import { overBudget } from './spend-limits.ts'
import { isStrict } from './strict.ts'

/** Holds of running requests end one by one; about this long until one does. */
const inFlightRetryMs = 5_000

/** What the attempts at a hold for one request have in common. */
export interface Holder {
  readonly facts: SliceFacts
  billOf(facts: SliceFacts, slice: Slice): Bill
  /** `room`: what must be free for it to be granted, where that is more than the slice. */
  ask(slice: Slice, room?: Nano): HoldOutcome | Promise<HoldOutcome>
}

export interface ThinHolder extends Holder {
  /** What would have been enough for the usual hold. */
  readonly usualRoom: Nano
}

type Refused = Exclude<HoldOutcome, { kind: 'held' }>

export async function thinHold(
  call: Call,
  caller: Caller,
  { facts, billOf, ask, usualRoom }: ThinHolder,
  refused: Refused,
): Promise<Bill | Failure> {
  if (refused.kind === 'unavailable') return cannotCharge(refused.retryAfterMs)
  const parsed = call.conversation()
  const conversation = parsed instanceof Failure ? undefined : parsed.conversation
  const strict = strictInputTokens(call.envelope.body, conversation, call.model)
  const withCap = { ...facts, capLeast: capLeast(call) }
  let last = refused
  // The wallet and each limit have room of their own; whoever refuses next is asked about in turn while it has less.
  for (let room = roomOf(refused); ; room = roomOf(last)) {
    const slices = thinSlices(withCap, strict, room.amount)
    for (const slice of slices) {
      const outcome = await ask(slice)
      if (outcome.kind === 'held') return billOf(withCap, { ...slice, within: room.of })
      if (outcome.kind === 'unavailable') return cannotCharge(outcome.retryAfterMs)
      last = outcome
    }
    if (slices.length > 0 && roomOf(last).amount < room.amount) continue
    const bounded = slices.at(-1)?.amount ?? neededAmount(withCap, strict)
    // Strict bounds of a long prompt may come to more than what the usual hold, an estimate, would have asked for.
    const needed = usualRoom < bounded ? usualRoom : bounded
    return refusal(caller, last, needed, call.story.record.startedAt)
  }
}

interface Room {
  readonly amount: Nano
  readonly of: 'balance' | 'limit'
}

/** What could be spent if nothing else ran. */
function roomOf(refused: Insufficient | OverBudget): Room {
  if (refused.kind === 'insufficient') return { amount: refused.posted, of: 'balance' }
  const { cap, spent } = refused
  return { amount: (cap > spent ? cap - spent : 0n) as Nano, of: 'limit' }
}

/** Under x-tollgate-strict the caller's cap is kept or the call refused; a budget for thinking must fit in any case. */
function capLeast(call: Call): number {
  if (isStrict(call.request.headers)) return Number.POSITIVE_INFINITY
  const parsed = call.conversation()
  const budget = parsed instanceof Failure ? undefined : parsed.conversation.reasoning?.budgetTokens
  return budget === undefined ? 0 : budget + 1
}

function neededAmount(facts: SliceFacts, inputTokens: number): Nano {
  if (facts.capLeast === 0) return leastSlice(facts, inputTokens).amount
  const cap = Math.min(facts.cap, facts.capLeast)
  return sliceOf({ ...facts, holdsWholeCap: true }, inputTokens, cap).amount
}

function refusal(caller: Caller, refused: Insufficient | OverBudget, needed: Nano, now: number): Failure {
  const isInFlight = needed <= roomOf(refused).amount
  if (refused.kind === 'over budget') return overBudget(caller, refused, now, isInFlight ? inFlightRetryMs : undefined)
  return isInFlight
    ? inFlight(caller.workspaceName, refused, needed)
    : emptyWallet(caller.workspaceName, refused, needed)
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
