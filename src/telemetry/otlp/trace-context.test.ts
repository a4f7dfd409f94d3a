import { describe, expect, test } from 'bun:test'
import { createBeginTrace, readTraceparent } from './trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

/** Bytes that count up, so that every id is known: 01 02 03 … */
function countingBytes(first = 1) {
  let next = first
  return (count: number) => Uint8Array.from({ length: count }, () => next++ & 255)
}

test("a caller's trace is continued: its id, its span as the parent, a span of our own", () => {
  const begin = createBeginTrace({ sampleRatio: 0, randomBytes: countingBytes() })
  expect(begin(`00-${traceId}-${spanId}-01`)).toEqual({
    traceId,
    spanId: '0102030405060708',
    parentSpanId: spanId,
    sampled: true,
  })
})

test('a caller that does not keep its trace is followed, whatever the share is', () => {
  const begin = createBeginTrace({ sampleRatio: 1, randomBytes: countingBytes() })
  expect(begin(`00-${traceId}-${spanId}-00`).sampled).toBe(false)
})

test('without a caller a trace begins here', () => {
  const begin = createBeginTrace({ sampleRatio: 1, randomBytes: countingBytes() })
  expect(begin(null)).toEqual({
    traceId: '0102030405060708090a0b0c0d0e0f10',
    spanId: '1112131415161718',
    parentSpanId: undefined,
    sampled: true,
  })
})

test('the share is drawn from the last 48 bits of the id', () => {
  const withEnd = (end: number) => (count: number) => new Uint8Array(count).fill(end, 10)
  // 0x7f7f… is below a half, 0x8080… is not.
  expect(createBeginTrace({ sampleRatio: 0.5, randomBytes: withEnd(0x7f) })(null).sampled).toBe(true)
  expect(createBeginTrace({ sampleRatio: 0.5, randomBytes: withEnd(0x80) })(null).sampled).toBe(false)
  expect(createBeginTrace({ sampleRatio: 1, randomBytes: withEnd(0xff) })(null).sampled).toBe(true)
  expect(createBeginTrace({ sampleRatio: 0, randomBytes: withEnd(0) })(null).sampled).toBe(false)
})

describe('a header begins a new trace if it is', () => {
  const bad: Record<string, string> = {
    empty: '',
    short: `00-${traceId.slice(1)}-${spanId}-01`,
    'in capitals': `00-${traceId.toUpperCase()}-${spanId}-01`,
    'of the forbidden version': `ff-${traceId}-${spanId}-01`,
    'of version 00 with more': `00-${traceId}-${spanId}-01-x`,
    'all zeros': `00-${'0'.repeat(32)}-${spanId}-01`,
    'of a zero span': `00-${traceId}-${'0'.repeat(16)}-01`,
    'without flags': `00-${traceId}-${spanId}`,
  }
  for (const [what, header] of Object.entries(bad)) test(what, () => expect(readTraceparent(header)).toBeUndefined())

  test('not if it is of a later version, which may have more', () => {
    expect(readTraceparent(`01-${traceId}-${spanId}-03-more`)).toEqual({ traceId, spanId, sampled: true })
  })
})
