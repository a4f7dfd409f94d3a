// Relays Messages streams and replies as bytes. Records pass unchanged except for the model's name in message_start and
// the cost in the usage of message_delta.

import { closeBrace, utf8Text } from '../../../wire/bytes.ts'
import { JsonSpans, JsonTextMeter, spliceBytes } from '../../../wire/json.ts'
import { sseEvent } from '../../../wire/sse.ts'
import { createReplyRelay, isObject, modelEdit, parseSpan, RecordRelay } from '../../byte-lane/relay.ts'
import { recordOf } from '../../canonical/json.ts'
import { readErrorObject } from '../errors.ts'
import { countsOutput, mergeUsage, readUsage, renderDeltaUsage, renderUsage, type UsageMembers } from '../usage.ts'

const ping = sseEvent('ping', '{"type":"ping"}')

/** The generated text of a delta, and the name that opens a tool call. */
const textMeter = new JsonTextMeter(['text', 'thinking', 'partial_json'])
const toolNameMeter = new JsonTextMeter(['name'])

export class MessagesStreamRelay extends RecordRelay {
  readonly #json = new JsonSpans(['type', 'message', 'usage', 'delta', 'content_block', 'error'])
  readonly #message = new JsonSpans(['model', 'usage'])
  #usageSeen: UsageMembers = {}
  #searches = 0
  #started = false
  protected readonly renderUsage = renderDeltaUsage

  /** Before message_start only a comment is legal. */
  override keepAlive(): Uint8Array {
    return this.#started ? ping : super.keepAlive()
  }

  protected read(record: Uint8Array): void {
    // An invalid record is dropped; a stream without an end still fails.
    if (!this.#isWhole(record)) return
    switch (this.#typeOf(record)) {
      case 'content_block_delta':
        this.meaningful = true
        this.outputBytes += textMeter.count(record, this.sse.dataStart, this.sse.dataEnd)
        return this.pass(record)
      case 'message_start':
        return this.#readStart(record)
      case 'content_block_start':
        this.#readBlock(record)
        this.outputBytes += toolNameMeter.count(record, this.sse.dataStart, this.sse.dataEnd)
        return this.pass(record)
      case 'message_delta':
        return this.#readDelta(record)
      case 'message_stop':
        return this.finish(record)
      case 'error':
        this.#json.read(record, this.sse.dataStart, this.sse.dataEnd)
        this.fault = readErrorObject(parseSpan(record, this.#json.of.error))
        return
      default:
        // ping, content_block_stop, and future event types
        return this.pass(record)
    }
  }

  /**
   * Whether the data is a complete object. Deltas end with two braces, and a truncated one hardly ever does, so those
   * are not parsed.
   */
  #isWhole(record: Uint8Array): boolean {
    const { dataStart, dataEnd } = this.sse
    const endsTwice = record[dataEnd - 1] === closeBrace && record[dataEnd - 2] === closeBrace
    if (endsTwice && this.meaningful && !this.isUnterminated) return true
    return this.#json.read(record, dataStart, dataEnd)
  }

  /** The event line names the type; some hosts only name it in the data. */
  #typeOf(record: Uint8Array): string {
    const sse = this.sse
    if (sse.eventStart >= 0) return utf8Text(record, sse.eventStart, sse.eventEnd)
    if (!this.#json.read(record, sse.dataStart, sse.dataEnd)) return ''
    const type = parseSpan(record, this.#json.of.type)
    return typeof type === 'string' ? type : ''
  }

  #readStart(record: Uint8Array): void {
    this.#started = true
    const { message } = this.#json.of
    const read =
      this.#json.read(record, this.sse.dataStart, this.sse.dataEnd) &&
      this.#message.read(record, message.start, message.end)
    if (!read) return this.pass(record)
    const { model, usage } = this.#message.of
    this.#merge(parseSpan(record, usage))
    const named = modelEdit(record, model, this.context.modelJson, message.start)
    this.passEdited(record, named.start, named.end, named.bytes)
  }

  #readBlock(record: Uint8Array): void {
    if (!this.#json.read(record, this.sse.dataStart, this.sse.dataEnd)) return
    const { type, name } = recordOf(parseSpan(record, this.#json.of.content_block))
    // A block of text or thinking starts empty; any other is output by itself.
    if (type !== undefined && type !== 'text' && type !== 'thinking') this.meaningful = true
    if (type !== 'server_tool_use' || name !== 'web_search') return
    // The count is only reported at the end, which not every client waits for.
    this.#searches += 1
    this.#merge({ server_tool_use: { web_search_requests: this.#searches } })
  }

  #readDelta(record: Uint8Array): void {
    const { usage, delta } = this.#json.of
    if (!this.#json.read(record, this.sse.dataStart, this.sse.dataEnd)) return this.pass(record)
    // An end without a reason or content is an empty answer.
    if (!this.meaningful) this.meaningful = typeof recordOf(parseSpan(record, delta)).stop_reason === 'string'
    const atStart = this.usageSoFar
    const said = isObject(record, usage) ? parseSpan(record, usage) : undefined
    this.#merge(said)
    const reported = countsOutput(said) ? readUsage(this.#usageSeen) : undefined
    this.pass(spliceBytes(record, [this.quote(record, usage, reported, atStart, this.sse.dataEnd)]))
  }

  #merge(usage: unknown): void {
    this.#usageSeen = mergeUsage(this.#usageSeen, usage)
    this.usageSoFar = readUsage(this.#usageSeen) ?? this.usageSoFar
  }
}

export const relayReply = createReplyRelay({
  content: 'content',
  readUsage: (usage) => readUsage(mergeUsage({}, usage)),
  renderUsage,
  outputBytes: (content) =>
    Array.isArray(content) ? content.reduce((bytes, block) => bytes + blockBytes(block), 0) : 0,
  readErrorObject,
  isEmptyReply: ({ content, stop_reason }) =>
    typeof stop_reason !== 'string' && Array.isArray(content) && content.every((block) => blockBytes(block) === 0),
})

function blockBytes(block: unknown): number {
  const { text, thinking, name, input } = recordOf(block)
  const parts = [text, thinking, name].filter((part) => typeof part === 'string')
  if (input !== undefined) parts.push(JSON.stringify(input))
  return Buffer.byteLength(parts.join(''))
}
