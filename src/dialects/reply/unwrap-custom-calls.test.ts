import { expect, test } from 'bun:test'
import type { ReplyEvent } from '../canonical/reply-event.ts'
import { UnwrapCustomCalls } from './unwrap-custom-calls.ts'

/** The texts that come out, one for each piece that goes in, and what comes with the end. */
function unwrapped(pieces: readonly string[]): string[] {
  const stage = new UnwrapCustomCalls(new Set(['run']))
  const textOf = (event: ReplyEvent) => (event.type === 'arguments-delta' ? event.text : '')
  stage.push({ type: 'block-start', block: { kind: 'tool-call', id: 'c1', name: 'run', custom: false } })
  const passed = pieces.map((text) => stage.push({ type: 'arguments-delta', text }).map(textOf).join(''))
  return [...passed, stage.push({ type: 'block-end' }).map(textOf).join('')]
}

test('the input streams as soon as it begins, in whatever pieces', () => {
  expect(unwrapped(['{"in', 'put": "a', 'b\\n"}'])).toEqual(['', 'a', 'b\n', ''])
  const long = 'x'.repeat(10_000)
  expect(unwrapped([`{"input":"${long}"}`])).toEqual([long, ''])
})

test('an input that begins late is read at the end, without a look with every piece', () => {
  const blanks = Array.from({ length: 6000 }, () => ' ')
  expect(unwrapped([...blanks, '{"input":"ab', 'c"}']).filter((text) => text !== '')).toEqual(['abc'])
  // Within the first four thousand characters it still streams.
  expect(unwrapped([' '.repeat(4000), '{"input":"ab', 'c"}'])).toEqual(['', 'ab', 'c', ''])
})

test('arguments of another form come whole', () => {
  const pieces = Array.from({ length: 5000 }, () => '[1]')
  expect(unwrapped(pieces).at(-1)).toBe('[1]'.repeat(5000))
})
