// Parses a Messages stream. Blocks that only the provider can use (server tools and their results) are omitted.

import type { JsonNode } from '../../../wire/json-members.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { type ProviderFault, replyFault } from '../../canonical/faults.ts'
import { isRecord, jsonMembers, jsonString, rawJsonAt, recordOf, textOf } from '../../canonical/json.ts'
import type { Stop, StopReason } from '../../canonical/reply.ts'
import type { StreamParser } from '../../canonical/translation.ts'
import { membersBut, openReply, ReplyBuilder, SseReplyParser } from '../../reply/builder.ts'
import { readErrorObject } from '../errors.ts'
import { countsOutput, mergeUsage, readUsage, type UsageMembers } from '../usage.ts'

export function parseStream(): StreamParser {
  return new MessagesStreamParser()
}

class MessagesStreamParser extends SseReplyParser {
  #usage: UsageMembers = {}
  /** The output was counted at the end; otherwise it is estimated. */
  #isCounted = false
  #ending: Record<string, unknown> = {}
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

  constructor() {
    super(new ReplyBuilder(), { readErrorObject })
  }

  get isOutputUncounted(): boolean {
    return !this.#isCounted
  }

  protected read(record: Record<string, unknown>, event: string, data: string): void {
    switch (textOf(record.type) || event) {
      case 'message_start':
        return this.#readStart(recordOf(record.message))
      case 'content_block_start':
        return this.#readBlockStart(recordOf(record.content_block), record.index, data, ['content_block'])
      case 'content_block_delta':
        return this.#readDelta(recordOf(record.delta), record.index)
      case 'content_block_stop':
        if (record.index === undefined || record.index === this.#index) this.#close()
        return
      case 'message_delta':
        return this.#readEnding(record.usage, record.delta)
      case 'message_stop':
        return this.#end()
      case 'ping':
        return this.reply.keepAlive()
    }
  }

  /** Each block is complete at its start. */
  protected readWhole(message: Record<string, unknown>, json: string): void {
    if (!Array.isArray(message.content)) return this.reply.fail('a reply without content')
    if (textOf(message.stop_reason) === '') return this.reply.fail('a reply without an end')
    this.#readStart(message)
    for (const [index, block] of (message.content as unknown[]).entries()) {
      this.#readBlockStart(recordOf(block), index, json, ['content', index])
    }
    this.#readEnding(message.usage, message)
    this.#end()
  }

  #readEnding(usage: unknown, ending: unknown): void {
    this.#merge(usage)
    this.#isCounted ||= countsOutput(usage)
    this.#ending = mergeUsage(this.#ending, ending)
  }

  #readStart(message: Record<string, unknown>): void {
    this.#merge(message.usage)
    this.id = textOf(message.id)
    this.start()
  }

  #merge(usage: unknown): void {
    this.#usage = mergeUsage(this.#usage, usage)
    this.usageSoFar = readUsage(this.#usage)
  }

  /** `path`: where the block is in the JSON text. */
  #readBlockStart(
    block: Record<string, unknown>,
    index: unknown,
    json: string,
    path: readonly (string | number)[],
  ): void {
    this.reply.start(undefined, undefined)
    this.#close()
    this.#index = index
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
        this.#openCall(block, json, path)
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

  #openCall(block: Record<string, unknown>, json: string, path: readonly (string | number)[]): void {
    const name = textOf(block.name)
    if (name === '') return this.reply.fail('a tool call without a name')
    this.#calls += 1
    const id = textOf(block.id) || `toolu_tg_${this.#calls}`
    this.reply.open({ kind: 'tool-call', id, name, custom: false })
    const hasInput = Object.keys(recordOf(block.input)).length > 0
    this.#startInput = hasInput ? (rawJsonAt(json, [...path, 'input']) ?? JSON.stringify(block.input)) : ''
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
    const seen = { members: this.#ending, hasCalls: this.#calls > 0, hasServerTools: this.#hasServerTools }
    this.reply.end(readStop(seen), this.#isCounted ? this.usageSoFar : undefined)
  }
}

// Stop reasons.

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

/** The latest members of message_delta's `delta`, and what the stream contained. */
export interface ReplyEnding {
  readonly members: Readonly<Record<string, unknown>>
  readonly hasCalls: boolean
  /** Tools were called that the provider runs itself. */
  readonly hasServerTools: boolean
}

export function readStop(ending: ReplyEnding): Stop {
  const stop = unifiedStop(ending)
  return Object.hasOwn(stopsByReason, stop.raw) ? stop : { ...stop, isUnknown: true }
}

function unifiedStop({ members, hasCalls, hasServerTools }: ReplyEnding): Stop {
  const raw = textOf(members.stop_reason)
  const said = Object.hasOwn(stopsByReason, raw) ? (stopsByReason[raw] as StopReason) : 'end'
  if (said === 'end' && hasCalls) return { unified: 'tool-calls', raw }
  // No call is left for the caller: the provider waits for its own tools.
  if (said === 'tool-calls' && !hasCalls) return { unified: hasServerTools ? 'pause' : 'end', raw }
  if (said === 'stop-sequence' && typeof members.stop_sequence === 'string') {
    return { unified: said, raw, sequence: members.stop_sequence }
  }
  const explanation = isRecord(members.stop_details) ? textOf(members.stop_details.explanation) : ''
  return { unified: said, raw, ...(said === 'refusal' && explanation !== '' ? { explanation } : {}) }
}

// Converts a whole reply into a stream: the same members in events, not reinterpreted. A reply without a stop reason is
// a fault.

type Member = readonly [name: string, value: RawJson]

const endMembers = ['stop_reason', 'stop_sequence', 'stop_details', 'container']
const noUsage = '{"output_tokens":0}'

export function replyAsStream(body: Uint8Array): Uint8Array | { readonly fault: ProviderFault } {
  const reply = openReply(body, readErrorObject)
  if ('fault' in reply) return reply
  const { value, node } = reply
  if (!Array.isArray(value.content)) return { fault: replyFault('a reply without content') }
  if (textOf(value.stop_reason) === '') return { fault: replyFault('a reply without an end') }
  const message = jsonMembers([
    ...membersBut(node, ['content', ...endMembers]),
    ['content', '[]'],
    ...endMembers.map((name) => [name, 'null'] as const),
  ])
  const ending = endMembers.map((name): Member => [name, node.member(name)?.text ?? 'null'])
  // Clients fail on an end without usage.
  const usage = isRecord(value.usage) ? node.member('usage')?.text : undefined
  const blocks = node.member('content')?.elements() ?? []
  const text = [
    event('message_start', [['message', message]]),
    ...blocks.flatMap((block, place) => blockEvents(block, recordOf((value.content as unknown[])[place]), place)),
    event('message_delta', [
      ['delta', jsonMembers(ending)],
      ['usage', usage ?? noUsage],
    ]),
    event('message_stop', []),
  ]
  return new TextEncoder().encode(text.join(''))
}

function blockEvents(node: JsonNode, block: Readonly<Record<string, unknown>>, place: number): string[] {
  const index: Member = ['index', String(place)]
  const { start, deltas } = partsOf(node, block)
  return [
    event('content_block_start', [index, ['content_block', start]]),
    ...deltas.map(([type, member]) =>
      event('content_block_delta', [index, ['delta', jsonMembers([['type', jsonString(type)], member])]]),
    ),
    event('content_block_stop', [index]),
  ]
}

interface BlockParts {
  readonly start: RawJson
  readonly deltas: readonly (readonly [type: string, member: Member])[]
}

/** The start of a block and its deltas; a block of an unknown type is complete at its start. */
function partsOf(node: JsonNode, block: Readonly<Record<string, unknown>>): BlockParts {
  const text = (name: string) => node.member(name)?.text ?? '""'
  switch (block.type) {
    case 'text': {
      const citations = Array.isArray(block.citations) ? (node.member('citations')?.elements() ?? []) : []
      return {
        start: jsonMembers([...membersBut(node, ['text', 'citations']), ['text', '""'], ...citationsStart(block)]),
        deltas: [
          ['text_delta', ['text', text('text')]],
          ...citations.map((citation) => ['citations_delta', ['citation', citation.text]] as const),
        ],
      }
    }
    case 'thinking':
      return {
        start: jsonMembers([...membersBut(node, ['thinking', 'signature']), ['thinking', '""'], ['signature', '""']]),
        deltas: [
          ['thinking_delta', ['thinking', text('thinking')]],
          ['signature_delta', ['signature', text('signature')]],
        ],
      }
    case 'tool_use': {
      const input = node.member('input')?.text ?? '{}'
      return {
        start: jsonMembers([...membersBut(node, ['input']), ['input', '{}']]),
        deltas: [['input_json_delta', ['partial_json', jsonString(input)]]],
      }
    }
    default:
      return { start: node.text, deltas: [] }
  }
}

function citationsStart({ citations }: Readonly<Record<string, unknown>>): Member[] {
  if (citations === undefined) return []
  return [['citations', Array.isArray(citations) ? '[]' : 'null']]
}

function event(type: string, members: readonly Member[]): string {
  return `event: ${type}\ndata: ${jsonMembers([['type', jsonString(type)], ...members])}\n\n`
}
