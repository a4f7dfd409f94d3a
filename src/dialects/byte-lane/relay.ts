// Relaying replies to callers of the provider's own dialect: bytes pass unchanged except for the model's name and the
// usage.

import type { Usage } from '../../kernel/usage.ts'
import {
  carriageReturn,
  closeBrace,
  comma,
  lineFeed,
  lowerN,
  openBrace,
  openBracket,
  utf8Text,
} from '../../wire/bytes.ts'
import { type ByteEdit, type JsonSpan, JsonSpans, spliceBytes } from '../../wire/json.ts'
import { readSseRecord, SseSpans, SseSplitter, sseComment, sseEvent, withoutControlLines } from '../../wire/sse.ts'
import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import { recordOf } from '../canonical/json.ts'
import type { Envelope, EventNumbering, ReplyFacts } from '../canonical/translation.ts'

export interface RelayContext extends ReplyFacts {
  readonly envelope: Pick<Envelope, 'choices'>
  /** The catalog id as JSON; replaces the provider's model name. */
  readonly modelJson: Uint8Array
}

/** One stream: provider bytes in, client bytes out, and what was learned from them. */
export interface StreamRelay {
  /** Takes a chunk from the socket and returns the bytes for the client, often the same. */
  push(chunk: Uint8Array): Uint8Array
  /** The provider closed the connection: reads a last unterminated record. */
  end(): Uint8Array
  /**
   * Something that a client would display has passed: text, reasoning, a tool call or an end. From here on the request
   * cannot move to another provider.
   */
  readonly meaningful: boolean
  /**
   * The dialect's terminal marker arrived, or the provider closed after everything else, where the dialect allows that.
   */
  readonly finished: boolean
  /** The gateway ended the reply at a stop sequence; the provider may still be sending. */
  readonly isStoppedEarly?: boolean
  /** The client has received the stop reason, but the usage is still to come. */
  readonly awaitsUsage?: boolean
  /** The reply is not a stream: `terminal` is all of it. */
  readonly isWhole?: boolean
  /** The terminal bytes, withheld until the charge is durable. */
  readonly terminal: Uint8Array
  /** The usage of a complete reply, or the running usage if the provider reports it continuously; undefined before. */
  readonly usage: Usage | undefined
  /** The usage reported so far: maybe only the input, or nothing. */
  readonly usageSoFar: Usage | undefined
  /** `outputBytes` when the provider last reported its output count; undefined = it reported none. */
  readonly bytesAtReport: number | undefined
  /** Bytes of generated text relayed, without the surrounding JSON. */
  readonly outputBytes: number
  readonly fault: ProviderFault | undefined
  readonly numbering?: EventNumbering | undefined
  /** Bytes that keep an idle connection alive and are legal at this point of the stream. */
  keepAlive(): Uint8Array
}

export interface RelayedReply {
  readonly body: Uint8Array
  readonly usage: Usage
}

/** Relays a whole reply; returns a fault if the body is an error sent with a success status or not a reply of the dialect. */
export type RelayReply = (
  body: Uint8Array<ArrayBuffer>,
  context: RelayContext,
) => RelayedReply | { readonly fault: ProviderFault }

// Base class for streams: splits them into SSE records, and joins the passed and edited ones again. An untouched record
// is passed as the bytes in which it arrived.

/** Legal anywhere in a stream. Before the first record, and in some dialects later, clients accept nothing else. */
export const keepAliveComment = sseComment('keep-alive')

const nothing = new Uint8Array(0)
/** Works on any Uint8Array and copies a part without creating a view, which would cost more than the copy. */
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
  bytesAtReport: number | undefined
  fault: ProviderFault | undefined
  /** The data and event spans of the current record. */
  protected readonly sse = new SseSpans()
  /**
   * The provider closed before the blank line of the current record. Its data may be truncated and counts only if
   * complete.
   */
  protected isUnterminated = false
  readonly #splitter = new SseSplitter()
  #pieces: Uint8Array[] = []
  /**
   * Set after a record that ended with a CR at a chunk boundary: a following LF belongs to it and is passed or withheld
   * like it.
   */
  #splitCrLf: 'passed' | 'withheld' | undefined

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

  keepAlive(): Uint8Array {
    return keepAliveComment
  }

  /** Reads a record with one data line, then passes, edits or finishes it, or withholds it by doing nothing. */
  protected abstract read(record: Uint8Array): void

  protected abstract renderUsage(usage: Usage, cost: string): string

  /** Called if the provider closed without a terminal marker. Finishes if the dialect does not need one. */
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
    this.usage ??= this.context.quoteUsage(undefined, this.usageSoFar, () => this.outputBytes)
    // Completes a final CRLF of which only the CR has arrived, because its LF will not be awaited.
    const isSplit = record.at(-1) === carriageReturn && record.at(-2) === lineFeed
    this.terminal = isSplit ? Buffer.concat([record, lineEnd]) : record
  }

  /**
   * Takes what the provider reported about the whole reply, and returns the edit that writes its cost: into the
   * provider's usage at `span` if that is charged, otherwise with our usage in its place or at the end of the object.
   */
  protected quote(
    record: Uint8Array,
    span: JsonSpan,
    reported: Usage | undefined,
    atStart: Usage | undefined,
    objectEnd = record.length,
    name = 'usage',
  ): ByteEdit {
    const usage = this.context.quoteUsage(reported, atStart, () => this.outputBytes)
    const cost = this.context.quotedUsd(usage)
    this.usage = usage
    this.bytesAtReport = this.outputBytes
    if (usage === reported && isObject(record, span)) return costEdit(record, span, cost)
    return usageEdit(record, span, this.renderUsage(usage, cost), objectEnd, name)
  }

  readonly #onRecord = (record: Uint8Array): void => {
    // Ignore everything after the end or an error.
    if (this.finished || this.fault !== undefined) return
    const whole = this.#splitCrLf === undefined ? record : this.#withoutSplitLineFeed(record)
    if (whole.length === 0) return
    const before = this.#pieces.length
    if (this.sse.read(whole) && !this.sse.hasControlLines) this.read(whole)
    else this.#readOdd(whole)
    if (whole[whole.length - 1] !== carriageReturn) return
    this.#splitCrLf = this.#pieces.length > before ? 'passed' : 'withheld'
  }

  /** A complete record gets its blank line, because our own end or error may follow. An incomplete one is dropped. */
  readonly #onLastRecord = (record: Uint8Array): void => {
    const whole = this.#withoutSplitLineFeed(record)
    this.sse.read(whole)
    if (this.sse.dataLines === 0) return
    this.isUnterminated = true
    const endsLine = whole.at(-1) === lineFeed
    this.#onRecord(Buffer.concat([whole, endsLine ? lineEnd : blankLine]))
  }

  #withoutSplitLineFeed(record: Uint8Array): Uint8Array {
    const fate = this.#splitCrLf
    this.#splitCrLf = undefined
    if (record[0] !== lineFeed) return record
    if (fate === 'passed') this.#pieces.push(record.subarray(0, 1))
    return record.subarray(1)
  }

  /**
   * Comments pass. Several data lines are joined. `id:` and `retry:` lines are removed: once some clients have seen an
   * id, they emit an event for every later blank line.
   */
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

/** JSON has line breaks only between values, where a space means the same. */
function onOneLine(record: Uint8Array): Uint8Array {
  const { event, data = '' } = readSseRecord(record)
  return sseEvent(event === '' ? undefined : event, data.replaceAll('\n', ' '))
}

// Whole replies: the provider's bytes pass with the model's name and the cost spliced in, unless they are an error or
// not a reply of the dialect.

export interface ReplyShape<Content extends string> {
  /** The required member of a reply, a list. */
  readonly content: Content
  /** `content`: the list in the reply, where some dialects count what they bill. A span, because a view costs 4 µs. */
  readUsage(value: unknown, reply: Uint8Array, content: JsonSpan): Usage | undefined
  renderUsage(usage: Usage, cost: string): string
  /** Bytes of generated text in the list. */
  outputBytes(content: unknown): number
  readErrorObject(error: unknown): ProviderFault
  /** Whether the reply has neither content nor a proper stop reason. */
  isEmptyReply(reply: Record<string, unknown>): boolean
}

/** Longer lists are never empty; shorter ones are parsed. */
const emptyBytesMax = 300

export function createReplyRelay<Content extends string>(shape: ReplyShape<Content>): RelayReply {
  const { content } = shape
  // Reused scratch object: filled and read within one call.
  const spans = new JsonSpans<'model' | 'usage' | 'error' | Content>(['model', 'usage', 'error', content])
  return (body, context) => {
    if (!spans.read(body, 0, body.length)) {
      return { fault: replyFault('a reply that is no JSON object, or not all of it') }
    }
    const { model, usage: usageSpan, error } = spans.of
    const list = spans.of[content]
    if (isPresent(body, error)) return { fault: shape.readErrorObject(parseSpan(body, error)) }
    if (list.start < 0 || body[list.start] !== openBracket) return { fault: replyFault(`a reply without ${content}`) }
    if (
      list.end - list.start < emptyBytesMax &&
      shape.isEmptyReply(recordOf(parseSpan(body, { start: 0, end: body.length })))
    ) {
      return { fault: replyFault('an empty answer') }
    }
    const reported = isObject(body, usageSpan) ? shape.readUsage(parseSpan(body, usageSpan), body, list) : undefined
    const usage = context.quoteUsage(reported, undefined, () => shape.outputBytes(parseSpan(body, list)))
    const cost = context.quotedUsd(usage)
    const edit =
      usage === reported ? costEdit(body, usageSpan, cost) : usageEdit(body, usageSpan, shape.renderUsage(usage, cost))
    return { body: spliceReply(body, modelEdit(body, model, context.modelJson), edit), usage }
  }
}

// Edits of a reply: the model's name, and the cost in its usage.

const encoder = new TextEncoder()
const modelMember = encoder.encode('"model":')
const separator = Uint8Array.of(comma)

/** A scratch pad: filled and read within one call, never between two. */
const costSpans = new JsonSpans(['cost'])

/** Adds `cost` to the usage object, or replaces the provider's. */
export function costEdit(bytes: Uint8Array, span: JsonSpan, cost: string): ByteEdit {
  costSpans.read(bytes, span.start, span.end)
  const existing = costSpans.of.cost
  if (existing.start >= 0) return { start: existing.start, end: existing.end, bytes: encoder.encode(cost) }
  const at = lastInside(bytes, span)
  const text = bytes[at - 1] === openBrace ? `"cost":${cost}` : `,"cost":${cost}`
  return { start: at, end: at, bytes: encoder.encode(text) }
}

/** Replaces the provider's usage object with ours, or adds it at the end of the object. */
export function usageEdit(
  bytes: Uint8Array,
  span: JsonSpan,
  usageJson: string,
  objectEnd = bytes.length,
  name = 'usage',
): ByteEdit {
  if (span.start >= 0) return { start: span.start, end: span.end, bytes: encoder.encode(usageJson) }
  let at = objectEnd - 1
  while (at > 0 && bytes[at] !== closeBrace) at--
  return { start: at, end: at, bytes: encoder.encode(`,"${name}":${usageJson}`) }
}

/** The offset after the last byte of an object that is neither whitespace nor its closing brace. */
function lastInside(bytes: Uint8Array, span: JsonSpan): number {
  let at = span.end - 1
  while (at > span.start && ((bytes[at] as number) <= 0x20 || (at === span.end - 1 && bytes[at] === closeBrace))) at--
  return at + 1
}

/** Replaces the provider's model name with the catalog id, or adds it as the first member. `name`: of that, with its colon. */
export function modelEdit(
  bytes: Uint8Array,
  span: JsonSpan,
  modelJson: Uint8Array,
  objectStart = 0,
  name = modelMember,
): ByteEdit {
  if (span.start >= 0) return { start: span.start, end: span.end, bytes: modelJson }
  const at = bytes.indexOf(openBrace, objectStart) + 1
  let next = at
  while ((bytes[next] as number) <= 0x20) next++
  const member = bytes[next] === closeBrace ? [name, modelJson] : [name, modelJson, separator]
  return { start: at, end: at, bytes: Buffer.concat(member) }
}

export function spliceReply(body: Uint8Array, model: ByteEdit, cost: ByteEdit): Uint8Array {
  return spliceBytes(body, model.start <= cost.start ? [model, cost] : [cost, model])
}

/** The parsed JSON value at a span; undefined if it does not parse. */
export function parseSpan(bytes: Uint8Array, span: JsonSpan): unknown {
  if (span.start < 0) return undefined
  try {
    return JSON.parse(utf8Text(bytes, span.start, span.end))
  } catch {
    return undefined
  }
}

/** Whether a member exists and is not null. */
export function isPresent(bytes: Uint8Array, span: JsonSpan): boolean {
  return span.start >= 0 && bytes[span.start] !== lowerN
}

/** Whether a member exists and is an object. */
export function isObject(bytes: Uint8Array, span: JsonSpan): boolean {
  return span.start >= 0 && bytes[span.start] === openBrace
}
