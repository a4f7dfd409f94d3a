// A prompt cache that remembers which prefixes it has seen, not their text. Which part of a prompt is the prefix, and
// what of it is written or read, is decided here; the wires only report it.

import type { Passage, Prompt } from './prompt.ts'

export interface CachedTokens {
  readonly read: number
  readonly writtenShort: number
  readonly writtenLong: number
}

export interface PrefixCache {
  /** Counts the prompt's prefix as read if it was seen before, else as written, and remembers it. */
  look(prompt: Prompt): CachedTokens
}

export function createPrefixCache(entriesMax = 1_000): PrefixCache {
  /** In order of last use: a Map keeps insertion order, and a hit is inserted anew. */
  const seen = new Map<string, true>()

  return {
    look(prompt) {
      const prefix = prefixOf(prompt.passages)
      if (prefix.length === 0) return { read: 0, writtenShort: 0, writtenLong: 0 }
      const digest = digestOf(prefix)
      const hit = seen.delete(digest)
      seen.set(digest, true)
      const [oldest] = seen.keys()
      if (seen.size > entriesMax && oldest !== undefined) seen.delete(oldest)
      if (hit) return { read: sumTokens(prefix), writtenShort: 0, writtenLong: 0 }
      // What stands before an hour's mark is kept for an hour, the rest of the prefix for five minutes.
      const longEnd = prefix.findLastIndex((passage) => passage.mark === 'long') + 1
      return {
        read: 0,
        writtenShort: sumTokens(prefix.slice(longEnd)),
        writtenLong: sumTokens(prefix.slice(0, longEnd)),
      }
    },
  }
}

/** Up to the last mark; without a mark, everything but the last turn. */
function prefixOf(passages: readonly Passage[]): readonly Passage[] {
  const marked = passages.findLastIndex((passage) => passage.mark !== undefined)
  if (marked >= 0) return passages.slice(0, marked + 1)
  const lastTurn = passages.reduce((turn, passage) => Math.max(turn, passage.turn), -1)
  return passages.filter((passage) => passage.turn < lastTurn)
}

function digestOf(prefix: readonly Passage[]): string {
  const hasher = new Bun.CryptoHasher('sha256')
  // Lengths keep two passages apart from one that reads like both.
  for (const { from, text } of prefix) hasher.update(`${from} ${text.length}\n${text}\n`)
  return hasher.digest('base64url')
}

function sumTokens(passages: readonly Passage[]): number {
  return passages.reduce((sum, passage) => sum + passage.tokens, 0)
}
