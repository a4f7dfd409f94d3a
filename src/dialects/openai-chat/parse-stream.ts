// A provider's Chat Completions stream, read into canonical events. Blocks are implied here: this decides where one
// ends and the next begins. The end is told once, after usage had its chance to come, and never made up.

import type { Usage } from '../../kernel/usage.ts'
import { type SseEvent, SseReader } from '../../wire/sse-reader.ts'
import { isRecord, parseRecord, rawJsonAt, recordOf, textOf } from '../canonical/json.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { writeSignature } from '../canonical/signature.ts'
import type { StreamParser, Target } from '../canonical/translation.ts'
import { ReplyBuilder } from '../reply/builder.ts'
import { ThinkTags } from '../reply/think-tags.ts'
import { readErrorObject } from './failure.ts'
import { type DeltaPiece, readCalls, readDetails, readPieces } from './read-delta.ts'
import { ReasoningBlob } from './reasoning-blob.ts'
import { readStop } from './stop-reason.ts'
import { ToolCallMerge } from './tool-call-merge.ts'
import { readUsage, usageIn } from './usage.ts'

export function parseStream(target: Target): StreamParser {
  return new ChatStreamParser(target)
}

class ChatStreamParser implements StreamParser {
  skipped = 0
  readonly #reader = new SseReader()
  readonly #reasoning = new ReasoningBlob()
  readonly #reply: ReplyBuilder
  readonly #calls: ToolCallMerge
  /** Undefined where reasoning has a field of its own. */
  readonly #thinkTags: ThinkTags | undefined
  #id = ''
  #usage: Usage | undefined
  #finish = ''
  #matched: string | undefined
  #refusal = ''
  /** Blank text that opened no block: it goes in front of the next text, or is dropped with an end. */
  #blank = ''
  /** What came in the middle of a call's arguments. */
  #later: DeltaPiece[] = []

  constructor(target: Target) {
    const sign = (): string => writeSignature({ issuer: target.issuer, blob: this.#reasoning.take() })
    this.#reply = new ReplyBuilder(sign)
    this.#calls = new ToolCallMerge(this.#reply, (place) => this.#mintId(place))
    this.#thinkTags = target.rules.thinkTags ? new ThinkTags(sign) : undefined
  }

  get usageSoFar(): Usage | undefined {
    return this.#usage
  }

  push(chunk: Uint8Array): readonly ReplyEvent[] {
    for (const event of this.#reader.push(chunk)) this.#read(event)
    return this.#take()
  }

  end(): readonly ReplyEvent[] {
    for (const event of this.#reader.end()) this.#read(event)
    // Hosts that close behind their last chunk have said that they finished; a bare close says nothing.
    if (!this.#reply.over && this.#finish !== '') this.#end()
    else if (!this.#reply.over) this.#reply.fail('a stream without an end')
    return this.#take()
  }

  #take(): readonly ReplyEvent[] {
    const events = this.#reply.take()
    const tags = this.#thinkTags
    return tags ? events.flatMap((event) => tags.push(event)) : events
  }

  #read({ event, data }: SseEvent): void {
    if (this.#reply.over) return
    if (data.trim() === '[DONE]') return this.#end()
    const chunk = parseRecord(data)
    if (chunk === undefined) {
      this.skipped += 1
      return
    }
    const error = chunk.error ?? (event === 'error' || chunk.object === 'error' ? chunk : null)
    if (error !== null) return this.#reply.fail(readErrorObject(error))
    this.#readChunk(chunk, data)
  }

  #readChunk(chunk: Record<string, unknown>, json: string): void {
    if (this.#id === '') this.#id = textOf(chunk.id)
    const choices: unknown[] = Array.isArray(chunk.choices) ? chunk.choices : []
    const place = choices.findIndex(isRecord)
    const choice = recordOf(choices[place])
    this.#usage = readUsage(usageIn(chunk)) ?? this.#usage
    if (place < 0) return
    const finish = textOf(choice.finish_reason)
    const error = choice.error ?? null
    if (error !== null || finish === 'error') {
      return this.#reply.fail(readErrorObject(error ?? { message: 'the reply ended with an error' }))
    }
    this.#reply.start(this.#id === '' ? undefined : this.#id, this.#usage)
    // A last record may repeat the whole message behind its deltas.
    const member = isRecord(choice.delta) ? 'delta' : this.#reply.filled ? undefined : 'message'
    if (member) this.#readDelta(recordOf(choice[member]), json, ['choices', place, member])
    if (finish !== '') this.#finish = finish
    if (typeof choice.stop_reason === 'string') this.#matched = choice.stop_reason
  }

  #readDelta(delta: Record<string, unknown>, json: string, at: readonly (string | number)[]): void {
    this.#reasoning.push(readDetails(delta))
    for (const piece of readPieces(delta)) this.#piece(piece)
    const rawArguments = (place: readonly (string | number)[]): string => rawJsonAt(json, [...at, ...place]) ?? ''
    for (const fragment of readCalls(delta, rawArguments)) {
      this.#passReasoningBlob()
      this.#calls.push(fragment)
      if (this.#calls.fault) this.#reply.fail(this.#calls.fault)
    }
    if (this.#later.length > 0 && !this.#calls.isBusy) this.#passLater()
  }

  #piece(piece: DeltaPiece): void {
    if (this.#calls.isBusy) {
      this.#later.push(piece)
      return
    }
    const { kind, text } = piece
    if (kind === 'thinking') {
      this.#settleCalls()
      this.#reply.thinking(text)
      return
    }
    // A block of nothing but whitespace is refused by providers when it comes back as history.
    if (kind === 'text' && this.#reply.openKind !== 'text' && text.trim() === '') {
      this.#blank += text
      return
    }
    this.#settleCalls()
    if (this.#reply.openKind !== kind) this.#passReasoningBlob()
    if (kind === 'refusal') this.#refusal += text
    this.#reply.text(kind === 'text' ? this.#blank + text : text, kind)
    if (kind === 'text') this.#blank = ''
  }

  #passLater(): void {
    const later = this.#later
    this.#later = []
    for (const piece of later) this.#piece(piece)
  }

  /** Reasoning that nobody can read, and that came without a text it could be the signature of. */
  #passReasoningBlob(): void {
    if (!this.#reasoning.isOpaque || this.#reply.openKind === 'thinking' || !this.#calls.isResting) return
    this.#settleCalls()
    this.#reply.open({ kind: 'thinking' })
    this.#reply.close()
  }

  #settleCalls(): void {
    this.#calls.settle()
    if (this.#calls.fault) this.#reply.fail(this.#calls.fault)
  }

  #end(): void {
    if (!this.#reply.started) return this.#reply.fail('a stream without a reply')
    this.#settleCalls()
    this.#passLater()
    this.#passReasoningBlob()
    if (!this.#reply.filled) this.#reply.text(this.#blank)
    if (!this.#reply.hasOutput && this.#finish === '') return this.#reply.fail('an empty answer')
    const ending = { finish: this.#finish, hasCalls: this.#calls.hasCalls, refusal: this.#refusal }
    this.#reply.end(readStop({ ...ending, matched: this.#matched }), this.#usage)
  }

  /** The reply's own id makes it unique in the conversation. */
  #mintId(place: number): string {
    const reply = this.#id.replaceAll(/[^A-Za-z0-9]/g, '').slice(-16)
    return reply === '' ? `toolu_tg_${place}` : `toolu_tg_${reply}_${place}`
  }
}
