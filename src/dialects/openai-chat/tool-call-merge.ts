// Tool calls out of the fragments of a stream. Hosts number them from anywhere or not at all, send id and name late,
// twice or null, and mix the fragments of several calls; what comes out are whole calls, one after another.

import { ArgumentScan, type ReplyBuilder } from '../reply/builder.ts'
import { unwrapArguments } from '../request/tools.ts'

/** One entry of `tool_calls`; '' is what the host left out, or sent as null. */
export interface CallFragment {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
  readonly custom: boolean
  readonly arguments: string
  /** Another entry of the same list came before, so this is another call even if it has no number. */
  readonly isFurther: boolean
}

class Call {
  id = ''
  name = ''
  custom = false
  state: 'waiting' | 'open' | 'closed' = 'waiting'
  /** Arguments not passed on yet. */
  held = ''
  scan = new ArgumentScan()
  /** How the arguments begin, and what is written behind them where they are empty: a few characters, no spaces. */
  #start = ''
  #behind = ''

  constructor(readonly index: number | undefined) {}

  /** No more of it is to be expected once another call begins. Of bare text nobody can tell. */
  get isWhole(): boolean {
    return this.custom || this.scan.complete
  }

  get isPartial(): boolean {
    return !this.custom && this.scan.isPartial
  }

  /** All there is so far is an empty object. */
  get isBare(): boolean {
    return !this.custom && this.scan.complete && /^\s*\{\s*\}$/.test(this.held)
  }

  /** An empty object has been passed on, and another one that says more has begun behind it. */
  get isAmended(): boolean {
    return /^\{[^}]/.test(this.#behind)
  }

  take(fragment: CallFragment): void {
    // The first that is not empty counts: hosts repeat them, or send others later.
    if (this.id === '') this.id = fragment.id
    if (this.name === '') this.name = fragment.name
    this.custom ||= fragment.custom
    if (this.custom) this.held += fragment.arguments
    else this.#takeJson(fragment.arguments)
  }

  #takeJson(text: string): void {
    if (this.scan.complete) {
      // What follows a complete object is a repetition of it; but some hosts announce arguments by an empty one.
      if (!this.isBare) {
        // The same again says nothing.
        const known = this.#behind === '{}' ? '' : this.#behind
        if (this.#start === '{}') this.#behind = begun(known, text)
        return
      }
      if (!text.trimStart().startsWith('{')) return
      this.held = ''
      this.scan = new ArgumentScan()
      this.#start = ''
    }
    const value = this.scan.push(text)
    this.#start = begun(this.#start, value)
    // A string is looked at as a whole in the end.
    this.held += this.scan.first === '"' ? text : value
  }
}

export class ToolCallMerge {
  readonly #calls: Call[] = []
  readonly #ids = new Set<string>()
  /** A call has been passed on. */
  hasCalls = false
  /** Something cannot be passed on as it was meant, and must not be passed on otherwise. */
  fault: string | undefined

  /** `mintId` names a call that its host did not; the argument is its place among the calls of the reply, from 1. */
  constructor(
    private readonly reply: ReplyBuilder,
    private readonly mintId: (place: number) => string,
  ) {}

  /** A call is in the middle of its arguments. */
  get isBusy(): boolean {
    return this.#calls.some((call) => call.state !== 'closed' && call.isPartial)
  }

  /** Every call so far has all its arguments. */
  get isResting(): boolean {
    return this.#calls.every((call) => call.state === 'closed' || call.scan.complete)
  }

  push(fragment: CallFragment): void {
    const call = this.#callOf(fragment)
    call.take(fragment)
    const isLate = call.isAmended || (call.state === 'closed' && call.held.trim() !== '')
    if (isLate) this.fault = 'arguments for a tool call that had ended'
    this.#advance()
  }

  /** Nothing more comes for the calls so far: passes on and ends all of them. */
  settle(): void {
    for (const call of this.#calls) {
      if (call.state === 'waiting' && call.name !== '') this.#open(call)
      if (call.state === 'open') this.#close(call)
      if (call.state === 'waiting' && call.held.trim() !== '') this.fault = 'a tool call without a name'
      call.state = 'closed'
    }
  }

  #callOf(fragment: CallFragment): Call {
    const { index, id, name } = fragment
    const last = this.#calls.at(-1)
    if (index !== undefined) {
      const same = this.#calls.findLast((call) => call.index === index)
      if (same) return beginsAnother(same, fragment) ? this.#add(index) : same
      // A number of its own for every fragment: the id holds them together. With a name it is a call of its own, though,
      // for other hosts give one id to all calls.
      const sameId = id === '' || name !== '' ? undefined : this.#calls.findLast((call) => call.id === id)
      return sameId ?? this.#add(index)
    }
    if (last === undefined || (fragment.isFurther && name !== '')) return this.#add(undefined)
    if (id === '') return beginsAnother(last, fragment) ? this.#add(undefined) : last
    const same = this.#calls.findLast((call) => call.id === id)
    if (same) return same
    return last.id === '' && name === '' ? last : this.#add(undefined)
  }

  #add(index: number | undefined): Call {
    const call = new Call(index)
    this.#calls.push(call)
    return call
  }

  /** Passes on what is certain: the open call as it comes, the next one once the open one is whole. */
  #advance(): void {
    for (const call of this.#calls) {
      if (call.state === 'closed') continue
      if (call.state === 'waiting') {
        if (call.id === '' || call.name === '') return
        this.#open(call)
      }
      this.#pass(call)
      if (call === this.#calls.at(-1) || !call.isWhole) return
      this.#close(call)
    }
  }

  #open(call: Call): void {
    const place = this.#ids.size + 1
    let id = call.id === '' ? this.mintId(place) : call.id
    // Some hosts give all calls one id; a result could not be told to its call.
    if (this.#ids.has(id)) id = `${id}_${place}`
    this.#ids.add(id)
    this.hasCalls = true
    call.state = 'open'
    this.reply.open({ kind: 'tool-call', id, name: call.name, custom: call.custom })
  }

  /**
   * Blank arguments mean none, a string may be an object encoded twice, and an empty object may be followed by the real
   * one: all of this is known only at the end.
   */
  #pass(call: Call): void {
    if (!call.custom && (call.scan.first === '' || call.scan.first === '"' || call.isBare)) return
    this.reply.arguments(call.held)
    call.held = ''
  }

  #close(call: Call): void {
    this.#pass(call)
    if (call.held.trim() !== '') this.reply.arguments(unwrapArguments(call.held))
    call.held = ''
    call.state = 'closed'
    this.reply.close()
  }
}

/** The first characters of a text that comes in pieces: as many as tell an empty object from any other. */
function begun(start: string, piece: string): string {
  return start.length > 2 ? start : (start + piece.replace(/\s+/g, '')).slice(0, 3)
}

/** Whether a fragment that has the number of a call is nevertheless the beginning of another. */
function beginsAnother(call: Call, { id, name, arguments: text }: CallFragment): boolean {
  if (id !== '' && call.id !== '' && id !== call.id) return name !== '' || call.isWhole
  if (id !== '' && id === call.id) return false
  return name !== '' && call.name !== '' && call.isWhole && (text !== '' || name !== call.name)
}
