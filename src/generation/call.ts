// One admitted request as attempts and lanes see it: what was asked, for whom, and what every try of it shares.

import type { RelayContext, StreamRelay } from '../dialects/byte-lane/relay.ts'
import type { Envelope, ParsedRequest, RenderContext } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { forgetReasoning } from '../dialects/request/reasoning.ts'
import { Failure } from '../kernel/failure.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Admitted } from './admit.ts'
import { countTokensLocally, estimateInputTokens } from './estimate-tokens.ts'
import { mayHaveMedia } from './input-bound.ts'
import { estimateUsage, isCredible, type UsageBounds, usageSince } from './judge-usage.ts'
import { parsedRequest } from './parsed-request.ts'
import type { SettlementFacts } from './settlement.ts'
import type { Story } from './story.ts'

/** What is known of an answer that passes or has passed. */
export type Measured = Pick<StreamRelay, 'usage' | 'usageSoFar' | 'outputBytes' | 'countedBytes'>

const nothingMeasured: Measured = { usage: undefined, usageSoFar: undefined, outputBytes: 0, countedBytes: undefined }

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
  #hasDoubted = false

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

  /** Asked for late or never: a signal that is looked at costs the collector more than the rest of a short request. */
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
    if (reported) {
      if (isCredible(reported, this.#bounds(), outputBytes)) return reported
      this.#noteDoubt()
    }
    return this.#estimate(atStart, outputBytes())
  }

  /** Of a reply that has not come to its end, or never did: what was counted of it, and what has passed since. */
  usageSoFar({ usage, usageSoFar, outputBytes, countedBytes }: Measured): Usage {
    const counted = usage ?? usageSoFar
    if (!counted || countedBytes === undefined) return this.#estimate(usageSoFar, outputBytes)
    const isTold = usage !== undefined && outputBytes === countedBytes
    const isTrue = totalInputTokens(counted) > 0 && isCredible(counted, this.#bounds(), () => countedBytes)
    if (isTold || isTrue) return usageSince(counted, outputBytes - countedBytes)
    return this.#estimate(usageSoFar, outputBytes)
  }

  /** What the provider said of the input, however the reply ended; undefined = nothing that could be true. */
  reportedInput({ usage, usageSoFar }: Measured): Usage | undefined {
    return usage ?? this.#credibleStart(usageSoFar)
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
    const counted = this.#credibleStart(measured.usageSoFar)
    const tokens = this.#estimatedTokens ?? (counted ? totalInputTokens(counted) : 0)
    if (tokens === 0) return
    this.#estimatedTokens = tokens
    this.#mayHaveMedia = this.mayHaveMedia
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

  #bounds(): UsageBounds {
    const { outputCap, choices } = this.envelope
    const cap = outputCap ?? this.model.maxOutputTokens
    return { contextTokens: this.model.contextTokens, outputCap: cap === undefined ? undefined : cap * choices }
  }

  #estimate(atStart: Usage | undefined, outputBytes: number): Usage {
    return estimateUsage(this.#credibleStart(atStart), outputBytes, () => this.#inputTokens())
  }

  /** Before there is output, none may be counted. */
  #credibleStart(atStart: Usage | undefined): Usage | undefined {
    return atStart && isCredible(atStart, this.#bounds(), () => 0) ? atStart : undefined
  }

  /** Once: hosts that count in every chunk are wrong in every chunk. */
  #noteDoubt(): void {
    if (!this.#hasDoubted) this.story.record.notes.push('usage as reported cannot be true, estimated instead')
    this.#hasDoubted = true
  }

  /**
   * Of what the model reads, where that is known: an image is a megabyte of body and a thousand tokens. Counted once, for
   * it takes as long as the prompt.
   */
  #inputTokens(): number {
    this.#estimatedTokens ??= this.#countInput()
    return this.#estimatedTokens
  }

  #countInput(): number {
    const parsed = this.conversation()
    return parsed instanceof Failure ? estimateInputTokens(this.envelope.body) : countTokensLocally(parsed.conversation)
  }
}
