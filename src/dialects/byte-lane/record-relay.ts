// What the byte lanes of all event-stream dialects share: cutting the stream into records, and putting the passed,
// edited and withheld ones together again. A record that is not touched is passed as the bytes it came in.

import type { Usage } from '../../kernel/usage.ts'
import { carriageReturn, lineFeed } from '../../wire/ascii.ts'
import { readSseRecord, SseSpans, withoutControlLines } from '../../wire/sse-record.ts'
import { SseSplitter } from '../../wire/sse-splitter.ts'
import { sseEvent } from '../../wire/sse-writer.ts'
import type { ProviderFault } from '../canonical/provider-fault.ts'
import type { RelayContext, StreamRelay } from './relay.ts'

const nothing = new Uint8Array(0)
/** Buffer's method works on any Uint8Array, and copies a part of it without a view, which costs more than the copy. */
const copy = Buffer.prototype.copy
const lineEnd = Uint8Array.of(lineFeed)
const blankLine = Uint8Array.of(lineFeed, lineFeed)

export abstract class RecordRelay implements StreamRelay {
  meaningful = false
  finished = false
  terminal: Uint8Array = nothing
  usage: Usage | undefined
  usageSoFar: Usage | undefined
  outputBytes = 0
  countedBytes: number | undefined
  fault: ProviderFault | undefined
  /** Where the data and the event's name of the record at hand lie. */
  protected readonly sse = new SseSpans()
  /** The provider closed without the blank line of the record at hand: its data may be cut, and counts only if whole. */
  protected isUnterminated = false
  readonly #splitter = new SseSplitter()
  #pieces: Uint8Array[] = []
  /** What became of a record whose blank line came cut behind its CR; the LF, should it follow, shares its fate. */
  #cutRecord: 'passed' | 'withheld' | undefined

  constructor(protected readonly context: RelayContext) {}

  push(chunk: Uint8Array): Uint8Array {
    this.#splitter.push(chunk, this.#onRecord)
    return this.#take()
  }

  end(): Uint8Array {
    this.#splitter.end(this.#onLastRecord)
    if (!this.finished && this.fault === undefined) this.onClose()
    return this.#take()
  }

  abstract keepAlive(): Uint8Array

  /** Looks at a record with one data line, and passes, edits, finishes, or does nothing to withhold it. */
  protected abstract read(record: Uint8Array): void

  /** The provider closed without a terminal marker: finishes where the dialect has said all that matters before. */
  protected onClose(): void {}

  protected pass(record: Uint8Array): void {
    this.#pieces.push(record)
  }

  /** Passes the record with the bytes of [start, end) replaced. */
  protected passEdited(record: Uint8Array, start: number, end: number, bytes: Uint8Array): void {
    const edited = new Uint8Array(record.length - (end - start) + bytes.length)
    copy.call(record, edited, 0, 0, start)
    edited.set(bytes, start)
    copy.call(record, edited, start + bytes.length, end, record.length)
    this.#pieces.push(edited)
  }

  protected finish(record: Uint8Array): void {
    this.finished = true
    this.usage ??= this.context.finalUsage(undefined, this.usageSoFar, () => this.outputBytes)
    // Nobody waits for the LF of a last CRLF that was cut in two.
    const isCut = record.at(-1) === carriageReturn && record.at(-2) === lineFeed
    this.terminal = isCut ? Buffer.concat([record, lineEnd]) : record
  }

  readonly #onRecord = (record: Uint8Array): void => {
    // After the end or an error nothing more counts, whatever a provider still sends.
    if (this.finished || this.fault !== undefined) return
    const whole = this.#cutRecord === undefined ? record : this.#withoutCutLineFeed(record)
    if (whole.length === 0) return
    const before = this.#pieces.length
    if (this.sse.read(whole) && !this.sse.hasControlLines) this.read(whole)
    else this.#readOdd(whole)
    if (whole[whole.length - 1] !== carriageReturn) return
    this.#cutRecord = this.#pieces.length > before ? 'passed' : 'withheld'
  }

  /** What is whole gets its blank line, since an end or an error of ours may follow; what is not is left out. */
  readonly #onLastRecord = (record: Uint8Array): void => {
    const whole = this.#withoutCutLineFeed(record)
    this.sse.read(whole)
    if (this.sse.dataLines === 0) return
    this.isUnterminated = true
    const endsLine = whole.at(-1) === lineFeed
    this.#onRecord(Buffer.concat([whole, endsLine ? lineEnd : blankLine]))
  }

  #withoutCutLineFeed(record: Uint8Array): Uint8Array {
    const fate = this.#cutRecord
    this.#cutRecord = undefined
    if (record[0] !== lineFeed) return record
    if (fate === 'passed') this.#pieces.push(record.subarray(0, 1))
    return record.subarray(1)
  }

  /** Comments pass; several data lines become one; `id:` and `retry:` lines stay here: once some clients have seen an
   * id, they make an event of every later blank line. */
  #readOdd(record: Uint8Array): void {
    const { dataLines, hasControlLines } = this.sse
    if (dataLines === 0) {
      if (!hasControlLines) this.pass(record)
      return
    }
    const tidy = dataLines === 1 ? withoutControlLines(record) : onOneLine(record)
    if (this.sse.read(tidy)) this.read(tidy)
  }

  #take(): Uint8Array {
    const pieces = this.#pieces
    if (pieces.length === 0) return nothing
    this.#pieces = []
    return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces)
  }
}

/** JSON has line breaks only between its values, where a space is as good. */
function onOneLine(record: Uint8Array): Uint8Array {
  const { event, data = '' } = readSseRecord(record)
  return sseEvent(event === '' ? undefined : event, data.replaceAll('\n', ' '))
}
