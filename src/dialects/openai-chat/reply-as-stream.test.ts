import { describe, expect, test } from 'bun:test'
import { targetWith } from '../../../test/parts/chat-requests.ts'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import { parseStream } from './parse-stream.ts'
import { replyAsStream } from './reply-as-stream.ts'

const encode = (reply: object | string): Uint8Array =>
  new TextEncoder().encode(typeof reply === 'string' ? reply : JSON.stringify(reply))
const stream = (reply: object | string): string => {
  const bytes = replyAsStream(encode(reply))
  if ('fault' in bytes) throw new Error(bytes.fault.message)
  return new TextDecoder().decode(bytes)
}
const faultOf = (reply: object | string) => {
  const result = replyAsStream(encode(reply))
  if (!('fault' in result)) throw new Error('was taken')
  return result.fault
}
const events = (reply: object | string): string[] => noted(parseWhole(parseStream(targetWith()), stream(reply)))
const choice = (message: object, finish: unknown = 'stop', index = 0) => ({ index, message, finish_reason: finish })

describe('pitfall 139: a whole reply as the stream that was asked for', () => {
  test('has the members of the reply in chunks', () => {
    const reply = {
      id: 'c1',
      object: 'chat.completion',
      created: 5,
      model: 'up',
      choices: [{ ...choice({ role: 'assistant', content: 'hi', refusal: null }), logprobs: null }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    }
    const head = { object: 'chat.completion.chunk', id: 'c1', created: 5, model: 'up' }
    const records = stream(reply)
      .split('\n\n')
      .filter(Boolean)
      .map((record) => record.replace('data: ', ''))
    expect(records.at(-1)).toBe('[DONE]')
    expect(records.slice(0, -1).map((record): unknown => JSON.parse(record))).toEqual([
      {
        ...head,
        choices: [
          {
            index: 0,
            delta: { role: 'assistant', content: 'hi', refusal: null },
            logprobs: null,
            finish_reason: null,
          },
        ],
      },
      { ...head, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { ...head, choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
    ])
  })

  test('reasoning, text and numbered calls are read back as they were, big numbers included', () => {
    const reply = `{
      "id": "c1",
      "choices": [ { "index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "reasoning_content": "hm", "content": "so\\nbe it", "tool_calls": [
          { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\\"n\\": 12345678901234567890}" } },
          { "id": "b", "type": "function", "function": { "name": "g", "arguments": {
              "n": 12345678901234567890, "x": 1.0 } } } ] } } ]
    }`
    expect(events(reply)).toEqual([
      'start c1',
      'thinking',
      '+hm',
      'signed by acme/openai-chat',
      '.',
      'text',
      '+so\nbe it',
      '.',
      'call a f',
      '+{"n": 12345678901234567890}',
      '.',
      'call b g',
      // Line breaks between values become spaces: a record is one line.
      expect.stringMatching(/^\+\{ +"n": 12345678901234567890, "x": 1\.0 \}$/),
      '.',
      'end tool-calls tool_calls',
    ])
  })

  test('one that does not say how it ended has ended as it looks', () => {
    for (const finish of [null, undefined, '']) {
      expect(events({ choices: [choice({ content: 'a' }, finish)] }).at(-1)).toStartWith('end end ')
    }
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
    expect(events({ choices: [choice({ tool_calls: [call] }, null)] }).at(-1)).toStartWith('end tool-calls ')
  })

  test('every choice is told, each with its end', () => {
    const text = stream({ choices: [choice({ content: 'a' }), choice({ content: 'b' }, 'length', 1)] })
    expect(text.match(/"index":1/g)).toHaveLength(2)
    expect(text).toContain('"finish_reason":"length"')
  })

  test('a long text and odd members survive', () => {
    const content = 'x\u2028 "q" \\ 🎉'.repeat(1000)
    const text = stream({ choices: [{ ...choice({ content, annotations: [{ a: 1 }] }), stop_reason: 7 }] })
    expect(text).toContain(JSON.stringify(content))
    expect(text).toContain('"annotations":[{"a":1}]')
    expect(text).toContain('"stop_reason":7')
  })
})

describe('is no reply', () => {
  test.each(['', 'null', '[]', '{', '<html>'])('%p', (body) => {
    expect(faultOf(body).message).toContain('no JSON object')
  })

  test('without choices, or without an end', () => {
    expect(faultOf({}).message).toBe('a reply without choices')
    expect(faultOf({ choices: [] }).message).toBe('a reply without choices')
    expect(faultOf({ choices: [choice({ content: 'a' }, 'error')] }).message).toBe('a reply without an end')
    expect(faultOf({ choices: [{ finish_reason: 'stop' }] }).message).toBe('a reply without an end')
  })

  test('but an error in disguise', () => {
    expect(faultOf({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })).toMatchObject({
      status: 429,
      message: 'slow down',
    })
  })
})
