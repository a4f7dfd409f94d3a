// A provider's generateContent stream, read into canonical events. Blocks are implied by the parts. There is no terminal
// record: the end is told when the provider closes, and only if it had said why it finished.

import type { Usage } from '../../kernel/usage.ts'
import { type SseEvent, SseReader } from '../../wire/sse-reader.ts'
import { isRecord, parseRecord, rawJsonAt, recordOf, textOf } from '../canonical/json.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { writeSignature } from '../canonical/signature.ts'
import type { StreamParser, Target } from '../canonical/translation.ts'
import { ReplyBuilder } from '../reply/builder.ts'
import { BareBody } from './bare-body.ts'
import { readErrorObject } from './failure.ts'
import { PartReader } from './read-parts.ts'
import { replyAsStream } from './reply-as-stream.ts'
import { blockedStop, readStop } from './stop-reason.ts'
import { writeBlob } from './thought-signature.ts'
import { readUsage } from './usage.ts'

export function parseStream(target: Target): StreamParser {
  return new GeminiStreamParser(target)
}

class GeminiStreamParser implements StreamParser {
  skipped = 0
  readonly #reader = new SseReader()
  readonly #bare = new BareBody()
  readonly #reply: ReplyBuilder
  readonly #parts: PartReader
  #id = ''
  #usage: Usage | undefined
  #finish = ''
  #finishMessage = ''
  /** The prompt was refused: what was said about it. */
  #blocked: { readonly reason: string; readonly message: string } | undefined

  constructor({ issuer }: Target) {
    this.#reply = new ReplyBuilder(() => {
      const signed = this.#parts.takeSigned()
      return writeSignature({ issuer, blob: signed && writeBlob(signed) })
    })
    this.#parts = new PartReader(this.#reply, () => this.#id)
  }

  get usageSoFar(): Usage | undefined {
    return this.#usage
  }

  push(chunk: Uint8Array): readonly ReplyEvent[] {
    const streamed = this.#bare.pass(chunk)
    if (streamed) for (const event of this.#reader.push(streamed)) this.#read(event)
    if (this.#bare.isTooLarge && !this.#reply.over) this.#reply.fail('a reply that is no stream, and too large')
    return this.#reply.take()
  }

  end(): readonly ReplyEvent[] {
    const body = this.#bare.take()
    if (body) this.#readBare(body)
    for (const event of this.#reader.end()) this.#read(event)
    if (!this.#reply.over) this.#end()
    return this.#reply.take()
  }

  /** Errors, mostly: they may come as plain JSON whatever the content type says. */
  #readBare(body: Uint8Array): void {
    const stream = replyAsStream(body)
    if ('fault' in stream) {
      if (!this.#reply.over) this.#reply.fail(stream.fault)
    } else for (const event of this.#reader.push(stream)) this.#read(event)
  }

  #read({ data }: SseEvent): void {
    if (this.#reply.over) return
    const record = parseRecord(data)
    if (record === undefined) {
      this.skipped += 1
      return
    }
    const error = record.error ?? null
    if (error !== null) return this.#reply.fail(readErrorObject(error))
    this.#readRecord(record, data)
  }

  #readRecord(record: Record<string, unknown>, json: string): void {
    if (this.#id === '') this.#id = textOf(record.responseId)
    this.#usage = readUsage(record.usageMetadata) ?? this.#usage
    const feedback = recordOf(record.promptFeedback)
    if ('blockReason' in feedback) {
      this.#blocked = { reason: textOf(feedback.blockReason), message: textOf(feedback.blockReasonMessage) }
    }
    const candidates: unknown[] = Array.isArray(record.candidates) ? record.candidates : []
    const place = candidates.findIndex(isRecord)
    if (place < 0) return
    this.#start()
    const candidate = recordOf(candidates[place])
    const parts = recordOf(candidate.content).parts
    const argumentsAt = (part: number) =>
      rawJsonAt(json, ['candidates', place, 'content', 'parts', part, 'functionCall', 'args'])
    if (Array.isArray(parts)) this.#parts.read(parts, argumentsAt)
    // Some models have said STOP in every record: the last word counts.
    const finish = textOf(candidate.finishReason)
    if (finish === '') return
    this.#finish = finish
    this.#finishMessage = textOf(candidate.finishMessage)
  }

  #start(): void {
    this.#reply.start(this.#id === '' ? undefined : this.#id, this.#usage)
  }

  #end(): void {
    if (this.#finish === '') {
      if (!this.#blocked) return this.#reply.fail('a stream without an end')
      this.#start()
      this.#parts.end()
      return this.#reply.end(blockedStop(this.#blocked.reason, this.#blocked.message), this.#usage)
    }
    const { hasCalls } = this.#parts
    const stop = readStop({ finish: this.#finish, message: this.#finishMessage, hasCalls })
    if ('fault' in stop) return this.#reply.fail(stop.fault)
    this.#parts.end()
    this.#reply.end(stop, this.#usage)
  }
}
