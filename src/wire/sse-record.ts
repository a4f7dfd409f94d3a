// What one raw SSE record says, by the grammar of the HTML standard (§9.2.6): as text for those who parse events, and as
// byte spans for those who let them pass. Works on whole records, so that no character is ever cut.

import { carriageReturn, colon, lineFeed, space } from './ascii.ts'
import { SseLines } from './sse-lines.ts'
import { hasByteOrderMark, utf8Text } from './utf8.ts'

export interface SseRecord {
  /** '' if the record names no event. */
  readonly event: string
  /** Several data lines are joined by a line feed; undefined if there is none, as in a comment. */
  readonly data: string | undefined
  /** `id:` or `retry:` lines, which speak about a connection and not about an event. */
  readonly hasControlLines: boolean
}

const dataField = new TextEncoder().encode('data')
const eventField = new TextEncoder().encode('event')
const idField = new TextEncoder().encode('id')
const retryField = new TextEncoder().encode('retry')

/** Made once, then used for record after record; reading allocates nothing. */
export class SseSpans {
  dataLines = 0
  /** The value of the first data line; -1 if there is none. */
  dataStart = -1
  dataEnd = -1
  /** The value of the last event line; -1 if there is none. */
  eventStart = -1
  eventEnd = -1
  hasControlLines = false
  readonly #lines = new SseLines()

  /** True if the record has exactly one data line, so that [dataStart, dataEnd) is all of its data. */
  read(record: Uint8Array): boolean {
    this.dataLines = 0
    this.dataStart = -1
    this.dataEnd = -1
    this.eventStart = -1
    this.eventEnd = -1
    this.hasControlLines = false
    const lines = this.#lines
    lines.open(record, firstLine(record))
    while (lines.advance()) {
      const { start, end } = lines
      const data = fieldValue(dataField, record, start, end)
      if (data !== -1) {
        if (this.dataLines++ > 0) continue
        this.dataStart = data
        this.dataEnd = end
        continue
      }
      const event = fieldValue(eventField, record, start, end)
      if (event !== -1) {
        this.eventStart = event
        this.eventEnd = end
      } else if (isControlLine(record, start, end)) {
        this.hasControlLines = true
      }
    }
    return this.dataLines === 1
  }
}

/** A scratch pad: filled and read within one call, never between two. */
const spans = new SseSpans()

export function readSseRecord(record: Uint8Array): SseRecord {
  spans.read(record)
  const { dataLines, dataStart, dataEnd, eventStart, eventEnd, hasControlLines } = spans
  const event = eventStart === -1 ? '' : utf8Text(record, eventStart, eventEnd)
  // A provider may send thousands of comments; they leave nothing behind.
  if (dataLines === 0) return { event, data: undefined, hasControlLines }
  const data = dataLines === 1 ? utf8Text(record, dataStart, dataEnd) : joinedData(record)
  return { event, data, hasControlLines }
}

/** The record without its `id:` and `retry:` lines, every other byte as it was; the record itself if it has none. */
export function withoutControlLines(record: Uint8Array): Uint8Array {
  const lines = new SseLines()
  lines.open(record, firstLine(record))
  let kept: Uint8Array | undefined
  let length = 0
  let from = 0
  while (lines.advance()) {
    if (!isControlLine(record, lines.start, lines.end)) continue
    kept ??= new Uint8Array(record.length)
    kept.set(record.subarray(from, lines.start), length)
    length += lines.start - from
    from = lines.next
    // A CR before the cut and an LF behind it would become one line end, and the blank line of the record would be
    // lost. Then the line that is cut leaves its own LF, which the CR takes instead.
    if (length > 0 && kept[length - 1] === carriageReturn && record[from] === lineFeed) from--
  }
  if (kept === undefined) return record
  kept.set(record.subarray(from), length)
  return kept.subarray(0, length + record.length - from)
}

function joinedData(record: Uint8Array): string {
  const values: string[] = []
  const lines = new SseLines()
  lines.open(record, firstLine(record))
  while (lines.advance()) {
    const data = fieldValue(dataField, record, lines.start, lines.end)
    if (data !== -1) values.push(utf8Text(record, data, lines.end))
  }
  return values.join('\n')
}

/** Only the first record of a stream begins with a byte order mark, and there it means nothing. */
function firstLine(record: Uint8Array): number {
  return hasByteOrderMark(record) ? 3 : 0
}

function isControlLine(record: Uint8Array, start: number, end: number): boolean {
  return fieldValue(idField, record, start, end) !== -1 || fieldValue(retryField, record, start, end) !== -1
}

/** Where the value of the line begins if its field is the one asked for, else -1. */
function fieldValue(field: Uint8Array, record: Uint8Array, start: number, end: number): number {
  const nameEnd = start + field.length
  if (nameEnd > end) return -1
  for (let i = 0; i < field.length; i++) {
    if (record[start + i] !== field[i]) return -1
  }
  if (nameEnd === end) return end
  if (record[nameEnd] !== colon) return -1
  return nameEnd + 1 < end && record[nameEnd + 1] === space ? nameEnd + 2 : nameEnd + 1
}
