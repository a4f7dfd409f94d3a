import { describe, expect, test } from 'bun:test'
import { context as renderContext } from '../../../test/parts/reply-events.ts'
import { anthropicMessages } from '../anthropic-messages/index.ts'
import type { Dialect } from '../dialect.ts'
import { openaiChat } from '../openai-chat/index.ts'

const context = { ...renderContext, modelJson: new TextEncoder().encode('"a/b"'), envelope: { choices: 1 } }

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

describe('a provider that does not name the model', () => {
  const relayed = (dialect: Dialect, sent: string): string =>
    Buffer.from(dialect.relayStream(context).push(new TextEncoder().encode(sent))).toString()

  test.each([
    ['data: {"choices":[{"index":0}]}\n\n', 'data: {"model":"a/b","choices":[{"index":0}]}\n\n'],
    ['data:{ "id":"c","choices":[]}\n\n', 'data:{"model":"a/b", "id":"c","choices":[]}\n\n'],
    // Nothing that belongs to the dialect.
    ['data: {"type":"ping"}\n\n', 'data: {"type":"ping"}\n\n'],
  ])('has it named in each chunk: %j', (sent, passed) => {
    expect(relayed(openaiChat, sent)).toBe(passed)
  })

  test('gets the name also in a chunk with usage', () => {
    const counts = '{"prompt_tokens":3,"completion_tokens":9,"total_tokens":12'
    const chunkOf = (head: string, tail: string) => `data: {${head}"choices":[],"usage":${counts}${tail}}}\n\n`
    expect(relayed(openaiChat, chunkOf('', ''))).toBe(chunkOf('"model":"a/b",', ',"cost":0.000012345'))
  })

  test.each([
    ['{"id":"msg_1"}', '{"model":"a/b","id":"msg_1"}'],
    ['{ }', '{"model":"a/b" }'],
  ])('has it named in the start of a message: %s', (message, named) => {
    const start = (text: string) => `event: message_start\ndata: {"type":"message_start","message":${text}}\n\n`
    expect(relayed(anthropicMessages, start(message))).toBe(start(named))
  })

  test.each([
    [openaiChat, '"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]'],
    [anthropicMessages, '"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"'],
  ])('has it named in a whole reply: %#', (dialect, members) => {
    const reply = dialect.relayReply(new TextEncoder().encode(` {${members}}`), context)
    if ('fault' in reply) throw new Error(reply.fault.message)
    expect(Buffer.from(reply.body).toString()).toStartWith(` {"model":"a/b",${members},"usage":{`)
  })
})
