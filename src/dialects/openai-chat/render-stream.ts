// Canonical events as a Chat Completions stream. Official clients keep only the last value of members they do not
// know, so reasoning streams as text and its details come once, whole, before the finish.

import type { Usage } from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import type { ReplyBlock, Stop } from '../canonical/reply.ts'
import type { RenderContext, StreamRenderer } from '../canonical/translation.ts'
import { BlockRenderer } from '../reply/renderer.ts'
import { Paragraphs } from './paragraphs.ts'
import { reasoningPlaces } from './reasoning-places.ts'
import { callProof, renderSealedDetail, renderThinkingDetail } from './render-reasoning.ts'
import { renderUsage } from './render-usage.ts'
import { finishMembers, refusalText, replyHead } from './reply-head.ts'

/** Between records anything but a comment breaks chat clients. */
const keepAlive = ': keep-alive\n\n'

export function renderStream(context: RenderContext): StreamRenderer {
  return new ChatStreamRenderer(context)
}

class ChatStreamRenderer extends BlockRenderer {
  readonly #texts = new Paragraphs()
  readonly #thoughts = new Paragraphs()
  /** Of the reasoning, in its order; where it stands is known at the end. */
  readonly #details: ((place: number) => RawJson)[] = []
  /** Of the blocks so far, but for texts that say nothing. */
  readonly #kinds: ReplyBlock['kind'][] = []
  /** '' until the first record. */
  #head = ''
  #calls = 0
  #hasPieces = false
  #hasArguments = false
  #hasRefusal = false
  #thinking = ''
  /** Of the thinking block that ended last, until something else begins. */
  #proof: RawJson | undefined

  protected start(id: string | undefined): string {
    if (this.#head !== '') return ''
    this.#head = replyHead('chat.completion.chunk', id, this.context)
    return this.#delta('{"role":"assistant","content":""}')
  }

  protected startBlock(block: ReplyBlock): string {
    this.#hasPieces = false
    if (block.kind !== 'text' || block.apart) this.#texts.break()
    const proof = this.#proof
    this.#proof = undefined
    switch (block.kind) {
      case 'thinking':
        this.#thoughts.break()
        this.#thinking = ''
        return ''
      case 'sealed-thinking':
        this.#details.push((place) => renderSealedDetail(block.data.toWellFormed(), place))
        return ''
      case 'tool-call':
        this.#calls += 1
        this.#hasArguments = false
        return this.#call(calledMember(block.custom, [['name', jsonString(block.name.toWellFormed())]], ''), [
          ['id', jsonString(block.id.toWellFormed())],
          ['type', block.custom ? '"custom"' : '"function"'],
          ['extra_content', proof],
        ])
      default:
        return ''
    }
  }

  protected piece(text: string): string {
    this.#hasPieces = true
    switch (this.block?.kind) {
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
        return this.#call(calledMember(this.block.custom, [], text))
      default:
        return ''
    }
  }

  protected endBlock(block: ReplyBlock): string {
    if (this.#hasPieces || (block.kind !== 'text' && block.kind !== 'refusal')) this.#kinds.push(block.kind)
    if (block.kind === 'thinking') {
      const signature = this.signature?.toWellFormed()
      const text = this.#thinking
      this.#details.push((place) => renderThinkingDetail(text, signature, place))
      this.#proof = callProof(signature)
    }
    // A call without arguments has written nothing, and that is no JSON.
    const isEmptyCall = block.kind === 'tool-call' && !block.custom && !this.#hasArguments
    return isEmptyCall ? this.#call(calledMember(false, [], '{}')) : ''
  }

  protected end(stop: Stop, usage: Usage): string {
    let written = ''
    if (stop.unified === 'refusal' && !this.#hasRefusal) {
      this.#kinds.push('refusal')
      written += this.#delta(jsonObject([['refusal', jsonString(refusalText(stop).toWellFormed())]]))
    }
    if (this.#details.length > 0) written += this.#delta(jsonObject([['reasoning_details', this.#writeDetails()]]))
    const finish = finishMembers(stop, this.context)
    const choice = jsonObject([['index', '0'], ['delta', '{}'], ['logprobs', 'null'], ...finish])
    written += this.#record(jsonArray([choice]), 'null')
    if (this.context.wantsStreamUsage) {
      written += this.#record('[]', renderUsage(usage, this.context.costOf(usage)))
    }
    this.terminal = 'data: [DONE]\n\n'
    return written
  }

  protected keepAlive(): string {
    return keepAlive
  }

  #writeDetails(): RawJson {
    const places = reasoningPlaces(this.#kinds)
    return jsonArray(this.#details.map((render, i) => render(places[i] ?? 0)))
  }

  /** `first`: what only the first record of a call has. */
  #call(called: readonly [string, RawJson], first: readonly (readonly [string, RawJson | undefined])[] = []): string {
    if (this.context.legacyCalls) {
      // The older form has one call, and no id.
      return this.#calls > 1 ? '' : this.#delta(jsonObject([['function_call', called[1]]]))
    }
    const call = jsonObject([['index', String(this.#calls - 1)], ...first, called])
    return this.#delta(jsonObject([['tool_calls', jsonArray([call])]]))
  }

  #delta(delta: RawJson): string {
    const start = this.#head === '' ? this.start(undefined) : ''
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
