import { describe, expect, test } from 'bun:test'
import { context as renderContext } from '../../../test/parts/reply-events.ts'
import { anthropicMessages } from '../anthropic-messages/index.ts'
import { openaiChat } from '../openai-chat/index.ts'

const context = { ...renderContext, modelJson: new TextEncoder().encode('"a/b"') }

/** One record over several data lines, at every cut, and the one line it becomes. */
const records = [
  {
    dialect: openaiChat,
    sent: ['{"model":"up",', ' "choices":[{"index":0,', '"delta":{"content":"a\\nb"}}]}'],
    event: '',
    passed: '{"model":"a/b",  "choices":[{"index":0, "delta":{"content":"a\\nb"}}]}',
  },
  {
    dialect: anthropicMessages,
    sent: ['{"type":"message_start",', '"message":{"model":"up"}}'],
    event: 'event: message_start\n',
    passed: '{"type":"message_start", "message":{"model":"a/b"}}',
  },
]

describe.each(records)('vector 87: data over several lines on $dialect.id', ({ dialect, sent, event, passed }) => {
  test.each(['\n', '\r\n', '\r'])('passes as one, whatever ends a line: %j', (lineEnd) => {
    const text = `${event}${sent.map((line) => `data: ${line}\n`).join('')}\n`.replaceAll('\n', lineEnd)
    const bytes = new TextEncoder().encode(text)
    for (let cut = 0; cut <= bytes.length; cut++) {
      const relay = dialect.relayStream(context)
      const parts = [relay.push(bytes.subarray(0, cut)), relay.push(bytes.subarray(cut)), relay.end()]
      expect(Buffer.concat(parts).toString().trimEnd()).toBe(`${event}data: ${passed}`)
    }
  })
})

const messageStart = 'event: message_start\ndata: {"type":"message_start","message":{"model":"a/b"}}\n\n'
const says = (text: string) =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}\n\n`
const chunk = (choice: string) => `data: {"id":"c1","created":1,"model":"a/b","choices":[${choice}]}\n\n`

const bad = [
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_del\n\n',
  'event: content_block_stop\ndata: {"type":\n\n',
  'event: tomorrow\ndata: oops\n\n',
]

test.each(bad)('pitfall 149: a bad record is left out of a Messages stream, the rest passes: %j', (record) => {
  const relay = anthropicMessages.relayStream(context)
  const sent = `${messageStart}${says('a')}${record}${says('b')}`
  const passed = relay.push(new TextEncoder().encode(sent))
  expect(Buffer.from(passed).toString()).toBe(`${messageStart}${says('a')}${says('b')}`)
  expect([relay.meaningful, relay.finished, relay.fault]).toEqual([true, false, undefined])
})

test.each([
  ['stop', '{"index":0,"delta":{"content":"a"}}'],
  ['tool_calls', '{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}}'],
])('pitfall 121: a chat stream with a clean end that never said how it ended says %s once', (reason, choice) => {
  const relay = openaiChat.relayStream({ ...context, wantsStreamUsage: false })
  const passed = relay.push(new TextEncoder().encode(`${chunk(choice)}data: [DONE]\n\n`))
  const [own = ''] = Buffer.from(passed).toString().split(chunk(choice)).slice(1)
  expect(JSON.parse(own.slice('data: '.length))).toEqual({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'a/b',
    choices: [{ index: 0, delta: {}, finish_reason: reason }],
  })
  expect(Buffer.from(relay.terminal).toString()).toBe('data: [DONE]\n\n')
})

test('pitfall 121: one that said so, wherever, gets nothing more', () => {
  const relay = openaiChat.relayStream({ ...context, wantsStreamUsage: false })
  const all =
    chunk('{"index":0,"delta":{"content":"a"},"finish_reason":"length"}') + chunk('{"index":0,"delta":{},"x":1}')
  expect(Buffer.from(relay.push(new TextEncoder().encode(`${all}data: [DONE]\n\n`))).toString()).toBe(all)
})
