// Where the elements of a JSON array lie in its bytes. The body has been checked before as a whole.

import { assert } from '../kernel/assert.ts'
import { closeBracket, comma, openBracket } from './ascii.ts'
import type { JsonEnds } from './json-ends.ts'
import { jsonDepthMax } from './json-members.ts'
import { JsonScanner } from './json-scanner.ts'
import type { JsonSpan } from './json-spans.ts'

/** [start, end) is an array of a body that readJsonMembers has accepted. */
export function readJsonElements(body: Uint8Array, start: number, end: number, ends?: JsonEnds): JsonSpan[] {
  return passElements(new JsonScanner(body, start, end, jsonDepthMax, ends), () => false)
}

/** The same up to the first that is the last one wanted, and it too; what lies behind is not looked at. */
export function readJsonElementsUntil(
  body: Uint8Array,
  start: number,
  end: number,
  isLast: (span: JsonSpan) => boolean,
): JsonSpan[] {
  return passElements(new JsonScanner(body, start, end, jsonDepthMax), isLast)
}

function passElements(scanner: JsonScanner, isLast: (span: JsonSpan) => boolean): JsonSpan[] {
  assert(scanner.peek() === openBracket, 'the span of an array')
  scanner.at++
  const spans: JsonSpan[] = []
  let next = scanner.peek()
  while (next !== closeBracket) {
    const from = scanner.at
    assert(scanner.passValue(1), 'an element of a body that has been checked')
    const span = { start: from, end: scanner.at }
    spans.push(span)
    if (isLast(span)) return spans
    next = scanner.peek()
    if (next !== comma) break
    scanner.at++
    scanner.peek()
  }
  assert(next === closeBracket, 'the span of a whole array')
  return spans
}
