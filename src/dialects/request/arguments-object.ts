// The arguments of a tool call, which a model writes as text, in the two forms dialects want: a JSON text, or an
// object. What the model wrote is spliced, never written anew.

import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from './json-text.ts'

/** An object that is encoded twice, as a string that holds its text, loses that layer; anything else stays. */
export function unwrapArguments(text: string): string {
  const inner = parse(text)
  return typeof inner === 'string' && isObject(parse(inner)) ? inner : text
}

/** The arguments as an object, whatever the model wrote. */
export function argumentsObject(text: string): RawJson {
  if (text.trim() === '') return '{}'
  const unwrapped = unwrapArguments(text).trim()
  const value = parse(unwrapped)
  if (isObject(value)) return unwrapped
  return jsonObject([value === undefined ? ['raw_arguments', jsonString(text)] : ['value', unwrapped]])
}

/** undefined stands for no JSON, which has no such value. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
