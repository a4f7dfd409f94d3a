// Reasoning as clients of Chat Completions send it back: `reasoning_details`, one whole block per entry, with the proof
// its issuer wants to see again.

import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { isOwnSignature, readSignature } from '../canonical/signature.ts'

/** The entry for a block that can be read. `place` is that of the block in the reply. */
export function renderThinkingDetail(text: string, signature: string | undefined, place: number): RawJson {
  return jsonObject([
    ['type', '"reasoning.text"'],
    ['text', jsonString(text)],
    ['signature', signature === undefined ? undefined : jsonString(signature)],
    ['format', signature === undefined ? undefined : formatOf(signature)],
    ['index', String(place)],
  ])
}

export function renderSealedDetail(data: string, place: number): RawJson {
  return jsonObject([
    ['type', '"reasoning.encrypted"'],
    ['data', jsonString(data)],
    ['format', formatOf(data)],
    ['index', String(place)],
  ])
}

/** The names that this extension has for them. */
function formatOf(proof: string): RawJson {
  return isOwnSignature(proof) ? '"unknown"' : '"anthropic-claude-v1"'
}

/**
 * The proof of the thinking before a call, on the call itself: clients that drop `reasoning_details` bring this extension
 * of Google's back (@ai-sdk/openai-compatible 3.0.90). Only for a proof that says all by itself.
 */
export function callProof(signature: string | undefined): RawJson | undefined {
  if (readSignature(signature ?? '')?.blob === undefined) return undefined
  return `{"google":${jsonObject([['thought_signature', jsonString(signature ?? '')]])}}`
}
