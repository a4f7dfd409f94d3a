// Relays Chat Completions streams and replies as bytes. Records pass unchanged except for the model's name, the cost in
// the usage record, and that record itself if the caller did not ask for it.

import { openBrace, utf8Text } from '../../../wire/bytes.ts'
import { JsonSpans, JsonTextMeter } from '../../../wire/json.ts'
import { sseEvent } from '../../../wire/sse.ts'
import {
  createReplyRelay,
  isObject,
  isPresent,
  modelEdit,
  parseSpan,
  RecordRelay,
  spliceReply,
} from '../../byte-lane/relay.ts'
import { isRecord, jsonArray, jsonMembers, jsonObject, listOf, parseRecord, recordOf } from '../../canonical/json.ts'
import { readErrorObject } from '../errors.ts'
import { readUsage, renderUsage, usageIn } from '../usage.ts'

const done = new TextEncoder().encode('[DONE]')
const ownTerminal = sseEvent(undefined, '[DONE]')

export class ChatStreamRelay extends RecordRelay {
  readonly #json = new JsonSpans(['model', 'usage', 'choices', 'error'])
  #last: Uint8Array | undefined
  /** The meter's count over all chunks so far. */
  #seen = 0
  readonly #ended = new Set<unknown>()
  protected readonly renderUsage = renderUsage

  protected read(record: Uint8Array): void {
    const { dataStart, dataEnd } = this.sse
    if (isDone(record, dataStart, dataEnd)) return this.#end(record)
    // An invalid record is dropped; a stream without an end still fails.
    if (this.#json.read(record, dataStart, dataEnd)) this.#readChunk(record, dataStart, dataEnd)
  }

  get awaitsUsage(): boolean {
    return !this.finished && this.#isEnded()
  }

  #isEnded(): boolean {
    return this.#ended.size >= this.context.envelope.choices
  }

  /** A host that closes after all finish reasons has finished; any other close is a failure. */
  protected override onClose(): void {
    if (this.#isEnded()) this.#end(ownTerminal)
  }

  #end(terminal: Uint8Array): void {
    if ((this.#seen & seenEnd) === 0 && this.meaningful) this.#passOwnEnd()
    // Usage reported before the last output is checked again: it may cover only the input.
    if (this.bytesAtReport !== this.outputBytes) this.#passOwnUsage()
    this.finish(terminal)
  }

  #readChunk(record: Uint8Array, dataStart: number, dataEnd: number): void {
    const { model, usage, choices, error } = this.#json.of
    if (isPresent(record, error)) {
      this.fault = readErrorObject(parseSpan(record, error))
      return
    }
    if (!this.meaningful) this.meaningful = isMeaningfulChunk(utf8Text(record, dataStart, dataEnd))
    this.outputBytes += outputMeter.count(record, choices.start, choices.end)
    this.#seen |= outputMeter.seen
    if ((outputMeter.seen & seenEnd) !== 0) {
      for (const index of endedChoices(parseSpan(record, choices))) this.#ended.add(index)
    }
    this.#last = record
    if (!isObject(record, usage)) return this.#passNamed(record, dataStart)
    // Some hosts report usage in every chunk; the last one is the total.
    const reported = readUsage(parseSpan(record, usage))
    const edit = this.quote(record, usage, reported, this.usageSoFar)
    this.usageSoFar = reported ?? this.usageSoFar
    // The extra record, which only the gateway asked for.
    if (isEmptyList(record, choices) && !this.context.wantsStreamUsage) return
    this.pass(spliceReply(record, modelEdit(record, model, this.context.modelJson, dataStart), edit))
  }

  #passNamed(record: Uint8Array, dataStart: number): void {
    const { model, choices } = this.#json.of
    const { modelJson } = this.context
    // Hot path: allocates only the copy of the record.
    if (model.start >= 0) return this.passEdited(record, model.start, model.end, modelJson)
    // Not a chunk: pass it unchanged.
    if (choices.start < 0) return this.pass(record)
    const { start, end, bytes } = modelEdit(record, model, modelJson, dataStart)
    this.passEdited(record, start, end, bytes)
  }

  /** Strict clients discard a reply without a finish_reason, although its provider ended it. */
  #passOwnEnd(): void {
    const reason = (this.#seen & seenCall) === 0 ? '"stop"' : '"tool_calls"'
    const choice = jsonObject({ index: '0', delta: '{}', finish_reason: reason })
    this.#passOwn([['choices', jsonArray([choice])]])
  }

  /** A caller that asked for usage gets it, even if the provider sent none or put it elsewhere. */
  #passOwnUsage(): void {
    const reported = readUsage(usageIn(this.#lastChunk())) ?? this.usageSoFar
    const usage = this.context.quoteUsage(reported, this.usageSoFar, () => this.outputBytes)
    if (usage === this.usage) return
    this.usage = usage
    this.bytesAtReport = this.outputBytes
    if (!this.context.wantsStreamUsage || this.#last === undefined) return
    this.#passOwn([
      ['choices', '[]'],
      ['usage', renderUsage(usage, this.context.quotedUsd(usage))],
    ])
  }

  /** Our own chunk, with the id and time of the last one. */
  #passOwn(members: readonly (readonly [string, string])[]): void {
    const { id, created } = this.#lastChunk()
    const json = jsonMembers([
      ['id', JSON.stringify(id)],
      ['object', '"chat.completion.chunk"'],
      ['created', JSON.stringify(created)],
      ['model', utf8Text(this.context.modelJson, 0, this.context.modelJson.length)],
      ...members,
    ])
    this.pass(sseEvent(undefined, json))
  }

  #lastChunk(): Readonly<Record<string, unknown>> {
    const last = this.#last ?? new Uint8Array(0)
    return recordOf(parseSpan(last, { start: last.indexOf(openBrace), end: last.length }))
  }
}

function isDone(record: Uint8Array, start: number, end: number): boolean {
  if (end - start !== done.length) return false
  for (let i = 0; i < done.length; i++) if (record[start + i] !== done[i]) return false
  return true
}

function isEmptyList(record: Uint8Array, span: { start: number; end: number }): boolean {
  return span.end - span.start === 2 && record[span.start] === 0x5b
}

export const relayReply = createReplyRelay({
  content: 'choices',
  readUsage,
  renderUsage,
  outputBytes(choices) {
    const json = Buffer.from(JSON.stringify(choices ?? null))
    return outputMeter.count(json, 0, json.length)
  },
  readErrorObject,
  isEmptyReply,
})

// The members that hold generated text, under the names hosts use, and what else to detect while scanning.

/** `name`, `arguments` and `input` belong to tool calls, `transcript` to audio. */
const textNames = ['content', 'refusal', 'reasoning_content', 'reasoning', 'name', 'arguments', 'input', 'transcript']

/** Bits of `outputMeter.seen`: the reply has a finish reason; it calls a tool. */
const seenEnd = 0b01
const seenCall = 0b10

/** `seen` must be read right after the count that set it. */
export const outputMeter = new JsonTextMeter(textNames, ['finish_reason', 'name'])

// Whether a chunk has something that a client would display: text, reasoning, a tool call or an end. Role-only chunks,
// filter results and usage do not count. Until then another provider can be tried.

/** Members of a delta with generated output, under the names hosts use. */
const outputNames = [
  ...['content', 'refusal', 'reasoning_content', 'reasoning', 'tool_calls', 'function_call', 'audio', 'images'],
]

export function isMeaningfulChunk(json: string): boolean {
  return hasMeaning(parseRecord(json)?.choices, 'delta')
}

function hasMeaning(choices: unknown, member: 'delta' | 'message'): boolean {
  return listOf(choices).some((value) => {
    const choice = recordOf(value)
    const content = recordOf(choice[member])
    return isEnding(choice.finish_reason) || outputNames.some((name) => isFilled(content[name]))
  })
}

/** The indexes of the choices with a finish reason. */
function endedChoices(choices: unknown): unknown[] {
  const ended = listOf(choices).filter((choice) => isEnding(recordOf(choice).finish_reason))
  return ended.map((choice) => recordOf(choice).index ?? 0)
}

/** `error` is not an end: with nothing before it, there is no answer. */
function isEnding(finishReason: unknown): boolean {
  return typeof finishReason === 'string' && finishReason !== '' && finishReason !== 'error'
}

/** Whether a whole reply has neither content nor a proper end. */
function isEmptyReply({ choices }: Record<string, unknown>): boolean {
  return !hasMeaning(choices, 'message')
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0
  return isRecord(value)
}
