// Server-sent events by the HTML standard (§9.2.6): cutting a byte stream into records, reading records as text or as byte
// spans, and writing them.

import { assert } from '../kernel/failure.ts'
import { ByteBuffer, carriageReturn, colon, hasByteOrderMark, lineFeed, space, utf8Text } from './bytes.ts'

/**
 * The lines of SSE bytes, ended by LF, CRLF or CR, also mixed. Both line ends are searched for natively and each only
 * once, so that a distant CR is not searched for again at every LF.
 */
export class SseLines {
  /** The current line is [start, end) without its line end; `next` is after the line end. */
  start = 0
  end = 0
  next = 0
  #bytes: Uint8Array = new Uint8Array(0)
  #lineFeedAt = -1
  #carriageReturnAt = -1

  open(bytes: Uint8Array, from: number): void {
    this.#bytes = bytes
    this.next = from
    this.#lineFeedAt = -1
    this.#carriageReturnAt = -1
  }

  /** Moves to the next line and returns false after the last one, which may be incomplete. */
  advance(): boolean {
    const bytes = this.#bytes
    const start = this.next
    if (start >= bytes.length) return false
    if (this.#lineFeedAt < start) this.#lineFeedAt = find(bytes, lineFeed, start)
    if (this.#carriageReturnAt < start) this.#carriageReturnAt = find(bytes, carriageReturn, start)
    const end = Math.min(this.#lineFeedAt, this.#carriageReturnAt)
    const isPair = end === this.#carriageReturnAt && this.#lineFeedAt === end + 1
    this.start = start
    this.end = end
    this.next = Math.min(end + (isPair ? 2 : 1), bytes.length)
    return true
  }
}

/** Returns the length if the byte is not found, so that the smaller of two results is the nearer. */
function find(bytes: Uint8Array, byte: number, from: number): number {
  if (bytes[from] === byte) return from
  const at = bytes.indexOf(byte, from)
  return at === -1 ? bytes.length : at
}

// Cutting a byte stream into raw records, each with the blank line that ends it. All records together are the stream, byte
// for byte.

/** Also of one line: a picture comes as such. */
const recordBytesMaxDefault = 4 * 1024 * 1024

export interface SseLimits {
  readonly recordBytesMax?: number
}

/** Thrown out of push: the peer sent more without an end than anyone should have to hold. */
export class SseOverflow extends Error {
  override readonly name = 'SseOverflow'
}

export class SseSplitter {
  readonly #recordBytesMax: number
  readonly #lines = new SseLines()
  /** The beginning of a record whose end has not arrived. */
  readonly #pending = new ByteBuffer()
  /** How much of the line at the end of the pending bytes is there. */
  #lineBytes = 0
  /** The last byte was a CR: an LF in front of the next chunk belongs to that line end and makes no blank line. */
  #afterCarriageReturn = false

  constructor(limits: SseLimits = {}) {
    this.#recordBytesMax = limits.recordBytesMax ?? recordBytesMaxDefault
  }

  /**
   * Records that lie inside the chunk are views of it, so the chunk must not be written to again. A blank line that is
   * a CR at the end of the chunk ends its record at once; should an LF follow, it goes in front of the next record.
   * Comments in a row may come as one record, to `onComments`: a provider that floods us with them costs next to nothing.
   */
  push(chunk: Uint8Array, onRecord: (record: Uint8Array) => void, onComments = onRecord): void {
    if (chunk.length === 0) return
    const lines = this.#lines
    lines.open(chunk, this.#afterCarriageReturn && chunk[0] === lineFeed ? 1 : 0)
    let recordStart = 0
    for (;;) {
      if (chunk[lines.next] === colon && lines.next === recordStart && this.#pending.length === 0) {
        const end = commentsEnd(chunk, recordStart)
        if (end > recordStart) onComments(chunk.subarray(recordStart, end))
        recordStart = lines.next = end
      }
      if (!lines.advance()) break
      const lineBytes = this.#lineBytes + lines.end - lines.start
      const isIncomplete = lines.end === chunk.length
      if (isIncomplete) {
        this.#lineBytes = lineBytes
      } else {
        this.#lineBytes = 0
        if (lineBytes === 0) {
          onRecord(this.#record(chunk, recordStart, lines.next))
          recordStart = lines.next
        }
      }
    }
    this.#afterCarriageReturn = chunk[chunk.length - 1] === carriageReturn
    if (recordStart < chunk.length) {
      this.#checkSize(chunk.length - recordStart)
      this.#pending.append(chunk.subarray(recordStart))
    }
  }

  /** Hands out what never got its blank line. */
  end(onRecord: (record: Uint8Array) => void): void {
    this.#lineBytes = 0
    this.#afterCarriageReturn = false
    if (this.#pending.length > 0) onRecord(this.#pending.take())
  }

  #record(chunk: Uint8Array, start: number, end: number): Uint8Array {
    assert(end > start, 'a record has bytes')
    this.#checkSize(end - start)
    // A provider mostly sends one event at a time, and a view of all of it would be the dearest step here.
    const rest = start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end)
    if (this.#pending.length === 0) return rest
    this.#pending.append(rest)
    return this.#pending.take()
  }

  #checkSize(more: number): void {
    if (this.#pending.length + more <= this.#recordBytesMax) return
    throw new SseOverflow(`an SSE record of more than ${this.#recordBytesMax} bytes`)
  }
}

/** The end of the comments in a row that are complete and have LF or CRLF line ends; `from` if there are none. */
function commentsEnd(bytes: Uint8Array, from: number): number {
  let end = from
  let at = from
  while (bytes[at] === colon) {
    let byte = bytes[++at]
    while (byte !== lineFeed && byte !== carriageReturn && byte !== undefined) byte = bytes[++at]
    const line = afterLineEnd(bytes, at)
    if (line === at) return end
    at = afterLineEnd(bytes, line)
    if (at > line) end = at
  }
  return end
}

/** The place after an LF or a CRLF; `at` if there is none. */
function afterLineEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] === lineFeed) return at + 1
  return bytes[at] === carriageReturn && bytes[at + 1] === lineFeed ? at + 2 : at
}

// One raw record: as text, for parsing, or as byte spans, for relaying. Works on complete records, so no character is cut.

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
    // A CR before the removed lines and an LF after them would become one line end, and the blank line of the record would be
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

// Parsed events of a byte stream.

export interface SseEvent {
  /** '' if the record names none; the standard's default would be `message`. */
  readonly event: string
  readonly data: string
}

export class SseReader {
  readonly #splitter: SseSplitter
  #events: SseEvent[] = []
  readonly #onRecord = (record: Uint8Array): void => {
    const { event, data } = readSseRecord(record)
    if (data !== undefined) this.#events.push({ event, data })
  }

  constructor(limits: SseLimits = {}) {
    this.#splitter = new SseSplitter(limits)
  }

  /** Throws SseOverflow. */
  push(chunk: Uint8Array): SseEvent[] {
    this.#splitter.push(chunk, this.#onRecord)
    return this.#take()
  }

  /** The standard drops a last record without a blank line, but several providers end that way. */
  end(): SseEvent[] {
    this.#splitter.end(this.#onRecord)
    return this.#take()
  }

  #take(): SseEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }
}

// Writing. One call makes one record whatever the text: line breaks in it can neither end the record nor add a field.

const encoder = new TextEncoder()
const lineBreak = /\r\n|\r|\n/
const anyLineBreak = /[\r\n]/

/** Data of several lines is written as several data lines; a reader joins them with a line feed, CR or not. */
export function sseEvent(event: string | undefined, data: string): Uint8Array<ArrayBuffer> {
  assert(event === undefined || !anyLineBreak.test(event), 'an event name is one line')
  const name = event ? `event: ${event}\n` : ''
  return encoder.encode(`${name}${prefixed('data: ', data)}\n`)
}

/** A record that readers ignore, to keep a silent connection alive. */
export function sseComment(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(`${prefixed(': ', text)}\n`)
}

function prefixed(prefix: string, text: string): string {
  // JSON never holds a raw line break, so this is nearly every event.
  if (!anyLineBreak.test(text)) return `${prefix}${text}\n`
  return text
    .split(lineBreak)
    .map((line) => `${prefix}${line}\n`)
    .join('')
}
