// The two places where a reply differs from what the provider sent: the model's name, and the cost in its usage.

import { closeBrace, comma, openBrace } from '../../wire/ascii.ts'
import { type ByteEdit, spliceBytes } from '../../wire/json-members.ts'
import { type JsonSpan, JsonSpans } from '../../wire/json-spans.ts'
import { utf8Text } from '../../wire/utf8.ts'

const letterN = 0x6e
const encoder = new TextEncoder()
const modelName = encoder.encode('"model":')
const separator = Uint8Array.of(comma)

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

/** Puts the caller's name for the model in the place of the provider's, or first in the object that has none. */
export function modelEdit(bytes: Uint8Array, span: JsonSpan, modelJson: Uint8Array, objectStart = 0): ByteEdit {
  if (span.start >= 0) return { start: span.start, end: span.end, bytes: modelJson }
  const at = bytes.indexOf(openBrace, objectStart) + 1
  let next = at
  while ((bytes[next] as number) <= 0x20) next++
  const member = bytes[next] === closeBrace ? [modelName, modelJson] : [modelName, modelJson, separator]
  return { start: at, end: at, bytes: Buffer.concat(member) }
}

/** The reply with both in their places. */
export function spliceReply(body: Uint8Array, model: ByteEdit, cost: ByteEdit): Uint8Array {
  return spliceBytes(body, model.start <= cost.start ? [model, cost] : [cost, model])
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
