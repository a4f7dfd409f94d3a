// Parses a Chat Completions stream or whole reply. Blocks are implied by the deltas. The reply ends once, after usage had
// a chance to arrive, and only if the provider ended it.

import type { RequestId } from '../../../kernel/ids.ts'
import { isRecord, listOf, rawJsonAt, recordOf, textOf } from '../../canonical/json.ts'
import type { ReplyEvent, Stop } from '../../canonical/reply.ts'
import { writeSignature } from '../../canonical/signature.ts'
import type { StreamParser, Target } from '../../canonical/translation.ts'
import { ArgumentScan, ReplyBuilder, SseReplyParser } from '../../reply/builder.ts'
import { ThinkTags } from '../../reply/stages.ts'
import { unwrapArguments } from '../../request/tools.ts'
import { readErrorObject } from '../errors.ts'
import { ReasoningBlob } from '../reasoning.ts'
import { readUsage, usageIn } from '../usage.ts'

export function parseStream(target: Target, requestId: RequestId): StreamParser {
  return new ChatStreamParser(target, requestId)
}

class ChatStreamParser extends SseReplyParser {
  readonly #reasoning: ReasoningBlob
  readonly #calls: ToolCallMerge
  /** undefined if the host has a reasoning field. */
  readonly #thinkTags: ThinkTags | undefined
  #finish = ''
  #matched: string | undefined
  #refusal = ''
  /** Blank text that opened no block; it is prepended to the next text or dropped at the end. */
  #blank = ''
  /** Reasoning came as plain text, so `reasoning_details` only repeat it, in the same delta or at the end. */
  #hasPlainThinking = false
  /** Pieces that arrived in the middle of a call's arguments. */
  readonly #later: DeltaPiece[] = []

  constructor({ issuer, rules }: Target, requestId: RequestId) {
    const reasoning = new ReasoningBlob()
    const sign = (): string => writeSignature({ issuer, blob: reasoning.take() })
    super(new ReplyBuilder(sign), { readErrorObject }, requestId)
    this.#reasoning = reasoning
    this.#calls = new ToolCallMerge(this.reply, (place) => this.mintId('toolu_tg', place))
    // Thinking in tags has no details; those of the deltas, if any, belong to the reply's other blocks.
    const signTags = (): string => writeSignature({ issuer, blob: new ReasoningBlob().take() })
    this.#thinkTags = rules.thinkTags ? new ThinkTags(signTags) : undefined
  }

  protected override take(): readonly ReplyEvent[] {
    const tags = this.#thinkTags
    return tags ? super.take().flatMap((event) => tags.push(event)) : super.take()
  }

  /** A host that closes after a finish_reason has finished; a close without one is a failure. */
  protected override close(): void {
    if (this.#finish === '') super.close()
    else this.done()
  }

  /** A whole reply is one chunk. One with complete JSON has ended, even without a finish_reason. */
  protected readWhole(reply: Record<string, unknown>, json: string): void {
    const fault = incompleteReply(reply)
    if (fault) return this.reply.fail(fault)
    this.read(reply, '', json)
    if (!this.reply.over) this.done()
  }

  protected read(chunk: Record<string, unknown>, _event: string, json: string): void {
    if (this.id === '') this.id = textOf(chunk.id)
    const choices = listOf(chunk.choices)
    const place = choices.findIndex(isRecord)
    const choice = recordOf(choices[place])
    this.usageSoFar = readUsage(usageIn(chunk), chunk.service_tier) ?? this.usageSoFar
    if (place < 0) return
    const finish = textOf(choice.finish_reason)
    const error = choice.error ?? null
    if (error !== null || finish === 'error') {
      return this.reply.fail(readErrorObject(error ?? { message: 'the reply ended with an error' }))
    }
    this.start()
    // A last record may repeat the whole message after its deltas.
    const member = isRecord(choice.delta) ? 'delta' : this.reply.filled ? undefined : 'message'
    if (member) this.#readDelta(recordOf(choice[member]), json, ['choices', place, member])
    if (finish !== '') this.#finish = finish
    if (typeof choice.stop_reason === 'string') this.#matched = choice.stop_reason
  }

  #readDelta(delta: Record<string, unknown>, json: string, at: readonly (string | number)[]): void {
    this.#reasoning.push(readDetails(delta))
    this.#hasPlainThinking ||= plainThinkingOf(delta) !== ''
    for (const piece of readPieces(delta, this.#hasPlainThinking)) this.#piece(piece)
    const rawArguments = (place: readonly (string | number)[]): string => rawJsonAt(json, [...at, ...place]) ?? ''
    for (const fragment of readCalls(delta, rawArguments)) {
      this.#passReasoningBlob()
      this.#calls.push(fragment)
    }
    if (this.#later.length > 0 && !this.#calls.isBusy) this.#passLater()
  }

  #piece(piece: DeltaPiece): void {
    const { kind, text } = piece
    if (this.#calls.isBusy) return void this.#later.push(piece)
    // Providers refuse a blank block when it comes back as history.
    if (kind === 'text' && this.reply.openKind !== 'text' && text.trim() === '') {
      this.#blank += text
      return
    }
    this.#calls.settle()
    if (kind === 'thinking') return this.reply.thinking(text)
    if (this.reply.openKind !== kind) this.#passReasoningBlob()
    if (kind === 'refusal') this.#refusal += text
    this.reply.text(kind === 'text' ? this.#blank + text : text, kind)
    if (kind === 'text') this.#blank = ''
  }

  #passLater(): void {
    for (const piece of this.#later.splice(0)) this.#piece(piece)
  }

  /** Emits reasoning that is not readable and has no text to sign. */
  #passReasoningBlob(): void {
    if (!this.#reasoning.isOpaque || this.reply.openKind === 'thinking' || !this.#calls.isResting) return
    this.#calls.settle()
    this.reply.open({ kind: 'thinking' })
    this.reply.close()
  }

  protected override done(): void {
    if (!this.reply.started) return this.reply.fail('a stream without a reply')
    this.#calls.settle()
    this.#passLater()
    this.#passReasoningBlob()
    if (!this.reply.filled) this.reply.text(this.#blank)
    if (!this.reply.hasOutput && this.#finish === '') return this.reply.fail('an empty answer')
    this.reply.end(readStop(this.#finish, this.#calls.hasCalls, this.#refusal, this.#matched), this.usageSoFar)
  }
}

// Reads a delta. Hosts use these members:
//
//   text       content, a string or a list of text parts
//   thinking   reasoning_content, reasoning, the texts in reasoning_details; thinking parts in a list of content
//   refusal    refusal, refusal parts
//   calls      tool_calls, and the legacy function_call
//
// Hosts that send reasoning under two names send the same text, so the first non-empty one counts. Some, like this gateway,
// stream the plain text and send the details once, at the end.

interface DeltaPiece {
  readonly kind: 'text' | 'thinking' | 'refusal'
  readonly text: string
}

/** In display order. */
function readPieces(delta: Record<string, unknown>, hasPlainThinking: boolean): DeltaPiece[] {
  const thinking = hasPlainThinking ? plainThinkingOf(delta) : detailedThinkingOf(delta)
  const pieces: DeltaPiece[] = [{ kind: 'thinking', text: thinking }]
  if (Array.isArray(delta.content)) pieces.push(...delta.content.map(readPart))
  else pieces.push({ kind: 'text', text: textOf(delta.content) })
  pieces.push({ kind: 'refusal', text: textOf(delta.refusal) })
  return pieces.filter(({ text }) => text !== '')
}

function plainThinkingOf(delta: Record<string, unknown>): string {
  return textOf(delta.reasoning_content) || textOf(delta.reasoning)
}

function detailedThinkingOf(delta: Record<string, unknown>): string {
  return readDetails(delta)
    .map((detail) => textOf(detail.text) || textOf(detail.summary))
    .join('')
}

function readPart(part: unknown): DeltaPiece {
  if (!isRecord(part)) return { kind: 'text', text: '' }
  if (part.type === 'refusal') return { kind: 'refusal', text: textOf(part.refusal) }
  if (part.type !== 'thinking') return { kind: 'text', text: textOf(part.text) }
  const inner: unknown[] = Array.isArray(part.thinking) ? part.thinking : [part.thinking]
  return { kind: 'thinking', text: inner.map((each) => textOf(isRecord(each) ? each.text : each)).join('') }
}

function readDetails(delta: Record<string, unknown>): Record<string, unknown>[] {
  return listOf(delta.reasoning_details).filter(isRecord)
}

/** `rawArguments` returns the text of arguments that a host sent as an object instead of a string. */
function readCalls(
  delta: Record<string, unknown>,
  rawArguments: (place: readonly (string | number)[]) => string,
): CallFragment[] {
  const isLegacy = isRecord(delta.function_call)
  const entries = isLegacy ? [{ function: delta.function_call }] : listOf(delta.tool_calls)
  return entries.flatMap((value, place) => {
    if (!isRecord(value)) return []
    const entry: Record<string, unknown> = value
    const called = recordOf(entry.function)
    const custom = isRecord(entry.custom) ? entry.custom : undefined
    const path = isLegacy ? ['function_call'] : ['tool_calls', place, 'function']
    const text = isRecord(called.arguments) ? rawArguments([...path, 'arguments']) : textOf(called.arguments)
    return {
      index: typeof entry.index === 'number' ? entry.index : undefined,
      id: textOf(entry.id),
      name: textOf(custom?.name) || textOf(called.name),
      custom: custom !== undefined,
      arguments: textOf(custom?.input) || text,
      isFurther: place > 0,
    }
  })
}

// Assembles tool calls from fragments. Hosts number them from any index or not at all, send id and name late, twice or
// as null, and interleave the fragments of several calls. The output is whole calls in order.

/** One entry of `tool_calls`; '' stands for a missing value or null. */
interface CallFragment {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
  readonly custom: boolean
  readonly arguments: string
  /** An earlier entry of the same list exists, so this is another call even without an index. */
  readonly isFurther: boolean
}

const blankOrBraces = /^[\s{}]*$/

class Call {
  id = ''
  name = ''
  custom = false
  state: 'waiting' | 'open' | 'closed' = 'waiting'
  /** Arguments not passed on yet. */
  held = ''
  scan = new ArgumentScan()
  /** An empty object was passed on, and something else came after it. */
  isAmended = false
  /** So far no more than an empty object. */
  #isEmpty = true

  constructor(readonly index: number | undefined) {}

  /** Complete once another call starts. For plain text this cannot be known. */
  get isWhole(): boolean {
    return this.custom || this.scan.complete
  }

  get isPartial(): boolean {
    return !this.custom && this.scan.isPartial
  }

  /** So far only an empty object. */
  get isBare(): boolean {
    return !this.custom && this.scan.complete && /^\s*\{\s*\}$/.test(this.held)
  }

  take(fragment: CallFragment): void {
    // The first non-empty value counts: hosts repeat them, or send others later.
    if (this.id === '') this.id = fragment.id
    if (this.name === '') this.name = fragment.name
    this.custom ||= fragment.custom
    if (this.custom) this.held += fragment.arguments
    else this.#takeJson(fragment.arguments)
  }

  #takeJson(text: string): void {
    if (this.scan.complete) {
      // Text after a complete object repeats it, but some hosts announce arguments with an empty object.
      if (!this.isBare) {
        this.isAmended ||= this.#isEmpty && !blankOrBraces.test(text)
        return
      }
      if (!text.trimStart().startsWith('{')) return
      this.held = ''
      this.scan = new ArgumentScan()
    }
    const value = this.scan.push(text)
    // A string is examined as a whole at the end.
    this.held += this.scan.first === '"' ? text : value
    this.#isEmpty &&= blankOrBraces.test(value)
  }
}

class ToolCallMerge {
  readonly #calls: Call[] = []
  readonly #ids = new Set<string>()
  /** A call was passed on. */
  hasCalls = false

  /** `mintId` creates an id for a call without one; the argument is its number among the calls, from 1. */
  constructor(
    private readonly reply: ReplyBuilder,
    private readonly mintId: (place: number) => string,
  ) {}

  /** A call's arguments are incomplete. */
  get isBusy(): boolean {
    return this.#calls.some((call) => call.state !== 'closed' && call.isPartial)
  }

  /** All calls so far have complete arguments. */
  get isResting(): boolean {
    return this.#calls.every((call) => call.state === 'closed' || call.scan.complete)
  }

  push(fragment: CallFragment): void {
    const call = this.#callOf(fragment)
    call.take(fragment)
    const isLate = call.isAmended || (call.state === 'closed' && call.held.trim() !== '')
    if (isLate) this.reply.fail('arguments for a tool call that had ended')
    this.#advance()
  }

  /** Nothing more arrives for the calls so far: passes on and ends all of them. */
  settle(): void {
    for (const call of this.#calls) {
      if (call.state === 'waiting' && call.name !== '') this.#open(call)
      if (call.state === 'open') this.#close(call)
      if (call.state === 'waiting' && call.held.trim() !== '') this.reply.fail('a tool call without a name')
      call.state = 'closed'
    }
  }

  #callOf(fragment: CallFragment): Call {
    const { index, id, name } = fragment
    const last = this.#calls.at(-1)
    if (index !== undefined) {
      const same = this.#calls.findLast((call) => call.index === index)
      if (same) return beginsAnother(same, fragment) ? this.#add(index) : same
      // Each fragment has its own index, so the id identifies the call. But with a name it is a new call, because other
      // hosts use one id for all calls.
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

  /** Passes on what is certain: the open call as it arrives, the next one once the open one is complete. */
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
    // Some hosts use one id for all calls, so results could not be matched.
    if (this.#ids.has(id)) id = `${id}_${place}`
    this.#ids.add(id)
    this.hasCalls = true
    call.state = 'open'
    this.reply.open({ kind: 'tool-call', id, name: call.name, custom: call.custom })
  }

  /**
   * Blank arguments mean none, a string may be an object encoded twice, and an empty object may precede the real one.
   * All of this is only known at the end.
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

/** Whether a fragment with the index of a call starts another call. */
function beginsAnother(call: Call, { id, name, arguments: text }: CallFragment): boolean {
  if (id !== '' && call.id !== '' && id !== call.id) return name !== '' || call.isWhole
  if (id !== '' && id === call.id) return false
  return name !== '' && call.name !== '' && call.isWhole && (text !== '' || name !== call.name)
}

// Stop reasons.
//
//   finish_reason                 calls   reply stops with
//   stop, unknown, none           no      end; stop-sequence where the host names the match; refusal after refusal text
//   stop, unknown, none           yes     tool-calls: many hosts report stop after a call
//   tool_calls, function_call     yes/no  tool-calls / end
//   length                        any     length: a call may be cut in the middle
//   content_filter                any     refusal
//
// `error` does not get here.

const knownReasons: ReadonlySet<string> = new Set(['stop', 'length', 'content_filter', 'tool_calls', 'function_call'])

/**
 * `finish`: the last finish_reason, '' if there was none before a clean end. `refusal`: its text, '' if there is none.
 * `sequence`: the matched stop sequence, if the host reports it.
 */
function readStop(finish: string, hasCalls: boolean, refusal: string, sequence: string | undefined): Stop {
  const end = { raw: finish, ...(!knownReasons.has(finish) && { isUnknown: true as const }) }
  const explained = refusal === '' ? {} : { explanation: refusal }
  if (finish === 'length') return { unified: 'length', ...end }
  if (finish === 'content_filter') return { unified: 'refusal', ...end, ...explained }
  if (hasCalls) return { unified: 'tool-calls', ...end }
  if (refusal !== '') return { unified: 'refusal', ...end, ...explained }
  return sequence === undefined ? { unified: 'end', ...end } : { unified: 'stop-sequence', ...end, sequence }
}

/** undefined if the reply has choices and all have ended. */
function incompleteReply({ choices }: Record<string, unknown>): string | undefined {
  const list = listOf(choices)
  if (list.length === 0) return 'a reply without choices'
  const hasEnded = (choice: unknown) => isRecord(choice) && choice.finish_reason !== 'error' && isRecord(choice.message)
  return list.every(hasEnded) ? undefined : 'a reply without an end'
}
