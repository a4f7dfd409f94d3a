// The checkers themselves: a good reply has no violations, and every kind of damage is found by the rule meant for it.

import { describe, expect, test } from 'bun:test'
import {
  renderStream as renderMessages,
  renderReply as renderMessagesReply,
} from '../../src/dialects/anthropic-messages/reply/render.ts'
import type { StreamRenderer } from '../../src/dialects/canonical/translation.ts'
import {
  renderStream as renderChat,
  renderReply as renderChatReply,
} from '../../src/dialects/openai-chat/reply/render.ts'
import { type SseEvent, SseReader } from '../../src/wire/sse.ts'
import { call, context, ended, started, text, thinking } from '../parts/reply-events.ts'
import { checkChatReply, checkChatStream } from './checker/grammar-chat.ts'
import { checkMessagesReply, checkMessagesStream } from './checker/grammar-messages.ts'

const reply = [
  started,
  ...thinking(['hm'], 'sig'),
  ...text('a'),
  ...call('1', 'f', '{"x"', ':1}'),
  ended({ unified: 'tool-calls', raw: '' }),
]

function sse(renderer: StreamRenderer): SseEvent[] {
  const stream = reply.map((event) => renderer.render(event)).join('') + renderer.terminal
  return new SseReader().push(new TextEncoder().encode(stream))
}

/** Damage done to the text of the records, or to their list. */
type Damage = (events: SseEvent[]) => SseEvent[]
const replace =
  (from: string | RegExp, to: string): Damage =>
  (events) =>
    events.map((event) => ({ ...event, data: event.data.replace(from, to) }))
const drop =
  (part: string): Damage =>
  (events) =>
    events.filter(({ data }) => !data.includes(part))
const twice =
  (part: string): Damage =>
  (events) =>
    events.flatMap((event) => (event.data.includes(part) ? [event, event] : [event]))
const swap =
  (first: string, second: string): Damage =>
  (events) => {
    const at = (part: string): number => events.findIndex(({ data }) => data.includes(part))
    const swapped = [...events]
    swapped[at(first)] = events[at(second)] as SseEvent
    swapped[at(second)] = events[at(first)] as SseEvent
    return swapped
  }

describe('the grammar of chat completions', () => {
  const good = sse(renderChat(context))
  const rulesOf = (events: SseEvent[], wantsUsage = true): string[] =>
    checkChatStream(events, { wantsUsage }).map(({ rule }) => rule)

  test('finds nothing in a good reply', () => {
    expect(rulesOf(good)).toEqual([])
    expect(checkChatReply(JSON.parse(renderChatReply(reply, context)))).toEqual([])
  })

  test('takes an error for an end', () => {
    const error = {
      event: '',
      data: '{"error":{"message":"m","type":"api_error","param":null,"code":"STREAM_INTERRUPTED"}}',
    }
    expect(rulesOf([...good.slice(0, 3), error])).toEqual([])
    expect(rulesOf([...good.slice(0, 3), error, { event: '', data: '[DONE]' }])).toContain('done-last')
    expect(rulesOf([{ event: '', data: '{"error":{"message":"m"}}' }])).toContain('error-keys')
  })

  const damages: [rule: string, damage: Damage][] = [
    ['done-last', (events) => events.slice(0, -1)],
    ['after-end', twice('[DONE]')],
    ['event-name', (events) => events.map((event) => ({ ...event, event: 'chunk' }))],
    ['data-json', replace(/^\{/, '')],
    ['object', replace('.chunk', '')],
    ['id', replace('"chatcmpl-', '"x-')],
    ['created', replace('1794700000', '0')],
    [
      'same-head',
      (events) => events.map((event, at) => ({ ...event, data: event.data.replace('chatcmpl-', `chatcmpl-${at}`) })),
    ],
    ['choices', replace('"choices":[{"index":0', '"choices":[{"index":1')],
    ['role-first', drop('"role"')],
    ['role-first', twice('"role"')],
    ['delta-keys', replace('"content":"a"', '"warning":"a"')],
    ['delta-text', replace('"content":"a"', '"content":null')],
    [
      'tool-index',
      (events) =>
        events.map((event, at) =>
          at < 5 ? event : { ...event, data: event.data.replace('[{"index":0,"function"', '[{"index":2,"function"') },
        ),
    ],
    ['tool-first', replace('"id":"1","type":"function",', '')],
    ['tool-repeat', replace('{"index":0,"function":{"arg', '{"index":0,"id":null,"function":{"arg')],
    ['tool-json', drop(':1}')],
    ['details-once', twice('reasoning_details')],
    ['details-last', swap('"content":"a"', 'reasoning_details')],
    ['finish', drop('"finish_reason":"tool_calls"')],
    ['finish', replace('"tool_calls"}', '"tool_use"}')],
    ['finish-tools', replace('"tool_calls"}', '"stop"}')],
    ['after-finish', swap('"content":"a"', '"finish_reason":"tool_calls"')],
    ['usage-last', drop('"prompt_tokens"')],
    ['usage-sum', replace('"total_tokens":15', '"total_tokens":16')],
    ['usage-cost', replace('"cost":', '"cost":"1","x":')],
    ['unicode', replace('"content":"a"', '"content":"\\ud83d"')],
  ]
  test.each(damages)('has the rule %s', (rule, damage) => {
    expect(rulesOf(damage(good))).toContain(rule)
  })

  test('has rules about usage that was not requested', () => {
    expect(rulesOf(good, false)).toContain('usage-unasked')
  })

  const wholes: [rule: string, from: string, to: string][] = [
    ['object', '"chat.completion"', '"completion"'],
    ['role', '"role":"assistant"', '"role":"user"'],
    ['message-keys', '"refusal":null,', ''],
    ['tool-json', '\\"x\\":1', 'x'],
    ['finish-tools', '"finish_reason":"tool_calls"', '"finish_reason":"stop"'],
    ['usage-keys', '"completion_tokens":5', '"completion_tokens":-5'],
  ]
  test.each(wholes)('has the rule %s for whole replies', (rule, from, to) => {
    const damaged = renderChatReply(reply, context).replace(from, to)
    expect(checkChatReply(JSON.parse(damaged)).map((found) => found.rule)).toContain(rule)
  })
})

describe('the grammar of messages', () => {
  const good = sse(renderMessages(context))
  const rulesOf = (events: SseEvent[]): string[] => checkMessagesStream(events).map(({ rule }) => rule)

  test('finds nothing in a good reply', () => {
    expect(rulesOf(good)).toEqual([])
    expect(checkMessagesReply(JSON.parse(renderMessagesReply(reply, context)))).toEqual([])
  })

  test('takes an error for an end', () => {
    const error = {
      event: 'error',
      data: '{"type":"error","error":{"type":"api_error","message":"m","code":"STREAM_INTERRUPTED"},"request_id":"req_1"}',
    }
    expect(rulesOf([...good.slice(0, 3), error])).toEqual([])
    expect(rulesOf([...good, error])).toContain('after-end')
    expect(rulesOf([{ event: 'error', data: '{"type":"error","error":{}}' }])).toContain('error-keys')
  })

  const damages: [rule: string, damage: Damage][] = [
    ['event-name', (events) => events.map((event) => ({ ...event, event: '' }))],
    ['data-json', replace(/^\{/, '')],
    [
      'known-event',
      (events) => [...events.slice(0, 1), { event: 'done', data: '{"type":"done"}' }, ...events.slice(1)],
    ],
    ['start-first', twice('message_start')],
    ['start-first', (events) => [{ event: 'ping', data: '{"type":"ping"}' }, ...events]],
    ['start-usage', replace('"input_tokens":42', '"input_tokens":0')],
    ['message-keys', replace('"diagnostics":null,', '')],
    ['id', replace('"msg_', '"x_')],
    ['usage-keys', replace('"server_tool_use":null,', '')],
    ['usage-keys', replace('"output_tokens":5', '"output_tokens":null')],
    ['block-index', replace('"index":1', '"index":2')],
    ['one-open', drop('"content_block_stop","index":0')],
    ['one-open', drop('"content_block_start","index":1')],
    ['block-keys', replace('"thinking":"",', '')],
    ['block-keys', replace('"text":"",', '"text":"x",')],
    ['caller', replace(',"caller":{"type":"direct"}', '')],
    ['known-block', replace('"content_block":{"type":"text"', '"content_block":{"type":"note"')],
    ['delta-kind', replace('"text_delta"', '"thinking_delta"')],
    ['delta-text', replace('"text_delta","text"', '"text_delta","words"')],
    ['signature', drop('signature_delta')],
    ['signature', swap('thinking_delta', 'signature_delta')],
    ['empty-text', drop('text_delta')],
    ['tool-json', drop(':1}')],
    ['message-delta', drop('message_delta')],
    ['message-delta', replace('"container":null},"usage"', '"c":null},"usage"')],
    ['stop-reason', replace('"stop_reason":"tool_use"', '"stop_reason":"tool_calls"')],
    ['stop-tools', replace('"stop_reason":"tool_use"', '"stop_reason":"end_turn"')],
    ['stop-sequence', replace('"stop_reason":"tool_use"', '"stop_reason":"stop_sequence"')],
    ['stop-details', replace('"stop_reason":"tool_use"', '"stop_reason":"refusal"')],
    ['stop-last', drop('message_stop')],
    ['after-end', twice('message_stop')],
    ['usage-cost', replace('"cost":', '"cost":"1","x":')],
    ['unicode', replace('"text":"a"', '"text":"\\ud83d"')],
  ]
  test.each(damages)('has the rule %s', (rule, damage) => {
    expect(rulesOf(damage(good))).toContain(rule)
  })

  const wholes: [rule: string, from: string, to: string][] = [
    ['message-keys', '"container":null,', ''],
    ['empty-text', '"text":"a"', '"text":""'],
    ['tool-input', '"input":{"x":1}', '"input":"{}"'],
    ['block-keys', ',"signature":"sig"', ''],
    ['caller', ',"caller":{"type":"direct"}', ''],
    ['stop-tools', '"stop_reason":"tool_use"', '"stop_reason":"end_turn"'],
    ['usage-keys', '"speed":null,', ''],
  ]
  test.each(wholes)('has the rule %s for whole replies', (rule, from, to) => {
    const damaged = renderMessagesReply(reply, context).replace(from, to)
    expect(checkMessagesReply(JSON.parse(damaged)).map((found) => found.rule)).toContain(rule)
  })
})
