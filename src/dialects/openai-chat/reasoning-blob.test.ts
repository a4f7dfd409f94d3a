import { describe, expect, test } from 'bun:test'
import { calls, chunk, done, signed, target } from '../../../test/parts/chat-stream.ts'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { parseStream } from './parse-stream.ts'

const read = (...records: string[]): string[] => noted(parseWhole(parseStream(target), records.join('')))
const eventsOf = (...records: string[]): ReplyEvent[] => parseWhole(parseStream(target), records.join(''))

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
    expect(read(chunk({ reasoning: 'r1' }), call(0), chunk({ reasoning: 'r2' }), call(1), done)).toEqual([
      'start c1',
      'thinking',
      '+r1',
      signed,
      '.',
      'call x0 f',
      '+{}',
      '.',
      'thinking',
      '+r2',
      signed,
      '.',
      'call x1 f',
      '+{}',
      '.',
      'end tool-calls -',
    ])
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

  test('pitfall 85: is told from text by its tags only where the model is known to write them', () => {
    const stream = `${chunk({ content: '<th' })}${chunk({ content: 'ink>\nhm</thi' })}${chunk({ content: 'nk>\n\na < b' }, 'stop')}${done}`
    expect(noted(parseWhole(parseStream({ ...target, rules: { thinkTags: true } }), stream))).toEqual([
      'start c1',
      'thinking',
      '+hm',
      signed,
      '.',
      'text',
      '+a < b',
      '.',
      'end end stop',
    ])
    expect(noted(parseWhole(parseStream(target), stream))).toEqual([
      'start c1',
      'text',
      '+<th',
      '+ink>\nhm</thi',
      '+nk>\n\na < b',
      '.',
      'end end stop',
    ])
  })
})

describe('blank text', () => {
  test('opens no block, and goes in front of the text that follows', () => {
    expect(read(chunk({ content: '\n\n' }), chunk({ content: 'a' }, 'stop'), done)).toEqual([
      'start c1',
      'text',
      '+\n\na',
      '.',
      'end end stop',
    ])
  })

  test('pitfall 69: beside a call is no block', () => {
    const call = calls({ index: 0, id: 'x', function: { name: 'f', arguments: '{}' } })
    expect(read(chunk({ content: '' }), chunk({ content: '\n' }), call, done)).toEqual([
      'start c1',
      'call x f',
      '+{}',
      '.',
      'end tool-calls -',
    ])
  })

  test('is kept where it is all there is', () => {
    expect(read(chunk({ content: ' \n' }, 'stop'), done)).toEqual(['start c1', 'text', '+ \n', '.', 'end end stop'])
  })
})
