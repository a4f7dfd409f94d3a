// What one request leaves behind: its record, kept while it runs and written once when it is over, and the answers that
// end it early.

import { priceUsd } from '../catalog/price.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Log } from '../telemetry/log.ts'
import { createRecord, logRequest, type RequestRecord } from '../telemetry/request-record.ts'
import { type AnswerHeaders, failureResponse, generationHeaders } from './answer-headers.ts'

/** How an answer came to its end. */
export type StreamEnd = 'complete' | 'client left' | Failure

/** The client's socket, as far as a generation may touch it. */
export interface Connection {
  /** The runtime closes silent connections; a generation may be silent for minutes. */
  keepOpen(): void
  /** Back to the usual idle limit. */
  rearm(): void
  /** Frees the socket of a client that no longer reads. */
  drop(): void
}

export interface StoryDependencies {
  readonly clock: Clock
  readonly log: Log
}

/** Nothing is sent with it; it marks the record of a client that left. */
const clientLeftStatus = 499

export class Story {
  readonly record: RequestRecord
  /** The candidate that is being tried, or that answered. */
  candidate: Candidate | undefined
  readonly #deps: StoryDependencies
  readonly #startedMs: number
  /** The last usage that was priced, and what it came to. */
  #priced: Usage | undefined
  #pricedUsd: string | undefined

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

  noteAttempt(candidate: Candidate, outcome: string): void {
    const { provider, route } = candidate
    this.record.attempts.push({ provider: provider.id, upstreamModel: route.upstreamModel, outcome })
  }

  noteFirstEvent(): void {
    this.record.firstEventMs = this.#deps.clock.monotonicMs() - this.#startedMs
  }

  headers(): AnswerHeaders {
    return generationHeaders(this.record.id, this.candidate, Math.max(1, this.record.attempts.length))
  }

  /** What a usage costs, as decimal USD; the reply, its header and the record tell the same figure. */
  costUsd(model: OfferedModel, usage: Usage): string {
    if (this.#priced !== usage || this.#pricedUsd === undefined) {
      this.#priced = usage
      this.#pricedUsd = priceUsd(model.price, usage)
    }
    return this.#pricedUsd
  }

  settle(end: StreamEnd, usage: Usage | undefined, model: OfferedModel): void {
    this.record.usage = usage
    this.record.costUsd = usage && this.costUsd(model, usage)
    if (end === 'client left') this.#finish(clientLeftStatus)
    else this.#finish(200, end instanceof Failure ? end : undefined)
  }

  /** Ends it before anything was sent; a client that has left meanwhile is told nothing. */
  refuse(failure: Failure, clientGone?: AbortSignal): Response {
    if (clientGone?.aborted) return this.abandon()
    this.#finish(failure.status, failure)
    const headers = generationHeaders(this.record.id, this.candidate, this.record.attempts.length)
    return failureResponse(this.surface, failure, headers, this.record.id)
  }

  /** Ends it for a client that is no longer there. */
  abandon(): Response {
    this.#finish(clientLeftStatus)
    return new Response(null, { status: clientLeftStatus })
  }

  #finish(status: number, failure?: Failure): void {
    const { record } = this
    record.status = status
    record.code = failure?.code
    record.reason = failure?.message
    record.totalMs = this.#deps.clock.monotonicMs() - this.#startedMs
    this.connection.rearm()
    logRequest(this.#deps.log, record)
  }
}
