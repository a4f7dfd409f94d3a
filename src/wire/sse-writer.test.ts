import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { SseReader } from './sse-reader.ts'
import { sseComment, sseEvent } from './sse-writer.ts'

const text = (part: Uint8Array): string => new TextDecoder().decode(part)

test('an event is its name, its data and a blank line', () => {
  expect(text(sseEvent('ping', '{"é":1}'))).toBe('event: ping\ndata: {"é":1}\n\n')
  expect(text(sseEvent(undefined, '[DONE]'))).toBe('data: [DONE]\n\n')
  expect(text(sseEvent('', ''))).toBe('data: \n\n')
})

test('line breaks of every kind stay inside the event', () => {
  expect(text(sseEvent('e', 'a\n\nevent: x\rb\r\n'))).toBe(
    'event: e\ndata: a\ndata: \ndata: event: x\ndata: b\ndata: \n\n',
  )
  expect(() => sseEvent('e\ndata: x', '')).toThrow('assertion')
})

test('a comment is ignored by readers, whatever it says', () => {
  expect(text(sseComment('keep-alive'))).toBe(': keep-alive\n\n')
  expect(text(sseComment('a\ndata: b'))).toBe(': a\n: data: b\n\n')
  expect(new SseReader().push(sseComment('x\r\n\r\ndata: y\n\n'))).toEqual([])
})

test('what is written is read again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.stringMatching(/^[a-z_.]*$/), (data, event) => {
      const joined = data.toWellFormed().replace(/\r\n|\r/g, '\n')
      expect(new SseReader().push(sseEvent(event, data))).toEqual([{ event, data: joined }])
    }),
    { numRuns: 500 },
  )
})
