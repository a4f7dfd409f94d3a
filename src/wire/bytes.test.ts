import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { utf8FaultOffset, utf8Text } from './bytes.ts'

test('a span is decoded, a byte order mark kept, a bad sequence replaced', () => {
  const bytes = new Uint8Array([0x78, 0xef, 0xbb, 0xbf, 0xc3, 0xa9, 0xff, 0x79, 0x7a])
  expect(utf8Text(bytes, 1, 8)).toBe('\ufeffé\ufffdy')
  expect(utf8Text(bytes, 3, 3)).toBe('')
})

test('the first fault is found wherever it is, behind any text', () => {
  const bad = fc.constantFrom(
    [0xff],
    [0xc3],
    [0xc0, 0x80],
    [0xe2, 0x82],
    [0xed, 0xa0, 0x80],
    [0xf0, 0x9f, 0x98],
    [0x80],
  )
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 200 }),
      bad,
      fc.uint8Array({ maxLength: 100 }),
      (text, bytes, rest) => {
        // Lone surrogates cannot be encoded; well-formed text is what stands before the fault.
        const before = new TextEncoder().encode(text.toWellFormed())
        // A line feed keeps the rest from completing the bad sequence.
        expect(utf8FaultOffset(new Uint8Array([...before, ...bytes, 0x0a, ...rest]))).toBe(before.length)
      },
    ),
    { numRuns: 1000 },
  )
})

test('bytes without a fault give their length', () => {
  expect(utf8FaultOffset(new TextEncoder().encode('grüße, 世界 😀'.repeat(9)))).toBe(9 * 20)
})
