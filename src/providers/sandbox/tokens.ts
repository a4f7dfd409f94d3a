// The sandbox's token count: a rule that can be applied by hand, the same on every surface. It is documented in
// docs/sandbox.md, and users' tests may depend on it.

// A run of up to 12 letters, marks and digits, or a run of up to 4 other visible characters. Whitespace is free.
const tokenPattern = /[\p{L}\p{M}\p{N}]{1,12}|[^\s\p{L}\p{M}\p{N}]{1,4}/gu

/** Added to the text of every turn, offered tool and tool result. */
export const overheadTokens = 4

/** An image, audio clip or document of any size. */
export const mediaTokens = 256

export function countTokens(text: string): number {
  return text.match(tokenPattern)?.length ?? 0
}

/** The beginning of a text with at most this many tokens; the whole text if it has no more. */
export function takeTokens(text: string, tokensMax: number): string {
  let taken = 0
  let end = 0
  for (const token of text.matchAll(tokenPattern)) {
    if (taken === tokensMax) return text.slice(0, end)
    taken += 1
    end = token.index + token[0].length
  }
  return text
}

/** The deltas of a stream: every word with the whitespace before it. Joined, they are the text again. */
export function splitWords(text: string): string[] {
  const words: string[] = []
  let space = ''
  // Two alternatives that cannot overlap: linear however long a run of whitespace is.
  for (const run of text.match(/\s+|\S+/gu) ?? []) {
    if (run.trim() === '') {
      space = run
    } else {
      words.push(space + run)
      space = ''
    }
  }
  if (space === '') return words
  words.push((words.pop() ?? '') + space)
  return words
}

/** The fragments in which arguments are streamed: at least two where there are two characters, none cut in a pair. */
export function splitFragments(text: string): string[] {
  const size = Math.min(24, Math.max(1, Math.ceil(text.length / 4)))
  return text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'gu')) ?? []
}
