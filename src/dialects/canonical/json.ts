// Reading untrusted JSON, where a value of an unexpected type counts as absent, and building JSON as text, so that what
// a caller or a model wrote is spliced in unchanged.

import { JsonFault, type JsonNode, readJson } from '../../wire/json.ts'
import type { RawJson } from './conversation.ts'

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** '' for anything but a string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Longer than any known type, code or field name. */
const wordLengthMax = 256

/**
 * A machine-readable word. Longer values are rejected instead of truncated, because redaction would not recognise part
 * of a secret.
 */
export function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= wordLengthMax ? value : undefined
}

/** {} for anything but an object. */
export function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

/** [] for anything but a list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** undefined if the text is not JSON; JSON itself has no such value. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** undefined if the text is not a JSON object. */
export function parseRecord(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text)
  return isRecord(value) ? value : undefined
}

/** undefined for undefined, so that the member is omitted. */
export function jsonString<Text extends string | undefined>(
  text: Text,
): RawJson | (undefined extends Text ? undefined : never) {
  return JSON.stringify(text)
}

/** undefined for undefined, so that the member is omitted. */
export function jsonNumber(value: number | undefined): RawJson | undefined {
  return value === undefined ? undefined : String(value)
}

/** An object with members of the dialect's own, in the order written. Members that are undefined are omitted. */
export function jsonObject(members: Members): RawJson {
  let text = ''
  // Faster than Object.entries, and these names need no escaping: a request writes dozens of objects.
  for (const name in members) {
    const value = members[name]
    if (value !== undefined) text += `${text === '' ? '' : ','}"${name}":${value}`
  }
  return `{${text}}`
}

export type Members = Readonly<Record<string, RawJson | undefined>>

/** The same for names from outside: JavaScript objects move names such as `10` to the front. */
export function jsonMembers(members: readonly (readonly [name: string, value: RawJson | undefined])[]): RawJson {
  let text = ''
  for (const [name, value] of members) {
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  }
  return `{${text}}`
}

/** undefined if no member has a value. */
export function filledObject(members: Members): RawJson | undefined {
  const text = jsonObject(members)
  return text === '{}' ? undefined : text
}

export function jsonArray(elements: readonly RawJson[]): RawJson {
  return `[${elements.join(',')}]`
}

/** undefined if there are no elements. */
export function filledArray(elements: readonly RawJson[]): RawJson | undefined {
  return elements.length === 0 ? undefined : jsonArray(elements)
}

/**
 * The text of one value inside a JSON document, exactly as written. undefined if it does not exist or our reader
 * rejects the document.
 */
export function rawJsonAt(document: string, path: readonly (string | number)[]): RawJson | undefined {
  const root = readJson(new TextEncoder().encode(document))
  if (root instanceof JsonFault) return undefined
  let node: JsonNode | undefined = root
  for (const step of path) node = typeof step === 'number' ? node?.at(step) : node?.get(step)
  return node?.text
}
