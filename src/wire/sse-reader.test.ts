import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type SseEvent, SseReader } from './sse-reader.ts'
import { SseOverflow } from './sse-splitter.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function readAll(stream: Uint8Array, cuts: readonly number[]): SseEvent[] {
  const reader = new SseReader()
  const events: SseEvent[] = []
  let from = 0
  for (const cut of [...cuts, stream.length]) {
    events.push(...reader.push(stream.slice(from, cut)))
    from = cut
  }
  return [...events, ...reader.end()]
}

/** The standard's own algorithm, on the decoded text and line by line; a last record without a blank line counts. */
function oracle(stream: string): SseEvent[] {
  const events: SseEvent[] = []
  let event = ''
  let data: string[] = []
  for (const line of [...stream.replace(/^\ufeff/, '').split(/\r\n|\r|\n/), '']) {
    if (line === '') {
      if (data.length > 0) events.push({ event, data: data.join('\n') })
      event = ''
      data = []
      continue
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
  return events
}

describe('events', () => {
  const stream =
    '\ufeff: hi\r\nevent: a\r\ndata: é\r\n\r\ndata: 1\ndata: 2\n\nevent: b\rdata: 😀\r\rid: 3\n\ndata: [DONE]'
  const expected = [
    { event: 'a', data: 'é' },
    { event: '', data: '1\n2' },
    { event: 'b', data: '😀' },
    { event: '', data: '[DONE]' },
  ]

  test('are the same wherever the stream is cut in two', () => {
    const whole = bytes(stream)
    for (let cut = 0; cut <= whole.length; cut++) expect(readAll(whole, [cut])).toEqual(expected)
  })

  test('are the same byte by byte', () => {
    const whole = bytes(stream)
    expect(readAll(whole, Array.from(whole.keys()))).toEqual(expected)
  })

  test('come as soon as their blank line does, and the last one at the end', () => {
    const reader = new SseReader()
    expect(reader.push(bytes('data: 1\n'))).toEqual([])
    expect(reader.push(bytes('\ndata: 2'))).toEqual([{ event: '', data: '1' }])
    expect(reader.end()).toEqual([{ event: '', data: '2' }])
    expect(reader.end()).toEqual([])
  })

  test('are those of the standard in any stream, however it is chunked', () => {
    const part = fc.constantFrom(
      '\n',
      '\r',
      '\r\n',
      '\n\n',
      'data',
      'data:',
      'data: ',
      'event: e',
      ':',
      ' ',
      'é',
      '😀',
      'id: 1',
    )
    fc.assert(
      fc.property(fc.boolean(), fc.array(part, { maxLength: 30 }), fc.array(fc.nat(100)), (hasMark, parts, cuts) => {
        const text = `${hasMark ? '\ufeff' : ''}${parts.join('')}`
        const whole = bytes(text)
        const inOrder = cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b)
        expect(readAll(whole, inOrder)).toEqual(oracle(text))
      }),
      { numRuns: 5000 },
    )
  })

  test('stop with an overflow that callers can tell from a defect', () => {
    const reader = new SseReader({ recordBytesMax: 8 })
    expect(() => reader.push(bytes('data: 123'))).toThrow(SseOverflow)
  })
})
