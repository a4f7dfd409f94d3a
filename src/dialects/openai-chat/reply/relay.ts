// Relays Chat Completions streams and replies as bytes. Records pass unchanged except for the model's name, the cost in
// the usage record, and that record itself if the caller did not ask for it.

import type { Usage } from '../../../kernel/usage.ts'
import { utf8Text } from '../../../wire/bytes.ts'
import { JsonEdits, type JsonNode, peekJson } from '../../../wire/json.ts'
import { JsonTextMeter } from '../../../wire/json-text-meter.ts'
import { sseEvent } from '../../../wire/sse.ts'
import { createReplyRelay, isPresent, nameModel, RecordRelay } from '../../byte-lane/relay.ts'
import { isRecord, jsonArray, jsonMembers, jsonObject, listOf, parseRecord, recordOf } from '../../canonical/json.ts'
import { readErrorObject } from '../errors.ts'
import { readUsage, renderUsage, usageIn } from '../usage.ts'

const done = new TextEncoder().encode('[DONE]')
const ownTerminal = sseEvent(undefined, '[DONE]')

export class ChatStreamRelay extends RecordRelay {
  #last: JsonNode | undefined
  /** The last usage that the client was sent, and its cost. */
  #stated: { readonly usage: Usage; readonly cost: string } | undefined
  /** The meter's count over all chunks so far. */
  #seen = 0
  readonly #ended = new Set<unknown>()
  protected readonly renderUsage = renderUsage

  protected read(record: Uint8Array): void {
    const { dataStart, dataEnd } = this.sse
    if (isDone(record, dataStart, dataEnd)) return this.#end(record)
    // An invalid record is dropped; a stream without an end still fails.
    const chunk = peekJson(record, dataStart, dataEnd)
    if (chunk) this.#readChunk(record, chunk)
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
    if (this.bytesAtReport !== this.outputBytes) this.#quoteAgain()
    this.#passOwnUsage()
    this.finish(terminal)
  }

  #readChunk(record: Uint8Array, chunk: JsonNode): void {
    const error = chunk.get('error')
    if (isPresent(error)) {
      this.fault = readErrorObject(error.value())
      return
    }
    if (!this.meaningful) this.meaningful = isMeaningfulChunk(chunk.text)
    const choices = chunk.get('choices')
    if (choices) this.#measure(record, choices)
    this.#last = chunk
    const usage = chunk.get('usage')
    // Without choices or a model it is not a chunk, and passes unchanged.
    if (usage?.kind !== 'object')
      return choices || chunk.get('model') ? this.passNamed(record, chunk) : this.pass(record)
    // Some hosts report usage in every chunk; the last one is the total.
    const reported = readUsage(usage.value(), chunk.get('service_tier')?.string)
    const edits = new JsonEdits(record)
    nameModel(edits, chunk, this.context)
    this.usageAtStart ??= reported
    this.usageSoFar = reported ?? this.usageSoFar
    const stated = this.quote(edits, chunk, reported, this.usageAtStart)
    // The extra record, which only the gateway asked for.
    const isExtra = choices?.kind === 'array' && choices.isEmpty
    if (isExtra && !this.context.wantsStreamUsage) return
    this.#stated = stated
    this.pass(edits.apply())
  }

  #measure(record: Uint8Array, choices: JsonNode): void {
    this.outputBytes += outputMeter.count(record, choices.start, choices.end)
    this.#seen |= outputMeter.seen
    if ((outputMeter.seen & seenEnd) === 0) return
    for (const index of endedChoices(choices.value())) this.#ended.add(index)
  }

  /** Strict clients discard a reply without a finish_reason, although its provider ended it. */
  #passOwnEnd(): void {
    const reason = (this.#seen & seenCall) === 0 ? '"stop"' : '"tool_calls"'
    const choice = jsonObject({ index: '0', delta: '{}', finish_reason: reason })
    this.#passOwn([['choices', jsonArray([choice])]])
  }

  #quoteAgain(): void {
    const last = recordOf(this.#last?.value())
    const reported = readUsage(usageIn(last), last.service_tier) ?? this.usageSoFar
    this.usage = this.context.quoteUsage(reported, this.usageAtStart, () => this.outputBytes)
    this.bytesAtReport = this.outputBytes
  }

  /**
   * A caller that asked for usage gets it, even if the provider sent none or put it elsewhere. Another caller
   * gets it only if it was sent a cost that is not the charge; it expects a choice in every chunk.
   */
  #passOwnUsage(): void {
    const { usage } = this
    const stated = this.#stated
    if (!usage || usage === stated?.usage || this.#last === undefined) return
    const { wantsStreamUsage } = this.context
    const cost = this.context.quotedUsd(usage)
    if (!wantsStreamUsage && (!stated || stated.cost === cost)) return
    const choices = wantsStreamUsage ? [] : [jsonObject({ index: '0', delta: '{}', finish_reason: 'null' })]
    this.#passOwn([
      ['choices', jsonArray(choices)],
      ['usage', renderUsage(usage, cost)],
    ])
  }

  /** Our own chunk, with the id and time of the last one. */
  #passOwn(members: readonly (readonly [string, string])[]): void {
    const { id, created } = recordOf(this.#last?.value())
    const json = jsonMembers([
      ['id', JSON.stringify(id)],
      ['object', '"chat.completion.chunk"'],
      ['created', JSON.stringify(created)],
      ['model', utf8Text(this.context.modelJson, 0, this.context.modelJson.length)],
      ...members,
    ])
    this.pass(sseEvent(undefined, json))
  }
}

function isDone(record: Uint8Array, start: number, end: number): boolean {
  if (end - start !== done.length) return false
  for (let i = 0; i < done.length; i++) if (record[start + i] !== done[i]) return false
  return true
}

export const relayReply = createReplyRelay({
  content: 'choices',
  readUsage: (value, _, reply) => readUsage(value, reply.get('service_tier')?.string),
  renderUsage,
  outputBytes(choices) {
    const json = Buffer.from(JSON.stringify(choices ?? null))
    return outputMeter.count(json, 0, json.length)
  },
  readErrorObject,
  isEmptyReply: ({ choices }) => !hasMeaning(choices, 'message'),
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

/** `error` does not count: without content before it, there is no answer. */
function isEnding(finishReason: unknown): boolean {
  return typeof finishReason === 'string' && finishReason !== '' && finishReason !== 'error'
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0
  return isRecord(value)
}
