import { describe, expect, test } from 'bun:test'
import { close, delta, ending, event, open, start, stop, text } from '../../../test/parts/messages-stream.ts'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import { parseStream } from './parse-stream.ts'

const read = (...records: string[]): string[] => noted(parseWhole(parseStream(), records.join('')))
/** The blocks of a reply that ends well. */
const blocks = (...records: string[]): string[] => read(start, ...records, ending('end_turn'), stop).slice(1, -1)

describe('blocks', () => {
  test('of text stay blocks', () => {
    expect(blocks(text(0, 'a'), text(1, 'b'))).toEqual(['text', '+a', '.', 'text', '+b', '.'])
  })

  test('that begin with something in them keep it', () => {
    expect(blocks(open(0, { type: 'text', text: 'a' }), delta(0, 'text_delta', { text: 'b' }), close(0))).toEqual([
      'text',
      '+a',
      '+b',
      '.',
    ])
    expect(blocks(open(0, { type: 'thinking', thinking: 'hm', signature: 's' }), close(0))).toEqual([
      'thinking',
      '+hm',
      'signed s',
      '.',
    ])
  })

  test('pitfall 71: of thinking have the provider’s signature untouched', () => {
    const sig = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/8Ug=='
    const thinking = [
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: 'hm' }),
      delta(0, 'signature_delta', { signature: sig }),
      close(0),
    ]
    expect(blocks(...thinking)).toEqual(['thinking', '+hm', `signed ${sig}`, '.'])
  })

  test('pitfall 74: of thinking may be all signature', () => {
    const thinking = [
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: '' }),
      delta(0, 'signature_delta', { signature: 's' }),
      close(0),
    ]
    expect(blocks(...thinking)).toEqual(['thinking', 'signed s', '.'])
  })

  test('pitfall 75: of thinking keep a signature each, of two for one block the later', () => {
    const thinking = (index: number, ...sigs: string[]): string =>
      open(index, { type: 'thinking', thinking: '' }) +
      delta(index, 'thinking_delta', { thinking: 't' }) +
      sigs.map((signature) => delta(index, 'signature_delta', { signature })).join('') +
      close(index)
    expect(blocks(thinking(0, 's0'), thinking(1, 's1', 's2'))).toEqual([
      'thinking',
      '+t',
      'signed s0',
      '.',
      'thinking',
      '+t',
      'signed s1',
      'signed s2',
      '.',
    ])
  })

  test('pitfall 78: a signature outside of thinking belongs to nothing', () => {
    expect(blocks(text(0, 'a'), delta(0, 'signature_delta', { signature: 's' }))).toEqual(['text', '+a', '.'])
  })

  test('pitfall 73: of redacted thinking come whole, beside others', () => {
    expect(blocks(open(0, { type: 'redacted_thinking', data: 'Emw=' }), close(0), text(1, 'a'))).toEqual([
      'sealed Emw=',
      '.',
      'text',
      '+a',
      '.',
    ])
  })

  test('of server tools and of kinds nobody knows are left out, and what follows knows it', () => {
    const search = [
      open(1, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
      delta(1, 'input_json_delta', { partial_json: '{"q":1}' }),
      close(1),
      open(2, { type: 'web_search_tool_result', content: [] }),
      close(2),
    ]
    expect(
      blocks(
        text(0, 'a'),
        ...search,
        text(3, 'b'),
        open(4, { type: 'hologram', text: 'x' }),
        delta(4, 'text_delta', { text: 'x' }),
        close(4),
      ),
    ).toEqual(['text', '+a', '.', 'text apart', '+b', '.'])
  })

  test('without a stop are ended by what follows', () => {
    expect(
      blocks(
        open(0, { type: 'text', text: '' }),
        delta(0, 'text_delta', { text: 'a' }),
        open(1, { type: 'redacted_thinking', data: 'd' }),
      ),
    ).toEqual(['text', '+a', '.', 'sealed d', '.'])
  })

  test('pitfall 76: a delta of another kind than its block opens a block of its kind', () => {
    expect(
      blocks(
        open(0, { type: 'text', text: '' }),
        delta(0, 'thinking_delta', { thinking: 'hm' }),
        delta(0, 'text_delta', { text: 'a' }),
        close(0),
      ),
    ).toEqual(['text', '.', 'thinking', '+hm', '.', 'text', '+a', '.'])
  })

  test('unknown events and deltas are passed over, pings are not lost', () => {
    expect(
      blocks(
        event('content_block_progress', { index: 0 }),
        event('ping'),
        text(0, 'a'),
        delta(0, 'hologram_delta', {}),
      ),
    ).toEqual(['~', 'text', '+a', '.'])
  })
})

describe('tool calls', () => {
  const call = (index: number, input: string, ...pieces: string[]): string =>
    `event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":{"type":"tool_use","id":"toolu_${index}","name":"f","input":${input}}}\n\n` +
    pieces.map((piece) => delta(index, 'input_json_delta', { partial_json: piece })).join('') +
    close(index)

  test('stream their arguments as they are written', () => {
    expect(blocks(call(0, '{}', '', '{"n": 1234567890', '1234567890}'))).toEqual([
      'call toolu_0 f',
      '+{"n": 1234567890',
      '+1234567890}',
      '.',
    ])
  })

  test('vector 71: with only an empty delta have no arguments', () => {
    expect(blocks(call(0, '{}', ''))).toEqual(['call toolu_0 f', '.'])
  })

  test('take the input of their start where nothing follows, spelt as it was', () => {
    expect(blocks(call(0, '{"n":12345678901234567890,"1":1.0}'))).toEqual([
      'call toolu_0 f',
      '+{"n":12345678901234567890,"1":1.0}',
      '.',
    ])
    expect(blocks(call(0, '{"a":1}', '{"b":2}'))).toEqual(['call toolu_0 f', '+{"b":2}', '.'])
  })

  test('pitfall 58: are all passed on', () => {
    expect(
      blocks(call(0, '{}', '{}'), text(1, 'and'), call(2, '{}', '{}')).filter((line) => line.startsWith('call')),
    ).toEqual(['call toolu_0 f', 'call toolu_2 f'])
  })

  test('pitfall 62: arguments outside of their call fail the reply', () => {
    expect(read(start, text(0, 'a'), delta(0, 'input_json_delta', { partial_json: '{' }), stop).at(-1)).toBe(
      'fail arguments outside of their tool call',
    )
  })
})
