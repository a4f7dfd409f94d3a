// Renders canonical events as a Chat Completions stream or a whole reply with the same content. Official clients keep
// only the last value of unknown members, so in a stream reasoning arrives as text and its details come once, complete,
// before the finish.

import type { Usage } from '../../../kernel/usage.ts'
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
import { BlockRenderer } from '../../reply/renderer.ts'
import { callProof, reasoningPlaces, renderSealedDetail, renderThinkingDetail } from '../reasoning.ts'
import { renderUsage } from '../usage.ts'

/** Between records, anything but a comment breaks chat clients. */
const keepAlive = ': keep-alive\n\n'

export function renderStream(context: RenderContext): StreamRenderer {
  return new ChatStreamRenderer(context)
}

class ChatStreamRenderer extends BlockRenderer {
  readonly #texts = new Paragraphs()
  readonly #thoughts = new Paragraphs()
  /** Reasoning entries in order; their indexes are known at the end. */
  readonly #details: ((place: number) => RawJson)[] = []
  /** Kinds of the blocks so far, without empty texts. */
  readonly #kinds: ReplyBlock['kind'][] = []
  /** '' before the first record. */
  #head = ''
  #calls = 0
  #hasPieces = false
  #hasArguments = false
  #hasRefusal = false
  #thinking = ''
  /** The signature of the last thinking block, until another block starts. */
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
        return this.#call(block.custom, { name: jsonString(block.name.toWellFormed()) }, '', {
          id: jsonString(block.id.toWellFormed()),
          type: block.custom ? '"custom"' : '"function"',
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
        return this.#delta(jsonObject({ content: jsonString(this.#texts.separator() + text) }))
      case 'refusal':
        this.#hasRefusal = true
        return this.#delta(jsonObject({ refusal: jsonString(text) }))
      case 'thinking':
        this.#thinking += text
        return this.#delta(jsonObject({ reasoning_content: jsonString(this.#thoughts.separator() + text) }))
      case 'tool-call':
        this.#hasArguments ||= text.trim() !== ''
        return this.#call(this.block.custom, {}, text)
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
    return isEmptyCall ? this.#call(false, {}, '{}') : ''
  }

  protected end(stop: Stop, usage: Usage): string {
    let written = ''
    if (stop.unified === 'refusal' && !this.#hasRefusal) {
      this.#kinds.push('refusal')
      written += this.#delta(jsonObject({ refusal: jsonString(refusalText(stop).toWellFormed()) }))
    }
    if (this.#details.length > 0) written += this.#delta(jsonObject({ reasoning_details: this.#writeDetails() }))
    const finish = finishMembers(stop, this.context)
    const choice = jsonObject({ index: '0', delta: '{}', logprobs: 'null', ...finish })
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

  /** `called`: members before the text of the call; `first`: members of the first record of a call. */
  #call(custom: boolean, called: Members, text: string, first: Members = {}): string {
    const detail = jsonObject({ ...called, [custom ? 'input' : 'arguments']: jsonString(text) })
    if (this.context.legacyCalls) {
      // The older form has one call, and no id.
      return this.#calls > 1 ? '' : this.#delta(jsonObject({ function_call: detail }))
    }
    const call = jsonObject({ index: String(this.#calls - 1), ...first, [custom ? 'custom' : 'function']: detail })
    return this.#delta(jsonObject({ tool_calls: jsonArray([call]) }))
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

export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  const { id, blocks, stop, usage: reported } = collectReply(events)
  const usage = reported ?? context.finalUsage(undefined, undefined, () => 0)
  const choice = jsonObject({
    index: '0',
    message: renderMessage(blocks, stop, context),
    logprobs: 'null',
    ...finishMembers(stop, context),
  })
  const head = replyHead('chat.completion', id, context)
  return `{${head},"choices":${jsonArray([choice])},"usage":${renderUsage(usage, context.costOf(usage))}}`
}

function renderMessage(blocks: readonly CollectedBlock[], stop: Stop, { legacyCalls }: RenderContext): RawJson {
  const content = joinTexts(blocks)
  const thinking = joinThinking(blocks)
  const refusal = refusalOf(blocks, stop)
  const calls = blocks.filter((block) => block.kind === 'tool-call')
  const rendered = blocks.flatMap((block, i) => (block.kind === 'tool-call' ? [renderCall(block, blocks[i - 1])] : []))
  const details = renderDetails(blocks, refusal)
  // Content is null beside a call or refusal, otherwise an empty string.
  const isSilent = content === '' && (calls.length > 0 || refusal !== undefined)
  return jsonObject({
    role: '"assistant"',
    content: isSilent ? 'null' : jsonString(content),
    refusal: jsonString(refusal) ?? 'null',
    reasoning_content: thinking === '' ? undefined : jsonString(thinking),
    reasoning_details: details.length === 0 ? undefined : jsonArray(details),
    tool_calls: calls.length === 0 || legacyCalls ? undefined : jsonArray(rendered),
    // The older form has one call and no id.
    function_call: calls[0] && legacyCalls ? renderFunction(calls[0]) : undefined,
  })
}

function joinTexts(blocks: readonly CollectedBlock[]): string {
  const paragraphs = new Paragraphs()
  let joined = ''
  for (const block of blocks) {
    if (block.kind !== 'text' || block.apart) paragraphs.break()
    if (block.kind === 'text' && block.text !== '') joined += paragraphs.separator() + block.text
  }
  return joined
}

function joinThinking(blocks: readonly CollectedBlock[]): string {
  return blocks.flatMap((block) => (block.kind === 'thinking' && block.text !== '' ? [block.text] : [])).join('\n\n')
}

function refusalOf(blocks: readonly CollectedBlock[], stop: Stop): string | undefined {
  const said = blocks.flatMap((block) => (block.kind === 'refusal' ? [block.text] : [])).join('')
  if (said !== '') return said
  return stop.unified === 'refusal' ? refusalText(stop).toWellFormed() : undefined
}

function renderDetails(blocks: readonly CollectedBlock[], refusal: string | undefined): RawJson[] {
  const kinds = blocks.flatMap((block) => {
    const isEmpty = (block.kind === 'text' || block.kind === 'refusal') && block.text === ''
    return isEmpty ? [] : [block.kind]
  })
  // The refusal text may be ours, but comes back with the message all the same.
  const places = reasoningPlaces(refusal === undefined ? kinds : [...kinds, 'refusal'])
  return blocks.flatMap((block): RawJson[] => {
    if (block.kind !== 'thinking' && block.kind !== 'sealed-thinking') return []
    const place = places.shift() ?? 0
    if (block.kind === 'sealed-thinking') return [renderSealedDetail(block.data.toWellFormed(), place)]
    return [renderThinkingDetail(block.text, block.signature?.toWellFormed(), place)]
  })
}

type CollectedCall = CollectedBlock & { readonly kind: 'tool-call' }

function renderCall(call: CollectedCall, before: CollectedBlock | undefined): RawJson {
  const name = jsonString(call.name.toWellFormed())
  const custom = call.custom ? jsonObject({ name, input: jsonString(call.arguments) }) : undefined
  return jsonObject({
    id: jsonString(call.id.toWellFormed()),
    type: call.custom ? '"custom"' : '"function"',
    custom,
    function: call.custom ? undefined : renderFunction(call),
    extra_content: before?.kind === 'thinking' ? callProof(before.signature?.toWellFormed()) : undefined,
  })
}

function renderFunction(call: CollectedCall): RawJson {
  return jsonObject({
    name: jsonString(call.name.toWellFormed()),
    arguments: jsonString(call.arguments.trim() === '' ? '{}' : call.arguments),
  })
}

// The first members of every record, and the end of a reply.

const idMax = 200

/** The members id, object, created and model, without braces. */
export function replyHead(object: string, id: string | undefined, context: RenderContext): string {
  const own = (id ?? context.requestId).slice(0, idMax).toWellFormed()
  const name = own.startsWith('chatcmpl-') ? own : `chatcmpl-${own}`
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

/** The text for a refusal without one. */
export function refusalText(stop: Stop): string {
  return stop.explanation ?? 'The model declined to answer this request.'
}

// Chat Completions has one text where canonical replies have blocks. Adjacent blocks are one text; blocks with
// something between them are separate paragraphs.

export class Paragraphs {
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
