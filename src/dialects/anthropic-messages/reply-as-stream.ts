// A whole Messages reply written as the stream a caller waits for: the same members in events, nothing of them read
// into another form. A reply that does not say how it ended is none.

import type { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import { isRecord, jsonObject, jsonString, recordOf, textOf } from '../canonical/json.ts'
import { membersBut, openReply } from '../reply/builder.ts'
import { readErrorObject } from './failure.ts'

type Member = readonly [name: string, value: RawJson]

const endMembers = ['stop_reason', 'stop_sequence', 'stop_details', 'container']
const noUsage = '{"output_tokens":0}'

export function replyAsStream(body: Uint8Array): Uint8Array | { readonly fault: ProviderFault } {
  const reply = openReply(body, readErrorObject)
  if ('fault' in reply) return reply
  const { value, node } = reply
  if (!Array.isArray(value.content)) return { fault: replyFault('a reply without content') }
  if (textOf(value.stop_reason) === '') return { fault: replyFault('a reply without an end') }
  const message = jsonObject([
    ...membersBut(node, ['content', ...endMembers]),
    ['content', '[]'],
    ...endMembers.map((name) => [name, 'null'] as const),
  ])
  const ending = endMembers.map((name): Member => [name, node.member(name)?.text ?? 'null'])
  // Clients fail on an end without usage.
  const usage = isRecord(value.usage) ? node.member('usage')?.text : undefined
  const blocks = node.member('content')?.elements() ?? []
  const text = [
    event('message_start', [['message', message]]),
    ...blocks.flatMap((block, place) => blockEvents(block, recordOf((value.content as unknown[])[place]), place)),
    event('message_delta', [
      ['delta', jsonObject(ending)],
      ['usage', usage ?? noUsage],
    ]),
    event('message_stop', []),
  ]
  return new TextEncoder().encode(text.join(''))
}

function blockEvents(node: JsonNode, block: Readonly<Record<string, unknown>>, place: number): string[] {
  const index: Member = ['index', String(place)]
  const { start, deltas } = partsOf(node, block)
  return [
    event('content_block_start', [index, ['content_block', start]]),
    ...deltas.map(([type, member]) =>
      event('content_block_delta', [index, ['delta', jsonObject([['type', jsonString(type)], member])]]),
    ),
    event('content_block_stop', [index]),
  ]
}

interface BlockParts {
  readonly start: RawJson
  readonly deltas: readonly (readonly [type: string, member: Member])[]
}

/** A block as it starts, and what its deltas add; a type that is not known stands whole in its start. */
function partsOf(node: JsonNode, block: Readonly<Record<string, unknown>>): BlockParts {
  const text = (name: string) => node.member(name)?.text ?? '""'
  switch (block.type) {
    case 'text': {
      const citations = Array.isArray(block.citations) ? (node.member('citations')?.elements() ?? []) : []
      return {
        start: jsonObject([...membersBut(node, ['text', 'citations']), ['text', '""'], ...citationsStart(block)]),
        deltas: [
          ['text_delta', ['text', text('text')]],
          ...citations.map((citation) => ['citations_delta', ['citation', citation.text]] as const),
        ],
      }
    }
    case 'thinking':
      return {
        start: jsonObject([...membersBut(node, ['thinking', 'signature']), ['thinking', '""'], ['signature', '""']]),
        deltas: [
          ['thinking_delta', ['thinking', text('thinking')]],
          ['signature_delta', ['signature', text('signature')]],
        ],
      }
    case 'tool_use': {
      const input = node.member('input')?.text ?? '{}'
      return {
        start: jsonObject([...membersBut(node, ['input']), ['input', '{}']]),
        deltas: [['input_json_delta', ['partial_json', jsonString(input)]]],
      }
    }
    default:
      return { start: node.text, deltas: [] }
  }
}

function citationsStart({ citations }: Readonly<Record<string, unknown>>): Member[] {
  if (citations === undefined) return []
  return [['citations', Array.isArray(citations) ? '[]' : 'null']]
}

function event(type: string, members: readonly Member[]): string {
  return `event: ${type}\ndata: ${jsonObject([['type', jsonString(type)], ...members])}\n\n`
}
