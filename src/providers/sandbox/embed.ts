// The sandbox's embedding model: the same text always has the same vector, and texts that share words have similar ones.
// Each word adds +1 or -1 at a place that its hash decides; the vector is then scaled to length 1. docs/sandbox.md

import { type EmbeddingsReply, type EmbeddingsRequest, inputUsage } from '../../dialects/canonical/embeddings.ts'
import { countTokens } from './tokens.ts'

export const embedModel = 'embed'
const dimensionsUsual = 256
export const dimensionsMax = 3072

export function embed({ inputs, dimensions = dimensionsUsual }: EmbeddingsRequest): EmbeddingsReply {
  const texts = inputs.map((input) => (typeof input === 'string' ? input : input.join(' ')))
  const tokens = texts.reduce((sum, text) => sum + countTokens(text), 0)
  return { vectors: texts.map((text) => vectorOf(text, dimensions)), usage: inputUsage(Math.max(1, tokens)) }
}

function vectorOf(text: string, dimensions: number): number[] {
  const vector = new Array<number>(dimensions).fill(0)
  for (const word of text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [text]) {
    const hash = Bun.hash.crc32(word)
    const at = hash % dimensions
    vector[at] = (vector[at] ?? 0) + (hash & 0x8000_0000 ? 1 : -1)
  }
  const length = Math.hypot(...vector)
  // Words may cancel each other out; a vector of zeros has no direction.
  if (length === 0) vector[0] = 1
  return vector.map((each) => Math.fround(each / (length || 1)))
}
