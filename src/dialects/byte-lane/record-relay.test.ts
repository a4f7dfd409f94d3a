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
