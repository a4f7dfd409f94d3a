// Visits all strings of a JSON text in its bytes, names of members included. Unlike JSON.parse it visits every value of a name
// that appears twice, because parsers disagree which one counts, and it has no limit of members.

import { closeBrace, closeBracket, colon, comma, openBrace, openBracket, quote, utf8Text } from './bytes.ts'
import { isSpace, passString, passValue } from './json-scan.ts'

/** Where a string is: names of members and indexes of elements, from the outermost. */
export type JsonPath = readonly (string | number)[]

/** `isName`: the string is the name of a member, which is also the last step of its path. */
export type TakeString = (text: string, path: JsonPath, isName: boolean) => void

/** Deeper than parsers of providers read. */
const depthMax = 1_000

/**
 * Stops where the bytes are no JSON, and at more than a thousand levels. The path changes with the next string: copy what is
 * kept of it.
 */
export function visitStrings(bytes: Uint8Array, take: TakeString): void {
  const path: (string | number)[] = []
  /** Whether the next string of the innermost object is a name. */
  let isNameNext = false
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] as number
    if (byte === quote) {
      const end = passString(bytes, at, bytes.length)
      if (end === -1) return
      const text = stringIn(bytes, at, end)
      if (isNameNext) path[path.length - 1] = text
      take(text, path, isNameNext)
      at = end
    } else if (byte === openBrace || byte === openBracket) {
      if (path.push(byte === openBrace ? '' : 0) > depthMax) return
      isNameNext = byte === openBrace
      at++
    } else if (byte === closeBrace || byte === closeBracket) {
      path.pop()
      isNameNext = false
      at++
    } else if (byte === comma) {
      const last = path.at(-1)
      isNameNext = typeof last === 'string'
      if (typeof last === 'number') path[path.length - 1] = last + 1
      at++
    } else if (byte === colon) {
      isNameNext = false
      at++
    } else at = isSpace(byte) ? at + 1 : passValue(bytes, at, bytes.length)
  }
}

function stringIn(bytes: Uint8Array, start: number, end: number): string {
  const from = start + 1
  const raw = utf8Text(bytes, from, end - 1)
  if (!raw.includes('\\')) return raw
  try {
    return JSON.parse(`"${raw}"`) as string
  } catch {
    return raw
  }
}
