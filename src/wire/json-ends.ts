// Where every object and array of a document ends, found in one scan. Whoever reads a document level by level would
// otherwise pass what is below again at each level.

import { backslash, closeBrace, closeBracket, openBrace, openBracket, quote } from './ascii.ts'

/**
 * The offset behind the closing bracket, by that of the opening one; 0 where none opens. An array, since a document may be
 * all brackets: a map of them takes thirty times as much memory, and seconds in which nobody else is served.
 */
export type JsonEnds = Uint32Array

/** Of a document that is known to be JSON. */
export function readJsonEnds(body: Uint8Array): JsonEnds {
  const ends = new Uint32Array(body.length)
  const open: number[] = []
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) at = closingQuote(body, at)
    else if (byte === openBrace || byte === openBracket) open.push(at)
    else if (byte === closeBrace || byte === closeBracket) ends[open.pop() ?? at] = at + 1
  }
  return ends
}

function closingQuote(body: Uint8Array, start: number): number {
  let at = start + 1
  while (at < body.length && body[at] !== quote) at += body[at] === backslash ? 2 : 1
  return at
}
