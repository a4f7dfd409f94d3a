// Building blocks of reply parsers. ReplyBuilder emits a well-formed reply whatever a provider sends: one start, one
// block at a time, deltas only inside a block of their kind, one end.

import type { RequestId } from '../../kernel/ids.ts'
import type { Usage } from '../../kernel/usage.ts'
import { utf8Text } from '../../wire/bytes.ts'
import { type SseEvent, SseReader } from '../../wire/sse.ts'
import { type ProviderFault, replyFault } from '../canonical/faults.ts'
import { parseRecord } from '../canonical/json.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../canonical/reply.ts'
import type { StreamParser } from '../canonical/translation.ts'

export class ReplyBuilder {
  #events: ReplyEvent[] = []
  #open: ReplyBlock['kind'] | undefined
  #signed = false
  started = false
  /** Ended or failed: later events are ignored. */
  over = false
  /** A block was opened. */
  filled = false
  /** Something that a client would display was emitted. */
  hasOutput = false

  /** `sign` creates the signature of thinking that arrived without one, where the dialect has none. */
  constructor(private readonly sign?: () => string) {}

  get openKind(): ReplyBlock['kind'] | undefined {
    return this.#open
  }

  start(id: string | undefined, usage: Usage | undefined): void {
    if (this.started) return
    this.started = true
    this.#push({ type: 'reply-start', id, usage })
  }

  /** Ends the open block and starts this one. */
  open(block: ReplyBlock): void {
    this.close()
    this.#open = block.kind
    this.#signed = false
    this.filled = true
    this.hasOutput ||= block.kind === 'tool-call' || block.kind === 'sealed-thinking'
    this.#push({ type: 'block-start', block })
  }

  close(): void {
    if (this.#open === undefined) return
    if (this.#open === 'thinking' && !this.#signed && this.sign) this.signature(this.sign())
    this.#open = undefined
    this.#push({ type: 'block-end' })
  }

  /** Adds text, or the text of a refusal, to a block of that kind; opens one if needed. */
  text(text: string, kind: 'text' | 'refusal' = 'text'): void {
    if (text === '') return
    if (this.#open !== kind) this.open({ kind })
    this.hasOutput = true
    this.#push({ type: 'text-delta', text })
  }

  thinking(text: string): void {
    if (text === '') return
    if (this.#open !== 'thinking') this.open({ kind: 'thinking' })
    this.hasOutput = true
    this.#push({ type: 'thinking-delta', text })
  }

  /** Ignored outside thinking. */
  signature(signature: string): void {
    if (signature === '' || this.#open !== 'thinking') return
    this.#signed = true
    this.#push({ type: 'signature', signature })
  }

  /** Ignored outside a tool call. */
  arguments(text: string): void {
    if (text !== '' && this.#open === 'tool-call') this.#push({ type: 'arguments-delta', text })
  }

  keepAlive(): void {
    this.#push({ type: 'keep-alive' })
  }

  end(stop: Stop, usage: Usage | undefined): void {
    this.close()
    this.#push({ type: 'reply-end', stop, usage })
    this.over = true
  }

  /** Leaves an open block open, because its content is incomplete. */
  fail(fault: ProviderFault | string): void {
    this.#push({ type: 'reply-failure', fault: typeof fault === 'string' ? replyFault(fault) : fault })
    this.over = true
  }

  /** Returns the events since the last call. */
  take(): readonly ReplyEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  #push(event: ReplyEvent): void {
    if (!this.over) this.#events.push(event)
  }
}

// The common part of stream parsers: splits a stream into records and counts those that cannot be read.

export interface ReplyForm {
  readErrorObject(error: unknown): ProviderFault
  readonly recordBytesMax?: number
}

export abstract class SseReplyParser implements StreamParser {
  skipped = 0
  usageAtStart: Usage | undefined
  #usageSoFar: Usage | undefined
  protected id = ''
  /** Not for a whole reply. */
  #reader: SseReader | undefined

  constructor(
    protected readonly reply: ReplyBuilder,
    private readonly form: ReplyForm,
    private readonly requestId: RequestId,
  ) {}

  get usageSoFar(): Usage | undefined {
    return this.#usageSoFar
  }

  protected set usageSoFar(usage: Usage | undefined) {
    this.usageAtStart ??= usage
    this.#usageSoFar = usage
  }

  push(chunk: Uint8Array): readonly ReplyEvent[] {
    this.#reader ??= new SseReader(this.form)
    for (const event of this.#reader.push(chunk)) this.#read(event)
    return this.take()
  }

  end(): readonly ReplyEvent[] {
    if (this.#reader) for (const event of this.#reader.end()) this.#read(event)
    if (!this.reply.over) this.close()
    return this.take()
  }

  whole(body: Uint8Array): readonly ReplyEvent[] {
    const json = utf8Text(body, 0, body.length)
    const reply = parseRecord(json)
    if (reply === undefined) this.reply.fail('a reply that is not a complete JSON object')
    else if (!this.#isError(reply, '')) this.readWhole(reply, json)
    return this.take()
  }

  protected take(): readonly ReplyEvent[] {
    return this.reply.take()
  }

  #read({ event, data }: SseEvent): void {
    if (this.reply.over) return
    if (data.trim() === '[DONE]') return this.done()
    const record = parseRecord(data)
    if (record === undefined) this.skipped += 1
    else if (!this.#isError(record, event)) this.read(record, event, data)
  }

  /** An error with a success status; its members are in an `error` object or in the record itself. */
  #isError(record: Record<string, unknown>, event: string): boolean {
    const isItself = event === 'error' || record.type === 'error' || record.object === 'error'
    const error = record.error ?? (isItself ? record : null)
    if (error !== null) this.reply.fail(this.form.readErrorObject(error))
    return error !== null
  }

  /** `event` is the name on the event line; `json` is the record's text. */
  protected abstract read(record: Record<string, unknown>, event: string, json: string): void

  /** Parses a whole reply up to its end or failure; `json` is its text. */
  protected abstract readWhole(reply: Record<string, unknown>, json: string): void

  /** A record that only says `[DONE]`. */
  protected done(): void {
    this.skipped += 1
  }

  /** The provider closed the stream, and the reply has not ended. */
  protected close(): void {
    this.reply.fail('a stream without an end')
  }

  /** Only the first start counts. */
  protected start(): void {
    this.reply.start(this.id === '' ? undefined : this.id, this.usageSoFar)
  }

  /**
   * An id for a call without one, at most 40 characters long. It contains the id of the request, because hosts may send
   * no id of the reply, or always the same. `place`: the number of the call, from 1.
   */
  protected mintId(prefix: string, place: number): string {
    return `${prefix}_${this.requestId.slice('req_'.length)}_${place}`
  }
}

// Detects the end of the JSON value in a tool call's arguments while they stream, without parsing them.

export class ArgumentScan {
  /** The first non-blank character; '' before that. */
  first = ''
  /** The object, array or string that the arguments start with is complete. Never set for numbers and words. */
  complete = false
  #depth = 0
  #inString = false
  #escaped = false

  /** The arguments have started and are incomplete. */
  get isPartial(): boolean {
    return this.first !== '' && !this.complete
  }

  /** Returns the part of the text that belongs to the value: models may write on after its end. */
  push(text: string): string {
    let length = 0
    for (const character of text) {
      if (this.complete) break
      length += character.length
      if (this.first === '' && character.trim() !== '') this.first = character
      if (this.first === '{' || this.first === '[' || this.first === '"') this.#step(character)
    }
    return text.slice(0, length)
  }

  #step(character: string): void {
    if (this.#escaped) this.#escaped = false
    else if (this.#inString) {
      if (character === '\\') this.#escaped = true
      else if (character === '"') {
        this.#inString = false
        this.complete = this.#depth === 0
      }
    } else if (character === '"') this.#inString = true
    else if (character === '{' || character === '[') this.#depth += 1
    else if ((character === '}' || character === ']') && this.#depth > 0) {
      this.#depth -= 1
      this.complete = this.#depth === 0
    }
  }
}
