// Renders canonical events as a Messages stream or a whole reply with the same content. A block is only opened once it
// has content, so that no empty block gets into a caller's history.

import { estimatedInput, totalInputTokens, type Usage } from '../../../kernel/usage.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import {
  type CollectedBlock,
  collectReply,
  type ReplyBlock,
  type ReplyEvent,
  type Stop,
  type StopReason,
} from '../../canonical/reply.ts'
import type { RenderContext, StreamRenderer } from '../../canonical/translation.ts'
import { ArgumentScan } from '../../reply/builder.ts'
import { BlockRenderer } from '../../reply/renderer.ts'
import { argumentsObject } from '../../request/tools.ts'
import { renderDeltaUsage, renderUsage } from '../usage.ts'

const ping = 'event: ping\ndata: {"type":"ping"}\n\n'
/** Before message_start some clients accept only a comment. */
const earlyKeepAlive = ': keep-alive\n\n'

export function renderStream(context: RenderContext): StreamRenderer {
  return new MessagesStreamRenderer(context)
}

class MessagesStreamRenderer extends BlockRenderer {
  #isStarted = false
  /** The open block was written. */
  #isOpen = false
  /** Blocks written so far, including the open one. */
  #blocks = 0
  #arguments: ArgumentsRenderer = new JsonArguments()

  protected start(id: string | undefined, reported: Usage | undefined): string {
    if (this.#isStarted) return ''
    this.#isStarted = true
    const usage = reported && totalInputTokens(reported) > 0 ? reported : this.#estimate()
    const parts = { id, content: [], stop: undefined, usage, cost: undefined }
    return record('message_start', { message: renderMessage(parts, this.context) })
  }

  /** Clients take 0 for an empty context and never check again. */
  #estimate(): Usage {
    return estimatedInput(Math.max(1, this.context.estimatedInputTokens))
  }

  protected startBlock(block: ReplyBlock): string {
    this.#isOpen = false
    if (block.kind === 'sealed-thinking') return this.#open(sealedBlock(block.data))
    if (block.kind !== 'tool-call') return ''
    this.#arguments = block.custom ? new CustomInput() : new JsonArguments()
    return this.#open(callBlock(block, '{}'))
  }

  protected piece(text: string): string {
    switch (this.block?.kind) {
      case 'text':
      case 'refusal':
        return this.#openWith(emptyTextBlock) + this.#delta('text_delta', 'text', text)
      case 'thinking':
        return this.#openWith(thinkingBlock('', '')) + this.#delta('thinking_delta', 'thinking', text)
      case 'tool-call':
        return this.#argumentsDelta(this.#arguments.push(text))
      default:
        return ''
    }
  }

  protected endBlock(block: ReplyBlock): string {
    let written = ''
    if (block.kind === 'tool-call') written += this.#argumentsDelta(this.#arguments.end())
    if (block.kind === 'thinking' && (this.#isOpen || this.signature !== undefined)) {
      // Thinking may consist of only a signature; without one, the member is still required.
      written += this.#openWith(thinkingBlock('', ''))
      written += this.#delta('signature_delta', 'signature', this.signature?.toWellFormed() ?? '')
    }
    if (this.#isOpen) written += record('content_block_stop', { index: this.#index })
    this.#isOpen = false
    return written
  }

  protected end(stop: Stop, usage: Usage): string {
    let written = ''
    if (this.#blocks === 0) written += this.#open(textBlock('')) + record('content_block_stop', { index: this.#index })
    written += record('message_delta', {
      delta: jsonObject({ ...stopMembers(stop), container: 'null' }),
      usage: renderDeltaUsage(usage, this.context.costOf(usage)),
    })
    this.terminal = record('message_stop', {})
    return written
  }

  protected keepAlive(): string {
    return this.#isStarted ? ping : earlyKeepAlive
  }

  #argumentsDelta(text: string): string {
    return text === '' ? '' : this.#delta('input_json_delta', 'partial_json', text)
  }

  #openWith(block: RawJson): string {
    return this.#isOpen ? '' : this.#open(block)
  }

  #open(block: RawJson): string {
    const start = this.start(undefined, undefined)
    this.#isOpen = true
    this.#blocks += 1
    return start + record('content_block_start', { index: this.#index, content_block: block })
  }

  #delta(type: string, member: string, text: string): string {
    const delta = jsonObject({ type: jsonString(type), [member]: jsonString(text) })
    return record('content_block_delta', { index: this.#index, delta })
  }

  get #index(): RawJson {
    return String(this.#blocks - 1)
  }
}

function record(type: string, members: Members): string {
  return `event: ${type}\ndata: ${jsonObject({ type: jsonString(type), ...members })}\n\n`
}

export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  const { id, blocks, stop, usage: reported } = collectReply(events)
  const usage = reported ?? context.decideCharge(undefined, undefined, () => 0)
  const said = blocks.flatMap((block) => renderBlock(block) ?? [])
  const content = said.length === 0 ? [emptyTextBlock] : said
  return renderMessage({ id, content, stop, usage, cost: context.costOf(usage) }, context)
}

// The message object, whole or at the start of a stream, and the members that say why it ended.

const idMax = 200

export interface MessageParts {
  /** The provider's id. */
  readonly id: string | undefined
  readonly content: readonly RawJson[]
  /** undefined at the start of a stream. */
  readonly stop: Stop | undefined
  readonly usage: Usage
  readonly cost: string | undefined
}

/** Includes all members of the official types. */
export function renderMessage({ id, content, stop, usage, cost }: MessageParts, context: RenderContext): RawJson {
  return jsonObject({
    id: jsonString(messageId(id ?? context.requestId)),
    type: '"message"',
    role: '"assistant"',
    model: jsonString(context.model),
    content: jsonArray(content),
    ...stopMembers(stop),
    container: 'null',
    diagnostics: 'null',
    usage: renderUsage(usage, cost),
  })
}

function stopMembers(stop: Stop | undefined): Members {
  return {
    stop_reason: stop ? jsonString(reasonOf(stop)) : 'null',
    stop_sequence: jsonString(stop?.sequence?.toWellFormed()) ?? 'null',
    stop_details: stop?.unified === 'refusal' ? refusalDetails(stop.explanation) : 'null',
  }
}

const stopReasons: Readonly<Record<StopReason, string>> = {
  end: 'end_turn',
  length: 'max_tokens',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  refusal: 'refusal',
  pause: 'pause_turn',
}

/** A match is only reported together with its sequence. */
function reasonOf({ unified, sequence }: Stop): string {
  return unified === 'stop-sequence' && sequence === undefined ? stopReasons.end : stopReasons[unified]
}

function refusalDetails(explanation: string | undefined): RawJson {
  return jsonObject({
    type: '"refusal"',
    category: 'null',
    explanation: jsonString(explanation?.toWellFormed()) ?? 'null',
  })
}

function messageId(id: string): string {
  const own = id.slice(0, idMax).toWellFormed()
  return own.startsWith('msg_') ? own : `msg_${own}`
}

// Content blocks, whole or at the start of a stream, with all members of the official types.

/** Official clients cannot read a message without blocks. */
export const emptyTextBlock = textBlock('')

/** undefined for an empty block: an empty text is refused when it comes back as history. */
export function renderBlock(block: CollectedBlock): RawJson | undefined {
  switch (block.kind) {
    case 'text':
    case 'refusal':
      return block.text === '' ? undefined : textBlock(block.text)
    case 'thinking':
      if (block.text === '' && block.signature === undefined) return undefined
      return thinkingBlock(block.text, block.signature?.toWellFormed() ?? '')
    case 'sealed-thinking':
      return sealedBlock(block.data)
    case 'tool-call':
      return callBlock(
        block,
        block.custom ? jsonObject({ input: jsonString(block.arguments) }) : argumentsObject(block.arguments),
      )
  }
}

export function textBlock(text: string): RawJson {
  return jsonObject({ type: '"text"', text: jsonString(text), citations: 'null' })
}

export function thinkingBlock(text: string, signature: string): RawJson {
  return jsonObject({ type: '"thinking"', thinking: jsonString(text), signature: jsonString(signature) })
}

export function sealedBlock(data: string): RawJson {
  return jsonObject({ type: '"redacted_thinking"', data: jsonString(data.toWellFormed()) })
}

export function callBlock(call: { readonly id: string; readonly name: string }, input: RawJson): RawJson {
  return jsonObject({
    type: '"tool_use"',
    id: jsonString(call.id.toWellFormed()),
    name: jsonString(call.name.toWellFormed()),
    input,
    caller: '{"type":"direct"}',
  })
}

// The arguments of a streamed call as `partial_json`, which must add up to an object. Text that starts like an object
// is passed on; anything else is held to the end and wrapped in an object.

export interface ArgumentsRenderer {
  /** The text to write for a piece; '' = none yet. */
  push(text: string): string
  end(): string
}

export class JsonArguments implements ArgumentsRenderer {
  #held = ''
  /** held: no object has started · passing: one is arriving in pieces · done: it is written. */
  #state: 'held' | 'passing' | 'done' = 'held'

  push(text: string): string {
    if (this.#state === 'done') return ''
    if (this.#state === 'passing') return text
    this.#held += text
    if (!this.#held.trimStart().startsWith('{')) return ''
    const scan = new ArgumentScan()
    scan.push(this.#held)
    this.#state = scan.complete ? 'done' : 'passing'
    // An object that is complete at once can still be repaired; official clients fail on JSON they cannot parse.
    return scan.complete ? argumentsObject(this.#held) : this.#held
  }

  /** Without arguments nothing is written: clients read that as an empty object. */
  end(): string {
    return this.#state !== 'held' || this.#held.trim() === '' ? '' : argumentsObject(this.#held)
  }
}

/** A custom tool's plain text, as the argument `input`. */
export class CustomInput implements ArgumentsRenderer {
  #written = '{"input":"'

  push(text: string): string {
    const opening = this.#written
    this.#written = ''
    return opening + jsonString(text).slice(1, -1)
  }

  end(): string {
    return `${this.#written}"}`
  }
}
