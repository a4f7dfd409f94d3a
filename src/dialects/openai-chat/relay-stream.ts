// Chat Completions streams on the byte lane: every record passes as it came, but for the model's name, the cost in the
// usage record, and that record itself where the caller did not ask for it.

import { openBrace } from '../../wire/ascii.ts'
import type { ByteEdit } from '../../wire/json-members.ts'
import { JsonSpans } from '../../wire/json-spans.ts'
import { sseComment, sseEvent } from '../../wire/sse-writer.ts'
import { utf8Text } from '../../wire/utf8.ts'
import {
  costEdit,
  isObject,
  isPresent,
  modelEdit,
  parseSpan,
  RecordRelay,
  spliceReply,
  usageEdit,
} from '../byte-lane/relay.ts'
import { jsonArray, jsonObject, recordOf } from '../canonical/json.ts'
import { readErrorObject } from './failure.ts'
import { endedChoices, isMeaningfulChunk } from './meaningful.ts'
import { outputMeter, seenCall, seenEnd } from './output-meter.ts'
import { renderUsage } from './render-usage.ts'
import { readUsage, usageIn } from './usage.ts'

const done = new TextEncoder().encode('[DONE]')
const ownTerminal = sseEvent(undefined, '[DONE]')
/** Anything but a comment breaks chat clients. */
export const keepAlive = sseComment('keep-alive')

export class ChatStreamRelay extends RecordRelay {
  readonly #json = new JsonSpans(['model', 'usage', 'choices', 'error'])
  #last: Uint8Array | undefined
  /** What the meter has seen in all chunks so far. */
  #seen = 0
  /** Those of the answers asked for that have said how they ended. */
  readonly #ended = new Set<unknown>()

  keepAlive(): Uint8Array {
    return keepAlive
  }

  protected read(record: Uint8Array): void {
    const { dataStart, dataEnd } = this.sse
    if (isDone(record, dataStart, dataEnd)) return this.#end(record)
    // One bad record does not spoil a stream: it is left out, and a stream without its end still fails.
    if (this.#json.read(record, dataStart, dataEnd)) this.#readChunk(record, dataStart, dataEnd)
  }

  get isOwed(): boolean {
    return !this.finished && this.#isEnded()
  }

  #isEnded(): boolean {
    return this.#ended.size >= this.context.envelope.choices
  }

  /** Hosts that close behind their last chunk have said that they finished; a bare close says nothing. */
  protected override onClose(): void {
    if (this.#isEnded()) this.#end(ownTerminal)
  }

  #end(terminal: Uint8Array): void {
    if ((this.#seen & seenEnd) === 0 && this.meaningful) this.#passOwnEnd()
    // What was counted before the last of the output is looked at again: it may be of the input alone.
    if (this.countedBytes !== this.outputBytes) this.#passOwnUsage()
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
    const edit = this.#readUsage(record)
    // The extra record that we asked for and the caller did not.
    if (isEmptyList(record, choices) && !this.context.wantsStreamUsage) return
    this.pass(spliceReply(record, modelEdit(record, model, this.context.modelJson, dataStart), edit))
  }

  #passNamed(record: Uint8Array, dataStart: number): void {
    const { model, choices } = this.#json.of
    const { modelJson } = this.context
    // Nearly every record: nothing is made for it but its copy.
    if (model.start >= 0) return this.passEdited(record, model.start, model.end, modelJson)
    // What is no chunk stays as it is.
    if (choices.start < 0) return this.pass(record)
    const { start, end, bytes } = modelEdit(record, model, modelJson, dataStart)
    this.passEdited(record, start, end, bytes)
  }

  /** Keeps what was reported and answers with the edit that puts its cost beside it, or a better usage in its place. */
  #readUsage(record: Uint8Array): ByteEdit {
    const span = this.#json.of.usage
    const reported = readUsage(parseSpan(record, span))
    const usage = this.context.finalUsage(reported, this.usageSoFar, () => this.outputBytes)
    const cost = this.context.costOf(usage)
    // Some hosts count in every chunk: the last one is the whole.
    this.usage = usage
    this.countedBytes = this.outputBytes
    this.usageSoFar = reported ?? this.usageSoFar
    return usage === reported ? costEdit(record, span, cost) : usageEdit(record, span, renderUsage(usage, cost))
  }

  /** Strict clients throw an answer away that says nowhere how it ended, although its provider has said that it did. */
  #passOwnEnd(): void {
    const reason = (this.#seen & seenCall) === 0 ? '"stop"' : '"tool_calls"'
    const choice = jsonObject([
      ['index', '0'],
      ['delta', '{}'],
      ['finish_reason', reason],
    ])
    this.#passOwn([['choices', jsonArray([choice])]])
  }

  /** A caller that asked for usage gets it, also where the provider sends none, or has another place for it. */
  #passOwnUsage(): void {
    const reported = readUsage(usageIn(this.#lastChunk())) ?? this.usageSoFar
    const usage = this.context.finalUsage(reported, this.usageSoFar, () => this.outputBytes)
    if (usage === this.usage) return
    this.usage = usage
    this.countedBytes = this.outputBytes
    if (!this.context.wantsStreamUsage || this.#last === undefined) return
    this.#passOwn([
      ['choices', '[]'],
      ['usage', renderUsage(usage, this.context.costOf(usage))],
    ])
  }

  /** A chunk of ours, which says of itself what the last one said. */
  #passOwn(members: readonly (readonly [string, string])[]): void {
    const { id, created } = this.#lastChunk()
    const json = jsonObject([
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
