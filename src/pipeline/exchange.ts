// One exchange with a client, from its request to the end of its answer: what came in, what is recorded of it, its attempts,
// and what it must give back when it ends. Its content, its plan and its money are values of the later stages (run.ts).

import type { Dialect, StoredConversation } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { createId } from '../kernel/ids.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Admission, Arrival } from '../limits/limiter.ts'
import type { CancelSignal } from '../providers/provider.ts'
import type { FaultClass } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import { type AttemptRecord, RequestRecord } from '../telemetry/request-record.ts'
import type { KeyedRequest } from '../tenancy/idempotency.ts'
import type { ClientRequest } from './client-request.ts'
import type { Hold } from './hold.ts'

/** The client's socket, as far as the pipeline may touch it: `PipelineConnection` in http/handler.ts. */
export interface Connection {
  /** Suspends the idle limit: the server closes silent connections, but an answer may be silent for minutes. */
  keepOpen(): void
  /** Restores the usual idle limit. */
  rearm(): void
  /** Closes the socket of a client that no longer reads. */
  drop(): void
  /** The client's address; undefined = the connection is gone. */
  address(): string | undefined
  /** What the connection remembers for its next request; absent = each request stands alone. */
  readonly memory?: ResponseMemory
}

/** The last response on a connection, which the next request can continue though it is stored nowhere else. */
export interface ResponseMemory {
  find(id: string): StoredConversation | undefined
  keep(id: string, conversation: StoredConversation): void
}

export class Exchange {
  readonly record: RequestRecord
  readonly startedMs: number
  readonly attempts: AttemptLog

  // What it has taken and gives back when it ends, each set by the step that takes it.
  /** Among the running requests of the API key: taken by `admit`, before the body is read. */
  slot: Admission | Arrival | undefined
  /** The idempotency key, claimed by `claimKey`. */
  key: KeyedRequest | undefined
  /** Placed by `placeHold`; settled or released exactly once. */
  hold: Hold | undefined

  // Only settlement.ts writes these.
  /** Later ends are no-ops, for example an error after settlement. */
  hasEnded = false
  /** A settlement was begun, and may have charged the wallet. */
  mayBeCharged = false

  #clientGone: CancelSignal | undefined

  constructor(
    readonly clock: Clock,
    readonly http: ClientRequest,
    readonly surface: Dialect,
    path: string,
    readonly connection: Connection,
  ) {
    this.record = new RequestRecord(createId('req'), clock.now(), path, surface.id)
    this.record.batchId = http.batchId
    this.startedMs = clock.monotonicMs()
    this.attempts = new AttemptLog(this.record, clock, this.startedMs)
  }

  /**
   * Aborts when the client disconnects or half-closes its connection (docs/decisions/0083). It ends attempts; an answer that
   * is being streamed is told by `AnswerStream.clientLeft`.
   */
  get clientGone(): CancelSignal {
    this.#clientGone ??= this.http.signal
    return this.#clientGone
  }

  elapsedMs(): number {
    return this.clock.monotonicMs() - this.startedMs
  }
}

// ── Attempts ──

/** The upstream calls of a request, in its record. */
export class AttemptLog {
  /** The candidate being tried, or the one that replied. */
  tried: Candidate | undefined
  /** The same list as in the record. */
  readonly #list: Attempt[] = []

  constructor(
    private readonly record: RequestRecord,
    private readonly clock: Clock,
    private readonly requestStartedMs: number,
  ) {
    record.attempts = this.#list
  }

  get count(): number {
    return this.#list.length
  }

  /** Before a reply: a call has failed. */
  get hasFailed(): boolean {
    return this.#list.some(({ outcome }) => outcome !== '')
  }

  begin(candidate: Candidate): Attempt {
    this.tried = candidate
    const attempt = new Attempt(candidate, this.clock.monotonicMs(), this.requestStartedMs)
    this.#list.push(attempt)
    return attempt
  }

  /** Has no effect on an attempt that ended with its request. `billed`: what a call without an answer probably cost. */
  end(attempt: Attempt, outcome: string, billed?: BilledCall): void {
    if (attempt.outcome !== '') return
    this.record.waitedMs += attempt.end(outcome, this.clock.monotonicMs())
    if (billed) attempt.bill(billed)
  }

  /** Removes an attempt that sent nothing because the route cannot carry the request. */
  remove(attempt: Attempt): void {
    this.#list.splice(this.#list.indexOf(attempt), 1)
  }

  endOpen(outcome: string): void {
    for (const attempt of this.#list) this.end(attempt, outcome, attempt.sent)
  }

  /** Records which candidate replied, as the last attempt: of two parallel ones it may have begun first. */
  replied(candidate: Candidate): void {
    const { provider, route } = candidate
    this.tried = candidate
    if (this.#list.length === 1) return
    const at = this.#list.findLastIndex(
      (attempt) =>
        attempt.outcome === 'ok' && attempt.provider === provider.id && attempt.upstreamModel === route.upstreamModel,
    )
    if (at !== -1 && at < this.#list.length - 1) this.#list.push(...this.#list.splice(at, 1))
  }

  interrupted(why: FaultClass): void {
    const last = this.#list.at(-1)
    if (last?.outcome === 'ok') last.outcome = `interrupted: ${why}`
  }
}

/** A call without an answer. */
export interface BilledCall {
  /** What it probably used and cost; undefined = the operator pays nothing for it. */
  failedCost(): Pick<AttemptRecord, 'usage' | 'cost' | 'costVersion'> | undefined
}

/**
 * One upstream call in the record of its request. It is recorded from its start, so that a request that ends during it
 * shows which provider was being called.
 */
export class Attempt implements AttemptRecord {
  readonly provider: string
  readonly upstreamModel: string
  readonly startMs: number
  /** '' while it runs. */
  outcome = ''
  ms = 0
  usage?: Usage
  cost?: number
  costVersion?: string
  /** Set while the provider may be working on it. */
  #sent: BilledCall | undefined
  /** Exact, and not in the record: `startMs` is rounded for that. */
  readonly #startedMs: number

  constructor({ provider, route }: Candidate, startedMs: number, requestStartedMs: number) {
    this.provider = provider.id
    this.upstreamModel = route.upstreamModel
    this.startMs = Math.round(startedMs - requestStartedMs)
    this.#startedMs = startedMs
  }

  get startedMs(): number {
    return this.#startedMs
  }

  get sent(): BilledCall | undefined {
    return this.#sent
  }

  markSent(call: BilledCall): void {
    this.#sent = call
  }

  bill(call: BilledCall): void {
    Object.assign(this, call.failedCost())
  }

  /** Returns how long it took. */
  end(outcome: string, nowMs: number): number {
    const tookMs = nowMs - this.#startedMs
    this.outcome = outcome
    this.ms = Math.round(tookMs)
    return tookMs
  }
}
