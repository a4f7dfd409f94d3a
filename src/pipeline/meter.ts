// The usage of one candidate's reply: validates what it reports, estimates what is missing and quotes the charge, by the rules
// in usage.ts and bounds of what was sent to this candidate. Each attempt has its own; the reply that is accepted keeps it
// until it is settled. The table in settlement.ts decides whether the whole reply or a part of it is billed.

import { cacheSavings, freePrice, hasRow, type Price, pricedUnits, priceUsage } from '../catalog/price.ts'
import type { ContentTags, Envelope, RenderContext, StateEcho } from '../dialects/canonical/translation.ts'
import type { RelayContext } from '../dialects/reply/relay.ts'
import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { buckets, estimatedInput, isTier, totalInputTokens, type UnitCounts, type Usage } from '../kernel/usage.ts'
import type { Candidate } from '../routing/plan.ts'
import type { AttemptRecord, RequestRecord } from '../telemetry/request-record.ts'
import { type Content, parserOf } from './content.ts'
import { maxReportedInput, parsedBytesMax, windowOf } from './estimate.ts'
import type { Hold, Quote } from './hold.ts'
import { chargedTier } from './service-tier.ts'
import type { Admitted, Held } from './stages.ts'
import {
  estimateUsage,
  findExceeding,
  findImplausible,
  type Implausible,
  implausibleNote,
  isImplausibleNote,
  type MeasuredReply,
  maxOutputOf,
  nothingMeasured,
  outputCapOf,
  type UsageBounds,
  usageSince,
  withInputOf,
  withTolerance,
} from './usage.ts'

type FailedCost = Pick<AttemptRecord, 'usage' | 'cost' | 'costVersion'>

export class Meter implements RelayContext {
  /** undefined on the workspace's own credential, unless there is a fee. */
  readonly priceVersion: string | undefined
  readonly #price: Price
  readonly #record: RequestRecord
  readonly #clock: Clock
  readonly envelope: Envelope
  readonly #content: Content
  readonly #storing: Admitted['storing']
  readonly #hold: Hold
  readonly #candidate: Candidate
  #known: UsageBounds | undefined
  /** The reply as far as it was read, for a call that ends without an answer. */
  #reading: MeasuredReply | undefined
  #quote: Quote | undefined
  #tierNote: string | undefined
  /** The last report whose tier was not the one that is charged, and the usage that is. */
  #untiered: Usage | undefined
  #tiered: Usage | undefined

  constructor({ exchange, admitted, hold }: Held, candidate: Candidate) {
    const { model, isOwn } = candidate
    // On the workspace's own credential its provider bills it, and we charge at most a fee.
    this.#price = isOwn ? (model.fee?.price ?? freePrice) : model.price
    this.priceVersion = isOwn ? model.fee?.version : model.priceVersion
    this.#record = exchange.record
    this.#clock = exchange.clock
    this.envelope = admitted.envelope
    this.#content = admitted.content
    this.#storing = admitted.storing
    this.#hold = hold
    this.#candidate = candidate
  }

  get modelJson(): Uint8Array {
    return this.#candidate.model.idJson
  }

  get wantsStreamUsage(): boolean {
    return this.envelope.wantsStreamUsage
  }

  get isCapLowered(): boolean {
    return this.#hold.loweredCap !== undefined
  }

  get stateEcho(): StateEcho | undefined {
    const { previousId, input } = this.#storing
    if (input === undefined && previousId === undefined) return undefined
    const previous_response_id = previousId ?? null
    if (input === undefined) return { store: false, previous_response_id }
    return { id: `resp_${this.#record.id.slice('req_'.length)}`, store: true, previous_response_id }
  }

  get keepsItems(): boolean {
    return this.#storing.items !== undefined || this.#storing.remembered !== undefined
  }

  renderContext(): RenderContext {
    return new ReplyContext(this, this.#record, this.#clock, this.#content, this.#candidate)
  }

  // ── A complete reply ──

  /** Returns the usage that a complete reply is charged for, and quotes its charge; `quotedUsd` then returns that. */
  quoteUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage {
    return this.quote(this.#inTier(this.#validUsage(reported, atStart, outputBytes))).usage
  }

  /** The charge quoted for a usage that `quoteUsage` returned, as decimal USD. */
  quotedUsd(usage: Usage): string {
    assert(this.#quote?.usage === usage, 'the charge is decided before it is shown')
    return this.#quote.quotedUsd
  }

  /** Decides what a usage costs and reserves it, once for each `Usage` object: the client pays what it was quoted. */
  quote(usage: Usage): Quote {
    if (this.#quote?.usage !== usage) this.#quote = this.#hold.reserveQuote(this.#price, usage)
    return this.#quote
  }

  /** What the prompt cache saved, at the price of the charge. Most requests use no cache and skip pricing their usage twice. */
  cacheSaved(usage: Usage): bigint {
    const { inputTokens, summaries } = usage
    return inputTokens === totalInputTokens(usage) && !summaries?.length ? 0n : cacheSavings(this.#price, usage)
  }

  #validUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage {
    if (!reported) return this.#estimate(atStart, outputBytes())
    const implausible = findImplausible(reported, this.#bounds(), outputBytes)
    this.#recordImplausible(implausible)
    if (!implausible) return reported
    const counted = implausible.count === 'zero' ? withInputAtStart(reported, atStart) : atStart
    return inTierOf(reported, this.#estimate(counted, outputBytes()))
  }

  /** With the tier at whose price it is charged; always the same object for the same report. */
  #inTier(usage: Usage): Usage {
    const { tier, note, unpriced } = chargedTier(this.#candidate, this.envelope.tier, usage.tier)
    if (note !== undefined && this.#tierNote !== note) {
      this.#tierNote = note
      this.#record.notes.push(note)
    }
    this.#record.unpricedTier = unpriced
    if (tier === usage.tier) return usage
    if (this.#untiered !== usage) {
      this.#untiered = usage
      this.#tiered = { ...usage, ...(tier !== undefined && { tier }) }
    }
    return this.#tiered ?? usage
  }

  // ── A part of one ──

  /** The usage of a reply that is not complete: the last count, and an estimate of what was relayed since. */
  usageOfPart(measured: MeasuredReply): Usage {
    return this.#inTier(this.#usageOfPart(measured))
  }

  #usageOfPart({ usage, usageSoFar, usageAtStart, outputBytes, bytesAtReport }: MeasuredReply): Usage {
    const counted = usage ?? usageSoFar
    if (!counted || bytesAtReport === undefined) return this.#estimate(usageSoFar, outputBytes)
    // It was validated when the client was quoted its cost, and the client pays no other amount.
    if (usage !== undefined && outputBytes === bytesAtReport) return usage
    const implausible = findImplausible(counted, this.#bounds(), () => bytesAtReport)
    // A count of zero is missing, not wrong.
    const isMissing = implausible?.count === 'zero' || totalInputTokens(counted) === 0
    if (implausible && implausible.count !== 'zero') {
      this.#recordImplausible(implausible)
      return inTierOf(counted, this.#estimate(usageAtStart, outputBytes))
    }
    if (isMissing) return inTierOf(counted, this.#estimate(usageSoFar, outputBytes))
    return usageSince(counted, outputBytes - bytesAtReport, this.#bounds())
  }

  /** The usage whose input was counted, however the reply ended; undefined = nothing plausible. It may be an estimate. */
  reportedInput({ usage, usageSoFar }: MeasuredReply): Usage | undefined {
    const counted = usage ?? this.#plausibleStart(usageSoFar)
    return counted && totalInputTokens(counted) > 0 ? counted : undefined
  }

  /**
   * Drops a large body once this provider has begun to answer and no retry can follow. Keeps it if the input tokens are not
   * known yet: counting them only for this takes as long as the prompt.
   */
  releaseBody({ usageSoFar }: MeasuredReply, lane: 'bytes' | 'translation'): void {
    const content = this.#content
    if (!content.isLarge) return
    const counted = this.#plausibleStart(usageSoFar)
    const reported = counted ? totalInputTokens(counted) : 0
    // The translation lane needs the estimate in any case.
    const tokens = lane === 'translation' ? content.inputTokens() : (content.countedTokens ?? reported)
    if (tokens === 0) return
    // They depend on the body.
    this.#bounds()
    content.release(tokens)
  }

  // ── A call without an answer ──

  readFrom(reading: MeasuredReply): void {
    this.#reading = reading
  }

  /**
   * What a call that gave no answer probably cost the operator: what the provider reported, or the input and the output that
   * was read. undefined = the workspace's own credential. Nobody is charged for it, so it need not be exact.
   */
  failedCost(): FailedCost | undefined {
    const { isOwn, route } = this.#candidate
    if (isOwn) return undefined
    const { usage: reported, usageSoFar, outputBytes } = this.#reading ?? nothingMeasured
    const counted = reported ?? usageSoFar ?? this.#unreadUsage(outputBytes)
    const { tier } = this.envelope
    const usage = counted.tier === undefined && isTier(tier) ? { ...counted, tier } : counted
    if (!route.cost) return { usage }
    const cost = Number(priceUsage(route.cost, usage))
    return { usage, cost, ...(route.costVersion !== undefined && { costVersion: route.costVersion }) }
  }

  #unreadUsage(outputBytes: number): Usage {
    if (outputBytes > 0) return this.#estimate(undefined, outputBytes)
    const content = this.#content
    // A long prompt is not counted only for this: its hold was estimated.
    const counted = content.countedTokens ?? (content.isLarge ? this.#hold.initial.inputTokens : content.inputTokens())
    return estimatedInput(counted)
  }

  // ── Bounds ──

  /** The bounds of plausible usage, by the request and by what was sent to the candidate. */
  #bounds(): UsageBounds {
    this.#known ??= this.#boundsOfSent()
    return this.#known
  }

  #boundsOfSent(): UsageBounds {
    const { envelope } = this
    const { model, rules } = this.#candidate
    const { loweredCap } = this.#hold
    const longest = maxOutputOf(model)
    const cap = Math.min(outputCapOf(envelope, model), loweredCap ?? Number.POSITIVE_INFINITY)
    // Such a host may reason for as long as the model can, whatever the cap.
    const max = rules.capExcludesReasoning ? Math.max(cap, longest) : cap
    return {
      inputTokens: this.#maxInputTokens(),
      outputTokens: withTolerance(max) * envelope.choices,
      isCapSent: (envelope.outputCap ?? model.defaultMaxTokens ?? loweredCap) !== undefined,
      summaryTokens: withTolerance(longest),
      units: this.#maxUnits(),
    }
  }

  #maxInputTokens(): number {
    const content = this.#content
    const { model } = this.#candidate
    const { contextTokens } = windowOf(this.envelope, model)
    // Some catalogs give the context window without the answer.
    const window = contextTokens === undefined ? undefined : contextTokens + outputCapOf(this.envelope, model)
    const inBody = maxReportedInput(
      content.body,
      parserOf(content),
      { contextTokens: window },
      content.mayHaveMoreThanText,
    )
    return inBody + content.recalledBytes
  }

  #maxUnits(): UnitCounts | undefined {
    const { mayHaveMoreThanText, bodyBytes } = this.#content
    const { price } = this.#candidate.model
    const priced = pricedUnits(price)
    const isLong = bodyBytes > parsedBytesMax
    const requested = mayHaveMoreThanText && !isLong ? this.#content.requestedSearches() : 0
    const maySearch = requested > 0 || (mayHaveMoreThanText && isLong) || hasRow(price, 'web_search')
    if (priced.length === 0 && !maySearch) return undefined
    return {
      ...Object.fromEntries(priced.map(({ count, max }) => [count, max])),
      ...(maySearch && { webSearches: Math.max(requested, buckets.web_search.max) }),
    }
  }

  #estimate(reported: Usage | undefined, outputBytes: number): Usage {
    return estimateUsage(reported, outputBytes, this.#bounds(), () => this.#content.inputTokens())
  }

  /** Before there is output, a report may count none. */
  #plausibleStart(atStart: Usage | undefined): Usage | undefined {
    return atStart && !findExceeding(atStart, this.#bounds(), () => 0) ? atStart : undefined
  }

  /** The last report is the one that counts, and the record says whether that is implausible. */
  #recordImplausible(implausible: Implausible | undefined): void {
    const record = this.#record
    if (record.implausible?.count === implausible?.count) return
    const noted = record.notes.findIndex(isImplausibleNote)
    if (noted >= 0) record.notes.splice(noted, 1)
    record.implausible = implausible && { count: implausible.count, reported: implausible.reported }
    if (implausible) record.notes.push(implausibleNote(implausible))
  }
}

/** The input of the first report, where the last counts none. */
function withInputAtStart(reported: Usage, atStart: Usage | undefined): Usage {
  return atStart && totalInputTokens(reported) === 0 ? withInputOf(reported, atStart) : reported
}

/** A reply says how it was served even where its counts are wrong. */
function inTierOf({ tier }: Usage, estimate: Usage): Usage {
  return tier === undefined ? estimate : { ...estimate, tier }
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
  readonly isCompaction: boolean

  constructor(
    private readonly meter: Meter,
    record: RequestRecord,
    private readonly clock: Clock,
    private readonly content: Content,
    { model }: Candidate,
  ) {
    const { envelope } = meter
    const { parsedSoFar: parsed } = content
    this.model = model.id
    this.requestId = record.id
    this.createdSeconds = Math.floor(record.startedAt / 1000)
    this.wantsStreamUsage = envelope.wantsStreamUsage
    this.legacyCalls = envelope.legacyCalls ?? false
    this.isCapLowered = meter.isCapLowered
    this.stateEcho = meter.stateEcho
    this.callForms = parsed?.callForms
    this.echo = parsed?.echo
    this.replyForm = parsed?.replyForm
    this.isCompaction = envelope.upstreamPath !== undefined
  }

  nowSeconds(): number {
    return Math.floor(this.clock.now() / 1000)
  }

  /** Lazy: counting takes as long as the prompt, and most replies report their usage. */
  get estimatedInputTokens(): number {
    return this.content.inputTokens()
  }

  get contentTags(): ContentTags {
    return this.content.tags
  }

  quotedUsd(usage: Usage): string {
    return this.meter.quotedUsd(usage)
  }

  quoteUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage {
    return this.meter.quoteUsage(reported, atStart, outputBytes)
  }
}
