import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { close, ending, event, open, start, stop, text } from '../../../test/parts/messages-stream.ts'
import { noted, parseCut, parseWhole } from '../../../test/parts/reply-notation.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { parseStream } from './parse-stream.ts'

const eventsOf = (...records: string[]): ReplyEvent[] => parseWhole(parseStream(), records.join(''))
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
    expect(read(start, ending('pause_turn'), text(0, 'a'), ending('end_turn'), stop)).toEqual([
      'start msg_1',
      'text',
      '+a',
      '.',
      'end end end_turn',
    ])
  })

  test('pitfall 104: merges usage over all events, the last that is not null', () => {
    const late = event('message_delta', {
      delta: { stop_reason: 'end_turn' },
      usage: { input_tokens: null, cache_read_input_tokens: 30, output_tokens: 9 },
    })
    const last = eventsOf(start, ending('end_turn'), late, stop).at(-1)
    expect(last).toMatchObject({ usage: { inputTokens: 10, cacheReadTokens: 30, outputTokens: 9, source: 'reported' } })
  })

  test('of the start is reported at once', () => {
    expect(eventsOf(start)[0]).toMatchObject({
      type: 'reply-start',
      id: 'msg_1',
      usage: { inputTokens: 10, outputTokens: 1 },
    })
  })
})

describe('a reply that fails', () => {
  test('pitfall 141: a close without message_stop is a failure, even behind message_delta', () => {
    expect(read(start, text(0, 'a'), ending('end_turn'))).toEqual([
      'start msg_1',
      'text',
      '+a',
      '.',
      'fail a stream without an end',
    ])
    expect(read('')).toEqual(['fail a stream without an end'])
  })

  test('vector 75: an error event ends it, and nothing after counts', () => {
    const error = event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })
    const failed = eventsOf(start, open(0, { type: 'text', text: 'a' }), error, close(0), ending('end_turn'), stop)
    expect(noted(failed)).toEqual(['start msg_1', 'text', '+a', 'fail Overloaded'])
    expect(failed.at(-1)).toMatchObject({ fault: { status: 529, type: 'overloaded_error' } })
  })

  test('a message_stop without a message is none', () => {
    expect(read(stop)).toEqual(['fail a stream without a reply'])
  })

  test('pitfall 149: one malformed record is left out and counted', () => {
    const parser = parseStream()
    const events = parseWhole(
      parser,
      `${start}event: content_block_delta\ndata: {"type"\n\n${text(0, 'a')}${ending('end_turn')}${stop}`,
    )
    expect(noted(events)).toEqual(['start msg_1', 'text', '+a', '.', 'end end end_turn'])
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
    readFileSync(`${import.meta.dir}/../../../test/fixtures/messages/${name}.sse`)

  test.each(fixtures)('vector 87: %s reads the same cut at every byte', (name) => {
    const bytes = bytesOf(name)
    const whole = parseWhole(parseStream(), bytes)
    expect(whole.at(-1)?.type).toBe('reply-end')
    for (let cut = 1; cut < bytes.length; cut++) expect(parseCut(parseStream(), bytes, [cut])).toEqual(whole)
  })

  test('pitfall 165: reads the same in any cuts', () => {
    const bytes = bytesOf('server-tools')
    const whole = parseWhole(parseStream(), bytes)
    expect(noted(whole)).toEqual(['start msg_03Srv', 'text apart', '+晴れ ☀️.', '.', 'end end end_turn'])
    const cuts = fc.uniqueArray(fc.nat(bytes.length), { maxLength: 20 }).map((list) => list.sort((a, b) => a - b))
    fc.assert(
      fc.property(cuts, (at) => expect(parseCut(parseStream(), bytes, at)).toEqual(whole)),
      { numRuns: 50 },
    )
  })

  test('a host that leaves the event lines out is read by the types in the data', () => {
    const bare = [start, text(0, 'a'), ending('end_turn'), stop].join('').replaceAll(/^event: .*\n/gm, '')
    expect(read(bare)).toEqual(['start msg_1', 'text', '+a', '.', 'end end end_turn'])
  })
})
