// A whole generateContent reply written as the stream a caller waits for. Its records have the form of whole replies, so
// each is passed on as it is; without `alt=sse` the provider sends them as one list. A reply that does not say how it
// ended is none.

import { JsonNode } from '../../wire/json-node.ts'
import { utf8Text } from '../../wire/utf8.ts'
import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import { isRecord, parseJson, recordOf, textOf } from '../canonical/json.ts'
import { readErrorObject } from './failure.ts'

export function replyAsStream(body: Uint8Array): Uint8Array | { readonly fault: ProviderFault } {
  const text = utf8Text(body, 0, body.length)
  const value = parseJson(text)
  const replies: unknown[] = Array.isArray(value) ? value : [value]
  if (replies.length === 0 || !replies.every(isRecord)) {
    return { fault: replyFault('a reply that is no JSON object, or not all of it') }
  }
  const failed = replies.find(({ error }) => (error ?? null) !== null)
  if (failed) return { fault: readErrorObject(failed.error) }
  if (!replies.some(hasEnded)) return { fault: replyFault('a reply without an end') }
  // JSON has line breaks only between its values, where a space is as good.
  const node = JsonNode.of(text.replaceAll(/[\r\n]/g, ' '))
  const records = node.elements() ?? [node]
  return new TextEncoder().encode(records.map((record) => `data: ${record.text}\n\n`).join(''))
}

function hasEnded({ candidates, promptFeedback }: Record<string, unknown>): boolean {
  const [first]: unknown[] = Array.isArray(candidates) ? candidates : []
  return textOf(recordOf(first).finishReason) !== '' || 'blockReason' in recordOf(promptFeedback)
}
