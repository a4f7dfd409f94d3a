// What each model really makes of four bytes of prompt, learned from what providers report, so that holds are neither
// far too large nor too small. A first guess until then.

import type { Usage } from '../kernel/usage.ts'
import { totalInputTokens } from '../kernel/usage.ts'
import { textTokens } from './input-bound.ts'

const firstGuess = 1.5
/** Whatever a provider reports, a hold stays within reason. */
const ratioMax = 4
/** In small bodies what surrounds the text is most of it; nothing can be learned from them. */
const bodyBytesMin = 1024
/** A high one is forgotten slowly: the next hold must cover the next prompt, not the average one. */
const forgetting = 0.999

export class InputRatios {
  readonly #byModel = new Map<string, number>()

  of(modelId: string): number {
    return this.#byModel.get(modelId) ?? firstGuess
  }

  learn(modelId: string, bodyBytes: number, usage: Usage, hasMedia = false): void {
    const isReported = usage.source === 'reported' || usage.inputReported
    // What a picture or a tool of the provider's adds says nothing about text.
    if (!isReported || bodyBytes < bodyBytesMin || hasMedia) return
    const seen = totalInputTokens(usage) / textTokens(bodyBytes, 1)
    // Hosts that know nothing yet begin with zeros.
    if (seen === 0) return
    const known = this.#byModel.get(modelId) ?? firstGuess
    this.#byModel.set(modelId, Math.min(ratioMax, Math.max(seen, known * forgetting + seen * (1 - forgetting), 1)))
  }
}
