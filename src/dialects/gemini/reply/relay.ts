// Relays generateContent streams and replies as bytes. Records pass unchanged except for the model's name, and the cost
// in the usage of the last one. Which one is last is known when the provider closes, so from the first finish reason on
// each record waits for the next.

import { JsonEdits, JsonNode, peekJson } from '../../../wire/json.ts'
import { isPresent, nameModel, RecordRelay, readReply } from '../../byte-lane/relay.ts'
import { type ProviderFault, replyFault } from '../../canonical/faults.ts'
import { isRecord, listOf, recordOf, textOf } from '../../canonical/json.ts'
import type { RelayReply } from '../../reply/relay.ts'
import { readErrorObject } from '../errors.ts'
import { readUsage, renderUsage } from '../usage.ts'
import { finishFault, hasEnded } from './parse.ts'

export class GeminiStreamRelay extends RecordRelay {
  /** Waits for the next record or the end. */
  #last: Uint8Array | undefined
  protected readonly renderUsage = renderUsage

  get awaitsUsage(): boolean {
    return !this.finished && this.#last !== undefined
  }

  protected read(record: Uint8Array): void {
    const event = peekJson(record, this.sse.dataStart, this.sse.dataEnd)
    // An invalid record is dropped; a stream without an end still fails.
    if (!event) return
    const error = event.get('error')
    const reply = contentOf(event)
    this.fault = isPresent(error) ? readErrorObject(error.value()) : faultIn(reply.candidates)
    if (this.fault) return
    this.#measure(reply.candidates, event.get('usageMetadata'))
    const isEnding = hasEnded(reply)
    this.meaningful ||= this.outputBytes > 0 || isEnding
    const named = this.#named(record, event)
    if (this.#last) this.pass(this.#last)
    if (this.#last || isEnding) this.#last = named
    else this.pass(named)
  }

  #measure(candidates: unknown, reported: JsonNode | undefined): void {
    this.outputBytes += outputBytes(candidates)
    const usage = readUsage(reported?.value())
    if (!usage) return
    this.usageAtStart ??= usage
    this.usageSoFar = usage
    this.bytesAtReport = this.outputBytes
  }

  /** A record of usage alone has no name to replace. */
  #named(record: Uint8Array, event: JsonNode): Uint8Array {
    if (!event.get('modelVersion') && !event.get('candidates')) return record
    const edits = new JsonEdits(record)
    nameModel(edits, event, this.context, 'modelVersion')
    return edits.apply()
  }

  /** There is no terminal record. */
  protected override onClose(): void {
    const record = this.#last
    if (!record) return
    this.sse.read(record)
    const event = peekJson(record, this.sse.dataStart, this.sse.dataEnd)
    const edits = new JsonEdits(record)
    if (event) this.quote(edits, event, this.usageSoFar, this.usageAtStart, 'usageMetadata')
    this.finish(edits.apply())
  }
}

export const relayReply: RelayReply = (body, context) => {
  const reply = readReply(body, readErrorObject)
  if (!(reply instanceof JsonNode)) return reply
  const content = contentOf(reply)
  if (!hasEnded(content)) return { fault: replyFault('a reply without an end') }
  const fault = faultIn(content.candidates)
  if (fault) return { fault }
  const written = reply.get('usageMetadata')
  const reported = readUsage(written?.value())
  const usage = context.quoteUsage(reported, undefined, () => outputBytes(content.candidates))
  const cost = context.quotedUsd(usage)
  const edits = new JsonEdits(body)
  nameModel(edits, reply, context, 'modelVersion')
  if (written && usage.source === 'reported') edits.put(written, 'cost', cost)
  else edits.put(reply, 'usageMetadata', renderUsage(usage, cost))
  return { body: edits.apply(), usage }
}

function contentOf(reply: JsonNode) {
  return { candidates: reply.get('candidates')?.value(), promptFeedback: reply.get('promptFeedback')?.value() }
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
