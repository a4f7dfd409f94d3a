import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { SseOverflow, SseSplitter } from './sse-splitter.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (part: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(part)

/** The records of a stream that arrives in these chunks; what is left at the end comes last. */
function records(...chunks: string[]): string[] {
  const splitter = new SseSplitter()
  const cut: string[] = []
  const take = (record: Uint8Array): void => void cut.push(text(record))
  for (const chunk of chunks) splitter.push(bytes(chunk), take)
  splitter.end(take)
  return cut
}

describe('a stream is cut', () => {
  test('behind each blank line, whatever ends the lines', () => {
    expect(records('data: a\n\ndata: b\n\n')).toEqual(['data: a\n\n', 'data: b\n\n'])
    expect(records('data: a\r\n\r\ndata: b\r\n\r\n')).toEqual(['data: a\r\n\r\n', 'data: b\r\n\r\n'])
    expect(records('data: a\r\rdata: b\r\r')).toEqual(['data: a\r\r', 'data: b\r\r'])
    expect(records('a\r\n\nb\n\r\nc\n\rd\r\r\ne')).toEqual(['a\r\n\n', 'b\n\r\n', 'c\n\r', 'd\r\r\n', 'e'])
  })

  test('not within a record of several lines', () => {
    expect(records('event: x\ndata: a\ndata: b\n\n: c\n\n')).toEqual(['event: x\ndata: a\ndata: b\n\n', ': c\n\n'])
    expect(records('event: x\r\ndata: a\r\n\r\n')).toEqual(['event: x\r\ndata: a\r\n\r\n'])
  })

  test('also where blank lines follow each other', () => {
    expect(records('\n\na\n\n\nb')).toEqual(['\n', '\n', 'a\n\n', '\n', 'b'])
  })

  test('with a byte order mark left where it is', () => {
    expect(records('\ufeffdata: a\n\n')).toEqual(['\ufeffdata: a\n\n'])
  })

  test('at once at a CR, an LF that comes later going in front of the next record', () => {
    const splitter = new SseSplitter()
    const cut: string[] = []
    const take = (record: Uint8Array): void => void cut.push(text(record))
    splitter.push(bytes('data: a\r\n\r'), take)
    expect(cut).toEqual(['data: a\r\n\r'])
    splitter.push(bytes('\n'), take)
    expect(cut).toHaveLength(1)
    splitter.push(bytes('data: b\r\n\r\n'), take)
    expect(cut).toEqual(['data: a\r\n\r', '\ndata: b\r\n\r\n'])
  })

  test('without taking a CRLF that is cut in two for a blank line', () => {
    expect(records('data: a\r', '\ndata: b\r', '', '\n\r', '\n')).toEqual(['data: a\r\ndata: b\r\n\r', '\n'])
  })

  test('as soon as the blank line is there, byte by byte', () => {
    const splitter = new SseSplitter()
    const sizes: number[] = []
    for (const byte of bytes('a\n\nbc\r\n\r\n')) {
      splitter.push(new Uint8Array([byte]), (record) => void sizes.push(record.length))
      if (byte === 0x62) expect(sizes).toEqual([3])
    }
    expect(sizes).toEqual([3, 5])
  })

  test('and all records together are the stream, however it was chunked', () => {
    const part = fc.constantFrom('\n', '\r', '\r\n', 'data: é😀', ':', 'x', '\ufeff', '\n\n', '\r\n\r\n')
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.array(fc.nat(7), { maxLength: 60 }), (parts, sizes) => {
        const stream = bytes(parts.join(''))
        const splitter = new SseSplitter()
        const cut: number[] = []
        const take = (record: Uint8Array): void => {
          expect(record.length).toBeGreaterThan(0)
          cut.push(...record)
        }
        let at = 0
        for (const size of sizes) {
          splitter.push(stream.slice(at, at + size), take)
          at += size
        }
        splitter.push(stream.slice(at), take)
        splitter.end(take)
        expect(cut).toEqual([...stream])
      }),
      { numRuns: 2000 },
    )
  })

  test('and a record inside one chunk is a view of it, not a copy', () => {
    const chunk = bytes('tail\n\nwhole\n\nhead')
    const splitter = new SseSplitter()
    splitter.push(bytes('begin '), () => {})
    const buffers: ArrayBufferLike[] = []
    splitter.push(chunk, (record) => void buffers.push(record.buffer))
    expect(buffers).toHaveLength(2)
    expect(buffers[0]).not.toBe(chunk.buffer)
    expect(buffers[1]).toBe(chunk.buffer)
  })

  test('and a record handed out earlier is not written to later', () => {
    const splitter = new SseSplitter()
    const kept: Uint8Array[] = []
    for (const chunk of ['aa', 'aa\n\n', 'bb', 'bb\n\n'])
      splitter.push(bytes(chunk), (record) => void kept.push(record))
    expect(kept.map(text)).toEqual(['aaaa\n\n', 'bbbb\n\n'])
  })
})

describe('too much without an end', () => {
  const limits = { recordBytesMax: 20 }
  const push = (...chunks: string[]): number => {
    const splitter = new SseSplitter(limits)
    let count = 0
    for (const chunk of chunks) splitter.push(bytes(chunk), () => void count++)
    return count
  }

  test('is a line over the limit, in one chunk or in many', () => {
    expect(push(`${'x'.repeat(18)}\n\n`)).toBe(1)
    expect(() => push(`${'x'.repeat(19)}\n\n`)).toThrow(SseOverflow)
    expect(() => push('x'.repeat(21))).toThrow(SseOverflow)
    expect(() => push('x'.repeat(11), 'x'.repeat(10))).toThrow(SseOverflow)
    expect(push('xxxxxx\n', 'xxxxx\n\n')).toBe(1)
  })

  test('is a record over its limit, finished or not', () => {
    expect(push('12345678\n12345678\n1\n')).toBe(0)
    expect(push('12345678\n12345678\n\n', '12345678\n12345678\n\n')).toBe(2)
    expect(() => push('12345678\n12345678\n12\n')).toThrow(SseOverflow)
    expect(() => push('12345678\n', '12345678\n', '12\n\n')).toThrow(SseOverflow)
  })

  test('comes after the records in front of it', () => {
    const splitter = new SseSplitter(limits)
    const cut: string[] = []
    expect(() => splitter.push(bytes(`a\n\n${'x'.repeat(21)}`), (record) => void cut.push(text(record)))).toThrow()
    expect(cut).toEqual(['a\n\n'])
  })

  test('is by default a record of more than 4 MiB, of one line or of many', () => {
    const line = new Uint8Array(1024 * 1024).fill(0x78)
    const one = new SseSplitter()
    for (let i = 0; i < 4; i++) one.push(line, () => {})
    expect(() => one.push(bytes('x'), () => {})).toThrow(SseOverflow)
    const lines = new SseSplitter()
    const feed = bytes('\n')
    for (let i = 0; i < 3; i++) {
      lines.push(line, () => {})
      lines.push(feed, () => {})
    }
    lines.push(line.subarray(4), () => {})
    expect(() => lines.push(bytes('xx'), () => {})).toThrow(SseOverflow)
  })
})
