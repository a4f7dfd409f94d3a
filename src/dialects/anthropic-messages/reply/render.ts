// Renders canonical events as a Messages stream or a whole reply with the same content. A block is only opened once it
// has content, so that no empty block gets into a caller's history.

import { estimatedInput, totalInputTokens, type Usage } from '../../../kernel/usage.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import type { ReplyBlock, ReplyEvent, Stop, StopReason } from '../../canonical/reply.ts'
import type { RenderContext, StreamRenderer } from '../../canonical/translation.ts'
import { ArgumentScan } from '../../reply/builder.ts'
import { BlockRenderer, prefixedId } from '../../reply/renderer.ts'
import { argumentsObject } from '../../request/tools.ts'
import { renderDeltaUsage, renderUsage } from '../usage.ts'

const ping = 'event: ping\ndata: {"type":"ping"}\n\n'

export function renderStream(context: RenderContext): StreamRenderer {
  return new MessagesStreamRenderer(context)
}

export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  const renderer = new MessagesReplyRenderer(context)
  return events.map((event) => renderer.render(event)).join('')
}

class MessagesReplyRenderer extends BlockRenderer {
  #id: string | undefined
  #text = ''
  readonly #content: RawJson[] = []

  protected start(id: string | undefined): string {
    this.#id ??= id
    return ''
  }

  protected startBlock(): string {
    this.#text = ''
    return ''
  }

  protected piece(text: string): string {
    this.#text += text
    return ''
  }

  /** Leaves out empty blocks: an empty text is refused when it comes back as history. */
  protected endBlock(block: ReplyBlock): string {
    const text = this.#text
    if (block.kind === 'sealed-thinking') this.#content.push(startOf(block))
    else if (block.kind === 'tool-call') {
      this.#content.push(
        callBlock(block, block.custom ? jsonObject({ input: jsonString(text) }) : argumentsObject(text)),
      )
    } else if (block.kind === 'thinking') {
      if (text !== '' || this.signature !== undefined) this.#content.push(thinkingBlock(text, this.signature))
    } else if (text !== '') this.#content.push(textBlock(text))
    return ''
  }

  protected end(stop: Stop, usage: Usage): string {
    // Official clients cannot read a message without blocks.
    const content = this.#content.length === 0 ? [textBlock('')] : this.#content
    return renderMessage({ id: this.#id, content, stop, usage, cost: this.context.quotedUsd(usage) }, this.context)
  }

  protected override keepAlive(): string {
    return ''
  }
}

class MessagesStreamRenderer extends BlockRenderer {
  #isStarted = false
  /** The open block was written. */
  #isOpen = false
  /** Blocks written so far, including the open one. */
  #blocks = 0
  /** Arguments that do not start like an object, which `partial_json` must add up to; they are wrapped at the end. */
  #held = ''
  /** held: no object has started · passing: one is arriving in pieces · done: it is written. */
  #arguments: 'held' | 'passing' | 'done' = 'held'

  protected start(id: string | undefined, reported: Usage | undefined): string {
    if (this.#isStarted) return ''
    this.#isStarted = true
    // Clients take 0 for an empty context and never check again.
    const estimate = () => estimatedInput(Math.max(1, this.context.estimatedInputTokens))
    const usage = reported && totalInputTokens(reported) > 0 ? reported : estimate()
    const parts = { id, content: [], stop: undefined, usage, cost: undefined }
    return record('message_start', { message: renderMessage(parts, this.context) })
  }

  protected startBlock(block: ReplyBlock): string {
    this.#isOpen = false
    this.#held = ''
    this.#arguments = 'held'
    return block.kind === 'sealed-thinking' || block.kind === 'tool-call' ? this.#open(block) : ''
  }

  protected piece(text: string): string {
    const { block } = this
    if (block === undefined || block.kind === 'sealed-thinking') return ''
    if (block.kind === 'tool-call') return this.#delta(block, block.custom ? this.#customInput(text) : this.#json(text))
    return this.#open(block) + this.#delta(block, text)
  }

  protected endBlock(block: ReplyBlock): string {
    let written = ''
    if (block.kind === 'tool-call') {
      const isHeld = this.#arguments === 'held' && this.#held.trim() !== ''
      // Without arguments nothing is written: clients read that as an empty object.
      const rest = block.custom ? `${this.#customInput('')}"}` : isHeld ? argumentsObject(this.#held) : ''
      written = this.#delta(block, rest)
    }
    if (block.kind === 'thinking' && (this.#isOpen || this.signature !== undefined)) {
      // Thinking may consist of only a signature; without one, the member is still required.
      const signature = jsonString(this.signature?.toWellFormed() ?? '')
      const delta = jsonObject({ type: '"signature_delta"', signature })
      written = this.#open(block) + record('content_block_delta', { index: this.#index, delta })
    }
    if (this.#isOpen) written += record('content_block_stop', { index: this.#index })
    this.#isOpen = false
    return written
  }

  protected end(stop: Stop, usage: Usage): string {
    const delta = jsonObject({ ...stopMembers(stop), container: 'null' })
    const empty = this.#blocks > 0 ? '' : this.#open({ kind: 'text' }) + record('content_block_stop', { index: '0' })
    this.terminal = record('message_stop', {})
    return empty + record('message_delta', { delta, usage: renderDeltaUsage(usage, this.context.quotedUsd(usage)) })
  }

  /** Before message_start some clients accept only a comment. */
  protected override keepAlive(): string {
    return this.#isStarted ? ping : super.keepAlive()
  }

  /** The text to write for a piece of JSON arguments; '' = none yet. */
  #json(text: string): string {
    if (this.#arguments !== 'held') return this.#arguments === 'passing' ? text : ''
    this.#held += text
    if (!this.#held.trimStart().startsWith('{')) return ''
    const scan = new ArgumentScan()
    scan.push(this.#held)
    this.#arguments = scan.complete ? 'done' : 'passing'
    // An object that is complete at once can still be repaired; official clients fail on JSON they cannot parse.
    return scan.complete ? argumentsObject(this.#held) : this.#held
  }

  /** A custom tool's plain text, as the argument `input`. */
  #customInput(text: string): string {
    const opening = this.#arguments === 'held' ? '{"input":"' : ''
    this.#arguments = 'passing'
    return opening + jsonString(text).slice(1, -1)
  }

  #open(block: ReplyBlock): string {
    if (this.#isOpen) return ''
    const start = this.start(undefined, undefined)
    this.#isOpen = true
    this.#blocks += 1
    return start + record('content_block_start', { index: this.#index, content_block: startOf(block) })
  }

  #delta({ kind }: ReplyBlock, text: string): string {
    if (text === '') return ''
    const [type, member] = deltas[kind]
    return record('content_block_delta', {
      index: this.#index,
      delta: `{"type":"${type}","${member}":${jsonString(text)}}`,
    })
  }

  get #index(): RawJson {
    return String(this.#blocks - 1)
  }
}

const deltas: Readonly<Record<ReplyBlock['kind'], readonly [type: string, member: string]>> = {
  text: ['text_delta', 'text'],
  refusal: ['text_delta', 'text'],
  thinking: ['thinking_delta', 'thinking'],
  'sealed-thinking': ['', ''],
  'tool-call': ['input_json_delta', 'partial_json'],
}

function record(type: string, members: Members): string {
  return `event: ${type}\ndata: ${jsonObject({ type: `"${type}"`, ...members })}\n\n`
}

// The message object, whole or at the start of a stream, and the members that say why it ended.

interface MessageParts {
  /** The provider's id. */
  readonly id: string | undefined
  readonly content: readonly RawJson[]
  /** undefined at the start of a stream. */
  readonly stop: Stop | undefined
  readonly usage: Usage
  readonly cost: string | undefined
}

/** Includes all members of the official types. */
function renderMessage({ id, content, stop, usage, cost }: MessageParts, context: RenderContext): RawJson {
  return jsonObject({
    id: jsonString(prefixedId('msg_', id ?? context.requestId)),
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

/**
 * A match is only reported together with its sequence. Claude Code 2.1 calls each `refusal` one of Anthropic's safeguards,
 * hides the text and asks again, so that of a policy is in `stop_details` alone.
 */
function reasonOf({ unified, sequence, byPolicy }: Stop): string {
  if (byPolicy) return stopReasons.end
  return unified === 'stop-sequence' && sequence === undefined ? stopReasons.end : stopReasons[unified]
}

function refusalDetails(explanation: string | undefined): RawJson {
  return jsonObject({
    type: '"refusal"',
    category: 'null',
    explanation: jsonString(explanation?.toWellFormed()) ?? 'null',
  })
}

// Content blocks, whole or at the start of a stream, with all members of the official types.

/** A block at the start of a stream, before its content. */
function startOf(block: ReplyBlock): RawJson {
  switch (block.kind) {
    case 'text':
    case 'refusal':
      return textBlock('')
    case 'thinking':
      return thinkingBlock('', undefined)
    case 'sealed-thinking':
      return jsonObject({ type: '"redacted_thinking"', data: jsonString(block.data.toWellFormed()) })
    case 'tool-call':
      return callBlock(block, '{}')
  }
}

function textBlock(text: string): RawJson {
  return jsonObject({ type: '"text"', text: jsonString(text), citations: 'null' })
}

function thinkingBlock(text: string, signature: string | undefined): RawJson {
  const proof = jsonString(signature?.toWellFormed() ?? '')
  return jsonObject({ type: '"thinking"', thinking: jsonString(text), signature: proof })
}

function callBlock(call: { readonly id: string; readonly name: string }, input: RawJson): RawJson {
  return jsonObject({
    type: '"tool_use"',
    id: jsonString(call.id.toWellFormed()),
    name: jsonString(call.name.toWellFormed()),
    input,
    caller: '{"type":"direct"}',
  })
}
