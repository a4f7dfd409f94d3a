import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { close, delta, ending, event, open, start, stop, text } from '../../../../test/parts/messages-stream.ts'
import { noted, parseCut, parseWhole, requestId, steps } from '../../../../test/parts/reply-notation.ts'
import { target } from '../../../../test/parts/translation.ts'
import type { ReplyEvent } from '../../canonical/reply.ts'
import { parseStream } from './parse.ts'

const eventsOf = (...records: string[]): ReplyEvent[] => parseWhole(parseStream(target(), requestId), records.join(''))
const read = (...records: string[]): string[] => noted(eventsOf(...records))

describe('the end', () => {
  const call = open(0, { type: 'tool_use', id: 't', name: 'f', input: {} }) + close(0)
  const server = open(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }) + close(0)
  const stops: [reason: string | null, content: string, end: string][] = [
    ['end_turn', text(0, 'a'), 'end end end_turn'],
    ['max_tokens', text(0, 'a'), 'end length max_tokens'],
    ['max_tokens', call, 'end length max_tokens'],
    ['model_context_window_exceeded', text(0, 'a'), 'end length model_context_window_exceeded'],
    ['tool_use', call, 'end tool-calls tool_use'],
    ['tool_use', server, 'end pause tool_use'],
    ['tool_use', text(0, 'a'), 'end end tool_use'],
    ['end_turn', call, 'end tool-calls end_turn'],
    ['pause_turn', server, 'end pause pause_turn'],
    ['compaction', text(0, 'a'), 'end end compaction'],
    ['tomorrow', text(0, 'a'), 'end end tomorrow'],
    [null, text(0, 'a'), 'end end -'],
  ]
  test.each(stops)('pitfall 117: %s is unified, the word kept', (reason, content, end) => {
    expect(read(start, content, ending(reason), stop).at(-1)).toBe(end)
  })

  test('pitfall 123: names the sequence that matched', () => {
    expect(read(start, text(0, 'a'), ending('stop_sequence', { stop_sequence: 'END' }), stop).at(-1)).toBe(
      'end stop-sequence stop_sequence END',
    )
  })

  test('vector 62: gives the explanation of a refusal', () => {
    const details = { stop_details: { type: 'refusal', category: 'bio', explanation: 'Not this.' } }
    expect(read(start, ending('refusal', details), stop).at(-1)).toBe('end refusal refusal Not this.')
    expect(read(start, ending('refusal', { stop_details: null }), stop).at(-1)).toBe('end refusal refusal')
  })

  test('takes the last of several message_deltas', () => {
    expect(read(start, ending('pause_turn'), text(0, 'a'), ending('end_turn'), stop)).toEqual(steps`
      start msg_1 | text | +a | . | end end end_turn
    `)
  })

  test('pitfall 104: merges usage over all events, the last that is not null', () => {
    const late = event('message_delta', {
      delta: { stop_reason: 'end_turn' },
      usage: { input_tokens: null, cache_read_input_tokens: 30, output_tokens: 9 },
    })
    const last = eventsOf(start, ending('end_turn'), late, stop).at(-1)
    expect(last).toMatchObject({
      usage: { inputTokens: 10, cacheReadTokens: 30, outputTokens: 9, source: 'reported' },
    })
  })

  test('reports the usage of message_start at once', () => {
    expect(eventsOf(start)[0]).toMatchObject({
      type: 'reply-start',
      id: 'msg_1',
      usage: { inputTokens: 10, outputTokens: 1 },
    })
  })
})

describe('a reply that fails', () => {
  test('pitfall 141: a close without message_stop is a failure, even behind message_delta', () => {
    expect(read(start, text(0, 'a'), ending('end_turn'))).toEqual(steps`
      start msg_1 | text | +a | . | fail a stream without an end
    `)
    expect(read('')).toEqual(['fail a stream without an end'])
  })

  test('vector 75: an error event ends it, and nothing after counts', () => {
    const error = event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })
    const failed = eventsOf(start, open(0, { type: 'text', text: 'a' }), error, close(0), ending('end_turn'), stop)
    expect(noted(failed)).toEqual(steps`start msg_1 | text | +a | fail Overloaded`)
    expect(failed.at(-1)).toMatchObject({ fault: { status: 529, type: 'overloaded_error' } })
  })

  test('a message_stop without a message is none', () => {
    expect(read(stop)).toEqual(['fail a stream without a reply'])
  })

  test('pitfall 149: one malformed record is left out and counted', () => {
    const parser = parseStream(target(), requestId)
    const events = parseWhole(
      parser,
      `${start}event: content_block_delta\ndata: {"type"\n\n${text(0, 'a')}${ending('end_turn')}${stop}`,
    )
    expect(noted(events)).toEqual(steps`start msg_1 | text | +a | . | end end end_turn`)
    expect(parser.skipped).toBe(1)
  })

  test('pitfall 131: a second message_start is not passed on', () => {
    expect(
      read(start, text(0, 'a'), start, ending('end_turn'), stop).filter((line) => line.startsWith('start')),
    ).toHaveLength(1)
  })
})

describe('framing', () => {
  const fixtures = ['crlf', 'late-cache-counts', 'server-tools', 'thinking', 'tools']
  const bytesOf = (name: string): Uint8Array =>
    readFileSync(`${import.meta.dir}/../../../../test/fixtures/messages/${name}.sse`)

  test.each(fixtures)('vector 87: %s reads the same cut at every byte', (name) => {
    const bytes = bytesOf(name)
    const whole = parseWhole(parseStream(target(), requestId), bytes)
    expect(whole.at(-1)?.type).toBe('reply-end')
    for (let cut = 1; cut < bytes.length; cut++)
      expect(parseCut(parseStream(target(), requestId), bytes, [cut])).toEqual(whole)
  })

  test('pitfall 165: reads the same in any cuts', () => {
    const bytes = bytesOf('server-tools')
    const whole = parseWhole(parseStream(target(), requestId), bytes)
    expect(noted(whole)).toEqual(steps`start msg_03Srv | text apart | +晴れ ☀️. | . | end end end_turn`)
    const cuts = fc.uniqueArray(fc.nat(bytes.length), { maxLength: 20 }).map((list) => list.sort((a, b) => a - b))
    fc.assert(
      fc.property(cuts, (at) => expect(parseCut(parseStream(target(), requestId), bytes, at)).toEqual(whole)),
      { numRuns: 50 },
    )
  })

  test('a host that leaves the event lines out is read by the types in the data', () => {
    const bare = [start, text(0, 'a'), ending('end_turn'), stop].join('').replaceAll(/^event: .*\n/gm, '')
    expect(read(bare)).toEqual(steps`start msg_1 | text | +a | . | end end end_turn`)
  })
})

/** The blocks of a reply that ends well. */
const blocks = (...records: string[]): string[] => read(start, ...records, ending('end_turn'), stop).slice(1, -1)

describe('blocks', () => {
  test('keeps text blocks apart', () => {
    expect(blocks(text(0, 'a'), text(1, 'b'))).toEqual(steps`text | +a | . | text | +b | .`)
  })

  test('that begin with something in them keep it', () => {
    expect(blocks(open(0, { type: 'text', text: 'a' }), delta(0, 'text_delta', { text: 'b' }), close(0))).toEqual(steps`
      text | +a | +b | .
    `)
    expect(blocks(open(0, { type: 'thinking', thinking: 'hm', signature: 's' }), close(0))).toEqual(steps`
      thinking | +hm | signed s | .
    `)
  })

  test('pitfall 71: of thinking have the provider’s signature untouched', () => {
    const sig = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/8Ug=='
    const thinking = [
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: 'hm' }),
      delta(0, 'signature_delta', { signature: sig }),
      close(0),
    ]
    expect(blocks(...thinking)).toEqual(steps`thinking | +hm | signed ${sig} | .`)
  })

  test('pitfall 74: of thinking may be all signature', () => {
    const thinking = [
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: '' }),
      delta(0, 'signature_delta', { signature: 's' }),
      close(0),
    ]
    expect(blocks(...thinking)).toEqual(steps`thinking | signed s | .`)
  })

  test('pitfall 75: of thinking keep a signature each, of two for one block the later', () => {
    const thinking = (index: number, ...sigs: string[]): string =>
      open(index, { type: 'thinking', thinking: '' }) +
      delta(index, 'thinking_delta', { thinking: 't' }) +
      sigs.map((signature) => delta(index, 'signature_delta', { signature })).join('') +
      close(index)
    expect(blocks(thinking(0, 's0'), thinking(1, 's1', 's2'))).toEqual(steps`
      thinking | +t | signed s0 | . | thinking | +t | signed s1 | signed s2 | .
    `)
  })

  test('pitfall 78: a signature outside of thinking belongs to nothing', () => {
    expect(blocks(text(0, 'a'), delta(0, 'signature_delta', { signature: 's' }))).toEqual(steps`text | +a | .`)
  })

  test('pitfall 73: of redacted thinking come whole, beside others', () => {
    expect(blocks(open(0, { type: 'redacted_thinking', data: 'Emw=' }), close(0), text(1, 'a'))).toEqual(steps`
      sealed Emw= | . | text | +a | .
    `)
  })

  test('omits blocks of server tools and unknown kinds, and marks the next text as separate', () => {
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
    ).toEqual(steps`text | +a | . | text apart | +b | .`)
  })

  test('without a stop are ended by what follows', () => {
    expect(
      blocks(
        open(0, { type: 'text', text: '' }),
        delta(0, 'text_delta', { text: 'a' }),
        open(1, { type: 'redacted_thinking', data: 'd' }),
      ),
    ).toEqual(steps`text | +a | . | sealed d | .`)
  })

  test('pitfall 76: a delta of another kind than its block opens a block of its kind', () => {
    expect(
      blocks(
        open(0, { type: 'text', text: '' }),
        delta(0, 'thinking_delta', { thinking: 'hm' }),
        delta(0, 'text_delta', { text: 'a' }),
        close(0),
      ),
    ).toEqual(steps`text | . | thinking | +hm | . | text | +a | .`)
  })

  test('unknown events and deltas are passed over, pings are not lost', () => {
    expect(
      blocks(
        event('content_block_progress', { index: 0 }),
        event('ping'),
        text(0, 'a'),
        delta(0, 'hologram_delta', {}),
      ),
    ).toEqual(steps`~ | text | +a | .`)
  })
})

describe('tool calls', () => {
  const call = (index: number, input: string, ...pieces: string[]): string =>
    `event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":{"type":"tool_use","id":"toolu_${index}","name":"f","input":${input}}}\n\n` +
    pieces.map((piece) => delta(index, 'input_json_delta', { partial_json: piece })).join('') +
    close(index)

  test('stream their arguments as they are written', () => {
    expect(blocks(call(0, '{}', '', '{"n": 1234567890', '1234567890}'))).toEqual(steps`
      call toolu_0 f | +{"n": 1234567890 | +1234567890} | .
    `)
  })

  test('vector 71: with only an empty delta have no arguments', () => {
    expect(blocks(call(0, '{}', ''))).toEqual(['call toolu_0 f', '.'])
  })

  test('take the input of their start where nothing follows, spelt as it was', () => {
    expect(blocks(call(0, '{"n":12345678901234567890,"1":1.0}'))).toEqual(steps`
      call toolu_0 f | +{"n":12345678901234567890,"1":1.0} | .
    `)
    expect(blocks(call(0, '{"a":1}', '{"b":2}'))).toEqual(steps`call toolu_0 f | +{"b":2} | .`)
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

const whole = (reply: object | string) =>
  parseStream(target(), requestId).whole(
    new TextEncoder().encode(typeof reply === 'string' ? reply : JSON.stringify(reply)),
  )
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

describe('pitfall 139: a whole reply in place of a stream', () => {
  test('is read into the same events, with its usage', () => {
    const events = whole(message([{ type: 'text', text: 'hi', citations: null }]))
    expect(noted(events)).toEqual(steps`start msg_1 | text | +hi | . | end end end_turn`)
    const usage = { inputTokens: 3, outputTokens: 2, source: 'reported' }
    expect([events[0], events.at(-1)]).toMatchObject([{ usage }, { usage }])
  })

  test('has no usage if the provider reports none', () => {
    expect(whole(message([{ type: 'text', text: 'hi' }], { usage: null })).at(-1)).toMatchObject({
      type: 'reply-end',
      usage: undefined,
    })
  })

  test('pitfall 91: thinking keeps its signature, sealed thinking its data, and a call its exact input', () => {
    const reply = `{"id":"msg_1","role":"assistant","stop_reason":"tool_use","content":[
    {"type":"thinking","thinking":"hm","signature":"sig+/="},
    {"type":"thinking","thinking":"","signature":"alone"},
    {"type":"redacted_thinking","data":"blob"},
    {"type":"tool_use","id":"t","name":"f","input":{"n":12345678901234567890,"x":1.0}},
    {"type":"tool_use","id":"u","name":"g","input":{}}]}`
    expect(noted(whole(reply))).toEqual(steps`
      start msg_1 | thinking | +hm | signed sig+/= | . | thinking | signed alone | . | sealed blob | .
      call t f | +{"n":12345678901234567890,"x":1.0} | . | call u g | . | end tool-calls tool_use
    `)
  })

  test('leaves out the blocks that only the provider can use', () => {
    const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } }
    const events = whole(message([search, { type: 'text', text: 'so' }]))
    expect(noted(events)).toEqual(steps`start msg_1 | text apart | +so | . | end end end_turn`)
  })

  test('a recorded reply with line breaks in it is read', () => {
    const body = readFileSync(`${import.meta.dir}/../../../../test/fixtures/messages/whole-spaced.json`, 'utf8')
    expect(noted(whole(body))).toEqual(steps`start msg_07 | text | +a\tb | . | end end end_turn`)
  })
})

test.each(['', 'null', '[]', '{', '<html>'])('%p is no reply', (body) => {
  expect(noted(whole(body))).toEqual(['fail a reply that is not a complete JSON object'])
})

test('a reply without content, or without an end, fails', () => {
  expect(noted(whole({ stop_reason: 'end_turn' }))).toEqual(['fail a reply without content'])
  expect(noted(whole(message([], { stop_reason: null })))).toEqual(['fail a reply without an end'])
})

test('an error with a success status fails with its status', () => {
  const error = { type: 'rate_limit_error', message: 'slow down' }
  expect(whole({ type: 'error', error })).toMatchObject([{ fault: { status: 429, message: 'slow down' } }])
})
