// Renders canonical events as a generateContent stream, or a whole reply with the same parts. A call is one part, so it
// is written when it is complete.

import type { Usage } from '../../../kernel/usage.ts'
import type { RawJson, ReasoningBlock } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../../canonical/reply.ts'
import type { RenderContext, StreamRenderer } from '../../canonical/translation.ts'
import { BlockRenderer } from '../../reply/renderer.ts'
import { argumentsObject } from '../../request/tools.ts'
import { writeThoughts } from '../reasoning.ts'
import { renderUsage } from '../usage.ts'

export function renderStream(context: RenderContext): StreamRenderer {
  return new GeminiRenderer(context)
}

export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  const renderer = new GeminiRenderer(context)
  for (const event of events) renderer.render(event)
  return context.replyForm?.isArrayReply ? `[${renderer.whole}]` : renderer.whole
}

const finishReasons: Readonly<Record<Stop['unified'], string>> = {
  end: 'STOP',
  'stop-sequence': 'STOP',
  'tool-calls': 'STOP',
  pause: 'STOP',
  length: 'MAX_TOKENS',
  refusal: 'SAFETY',
}

interface Part {
  readonly kind: 'text' | 'thought' | 'call'
  /** The JSON of a call. */
  text: string
  readonly signature?: string | undefined
}

class GeminiRenderer extends BlockRenderer {
  /** The whole reply, once it has ended. */
  whole: RawJson = ''
  #id = ''
  readonly #parts: Part[] = []
  /** Reasoning of this reply so far, for the next text and the next call. */
  readonly #thoughts: ReasoningBlock[] = []
  #textSignature: string | undefined
  #callSignature: string | undefined
  #text = ''

  protected start(id: string | undefined): string {
    this.#id ||= id ?? this.context.requestId
    return ''
  }

  protected startBlock(block: ReplyBlock): string {
    this.#text = ''
    if (block.kind === 'sealed-thinking') this.#remember(block)
    return ''
  }

  protected piece(text: string): string {
    this.#text += text
    switch (this.block?.kind) {
      case 'text':
      case 'refusal': {
        const signature = this.#textSignature
        this.#textSignature = undefined
        return this.#write({ kind: 'text', text, signature })
      }
      case 'thinking':
        return this.context.replyForm?.showsThoughts ? this.#write({ kind: 'thought', text }) : ''
      default:
        return ''
    }
  }

  protected endBlock(block: ReplyBlock): string {
    if (block.kind === 'thinking' && this.signature !== undefined) {
      this.#remember({ kind: 'thinking', text: this.#text, signature: this.signature })
    }
    if (block.kind !== 'tool-call') return ''
    const { id, name } = block
    const call = jsonObject({
      id: jsonString(id),
      name: jsonString(name),
      args: onOneLine(argumentsObject(this.#text)),
    })
    const signature = this.#callSignature
    this.#callSignature = undefined
    return this.#write({ kind: 'call', text: call, signature })
  }

  protected end(stop: Stop, usage: Usage): string {
    const usageMetadata = renderUsage(usage, this.context.quotedUsd(usage))
    const finishReason = jsonString(stop.byPolicy ? 'PROHIBITED_CONTENT' : finishReasons[stop.unified])
    const said =
      stop.unified === 'refusal' && stop.explanation ? jsonString(stop.explanation.toWellFormed()) : undefined
    const ending = { finishReason, finishMessage: said }
    // Clients expect a part in every record.
    this.terminal = this.#record(this.#reply([partJson({ kind: 'text', text: '' })], ending, usageMetadata))
    this.whole = this.#reply(this.#parts.map(partJson), ending, usageMetadata)
    return ''
  }

  #remember(block: ReasoningBlock): void {
    this.#thoughts.push(block)
    this.#textSignature = this.#callSignature = writeThoughts(this.#thoughts)
  }

  #write(part: Part): string {
    const last = this.#parts.at(-1)
    if (last && last.kind === part.kind && part.kind !== 'call' && part.signature === undefined) last.text += part.text
    else this.#parts.push({ ...part })
    return this.#record(this.#reply([partJson(part)], {}, undefined))
  }

  #record(reply: RawJson): string {
    return `data: ${reply}\n\n`
  }

  #reply(
    parts: readonly RawJson[],
    ending: Readonly<Record<string, RawJson | undefined>>,
    usage: RawJson | undefined,
  ): RawJson {
    const content = jsonObject({ parts: jsonArray(parts), role: '"model"' })
    return jsonObject({
      candidates: jsonArray([jsonObject({ content, ...ending, index: '0' })]),
      usageMetadata: usage,
      modelVersion: jsonString(this.context.model),
      responseId: jsonString(this.#id),
    })
  }
}

function partJson({ kind, text, signature }: Part): RawJson {
  const thoughtSignature = jsonString(signature)
  if (kind === 'call') return jsonObject({ functionCall: text, thoughtSignature })
  return jsonObject({ text: jsonString(text), thought: kind === 'thought' ? 'true' : undefined, thoughtSignature })
}

/** A line break would end the record; JSON has them only between values. */
function onOneLine(json: RawJson): RawJson {
  return json.replaceAll(/[\r\n]+/g, ' ')
}
