// Reads an answer from the bytes that were written for the client, in the client's own dialect, so that it does not matter
// which lane wrote them.

import type { Target } from '../dialects/canonical/translation.ts'
import type { Held } from './stages.ts'

export function parserFor({ exchange, admitted }: Held) {
  const target: Target = {
    ...{ upstreamModel: admitted.model.id, issuer: '', rules: {} },
    ...{ defaultOutputCap: undefined, maxOutputTokens: undefined },
  }
  return exchange.surface.translation.parseStream(target, exchange.record.id)
}

/** Gemini's API writes a stream without events as a list. */
export function replyJson(body: Uint8Array): string {
  const text = new TextDecoder().decode(body)
  return text.startsWith('[') ? text.slice(1, -1) : text
}
