// Parses a Messages stream. Blocks that only the provider can use (server tools and their results) are omitted.

import type { RequestId } from '../../../kernel/ids.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { rawJsonAt, recordOf, textOf } from '../../canonical/json.ts'
import type { Stop, StopReason } from '../../canonical/reply.ts'
import type { StreamParser, Target } from '../../canonical/translation.ts'
import { ReplyBuilder, SseReplyParser } from '../../reply/builder.ts'
import { readErrorObject } from '../errors.ts'
import { countsOutput, mergeUsage, readUsage, type UsageMembers } from '../usage.ts'

export function parseStream(_target: Target, requestId: RequestId): StreamParser {
  return new MessagesStreamParser(requestId)
}

class MessagesStreamParser extends SseReplyParser {
  #usage: UsageMembers = {}
  /** The output was counted at the end; otherwise it is estimated. */
  #isCounted = false
  #ending: Readonly<Record<string, unknown>> = {}
  #calls = 0
  #hasServerTools = false
  /** The open block is omitted. */
  #isSwallowing = false
  /** A block was omitted since the last one. */
  #isApart = false
  /** The provider's index of the open block. */
  #index: unknown
  /** Arguments in the start of a call; they count if no others follow. */
  #startInput = ''

  constructor(requestId: RequestId) {
    super(new ReplyBuilder(), { readErrorObject }, requestId)
  }

  get isOutputUncounted(): boolean {
    return !this.#isCounted
  }

  protected read(record: Record<string, unknown>, event: string, data: string): void {
    switch (textOf(record.type) || event) {
      case 'message_start':
        return this.#readStart(recordOf(record.message))
      case 'content_block_start':
        this.reply.start(undefined, undefined)
        this.#close()
        this.#index = record.index
        return this.#openBlock(recordOf(record.content_block), () => rawJsonAt(data, ['content_block', 'input']))
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
        return this.reply.keepAlive()
    }
  }

  protected readWhole(value: Readonly<Record<string, unknown>>, json: string): void {
    const { content, usage } = value
    if (!Array.isArray(content)) return this.reply.fail('a reply without content')
    if (textOf(value.stop_reason) === '') return this.reply.fail('a reply without an end')
    this.#readStart(value)
    for (const [i, block] of content.entries()) {
      this.#openBlock(recordOf(block), () => rawJsonAt(json, ['content', i, 'input']))
      this.#close()
    }
    this.#isCounted = countsOutput(usage)
    this.#ending = value
    this.#end()
  }

  #readStart(message: Readonly<Record<string, unknown>>): void {
    this.#merge(message.usage)
    this.id = textOf(message.id)
    this.start()
  }

  #merge(usage: unknown): void {
    this.#usage = mergeUsage(this.#usage, usage)
    this.usageSoFar = readUsage(this.#usage)
  }

  /** `input`: the arguments of a call, as written. */
  #openBlock(block: Record<string, unknown>, input: () => RawJson | undefined): void {
    switch (block.type) {
      case 'text':
        return this.#openText(textOf(block.text))
      case 'thinking':
        this.reply.open({ kind: 'thinking' })
        this.reply.thinking(textOf(block.thinking))
        this.reply.signature(textOf(block.signature))
        break
      case 'redacted_thinking':
        this.reply.open({ kind: 'sealed-thinking', data: textOf(block.data) })
        break
      case 'tool_use':
        this.#openCall(block, input)
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
    this.reply.open(this.#isApart ? { kind: 'text', apart: true } : { kind: 'text' })
    this.#isApart = false
    this.reply.text(text)
  }

  #openCall(block: Record<string, unknown>, input: () => RawJson | undefined): void {
    const name = textOf(block.name)
    if (name === '') return this.reply.fail('a tool call without a name')
    this.#calls += 1
    const id = textOf(block.id) || this.mintId('toolu_tg', this.#calls)
    this.reply.open({ kind: 'tool-call', id, name, custom: false })
    const hasInput = Object.keys(recordOf(block.input)).length > 0
    this.#startInput = hasInput ? (input() ?? JSON.stringify(block.input)) : ''
  }

  /** The kind of the delta counts, not the announced kind of its block. */
  #readDelta(delta: Record<string, unknown>, index: unknown): void {
    if (this.#isSwallowing) return
    this.reply.start(undefined, undefined)
    switch (delta.type) {
      case 'text_delta':
        return this.reply.text(textOf(delta.text))
      case 'thinking_delta':
        return this.reply.thinking(textOf(delta.thinking))
      case 'signature_delta':
        return this.reply.signature(textOf(delta.signature))
      case 'input_json_delta': {
        const text = textOf(delta.partial_json)
        if (text === '') return
        const isOpen = this.reply.openKind === 'tool-call' && (index === undefined || index === this.#index)
        // Misplaced arguments would be executed as they are.
        if (!isOpen) return this.reply.fail('arguments outside of their tool call')
        this.#startInput = ''
        return this.reply.arguments(text)
      }
    }
  }

  #close(): void {
    if (!this.#isSwallowing) this.reply.arguments(this.#startInput)
    this.#startInput = ''
    this.#isSwallowing = false
    this.#index = undefined
    this.reply.close()
  }

  #end(): void {
    if (!this.reply.started) return this.reply.fail('a stream without a reply')
    this.#close()
    if (!this.reply.hasOutput && textOf(this.#ending.stop_reason) === '') return this.reply.fail('an empty answer')
    const stop = readStop(this.#ending, this.#calls > 0, this.#hasServerTools)
    this.reply.end(stop, this.#isCounted ? this.usageSoFar : undefined)
  }
}

const stopsByReason: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'stop-sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool-calls',
  pause_turn: 'pause',
  refusal: 'refusal',
  compaction: 'end',
}

/** `members`: the latest ones of message_delta's `delta`. `hasServerTools`: the provider ran tools itself. */
function readStop(members: Readonly<Record<string, unknown>>, hasCalls: boolean, hasServerTools: boolean): Stop {
  const raw = textOf(members.stop_reason)
  const isKnown = Object.hasOwn(stopsByReason, raw)
  const said = isKnown ? (stopsByReason[raw] as StopReason) : 'end'
  const end = { raw, ...(!isKnown && { isUnknown: true as const }) }
  if (said === 'end' && hasCalls) return { unified: 'tool-calls', ...end }
  // No call is left for the caller: the provider waits for its own tools.
  if (said === 'tool-calls' && !hasCalls) return { unified: hasServerTools ? 'pause' : 'end', ...end }
  if (said === 'stop-sequence' && typeof members.stop_sequence === 'string') {
    return { unified: said, ...end, sequence: members.stop_sequence }
  }
  const explanation = textOf(recordOf(members.stop_details).explanation)
  return { unified: said, ...end, ...(said === 'refusal' && explanation !== '' ? { explanation } : {}) }
}
