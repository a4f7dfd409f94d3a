import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { args, calls, chunk, finished, named, target } from '../../../test/parts/chat-stream.ts'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import { collectReply } from '../canonical/reply.ts'
import { parseStream } from './parse-stream.ts'

const parse = (...records: string[]) => parseWhole(parseStream(target), records.join(''))
/** The blocks and the end, without the start. */
const read = (...records: string[]): string[] => noted(parse(...records)).slice(1)
const ended = 'end tool-calls tool_calls'

describe('several calls', () => {
  const two = ['call a f', '+{"x":1}', '.', 'call b g', '+{"y":2}', '.', ended]

  test('pitfall 60: follow one another by their numbers', () => {
    expect(
      read(
        calls({ index: 0, id: 'a', ...named('f', '{"x":1}') }),
        calls({ index: 1, id: 'b', ...named('g', '{"y":2}') }),
        finished,
      ),
    ).toEqual(two)
  })

  test('pitfall 60: do so while the reply streams, as soon as one is whole', () => {
    const parser = parseStream(target)
    const push = (text: string): string[] => noted(parser.push(new TextEncoder().encode(text)))
    push(calls({ index: 0, id: 'a', ...named('f', '{"x":1}') }))
    expect(push(calls({ index: 1, id: 'b', ...named('g') }))).toEqual(['.', 'call b g'])
  })

  const forms: [name: string, fragments: unknown[]][] = [
    [
      'the same number for all, with ids',
      [
        { index: 0, id: 'a', ...named('f', '{"x":1}') },
        { index: 0, id: 'b', ...named('g', '{"y":2}') },
      ],
    ],
    [
      'no numbers, with ids',
      [
        { id: 'a', ...named('f', '{"x":1}') },
        { id: 'b', ...named('g', '{"y":2}') },
      ],
    ],
    [
      'no numbers and id-less continuations',
      [{ id: 'a', ...named('f') }, args('{"x":1}'), { id: 'b', ...named('g') }, args('{"y":2}')],
    ],
    [
      'numbers from 1',
      [
        { index: 1, id: 'a', ...named('f', '{"x":1}') },
        { index: 2, id: 'b', ...named('g', '{"y":2}') },
      ],
    ],
    [
      'numbers with holes',
      [
        { index: 3, id: 'a', ...named('f', '{"x":1}') },
        { index: 9, id: 'b', ...named('g', '{"y":2}') },
      ],
    ],
    [
      'a number of its own for every fragment',
      [
        { index: 0, id: 'a', ...named('f') },
        { index: 1, id: 'a', ...args('{"x":1}') },
        { index: 2, id: 'b', ...named('g', '{"y":2}') },
      ],
    ],
  ]
  test.each(forms)('pitfall 64: are told apart with %s', (_, fragments) => {
    const merged = parse(...fragments.map((fragment) => calls(fragment)), finished)
    const blocks = collectReply(merged).blocks
    expect(blocks).toEqual([
      { kind: 'tool-call', id: 'a', name: 'f', custom: false, arguments: '{"x":1}' },
      { kind: 'tool-call', id: 'b', name: 'g', custom: false, arguments: '{"y":2}' },
    ])
  })

  test('pitfall 64: are told apart with neither numbers nor ids', () => {
    expect(read(calls(named('f', '{"x":1}')), calls(named('f', '{"x":2}')), finished)).toEqual([
      'call toolu_tg_c1_1 f',
      '+{"x":1}',
      '.',
      'call toolu_tg_c1_2 f',
      '+{"x":2}',
      '.',
      ended,
    ])
    expect(read(calls(named('f'), named('f')), finished).filter((line) => line.startsWith('call'))).toHaveLength(2)
  })

  test('that share one id get ids of their own', () => {
    expect(
      read(
        calls({ index: 0, id: 'same', ...named('f', '{}') }),
        calls({ index: 1, id: 'same', ...named('g', '{}') }),
        finished,
      ),
    ).toEqual(['call same f', '+{}', '.', 'call same_2 g', '+{}', '.', ended])
  })

  test('vector 79: mixed 0,1,0,1 come out one after the other, each whole', () => {
    const mixed = [
      calls({ index: 0, id: 'a', ...named('f') }, { index: 1, id: 'b', ...named('g') }),
      calls({ index: 0, ...args('{"x"') }),
      calls({ index: 1, ...args('{"y"') }),
      calls({ index: 0, ...args(':1}') }),
      calls({ index: 1, ...args(':2}') }),
    ]
    expect(read(...mixed, finished)).toEqual([
      'call a f',
      '+{"x"',
      '+:1}',
      '.',
      'call b g',
      '+{"y"',
      '+:2}',
      '.',
      ended,
    ])
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

  test('after them opens a block of its own', () => {
    expect(read(call, chunk({ content: 'so' }), finished)).toEqual([
      'call a f',
      '+{"x":1}',
      '.',
      'text',
      '+so',
      '.',
      ended,
    ])
  })

  test('in the middle of arguments waits until they are whole', () => {
    const cut = [
      calls({ index: 0, id: 'a', ...named('f', '{"x"') }),
      chunk({ content: 'so' }),
      chunk({ reasoning: 'r' }),
      calls({ index: 0, ...args(':1}') }),
    ]
    expect(read(...cut, finished)).toEqual([
      'call a f',
      '+{"x"',
      '+:1}',
      '.',
      'text',
      '+so',
      '.',
      'thinking',
      '+r',
      'signed by acme/openai-chat',
      '.',
      ended,
    ])
  })

  test('arguments for a call that text has ended fail the reply, and are not lost in silence', () => {
    const said = [
      calls({ index: 0, id: 'a', ...named('f') }),
      chunk({ content: 'so' }),
      calls({ index: 0, ...args('{"x":1}') }),
    ]
    expect(read(...said, finished)).toEqual([
      'call a f',
      '.',
      'text',
      '+so',
      'fail arguments for a tool call that had ended',
    ])
  })

  test('a repetition of the whole call changes nothing', () => {
    expect(read(call, call, finished)).toEqual(['call a f', '+{"x":1}', '.', ended])
  })
})
