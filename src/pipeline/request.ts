// The state of one request: its body and caller, its plan, its hold, its attempts, its usage and its charge. Every
// step of the pipeline reads and writes this object; `record` is what telemetry keeps of it at the end. It also works
// out the usage of a complete reply (`quoteUsage`) and of a part of one (`usageOfPart`), by the rules in usage.ts and bounds
// that are computed once. The table in settlement.ts decides which of the two is billed.

import { hasRow, pricedUnits } from '../catalog/price.ts'
import type { RelayContext } from '../dialects/byte-lane/relay.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import type {
  ContentTags,
  Envelope,
  ParsedRequest,
  RenderContext,
  StateEcho,
  Warning,
} from '../dialects/canonical/translation.ts'
import type { Dialect, SpendView } from '../dialects/dialect.ts'
import { forgetReasoning } from '../dialects/request/reasoning.ts'
import type { Clock } from '../kernel/clock.ts'
import { assert, Failure } from '../kernel/failure.ts'
import { createId, type RequestId } from '../kernel/ids.ts'
import { buckets, totalInputTokens, type UnitCounts, type Usage } from '../kernel/usage.ts'
import type { Admission, Arrival, LimitStates } from '../limits/limiter.ts'
import type { CancelSignal } from '../providers/provider.ts'
import type { FaultClass } from '../routing/faults.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Candidate, HealthPlan } from '../routing/plan.ts'
import { type AttemptRecord, RequestRecord } from '../telemetry/request-record.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { KeyedRequest } from '../tenancy/idempotency.ts'
import { hasBytes } from '../wire/bytes.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import type { Message } from '../wire/read-body.ts'
import {
  bytesPerToken,
  countTokens,
  maxReportedInput,
  mayHaveMoreThanText,
  parsedBytesMax,
  tokensOfBytes,
  windowOf,
} from './estimate.ts'
import type { Hold } from './hold.ts'
import { type Recalled, recallTurns, type SessionReasoning } from './kept-reasoning.ts'
import type { DeriveCacheKey, Session, SessionSettings, TagContent } from './session.ts'
import {
  estimateUsage,
  findImplausible,
  type Implausible,
  implausibleNote,
  type MeasuredReply,
  maxOutputOf,
  outputCapOf,
  plausiblePart,
  type UsageBounds,
  usageSince,
  withInputOf,
  withTolerance,
} from './usage.ts'

/** A client's request: a `Request` is one, and that of the gateway's own server. */
export interface ClientRequest extends Message {
  readonly method: string
  /** Absolute, or a path. */
  readonly url: string
  readonly headers: RequestHeaders
  readonly bodyUsed: boolean
  /** Aborts when the client leaves. */
  readonly signal: CancelSignal
}

/** The client's socket, as far as the pipeline may touch it. */
export interface Connection {
  /** Suspends the idle limit: the server closes silent connections, but an answer may be silent for minutes. */
  keepOpen(): void
  /** Restores the usual idle limit. */
  rearm(): void
  /** Closes the socket of a client that no longer reads. */
  drop(): void
  /** The client's address; undefined = the connection is gone. */
  address(): string | undefined
}

const noLimits: LimitStates = {}
const noWarnings: readonly Warning[] = []
/** A request keeps at most this much of its body while it is answered. */
const keptBodyBytesMax = 64 * 1024
const releasedBody = new Uint8Array(0)
const assistantWord = Buffer.from('"assistant"')
/** A body that is only text is estimated by its size, without parsing it. */
export const unparsed = () => undefined

export class GatewayRequest implements RelayContext {
  readonly record: RequestRecord
  readonly startedMs: number
  /** The same list as in the record. */
  readonly attempts: Attempt[] = []

  // Set by admit(), before anything below is used.
  caller!: Caller
  envelope!: Envelope
  /** The requested model; another one of `models` if the first fails. */
  model!: OfferedModel
  /** The models of the candidates, if the caller named several. */
  models: ReadonlyMap<Candidate, OfferedModel> | undefined
  /** Preferences of the caller that the gateway itself ignored. */
  warnings: readonly Warning[] = noWarnings
  /** All routes that may be tried, healthy or not. */
  candidates!: readonly Candidate[]
  plan!: HealthPlan<Candidate>
  bodyBytes = 0
  /** undefined for a short conversation without an id. */
  session: Session | undefined
  sessionSettings: SessionSettings | undefined
  /** Derives the key under which providers cache a session; set by admit(). */
  deriveCacheKey: DeriveCacheKey | undefined
  tagContent: TagContent | undefined
  /** Where the reasoning of replies is kept for later turns; undefined = it is not. */
  keptReasoning: SessionReasoning | undefined
  /** Set by recallReasoning(). */
  recalled: Recalled | undefined
  /** Its size: input that is not in the body. */
  recalledBytes = 0
  /** Identifies the conversation for its prompt cache; undefined if there is only one route. */
  conversationKey: string | undefined
  /** The remaining limits of the caller, for headers. */
  limits: LimitStates = noLimits
  /** The tightest spend limit before this request, for headers. */
  spend: SpendView | undefined
  /** The slot among the running requests of the key; taken before the body is read, given back at the end. */
  admission: Admission | Arrival | undefined

  claimedKey: KeyedRequest | undefined
  /** The whole answer, to be stored under the claimed key. */
  storedAnswer: Uint8Array | undefined

  /** The response that this one continues. */
  previousResponseId: string | undefined
  /** The input items, if the response is to be stored. */
  storedInput: string | undefined
  /** The end of the reply, from which a response to be stored is read. */
  lastBytes: Uint8Array | undefined

  /** Set by `placeHold`; settled or released exactly once. */
  hold: Hold | undefined

  /** The candidate being tried, or the one that answered. */
  candidate: Candidate | undefined
  /** When a provider began to answer. */
  answeredMs: number | undefined

  /** Set once the request has ended. Later ends are no-ops, for example an error after settlement. */
  hasEnded = false
  /** A settlement was started, and it is not certain that it charged nothing. */
  mayBeCharged = false

  readonly #clock: Clock
  #clientGone: CancelSignal | undefined
  #parsed: ParsedRequest | Failure | undefined
  #mayHaveMoreThanText: boolean | undefined
  #estimatedTokens: number | undefined
  #maxInput: number | undefined
  /** null = not computed yet. */
  #unitsMax: UnitCounts | undefined | null = null

  constructor(
    clock: Clock,
    readonly http: ClientRequest,
    readonly surface: Dialect,
    path: string,
    readonly connection: Connection,
  ) {
    this.#clock = clock
    this.record = new RequestRecord(createId('req'), clock.now(), path, surface.id)
    this.record.attempts = this.attempts
    this.startedMs = clock.monotonicMs()
  }

  /** Aborts when the client disconnects or half-closes its connection (docs/decisions/0021). */
  get clientGone(): CancelSignal {
    this.#clientGone ??= this.http.signal
    return this.#clientGone
  }

  elapsedMs(): number {
    return this.#clock.monotonicMs() - this.startedMs
  }

  // ── Content ──

  /** The canonical form, parsed once. */
  parsed(): ParsedRequest | Failure {
    this.#parsed ??= this.surface.translation.parseRequest(this.envelope, this.contentTags)
    return this.#parsed
  }

  /** undefined if the body cannot be parsed. */
  conversation(): Conversation | undefined {
    if (this.envelope.embeddings) return undefined
    const parsed = this.parsed()
    return parsed instanceof Failure ? undefined : parsed.conversation
  }

  /** The part of it that providers get: without their own tools where no route passes them on. */
  sentConversation(): Conversation | undefined {
    const conversation = this.conversation()
    if (!conversation || conversation.unsupported.length === 0) return conversation
    const passing = this.candidates.filter(({ dialect }) => dialect.id === this.surface.id && !this.envelope.isForeign)
    const maySearch = passing.some((candidate) => {
      const { price, hostedTools } = this.models?.get(candidate) ?? this.model
      const isListed = hostedTools.some((type) => type.startsWith('web_search'))
      return candidate.isOwn || price.free || hasRow(price, 'web_search') || isListed
    })
    // Other tools are passed on or refused; a search may also be left out.
    const unsupported = conversation.unsupported.filter(({ refuse, maxSearches }) =>
      maxSearches !== undefined && !refuse ? maySearch : passing.length > 0,
    )
    return unsupported.length === conversation.unsupported.length ? conversation : { ...conversation, unsupported }
  }

  /** Whether the body may contain more than text, so that its size says little about its tokens. */
  get mayHaveMoreThanText(): boolean {
    // Every client of OpenAI's asks for vectors as `base64`.
    this.#mayHaveMoreThanText ??= !this.envelope.embeddings && mayHaveMoreThanText(this.envelope.body)
    return this.#mayHaveMoreThanText
  }

  /** Finds the kept reasoning of the history, before the hold. A promise only if there may be any. */
  recallReasoning(): Promise<void> | undefined {
    const { keptReasoning, surface, plan, envelope } = this
    if (!keptReasoning || !plan.ordered.some(({ dialect }) => dialect.id !== surface.id)) return undefined
    if (!hasBytes(envelope.body, assistantWord)) return undefined
    return recallTurns(keptReasoning, this.conversation()?.turns ?? []).then(({ recalled, bytes }) => {
      if (bytes === 0) return
      this.recalled = recalled
      this.recalledBytes = bytes
    })
  }

  /** Removes reasoning that a provider rejected, for the next attempt. False if there is none. */
  forgetReasoning(): boolean {
    const parsed = this.parsed()
    const forgotten = parsed instanceof Failure ? undefined : forgetReasoning(parsed)
    const isForgotten = forgotten !== undefined || this.recalled !== undefined
    if (forgotten) this.#parsed = forgotten
    if (isForgotten) this.#estimatedTokens = undefined
    this.recalled = undefined
    this.recalledBytes = 0
    return isForgotten
  }

  /**
   * Drops a large body once a provider has begun to answer and no retry can follow, so that megabytes are not kept for
   * minutes. Keeps it if the input tokens are not known yet: counting them only for this takes as long as the prompt.
   */
  releaseBody({ usageSoFar }: MeasuredReply): void {
    if (this.bodyBytes <= keptBodyBytesMax) return
    const counted = this.#plausibleStart(usageSoFar)
    const reported = counted ? totalInputTokens(counted) : 0
    // The translation lane needs the estimate in any case.
    const tokens = this.record.lane === 'translation' ? this.inputTokens() : (this.#estimatedTokens ?? reported)
    if (tokens === 0) return
    this.#estimatedTokens = tokens
    this.#mayHaveMoreThanText = this.mayHaveMoreThanText
    // Remembers the bounds that depend on the body.
    this.#bounds()
    this.#parsed = undefined
    this.recalled = undefined
    this.envelope = { ...this.envelope, body: releasedBody }
  }

  /** The key under which a provider may cache the session; undefined = there is no session. */
  sessionCacheKey(): string | undefined {
    return this.session && this.deriveCacheKey?.(this.caller.workspaceId, this.session)
  }

  get contentTags(): ContentTags | undefined {
    return this.tagContent?.(this.caller.workspaceId)
  }

  /** The size of the prompt: the body, and what was added to it. */
  get promptBytes(): number {
    return this.bodyBytes + this.recalledBytes
  }

  // ── Attempts ──

  beginAttempt(candidate: Candidate): Attempt {
    this.#serveBy(candidate)
    const attempt = new Attempt(candidate, this.#clock.monotonicMs(), this.startedMs)
    this.attempts.push(attempt)
    return attempt
  }

  #serveBy(candidate: Candidate): void {
    this.candidate = candidate
    const model = this.models?.get(candidate) ?? this.model
    if (model !== this.model) {
      this.model = model
      this.#maxInput = undefined
      this.#unitsMax = null
    }
    this.hold?.serveBy(candidate, model)
  }

  /** Has no effect on an attempt that ended with its request. */
  endAttempt(attempt: Attempt, outcome: string): void {
    if (attempt.outcome === '') this.record.waitedMs += attempt.end(outcome, this.#clock.monotonicMs())
  }

  /** Removes an attempt that sent nothing because the route cannot carry the request. */
  removeAttempt(attempt: Attempt): void {
    this.attempts.splice(this.attempts.indexOf(attempt), 1)
  }

  endOpenAttempts(outcome: string): void {
    for (const attempt of this.attempts) this.endAttempt(attempt, outcome)
  }

  /** Records which candidate answers, as the last attempt: of two parallel ones it may have begun first. */
  recordAnswered(candidate: Candidate): void {
    const { provider, route } = candidate
    this.#serveBy(candidate)
    if (this.models) this.record.model = this.model.id
    this.answeredMs = this.#clock.monotonicMs()
    this.record.firstEventMs = this.answeredMs - this.startedMs
    if (this.attempts.length === 1) return
    const at = this.attempts.findLastIndex(
      (attempt) =>
        attempt.outcome === 'ok' && attempt.provider === provider.id && attempt.upstreamModel === route.upstreamModel,
    )
    if (at !== -1 && at < this.attempts.length - 1) this.attempts.push(...this.attempts.splice(at, 1))
  }

  recordInterrupted(why: FaultClass): void {
    const last = this.attempts.at(-1)
    if (last?.outcome === 'ok') last.outcome = `interrupted: ${why}`
  }

  // ── Usage and charge ──

  get modelJson(): Uint8Array {
    return this.model.idJson
  }

  get wantsStreamUsage(): boolean {
    return this.envelope.wantsStreamUsage
  }

  /** Returns the usage that a complete reply is charged for, and quotes its charge; `quotedUsd` then returns that. */
  quoteUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage {
    const usage = this.#validUsage(reported, atStart, outputBytes)
    this.hold?.quote(usage)
    return usage
  }

  /** The charge quoted for a usage that `quoteUsage` returned, as decimal USD. */
  quotedUsd(usage: Usage): string {
    assert(this.hold, 'nothing is answered without a hold')
    return this.hold.quotedUsd(usage)
  }

  #validUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage {
    if (!reported) return this.#estimate(atStart, outputBytes())
    const implausible = findImplausible(reported, this.#bounds(), outputBytes)
    if (!implausible) return reported
    this.#recordImplausible(implausible)
    return this.#estimate(this.#withInputAtStart(reported, atStart), outputBytes())
  }

  /** The usage of a reply that is not complete: the last count, and an estimate of what was relayed since. */
  usageOfPart({ usage, usageSoFar, outputBytes, bytesAtReport }: MeasuredReply): Usage {
    const counted = usage ?? usageSoFar
    if (!counted || bytesAtReport === undefined) return this.#estimate(usageSoFar, outputBytes)
    // It was validated when the client was quoted its cost, and the client pays no other amount.
    if (usage !== undefined && outputBytes === bytesAtReport) return usage
    const implausible = findImplausible(counted, this.#bounds(), () => bytesAtReport)
    if (implausible && implausible.count !== 'zero') this.#recordImplausible(implausible)
    if (implausible || totalInputTokens(counted) === 0) return this.#estimate(usageSoFar, outputBytes)
    return usageSince(counted, outputBytes - bytesAtReport, this.#bounds())
  }

  /** The input that the provider reported, however the reply ended; undefined = nothing plausible. */
  reportedInput({ usage, usageSoFar }: MeasuredReply): Usage | undefined {
    const counted = usage ?? this.#plausibleStart(usageSoFar)
    return counted && totalInputTokens(counted) > 0 ? counted : undefined
  }

  get isCapLowered(): boolean {
    return this.hold?.loweredCap !== undefined
  }

  get stateEcho(): StateEcho | undefined {
    if (this.storedInput === undefined && this.previousResponseId === undefined) return undefined
    const previous_response_id = this.previousResponseId ?? null
    if (this.storedInput === undefined) return { store: false, previous_response_id }
    return { id: `resp_${this.record.id.slice('req_'.length)}`, store: true, previous_response_id }
  }

  renderContext(): RenderContext {
    return new ReplyContext(this, this.#parsed instanceof Failure ? undefined : this.#parsed)
  }

  /** The bounds of plausible usage, by the request and by what was sent to the candidate that answers. */
  #bounds(): UsageBounds {
    const { envelope, model, hold } = this
    const longest = maxOutputOf(model)
    const loweredCap = hold?.loweredCap
    const cap = Math.min(outputCapOf(envelope, model), loweredCap ?? Number.POSITIVE_INFINITY)
    // Such a host may reason for as long as the model can, whatever the cap.
    const excludesReasoning = this.candidate?.rules.capExcludesReasoning === true
    return {
      inputTokens: this.#maxInputTokens(),
      outputTokens: withTolerance(excludesReasoning ? Math.max(cap, longest) : cap) * envelope.choices,
      isCapSent: (envelope.outputCap ?? model.defaultMaxTokens ?? loweredCap) !== undefined,
      summaryTokens: withTolerance(longest),
      units: this.#maxUnits(),
    }
  }

  #maxInputTokens(): number {
    if (this.#maxInput === undefined) {
      const context = { contextTokens: this.#contextAndCap() }
      const parse = this.mayHaveMoreThanText ? () => this.sentConversation() : unparsed
      const inBody = maxReportedInput(this.envelope.body, parse, context, this.mayHaveMoreThanText)
      this.#maxInput = inBody + this.recalledBytes
    }
    return this.#maxInput
  }

  /** Some catalogs give the context window without the answer. */
  #contextAndCap(): number | undefined {
    const { contextTokens } = windowOf(this.envelope, this.model)
    return contextTokens === undefined ? undefined : contextTokens + outputCapOf(this.envelope, this.model)
  }

  #maxUnits(): UnitCounts | undefined {
    if (this.#unitsMax === null) {
      const priced = pricedUnits(this.model.price)
      const isLong = this.bodyBytes > parsedBytesMax
      const requested = this.mayHaveMoreThanText && !isLong ? this.requestedSearches() : 0
      const maySearch = requested > 0 || (this.mayHaveMoreThanText && isLong) || hasRow(this.model.price, 'web_search')
      this.#unitsMax =
        priced.length > 0 || maySearch
          ? {
              ...Object.fromEntries(priced.map(({ count, max }) => [count, max])),
              ...(maySearch && { webSearches: Math.max(requested, buckets.web_search.max) }),
            }
          : undefined
    }
    return this.#unitsMax
  }

  /** The most web searches that the request asks the provider to run. */
  requestedSearches(): number {
    const unsupported = this.sentConversation()?.unsupported ?? []
    return unsupported.reduce((sum, { maxSearches = 0 }) => sum + maxSearches, 0)
  }

  #estimate(reported: Usage | undefined, outputBytes: number): Usage {
    return estimateUsage(reported, outputBytes, this.#bounds(), () => this.inputTokens())
  }

  /** Before there is output, a report may count none. */
  #plausibleStart(atStart: Usage | undefined): Usage | undefined {
    return atStart && plausiblePart(atStart, this.#bounds(), () => 0)
  }

  /** The last report wins, unless its input is implausible; then the input of the first is used. */
  #withInputAtStart(reported: Usage, atStart: Usage | undefined): Usage {
    const counted = this.#plausibleStart(reported)
    if (!atStart || (counted && totalInputTokens(counted) > 0)) return reported
    return withInputOf(reported, atStart)
  }

  /** Once per request: hosts that count in every chunk are wrong in every chunk. */
  #recordImplausible(implausible: Implausible): void {
    const { record } = this
    if (record.implausibleUsage !== undefined) return
    record.implausibleUsage = implausible.count
    record.notes.push(implausibleNote(implausible))
  }

  /** Counts the parsed content, because an image is a megabyte of body and a thousand tokens. */
  inputTokens(): number {
    if (this.#estimatedTokens === undefined) {
      const conversation = this.conversation()
      const inBody = conversation ? countTokens(conversation) : tokensOfBytes(this.envelope.body)
      this.#estimatedTokens = inBody + Math.ceil(this.recalledBytes / bytesPerToken)
    }
    return this.#estimatedTokens
  }
}

/** Facts about a request that the renderer of its reply needs. */
class ReplyContext implements RenderContext {
  readonly model: string
  readonly requestId: RequestId
  readonly createdSeconds: number
  readonly wantsStreamUsage: boolean
  readonly legacyCalls: boolean
  readonly isCapLowered: boolean
  readonly stateEcho: RenderContext['stateEcho']
  readonly callForms: RenderContext['callForms']
  readonly echo: RenderContext['echo']
  readonly replyForm: RenderContext['replyForm']

  constructor(
    private readonly request: GatewayRequest,
    parsed: ParsedRequest | undefined,
  ) {
    const { record, model, envelope, isCapLowered, stateEcho } = request
    this.model = model.id
    this.requestId = record.id
    this.createdSeconds = Math.floor(record.startedAt / 1000)
    this.wantsStreamUsage = envelope.wantsStreamUsage
    this.legacyCalls = envelope.legacyCalls ?? false
    this.isCapLowered = isCapLowered
    this.stateEcho = stateEcho
    this.callForms = parsed?.callForms
    this.echo = parsed?.echo
    this.replyForm = parsed?.replyForm
  }

  /** Lazy: counting takes as long as the prompt, and most replies report their usage. */
  get estimatedInputTokens(): number {
    return this.request.inputTokens()
  }

  get contentTags(): ContentTags | undefined {
    return this.request.contentTags
  }

  quotedUsd(usage: Usage): string {
    return this.request.quotedUsd(usage)
  }

  quoteUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage {
    return this.request.quoteUsage(reported, atStart, outputBytes)
  }
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

  /** Returns how long it took. */
  end(outcome: string, nowMs: number): number {
    const tookMs = nowMs - this.#startedMs
    this.outcome = outcome
    this.ms = Math.round(tookMs)
    return tookMs
  }
}
