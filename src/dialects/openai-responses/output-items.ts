// The items of a reply, one after another. A provider may mix the pieces of several; what comes out are whole items in
// the order in which they began, and the first that is not finished streams.

import type { ReplyBlock } from '../canonical/reply.ts'
import type { ReplyBuilder } from '../reply/builder.ts'
import { unwrapArguments } from '../request/tools.ts'
import { type ItemKind, OutputItem, type OutputPiece } from './output-item.ts'
import type { ReasoningItem, ReasoningProof } from './reasoning-proof.ts'

/** How an event names its item. */
export interface ItemPlace {
  readonly index: number | undefined
  /** '' = it does not say. */
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
  /** Some item has begun. */
  hasAny = false
  /** Not passed on in full; the first is the one that streams. */
  readonly #waiting: OutputItem[] = []
  readonly #byIndex = new Map<number, OutputItem>()
  readonly #byId = new Map<string, OutputItem>()
  #latest: OutputItem | undefined
  /** Sealed reasoning that has led to nothing so far. */
  #sealed: ReasoningItem[] = []
  /** What the reasoning leads to, while that is being opened. */
  #follower: { readonly call: string | undefined } | undefined
  #lastBlock: ReplyBlock['kind'] | undefined
  /** Whose block is open. */
  #owner: OutputItem | undefined
  /** What the last thinking belongs to. */
  #part: { readonly item: OutputItem; readonly name: string } | undefined
  /** Text that opened no block: it is passed on if nothing else comes. */
  #blank = ''
  #calls = 0
  readonly #callIds = new Set<string>()

  constructor(
    private readonly reply: ReplyBuilder,
    /** Names a call that its host did not; the argument is its place among the calls of the reply, from 1. */
    private readonly mintId: (place: number) => string,
  ) {}

  find({ index, id }: ItemPlace): OutputItem | undefined {
    // Some hosts give an item another id in every event, so that the number counts.
    if (index !== undefined) return this.#byIndex.get(index)
    return id === '' ? this.#latest : this.#byId.get(id)
  }

  /** An item that has not been told to its end, as the end of the reply names it. */
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

  /** A delta; of an item nobody has announced its kind tells what it is. */
  push(place: ItemPlace, piece: OutputPiece): void {
    const item = this.find(place) ?? this.begin(itemKinds[piece.kind], place)
    if (piece.text === '' || item.kind === 'other') return
    if (item.isDone) return this.reply.fail('a piece of an item that had ended')
    item.push(piece)
    this.advance()
  }

  /** Passes on what can be. */
  advance(): void {
    for (let item = this.#waiting[0]; item && !this.reply.over; item = this.#waiting[0]) {
      if (item.kind === 'call' && item.name !== '' && !item.isOpen) this.#openCall(item)
      if (item.kind !== 'call' || item.isOpen) this.#passHeld(item)
      if (!item.isDone) return
      this.#finish(item)
      this.#waiting.shift()
    }
  }

  /** The reply is over: whatever has not said so is done. */
  end(): void {
    for (const item of this.#waiting) item.isDone = true
    this.advance()
    if (!this.reply.filled) this.reply.text(this.#blank)
  }

  /** What the thinking block that is being closed is signed with; undefined = it is only to be read. */
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
    // A block of nothing but whitespace is refused by providers when it comes back as history.
    item.blank += text
    if (item.blank.trim() === '') return
    // Two messages that touch are two texts all the same.
    this.#open(this.#lastBlock === 'text' ? { kind: 'text', apart: true } : { kind: 'text' }, item)
    this.reply.text(item.blank)
    item.blank = ''
  }

  /** Parts are paragraphs. */
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

  /** Everything but thinking comes in through here: it is what the reasoning before it led to. */
  #open(block: ReplyBlock, item: OutputItem): void {
    // Reasoning that nobody can read has opened no block yet.
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
    // What the reasoning led to is not passed on, so that it cannot be given back.
    if (item.kind === 'other') this.#sealed = []
    this.#blank += item.blank
    if (item.quoted !== undefined) this.reply.arguments(unwrapArguments(item.quoted))
    if (item.kind === 'other' || this.#owner === item) this.reply.close()
  }
}
