// Canonical events as a Chat Completions stream. Official clients keep only the last value of members they do not
// know, so reasoning streams as text and its details come once, whole, before the finish.

import { assert } from '../../kernel/assert.ts'
import type { RawJson } from '../canonical/conversation.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../canonical/reply-event.ts'
import type { RenderContext, StreamRenderer } from '../canonical/translation.ts'
import { UsageMeter } from '../reply/meter-usage.ts'
import { WholeCharacters } from '../reply/whole-characters.ts'
import { jsonArray, jsonObject, jsonString } from '../request/json-text.ts'
import { Paragraphs } from './paragraphs.ts'
import { renderSealedDetail, renderThinkingDetail } from './render-reasoning.ts'
import { renderUsage } from './render-usage.ts'
import { finishMembers, refusalText, replyHead } from './reply-head.ts'

/** Between records anything but a comment breaks chat clients. */
const keepAlive = ': keep-alive\n\n'

export function renderStream(context: RenderContext): StreamRenderer {
  return new ChatStreamRenderer(context)
}

class ChatStreamRenderer implements StreamRenderer {
  terminal = ''
  readonly #meter: UsageMeter
  readonly #texts = new Paragraphs()
  readonly #thoughts = new Paragraphs()
  readonly #characters = new WholeCharacters()
  readonly #details: RawJson[] = []
  /** '' until the first record. */
  #head = ''
  #block: ReplyBlock | undefined
  #blocks = 0
  #calls = 0
  #hasArguments = false
  #hasRefusal = false
  #thinking = ''
  #signature: string | undefined

  constructor(private readonly context: RenderContext) {
    this.#meter = new UsageMeter(context.estimatedInputTokens)
  }

  render(event: ReplyEvent): string {
    this.#meter.push(event)
    switch (event.type) {
      case 'reply-start':
        return this.#start(event.id)
      case 'block-start':
        return this.#startBlock(event.block)
      case 'text-delta':
      case 'thinking-delta':
      case 'arguments-delta':
        return this.#piece(this.#characters.take(event.text))
      case 'signature':
        this.#signature = event.signature
        return ''
      case 'block-end':
        return this.#endBlock()
      case 'reply-end':
        return this.#end(event.stop)
      case 'keep-alive':
        return keepAlive
      case 'reply-failure':
        // Its words are the failure table's, not ours.
        return ''
    }
  }

  /** A second start, of another provider after an early one, says nothing new. */
  #start(id: string | undefined): string {
    if (this.#head !== '') return ''
    this.#head = replyHead('chat.completion.chunk', id, this.context)
    return this.#delta('{"role":"assistant","content":""}')
  }

  #startBlock(block: ReplyBlock): string {
    assert(this.#block === undefined, 'one block at a time')
    this.#block = block
    this.#blocks += 1
    if (block.kind !== 'text' || block.apart) this.#texts.break()
    switch (block.kind) {
      case 'thinking':
        this.#thoughts.break()
        this.#thinking = ''
        this.#signature = undefined
        return ''
      case 'sealed-thinking':
        this.#details.push(renderSealedDetail(block.data.toWellFormed(), this.#blocks - 1))
        return ''
      case 'tool-call':
        this.#calls += 1
        this.#hasArguments = false
        return this.#call([
          ['id', jsonString(block.id.toWellFormed())],
          ['type', block.custom ? '"custom"' : '"function"'],
          calledMember(block.custom, [['name', jsonString(block.name.toWellFormed())]], ''),
        ])
      default:
        return ''
    }
  }

  /** A piece of the open block's text, thinking or arguments. */
  #piece(text: string): string {
    if (text === '') return ''
    switch (this.#block?.kind) {
      case 'text':
        return this.#delta(jsonObject([['content', jsonString(this.#texts.separator() + text)]]))
      case 'refusal':
        this.#hasRefusal = true
        return this.#delta(jsonObject([['refusal', jsonString(text)]]))
      case 'thinking':
        this.#thinking += text
        return this.#delta(jsonObject([['reasoning_content', jsonString(this.#thoughts.separator() + text)]]))
      case 'tool-call':
        this.#hasArguments ||= text.trim() !== ''
        return this.#call([calledMember(this.#block.custom, [], text)])
      default:
        return ''
    }
  }

  #endBlock(): string {
    const written = this.#piece(this.#characters.rest())
    const block = this.#block
    this.#block = undefined
    if (block?.kind === 'thinking') {
      this.#details.push(renderThinkingDetail(this.#thinking, this.#signature?.toWellFormed(), this.#blocks - 1))
    }
    // A call without arguments has written nothing, and that is no JSON.
    const isEmptyCall = block?.kind === 'tool-call' && !block.custom && !this.#hasArguments
    return isEmptyCall ? written + this.#call([calledMember(false, [], '{}')]) : written
  }

  #end(stop: Stop): string {
    let written = this.#start(undefined)
    if (this.#block) written += this.#endBlock()
    if (stop.unified === 'refusal' && !this.#hasRefusal) {
      written += this.#delta(jsonObject([['refusal', jsonString(refusalText(stop).toWellFormed())]]))
    }
    if (this.#details.length > 0) written += this.#delta(jsonObject([['reasoning_details', jsonArray(this.#details)]]))
    const choice = jsonObject([['index', '0'], ['delta', '{}'], ['logprobs', 'null'], ...finishMembers(stop)])
    written += this.#record(jsonArray([choice]), 'null')
    if (this.context.wantsStreamUsage) {
      const { usage } = this.#meter
      written += this.#record('[]', renderUsage(usage, this.context.costOf(usage)))
    }
    this.terminal = 'data: [DONE]\n\n'
    return written
  }

  #call(members: readonly (readonly [string, RawJson])[]): string {
    const call = jsonObject([['index', String(this.#calls - 1)], ...members])
    return this.#delta(jsonObject([['tool_calls', jsonArray([call])]]))
  }

  #delta(delta: RawJson): string {
    const start = this.#head === '' ? this.#start(undefined) : ''
    return `${start}${this.#record(`[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":null}]`, 'null')}`
  }

  #record(choices: RawJson, usage: RawJson): string {
    const usageMember = this.context.wantsStreamUsage ? `,"usage":${usage}` : ''
    return `data: {${this.#head},"choices":${choices}${usageMember}}\n\n`
  }
}

function calledMember(custom: boolean, members: readonly (readonly [string, RawJson])[], text: string) {
  const input = [custom ? 'input' : 'arguments', jsonString(text)] as const
  return [custom ? 'custom' : 'function', jsonObject([...members, input])] as const
}
