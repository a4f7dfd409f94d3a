// Estimates tokens without a vocabulary. Text is split where tokenizers split it, between letters, digits, signs and scripts,
// and each run counts as many tokens as such runs have on average in current vocabularies. The result is within 15 % of
// o200k_base on prose, code, JSON and a dozen languages (token-estimate.test.ts), in 1 % of the time.

/** Characters by how they are tokenized. */
enum Kind {
  Space,
  Letter,
  Digit,
  Sign,
  Ideograph,
  Syllable,
  Abjad,
  Surrogate,
}

export function estimateTokens(text: string): number {
  let tokens = 0
  let at = 0
  while (at < text.length) {
    const kind = kindOf(text.charCodeAt(at))
    let end = at + 1
    while (end < text.length && kindOf(text.charCodeAt(end)) === kind) end++
    tokens += runTokens(text, at, end, kind)
    at = end
  }
  return Math.ceil(tokens)
}

function runTokens(text: string, start: number, end: number, kind: Kind): number {
  const length = end - start
  switch (kind) {
    case Kind.Space: {
      // One space belongs to the word after it, but not to digits.
      const isJoined = length === 1 && text.charCodeAt(start) === 0x20
      return isJoined && kindOf(text.charCodeAt(end)) !== Kind.Digit ? 0 : 1
    }
    case Kind.Letter:
      // Common words are one token; long ones, and those with letters beyond English, are several.
      return isAscii(text, start, end) ? 1 + Math.max(0, (length - 7) / 6) : 1 + Math.max(0, (length - 5) / 5)
    case Kind.Digit:
    case Kind.Sign:
      return Math.ceil(length / 3)
    case Kind.Ideograph:
      return length * 0.72
    case Kind.Syllable:
      return length * 0.6
    case Kind.Abjad:
      return length * 0.36
    case Kind.Surrogate:
      return length
  }
}

function kindOf(code: number): Kind {
  if (code <= 0x20) return Kind.Space
  const lower = code | 0x20
  if (lower >= 0x61 && lower <= 0x7a) return Kind.Letter
  if (code >= 0x30 && code <= 0x39) return Kind.Digit
  if (code < 0xc0) return Kind.Sign
  if (code <= 0x24f || (code >= 0x370 && code <= 0x52f)) return Kind.Letter
  if (code < 0x2000) return Kind.Abjad
  if (code < 0x2e80) return Kind.Sign
  if (code >= 0xac00 && code <= 0xd7a3) return Kind.Syllable
  return code >= 0xd800 && code < 0xe000 ? Kind.Surrogate : Kind.Ideograph
}

function isAscii(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (text.charCodeAt(at) > 0x7f) return false
  return true
}
