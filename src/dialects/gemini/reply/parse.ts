// Parses a generateContent stream or whole reply. Blocks are implied by the parts. There is no terminal record: the reply ends when
// the provider closes the stream after a finish reason.

import type { RequestId } from '../../../kernel/ids.ts'
import { ByteBuffer, utf8Text } from '../../../wire/bytes.ts'
import { JsonNode } from '../../../wire/json.ts'
import { type ProviderFault, replyFault } from '../../canonical/faults.ts'
import { isRecord, listOf, parseJson, rawJsonAt, recordOf, textOf } from '../../canonical/json.ts'
import type { ReplyEvent, Stop } from '../../canonical/reply.ts'
import { writeSignature } from '../../canonical/signature.ts'
import type { StreamParser, Target } from '../../canonical/translation.ts'
import { ReplyBuilder, SseReplyParser } from '../../reply/builder.ts'
import { readErrorObject } from '../errors.ts'
import { type SignedPart, writeBlob } from '../reasoning.ts'
import { readUsage } from '../usage.ts'

export function parseStream(target: Target, requestId: RequestId): StreamParser {
  return new GeminiStreamParser(target, requestId)
}

class GeminiStreamParser extends SseReplyParser {
  readonly #bare = new BareBody()
  #finish = ''
  #finishMessage = ''
  /** Set if the prompt was blocked. */
  #blocked: Stop | undefined
  readonly #ids = new Set<string>()
  /** Data for our next signature. */
  #signed: SignedPart | undefined
  /** Signature of the open or next text. Emitted when the text ends, because a block in the middle would split it. */
  #textSignature = ''
  /** Set if the last block was this call and had no signature. */
  #unsignedCall: string | undefined
  /** Blank text that opened no block; it is prepended to the next text or dropped. */
  #blank = ''
  /** A part was omitted since the last block. */
  #isApart = false

  constructor({ issuer }: Target, requestId: RequestId) {
    const sign = () => {
      const signed = this.#signed
      this.#signed = undefined
      return writeSignature({ issuer, blob: signed && writeBlob(signed) })
    }
    super(new ReplyBuilder(sign), { readErrorObject }, requestId)
  }

  override push(chunk: Uint8Array): readonly ReplyEvent[] {
    const streamed = this.#bare.pass(chunk)
    const events = streamed ? super.push(streamed) : []
    if (!this.#bare.isTooLarge || this.reply.over) return events
    this.reply.fail('a reply that is not a stream and is too large')
    return [...events, ...this.reply.take()]
  }

  /** A body that is not a stream is usually an error, sent as plain JSON whatever its content type. */
  override end(): readonly ReplyEvent[] {
    const body = this.#bare.take()
    return body && !this.reply.over ? this.whole(body) : super.end()
  }

  /**
   * A list holds the records of a stream: the form of errors, and of streams without `alt=sse`. JSON has line breaks
   * only between values, where a space means the same.
   */
  override whole(body: Uint8Array): readonly ReplyEvent[] {
    const text = utf8Text(body, 0, body.length)
    if (!Array.isArray(parseJson(text))) return super.whole(body)
    const records = JsonNode.of(text.replaceAll(/[\r\n]/g, ' ')).elements() ?? []
    const stream = records.map((record) => `data: ${record.text}\n\n`).join('')
    return [...super.push(new TextEncoder().encode(stream)), ...super.end()]
  }

  protected readWhole(reply: Record<string, unknown>, json: string): void {
    if (!hasEnded(reply)) return this.reply.fail('a reply without an end')
    this.read(reply, '', json)
    this.close()
  }

  protected read(record: Record<string, unknown>, _event: string, json: string): void {
    if (this.id === '') this.id = textOf(record.responseId)
    this.usageSoFar = readUsage(record.usageMetadata) ?? this.usageSoFar
    const feedback = recordOf(record.promptFeedback)
    if ('blockReason' in feedback) {
      this.#blocked = blockedStop(textOf(feedback.blockReason), textOf(feedback.blockReasonMessage))
    }
    const candidates = listOf(record.candidates)
    const place = candidates.findIndex(isRecord)
    if (place < 0) return
    this.start()
    const candidate = recordOf(candidates[place])
    const parts = recordOf(candidate.content).parts
    const argumentsAt = (part: number) =>
      rawJsonAt(json, ['candidates', place, 'content', 'parts', part, 'functionCall', 'args'])
    if (Array.isArray(parts)) this.#readParts(parts, argumentsAt)
    // Some models repeat STOP in every record; the last finish reason counts.
    const finish = textOf(candidate.finishReason)
    if (finish === '') return
    this.#finish = finish
    this.#finishMessage = textOf(candidate.finishMessage)
  }

  protected override close(): void {
    const hasEnded = this.#finish !== ''
    const stop = hasEnded ? readStop(this.#finish, this.#finishMessage, this.#ids.size > 0) : this.#blocked
    if (!stop) return super.close()
    if ('fault' in stop) return this.reply.fail(stop.fault)
    this.start()
    this.#endText()
    if (!this.reply.filled) this.reply.text(this.#blank)
    this.reply.end(stop, this.usageSoFar)
  }

  // Turns parts into blocks: block boundaries, call ids, and the block that carries the provider's signature.

  /** `argumentsAt` returns the arguments of a part's call as written. */
  #readParts(parts: readonly unknown[], argumentsAt: (part: number) => string | undefined): void {
    for (const [place, part] of parts.entries()) {
      if (!isRecord(part)) continue
      const signature = textOf(part.thoughtSignature)
      if (isRecord(part.functionCall)) {
        this.#call(part.functionCall, signature, argumentsAt(place))
      } else if (typeof part.text === 'string' || signature !== '') {
        const text = textOf(part.text)
        if (part.thought === true) this.#thought(text, signature)
        else if (text === '') this.#lateSignature(signature)
        else this.#text(text, signature)
      } else {
        // Images and code execution, which were not requested.
        this.#isApart = true
      }
    }
  }

  #thought(text: string, signature: string): void {
    this.#endText()
    if (text !== '') this.#unsignedCall = undefined
    this.reply.thinking(text)
    // Thinking after a signature is a new block with its own signature.
    if (signature !== '') this.#sign({ part: 'thought', signature })
  }

  #text(text: string, signature: string): void {
    if (signature !== '') this.#textSignature = signature
    // Some providers refuse a blank block when it comes back as history.
    if (this.reply.openKind !== 'text' && text.trim() === '') {
      this.#blank += text
      return
    }
    if (this.#isApart) this.reply.open({ kind: 'text', apart: true })
    this.reply.text(this.#blank + text)
    this.#blank = ''
    this.#isApart = false
    this.#unsignedCall = undefined
  }

  /** In a stream, a signature may follow on a part without text. */
  #lateSignature(signature: string): void {
    if (signature === '') return
    if (this.reply.openKind === 'thinking') this.#sign({ part: 'thought', signature })
    else if (this.#unsignedCall !== undefined) this.#sign({ part: 'call', id: this.#unsignedCall, signature })
    else this.#textSignature = signature
    this.#unsignedCall = undefined
  }

  /** Calls arrive complete. */
  #call(call: Record<string, unknown>, signature: string, written: string | undefined): void {
    const name = textOf(call.name)
    if (name === '') return this.reply.fail('a tool call without a name')
    this.#endText()
    const id = this.#idFor(textOf(call.id))
    if (signature !== '') this.#sign({ part: 'call', id, signature })
    this.reply.open({ kind: 'tool-call', id, name, custom: false })
    this.reply.arguments(isRecord(call.args) ? (written ?? JSON.stringify(recordOf(call.args))) : '{}')
    this.reply.close()
    this.#unsignedCall = signature === '' ? id : undefined
    this.#isApart = false
  }

  /** The given id, unless there is none or it is used twice. */
  #idFor(given: string): string {
    let id = given
    for (let n = this.#ids.size + 1; id === '' || this.#ids.has(id); n++) id = this.mintId('call', n)
    this.#ids.add(id)
    return id
  }

  /** Attaches the signature to the open thinking block, or to an empty one. */
  #sign(signed: SignedPart): void {
    if (this.reply.openKind !== 'thinking') this.reply.open({ kind: 'thinking' })
    this.#signed = signed
    this.reply.close()
    this.#isApart = false
  }

  #endText(): void {
    const signature = this.#textSignature
    this.#textSignature = ''
    if (signature !== '' && this.reply.openKind === 'text') this.#sign({ part: 'text', signature })
  }
}

// Why a generateContent reply ended.
//
//   finishReason                             calls   reply stops with
//   STOP                                     no      end
//   STOP                                     yes     tool-calls; there is no separate reason for them
//   MAX_TOKENS, CONTINUATION                 any     length
//   SAFETY and similar                       any     refusal
//   no candidate, promptFeedback.blockReason –       refusal
//   MALFORMED_FUNCTION_CALL and similar      any     no end: the reply has failed
//   OTHER and similar, unknown reasons       no      end, flagged as unknown
//   OTHER and similar, unknown reasons       yes     tool-calls, flagged as unknown

const lengths: ReadonlySet<string> = new Set(['MAX_TOKENS', 'CONTINUATION'])
const refusals: ReadonlySet<string> = new Set([
  ...['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE'],
  ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION'],
])
/** The model's output is not a reply; a retry may succeed. */
const failures: ReadonlySet<string> = new Set([
  ...['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MALFORMED_RESPONSE'],
  'MISSING_THOUGHT_SIGNATURE',
])

/** undefined if it is an end. `message`: the provider's explanation, '' if there is none. */
export function finishFault(finish: string, message: string): ProviderFault | undefined {
  return failures.has(finish)
    ? { ...replyFault(saying(finish, message)), code: finish, isInvalidOutput: true }
    : undefined
}

function readStop(finish: string, message: string, hasCalls: boolean): Stop | { readonly fault: ProviderFault } {
  const fault = finishFault(finish, message)
  if (fault) return { fault }
  if (lengths.has(finish)) return { unified: 'length', raw: finish }
  if (refusals.has(finish)) {
    return { unified: 'refusal', raw: finish, ...(message === '' ? {} : { explanation: message }) }
  }
  // Calls must be answered whatever the finish reason.
  const stop = { unified: hasCalls ? 'tool-calls' : 'end', raw: finish } as const
  return finish === 'STOP' ? stop : { ...stop, isUnknown: true }
}

/** The prompt was blocked and there is no answer. The reason may be empty. */
function blockedStop(reason: string, message: string): Stop {
  const word = reason === '' ? 'BLOCKED_REASON_UNSPECIFIED' : reason
  return { unified: 'refusal', raw: word, explanation: `prompt blocked: ${saying(word, message)}` }
}

function saying(word: string, message: string): string {
  return message === '' ? word : `${word}: ${message}`
}

// A body that was announced as an event stream but is plain JSON: buffered and read at the end. It is recognised by its
// first non-blank byte, because no line of a stream starts with a bracket.

const bytesMax = 4 * 1024 * 1024

class BareBody {
  #isBare: boolean | undefined
  readonly #buffer = new ByteBuffer()
  isTooLarge = false

  /**
   * Returns the bytes that belong to a stream, including buffered leading whitespace; undefined = everything is
   * buffered.
   */
  pass(chunk: Uint8Array): Uint8Array | undefined {
    this.#isBare ??= startsBare(chunk)
    if (this.#isBare === false && this.#buffer.length === 0) return chunk
    if (this.#buffer.length + chunk.length > bytesMax) this.isTooLarge = true
    if (!this.isTooLarge) this.#buffer.append(chunk)
    return this.#isBare === false ? this.#buffer.take() : undefined
  }

  /** The whole body; undefined if this is a stream. */
  take(): Uint8Array | undefined {
    return this.#isBare && !this.isTooLarge ? this.#buffer.take() : undefined
  }
}

/** undefined = only whitespace so far. */
function startsBare(chunk: Uint8Array): boolean | undefined {
  const first = chunk.find((byte) => byte > 0x20)
  return first === undefined ? undefined : first === 0x7b || first === 0x5b
}

export function hasEnded({ candidates, promptFeedback }: Record<string, unknown>): boolean {
  return textOf(recordOf(listOf(candidates)[0]).finishReason) !== '' || 'blockReason' in recordOf(promptFeedback)
}
