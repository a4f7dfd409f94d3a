// Relaying replies to callers of the provider's own dialect: bytes pass unchanged except for the model's name and the
// usage.

import type { Usage } from '../../kernel/usage.ts'
import { carriageReturn, lineFeed } from '../../wire/bytes.ts'
import { JsonEdits, JsonNode, peekJson } from '../../wire/json.ts'
import { readSseRecord, SseSpans, SseSplitter, sseComment, sseEvent, withoutControlLines } from '../../wire/sse.ts'
import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import { recordOf } from '../canonical/json.ts'
import type { RelayContext, RelayReply, StreamRelay } from '../reply/relay.ts'

// Base class for streams: splits them into SSE records and joins the passed and edited ones. An unchanged record keeps its
// bytes.

/** Legal anywhere in a stream. Before the first record, and in some dialects later, clients accept nothing else. */
export const keepAliveComment = sseComment('keep-alive')

const nothing = new Uint8Array(0)
const lineEnd = Uint8Array.of(lineFeed)
const blankLine = Uint8Array.of(lineFeed, lineFeed)

export abstract class RecordRelay implements StreamRelay {
  meaningful = false
  finished = false
  terminal: Uint8Array = nothing
  usage: Usage | undefined
  usageSoFar: Usage | undefined
  usageAtStart: Usage | undefined
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
   * Set if a record ended with a CR at a chunk boundary: an LF that follows belongs to that record and is passed or
   * withheld with it.
   */
  #splitCrLf: 'passed' | 'withheld' | undefined

  constructor(protected readonly context: RelayContext) {}

  push(chunk: Uint8Array): Uint8Array {
    this.#splitter.push(chunk, this.#onRecord, this.#onComments)
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

  /** Passes the record with the model's name in one of its objects. */
  protected passNamed(record: Uint8Array, object: JsonNode): void {
    const edits = new JsonEdits(record)
    nameModel(edits, object, this.context)
    this.pass(edits.apply())
  }

  protected finish(record: Uint8Array): void {
    this.finished = true
    this.usage ??= this.context.quoteUsage(undefined, this.usageSoFar, () => this.outputBytes)
    // If only the CR of a final CRLF has arrived, add the LF: nothing is read after the end.
    const isSplit = record.at(-1) === carriageReturn && record.at(-2) === lineFeed
    this.terminal = isSplit ? Buffer.concat([record, lineEnd]) : record
  }

  /**
   * Takes what the provider reported about the whole reply, and writes its cost: into the object's usage if that is
   * charged, otherwise with our usage in its place. Returns what it has written.
   */
  protected quote(
    edits: JsonEdits,
    object: JsonNode,
    reported: Usage | undefined,
    atStart: Usage | undefined,
    name = 'usage',
  ): { readonly usage: Usage; readonly cost: string } {
    const usage = this.context.quoteUsage(reported, atStart, () => this.outputBytes)
    this.usage = usage
    this.bytesAtReport = this.outputBytes
    const cost = this.context.quotedUsd(usage)
    const theirs = usage.source === 'reported' ? object.get(name) : undefined
    if (theirs?.kind === 'object') edits.put(theirs, 'cost', cost)
    else edits.put(object, name, this.renderUsage(usage, cost))
    return { usage, cost }
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

  readonly #onComments = (comments: Uint8Array): void => {
    this.#splitCrLf = undefined
    if (!this.finished && this.fault === undefined) this.pass(comments)
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

export interface ReplyShape {
  /** The required member of a reply, a list. */
  readonly content: string
  /** `content`: the list in the reply, where some dialects count what they bill. */
  readUsage(value: unknown, content: JsonNode, reply: JsonNode): Usage | undefined
  renderUsage(usage: Usage, cost: string): string
  /** Bytes of generated text in the list. */
  outputBytes(content: unknown): number
  readErrorObject(error: unknown): ProviderFault
  /** Whether the reply has neither content nor a proper stop reason. */
  isEmptyReply(reply: Record<string, unknown>): boolean
}

/** Longer lists are never empty; shorter ones are parsed. */
const emptyBytesMax = 300

export function createReplyRelay(shape: ReplyShape): RelayReply {
  return (body, context) => {
    const reply = readReply(body, shape.readErrorObject)
    if (!(reply instanceof JsonNode)) return reply
    const list = reply.get(shape.content)
    if (list?.kind !== 'array') return { fault: replyFault(`a reply without ${shape.content}`) }
    if (list.end - list.start < emptyBytesMax && shape.isEmptyReply(recordOf(reply.value()))) {
      return { fault: replyFault('an empty answer') }
    }
    const written = reply.get('usage')
    const reported = written?.kind === 'object' ? shape.readUsage(written.value(), list, reply) : undefined
    const usage = context.quoteUsage(reported, undefined, () => shape.outputBytes(list.value()))
    const cost = context.quotedUsd(usage)
    const edits = new JsonEdits(body)
    nameModel(edits, reply, context)
    if (written && usage.source === 'reported') edits.put(written, 'cost', cost)
    else edits.put(reply, 'usage', shape.renderUsage(usage, cost))
    return { body: edits.apply(), usage }
  }
}

/** Returns a fault if the body is not a JSON object or has an error. */
export function readReply(
  body: Uint8Array,
  readErrorObject: (error: unknown) => ProviderFault,
): JsonNode | { readonly fault: ProviderFault } {
  const reply = peekJson(body, 0, body.length)
  if (!reply) return { fault: replyFault('a reply that is not a complete JSON object') }
  const error = reply.get('error')
  return isPresent(error) ? { fault: readErrorObject(error.value()) } : reply
}

/** Whether a member exists and is not null. */
export function isPresent(member: JsonNode | undefined): member is JsonNode {
  return member !== undefined && member.kind !== 'null'
}

/** Replaces the provider's model name with the catalog id, or adds it as the first member. */
export function nameModel(edits: JsonEdits, object: JsonNode, { modelJson }: RelayContext, name = 'model'): void {
  edits.put(object, name, modelJson, 'first')
}
