// A provider's Responses stream, read into canonical events. Items are told apart by their number; what is told twice, as
// deltas and again as a whole, counts once. The end is the provider's own word and never made up.

import type { Usage } from '../../kernel/usage.ts'
import { type SseEvent, SseReader } from '../../wire/sse-reader.ts'
import { parseRecord, rawJsonAt, recordOf, textOf } from '../canonical/json.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import type { StreamParser, Target } from '../canonical/translation.ts'
import { ReplyBuilder } from '../reply/builder.ts'
import { readErrorObject } from './failure.ts'
import { kindOf } from './output-item.ts'
import { type ItemPlace, OutputItems } from './output-items.ts'
import { signReasoning } from './reasoning-proof.ts'
import { readStop } from './stop-reason.ts'
import { readUsage } from './usage.ts'

type Fields = Record<string, unknown>

/**
 * The first and last records repeat the instructions and tools of the request, which has 32 MiB at most, and the last
 * one the whole reply.
 */
const recordBytesMax = 40 * 1024 * 1024

export function parseStream(target: Target): StreamParser {
  return new ResponsesStreamParser(target)
}

class ResponsesStreamParser implements StreamParser {
  skipped = 0
  readonly #reader = new SseReader({ recordBytesMax })
  readonly #reply: ReplyBuilder
  readonly #items: OutputItems
  #id = ''
  #usage: Usage | undefined

  constructor({ issuer }: Target) {
    this.#reply = new ReplyBuilder(() => signReasoning(issuer, this.#items.takeProof()))
    this.#items = new OutputItems(this.#reply, (place) => this.#mintId(place))
  }

  get usageSoFar(): Usage | undefined {
    return this.#usage
  }

  push(chunk: Uint8Array): readonly ReplyEvent[] {
    for (const event of this.#reader.push(chunk)) this.#read(event)
    return this.#reply.take()
  }

  end(): readonly ReplyEvent[] {
    for (const event of this.#reader.end()) this.#read(event)
    if (!this.#reply.over) this.#reply.fail('a stream without an end')
    return this.#reply.take()
  }

  #read({ event, data }: SseEvent): void {
    if (this.#reply.over || data.trim() === '[DONE]') return
    const record = parseRecord(data)
    if (record === undefined) {
      this.skipped += 1
      return
    }
    const type = textOf(record.type) || event
    // The members of an error stand in the event itself, or in an object of their own.
    if (type === 'error' || (record.error ?? null) !== null)
      return this.#reply.fail(readErrorObject(record.error ?? record))
    this.#readEvent(type, record, data)
  }

  #readEvent(type: string, record: Fields, json: string): void {
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#start(recordOf(record.response))
      case 'response.output_item.added':
      case 'response.output_item.done':
        return this.#readItem(placeOf(record), recordOf(record.item), type.endsWith('.done'), () =>
          argumentsAt(json, ['item']),
        )
      case 'response.output_text.delta':
        return this.#push(record, 'text', record.content_index)
      case 'response.refusal.delta':
        return this.#push(record, 'refusal', record.content_index)
      case 'response.reasoning_summary_text.delta':
        return this.#push(record, 'thinking', record.summary_index)
      case 'response.reasoning_text.delta':
        return this.#push(record, 'thinking', `text ${record.content_index}`)
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#push(record, 'arguments', '')
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#end(recordOf(record.response), type.slice('response.'.length), json)
      case 'keepalive':
      case 'ping':
        if (this.#reply.started) this.#reply.keepAlive()
    }
  }

  #start(response: Fields): void {
    if (this.#id === '') this.#id = textOf(response.id)
    this.#usage = readUsage(response.usage) ?? this.#usage
    this.#reply.start(this.#id === '' ? undefined : this.#id, this.#usage)
  }

  #push(record: Fields, kind: 'text' | 'refusal' | 'thinking' | 'arguments', part: unknown): void {
    this.#start({})
    this.#items.push(placeOf(record), { kind, text: textOf(record.delta), part: String(part) })
  }

  #readItem(place: ItemPlace, fields: Fields, isDone: boolean, rawArguments: () => string): void {
    this.#start({})
    const id = textOf(fields.id)
    const kind = kindOf(fields)
    const isNamed = place.index !== undefined || id !== ''
    const known = isDone || isNamed ? this.#items.find({ ...place, id }) : undefined
    if (isDone && known?.isDone && known.id === id) return
    // Hosts that do not count give every item the same number.
    const isSame = known && !known.isDone && (isDone || known.kind === kind)
    const item = isSame ? known : this.#items.begin(kind, { ...place, id })
    item.describe(fields, rawArguments)
    item.isDone = isDone
    this.#items.advance()
  }

  #end(response: Fields, word: string, json: string): void {
    const status = textOf(response.status) || word
    const usage = readUsage(response.usage)
    // Also where the reply failed: what the provider counted is better than an estimate of what was delivered.
    this.#usage = usage ?? this.#usage
    if (status !== 'completed' && status !== 'incomplete') {
      return this.#reply.fail(readErrorObject(response.error ?? { message: `the reply was ${status}` }))
    }
    this.#start(response)
    this.#readOutput(response.output, json)
    this.#items.end()
    const reason = textOf(recordOf(response.incomplete_details).reason) || 'incomplete'
    const { hasCalls, refusal } = this.#items
    const stop = readStop({ incomplete: status === 'incomplete' ? reason : '', hasCalls, refusal })
    this.#reply.end(stop, usage)
  }

  /** The end repeats all items. They count where none was streamed, or where one was not told to its end. */
  #readOutput(output: unknown, json: string): void {
    if (!Array.isArray(output)) return
    const isAll = !this.#items.hasAny
    for (const [index, value] of output.entries()) {
      const fields = recordOf(value)
      const rawArguments = () => argumentsAt(json, ['response', 'output', index])
      if (isAll) this.#readItem({ index, id: '' }, fields, true, rawArguments)
      else this.#items.findAgain(index, textOf(fields.id), kindOf(fields))?.describe(fields, rawArguments)
    }
  }

  /** The reply's own id makes it unique in the conversation. */
  #mintId(place: number): string {
    const reply = this.#id.replaceAll(/[^A-Za-z0-9]/g, '').slice(-16)
    return reply === '' ? `call_tg_${place}` : `call_tg_${reply}_${place}`
  }
}

function placeOf({ output_index, item_id }: Fields): ItemPlace {
  return { index: typeof output_index === 'number' ? output_index : undefined, id: textOf(item_id) }
}

function argumentsAt(json: string, path: readonly (string | number)[]): string {
  return rawJsonAt(json, [...path, 'arguments']) ?? ''
}
