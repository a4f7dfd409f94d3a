import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { collectReply } from '../../../test/parts/collect-reply.ts'
import { call, ended, started, text, thinking } from '../../../test/parts/reply-events.ts'
import { noted, steps } from '../../../test/parts/reply-notation.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { ThinkTags } from './stages.ts'

const through = (...events: ReplyEvent[]): ReplyEvent[] => {
  const tags = new ThinkTags(() => 'S')
  return [started, ...events, ended()].flatMap((event) => tags.push(event))
}
/** Without start and end. */
const read = (...events: ReplyEvent[]): string[] => noted(through(...events)).slice(1, -1)
const thought = (...pieces: string[]): string[] => ['thinking', ...pieces.map((piece) => `+${piece}`), 'signed S', '.']

const cases: [name: string, pieces: string[], lines: string[]][] = [
  ['in one piece', ['<think>hm</think>so'], [...thought('hm'), 'text', '+so', '.']],
  [
    'in tags cut anywhere',
    ['<', 'thi', 'nk', '>h', 'm<', '/think', '>', 'so'],
    [...thought('h', 'm'), 'text', '+so', '.'],
  ],
  ['with the line breaks of the tags', ['\n<think>\nhm\n</think>\n\nso'], [...thought('hm\n'), 'text', '+so', '.']],
  [
    'with something like a tag in it',
    ['<think>a </thin', 'g> b</think>c'],
    [...thought('a ', '</thing> b'), 'text', '+c', '.'],
  ],
  ['that never ends', ['<think>hm</th'], thought('hm', '</th')],
  ['that is empty', ['<think>\n\n</think>\n\nso'], ['text', '+so', '.']],
  ['without an answer', ['<think>hm</think>\n'], thought('hm')],
]
test.each(cases)('pitfall 85: reasoning is separated from text %s', (_, pieces, lines) => {
  expect(read(...text(...pieces))).toEqual(lines)
})

const plain: [name: string, pieces: string[]][] = [
  ['that has tags further on', ['Write ', '<think>x</think> so']],
  ['that begins with another tag', ['<thing>', '</think>']],
  ['that holds a less-than sign', ['a < b <', ' c']],
]
test.each(plain)('pitfall 85: a text %s passes piece by piece', (_, pieces) => {
  expect(read(...text(...pieces))).toEqual(['text', ...pieces.map((piece) => `+${piece}`), '.'])
})

test('pitfall 85: a plain < at the beginning is held no longer than it must', () => {
  expect(read(...text('<', 'b>'))).toEqual(steps`text | +<b> | .`)
  expect(read(...text('<'))).toEqual(steps`text | +< | .`)
})

test('blocks other than text pass unchanged', () => {
  const events = [...thinking(['<think>'], 's'), ...call('1', 'f', '"<think>"')]
  expect(read(...events)).toEqual(noted(events))
})

test('any text reads the same in any cuts', () => {
  const part = fc.constantFrom('<think>', '</think>', '<', '/', 'think', '>', 'a', '\n')
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      const written = parts.join('')
      const whole = collectReply(through(...text(written)))
      expect(collectReply(through(...text(...written))).blocks).toEqual(whole.blocks)
      const thoughts = whole.blocks.filter(({ kind }) => kind === 'thinking')
      expect(thoughts.length).toBeLessThanOrEqual(1)
    }),
    { numRuns: 500 },
  )
})
