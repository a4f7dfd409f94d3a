// Parses a Responses stream or whole reply. Items are identified by their index. Content that arrives both as deltas and as a whole
// counts once. The reply only ends with the provider's terminal event.

import { isRecord, rawJsonAt, recordOf, textOf } from '../../canonical/json.ts'
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

export function parseStream(target: Target): StreamParser {
  return new ResponsesStreamParser(target)
}

class ResponsesStreamParser extends SseReplyParser {
  readonly #items: OutputItems

  constructor({ issuer }: Target) {
    super(new ReplyBuilder(() => signReasoning(issuer, this.#items.takeProof())), { readErrorObject, recordBytesMax })
    this.#items = new OutputItems(this.reply, (place) => this.mintId('call_tg', place))
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
        return this.#end(recordOf(record.response), type.slice('response.'.length), json, ['response'])
      case 'keepalive':
      case 'ping':
        if (this.reply.started) this.reply.keepAlive()
    }
  }

  #start(response: Fields): void {
    if (this.id === '') this.id = textOf(response.id)
    this.usageSoFar = readUsage(response.usage) ?? this.usageSoFar
    this.start()
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
    // Some hosts give every item the same index.
    const isSame = known && !known.isDone && (isDone || known.kind === kind)
    const item = isSame ? known : this.#items.begin(kind, { ...place, id })
    item.describe(fields, rawArguments)
    item.isDone = isDone
    this.#items.advance()
  }

  /** `path`: where the response is in the JSON text. */
  #end(response: Fields, word: string, json: string, path: readonly string[]): void {
    const status = textOf(response.status) || word
    const usage = readUsage(response.usage)
    // Also for a failed reply: reported usage is better than an estimate.
    this.usageSoFar = usage ?? this.usageSoFar
    if (status !== 'completed' && status !== 'incomplete') {
      return this.reply.fail(readErrorObject(response.error ?? { message: `the reply was ${status}` }))
    }
    this.#start(response)
    this.#readOutput(response.output, (index) => argumentsAt(json, [...path, 'output', index]))
    this.#items.end()
    const reason = textOf(recordOf(response.incomplete_details).reason) || 'incomplete'
    const { hasCalls, refusal } = this.#items
    const stop = readStop({ incomplete: status === 'incomplete' ? reason : '', hasCalls, refusal })
    this.reply.end(stop, usage)
  }

  /** The terminal event repeats all items. They count if none was streamed, or for an item that was not completed. */
  #readOutput(output: unknown, argumentsOf: (index: number) => string): void {
    if (!Array.isArray(output)) return
    const isAll = !this.#items.hasAny
    for (const [index, value] of output.entries()) {
      const fields = recordOf(value)
      const rawArguments = () => argumentsOf(index)
      if (isAll) this.#readItem({ index, id: '' }, fields, true, rawArguments)
      else this.#items.findAgain(index, textOf(fields.id), kindOf(fields))?.describe(fields, rawArguments)
    }
  }
}

function placeOf({ output_index, item_id }: Fields): ItemPlace {
  return { index: typeof output_index === 'number' ? output_index : undefined, id: textOf(item_id) }
}

function argumentsAt(json: string, path: readonly (string | number)[]): string {
  return rawJsonAt(json, [...path, 'arguments']) ?? ''
}

// The items of a reply, in order. A provider may interleave the pieces of several items. The output is whole items in
// the order in which they started; the first unfinished one streams.

/** How an event identifies its item. */
export interface ItemPlace {
  readonly index: number | undefined
  /** '' if it does not. */
  readonly id: string
}

const itemKinds: Readonly<Record<OutputPiece['kind'], ItemKind>> = {
  text: 'message',
  refusal: 'message',
  thinking: 'reasoning',
  arguments: 'call',
}

export class OutputItems {
  hasCalls = false
  refusal = ''
  /** An item has started. */
  hasAny = false
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
  #part: { readonly item: OutputItem; readonly name: string } | undefined
  /** Blank text that opened no block; passed on if nothing else comes. */
  #blank = ''
  #calls = 0
  readonly #callIds = new Set<string>()

  constructor(
    private readonly reply: ReplyBuilder,
    /** Creates an id for a call without one; the argument is its number among the calls, from 1. */
    private readonly mintId: (place: number) => string,
  ) {}

  find({ index, id }: ItemPlace): OutputItem | undefined {
    // Some hosts give an item another id in every event, so the index counts.
    if (index !== undefined) return this.#byIndex.get(index)
    return id === '' ? this.#latest : this.#byId.get(id)
  }

  /** An incomplete item, as identified by the terminal event. */
  findAgain(index: number, id: string, kind: ItemKind): OutputItem | undefined {
    const item = this.#byId.get(id) ?? this.#byIndex.get(index)
    return item && !item.isDone && item.kind === kind ? item : undefined
  }

  begin(kind: ItemKind, { index, id }: ItemPlace): OutputItem {
    const item = new OutputItem(kind, id)
    this.hasAny = true
    this.#latest = item
    if (index !== undefined) this.#byIndex.set(index, item)
    if (id !== '') this.#byId.set(id, item)
    this.#waiting.push(item)
    return item
  }

  /** Adds a delta. If the item was not announced, the delta's kind tells the item's kind. */
  push(place: ItemPlace, piece: OutputPiece): void {
    const item = this.find(place) ?? this.begin(itemKinds[piece.kind], place)
    if (piece.text === '' || item.kind === 'other') return
    if (item.isDone) return this.reply.fail('a piece of an item that had ended')
    item.push(piece)
    this.advance()
  }

  /** Passes on everything that can be. */
  advance(): void {
    for (let item = this.#waiting[0]; item && !this.reply.over; item = this.#waiting[0]) {
      if (item.kind === 'call' && item.name !== '' && !item.isOpen) this.#openCall(item)
      if (item.kind !== 'call' || item.isOpen) this.#passHeld(item)
      if (!item.isDone) return
      this.#finish(item)
      this.#waiting.shift()
    }
  }

  /** The reply ended, so all items are complete. */
  end(): void {
    for (const item of this.#waiting) item.isDone = true
    this.advance()
    if (!this.reply.filled) this.reply.text(this.#blank)
  }

  /** The data to sign the closing thinking block with; undefined = it is only for display. */
  takeProof(): ReasoningProof | undefined {
    const items = this.#sealed
    this.#sealed = []
    return this.#follower && items.length > 0 ? { items, call: this.#follower.call } : undefined
  }

  #passHeld(item: OutputItem): void {
    const pieces = item.held
    item.held = []
    for (const piece of pieces) this.#pass(item, piece)
  }

  #pass(item: OutputItem, { kind, text, part }: OutputPiece): void {
    switch (kind) {
      case 'text':
        return this.#passText(item, text)
      case 'refusal':
        this.refusal += text
        if (this.#owner !== item || this.reply.openKind !== kind) this.#open({ kind }, item)
        return this.reply.text(text, kind)
      case 'thinking':
        return this.#passThinking(item, text, part)
      case 'arguments':
        return this.#passArguments(item, text)
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

  /** Parts become paragraphs. */
  #passThinking(item: OutputItem, text: string, part: string): void {
    const isSame = this.#part?.item === item && this.#part.name === part
    this.reply.thinking(isSame || this.reply.openKind !== 'thinking' ? text : `\n\n${text}`)
    this.#part = { item, name: part }
    this.#lastBlock = 'thinking'
    this.#owner = undefined
  }

  #passArguments(item: OutputItem, text: string): void {
    const isFirst = item.quoted === undefined && !item.isCustom && text.trimStart().startsWith('"')
    if (isFirst && !item.hasArguments) item.quoted = ''
    item.hasArguments = true
    if (item.quoted === undefined) this.reply.arguments(item.isCustom ? text : item.scan.push(text))
    else item.quoted += text
  }

  #openCall(item: OutputItem): void {
    this.#calls += 1
    const given = item.callId || item.id
    const id = given === '' || this.#callIds.has(given) ? this.mintId(this.#calls) : given
    this.#callIds.add(id)
    this.hasCalls = true
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
    if (item.quoted !== undefined) this.reply.arguments(unwrapArguments(item.quoted))
    if (item.kind === 'other' || this.#owner === item) this.reply.close()
  }
}

// One output item: its description and its pieces so far. Deltas count; the item's complete form counts only if there
// were no deltas.

export interface OutputPiece {
  readonly kind: 'text' | 'refusal' | 'thinking' | 'arguments'
  readonly text: string
  /** The part of its item; parts of thinking become paragraphs. */
  readonly part: string
}

/** `other`: an item that only its provider can use. */
export type ItemKind = 'message' | 'reasoning' | 'call' | 'other'

export class OutputItem {
  /** Deltas not passed on yet. */
  held: OutputPiece[] = []
  isStreamed = false
  isDone = false
  callId = ''
  name = ''
  isCustom = false
  /** Its latest complete form. */
  whole: readonly OutputPiece[] = []
  sealed: ReasoningItem | undefined
  /** The call's block is open. */
  isOpen = false
  /** Blank text that opened no block. */
  blank = ''
  hasArguments = false
  readonly scan = new ArgumentScan()
  /** Arguments that start as a string, which may hold the intended object. */
  quoted: string | undefined

  constructor(
    readonly kind: ItemKind,
    /** '' if the provider gave none. */
    readonly id: string,
  ) {}

  push(piece: OutputPiece): void {
    if (piece.text === '') return
    this.isStreamed = true
    this.held.push(piece)
  }

  /** `rawArguments` returns the text of arguments that a host sent as an object instead of a string. */
  describe(item: Record<string, unknown>, rawArguments: () => string): void {
    this.callId = textOf(item.call_id) || this.callId
    this.name = textOf(item.name) || this.name
    this.isCustom ||= item.type === 'custom_tool_call'
    this.sealed = item.type === 'reasoning' ? readReasoningItem(item) : undefined
    this.whole = piecesOf(item, rawArguments)
  }
}

export function kindOf(item: Record<string, unknown>): ItemKind {
  switch (item.type) {
    case 'message':
    case 'reasoning':
      return item.type
    case 'function_call':
    case 'custom_tool_call':
      return 'call'
    default:
      return 'other'
  }
}

function piecesOf(item: Record<string, unknown>, rawArguments: () => string): OutputPiece[] {
  switch (item.type) {
    case 'message':
      return contentParts(item.content).map(({ type, text, refusal }, i) =>
        type === 'refusal'
          ? outputPiece('refusal', textOf(refusal), `${i}`)
          : outputPiece('text', textOf(text), `${i}`),
      )
    case 'reasoning': {
      const summary = summaryTexts(item.summary)
      const texts = summary.length > 0 ? summary : contentParts(item.content).map(({ text }) => textOf(text))
      return texts.map((text, i) => outputPiece('thinking', text, `${i}`))
    }
    case 'function_call':
      return [outputPiece('arguments', isRecord(item.arguments) ? rawArguments() : textOf(item.arguments), '')]
    case 'custom_tool_call':
      return [outputPiece('arguments', textOf(item.input), '')]
    default:
      return []
  }
}

function contentParts(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? content.map(recordOf) : []
}

function outputPiece(kind: OutputPiece['kind'], text: string, part: string): OutputPiece {
  return { kind, text, part }
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

/** The reported end of a stream, and what the stream contained. */
export interface ReplyEnding {
  /** '' if complete, otherwise the reason. */
  readonly incomplete: string
  readonly hasCalls: boolean
  /** The refusal's text; '' = none. */
  readonly refusal: string
}

export function readStop({ incomplete, hasCalls, refusal }: ReplyEnding): Stop {
  const raw = incomplete === '' ? 'completed' : incomplete
  const explained = refusal === '' ? {} : { explanation: refusal }
  if (incomplete === 'content_filter') return { unified: 'refusal', raw, ...explained }
  if (incomplete !== '') return { unified: 'length', raw }
  if (hasCalls) return { unified: 'tool-calls', raw }
  return refusal === '' ? { unified: 'end', raw } : { unified: 'refusal', raw, ...explained }
}
