import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  readSseRecord,
  type SseEvent,
  SseOverflow,
  SseReader,
  SseSpans,
  SseSplitter,
  sseComment,
  sseEvent,
  withoutControlLines,
} from './sse.ts'

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

describe('a stream is split', () => {
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

  test('also between several blank lines', () => {
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

  test('into records that together are the stream, however it was chunked', () => {
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
      { numRuns: 800 },
    )
  })

  test('with comments in a row as one, and every other record as it is when bytes come one by one', () => {
    const part = fc.constantFrom(':', ':a', ':\n\n', ':\r\n\r\n', ': b\n:c\n\n', '\n', '\r', '\r\n', 'data: x\n\n', 'x')
    const events = (chunks: readonly Uint8Array[]): string[] => {
      const splitter = new SseSplitter()
      const found: string[] = []
      const take = (record: Uint8Array): void => {
        const { data } = readSseRecord(record)
        if (data !== undefined) found.push(data)
      }
      const takeComments = (comments: Uint8Array): void =>
        expect(readSseRecord(comments)).toEqual({ event: '', data: undefined, hasControlLines: false })
      for (const chunk of chunks) splitter.push(chunk, take, takeComments)
      splitter.end(take)
      return found
    }
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const stream = bytes(parts.join(''))
        expect(events([stream])).toEqual(events([...stream].map((byte) => Uint8Array.of(byte))))
      }),
      { numRuns: 800 },
    )
    const taken: number[] = []
    new SseSplitter().push(
      bytes(':\n\n'.repeat(1000)),
      () => {},
      (comments) => void taken.push(comments.length),
    )
    expect(taken).toEqual([3000])
  })

  test('into views if a record lies inside one chunk', () => {
    const chunk = bytes('tail\n\nwhole\n\nhead')
    const splitter = new SseSplitter()
    splitter.push(bytes('begin '), () => {})
    const buffers: ArrayBufferLike[] = []
    splitter.push(chunk, (record) => void buffers.push(record.buffer))
    expect(buffers).toHaveLength(2)
    expect(buffers[0]).not.toBe(chunk.buffer)
    expect(buffers[1]).toBe(chunk.buffer)
  })

  test('into records that are not overwritten later', () => {
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

const read = (record: string) => readSseRecord(bytes(record))

describe('a record', () => {
  test('has an event name and data', () => {
    expect(read('event: ping\ndata: {"a":1}\n\n')).toEqual({ event: 'ping', data: '{"a":1}', hasControlLines: false })
  })

  const cases: [what: string, record: string, event: string, data: string | undefined][] = [
    ['without an event name has an empty one', 'data: x\n\n', '', 'x'],
    ['drops one space behind the colon, not two', 'data:  x \n\n', '', ' x '],
    ['needs no space behind the colon', 'event:e\ndata:x\n\n', 'e', 'x'],
    ['keeps a tab behind the colon', 'data:\tx\n\n', '', '\tx'],
    ['keeps further colons', 'data: a: b\n\n', '', 'a: b'],
    ['joins data lines by a line feed', 'data: a\ndata:\ndata: b\n\n', '', 'a\n\nb'],
    ['joins data lines with other lines between them', 'data: a\r\n: c\r\nevent: e\r\ndata: b\r\n\r\n', 'e', 'a\nb'],
    ['has empty data where the line is empty', 'data:\n\n', '', ''],
    ['has empty data where there is no colon', 'data\n\n', '', ''],
    ['has empty data where there is only a space', 'data: \n\n', '', ''],
    ['has no data where there is no such line', 'event: e\n\n', 'e', undefined],
    ['takes the last event name', 'event: a\nevent: b\ndata: x\n\n', 'b', 'x'],
    ['may take the event name back', 'event: a\nevent\ndata: x\n\n', '', 'x'],
    ['ignores comments', ': data: y\n:\ndata: x\n\n', '', 'x'],
    ['ignores unknown fields and other spellings', 'datas: 1\ndat: 2\n data: 3\nDATA: 4\nevents: 5\n\n', '', undefined],
    ['reads CR and CRLF as line ends', 'event: e\rdata: a\r\ndata: b\r\r', 'e', 'a\nb'],
    ['ignores a byte order mark in front', '\ufeffdata: x\n\n', '', 'x'],
    ['keeps a byte order mark in data', 'data: \ufeffx\n\n', '', '\ufeffx'],
    ['ignores an LF left over from the record before', '\ndata: x\r\n\r', '', 'x'],
    ['needs no blank line', 'event: e\ndata: x', 'e', 'x'],
    ['holds any text', 'event: né\ndata: 世界😀\n\n', 'né', '世界😀'],
    ['may be only a blank line', '\n', '', undefined],
    ['may be empty', '', '', undefined],
  ]
  test.each(cases)('%s', (_, record, event, data) => {
    expect(read(record)).toEqual({ event, data, hasControlLines: false })
  })

  test('says whether it speaks about the connection', () => {
    expect(read('id: 1\ndata: x\n\n').hasControlLines).toBe(true)
    expect(read('data: x\r\nretry: 10\r\n\r\n').hasControlLines).toBe(true)
    expect(read('id\n\n').hasControlLines).toBe(true)
    expect(read('idx: 1\ndata: id: 1\n: id: 1\nretry2: 1\n\n').hasControlLines).toBe(false)
  })

  test('has bad UTF-8 replaced, not dropped', () => {
    expect(readSseRecord(new Uint8Array([...bytes('data: a'), 0xe2, 0x82, ...bytes('\n\n')])).data).toBe('a\ufffd')
  })
})

describe('the spans of a record', () => {
  test('are those of its one data line and of its event name', () => {
    const spans = new SseSpans()
    expect(spans.read(bytes('event: ab\r\ndata: xyz\r\n\r\n'))).toBe(true)
    expect([spans.eventStart, spans.eventEnd, spans.dataStart, spans.dataEnd]).toEqual([7, 9, 17, 20])
    expect(spans.read(bytes('data:\n\n'))).toBe(true)
    expect([spans.eventStart, spans.eventEnd, spans.dataStart, spans.dataEnd]).toEqual([-1, -1, 5, 5])
  })

  test('are not enough where the data has several lines, or none', () => {
    const spans = new SseSpans()
    expect(spans.read(bytes('data: a\ndata: b\n\n'))).toBe(false)
    expect([spans.dataLines, spans.dataStart, spans.dataEnd]).toEqual([2, 6, 7])
    expect(spans.read(bytes(': c\nid: 4\n\n'))).toBe(false)
    expect([spans.dataLines, spans.dataStart, spans.dataEnd, spans.hasControlLines]).toEqual([0, -1, -1, true])
  })
})

describe('control lines', () => {
  const cases: [record: string, kept: string][] = [
    ['id: 1\ndata: x\n\n', 'data: x\n\n'],
    ['data: x\nid: 1\nretry: 5\n\n', 'data: x\n\n'],
    ['event: e\r\nid: 1\r\ndata: x\r\n\r\n', 'event: e\r\ndata: x\r\n\r\n'],
    ['id\rdata: x\r\r', 'data: x\r\r'],
    ['retry: 5\n\n', '\n'],
    ['\ufeffid: 1\ndata: x\n\n', '\ufeffdata: x\n\n'],
    ['data: x\nid: 1', 'data: x\n'],
    // Mixed line ends, where a plain cut would turn CR and LF into one line end and lose the blank line.
    ['data: x\rid: 1\n\n', 'data: x\r\n\n'],
    ['data: x\rid: 1\r\n\n', 'data: x\r\n\n'],
    ['data: x\rid: 1\nretry: 5\n\n', 'data: x\r\n\n'],
  ]
  test.each(cases)('are cut out of %j', (record, kept) => {
    expect(text(withoutControlLines(bytes(record)))).toBe(kept)
  })

  test('that are not there leave the record itself', () => {
    const record = bytes('event: e\ndata: id: 1\n: id: 1\n\n')
    expect(withoutControlLines(record)).toBe(record)
  })

  test('are gone from any record, and nothing else is', () => {
    const line = fc.constantFrom('id: 7', 'id', 'retry: 5', 'data: a', 'data: b', 'event: e', ': c', 'x')
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
    fc.assert(
      fc.property(fc.array(fc.tuple(line, lineEnd), { maxLength: 8 }), lineEnd, (lines, last) => {
        // CR followed by a lone LF would be a CRLF and not the two ends that were asked for.
        const record = `${lines.flat().join('')}${lines.at(-1)?.[1] === '\r' && last === '\n' ? '\r' : last}`
        const kept = text(withoutControlLines(bytes(record)))
        const linesOf = (whole: string): string[] => whole.split(/\r\n|\r|\n/)
        expect(linesOf(kept)).toEqual(linesOf(record).filter((each) => !/^(id|retry)/.test(each)))
      }),
      { numRuns: 800 },
    )
  })
})

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
      { numRuns: 1500 },
    )
  })

  test('stop with an overflow that callers can tell from a defect', () => {
    const reader = new SseReader({ recordBytesMax: 8 })
    expect(() => reader.push(bytes('data: 123'))).toThrow(SseOverflow)
  })
})

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

test('a written event is read back unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.stringMatching(/^[a-z_.]*$/), (data, event) => {
      const joined = data.toWellFormed().replace(/\r\n|\r/g, '\n')
      expect(new SseReader().push(sseEvent(event, data))).toEqual([{ event, data: joined }])
    }),
    { numRuns: 500 },
  )
})
