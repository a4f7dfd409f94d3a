// Relays Messages streams and replies as bytes. Records pass unchanged except for the model's name in message_start and
// the cost in the usage of message_delta.

import type { Usage } from '../../../kernel/usage.ts'
import { closeBrace, utf8Text } from '../../../wire/bytes.ts'
import { JsonEdits, type JsonNode, peekJson } from '../../../wire/json.ts'
import { JsonTextMeter } from '../../../wire/json-text-meter.ts'
import { sseEvent } from '../../../wire/sse.ts'
import { createReplyRelay, RecordRelay } from '../../byte-lane/relay.ts'
import { recordOf } from '../../canonical/json.ts'
import { readErrorObject } from '../errors.ts'
import { countsOutput, mergeUsage, readUsage, renderDeltaUsage, renderUsage, type UsageMembers } from '../usage.ts'

const ping = sseEvent('ping', '{"type":"ping"}')

/** The generated text of a delta, and the name that opens a tool call. */
const textMeter = new JsonTextMeter(['text', 'thinking', 'partial_json'])
const toolNameMeter = new JsonTextMeter(['name'])

export class MessagesStreamRelay extends RecordRelay {
  #usageSeen: UsageMembers = {}
  #searches = 0
  #started = false
  protected readonly renderUsage = renderDeltaUsage

  /** Before message_start only a comment is legal. */
  override keepAlive(): Uint8Array {
    return this.#started ? ping : super.keepAlive()
  }

  protected read(record: Uint8Array): void {
    const { dataStart, dataEnd, eventStart, eventEnd } = this.sse
    const named = eventStart >= 0 ? utf8Text(record, eventStart, eventEnd) : undefined
    if (named === 'content_block_delta' && this.#looksWhole(record)) return this.#passDelta(record)
    const event = peekJson(record, dataStart, dataEnd)
    // An invalid record is dropped; a stream without an end still fails.
    if (!event) return
    // The event line names the type; some hosts only name it in the data.
    switch (named ?? event.get('type')?.string) {
      case 'content_block_delta':
        return this.#passDelta(record)
      case 'message_start':
        return this.#readStart(record, event.get('message'))
      case 'content_block_start':
        this.#readBlock(recordOf(event.get('content_block')?.value()))
        this.outputBytes += toolNameMeter.count(record, dataStart, dataEnd)
        return this.pass(record)
      case 'message_delta':
        return this.#readDelta(record, event)
      case 'message_stop':
        return this.finish(record)
      case 'error':
        this.fault = readErrorObject(event.get('error')?.value())
        return
      default:
        // ping, content_block_stop, and future event types
        return this.pass(record)
    }
  }

  /** Deltas end with two braces, and a truncated one hardly ever does, so they are not parsed once the first has been. */
  #looksWhole(record: Uint8Array): boolean {
    const { dataEnd } = this.sse
    const endsTwice = record[dataEnd - 1] === closeBrace && record[dataEnd - 2] === closeBrace
    return endsTwice && this.meaningful && !this.isUnterminated
  }

  #passDelta(record: Uint8Array): void {
    this.meaningful = true
    this.outputBytes += textMeter.count(record, this.sse.dataStart, this.sse.dataEnd)
    this.pass(record)
  }

  #readStart(record: Uint8Array, message: JsonNode | undefined): void {
    this.#started = true
    if (!message?.members()) return this.pass(record)
    this.usageAtStart = this.#merge(message.get('usage')?.value())
    this.passNamed(record, message)
  }

  #readBlock({ type, name }: Readonly<Record<string, unknown>>): void {
    // A block of text or thinking starts empty; any other is output by itself.
    if (type !== undefined && type !== 'text' && type !== 'thinking') this.meaningful = true
    if (type !== 'server_tool_use' || name !== 'web_search') return
    // The count is only reported at the end, which not every client waits for.
    this.#searches += 1
    this.usageAtStart = this.#merge({ server_tool_use: { web_search_requests: this.#searches } })
  }

  #readDelta(record: Uint8Array, event: JsonNode): void {
    // An end without a reason or content is an empty answer.
    if (!this.meaningful) this.meaningful = event.get('delta')?.get('stop_reason')?.kind === 'string'
    const usage = event.get('usage')
    const said = usage?.kind === 'object' ? usage.value() : undefined
    this.#merge(said)
    const reported = countsOutput(said) ? readUsage(this.#usageSeen) : undefined
    const edits = new JsonEdits(record)
    this.quote(edits, event, reported, this.usageAtStart)
    this.pass(edits.apply())
  }

  #merge(usage: unknown): Usage | undefined {
    this.#usageSeen = mergeUsage(this.#usageSeen, usage)
    this.usageSoFar = readUsage(this.#usageSeen) ?? this.usageSoFar
    return this.usageSoFar
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
