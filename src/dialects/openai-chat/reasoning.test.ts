import { describe, expect, test } from 'bun:test'
import { calls, chunk, done, signed, target } from '../../../test/parts/chat-stream.ts'
import { noted, parseWhole, requestId, steps } from '../../../test/parts/reply-notation.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { placeReasoning, reasoningPlaces } from './reasoning.ts'
import { parseStream } from './reply/parse.ts'

const read = (...records: string[]): string[] => noted(parseWhole(parseStream(target, requestId), records.join('')))
const eventsOf = (...records: string[]): ReplyEvent[] => parseWhole(parseStream(target, requestId), records.join(''))

describe('reasoning', () => {
  const body = ['start c1', 'thinking', '+hm', '+m', signed, '.', 'text', '+a', '.', 'end end stop']
  const names: [name: string, delta: (text: string) => object][] = [
    ['reasoning_content', (text) => ({ reasoning_content: text })],
    ['reasoning', (text) => ({ reasoning: text, content: '' })],
    ['both names with the same words', (text) => ({ reasoning: text, reasoning_content: text })],
    ['reasoning_details alone', (text) => ({ reasoning_details: [{ type: 'reasoning.text', text, index: 0 }] })],
    [
      'summaries in reasoning_details',
      (summary) => ({ reasoning_details: [{ type: 'reasoning.summary', summary, index: 0 }] }),
    ],
    [
      'reasoning beside the same details',
      (text) => ({ reasoning: text, reasoning_details: [{ type: 'reasoning.text', text }] }),
    ],
  ]
  test.each(names)('pitfall 84: is read from %s', (_, delta) => {
    expect(read(chunk(delta('hm')), chunk(delta('m')), chunk({ content: 'a' }, 'stop'), done)).toEqual(body)
  })

  test('pitfall 89: is read from Mistral’s lists of content, in deltas and strings alike', () => {
    const part = (text: string): object => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] })
    const last = chunk(
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'reference', reference_ids: [1] },
        ],
      },
      'stop',
    )
    expect(read(chunk(part('hm')), chunk(part('m')), last, done)).toEqual(body)
  })

  test('pitfall 77: is signed by us, with the issuer', () => {
    const [signature] = eventsOf(chunk({ reasoning: 'r' }), chunk({ content: 'a' }, 'stop'), done).filter(
      ({ type }) => type === 'signature',
    )
    expect(signature).toMatchObject({ signature: expect.stringMatching(/^tg1\.[A-Za-z0-9_-]+$/) })
  })

  test('pitfall 76: and text alternate in blocks of their own', () => {
    const said = [
      chunk({ reasoning: 'r1' }),
      chunk({ content: 'a' }),
      chunk({ reasoning: 'r2' }),
      chunk({ content: 'b' }, 'stop'),
      done,
    ]
    const thought = (text: string): string[] => ['thinking', `+${text}`, signed, '.']
    expect(read(...said)).toEqual([
      'start c1',
      ...thought('r1'),
      'text',
      '+a',
      '.',
      ...thought('r2'),
      'text',
      '+b',
      '.',
      'end end stop',
    ])
  })

  test('between calls keeps its place', () => {
    const call = (index: number): string => calls({ index, id: `x${index}`, function: { name: 'f', arguments: '{}' } })
    expect(read(chunk({ reasoning: 'r1' }), call(0), chunk({ reasoning: 'r2' }), call(1), done)).toEqual(steps`
      start c1 | thinking | +r1 | ${signed} | . | call x0 f | +{} | . | thinking | +r2 | ${signed} | . | call x1 f
      +{} | . | end tool-calls -
    `)
  })

  test('that only its host can read travels in the signature', () => {
    const detail = { type: 'reasoning.encrypted', data: 'gAAA', id: 'rs_1', index: 0 }
    const said = [
      chunk({ reasoning_details: [detail] }),
      calls({ index: 0, id: 'x', function: { name: 'f', arguments: '{}' } }),
      done,
    ]
    expect(read(...said)).toEqual([
      'start c1',
      'thinking',
      `${signed} ${JSON.stringify([detail])}`,
      '.',
      'call x f',
      '+{}',
      '.',
      'end tool-calls -',
    ])
  })

  test('that is signed by its host is gathered whole, text and signature', () => {
    const details = (detail: object): string =>
      chunk({ reasoning_details: [{ type: 'reasoning.text', index: 0, ...detail }] })
    const blob = JSON.stringify([{ type: 'reasoning.text', index: 0, text: 'hmm', signature: 's' }])
    expect(
      read(
        details({ text: 'hm' }),
        details({ text: 'm', signature: null }),
        details({ signature: 's' }),
        chunk({ content: 'a' }, 'stop'),
        done,
      ),
    ).toEqual(['start c1', 'thinking', '+hm', '+m', `${signed} ${blob}`, '.', 'text', '+a', '.', 'end end stop'])
  })

  test('pitfall 85: is separated from text by its tags only for models known to write them', () => {
    const stream = `${chunk({ content: '<th' })}${chunk({ content: 'ink>\nhm</thi' })}${chunk({ content: 'nk>\n\na < b' }, 'stop')}${done}`
    expect(noted(parseWhole(parseStream({ ...target, rules: { thinkTags: true } }, requestId), stream))).toEqual(steps`
      start c1 | thinking | +hm | ${signed} | . | text | +a < b | . | end end stop
    `)
    expect(noted(parseWhole(parseStream(target, requestId), stream))).toEqual(steps`
      start c1 | text | +<th | +ink>\nhm</thi | +nk>\n\na < b | . | end end stop
    `)
  })
})

describe('blank text', () => {
  test('opens no block, and goes in front of the text that follows', () => {
    expect(read(chunk({ content: '\n\n' }), chunk({ content: 'a' }, 'stop'), done)).toEqual(steps`
      start c1 | text | +\n\na | . | end end stop
    `)
  })

  test('pitfall 69: beside a call is no block', () => {
    const call = calls({ index: 0, id: 'x', function: { name: 'f', arguments: '{}' } })
    expect(read(chunk({ content: '' }), chunk({ content: '\n' }), call, done)).toEqual(steps`
      start c1 | call x f | +{} | . | end tool-calls -
    `)
  })

  test('is kept where it is all there is', () => {
    expect(read(chunk({ content: ' \n' }, 'stop'), done)).toEqual(steps`start c1 | text | + \n | . | end end stop`)
  })
})

/** Blocks by letters: thinking, sealed, a text, a refusal, a call. */
const kinds = { T: 'thinking', S: 'sealed-thinking', x: 'text', r: 'refusal', c: 'tool-call' } as const
const numbered = (blocks: string): number[] =>
  reasoningPlaces([...blocks].map((letter) => kinds[letter as keyof typeof kinds]))

describe('the numbers', () => {
  // Worked out by hand: put all x as one and all r as one before all c, and count up to each T or S.
  const cases: [blocks: string, back: string, places: number[]][] = [
    ['Tx', 'Tx', [0]],
    ['TxTcTc', 'TxTcTc', [0, 2, 4]],
    ['TSTc', 'TSTc', [0, 1, 2]],
    // A text in two pieces is one block when it comes back.
    ['TxxTcTc', 'TxTcTc', [0, 2, 4]],
    ['TxTxTc', 'TxTTc', [0, 2, 3]],
    // Text after a call comes back before it.
    ['TcTxc', 'TxcTc', [0, 3]],
    ['TxTrTc', 'TxTrTc', [0, 2, 4]],
    ['TcTxrc', 'TxrcTc', [0, 4]],
    ['TcTc', 'TcTc', [0, 2]],
  ]
  test.each(cases)('%s comes back as %s', (blocks, back, places) => {
    expect(numbered(blocks)).toEqual(places)
    expect(places).toEqual([...back].flatMap((letter, at) => (letter === 'T' || letter === 'S' ? [at] : [])))
  })
})

describe('the places', () => {
  const placed = (numbers: readonly (number | undefined)[], blocks: string): string =>
    placeReasoning(
      numbers.map((place, i) => ({ block: 'ABC'[i], place })),
      [...blocks],
    ).join('')

  test('pitfall 72: are those the numbers tell', () => {
    expect(placed([0, 2, 4], 'x12')).toBe('AxB1C2')
    expect(placed([1, 3], '12')).toBe('1AB2')
    expect(placed([0, 3], 'x12')).toBe('Ax1B2')
  })

  test('are first for what is numbered one after another, all alike or not at all', () => {
    expect(placed([0, 1, 2], 'x1')).toBe('ABCx1')
    expect(placed([0, 0, 0], 'x1')).toBe('ABCx1')
    expect(placed([undefined, undefined], 'x1')).toBe('ABx1')
    expect(placed([-1], 'x')).toBe('Ax')
  })

  test('follow the numbers, not the order of the list', () => {
    expect(placed([2, 0], 'x1')).toBe('BxA1')
  })

  test('are never behind the last block, also where the numbers of another gateway or a lost text say so', () => {
    // The text at 1 did not come back.
    expect(placed([0, 2], '1')).toBe('AB1')
    expect(placed([0, 99], 'x1')).toBe('AxB1')
    expect(placed([0, 2], 'x')).toBe('ABx')
    expect(placed([3], '')).toBe('A')
  })
})
