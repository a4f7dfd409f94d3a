// A provider's Messages stream, read into canonical events. The dialect has blocks of its own; what only its provider
// can make use of (server tools and their results) is left out.

import type { Usage } from '../../kernel/usage.ts'
import { type SseEvent, SseReader } from '../../wire/sse-reader.ts'
import { parseRecord, rawJsonAt, recordOf, textOf } from '../canonical/json.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import type { StreamParser } from '../canonical/translation.ts'
import { ReplyBuilder } from '../reply/builder.ts'
import { readErrorObject } from './failure.ts'
import { readStop } from './stop-reason.ts'
import { countsOutput, mergeUsage, readUsage, type UsageMembers } from './usage.ts'

export function parseStream(): StreamParser {
  return new MessagesStreamParser()
}

class MessagesStreamParser implements StreamParser {
  skipped = 0
  readonly #reader = new SseReader()
  readonly #reply = new ReplyBuilder()
  #usage: UsageMembers = {}
  #usageSoFar: Usage | undefined
  /** The output was counted at the end, or is to be estimated. */
  #isCounted = false
  #ending: Record<string, unknown> = {}
  #calls = 0
  #hasServerTools = false
  /** The open block is one that is not passed on. */
  #isSwallowing = false
  /** One has been swallowed since the last block. */
  #isApart = false
  /** The provider's number of the open block. */
  #index: unknown
  /** Arguments that came with the start of a call; they count if no others follow. */
  #startInput = ''

  get usageSoFar(): Usage | undefined {
    return this.#usageSoFar
  }

  get isOutputUncounted(): boolean {
    return !this.#isCounted
  }

  push(chunk: Uint8Array): readonly ReplyEvent[] {
    for (const event of this.#reader.push(chunk)) this.#read(event)
    return this.#reply.take()
  }

  end(): readonly ReplyEvent[] {
    for (const event of this.#reader.end()) this.#read(event)
    if (!this.#reply.over) this.#reply.fail('a stream without an end')
    return this.#reply.take()
  }

  #read({ event, data }: SseEvent): void {
    if (this.#reply.over) return
    const record = parseRecord(data)
    if (record === undefined) {
      this.skipped += 1
      return
    }
    const type = textOf(record.type) || event
    if (type === 'error' || (record.error ?? null) !== null) return this.#reply.fail(readErrorObject(record.error))
    switch (type) {
      case 'message_start':
        return this.#readStart(recordOf(record.message))
      case 'content_block_start':
        return this.#readBlockStart(record, data)
      case 'content_block_delta':
        return this.#readDelta(recordOf(record.delta), record.index)
      case 'content_block_stop':
        if (record.index === undefined || record.index === this.#index) this.#close()
        return
      case 'message_delta':
        this.#merge(record.usage)
        this.#isCounted ||= countsOutput(record.usage)
        this.#ending = mergeUsage(this.#ending, record.delta)
        return
      case 'message_stop':
        return this.#end()
      case 'ping':
        return this.#reply.keepAlive()
    }
  }

  #readStart(message: Record<string, unknown>): void {
    this.#merge(message.usage)
    this.#reply.start(textOf(message.id) || undefined, this.#usageSoFar)
  }

  #merge(usage: unknown): void {
    this.#usage = mergeUsage(this.#usage, usage)
    this.#usageSoFar = readUsage(this.#usage)
  }

  #readBlockStart(record: Record<string, unknown>, json: string): void {
    this.#reply.start(undefined, undefined)
    this.#close()
    this.#index = record.index
    const block = recordOf(record.content_block)
    switch (block.type) {
      case 'text':
        return this.#openText(textOf(block.text))
      case 'thinking':
        this.#reply.open({ kind: 'thinking' })
        this.#reply.thinking(textOf(block.thinking))
        this.#reply.signature(textOf(block.signature))
        break
      case 'redacted_thinking':
        this.#reply.open({ kind: 'sealed-thinking', data: textOf(block.data) })
        break
      case 'tool_use':
        this.#openCall(block, json)
        break
      default:
        this.#isSwallowing = true
        this.#isApart = true
        if (block.type === 'server_tool_use') this.#hasServerTools = true
        return
    }
    this.#isApart = false
  }

  #openText(text: string): void {
    this.#reply.open(this.#isApart ? { kind: 'text', apart: true } : { kind: 'text' })
    this.#isApart = false
    this.#reply.text(text)
  }

  #openCall(block: Record<string, unknown>, json: string): void {
    const name = textOf(block.name)
    if (name === '') return this.#reply.fail('a tool call without a name')
    this.#calls += 1
    const id = textOf(block.id) || `toolu_tg_${this.#calls}`
    this.#reply.open({ kind: 'tool-call', id, name, custom: false })
    const hasInput = Object.keys(recordOf(block.input)).length > 0
    this.#startInput = hasInput ? (rawJsonAt(json, ['content_block', 'input']) ?? JSON.stringify(block.input)) : ''
  }

  /** The kind of a delta counts, not the kind its block was said to have. */
  #readDelta(delta: Record<string, unknown>, index: unknown): void {
    if (this.#isSwallowing) return
    this.#reply.start(undefined, undefined)
    switch (delta.type) {
      case 'text_delta':
        return this.#reply.text(textOf(delta.text))
      case 'thinking_delta':
        return this.#reply.thinking(textOf(delta.thinking))
      case 'signature_delta':
        return this.#reply.signature(textOf(delta.signature))
      case 'input_json_delta': {
        const text = textOf(delta.partial_json)
        if (text === '') return
        const isOpen = this.#reply.openKind === 'tool-call' && (index === undefined || index === this.#index)
        // Arguments in the wrong call, or missing in theirs, would be run as they are.
        if (!isOpen) return this.#reply.fail('arguments outside of their tool call')
        this.#startInput = ''
        return this.#reply.arguments(text)
      }
    }
  }

  #close(): void {
    if (!this.#isSwallowing) this.#reply.arguments(this.#startInput)
    this.#startInput = ''
    this.#isSwallowing = false
    this.#index = undefined
    this.#reply.close()
  }

  #end(): void {
    if (!this.#reply.started) return this.#reply.fail('a stream without a reply')
    this.#close()
    if (!this.#reply.hasOutput && textOf(this.#ending.stop_reason) === '') return this.#reply.fail('an empty answer')
    const seen = { members: this.#ending, hasCalls: this.#calls > 0, hasServerTools: this.#hasServerTools }
    this.#reply.end(readStop(seen), this.#isCounted ? this.#usageSoFar : undefined)
  }
}
