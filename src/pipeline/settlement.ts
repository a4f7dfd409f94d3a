// How a request ends: what each ending costs (a table), the charge, and the record. An admitted request ends exactly once,
// and its hold, its place among the running requests and its idempotency key are given back here, by one of these:
//
//   endRefused      a stage refused it: endWithError, or endClientLeft if the client has left meanwhile
//   settle          a provider was called, or a stream's headers were sent: charges or releases the hold by the ending
//   endWithError    nothing of an answer went out: refused, no provider answered, or a defect; returns an error response
//   endFailed       a stream could not be settled because of a defect: returns the failure for an error event
//   endUncharged    an answer without a charge: a replay under an idempotency key, a count
//   endClientLeft   the client left before anything was sent to a provider

import { priceUsage } from '../catalog/price.ts'
import type { LimitViews } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { causeOf, Failure, type FailureCode } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import { withinTime } from '../kernel/timers.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { SettleEnd, SettleOutcome } from '../ledger/ledger.ts'
import type { FaultClass } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import type { Log } from '../telemetry/log.ts'
import type { RequestLog } from '../telemetry/request-log.ts'
import { chargedRequestRow, logRequest, type RequestRecord } from '../telemetry/request-record.ts'
import type { GenerationKeys, KeyedRequest } from '../tenancy/idempotency.ts'
import type { StoredResponses } from '../tenancy/stored-responses.ts'
import { Answer, failureAnswer, routeHeaders, withLimits } from './answer.ts'
import type { OpenStream, WholeReply } from './attempt.ts'
import type { StreamCapture } from './capture-content.ts'
import type { Exchange } from './exchange.ts'
import type { Meter } from './meter.ts'
import type { Held, Refusal } from './stages.ts'
import { keepResponse } from './stored-response.ts'
import type { MeasuredReply } from './usage.ts'

// ── What each ending costs ──

/**
 * How a request that had a hold can end, and what it then pays. usage: the usage of the whole answer · read: the
 * input, and the output that was read from the provider; nothing while there is neither output nor a usage · nothing: the
 * hold is released and no transfer is written.
 */
const endings = {
  /** The whole answer arrived, whatever its stop reason: end, length, tools, refusal. */
  complete: 'usage',
  /** No provider answered a stream whose headers were sent early. */
  'not served': 'nothing',
  'client left before content': 'nothing',
  'client left after content': 'read',
  /** The provider broke off, or its time was up. */
  interrupted: 'read',
  /** The hold could not grow: the wallet or a spend limit has no room for more. */
  'hold exhausted': 'read',
  /** The gateway ended it: a shutdown, a defect, or the ledger cannot be reached. */
  'ended by us': 'read',
} as const satisfies Record<string, 'usage' | 'read' | 'nothing'>

export type Ending = keyof typeof endings

/** The usage that is billed; undefined = nothing, and no transfer. */
export function billedUsage(
  ending: Ending,
  {
    reply: { meter },
    measured,
  }: { readonly reply: { readonly meter: Pick<Meter, 'usageOfPart'> } } & Pick<ReadReply, 'measured'>,
): Usage | undefined {
  const { usage, outputBytes } = measured
  switch (endings[ending]) {
    case 'usage':
      return usage ?? meter.usageOfPart(measured)
    case 'read':
      return outputBytes > 0 || usage !== undefined ? meter.usageOfPart(measured) : undefined
    case 'nothing':
      return undefined
  }
}

// ── Settling ──

/** A provider's reply as far as it was read, which is what is charged; a whole one is not sent yet. */
export interface ReadReply {
  readonly reply: Pick<OpenStream | WholeReply, 'candidate' | 'meter' | 'repliedMs'>
  readonly measured: MeasuredReply
  /** The answer, if it may be kept under an idempotency key; undefined = it was streamed. */
  readonly bodyToKeep: Uint8Array | undefined
  /** The end of the reply, from which a response to be stored is read. */
  readonly lastBytes: Uint8Array
  /** Of a stream whose content is exported. */
  readonly capture?: StreamCapture | undefined
}

/** How an answer ended. */
export interface End {
  readonly ending: Ending
  /** The error that the client is sent. */
  readonly failure?: Failure | undefined
  /** The provider's fault, if it broke off. */
  readonly why?: FaultClass | undefined
}

export interface Settled {
  /** The charge was not made, or is not confirmed: the answer must end with this error. */
  readonly unsettled?: Failure | undefined
  /** Decimal USD. */
  readonly chargeUsd?: string | undefined
}

export interface SettlementDependencies {
  readonly clock: Clock
  readonly log: Log
  readonly requests: Pick<RequestLog, 'write'>
  readonly idempotencyKeys: Pick<GenerationKeys, 'complete' | 'abandon' | 'leaveUnresolved'>
  readonly storedResponses: StoredResponses
  /** For metrics and traces; never throws. */
  observe(record: RequestRecord): void
  /** Requests that were answered before their charge was confirmed or their answer was kept; shutdown waits for them. */
  readonly unconfirmed: Set<Promise<void>>
}

/** Recorded for a client that left; never sent. */
const clientLeftStatus = 499
/** A slower commit is noted in the record of the request. */
const slowCommitMs = 1_000

/** Ends a request: charges it or releases its hold. If this resolves without `unsettled`, the charge is durable. */
export async function settle(
  deps: SettlementDependencies,
  held: Held,
  { ending, failure }: End,
  /** undefined = no provider replied, and nothing is charged. */
  read: ReadReply | undefined,
): Promise<Settled> {
  const { exchange, hold } = held
  const { record } = exchange
  if (exchange.hasEnded) return { chargeUsd: record.chargeUsd }
  const hasLeft = ending === 'client left before content' || ending === 'client left after content'
  const usage = read && billedUsage(ending, read)
  // 200 also with a failure: the status was sent before, or the reply is complete.
  recordEnd(exchange, hasLeft ? clientLeftStatus : 200, failure)
  if (!read || usage === undefined) {
    release(deps, exchange)
    return {}
  }
  const { candidate, meter } = read.reply
  // The usage of a complete reply is the object that was quoted when it was relayed, by which the meter finds that quote. Only
  // the usage of a part is priced here.
  const quote = meter.quote(usage)
  record.usage = usage
  record.charge = quote.quoted
  record.chargeUsd = quote.quotedUsd
  record.upstreamCost = upstreamCostOf(candidate, usage)
  record.costVersion = candidate.isOwn ? ownCost : candidate.route.costVersion
  record.cacheSaved = meter.cacheSaved(usage)
  record.priceVersion = meter.priceVersion
  record.held = hold.heldBeforeCost
  exchange.hasEnded = true
  exchange.mayBeCharged = true
  let outcome: SettleOutcome
  try {
    outcome = await hold.settle(quote, (charge) => chargedRequestRow(record, charge), record.model)
  } catch (error) {
    // Counts as unknown, whatever the error says.
    exchange.hasEnded = false
    forgetCharge(record)
    throw error
  }
  if (outcome.kind === 'settled') {
    recordCharge(record, outcome)
    recordSettleTime(exchange)
    await keepAnswer(deps, held, ending, read)
    return endCharged(deps, exchange)
  }
  if (outcome.kind === 'unknown') return endUnconfirmed(deps, exchange, outcome.end, hasLeft, read.bodyToKeep)
  exchange.mayBeCharged = false
  const unsettled = chargeFailed(outcome.kind === 'unavailable' ? outcome.retryAfterMs : 1000)
  recordSettleTime(exchange)
  recordEnd(exchange, unsettled.status, unsettled)
  forgetCharge(record)
  release(deps, exchange)
  return { unsettled }
}

/** In place of the version of a cost: the provider bills the workspace. */
const ownCost = 'own'

/** A workspace pays for calls on its own credential itself. undefined = unknown. */
function upstreamCostOf({ route, isOwn }: Candidate, usage: Usage): Nano | undefined {
  const { cost } = route
  return isOwn ? zeroNano : cost && priceUsage(cost, usage)
}

type Charged = Extract<SettleEnd, { kind: 'settled' }>

function endCharged(deps: SettlementDependencies, exchange: Exchange): Settled {
  const { record } = exchange
  if (record.settleMs >= slowCommitMs) {
    // The row was written in the same commit; this adds the note, and leaves the amounts as they are.
    record.notes.push(`the charge took ${(record.settleMs / 1000).toFixed(1)} s to commit`)
    deps.requests.write(record)
  }
  giveBackSlot(exchange)
  report(deps, record)
  return { chargeUsd: record.chargeUsd }
}

/** Answers the caller now; the key, the record and the log line follow once it is known whether the charge was made. */
function endUnconfirmed(
  deps: SettlementDependencies,
  exchange: Exchange,
  end: Promise<SettleEnd | undefined>,
  hasLeft: boolean,
  bodyToKeep: Uint8Array | undefined,
): Settled {
  const { record, key } = exchange
  const { log, requests, idempotencyKeys, unconfirmed } = deps
  const failure = chargeUnknown('OVERLOADED', record.id, key !== undefined)
  recordSettleTime(exchange)
  if (!hasLeft) recordEnd(exchange, failure.status, failure)
  log.warn('a charge was not confirmed in time; whether it was made is not known yet', { request_id: record.id })
  giveBackSlot(exchange)
  const endLater = async (): Promise<void> => {
    const known = await end
    if (known === undefined) {
      record.notes.push('this process could not find out whether it was charged')
      forgetCharge(record)
      if (key) idempotencyKeys.leaveUnresolved(key)
      return report(deps, record)
    }
    const isCharged = known.kind === 'settled'
    record.notes.push(`the charge was not confirmed in time; it was ${isCharged ? 'made' : 'not made'}`)
    if (isCharged) {
      recordCharge(record, known)
      if (key) await storeAnswer(deps, key, bodyToKeep)
    } else {
      forgetCharge(record)
      if (key) await idempotencyKeys.abandon(key)
    }
    requests.write(record)
    report(deps, record)
  }
  const ending = endLater()
    .catch((error) => log.error('a request could not be ended', { request_id: record.id, error: String(error) }))
    .finally(() => unconfirmed.delete(ending))
  unconfirmed.add(ending)
  return { unsettled: failure }
}

/** On PostgreSQL the charge may be less than quoted (decision 0012). */
function recordCharge(record: RequestRecord, { charge, posted }: Charged): void {
  record.balance = posted
  if (charge === record.charge) return
  record.charge = charge
  record.chargeUsd = formatUsd(charge)
}

/** Waiting for the commit is part of the request's duration in the log and in metrics; its row was made before. */
function recordSettleTime(exchange: Exchange): void {
  const { record } = exchange
  const totalMs = exchange.elapsedMs()
  record.settleMs = totalMs - record.totalMs
  record.totalMs = totalMs
}

function forgetCharge(record: RequestRecord): void {
  record.charge = undefined
  record.chargeUsd = undefined
}

/** How long a paid answer waits until it is kept for retries and later requests; after that it goes out before. */
const keepingMs = 2_000

/** Keeps what a retry under the same key, or a request that names the response, will ask for. */
async function keepAnswer(deps: SettlementDependencies, held: Held, ending: Ending, read: ReadReply): Promise<void> {
  const { exchange, admitted } = held
  const { key } = exchange
  const { input, remembered, items } = admitted.storing
  const isStored = (input ?? remembered ?? items) !== undefined && ending === 'complete'
  if (!key && !isStored) return
  const keeping = Promise.all([
    key && storeAnswer(deps, key, read.bodyToKeep),
    isStored && keepResponse(deps, held, read.lastBytes),
  ]).then(() => void deps.unconfirmed.delete(keeping))
  deps.unconfirmed.add(keeping)
  await withinTime(keepingMs, keeping).catch(() =>
    deps.log.warn('the database is slow: an answer goes out before it is kept for retries', {
      request_id: exchange.record.id,
    }),
  )
}

/** The request is paid for: the answer goes out even if it cannot be stored, and the key is not freed. */
async function storeAnswer(
  { idempotencyKeys, log }: SettlementDependencies,
  key: KeyedRequest,
  answer: Uint8Array | undefined,
): Promise<void> {
  try {
    await idempotencyKeys.complete(key, answer)
  } catch (error) {
    log.warn('an answer could not be kept for its idempotency key yet', { error: String(error) })
  }
}

// ── Ending without a charge ──

/** Ends a request with a failure, unless it has ended. Returns the error for the caller. */
export function endFailed(deps: SettlementDependencies, exchange: Exchange, failure: Failure): Failure {
  const { mayBeCharged, record, key } = exchange
  const sent = mayBeCharged ? chargeUnknown(failure.code, record.id, key !== undefined) : failure
  endUncharged(deps, exchange, sent.status, sent)
  return sent
}

/** Ends a request with a failure and returns the error response. */
export function endWithError(
  deps: SettlementDependencies,
  exchange: Exchange,
  failure: Failure,
  limits: LimitViews = {},
): Answer {
  const sent = endFailed(deps, exchange, failure)
  const { record, attempts, surface } = exchange
  const headers = routeHeaders(record.id, attempts.tried, attempts.count)
  return failureAnswer(surface, sent, withLimits(headers, exchange, limits), record.id)
}

/** Ends a request of which nothing was sent. */
export function endRefused(deps: SettlementDependencies, exchange: Exchange, { failure, limits }: Refusal): Answer {
  return exchange.clientGone.aborted ? endClientLeft(deps, exchange) : endWithError(deps, exchange, failure, limits)
}

/** Ends a request whose client has left before a provider replied. */
export function endClientLeft(deps: SettlementDependencies, exchange: Exchange): Answer {
  endUncharged(deps, exchange, clientLeftStatus)
  return goneAnswer()
}

/** A response for a client that is no longer there. */
export function goneAnswer(): Answer {
  return new Answer(clientLeftStatus, {})
}

/** Ends a request that this process does not settle, unless it has ended. A settlement that was begun decides by itself. */
export function endUncharged(
  deps: SettlementDependencies,
  exchange: Exchange,
  status = 200,
  failure?: Failure | undefined,
): void {
  if (exchange.hasEnded) return
  recordEnd(exchange, status, failure)
  release(deps, exchange)
}

/** Releases the hold and the idempotency key, and writes the record without a charge. */
function release(deps: SettlementDependencies, exchange: Exchange): void {
  const { log, requests, idempotencyKeys } = deps
  const { key, record, hold } = exchange
  exchange.hasEnded = true
  // The ledger keeps a hold whose settlement was begun: only that can end it.
  void hold?.release((error) => log.warn('a hold could not be released; the reaper ends it', { error: String(error) }))
  if (key && exchange.mayBeCharged) idempotencyKeys.leaveUnresolved(key)
  else if (key) void idempotencyKeys.abandon(key)
  requests.write(record)
  giveBackSlot(exchange)
  report(deps, record)
}

/** Gives back the connection and the place among the running requests. */
function giveBackSlot({ connection, slot, record: { usage } }: Exchange): void {
  connection.rearm()
  slot?.end(usage ? totalInputTokens(usage) + usage.outputTokens : 0)
}

function report({ log, observe }: SettlementDependencies, record: RequestRecord): void {
  logRequest(log, record)
  observe(record)
}

// ── The record of the end ──

function recordEnd(
  { record, attempts, clock, startedMs }: Exchange,
  status: number,
  failure: Failure | undefined,
): void {
  record.status = status
  record.code = failure?.code
  record.cause = failure && causeOf(failure)
  record.reason = failure && recordedReason(failure)
  record.totalMs = clock.monotonicMs() - startedMs
  attempts.endOpen(openAttemptOutcome(status, failure))
}

/** A provider that refuses a request may quote it, and prompts are not stored: only the provider's error code is. */
function recordedReason({ message, facts }: Failure): string {
  const { refusal } = facts
  if (!refusal) return message
  return `Provider ${refusal.provider} refused the request${refusal.word === undefined ? '' : `: ${refusal.word}`}`
}

/** The outcome of attempts that were still running when their request ended. A provider's fault ends its attempt first. */
function openAttemptOutcome(status: number, failure: Failure | undefined): string {
  if (status === clientLeftStatus) return 'client left'
  if (!failure) return 'superseded'
  return failure.code === 'INTERNAL' ? 'failed here' : 'shut down'
}

// ── Errors ──

function chargeFailed(retryAfterMs: number): Failure {
  const message = 'Tollgate could not record the charge for this answer, so it cannot complete it. Nothing was charged.'
  return new Failure('OVERLOADED', message, { retryAfterMs })
}

/**
 * The error of a request that may have been charged. Under an idempotency key a retry is safe: it gets the stored answer,
 * or runs only once it is certain that the first was not charged. Without a key a retry would be a second request with its
 * own charge, so `x-should-retry` turns off the automatic retry of the official clients.
 */
function chargeUnknown(code: FailureCode, requestId: RequestId, hasKey: boolean): Failure {
  const again = hasKey
    ? 'Send it again with the same Idempotency-Key: it is not paid for twice.'
    : 'If you send it again, that is a new request with its own charge.'
  return new Failure(
    code,
    `Tollgate could not complete this answer, and it is not known yet whether it was charged. Look it up: \`tollgate explain ${requestId}\`, or GET /api/requests/${requestId}. ${again}`,
    { retryAfterMs: 1000, shouldRetry: hasKey },
  )
}
