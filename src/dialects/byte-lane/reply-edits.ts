// The two places where a reply differs from what the provider sent: the model's name, and the cost in its usage.

import { closeBrace, openBrace } from '../../wire/ascii.ts'
import { type ByteEdit, spliceBytes } from '../../wire/json-members.ts'
import { type JsonSpan, JsonSpans } from '../../wire/json-spans.ts'
import { utf8Text } from '../../wire/utf8.ts'

const letterN = 0x6e
const encoder = new TextEncoder()

/** A scratch pad: filled and read within one call, never between two. */
const costSpans = new JsonSpans(['cost'])

/** Adds `cost` to the usage object at the span, or replaces the one a provider put there. */
export function costEdit(bytes: Uint8Array, span: JsonSpan, cost: string): ByteEdit {
  costSpans.read(bytes, span.start, span.end)
  const existing = costSpans.of.cost
  if (existing.start >= 0) return { start: existing.start, end: existing.end, bytes: encoder.encode(cost) }
  const at = lastInside(bytes, span)
  const text = bytes[at - 1] === openBrace ? `"cost":${cost}` : `,"cost":${cost}`
  return { start: at, end: at, bytes: encoder.encode(text) }
}

/** Puts a usage object of ours in the place of the provider's, or at the end of the object that has none. */
export function usageEdit(bytes: Uint8Array, span: JsonSpan, usageJson: string, objectEnd = bytes.length): ByteEdit {
  if (span.start >= 0) return { start: span.start, end: span.end, bytes: encoder.encode(usageJson) }
  let at = objectEnd - 1
  while (at > 0 && bytes[at] !== closeBrace) at--
  return { start: at, end: at, bytes: encoder.encode(`,"usage":${usageJson}`) }
}

/** Behind the last byte of an object that is neither space nor its closing brace. */
function lastInside(bytes: Uint8Array, span: JsonSpan): number {
  let at = span.end - 1
  while (at > span.start && ((bytes[at] as number) <= 0x20 || (at === span.end - 1 && bytes[at] === closeBrace))) at--
  return at + 1
}

/** The reply with the caller's name for the model and the cost in their places. */
export function spliceReply(
  body: Uint8Array,
  model: JsonSpan,
  modelJson: Uint8Array,
  cost: ByteEdit | undefined,
): Uint8Array {
  const edits: ByteEdit[] = model.start < 0 ? [] : [{ start: model.start, end: model.end, bytes: modelJson }]
  if (cost) edits.push(cost)
  if (edits.length === 2 && (edits[0] as ByteEdit).start > (edits[1] as ByteEdit).start) edits.reverse()
  return spliceBytes(body, edits)
}

/** The JSON value at a span; undefined if the provider's bytes do not parse. */
export function parseSpan(bytes: Uint8Array, span: JsonSpan): unknown {
  if (span.start < 0) return undefined
  try {
    return JSON.parse(utf8Text(bytes, span.start, span.end))
  } catch {
    return undefined
  }
}

/** Whether a member is there and is not null. */
export function isPresent(bytes: Uint8Array, span: JsonSpan): boolean {
  return span.start >= 0 && bytes[span.start] !== letterN
}

/** Whether a member is there and is an object. */
export function isObject(bytes: Uint8Array, span: JsonSpan): boolean {
  return span.start >= 0 && bytes[span.start] === openBrace
}
