// A whole Responses reply written as the stream a caller waits for: each item whole, nothing of them read into another
// form. A reply that does not say how it ended is none.

import type { RawJson } from '../canonical/conversation.ts'
import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import { jsonObject, jsonString, textOf } from '../canonical/json.ts'
import { membersBut, openReply } from '../reply/builder.ts'
import { readErrorObject } from './failure.ts'

const endings = ['completed', 'incomplete']

export function replyAsStream(body: Uint8Array): Uint8Array | { readonly fault: ProviderFault } {
  const reply = openReply(body, readErrorObject)
  if ('fault' in reply) return reply
  const { value, node } = reply
  if (!Array.isArray(value.output)) return { fault: replyFault('a reply without output') }
  const status = textOf(value.status)
  if (!endings.includes(status)) return { fault: replyFault('a reply without an end') }
  const head = [...membersBut(node, ['output', 'status', 'usage']), ['output', '[]'] as const]
  const items = node.member('output')?.elements() ?? []
  const text = [
    event('response.created', ['response', jsonObject([...head, ['status', '"in_progress"']])]),
    ...items.map((item, place) =>
      event('response.output_item.done', ['output_index', String(place)], ['item', item.text]),
    ),
    event(`response.${status}`, ['response', jsonObject([...membersBut(node, ['output']), ['output', '[]']])]),
  ]
  return new TextEncoder().encode(text.join(''))
}

function event(type: string, ...members: readonly (readonly [name: string, value: RawJson])[]): string {
  return `event: ${type}\ndata: ${jsonObject([['type', jsonString(type)], ...members])}\n\n`
}
