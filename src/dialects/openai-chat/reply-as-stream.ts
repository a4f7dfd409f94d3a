// A whole Chat Completions reply written as the stream a caller waits for: the same members in chunks, nothing of them
// read into another form. A reply whose JSON is whole has ended, also where it does not say how.

import type { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import { isRecord, jsonArray, jsonObject, recordOf } from '../canonical/json.ts'
import { membersBut, openReply } from '../reply/builder.ts'
import { readErrorObject } from './failure.ts'

export function replyAsStream(body: Uint8Array): Uint8Array | { readonly fault: ProviderFault } {
  const reply = openReply(body, readErrorObject)
  if ('fault' in reply) return reply
  const { value, node } = reply
  const choices: unknown[] = Array.isArray(value.choices) ? value.choices : []
  if (choices.length === 0) return { fault: replyFault('a reply without choices') }
  if (!choices.every(hasEnded)) return { fault: replyFault('a reply without an end') }
  const head = [['object', '"chat.completion.chunk"'] as const, ...membersBut(node, ['object', 'choices', 'usage'])]
  const record = (list: readonly RawJson[], usage?: RawJson): string =>
    `data: ${jsonObject([...head, ['choices', jsonArray(list)], ['usage', usage]])}\n\n`
  const nodes = node.member('choices')?.elements() ?? []
  let text = ''
  for (const [place, choice] of nodes.entries()) text += record([contentChoice(choice, place)])
  for (const [place, choice] of nodes.entries()) text += record([finishChoice(choice, place)])
  if (isRecord(value.usage)) text += record([], node.member('usage')?.text)
  return new TextEncoder().encode(`${text}data: [DONE]\n\n`)
}

function hasEnded(choice: unknown): boolean {
  const { finish_reason: finish, message } = recordOf(choice)
  return finish !== 'error' && isRecord(message)
}

/** All that was said, in one chunk. */
function contentChoice(choice: JsonNode, place: number): RawJson {
  const message = choice.member('message')
  const calls = message?.member('tool_calls')?.elements()
  const delta = jsonObject([
    ['role', '"assistant"'],
    ...membersBut(message, ['role', 'tool_calls']),
    ['tool_calls', calls && jsonArray(calls.map(numberedCall))],
  ])
  return jsonObject([
    ['index', indexOf(choice, place)],
    ['delta', delta],
    ['logprobs', choice.member('logprobs')?.text],
    ['finish_reason', 'null'],
  ])
}

function finishChoice(choice: JsonNode, place: number): RawJson {
  return jsonObject([
    ['index', indexOf(choice, place)],
    ['delta', '{}'],
    ...membersBut(choice, ['index', 'message', 'logprobs']),
  ])
}

function indexOf(choice: JsonNode, place: number): RawJson {
  return choice.member('index')?.text ?? String(place)
}

/** In a stream fragments of calls are told apart by their number. */
function numberedCall(call: JsonNode, place: number): RawJson {
  return jsonObject([['index', String(place)], ...membersBut(call, ['index'])])
}
