// Canonical events as a Messages stream. Blocks are numbered as they are opened, and opened when there is something in
// them, so that no caller's history gets an empty one.

import { estimatedInput, totalInputTokens, type Usage } from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { ReplyBlock, Stop } from '../canonical/reply.ts'
import type { RenderContext, StreamRenderer } from '../canonical/translation.ts'
import { BlockRenderer } from '../reply/renderer.ts'
import { type ArgumentsRenderer, CustomInput, JsonArguments } from './render-arguments.ts'
import { callBlock, emptyTextBlock, sealedBlock, textBlock, thinkingBlock } from './render-block.ts'
import { renderMessage, stopMembers } from './render-message.ts'
import { renderDeltaUsage } from './render-usage.ts'

const ping = 'event: ping\ndata: {"type":"ping"}\n\n'
/** Before message_start some clients take nothing but a comment. */
const earlyKeepAlive = ': keep-alive\n\n'

export function renderStream(context: RenderContext): StreamRenderer {
  return new MessagesStreamRenderer(context)
}

class MessagesStreamRenderer extends BlockRenderer {
  #isStarted = false
  /** The open block has been written. */
  #isOpen = false
  /** Blocks written so far; the open one has the last number. */
  #blocks = 0
  #arguments: ArgumentsRenderer = new JsonArguments()

  protected start(id: string | undefined, reported: Usage | undefined): string {
    if (this.#isStarted) return ''
    this.#isStarted = true
    const usage = reported && totalInputTokens(reported) > 0 ? reported : this.#estimate()
    const parts = { id, content: [], stop: undefined, usage, cost: undefined }
    return record('message_start', [['message', renderMessage(parts, this.context)]])
  }

  /** Readers take 0 for an empty context, and never look again. */
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
      // Thinking may be all signature; and without one, the member must come all the same.
      written += this.#openWith(thinkingBlock('', ''))
      written += this.#delta('signature_delta', 'signature', this.signature?.toWellFormed() ?? '')
    }
    if (this.#isOpen) written += record('content_block_stop', [this.#index()])
    this.#isOpen = false
    return written
  }

  protected end(stop: Stop, usage: Usage): string {
    let written = ''
    if (this.#blocks === 0) written += this.#open(textBlock('')) + record('content_block_stop', [this.#index()])
    written += record('message_delta', [
      ['delta', jsonObject([...stopMembers(stop), ['container', 'null']])],
      ['usage', renderDeltaUsage(usage, this.context.costOf(usage))],
    ])
    this.terminal = record('message_stop', [])
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
    return start + record('content_block_start', [this.#index(), ['content_block', block]])
  }

  #delta(type: string, member: string, text: string): string {
    const delta = jsonObject([
      ['type', jsonString(type)],
      [member, jsonString(text)],
    ])
    return record('content_block_delta', [this.#index(), ['delta', delta]])
  }

  #index(): readonly [string, RawJson] {
    return ['index', String(this.#blocks - 1)]
  }
}

function record(type: string, members: readonly (readonly [string, RawJson])[]): string {
  return `event: ${type}\ndata: ${jsonObject([['type', jsonString(type)], ...members])}\n\n`
}
