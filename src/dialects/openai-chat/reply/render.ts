// Renders canonical events as a Chat Completions stream or a whole reply with the same content. Official clients keep
// only the last value of unknown members, so in a stream reasoning arrives as text and its details come once, complete,
// before the finish.

import type { Usage } from '../../../kernel/usage.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { filledArray, jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import type { ReplyBlock, ReplyEvent, Stop, StopReason } from '../../canonical/reply.ts'
import { openaiReplyTiers } from '../../canonical/tiers.ts'
import type { RenderContext, StreamRenderer } from '../../canonical/translation.ts'
import { BlockRenderer, prefixedId, refusalText } from '../../reply/renderer.ts'
import { callProof, reasoningPlaces, renderSealedDetail, renderThinkingDetail } from '../reasoning.ts'
import { renderUsage } from '../usage.ts'

export function renderStream(context: RenderContext): StreamRenderer {
  return new ChatStreamRenderer(context)
}

export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  const renderer = new ChatReplyRenderer(context)
  return events.map((event) => renderer.render(event)).join('')
}

type TextMember = 'content' | 'refusal' | 'reasoning_content'
type ToolCall = ReplyBlock & { readonly kind: 'tool-call' }

/** Turns blocks into additions to one message, which a stream writes as deltas and a whole reply adds up. */
abstract class ChatRenderer extends BlockRenderer {
  readonly #texts = new Paragraphs()
  readonly #thoughts = new Paragraphs()
  /** Reasoning entries in order; their indexes are known at the end. */
  readonly #details: ((place: number) => RawJson)[] = []
  /** Kinds of the blocks so far, without empty texts. */
  readonly #kinds: ReplyBlock['kind'][] = []
  protected calls = 0
  #hasPieces = false
  #hasArguments = false
  #hasRefusal = false
  #thinking = ''
  /** The signature of the last thinking block, until another block starts. */
  #proof: RawJson | undefined

  protected abstract addText(member: TextMember, text: string): string
  /** `first`: members of the first piece of a call. */
  protected abstract addArguments(call: ToolCall, text: string, first?: Members): string
  protected abstract finish(details: RawJson | undefined, stop: Stop, usage: Usage): string

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
        this.calls += 1
        this.#hasArguments = false
        return this.addArguments(block, '', {
          id: jsonString(block.id.toWellFormed()),
          type: `"${callForm(block).kind}"`,
          extra_content: proof,
        })
      default:
        return ''
    }
  }

  protected piece(text: string): string {
    this.#hasPieces = true
    switch (this.block?.kind) {
      case 'text':
        return this.addText('content', this.#texts.separator() + text)
      case 'refusal':
        this.#hasRefusal = true
        return this.addText('refusal', text)
      case 'thinking':
        this.#thinking += text
        return this.addText('reasoning_content', this.#thoughts.separator() + text)
      case 'tool-call':
        this.#hasArguments ||= text.trim() !== ''
        return this.addArguments(this.block, text)
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
    // A call without arguments would have an empty string, which is not JSON.
    const isEmptyCall = block.kind === 'tool-call' && !block.custom && !this.#hasArguments
    return isEmptyCall ? this.addArguments(block, '{}') : ''
  }

  protected end(stop: Stop, usage: Usage): string {
    let written = ''
    if (stop.unified === 'refusal' && !this.#hasRefusal) {
      // The text is ours, but comes back with the message all the same.
      this.#kinds.push('refusal')
      written += this.addText('refusal', refusalText(stop))
    }
    const places = reasoningPlaces(this.#kinds)
    const details = filledArray(this.#details.map((render, i) => render(places[i] ?? 0)))
    return written + this.finish(details, stop, usage)
  }
}

class ChatStreamRenderer extends ChatRenderer {
  /** '' before the first record. */
  #head = ''

  protected start(id: string | undefined): string {
    if (this.#head !== '') return ''
    this.#head = replyHead('chat.completion.chunk', id, this.context)
    return this.#delta('{"role":"assistant","content":""}')
  }

  protected addText(member: TextMember, text: string): string {
    return this.#delta(`{"${member}":${jsonString(text)}}`)
  }

  protected addArguments(call: ToolCall, text: string, first?: Members): string {
    const { kind, member } = callForm(call)
    const name = first && jsonString(call.name.toWellFormed())
    const detail = jsonObject({ name, [member]: jsonString(text) })
    if (this.context.legacyCalls) {
      // The older form has one call, and no id.
      return this.calls > 1 ? '' : this.#delta(jsonObject({ function_call: detail }))
    }
    return this.#delta(`{"tool_calls":[${jsonObject({ index: String(this.calls - 1), ...first, [kind]: detail })}]}`)
  }

  protected finish(details: RawJson | undefined, stop: Stop, usage: Usage): string {
    let written = details === undefined ? '' : this.#delta(jsonObject({ reasoning_details: details }))
    const choice = jsonObject({ index: '0', delta: '{}', logprobs: 'null', ...finishMembers(stop, this.context) })
    // Known at the end only: the chunks before do not name it.
    this.#head += tierMember(usage)
    written += this.#record(jsonArray([choice]), 'null')
    if (this.context.wantsStreamUsage) {
      written += this.#record('[]', renderUsage(usage, this.context.quotedUsd(usage)))
    }
    this.terminal = 'data: [DONE]\n\n'
    return written
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

class ChatReplyRenderer extends ChatRenderer {
  #id: string | undefined
  readonly #texts: Record<TextMember, string> = { content: '', refusal: '', reasoning_content: '' }
  readonly #calls: { readonly call: ToolCall; readonly first: Members; text: string }[] = []

  protected override keepAlive(): string {
    return ''
  }

  protected start(id: string | undefined): string {
    this.#id ??= id
    return ''
  }

  protected addText(member: TextMember, text: string): string {
    this.#texts[member] += text
    return ''
  }

  protected addArguments(call: ToolCall, text: string, first?: Members): string {
    const last = this.#calls.at(-1)
    if (first) this.#calls.push({ call, first, text })
    else if (last) last.text += text
    return ''
  }

  protected finish(details: RawJson | undefined, stop: Stop, usage: Usage): string {
    const { content, refusal, reasoning_content } = this.#texts
    const calls = this.#calls.map(({ call, first, text }) => {
      const { kind, member } = callForm(call)
      const detail = jsonObject({ name: jsonString(call.name.toWellFormed()), [member]: jsonString(text) })
      return { detail, whole: jsonObject({ ...first, [kind]: detail }) }
    })
    // Content is null beside a call or refusal, otherwise an empty string.
    const isSilent = content === '' && (calls.length > 0 || refusal !== '')
    const { legacyCalls } = this.context
    const message = jsonObject({
      role: '"assistant"',
      content: isSilent ? 'null' : jsonString(content),
      refusal: refusal === '' ? 'null' : jsonString(refusal),
      reasoning_content: jsonString(reasoning_content || undefined),
      reasoning_details: details,
      tool_calls: legacyCalls ? undefined : filledArray(calls.map(({ whole }) => whole)),
      // The older form has one call and no id.
      function_call: legacyCalls ? calls[0]?.detail : undefined,
    })
    const choice = jsonObject({ index: '0', message, logprobs: 'null', ...finishMembers(stop, this.context) })
    const head = replyHead('chat.completion', this.#id, this.context) + tierMember(usage)
    return `{${head},"choices":[${choice}],"usage":${renderUsage(usage, this.context.quotedUsd(usage))}}`
  }
}

function callForm({ custom }: ToolCall): { readonly kind: string; readonly member: string } {
  return custom ? { kind: 'custom', member: 'input' } : { kind: 'function', member: 'arguments' }
}

// The first members of every record, and the end of a reply.

/** The members id, object, created and model, without braces. */
function replyHead(object: string, id: string | undefined, context: RenderContext): string {
  const name = prefixedId('chatcmpl-', id ?? context.requestId)
  return `"id":${jsonString(name)},"object":"${object}","created":${context.createdSeconds},"model":${jsonString(context.model)}`
}

const finishReasons: Readonly<Record<StopReason, string>> = {
  end: 'stop',
  length: 'length',
  'stop-sequence': 'stop',
  'tool-calls': 'tool_calls',
  refusal: 'content_filter',
  // A pause that was not continued: the turn is over, and no tool is waiting.
  pause: 'stop',
}

/** The members that say why a choice ended; the last two are extensions of some hosts. */
function finishMembers(stop: Stop, context: RenderContext): Members {
  const isLegacyCall = context.legacyCalls === true && stop.unified === 'tool-calls'
  return {
    finish_reason: isLegacyCall ? '"function_call"' : jsonString(finishReasons[stop.unified]),
    stop_reason: jsonString(stop.sequence?.toWellFormed()),
    native_finish_reason: stop.unified === 'pause' ? jsonString(stop.raw.toWellFormed()) : undefined,
  }
}

// Chat Completions has one text where canonical replies have blocks. Adjacent blocks are one text; blocks with
// something between them are separate paragraphs.

class Paragraphs {
  #hasText = false
  #isBroken = false

  /** Something else stands between the text so far and the next. */
  break(): void {
    this.#isBroken = true
  }

  /** The separator before the next text, which must not be empty. */
  separator(): string {
    const separator = this.#hasText && this.#isBroken ? '\n\n' : ''
    this.#hasText = true
    this.#isBroken = false
    return separator
  }
}

function tierMember({ tier }: Usage): string {
  const word = tier && openaiReplyTiers[tier]
  return word === undefined ? '' : `,"service_tier":${jsonString(word)}`
}
