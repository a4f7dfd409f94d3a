// Relays Responses streams and replies as bytes. Records pass unchanged except for the model's name in those that repeat
// the response, and the cost in the usage of the last one.

import { estimatedInput } from '../../../kernel/usage.ts'
import { utf8Text } from '../../../wire/bytes.ts'
import { JsonEdits, type JsonNode, peekJson } from '../../../wire/json.ts'
import { JsonTextMeter } from '../../../wire/json-text-meter.ts'
import { readSseRecord, sseEvent } from '../../../wire/sse.ts'
import { createReplyRelay, nameModel, RecordRelay } from '../../byte-lane/relay.ts'
import { isRecord, parseJson, parseRecord, recordOf, textOf } from '../../canonical/json.ts'
import type { EventNumbering } from '../../canonical/translation.ts'
import type { RelayReply } from '../../reply/relay.ts'
import { readErrorObject } from '../errors.ts'
import { countSearches, mayHaveSearch, readUsage, renderUsage, withSearches } from '../usage.ts'
import { unpaidError } from './render.ts'

/** Generated text in deltas, and the name that opens a call. */
const deltaMeter = new JsonTextMeter(['delta'])
const nameMeter = new JsonTextMeter(['name'])

export class ResponsesStreamRelay extends RecordRelay {
  #nextNumber = 0
  #responseId = ''
  /** Only if the response or its items are kept: some servers leave the output out of the last event. */
  readonly #items: unknown[] = []
  #searches = 0
  protected readonly renderUsage = renderUsage

  get numbering(): EventNumbering {
    return { responseId: this.#responseId, next: this.#nextNumber }
  }

  protected read(record: Uint8Array): void {
    const { dataStart, dataEnd, eventStart, eventEnd } = this.sse
    // An invalid record is dropped; a stream without an end still fails.
    const event = peekJson(record, dataStart, dataEnd)
    if (!event) return
    const type = eventStart >= 0 ? utf8Text(record, eventStart, eventEnd) : (event.get('type')?.string ?? '')
    if (type !== 'response.failed' && type !== 'error') this.#count(event)
    if (type.endsWith('.delta')) {
      this.outputBytes += deltaMeter.count(record, dataStart, dataEnd)
      if (this.outputBytes > 0) this.meaningful = true
      return this.pass(record)
    }
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#readState(this.#withState(record, event))
      case 'response.output_item.added':
        this.#startItem(record, event.get('item'))
        return this.pass(record)
      case 'response.output_item.done':
        if (this.context.stateEcho?.store || this.context.keepsItems) this.#items.push(event.get('item')?.value())
        if (mayHaveSearch(record)) this.#countSearch(event.get('item')?.value())
        return this.pass(record)
      case 'response.completed':
        return this.#end(this.#withState(record, event))
      case 'response.incomplete':
        return this.#end(this.context.isCapLowered ? asUnpaid(record) : this.#withState(record, event))
      case 'response.failed':
      case 'response.cancelled':
        return this.#fail(recordOf(event.get('response')?.value()))
      case 'error':
        this.fault = readErrorObject(event.get('error')?.value() ?? event.value())
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

  #count(event: JsonNode): void {
    const number = event.get('sequence_number')?.value()
    this.#nextNumber = typeof number === 'number' ? number + 1 : this.#nextNumber + 1
  }

  /** A message and reasoning start empty; any other item is output by itself. */
  #startItem(record: Uint8Array, item: JsonNode | undefined): void {
    if (!item) return
    this.outputBytes += nameMeter.count(record, item.start, item.end)
    const { type } = recordOf(item.value())
    if (type !== undefined && type !== 'message' && type !== 'reasoning') this.meaningful = true
  }

  /** The provider stores nothing and was given no earlier response, so it says so. */
  #withState(record: Uint8Array, event: JsonNode): Uint8Array {
    const { stateEcho } = this.context
    const output = this.#items.length > 0 ? event.get('response')?.get('output') : undefined
    const isLeftOut = output?.kind === 'array' && output.at(0) === undefined
    if (!stateEcho && !isLeftOut) return record
    return withResponse(record, () => ({ ...stateEcho, ...(isLeftOut && { output: this.#items }) }))
  }

  #readState(record: Uint8Array): void {
    const response = this.#responseIn(record)
    if (!response?.members()) return this.pass(record)
    this.#responseId ||= response.get('id')?.string ?? ''
    this.passNamed(record, response)
  }

  #end(record: Uint8Array): void {
    const response = this.#responseIn(record)
    this.meaningful = true
    if (!response?.members()) return this.finish(record)
    const usage = response.get('usage')
    const tier = response.get('service_tier')?.string
    const reported = usage?.kind === 'object' ? withSearches(readUsage(usage.value(), tier), this.#searches) : undefined
    const edits = new JsonEdits(record)
    nameModel(edits, response, this.context)
    this.quote(edits, response, reported, this.usageSoFar)
    this.finish(edits.apply())
  }

  /** Of a record that may have been written anew. */
  #responseIn(record: Uint8Array): JsonNode | undefined {
    this.sse.read(record)
    return peekJson(record, this.sse.dataStart, this.sse.dataEnd)?.get('response')
  }

  #fail({ error, usage, status, service_tier }: Readonly<Record<string, unknown>>): void {
    this.usageSoFar = withSearches(readUsage(usage, service_tier), this.#searches) ?? this.usageSoFar
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
  readUsage: (value, output, response) =>
    withSearches(readUsage(value, response.get('service_tier')?.string), searchesIn(output)),
  renderUsage,
  outputBytes: (output) => (Array.isArray(output) ? output.reduce((bytes, item) => bytes + itemBytes(item), 0) : 0),
  readErrorObject,
  isEmptyReply: ({ output, status }) =>
    status !== 'completed' && status !== 'incomplete' && Array.isArray(output) && output.length === 0,
})

function searchesIn(output: JsonNode): number {
  const items = mayHaveSearch(output.bytes) ? output.value() : undefined
  return Array.isArray(items) ? countSearches(items) : 0
}

const textMeter = new JsonTextMeter(['text', 'refusal', 'name', 'arguments', 'input'])

function itemBytes(item: unknown): number {
  const json = Buffer.from(JSON.stringify(item ?? null))
  return textMeter.count(json, 0, json.length)
}
