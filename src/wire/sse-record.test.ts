import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readSseRecord, SseSpans, withoutControlLines } from './sse-record.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (part: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(part)
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
      { numRuns: 2000 },
    )
  })
})
