// One admitted request as attempts and lanes see it: what was asked, for whom, and what every try of it shares.

import type { RelayContext, StreamRelay } from '../dialects/byte-lane/relay.ts'
import type { Envelope } from '../dialects/canonical/envelope.ts'
import type { ParsedRequest, RenderContext } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { forgetReasoning } from '../dialects/request/forget-reasoning.ts'
import { Failure } from '../kernel/failure.ts'
import type { Usage } from '../kernel/usage.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Admitted } from './admit.ts'
import { countTokensLocally, estimateInputTokens } from './estimate-tokens.ts'
import { mayHaveMedia } from './input-bound.ts'
import { estimateUsage, isCredible, type UsageBounds } from './judge-usage.ts'
import { parsedRequest } from './parsed-request.ts'
import type { SettlementFacts } from './settlement.ts'
import type { Story } from './story.ts'

/** What is known of an answer that passes or has passed. */
export type Measured = Pick<StreamRelay, 'usage' | 'usageSoFar' | 'outputBytes'>

export class Call implements RelayContext {
  readonly envelope: Envelope
  readonly model: OfferedModel
  readonly surface: Dialect
  /** Names the conversation for its prompt cache. */
  readonly conversationKey: string | undefined
  /** The wallet pays for this much of an answer; undefined = for all that was asked. */
  outputCapMost: number | undefined
  #parsed: ParsedRequest | Failure | undefined
  #mayHaveMedia: boolean | undefined

  constructor(
    readonly request: Request,
    { envelope, model, conversation }: Admitted,
    readonly story: Story,
  ) {
    this.envelope = envelope
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
      this.story.record.notes.push('usage as reported cannot be true, estimated instead')
    }
    return this.usageSoFar(atStart, outputBytes())
  }

  /** Of a reply that has not come to its end, or never did. */
  usageSoFar(reported: Usage | undefined, outputBytes: number): Usage {
    const atStart = reported && isCredible(reported, this.#bounds(), () => 0) ? reported : undefined
    return estimateUsage(atStart, outputBytes, () => this.#estimatedTokens())
  }

  /** What of an answer counts when it is settled. */
  settlementFacts(measured: Measured | undefined): SettlementFacts {
    const { usageSoFar, outputBytes = 0, usage } = measured ?? {}
    return {
      usage,
      outputBytes,
      delivered: () => this.usageSoFar(usageSoFar, outputBytes),
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
    this.#parsed = forgotten ?? this.#parsed
    return forgotten !== undefined
  }

  renderContext(): RenderContext {
    const { record } = this.story
    return {
      model: this.model.id,
      requestId: record.id,
      createdSeconds: Math.floor(record.startedAt / 1000),
      wantsStreamUsage: this.envelope.wantsStreamUsage,
      legacyCalls: this.envelope.legacyCalls ?? false,
      estimatedInputTokens: this.#estimatedTokens(),
      costOf: (usage) => this.costOf(usage),
      finalUsage: (reported, atStart, outputBytes) => this.finalUsage(reported, atStart, outputBytes),
    }
  }

  #bounds(): UsageBounds {
    const { outputCap, choices } = this.envelope
    const cap = outputCap ?? this.model.maxOutputTokens
    return { contextTokens: this.model.contextTokens, outputCap: cap === undefined ? undefined : cap * choices }
  }

  /** Of what the model reads, where that is known: an image is a megabyte of body and a thousand tokens. */
  #estimatedTokens(): number {
    const parsed = this.conversation()
    return parsed instanceof Failure ? estimateInputTokens(this.envelope.body) : countTokensLocally(parsed.conversation)
  }
}
