// What one request leaves behind: its record, kept while it runs and written once when it is over, its bill, and the
// answers that end it early.

import { priceUsd } from '../catalog/price.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { Admission, Arrival, LimitStates } from '../limits/limiter.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { RequestRow } from '../store/request-rows.ts'
import type { Log } from '../telemetry/log.ts'
import type { RequestLog } from '../telemetry/request-log.ts'
import { createRecord, logRequest, type RequestRecord, type TraceContext } from '../telemetry/request-record.ts'
import { requestRow } from '../telemetry/request-row.ts'
import { type AnswerHeaders, failureResponse, generationHeaders } from './answer-headers.ts'
import { AttemptNote, putLast } from './attempt-note.ts'
import { type Bill, chargeUnknown, type UnconfirmedCharge } from './bill.ts'
import type { Connection } from './connection.ts'
import { clientLeftStatus, noteEnd } from './note-end.ts'
import { billedUsage, type Ending, type SettlementFacts } from './settlement.ts'

/** What a request with an idempotency key owes its key in the end. */
export interface KeptKey {
  /** It was answered and paid for; a streamed answer is not kept. */
  keep(body: Uint8Array | undefined): Promise<void>
  /** It came to nothing, and the key may be used again. */
  free(): Promise<void>
  /** It has ended, and this process does not know whether it was charged: the next request asks the ledger. */
  leave(): void
}

export interface StoryDependencies {
  readonly clock: Clock
  readonly log: Log
  readonly requests: Pick<RequestLog, 'write'>
  /** For metrics and traces; never throws. */
  observe(record: RequestRecord): void
  /** Requests that were answered before it was known whether they were charged; the gateway waits for them when it stops. */
  readonly unconfirmed: Set<Promise<void>>
  /** Where traces are kept: the one that a request belongs to, by its `traceparent`. */
  readonly beginTrace?: ((traceparent: string | null) => TraceContext) | undefined
}

export interface Settled {
  /** The charge was not made, or has not been confirmed: the answer must not be completed. */
  readonly unsettled?: Failure | undefined
  /** Decimal USD. */
  readonly cost?: string | undefined
}

/** Nobody reads it. */
export function gone(): Response {
  return new Response(null, { status: clientLeftStatus })
}

const noLimits: LimitStates = {}

/** A commit that takes this long is named in the record of the request that waited for it. */
const slowCommitMs = 1_000

function totalTokens(usage: Usage): number {
  return totalInputTokens(usage) + usage.outputTokens
}

export class Story {
  readonly record: RequestRecord
  /** The candidate that is being tried, or that answered. */
  candidate: Candidate | undefined
  /** When the provider was committed. */
  answeredMs: number | undefined
  /** What is left of the caller's limits, for headers. */
  limits: LimitStates = noLimits
  /** Its place among the running requests of its key, from before its body is read; given back at the end. */
  admission: Admission | Arrival | undefined
  /** The caller's idempotency key, and the whole answer that is kept under it. */
  kept: KeptKey | undefined
  keptAnswer: Uint8Array | undefined
  /** From the hold on; whatever ends the story ends the bill. */
  bill: Bill | undefined
  readonly #deps: StoryDependencies
  readonly #startedMs: number
  /** The last usage that was priced, and what it came to. */
  #priced: Usage | undefined
  #pricedUsd: string | undefined
  /** Whoever ends it again, such as a defect behind the charge, changes nothing and only gets something to send. */
  #hasEnded = false
  /** A settlement was begun, and it is not certain that it charged nothing. */
  #mayBeCharged = false

  constructor(
    deps: StoryDependencies,
    readonly surface: Dialect,
    path: string,
    readonly connection: Connection,
  ) {
    this.#deps = deps
    this.record = createRecord(createId('req'), deps.clock.now(), path)
    this.#startedMs = deps.clock.monotonicMs()
  }

  beginAttempt(candidate: Candidate): AttemptNote {
    this.candidate = candidate
    return new AttemptNote(this.record, this.#deps.clock, this.#startedMs, candidate)
  }

  /** Somebody has begun to answer. */
  noteServed(candidate: Candidate): void {
    // Of two that were asked, the other may have been the last to begin.
    this.candidate = candidate
    this.bill?.serveBy(candidate)
    putLast(this.record, candidate)
    this.answeredMs = this.#deps.clock.monotonicMs()
    this.record.firstEventMs = this.answeredMs - this.#startedMs
  }

  headers(): AnswerHeaders {
    return this.#withLimits(generationHeaders(this.record.id, this.candidate, Math.max(1, this.record.attempts.length)))
  }

  /** What a usage costs, as decimal USD; the reply, its header, the record and the ledger tell the same figure. */
  costUsd(model: OfferedModel, usage: Usage): string {
    if (this.#priced !== usage || this.#pricedUsd === undefined) {
      this.#priced = usage
      this.#pricedUsd = this.bill ? formatUsd(this.bill.chargeOf(usage)) : priceUsd(model.price, usage)
    }
    return this.#pricedUsd
  }

  /** Ends the request with what it costs, durable when this resolves. */
  async settle(ending: Ending, failure: Failure | undefined, facts: SettlementFacts): Promise<Settled> {
    if (this.#hasEnded) return { cost: this.record.costUsd }
    const usage = billedUsage(ending, facts)
    const isLeft = ending === 'client left before content' || ending === 'client left after content'
    this.#note(isLeft ? clientLeftStatus : 200, failure)
    if (usage === undefined) {
      this.#release()
      return {}
    }
    const { record, bill } = this
    record.usage = usage
    assert(bill, 'what is answered was held for')
    record.charge = bill.chargeOf(usage)
    record.priceVersion = bill.priceVersion
    record.costUsd = this.#priced === usage ? this.#pricedUsd : formatUsd(record.charge)
    record.held = bill.held
    const usageJson = JSON.stringify(usage)
    // Where others share the wallet, what it pays may be less than was told, and is known only when it is written.
    const rows = (charged: Nano): readonly RequestRow[] => {
      if (charged !== record.charge) {
        record.charge = charged
        record.costUsd = formatUsd(charged)
      }
      const row = requestRow(record, usageJson)
      return row ? [row] : []
    }
    this.#hasEnded = true
    this.#mayBeCharged = true
    let unsettled: Failure | UnconfirmedCharge | undefined
    try {
      unsettled = await bill.settle(usage, rows, usageJson)
    } catch (error) {
      this.#hasEnded = false
      this.#forgetCharge()
      throw error
    }
    if (unsettled === undefined) {
      await this.#keepAnswer()
      this.#noteSettled()
      if (record.settleMs >= slowCommitMs) this.#noteSlowCommit()
      record.balance = bill.balanceAfter
      this.#finish()
      return { cost: record.costUsd }
    }
    if (!(unsettled instanceof Failure)) return this.#settleLater(bill, unsettled, isLeft)
    this.#mayBeCharged = false
    this.#noteSettled()
    this.#note(unsettled.status, unsettled)
    this.#forgetCharge()
    this.#release()
    return { unsettled }
  }

  /** The caller is answered now; key, record and log line follow once it is known whether the charge was made. */
  #settleLater(bill: Bill, { isCharged }: UnconfirmedCharge, isLeft: boolean): Settled {
    const { record } = this
    const { log, requests, unconfirmed } = this.#deps
    const failure = chargeUnknown('OVERLOADED', record.id, this.kept !== undefined)
    this.#noteSettled()
    if (!isLeft) this.#note(failure.status, failure)
    log.warn('a charge was not confirmed in time; whether it was made is not known yet', { request_id: record.id })
    this.#giveBack()
    const finish = async (): Promise<void> => {
      const charged = await isCharged
      if (charged === undefined) {
        record.notes.push('this process could not find out whether it was charged')
        this.#forgetCharge()
        this.kept?.leave()
        return this.#report()
      }
      record.notes.push(`the charge was not confirmed in time; it was ${charged ? 'made' : 'not made'}`)
      if (charged) {
        await this.#keepAnswer()
        record.balance = bill.balanceAfter
      } else {
        this.#forgetCharge()
        await this.kept?.free()
      }
      requests.write(record)
      this.#report()
    }
    const finishing = finish()
      .catch((error) => log.error('a request could not be ended', { request_id: record.id, error: String(error) }))
      .finally(() => unconfirmed.delete(finishing))
    unconfirmed.add(finishing)
    return { unsettled: failure }
  }

  /** The answer could not end before the ledger was done: that is part of its duration. */
  #noteSettled(): void {
    const { record } = this
    const totalMs = this.#deps.clock.monotonicMs() - this.#startedMs
    record.settleMs = totalMs - record.totalMs
    record.totalMs = totalMs
  }

  /** The row was written in that very commit with the duration before it, so the note is added to the row. */
  #noteSlowCommit(): void {
    this.record.notes.push(`the charge took ${(this.record.settleMs / 1000).toFixed(1)} s to commit`)
    this.#deps.requests.write(this.record)
  }

  #forgetCharge(): void {
    this.record.charge = undefined
    this.record.costUsd = undefined
  }

  /** It is paid for, so whatever becomes of its key, the answer goes out and the key is not free for a second one. */
  async #keepAnswer(): Promise<void> {
    try {
      await this.kept?.keep(this.keptAnswer)
    } catch (error) {
      this.#deps.log.warn('an answer could not be kept for its idempotency key', { error: String(error) })
    }
  }

  /** Ends a request that costs nothing and had no hold. */
  conclude(): void {
    this.#endFree(200, undefined)
  }

  /** Ends it before anything was sent; a client that has left meanwhile is told nothing. */
  refuse(failure: Failure, clientGone?: AbortSignal): Response {
    if (clientGone?.aborted) return this.abandon()
    const told = this.fail(failure)
    const headers = this.#withLimits(generationHeaders(this.record.id, this.candidate, this.record.attempts.length))
    return failureResponse(this.surface, told, headers, this.record.id)
  }

  /** Ends it with a failure, unless it has ended; answers with what the caller is to be told. */
  fail(failure: Failure): Failure {
    const told = this.#mayBeCharged ? chargeUnknown(failure.code, this.record.id, this.kept !== undefined) : failure
    this.#endFree(told.status, told)
    return told
  }

  /** Ends it for a client that is no longer there and for whom nothing was sent upstream. */
  abandon(): Response {
    this.#endFree(clientLeftStatus, undefined)
    return gone()
  }

  #endFree(status: number, failure: Failure | undefined): void {
    if (this.#hasEnded) return
    this.#note(status, failure)
    this.#release()
  }

  #withLimits(headers: AnswerHeaders): AnswerHeaders {
    const { requests, tokens } = this.limits
    if (!requests && !tokens) return headers
    return Object.assign(headers, this.surface.limitHeaders?.(this.limits, this.#deps.clock.now()))
  }

  #note(status: number, failure: Failure | undefined): void {
    noteEnd(this.record, status, failure, this.#deps.clock.monotonicMs() - this.#startedMs)
  }

  /** Without a charge; the record is written on its own. */
  #release(): void {
    const { log, requests } = this.#deps
    this.#hasEnded = true
    this.bill?.release((error) =>
      log.warn('a hold could not be released; the reaper ends it', { error: String(error) }),
    )
    if (this.#mayBeCharged) this.kept?.leave()
    else this.kept?.free().catch((error) => log.warn('an idempotency key could not be freed', { error: String(error) }))
    requests.write(this.record)
    this.#finish()
  }

  #finish(): void {
    this.#giveBack()
    this.#report()
  }

  /** Its connection and its place among the running requests. */
  #giveBack(): void {
    this.connection.rearm()
    const { usage, attempts } = this.record
    this.admission?.end(usage ? totalTokens(usage) : attempts.length > 0 ? 0 : undefined)
  }

  #report(): void {
    logRequest(this.#deps.log, this.record)
    this.#deps.observe(this.record)
  }
}
