// One admitted request as attempts and lanes see it: what was asked, for whom, and what every try of it shares.

import { hasRow } from '../catalog/price.ts'
import type { RelayContext, StreamRelay } from '../dialects/byte-lane/relay.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import type { Envelope, ParsedRequest, RenderContext } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { forgetReasoning } from '../dialects/request/reasoning.ts'
import { Failure } from '../kernel/failure.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Admitted } from './admit.ts'
import { countTokensLocally, estimateInputTokens } from './estimate-tokens.ts'
import { inputTokensMost, mayHaveMedia, readBytesMax } from './input-bound.ts'
import {
  estimateUsage,
  findImplausible,
  type Implausible,
  implausibleNote,
  longestAnswerOf,
  outputCapOf,
  plausiblePart,
  type UsageBounds,
  usageSince,
  withTolerance,
} from './judge-usage.ts'
import { parsedRequest } from './parsed-request.ts'
import type { SettlementFacts } from './settlement.ts'
import type { Story } from './story.ts'

/** What is known of an answer that passes or has passed. */
export type Measured = Pick<StreamRelay, 'usage' | 'usageSoFar' | 'outputBytes' | 'countedBytes'>

const nothingMeasured: Measured = { usage: undefined, usageSoFar: undefined, outputBytes: 0, countedBytes: undefined }

/** Web searches that hosts run for one answer: xAI reads 50 sources at most, Anthropic takes a limit from the caller. */
const searchesUsualMost = 50
/** What a request may keep of its own body while it is answered. */
const keptBytesMax = 64 * 1024
const letGone = new Uint8Array(0)

export class Call implements RelayContext {
  envelope: Envelope
  readonly bodyBytes: number
  readonly model: OfferedModel
  readonly surface: Dialect
  /** Names the conversation for its prompt cache. */
  readonly conversationKey: string | undefined
  /** The wallet pays for this much of an answer; undefined = for all that was asked. */
  outputCapMost: number | undefined
  #parsed: ParsedRequest | Failure | undefined
  #mayHaveMedia: boolean | undefined
  #estimatedTokens: number | undefined
  #inputMost: number | undefined
  #searchesMost: number | undefined

  constructor(
    readonly request: Request,
    { envelope, model, conversation }: Admitted,
    readonly story: Story,
  ) {
    this.envelope = envelope
    this.bodyBytes = envelope.body.length
    this.model = model
    this.conversationKey = conversation
    this.surface = story.surface
  }

  /** Aborts when the client disconnects, half-closes its connection or pipelines another request (docs/decisions/0021). */
  get clientGone(): AbortSignal {
    return this.request.signal
  }

  get modelJson(): Uint8Array {
    return this.model.idJson
  }

  get wantsStreamUsage(): boolean {
    return this.envelope.wantsStreamUsage
  }

  finalUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage {
    if (!reported) return this.#estimate(atStart, outputBytes())
    const implausible = findImplausible(reported, this.#bounds(), outputBytes)
    if (!implausible) return reported
    this.#noteImplausible(implausible)
    return this.#estimate(this.#withInputAtStart(reported, atStart), outputBytes())
  }

  /** Of a reply that has not come to its end, or never did: what was counted of it, and what has passed since. */
  usageSoFar({ usage, usageSoFar, outputBytes, countedBytes }: Measured): Usage {
    const counted = usage ?? usageSoFar
    if (!counted || countedBytes === undefined) return this.#estimate(usageSoFar, outputBytes)
    // Judged when it was told to the client, which pays no other figure.
    if (usage !== undefined && outputBytes === countedBytes) return usage
    const implausible = findImplausible(counted, this.#bounds(), () => countedBytes)
    if (implausible && implausible.count !== 'zero') this.#noteImplausible(implausible)
    if (implausible || totalInputTokens(counted) === 0) return this.#estimate(usageSoFar, outputBytes)
    return usageSince(counted, outputBytes - countedBytes, this.#bounds())
  }

  /** What the provider said of the input, however the reply ended; undefined = nothing that could be true. */
  reportedInput({ usage, usageSoFar }: Measured): Usage | undefined {
    return usage ?? this.#plausibleStart(usageSoFar)
  }

  /** What of an answer counts when it is settled. */
  settlementFacts(measured: Measured = nothingMeasured): SettlementFacts {
    return {
      usage: measured.usage,
      outputBytes: measured.outputBytes,
      delivered: () => this.usageSoFar(measured),
      billsOnCancel: this.story.candidate?.provider.billsOnCancel ?? false,
    }
  }

  costOf(usage: Usage): string {
    return this.story.costUsd(this.model, usage)
  }

  /** Whether the bytes of the request may say little about its tokens. */
  get mayHaveMedia(): boolean {
    this.#mayHaveMedia ??= mayHaveMedia(this.envelope.body)
    return this.#mayHaveMedia
  }

  /** The canonical form of the request, parsed once however many candidates are tried. */
  conversation(): ParsedRequest | Failure {
    this.#parsed ??= parsedRequest(this.surface, this.envelope)
    return this.#parsed
  }

  /** A provider does not know its own reasoning again: from here on it is left out. false = there is none. */
  forgetReasoning(): boolean {
    const parsed = this.conversation()
    const forgotten = parsed instanceof Failure ? undefined : forgetReasoning(parsed)
    if (forgotten) {
      this.#parsed = forgotten
      this.#estimatedTokens = undefined
    }
    return forgotten !== undefined
  }

  /**
   * A provider has begun to answer, so nobody is asked again: megabytes are not kept for the minutes that it may take, where
   * the tokens of the input are known by now. Counting them only for this would take as long as the prompt.
   */
  letGo(measured: Measured): void {
    if (this.bodyBytes <= keptBytesMax) return
    const counted = this.#plausibleStart(measured.usageSoFar)
    const tokens = this.#estimatedTokens ?? (counted ? totalInputTokens(counted) : 0)
    if (tokens === 0) return
    this.#estimatedTokens = tokens
    this.#mayHaveMedia = this.mayHaveMedia
    // Remembers the bounds that follow from the body.
    this.#bounds()
    this.#parsed = undefined
    this.envelope = { ...this.envelope, body: letGone }
  }

  renderContext(): RenderContext {
    const { record } = this.story
    return {
      model: this.model.id,
      requestId: record.id,
      createdSeconds: Math.floor(record.startedAt / 1000),
      wantsStreamUsage: this.envelope.wantsStreamUsage,
      legacyCalls: this.envelope.legacyCalls ?? false,
      estimatedInputTokens: this.#inputTokens(),
      costOf: (usage) => this.costOf(usage),
      finalUsage: (reported, atStart, outputBytes) => this.finalUsage(reported, atStart, outputBytes),
    }
  }

  /** By what was asked for and sent to the candidate that answers. */
  #bounds(): UsageBounds {
    const { envelope, model, outputCapMost = Number.POSITIVE_INFINITY } = this
    const longest = longestAnswerOf(model)
    const cap = Math.min(outputCapOf(envelope, model), outputCapMost)
    // Such a host may reason for as long as the model can, whatever the cap.
    const excludesReasoning = this.story.candidate?.rules.capExcludesReasoning === true
    return {
      inputTokens: this.#inputTokensMost(),
      outputTokens: withTolerance(excludesReasoning ? Math.max(cap, longest) : cap) * envelope.choices,
      isCapSent: (envelope.outputCap ?? model.defaultMaxTokens ?? this.outputCapMost) !== undefined,
      summaryTokens: withTolerance(longest),
      webSearches: this.#webSearchesMost(),
    }
  }

  #inputTokensMost(): number {
    this.#inputMost ??= inputTokensMost(
      this.envelope.body,
      () => this.#readConversation(),
      { contextTokens: this.#contextAndCap() },
      this.mayHaveMedia,
    )
    return this.#inputMost
  }

  #webSearchesMost(): number {
    this.#searchesMost ??= this.#countSearchesMost()
    return this.#searchesMost
  }

  #countSearchesMost(): number {
    const isLong = this.bodyBytes > readBytesMax
    const unsupported = this.mayHaveMedia && !isLong ? (this.#readConversation()?.unsupported ?? []) : []
    const asked = unsupported.reduce((sum, { maxSearches = 0 }) => sum + maxSearches, 0)
    const maySearch = asked > 0 || (this.mayHaveMedia && isLong) || hasRow(this.model.price, 'web_search')
    return maySearch ? Math.max(asked, searchesUsualMost) : 0
  }

  /** Some catalogs count the context window without the answer. */
  #contextAndCap(): number | undefined {
    const { contextTokens } = this.model
    return contextTokens === undefined ? undefined : contextTokens + outputCapOf(this.envelope, this.model)
  }

  #estimate(told: Usage | undefined, outputBytes: number): Usage {
    return estimateUsage(told, outputBytes, this.#bounds(), () => this.#inputTokens())
  }

  /** Before there is output, none may be counted. */
  #plausibleStart(atStart: Usage | undefined): Usage | undefined {
    return atStart && plausiblePart(atStart, this.#bounds(), () => 0)
  }

  /** The last count wins, unless its input is implausible and that of the first was not. */
  #withInputAtStart(reported: Usage, atStart: Usage | undefined): Usage {
    const counted = this.#plausibleStart(reported)
    if (!atStart || (counted && totalInputTokens(counted) > 0)) return reported
    const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens } = atStart
    return { ...reported, inputTokens, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens }
  }

  /** Once for each request: hosts that count in every chunk are wrong in every chunk. */
  #noteImplausible(implausible: Implausible): void {
    const { record } = this.story
    if (record.implausibleUsage !== undefined) return
    record.implausibleUsage = implausible.count
    record.notes.push(implausibleNote(implausible))
  }

  /**
   * Of what the model reads, where that is known: an image is a megabyte of body and a thousand tokens. Counted once, for
   * it takes as long as the prompt.
   */
  #inputTokens(): number {
    this.#estimatedTokens ??= this.#countInput()
    return this.#estimatedTokens
  }

  #readConversation(): Conversation | undefined {
    const parsed = this.conversation()
    return parsed instanceof Failure ? undefined : parsed.conversation
  }

  #countInput(): number {
    const parsed = this.conversation()
    return parsed instanceof Failure ? estimateInputTokens(this.envelope.body) : countTokensLocally(parsed.conversation)
  }
}
