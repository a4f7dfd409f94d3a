import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
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
const message = (content: readonly object[], more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'up',
  content,
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
  ...more,
})

/** The events of a stream: names, and data without the type, which must repeat the name. */
function eventsOf(text: string): [name: string, data: object][] {
  return text
    .split('\n\n')
    .filter(Boolean)
    .map((record) => {
      const [, name = '', json = ''] = /^event: (.*)\ndata: (.*)$/.exec(record) ?? []
      const { type, ...data } = JSON.parse(json) as { type: string }
      expect(type).toBe(name)
      return [name, data]
    })
}

describe('pitfall 139: a whole reply as the stream that was asked for', () => {
  test('has the members of the reply in events', () => {
    const usage = { input_tokens: 3, output_tokens: 2 }
    expect(eventsOf(stream(message([{ type: 'text', text: 'hi', citations: null }])))).toEqual([
      [
        'message_start',
        {
          message: {
            ...message([]),
            stop_reason: null,
            stop_details: null,
            container: null,
          },
        },
      ],
      ['content_block_start', { index: 0, content_block: { type: 'text', text: '', citations: null } }],
      ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hi' } }],
      ['content_block_stop', { index: 0 }],
      [
        'message_delta',
        { delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null }, usage },
      ],
      ['message_stop', {}],
    ])
  })

  test('pitfall 91: thinking keeps its signature, sealed thinking its data, and a call its exact input', () => {
    const reply = `{"id":"msg_1","role":"assistant","stop_reason":"tool_use","content":[
      {"type":"thinking","thinking":"hm","signature":"sig+/="},
      {"type":"thinking","thinking":"","signature":"alone"},
      {"type":"redacted_thinking","data":"blob"},
      {"type":"tool_use","id":"t","name":"f","input":{"n":12345678901234567890,
        "x":1.0}}]}`
    expect(noted(parseWhole(parseStream(), stream(reply)))).toEqual([
      'start msg_1',
      'thinking',
      '+hm',
      'signed sig+/=',
      '.',
      'thinking',
      'signed alone',
      '.',
      'sealed blob',
      '.',
      'call t f',
      expect.stringMatching(/^\+\{"n":12345678901234567890, +"x":1\.0\}$/),
      '.',
      'end tool-calls tool_use',
    ])
  })

  test('blocks that only the provider knows stand whole in their start, citations in deltas', () => {
    const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } }
    const cited = { type: 'text', text: 'so', citations: [{ type: 'char_location', cited_text: 'a' }] }
    const events = eventsOf(stream(message([search, cited])))
    expect(events[1]).toEqual(['content_block_start', { index: 0, content_block: search }])
    expect(events.filter(([name]) => name === 'content_block_delta').map(([, data]) => data)).toEqual([
      { index: 1, delta: { type: 'text_delta', text: 'so' } },
      { index: 1, delta: { type: 'citations_delta', citation: { type: 'char_location', cited_text: 'a' } } },
    ])
  })

  test('a recorded reply with line breaks in it is read', () => {
    const body = readFileSync(`${import.meta.dir}/../../../test/fixtures/messages/whole-spaced.json`, 'utf8')
    expect(noted(parseWhole(parseStream(), stream(body)))).toEqual([
      'start msg_07',
      'text',
      '+a\tb',
      '.',
      'end end end_turn',
    ])
  })
})

describe('is no reply', () => {
  test.each(['', 'null', '[]', '{', '<html>'])('%p', (body) => {
    expect(faultOf(body).message).toContain('no JSON object')
  })

  test('without content, or without an end', () => {
    expect(faultOf({ stop_reason: 'end_turn' }).message).toBe('a reply without content')
    expect(faultOf(message([], { stop_reason: null })).message).toBe('a reply without an end')
  })

  test('but an error in disguise', () => {
    expect(faultOf({ type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } })).toMatchObject({
      status: 429,
      message: 'slow down',
    })
  })
})
