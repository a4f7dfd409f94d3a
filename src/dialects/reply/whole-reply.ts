// A provider's whole reply opened for reading: its values, and the text each of them was written with.

import { JsonNode } from '../../wire/json-node.ts'
import { utf8Text } from '../../wire/utf8.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { parseRecord } from '../canonical/json-value.ts'
import { type ProviderFault, replyFault } from '../canonical/provider-fault.ts'

export interface WholeReply {
  readonly value: Readonly<Record<string, unknown>>
  /** The same on one line, so that any part of it can stand in a record of a stream. */
  readonly node: JsonNode
}

/** A fault if the body is an error in disguise, or no reply at all. */
export function openReply(
  body: Uint8Array,
  readErrorObject: (error: unknown) => ProviderFault,
): WholeReply | { readonly fault: ProviderFault } {
  const text = utf8Text(body, 0, body.length)
  const value = parseRecord(text)
  if (!value) return { fault: replyFault('a reply that is no JSON object, or not all of it') }
  const error = value.error ?? null
  if (error !== null) return { fault: readErrorObject(error) }
  // JSON has line breaks only between its values, where a space is as good.
  return { value, node: JsonNode.of(text.replaceAll(/[\r\n]/g, ' ')) }
}

/** The members of an object as they were written, without some of them. */
export function membersBut(
  node: JsonNode | undefined,
  left: readonly string[],
): (readonly [name: string, value: RawJson])[] {
  return (node?.members() ?? []).flatMap(([name, value]) => (left.includes(name) ? [] : [[name, value.text] as const]))
}
