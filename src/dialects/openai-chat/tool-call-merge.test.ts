import { describe, expect, test } from 'bun:test'
import { args, calls, chunk, done, finished, named, target } from '../../../test/parts/chat-stream.ts'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import { parseStream } from './parse-stream.ts'

const parse = (...records: string[]) => parseWhole(parseStream(target), records.join(''))
/** The blocks and the end, without the start. */
const read = (...records: string[]): string[] => noted(parse(...records)).slice(1)
const ended = 'end tool-calls tool_calls'

describe('a call', () => {
  test('streams as its arguments come', () => {
    const parser = parseStream(target)
    const push = (text: string): string[] => noted(parser.push(new TextEncoder().encode(text)))
    push(chunk({ role: 'assistant', content: null }))
    expect(push(calls({ index: 0, id: 'a', ...named('f') }))).toEqual(['call a f'])
    expect(push(calls({ index: 0, ...args('{"x"') }))).toEqual(['+{"x"'])
    expect(push(calls({ index: 0, ...args(':12345678901234567890}') }))).toEqual(['+:12345678901234567890}'])
    expect(push(finished)).toEqual(['.', ended])
  })

  test('pitfall 67: may come whole in one chunk, with the finish', () => {
    expect(read(chunk({ tool_calls: [{ index: 0, id: 'a', ...named('f', '{"x":1}') }] }, 'tool_calls'), done)).toEqual([
      'call a f',
      '+{"x":1}',
      '.',
      ended,
    ])
  })

  test('pitfall 63: waits for a name and an id that come late, empty or null', () => {
    const late = [
      calls({ index: 0, id: null, type: 'function', function: { name: null, arguments: '{"x"' } }),
      calls({ index: 0, id: '', function: { name: '', arguments: ':1' } }),
      calls({ index: 0, function: { name: 'f' } }),
      calls({ index: 0, id: 'a', ...args('}') }),
    ]
    expect(read(...late, finished)).toEqual(['call a f', '+{"x":1}', '.', ended])
  })

  test('pitfall 63: without any id gets one of ours, unique by the reply and its place', () => {
    expect(read(calls({ index: 0, ...named('f', '{}') }), calls({ index: 1, ...named('g', '{}') }), finished)).toEqual([
      'call toolu_tg_c1_1 f',
      '+{}',
      '.',
      'call toolu_tg_c1_2 g',
      '+{}',
      '.',
      ended,
    ])
  })

  test('pitfall 65: keeps its first id and name, whatever later fragments repeat', () => {
    const repeats = [
      calls({ index: 0, id: 'a', ...named('f', '{') }),
      calls({ index: 0, id: 'a', ...named('f', '"x":') }),
      calls({ index: 0, id: null, type: null, function: { name: null, arguments: '1' } }),
      calls({ index: 0, id: 'other', function: { name: '', arguments: '}' } }),
    ]
    expect(read(...repeats, finished)).toEqual(['call a f', '+{', '+"x":', '+1', '+}', '.', ended])
  })

  const empties: [name: string, fragment: object][] = [
    ['never sent', { function: { name: 'f' } }],
    ['empty', { function: { name: 'f', arguments: '' } }],
    ['null', { function: { name: 'f', arguments: null } }],
    ['blank', { function: { name: 'f', arguments: ' \n' } }],
  ]
  test.each(empties)('pitfall 55: has no arguments where they are %s', (_, fragment) => {
    expect(read(calls({ index: 0, id: 'a', ...fragment }), finished)).toEqual(['call a f', '.', ended])
  })

  test('pitfall 54: has its object spelt as the host spelt it, where that is no string', () => {
    const json =
      '{"id":"c","choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n":12345678901234567890,"1":1.0}}}]}}]}'
    expect(read(`data: ${json}\n\n`, finished)).toEqual(['call a f', '+{"n":12345678901234567890,"1":1.0}', '.', ended])
  })

  test('pitfall 54: loses the extra layer of an object encoded twice', () => {
    const twice = JSON.stringify('{"n":12345678901234567890}')
    expect(
      read(
        calls({ index: 0, id: 'a', ...named('f', twice.slice(0, 5)) }),
        calls({ index: 0, ...args(twice.slice(5)) }),
        finished,
      ),
    ).toEqual(['call a f', '+{"n":12345678901234567890}', '.', ended])
    expect(read(calls({ index: 0, id: 'a', ...named('f', '"just text"') }), finished)).toEqual([
      'call a f',
      '+"just text"',
      '.',
      ended,
    ])
  })

  test('ends with its object, whatever is written behind it', () => {
    const written = (...pieces: string[]): string[] =>
      read(
        calls({ index: 0, id: 'a', ...named('f') }),
        ...pieces.map((piece) => calls({ index: 0, ...args(piece) })),
        finished,
      )
    expect(written('{"a":1}}')).toEqual(['call a f', '+{"a":1}', '.', ended])
    expect(written('{"a":', '{"b":"}"}}}\n\n{', '}')).toEqual(['call a f', '+{"a":', '+{"b":"}"}}', '.', ended])
    // Braces in a text are no object.
    expect(written('use {a} and {b}')).toEqual(['call a f', '+use {a} and {b}', '.', ended])
  })

  test('has the object that follows an empty one, and the empty one where none follows', () => {
    const written = (...pieces: string[]): string[] =>
      read(
        calls({ index: 0, id: 'a', ...named('f', '{}') }),
        ...pieces.map((piece) => calls({ index: 0, ...args(piece) })),
        finished,
      )
    expect(written('{"a":1}')).toEqual(['call a f', '+{"a":1}', '.', ended])
    expect(written('{"a"', ':1}')).toEqual(['call a f', '+{"a"', '+:1}', '.', ended])
    expect(written('', ' ')).toEqual(['call a f', '+{}', '.', ended])
    expect(written('{}')).toEqual(['call a f', '+{}', '.', ended])
    // A second object behind a real one is a repetition.
    expect(written('{"a":1}', '{"a":2}')).toEqual(['call a f', '+{"a":1}', '.', ended])
  })

  test('fails the reply where the real object comes after the empty one was passed on', () => {
    const late = 'fail arguments for a tool call that had ended'
    const single = (...pieces: string[]) =>
      read(
        calls({ index: 0, id: 'a', ...named('f') }),
        ...pieces.map((piece) => calls({ index: 0, ...args(piece) })),
        finished,
      ).at(-1)
    expect(single('{', '}', '{"a":1}')).toBe(late)
    expect(single('{', ' }', ' {', '"a":1}')).toBe(late)
    expect(single('{', '}', '{}', '{"a":1}')).toBe(late)
    // The same again, or no object, changes nothing.
    expect(single('{', '}', '{}')).toBe(ended)
    expect(single('{', '}', '{', ' }')).toBe(ended)
    expect(single('{', '}', '}', '{"a":1}')).toBe(ended)
    expect(single('{', '"a":1}', '{"a":1}')).toBe(ended)
    const announced = chunk({
      tool_calls: [
        { index: 0, id: 'a', ...named('f', '{}') },
        { index: 1, id: 'b', ...named('g', '{}') },
      ],
    })
    const two = (...pieces: string[]) => read(announced, ...pieces, finished).at(-1)
    expect(two(calls({ index: 0, ...args('{"a":1}') }), calls({ index: 1, ...args('{"b":1}') }))).toBe(late)
    expect(two(calls({ index: 0, ...args('{}') }), calls({ index: 1, ...args('{"b":1}') }))).toBe(ended)
  })

  test('of a custom tool carries its bare text', () => {
    const custom = calls({ index: 0, id: 'a', type: 'custom', custom: { name: 'patch', input: '' } })
    expect(
      read(
        custom,
        calls({ index: 0, custom: { input: '*** Be' } }),
        calls({ index: 0, custom: { input: 'gin' } }),
        finished,
      ),
    ).toEqual(['custom a patch', '+*** Be', '+gin', '.', ended])
  })

  test('in the older form becomes a call with an id of ours', () => {
    expect(
      read(
        chunk({ function_call: { name: 'f', arguments: '' } }),
        chunk({ function_call: { arguments: '{"x":1}' } }),
        chunk({}, 'function_call'),
        done,
      ),
    ).toEqual(['call toolu_tg_c1_1 f', '+{"x":1}', '.', 'end tool-calls function_call'])
  })

  test('that never got a name fails the reply; an entry with nothing in it is none', () => {
    expect(read(calls({ index: 0, id: 'a', ...args('{"x":1}') }), finished)).toEqual([
      'fail a tool call without a name',
    ])
    expect(read(chunk({ content: 'hi', tool_calls: [{ index: 0, id: '', ...args('') }] }, 'stop'), done)).toEqual([
      'text',
      '+hi',
      '.',
      'end end stop',
    ])
  })
})

describe('the stop reason', () => {
  const call = { tool_calls: [{ index: 0, id: 'a', ...named('f', '{}') }] }
  const last = (...records: string[]): string | undefined => read(...records, done).at(-1)

  test('vector 63: "stop" with calls means the calls, "tool_calls" without any means the end', () => {
    expect(last(chunk(call), chunk({}, 'stop'))).toBe('end tool-calls stop')
    expect(last(chunk({ content: 'a' }), chunk({}, 'tool_calls'))).toBe('end end tool_calls')
  })

  test('pitfall 116: is the calls although the chunk that says "stop" has none', () => {
    expect(last(chunk(call), chunk({ content: '' }, 'stop'))).toBe('end tool-calls stop')
  })

  test('pitfall 70: stays "length" where a call is cut off', () => {
    const cut = { tool_calls: [{ index: 0, id: 'a', ...named('f', '{"x":') }] }
    expect(read(chunk(cut), chunk({}, 'length'), done)).toEqual(['call a f', '+{"x":', '.', 'end length length'])
  })
})
