// Parses a Responses stream or whole reply. Items are identified by their index. Content that arrives both as deltas and
// as a whole counts once. The reply only ends with the provider's terminal event.
//
// A provider may interleave the pieces of several items. The output is whole items in the order in which they started;
// the first unfinished one streams.

import type { RequestId } from '../../../kernel/ids.ts'
import { isRecord, listOf, rawJsonAt, recordOf, textOf } from '../../canonical/json.ts'
import type { ReplyBlock, Stop } from '../../canonical/reply.ts'
import type { StreamParser, Target } from '../../canonical/translation.ts'
import { ArgumentScan, ReplyBuilder, SseReplyParser } from '../../reply/builder.ts'
import { unwrapArguments } from '../../request/tools.ts'
import { readErrorObject } from '../errors.ts'
import {
  type ReasoningItem,
  type ReasoningProof,
  readReasoningItem,
  signReasoning,
  summaryTexts,
} from '../reasoning.ts'
import { readUsage } from '../usage.ts'

type Fields = Record<string, unknown>

/**
 * The first and last records repeat the instructions and tools of the request, which has at most 32 MiB, and the last
 * one the whole reply.
 */
const recordBytesMax = 40 * 1024 * 1024

/** `other`: an item that only its provider can use. */
type ItemKind = 'message' | 'reasoning' | 'call' | 'other'

const itemKinds: Readonly<Record<string, ItemKind>> = {
  message: 'message',
  reasoning: 'reasoning',
  function_call: 'call',
  custom_tool_call: 'call',
}

type PieceKind = 'text' | 'refusal' | 'thinking' | 'arguments'

/** `part`: of its item; parts of thinking become paragraphs. */
interface Piece {
  readonly kind: PieceKind
  readonly text: string
  readonly part?: string
}

/** The kind of the piece, the kind of an item that was not announced, and the member that numbers parts. */
const deltas: Readonly<Record<string, readonly [PieceKind, ItemKind, string?]>> = {
  'response.output_text.delta': ['text', 'message'],
  'response.refusal.delta': ['refusal', 'message'],
  'response.reasoning_summary_text.delta': ['thinking', 'reasoning', 'summary_index'],
  'response.reasoning_text.delta': ['thinking', 'reasoning', 'content_index'],
  'response.function_call_arguments.delta': ['arguments', 'call'],
  'response.custom_tool_call_input.delta': ['arguments', 'call'],
}

/** How an event identifies its item. */
interface ItemPlace {
  readonly index: number | undefined
  /** '' if it does not. */
  readonly id: string
}

export function parseStream(target: Target, requestId: RequestId): StreamParser {
  return new ResponsesStreamParser(target, requestId)
}

class ResponsesStreamParser extends SseReplyParser {
  /** Items not passed on completely; the first one streams. */
  readonly #waiting: OutputItem[] = []
  readonly #byIndex = new Map<number, OutputItem>()
  readonly #byId = new Map<string, OutputItem>()
  #latest: OutputItem | undefined
  /** Encrypted reasoning without a successor so far. */
  #sealed: ReasoningItem[] = []
  /** The successor of the reasoning, while its block is being opened. */
  #follower: { readonly call: string | undefined } | undefined
  #lastBlock: ReplyBlock['kind'] | undefined
  /** The item whose block is open. */
  #owner: OutputItem | undefined
  /** The item and part of the last thinking. */
  #part: { readonly item: OutputItem; readonly name: string | undefined } | undefined
  /** Blank text that opened no block; passed on if nothing else comes. */
  #blank = ''
  #refusal = ''
  #calls = 0
  readonly #callIds = new Set<string>()

  constructor({ issuer }: Target, requestId: RequestId) {
    const sign = () => signReasoning(issuer, this.#takeProof())
    super(new ReplyBuilder(sign), { readErrorObject, recordBytesMax }, requestId)
  }

  /** The terminal event is what counts. */
  protected override done(): void {}

  /** Without a final status it is a fault. */
  protected readWhole(response: Fields, json: string): void {
    const { output, status } = response
    if (!Array.isArray(output)) return this.reply.fail('a reply without output')
    if (status !== 'completed' && status !== 'incomplete') return this.reply.fail('a reply without an end')
    this.#end(response, status, json, [])
  }

  protected read(record: Fields, event: string, json: string): void {
    const type = textOf(record.type) || event
    if (Object.hasOwn(deltas, type)) return this.#readDelta(record, ...(deltas[type] as (typeof deltas)[string]))
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#start(recordOf(record.response))
      case 'response.output_item.added':
      case 'response.output_item.done': {
        const place = { ...placeOf(record), id: textOf(recordOf(record.item).id) }
        const rawArguments = () => rawJsonAt(json, ['item', 'arguments'])
        return this.#readItem(place, recordOf(record.item), type.endsWith('.done'), rawArguments)
      }
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#end(recordOf(record.response), type.slice('response.'.length), json, ['response'])
      case 'keepalive':
      case 'ping':
        if (this.reply.started) this.reply.keepAlive()
    }
  }

  #start(response: Fields): void {
    if (this.id === '') this.id = textOf(response.id)
    this.usageSoFar = readUsage(response.usage, response.service_tier) ?? this.usageSoFar
    this.start()
  }

  #readDelta(record: Fields, kind: PieceKind, itemKind: ItemKind, partName = ''): void {
    this.#start({})
    const place = placeOf(record)
    const item = this.#find(place) ?? this.#begin(itemKind, place)
    const text = textOf(record.delta)
    if (text === '' || item.kind === 'other') return
    if (item.isDone) return this.reply.fail('a piece of an item that had ended')
    item.held.push({ kind, text, part: `${partName} ${record[partName]}` })
    item.isStreamed = true
    this.#advance()
  }

  #readItem(place: ItemPlace, fields: Fields, isDone: boolean, rawArguments: () => string | undefined): void {
    this.#start({})
    const kind = kindOf(fields)
    const isNamed = place.index !== undefined || place.id !== ''
    const known = isDone || isNamed ? this.#find(place) : undefined
    if (isDone && known?.isDone && known.id === place.id) return
    // Some hosts give every item the same index.
    const isSame = known && !known.isDone && (isDone || known.kind === kind)
    const item = isSame ? known : this.#begin(kind, place)
    item.describe(fields, rawArguments)
    item.isDone = isDone
    this.#advance()
  }

  /** `path`: where the response is in the JSON text. */
  #end(response: Fields, word: string, json: string, path: readonly string[]): void {
    const status = textOf(response.status) || word
    const usage = readUsage(response.usage, response.service_tier)
    // Also for a failed reply: reported usage is better than an estimate.
    this.usageSoFar = usage ?? this.usageSoFar
    if (status !== 'completed' && status !== 'incomplete') {
      return this.reply.fail(readErrorObject(response.error ?? { message: `the reply was ${status}` }))
    }
    this.#start(response)
    this.#readOutput(response.output, (index) => rawJsonAt(json, [...path, 'output', index, 'arguments']))
    for (const item of this.#waiting) item.isDone = true
    this.#advance()
    if (!this.reply.filled) this.reply.text(this.#blank)
    const reason = textOf(recordOf(response.incomplete_details).reason) || 'incomplete'
    this.reply.end(readStop(status === 'incomplete' ? reason : '', this.#calls > 0, this.#refusal), usage)
  }

  /** The terminal event repeats all items. They count if none was streamed, or for an item that was not completed. */
  #readOutput(output: unknown, argumentsOf: (index: number) => string | undefined): void {
    if (!Array.isArray(output)) return
    const isAll = this.#latest === undefined
    for (const [index, value] of output.entries()) {
      const fields = recordOf(value)
      const id = textOf(fields.id)
      const rawArguments = () => argumentsOf(index)
      if (isAll) this.#readItem({ index, id }, fields, true, rawArguments)
      else {
        const item = this.#byId.get(id) ?? this.#byIndex.get(index)
        if (item && !item.isDone && item.kind === kindOf(fields)) item.describe(fields, rawArguments)
      }
    }
  }

  #find({ index, id }: ItemPlace): OutputItem | undefined {
    // Some hosts give an item another id in every event, so the index counts.
    if (index !== undefined) return this.#byIndex.get(index)
    return id === '' ? this.#latest : this.#byId.get(id)
  }

  #begin(kind: ItemKind, { index, id }: ItemPlace): OutputItem {
    const item = new OutputItem(kind, id)
    this.#latest = item
    if (index !== undefined) this.#byIndex.set(index, item)
    if (id !== '') this.#byId.set(id, item)
    this.#waiting.push(item)
    return item
  }

  /** Passes on everything that can be. */
  #advance(): void {
    for (let item = this.#waiting[0]; item && !this.reply.over; item = this.#waiting[0]) {
      if (item.kind === 'call' && item.name !== '' && !item.isOpen) this.#openCall(item)
      if (item.kind !== 'call' || item.isOpen) for (const piece of item.held.splice(0)) this.#pass(item, piece)
      if (!item.isDone) return
      this.#finish(item)
      this.#waiting.shift()
    }
  }

  #pass(item: OutputItem, { kind, text, part }: Piece): void {
    switch (kind) {
      case 'text':
        return this.#passText(item, text)
      case 'refusal':
        this.#refusal += text
        if (this.#owner !== item || this.reply.openKind !== kind) this.#open({ kind }, item)
        return this.reply.text(text, kind)
      case 'thinking': {
        const isSame = this.#part?.item === item && this.#part.name === part
        this.reply.thinking(isSame || this.reply.openKind !== 'thinking' ? text : `\n\n${text}`)
        this.#part = { item, name: part }
        this.#lastBlock = 'thinking'
        this.#owner = undefined
        return
      }
      case 'arguments': {
        if (item.isCustom) return this.reply.arguments(text)
        const value = item.scan.push(text)
        // A string may hold the intended object, which is known at the end.
        if (item.scan.first === '"') item.quoted += text
        else this.reply.arguments(value)
      }
    }
  }

  #passText(item: OutputItem, text: string): void {
    if (this.#owner === item && this.reply.openKind === 'text') return this.reply.text(text)
    // Providers refuse a blank block when it comes back as history.
    item.blank += text
    if (item.blank.trim() === '') return
    // Adjacent messages are separate texts.
    this.#open(this.#lastBlock === 'text' ? { kind: 'text', apart: true } : { kind: 'text' }, item)
    this.reply.text(item.blank)
    item.blank = ''
  }

  #openCall(item: OutputItem): void {
    this.#calls += 1
    const given = item.callId || item.id
    const id = given === '' || this.#callIds.has(given) ? this.mintId('call_tg', this.#calls) : given
    this.#callIds.add(id)
    item.isOpen = true
    this.#open({ kind: 'tool-call', id, name: item.name, custom: item.isCustom }, item)
  }

  /** Opens any block except thinking: it is the successor of the reasoning before it. */
  #open(block: ReplyBlock, item: OutputItem): void {
    // Reasoning without readable text has not opened a block yet.
    if (this.#sealed.length > 0 && this.reply.openKind !== 'thinking') this.reply.open({ kind: 'thinking' })
    this.#follower = { call: block.kind === 'tool-call' ? block.id : undefined }
    this.reply.open(block)
    this.#follower = undefined
    this.#lastBlock = block.kind
    this.#owner = item
  }

  /** The data to sign the closing thinking block with; undefined = it is only for display. */
  #takeProof(): ReasoningProof | undefined {
    const items = this.#sealed
    this.#sealed = []
    return this.#follower && items.length > 0 ? { items, call: this.#follower.call } : undefined
  }

  #finish(item: OutputItem): void {
    if (item.kind === 'call' && !item.isOpen) return this.reply.fail('a tool call without a name')
    if (!item.isStreamed) for (const piece of item.whole) if (piece.text !== '') this.#pass(item, piece)
    if (item.kind === 'reasoning') {
      if (item.sealed) this.#sealed.push(item.sealed)
      return
    }
    // The reasoning's successor is omitted, so the reasoning cannot be sent back.
    if (item.kind === 'other') this.#sealed = []
    this.#blank += item.blank
    if (item.quoted !== '') this.reply.arguments(unwrapArguments(item.quoted))
    if (item.kind === 'other' || this.#owner === item) this.reply.close()
  }
}

function placeOf({ output_index, item_id }: Fields): ItemPlace {
  return { index: typeof output_index === 'number' ? output_index : undefined, id: textOf(item_id) }
}

function kindOf({ type }: Fields): ItemKind {
  return Object.hasOwn(itemKinds, textOf(type)) ? (itemKinds[textOf(type)] as ItemKind) : 'other'
}

/** One output item. Its deltas count; its complete form counts only if there were none. */
class OutputItem {
  /** Deltas not passed on yet. */
  readonly held: Piece[] = []
  isStreamed = false
  isDone = false
  callId = ''
  name = ''
  isCustom = false
  /** Its latest complete form. */
  whole: readonly Piece[] = []
  sealed: ReasoningItem | undefined
  /** The call's block is open. */
  isOpen = false
  /** Blank text that opened no block. */
  blank = ''
  readonly scan = new ArgumentScan()
  /** Arguments that start as a string. */
  quoted = ''

  constructor(
    readonly kind: ItemKind,
    /** '' if the provider gave none. */
    readonly id: string,
  ) {}

  /** `rawArguments` returns the text of arguments that a host sent as an object instead of a string. */
  describe(item: Fields, rawArguments: () => string | undefined): void {
    this.callId = textOf(item.call_id) || this.callId
    this.name = textOf(item.name) || this.name
    this.isCustom ||= item.type === 'custom_tool_call'
    this.sealed = item.type === 'reasoning' ? readReasoningItem(item) : undefined
    this.whole = piecesOf(item, rawArguments)
  }
}

function piecesOf(item: Fields, rawArguments: () => string | undefined): Piece[] {
  const parts = listOf(item.content).map(recordOf)
  switch (item.type) {
    case 'message':
      return parts.map(({ type, text, refusal }) =>
        type === 'refusal' ? { kind: 'refusal', text: textOf(refusal) } : { kind: 'text', text: textOf(text) },
      )
    case 'reasoning': {
      const summary = summaryTexts(item.summary)
      const texts = summary.length > 0 ? summary : parts.map(({ text }) => textOf(text))
      return texts.map((text, i) => ({ kind: 'thinking', text, part: `${i}` }))
    }
    case 'function_call': {
      const text = isRecord(item.arguments) ? (rawArguments() ?? '') : textOf(item.arguments)
      return [{ kind: 'arguments', text }]
    }
    default:
      return item.type === 'custom_tool_call' ? [{ kind: 'arguments', text: textOf(item.input) }] : []
  }
}

// Why a Responses reply ended.
//
//   status, incomplete_details.reason    calls   reply stops with
//   completed                            yes     tool-calls
//   completed                            no      refusal after refusal text, else end
//   incomplete, max_output_tokens        any     length: a call may be cut in the middle
//   incomplete, content_filter           any     refusal
//   incomplete, any other                any     length: the reply is not complete
//
// A reply that failed or was cancelled does not get here.

/** `incomplete`: the reason, '' if complete. `refusal`: its text, '' if there is none. */
function readStop(incomplete: string, hasCalls: boolean, refusal: string): Stop {
  const raw = incomplete === '' ? 'completed' : incomplete
  const explained = refusal === '' ? {} : { explanation: refusal }
  if (incomplete === 'content_filter') return { unified: 'refusal', raw, ...explained }
  if (incomplete !== '') return { unified: 'length', raw }
  if (hasCalls) return { unified: 'tool-calls', raw }
  return refusal === '' ? { unified: 'end', raw } : { unified: 'refusal', raw, ...explained }
}
