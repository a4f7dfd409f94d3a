// Relays Responses streams and replies as bytes. Records pass unchanged except for the model's name in those that repeat
// the response, and the cost in the usage of the last one.

import { estimatedInput } from '../../../kernel/usage.ts'
import { utf8Text } from '../../../wire/bytes.ts'
import { type JsonSpan, JsonSpans, JsonTextMeter } from '../../../wire/json.ts'
import { readSseRecord, sseEvent } from '../../../wire/sse.ts'
import {
  createReplyRelay,
  isObject,
  modelEdit,
  parseSpan,
  RecordRelay,
  type RelayReply,
  spliceReply,
} from '../../byte-lane/relay.ts'
import { isRecord, parseJson, parseRecord, recordOf, textOf } from '../../canonical/json.ts'
import type { EventNumbering } from '../../canonical/translation.ts'
import { readErrorObject } from '../errors.ts'
import { countSearches, mayHaveSearch, readUsage, renderUsage, withSearches } from '../usage.ts'
import { unpaidError } from './render.ts'

/** Generated text in deltas, and the name that opens a call. */
const deltaMeter = new JsonTextMeter(['delta'])
const nameMeter = new JsonTextMeter(['name'])

export class ResponsesStreamRelay extends RecordRelay {
  readonly #json = new JsonSpans(['type', 'response', 'item', 'error', 'sequence_number'])
  readonly #response = new JsonSpans(['id', 'model', 'usage'])
  #nextNumber = 0
  #responseId = ''
  /** Only of a response that is stored: some servers leave the output out of the last event. */
  readonly #items: unknown[] = []
  #searches = 0
  protected readonly renderUsage = renderUsage

  get numbering(): EventNumbering {
    return { responseId: this.#responseId, next: this.#nextNumber }
  }

  protected read(record: Uint8Array): void {
    const { dataStart, dataEnd } = this.sse
    // An invalid record is dropped; a stream without an end still fails.
    if (!this.#json.read(record, dataStart, dataEnd)) return
    const type = this.#typeOf(record)
    if (type !== 'response.failed' && type !== 'error') this.#count(record)
    if (type.endsWith('.delta')) {
      this.outputBytes += deltaMeter.count(record, dataStart, dataEnd)
      if (this.outputBytes > 0) this.meaningful = true
      return this.pass(record)
    }
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#passNamed(this.#withState(record))
      case 'response.output_item.added':
        this.outputBytes += nameMeter.count(record, this.#json.of.item.start, this.#json.of.item.end)
        this.#readItem(record)
        return this.pass(record)
      case 'response.output_item.done':
        if (this.context.stateEcho?.store) this.#items.push(parseSpan(record, this.#json.of.item))
        if (mayHaveSearch(record)) this.#countSearch(parseSpan(record, this.#json.of.item))
        return this.pass(record)
      case 'response.completed':
        return this.#end(this.#withState(record))
      case 'response.incomplete':
        return this.#end(this.context.isCapLowered ? asUnpaid(record) : this.#withState(record))
      case 'response.failed':
      case 'response.cancelled':
        return this.#fail(record)
      case 'error':
        this.fault = readErrorObject(
          parseSpan(record, this.#json.of.error) ?? parseSpan(record, { start: dataStart, end: dataEnd }),
        )
        return
      default:
        return this.pass(record)
    }
  }

  /** Providers bill a search when it has run, however the answer ends. */
  #countSearch(item: unknown): void {
    this.#searches += countSearches([item])
    this.usageSoFar = withSearches(estimatedInput(0), this.#searches)
  }

  #typeOf(record: Uint8Array): string {
    const { eventStart, eventEnd } = this.sse
    if (eventStart >= 0) return utf8Text(record, eventStart, eventEnd)
    return textOf(parseSpan(record, this.#json.of.type))
  }

  #count(record: Uint8Array): void {
    const number = parseSpan(record, this.#json.of.sequence_number)
    this.#nextNumber = typeof number === 'number' ? number + 1 : this.#nextNumber + 1
  }

  /** A message and reasoning start empty; any other item is output by itself. */
  #readItem(record: Uint8Array): void {
    const { type } = recordOf(parseSpan(record, this.#json.of.item))
    if (type !== undefined && type !== 'message' && type !== 'reasoning') this.meaningful = true
  }

  /** The provider stores nothing and was given no earlier response, so it says so. */
  #withState(record: Uint8Array): Uint8Array {
    const { stateEcho } = this.context
    if (!stateEcho) return record
    const written = withResponse(record, ({ output }) => {
      const isLeftOut = this.#items.length > 0 && Array.isArray(output) && output.length === 0
      return { ...stateEcho, ...(isLeftOut && { output: this.#items }) }
    })
    this.sse.read(written)
    this.#json.read(written, this.sse.dataStart, this.sse.dataEnd)
    return written
  }

  #passNamed(record: Uint8Array): void {
    const { response } = this.#json.of
    if (!this.#response.read(record, response.start, response.end)) return this.pass(record)
    this.#responseId ||= textOf(parseSpan(record, this.#response.of.id))
    const { start, end, bytes } = modelEdit(record, this.#response.of.model, this.context.modelJson, response.start)
    this.passEdited(record, start, end, bytes)
  }

  #end(record: Uint8Array): void {
    this.sse.read(record)
    this.#json.read(record, this.sse.dataStart, this.sse.dataEnd)
    const { response } = this.#json.of
    this.meaningful = true
    if (!this.#response.read(record, response.start, response.end)) return this.finish(record)
    const { model, usage } = this.#response.of
    const reported = isObject(record, usage)
      ? withSearches(readUsage(parseSpan(record, usage)), this.#searches)
      : undefined
    const edit = this.quote(record, usage, reported, this.usageSoFar, response.end)
    this.finish(spliceReply(record, modelEdit(record, model, this.context.modelJson, response.start), edit))
  }

  #fail(record: Uint8Array): void {
    const { error, usage, status } = recordOf(parseSpan(record, this.#json.of.response))
    this.usageSoFar = withSearches(readUsage(usage), this.#searches) ?? this.usageSoFar
    this.fault = readErrorObject(error ?? { message: `the reply was ${textOf(status) || 'not completed'}` })
  }
}

/** The same response as one that failed; see `unpaidError`. */
function asUnpaid(record: Uint8Array): Uint8Array {
  const failed = { status: 'failed', error: parseJson(unpaidError), incomplete_details: null }
  return withResponse(record, () => failed, 'response.failed')
}

/** The record with other members in its response; unchanged if it has none. */
function withResponse(
  record: Uint8Array,
  membersFor: (response: Record<string, unknown>) => object,
  newType?: string,
): Uint8Array {
  const event = recordOf(parseRecord(readSseRecord(record).data ?? ''))
  if (!isRecord(event.response)) return record
  const type = newType ?? textOf(event.type)
  const response = { ...event.response, ...membersFor(event.response) }
  return sseEvent(type, JSON.stringify({ ...event, ...(newType && { type }), response }))
}

export const relayReply: RelayReply = (body, context) => {
  const reply = context.stateEcho && parseRecord(utf8Text(body, 0, body.length))
  return relayWhole(
    reply ? new TextEncoder().encode(JSON.stringify({ ...reply, ...context.stateEcho })) : body,
    context,
  )
}

const relayWhole = createReplyRelay({
  content: 'output',
  readUsage: (value, reply, output) => withSearches(readUsage(value), searchesIn(reply, output)),
  renderUsage,
  outputBytes: (output) => (Array.isArray(output) ? output.reduce((bytes, item) => bytes + itemBytes(item), 0) : 0),
  readErrorObject,
  isEmptyReply: ({ output, status }) =>
    status !== 'completed' && status !== 'incomplete' && Array.isArray(output) && output.length === 0,
})

function searchesIn(reply: Uint8Array, output: JsonSpan): number {
  if (!mayHaveSearch(reply)) return 0
  const items = parseSpan(reply, output)
  return Array.isArray(items) ? countSearches(items) : 0
}

const textMeter = new JsonTextMeter(['text', 'refusal', 'name', 'arguments', 'input'])

function itemBytes(item: unknown): number {
  const json = Buffer.from(JSON.stringify(item ?? null))
  return textMeter.count(json, 0, json.length)
}
