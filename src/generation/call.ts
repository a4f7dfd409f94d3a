// One admitted request as attempts and lanes see it: what was asked, for whom, and what every try of it shares.

import type { RelayContext } from '../dialects/byte-lane/relay.ts'
import type { Envelope } from '../dialects/canonical/envelope.ts'
import type { ParsedRequest, RenderContext } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import type { Usage } from '../kernel/usage.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Admitted } from './admit.ts'
import { countTokensLocally, estimateInputTokens } from './estimate-tokens.ts'
import type { Story } from './story.ts'

export class Call implements RelayContext {
  readonly envelope: Envelope
  readonly model: OfferedModel
  readonly surface: Dialect
  #parsed: ParsedRequest | Failure | undefined

  constructor(
    readonly request: Request,
    { envelope, model }: Admitted,
    readonly story: Story,
  ) {
    this.envelope = envelope
    this.model = model
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

  costOf(usage: Usage): string {
    return this.story.costUsd(this.model, usage)
  }

  /** The canonical form of the request, parsed once however many candidates are tried. */
  conversation(): ParsedRequest | Failure {
    this.#parsed ??= this.surface.translation.parseRequest(this.envelope)
    return this.#parsed
  }

  renderContext(): RenderContext {
    const { record } = this.story
    return {
      model: this.model.id,
      requestId: record.id,
      createdSeconds: Math.floor(record.startedAt / 1000),
      wantsStreamUsage: this.envelope.wantsStreamUsage,
      estimatedInputTokens: this.#estimatedTokens(),
      costOf: (usage) => this.costOf(usage),
    }
  }

  /** Of what the model reads, where that is known: an image is a megabyte of body and a thousand tokens. */
  #estimatedTokens(): number {
    const parsed = this.conversation()
    return parsed instanceof Failure ? estimateInputTokens(this.envelope.body) : countTokensLocally(parsed.conversation)
  }
}
