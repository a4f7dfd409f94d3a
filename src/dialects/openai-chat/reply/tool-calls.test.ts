import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { args, calls, chunk, done, finished, named, target } from '../../../../test/parts/chat-stream.ts'
import { collectReply } from '../../../../test/parts/collect-reply.ts'
import { noted, parseWhole, requestId, steps } from '../../../../test/parts/reply-notation.ts'
import { parseStream } from './parse.ts'

const parse = (...records: string[]) => parseWhole(parseStream(target, requestId), records.join(''))
/** The blocks and the end, without the start. */
const read = (...records: string[]): string[] => noted(parse(...records)).slice(1)
const ended = 'end tool-calls tool_calls'
/** One call whose arguments come in pieces, the first one with its name. */
const readPieces = (first: string | undefined, pieces: readonly string[]): string[] =>
  read(
    calls({ index: 0, id: 'a', ...named('f', first) }),
    ...pieces.map((piece) => calls({ index: 0, ...args(piece) })),
    finished,
  )

describe('a call', () => {
  test('streams as its arguments come', () => {
    const parser = parseStream(target, requestId)
    const push = (text: string): string[] => noted(parser.push(new TextEncoder().encode(text)))
    push(chunk({ role: 'assistant', content: null }))
    expect(push(calls({ index: 0, id: 'a', ...named('f') }))).toEqual(['call a f'])
    expect(push(calls({ index: 0, ...args('{"x"') }))).toEqual(['+{"x"'])
    expect(push(calls({ index: 0, ...args(':12345678901234567890}') }))).toEqual(['+:12345678901234567890}'])
    expect(push(finished)).toEqual(['.', ended])
  })

  test('pitfall 67: may come whole in one chunk, with the finish', () => {
    expect(read(chunk({ tool_calls: [{ index: 0, id: 'a', ...named('f', '{"x":1}') }] }, 'tool_calls'), done)).toEqual(
      steps`call a f | +{"x":1} | . | ${ended}`,
    )
  })

  test('pitfall 63: waits for a name and an id that come late, empty or null', () => {
    const late = [
      calls({ index: 0, id: null, type: 'function', function: { name: null, arguments: '{"x"' } }),
      calls({ index: 0, id: '', function: { name: '', arguments: ':1' } }),
      calls({ index: 0, function: { name: 'f' } }),
      calls({ index: 0, id: 'a', ...args('}') }),
    ]
    expect(read(...late, finished)).toEqual(steps`call a f | +{"x":1} | . | ${ended}`)
  })

  test('pitfall 63: without any id gets one of ours, unique by the reply and its place', () => {
    expect(read(calls({ index: 0, ...named('f', '{}') }), calls({ index: 1, ...named('g', '{}') }), finished)).toEqual(
      steps`call toolu_tg_7_1 f | +{} | . | call toolu_tg_7_2 g | +{} | . | ${ended}`,
    )
  })

  test('pitfall 65: keeps its first id and name, whatever later fragments repeat', () => {
    const repeats = [
      calls({ index: 0, id: 'a', ...named('f', '{') }),
      calls({ index: 0, id: 'a', ...named('f', '"x":') }),
      calls({ index: 0, id: null, type: null, function: { name: null, arguments: '1' } }),
      calls({ index: 0, id: 'other', function: { name: '', arguments: '}' } }),
    ]
    expect(read(...repeats, finished)).toEqual(steps`call a f | +{ | +"x": | +1 | +} | . | ${ended}`)
  })

  const empties: [name: string, fragment: object][] = [
    ['never sent', { function: { name: 'f' } }],
    ['empty', { function: { name: 'f', arguments: '' } }],
    ['null', { function: { name: 'f', arguments: null } }],
    ['blank', { function: { name: 'f', arguments: ' \n' } }],
  ]
  test.each(empties)('pitfall 55: has no arguments where they are %s', (_, fragment) => {
    expect(read(calls({ index: 0, id: 'a', ...fragment }), finished)).toEqual(steps`call a f | . | ${ended}`)
  })

  test('pitfall 54: has its object spelt as the host spelt it, where that is no string', () => {
    const json =
      '{"id":"c","choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n":12345678901234567890,"1":1.0}}}]}}]}'
    expect(read(`data: ${json}\n\n`, finished)).toEqual(steps`
      call a f | +{"n":12345678901234567890,"1":1.0} | . | ${ended}
    `)
  })

  test('pitfall 54: loses the extra layer of an object encoded twice', () => {
    const twice = JSON.stringify('{"n":12345678901234567890}')
    expect(
      read(
        calls({ index: 0, id: 'a', ...named('f', twice.slice(0, 5)) }),
        calls({ index: 0, ...args(twice.slice(5)) }),
        finished,
      ),
    ).toEqual(steps`call a f | +{"n":12345678901234567890} | . | ${ended}`)
    expect(read(calls({ index: 0, id: 'a', ...named('f', '"just text"') }), finished)).toEqual(steps`
      call a f | +"just text" | . | ${ended}
    `)
  })

  test('ends with its object, whatever is written behind it', () => {
    const written = (...pieces: string[]) => readPieces(undefined, pieces)
    expect(written('{"a":1}}')).toEqual(steps`call a f | +{"a":1} | . | ${ended}`)
    expect(written('{"a":', '{"b":"}"}}}\n\n{', '}')).toEqual(steps`call a f | +{"a": | +{"b":"}"}} | . | ${ended}`)
    // Braces in a text are no object.
    expect(written('use {a} and {b}')).toEqual(steps`call a f | +use {a} and {b} | . | ${ended}`)
  })

  test('has the object that follows an empty one, and the empty one where none follows', () => {
    const written = (...pieces: string[]) => readPieces('{}', pieces)
    expect(written('{"a":1}')).toEqual(steps`call a f | +{"a":1} | . | ${ended}`)
    expect(written('{"a"', ':1}')).toEqual(steps`call a f | +{"a" | +:1} | . | ${ended}`)
    expect(written('', ' ')).toEqual(steps`call a f | +{} | . | ${ended}`)
    expect(written('{}')).toEqual(steps`call a f | +{} | . | ${ended}`)
    // A second object behind a real one is a repetition.
    expect(written('{"a":1}', '{"a":2}')).toEqual(steps`call a f | +{"a":1} | . | ${ended}`)
  })

  test('fails the reply where the real object comes after the empty one was passed on', () => {
    const late = 'fail arguments for a tool call that had ended'
    const single = (...pieces: string[]) => readPieces(undefined, pieces).at(-1)
    expect(single('{', '}', '{"a":1}')).toBe(late)
    expect(single('{', ' }', ' {', '"a":1}')).toBe(late)
    expect(single('{', '}', '{}', '{"a":1}')).toBe(late)
    expect(single('{', '}', '}', '{"a":1}')).toBe(late)
    // The same again changes nothing.
    expect(single('{', '}', '{}')).toBe(ended)
    expect(single('{', '}', '{', ' }')).toBe(ended)
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

  test('to a custom tool carries its plain text', () => {
    const custom = calls({ index: 0, id: 'a', type: 'custom', custom: { name: 'patch', input: '' } })
    expect(
      read(
        custom,
        calls({ index: 0, custom: { input: '*** Be' } }),
        calls({ index: 0, custom: { input: 'gin' } }),
        finished,
      ),
    ).toEqual(steps`custom a patch | +*** Be | +gin | . | ${ended}`)
  })

  test('in the older form becomes a call with an id of ours', () => {
    expect(
      read(
        chunk({ function_call: { name: 'f', arguments: '' } }),
        chunk({ function_call: { arguments: '{"x":1}' } }),
        chunk({}, 'function_call'),
        done,
      ),
    ).toEqual(steps`call toolu_tg_7_1 f | +{"x":1} | . | end tool-calls function_call`)
  })

  test('that never got a name fails the reply; an entry with nothing in it is none', () => {
    expect(read(calls({ index: 0, id: 'a', ...args('{"x":1}') }), finished)).toEqual(
      steps`fail a tool call without a name`,
    )
    expect(read(chunk({ content: 'hi', tool_calls: [{ index: 0, id: '', ...args('') }] }, 'stop'), done)).toEqual(steps`
      text | +hi | . | end end stop
    `)
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
    expect(read(chunk(cut), chunk({}, 'length'), done)).toEqual(steps`call a f | +{"x": | . | end length length`)
  })
})

describe('several calls', () => {
  const numbered = (first?: number, second?: number) => [
    { index: first, id: 'a', ...named('f', '{"x":1}') },
    { index: second, id: 'b', ...named('g', '{"y":2}') },
  ]
  const two = ['call a f', '+{"x":1}', '.', 'call b g', '+{"y":2}', '.', ended]

  test('pitfall 60: follow one another by their numbers', () => {
    expect(read(...numbered(0, 1).map((fragment) => calls(fragment)), finished)).toEqual(two)
  })

  test('pitfall 60: do so while the reply streams, as soon as one is whole', () => {
    const parser = parseStream(target, requestId)
    const push = (text: string): string[] => noted(parser.push(new TextEncoder().encode(text)))
    push(calls({ index: 0, id: 'a', ...named('f', '{"x":1}') }))
    expect(push(calls({ index: 1, id: 'b', ...named('g') }))).toEqual(['.', 'call b g'])
  })

  const forms: [name: string, fragments: unknown[]][] = [
    ['the same number for all, with ids', numbered(0, 0)],
    ['no numbers, with ids', numbered()],
    [
      'no numbers and id-less continuations',
      [{ id: 'a', ...named('f') }, args('{"x":1}'), { id: 'b', ...named('g') }, args('{"y":2}')],
    ],
    ['numbers from 1', numbered(1, 2)],
    ['numbers with holes', numbered(3, 9)],
    [
      'a different number for every fragment',
      [
        { index: 0, id: 'a', ...named('f') },
        { index: 1, id: 'a', ...args('{"x":1}') },
        { index: 2, id: 'b', ...named('g', '{"y":2}') },
      ],
    ],
  ]
  test.each(forms)('pitfall 64: are distinguished with %s', (_, fragments) => {
    const merged = parse(...fragments.map((fragment) => calls(fragment)), finished)
    const blocks = collectReply(merged).blocks
    expect(blocks).toEqual([
      { kind: 'tool-call', id: 'a', name: 'f', custom: false, arguments: '{"x":1}' },
      { kind: 'tool-call', id: 'b', name: 'g', custom: false, arguments: '{"y":2}' },
    ])
  })

  test('pitfall 64: are distinguished without index and id', () => {
    expect(read(calls(named('f', '{"x":1}')), calls(named('f', '{"x":2}')), finished)).toEqual(steps`
      call toolu_tg_7_1 f | +{"x":1} | . | call toolu_tg_7_2 f | +{"x":2} | . | ${ended}
    `)
    expect(read(calls(named('f'), named('f')), finished).filter((line) => line.startsWith('call'))).toHaveLength(2)
  })

  test('that share one id get different ids', () => {
    expect(
      read(
        calls({ index: 0, id: 'same', ...named('f', '{}') }),
        calls({ index: 1, id: 'same', ...named('g', '{}') }),
        finished,
      ),
    ).toEqual(steps`call same f | +{} | . | call same_2 g | +{} | . | ${ended}`)
  })

  test('vector 79: mixed 0,1,0,1 come out one after the other, each whole', () => {
    const mixed = [
      calls({ index: 0, id: 'a', ...named('f') }, { index: 1, id: 'b', ...named('g') }),
      calls({ index: 0, ...args('{"x"') }),
      calls({ index: 1, ...args('{"y"') }),
      calls({ index: 0, ...args(':1}') }),
      calls({ index: 1, ...args(':2}') }),
    ]
    expect(read(...mixed, finished)).toEqual(steps`
      call a f | +{"x" | +:1} | . | call b g | +{"y" | +:2} | . | ${ended}
    `)
  })

  test('pitfall 61: in any interleaving come out in order, with nothing lost', () => {
    const texts = fc.array(fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }), {
      minLength: 1,
      maxLength: 4,
    })
    fc.assert(
      fc.property(texts, fc.infiniteStream(fc.nat(1000)), (inputs, random) => {
        const wanted = inputs.map((input) => JSON.stringify(input))
        const left = [...wanted]
        const heads = wanted.map((_, index) => ({ index, id: `id${index}`, ...named(`f${index}`) }))
        const records = [calls(...heads)]
        while (left.some((text) => text !== '')) {
          const index = (random.next().value as number) % left.length
          const size = 1 + ((random.next().value as number) % 9)
          const text = left[index] ?? ''
          if (text === '') continue
          records.push(calls({ index, ...args(text.slice(0, size)) }))
          left[index] = text.slice(size)
        }
        const { blocks } = collectReply(parse(...records, finished))
        expect(blocks).toEqual(
          wanted.map((text, index) => ({
            kind: 'tool-call',
            id: `id${index}`,
            name: `f${index}`,
            custom: false,
            arguments: text,
          })),
        )
      }),
    )
  })
})

describe('text beside calls', () => {
  const call = calls({ index: 0, id: 'a', ...named('f', '{"x":1}') })

  test('after them opens a separate block', () => {
    expect(read(call, chunk({ content: 'so' }), finished)).toEqual(steps`
      call a f | +{"x":1} | . | text | +so | . | ${ended}
    `)
  })

  test('in the middle of arguments waits until they are whole', () => {
    const cut = [
      calls({ index: 0, id: 'a', ...named('f', '{"x"') }),
      chunk({ content: 'so' }),
      chunk({ reasoning: 'r' }),
      calls({ index: 0, ...args(':1}') }),
    ]
    expect(read(...cut, finished)).toEqual(steps`
      call a f | +{"x" | +:1} | . | text | +so | . | thinking | +r | signed by acme/openai-chat | . | ${ended}
    `)
  })

  test('arguments for a call that text has ended fail the reply, and are not lost in silence', () => {
    const said = [
      calls({ index: 0, id: 'a', ...named('f') }),
      chunk({ content: 'so' }),
      calls({ index: 0, ...args('{"x":1}') }),
    ]
    expect(read(...said, finished)).toEqual(steps`
      call a f | . | text | +so | fail arguments for a tool call that had ended
    `)
  })

  test('a repetition of the whole call changes nothing', () => {
    expect(read(call, call, finished)).toEqual(steps`call a f | +{"x":1} | . | ${ended}`)
  })
})
