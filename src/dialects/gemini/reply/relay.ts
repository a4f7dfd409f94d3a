// Relays generateContent streams and replies as bytes. Records pass unchanged except for the model's name, and the cost
// in the usage of the last one. Which one is last is known when the provider closes, so from the first finish reason on
// each record waits for the next.

import type { Usage } from '../../../kernel/usage.ts'
import { JsonSpans, spliceBytes } from '../../../wire/json.ts'
import {
  costEdit,
  isPresent,
  modelEdit,
  parseSpan,
  RecordRelay,
  type RelayReply,
  spliceReply,
  usageEdit,
} from '../../byte-lane/relay.ts'
import { type ProviderFault, replyFault } from '../../canonical/faults.ts'
import { isRecord, listOf, recordOf, textOf } from '../../canonical/json.ts'
import { readErrorObject } from '../errors.ts'
import { readUsage, renderUsage } from '../usage.ts'
import { finishFault, hasEnded } from './parse.ts'

const memberNames = ['candidates', 'promptFeedback', 'usageMetadata', 'modelVersion', 'error'] as const
const modelMember = new TextEncoder().encode('"modelVersion":')

export class GeminiStreamRelay extends RecordRelay {
  readonly #json = new JsonSpans(memberNames)
  /** Waits for the next record or the end. */
  #last: Uint8Array | undefined
  #usageAtStart: Usage | undefined
  protected readonly renderUsage = renderUsage

  get awaitsUsage(): boolean {
    return !this.finished && this.#last !== undefined
  }

  protected read(record: Uint8Array): void {
    const { dataStart, dataEnd } = this.sse
    // An invalid record is dropped; a stream without an end still fails.
    if (!this.#json.read(record, dataStart, dataEnd)) return
    const { candidates, promptFeedback, modelVersion, error } = this.#json.of
    if (isPresent(record, error)) {
      this.fault = readErrorObject(parseSpan(record, error))
      return
    }
    const reply = { candidates: parseSpan(record, candidates), promptFeedback: parseSpan(record, promptFeedback) }
    this.fault = faultIn(reply.candidates)
    if (this.fault) return
    this.#measure(record, reply.candidates)
    const isEnding = hasEnded(reply)
    this.meaningful ||= this.outputBytes > 0 || isEnding
    // A record of usage alone has no name to replace.
    const isNamed = modelVersion.start >= 0 || candidates.start >= 0
    const named = isNamed
      ? spliceBytes(record, [modelEdit(record, modelVersion, this.context.modelJson, dataStart, modelMember)])
      : record
    if (this.#last) this.pass(this.#last)
    if (this.#last || isEnding) this.#last = named
    else this.pass(named)
  }

  #measure(record: Uint8Array, candidates: unknown): void {
    this.outputBytes += outputBytes(candidates)
    const usage = readUsage(parseSpan(record, this.#json.of.usageMetadata))
    if (!usage) return
    this.#usageAtStart ??= usage
    this.usageSoFar = usage
    this.bytesAtReport = this.outputBytes
  }

  /** There is no terminal record. */
  protected override onClose(): void {
    const record = this.#last
    if (!record) return
    this.sse.read(record)
    const { dataStart, dataEnd } = this.sse
    this.#json.read(record, dataStart, dataEnd)
    const { usageMetadata } = this.#json.of
    const edit = this.quote(record, usageMetadata, this.usageSoFar, this.#usageAtStart, dataEnd, 'usageMetadata')
    this.finish(spliceBytes(record, [edit]))
  }
}

const spans = new JsonSpans(memberNames)

export const relayReply: RelayReply = (body, context) => {
  if (!spans.read(body, 0, body.length)) {
    return { fault: replyFault('a reply that is no JSON object, or not all of it') }
  }
  const { candidates, promptFeedback, usageMetadata, modelVersion, error } = spans.of
  if (isPresent(body, error)) return { fault: readErrorObject(parseSpan(body, error)) }
  const reply = { candidates: parseSpan(body, candidates), promptFeedback: parseSpan(body, promptFeedback) }
  if (!hasEnded(reply)) return { fault: replyFault('a reply without an end') }
  const fault = faultIn(reply.candidates)
  if (fault) return { fault }
  const reported = readUsage(parseSpan(body, usageMetadata))
  const usage = context.quoteUsage(reported, undefined, () => outputBytes(reply.candidates))
  const cost = context.quotedUsd(usage)
  const edit =
    usage === reported
      ? costEdit(body, usageMetadata, cost)
      : usageEdit(body, usageMetadata, renderUsage(usage, cost), body.length, 'usageMetadata')
  return { body: spliceReply(body, modelEdit(body, modelVersion, context.modelJson, 0, modelMember), edit), usage }
}

/** The model has ended in a way that is not a reply. */
function faultIn(candidates: unknown): ProviderFault | undefined {
  const { finishReason, finishMessage } = recordOf(listOf(candidates)[0])
  return finishFault(textOf(finishReason), textOf(finishMessage))
}

/** Bytes of generated text, thoughts and calls. */
function outputBytes(candidates: unknown): number {
  const parts = listOf(candidates).flatMap((candidate) => listOf(recordOf(recordOf(candidate).content).parts))
  return parts.reduce((bytes: number, part) => bytes + partBytes(recordOf(part)), 0)
}

function partBytes({ text, functionCall }: Record<string, unknown>): number {
  if (!isRecord(functionCall)) return Buffer.byteLength(textOf(text))
  return Buffer.byteLength(textOf(functionCall.name)) + Buffer.byteLength(JSON.stringify(functionCall.args ?? {}))
}
