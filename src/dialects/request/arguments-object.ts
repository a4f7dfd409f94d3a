// The arguments of a tool call, which a model writes as text, in the two forms dialects want: a JSON text, or an
// object. What the model wrote is spliced, never written anew.

import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, parseJson } from '../canonical/json-value.ts'
import { jsonObject, jsonString } from './json-text.ts'

/** An object that is encoded twice, as a string that holds its text, loses that layer; anything else stays. */
export function unwrapArguments(text: string): string {
  const inner = parseJson(text)
  return typeof inner === 'string' && isRecord(parseJson(inner)) ? inner : text
}

/** The arguments as an object, whatever the model wrote. */
export function argumentsObject(text: string): RawJson {
  if (text.trim() === '') return '{}'
  const unwrapped = unwrapArguments(text).trim()
  const value = parseJson(unwrapped)
  if (isRecord(value)) return unwrapped
  return jsonObject([value === undefined ? ['raw_arguments', jsonString(text)] : ['value', unwrapped]])
}
