// Renders canonical events as a Responses stream, or a whole response with the same content. An item is announced before
// its deltas and repeated whole at its end, which is what Codex reads.

import type { Usage } from '../../../kernel/usage.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import type { ReplyBlock, ReplyEvent, Stop } from '../../canonical/reply.ts'
import { openaiReplyTiers } from '../../canonical/tiers.ts'
import type { CallForm, EventNumbering, RenderContext, StreamRenderer } from '../../canonical/translation.ts'
import { BlockRenderer, refusalText } from '../../reply/renderer.ts'
import { argumentsObject } from '../../request/tools.ts'
import { writeCompaction, writeEncrypted } from '../reasoning.ts'
import { resourceDefaults } from '../resource.ts'
import { renderUsage } from '../usage.ts'

export function renderStream(context: RenderContext): StreamRenderer {
  return new ResponsesRenderer(context)
}

/**
 * The last event of the stream holds the whole response, so it is rendered in the same way. No client repeats a request
 * for a whole reply, so one that was cut off is incomplete: clients would discard the text of a failed one.
 */
export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  if (context.isCompaction) return renderCompaction(events, context)
  const renderer = new ResponsesRenderer(context, false)
  for (const event of events) renderer.render(event)
  return renderer.response
}

/** The summary as one item, which takes the place of the conversation. '' without one: the conversation would be lost. */
function renderCompaction(events: readonly ReplyEvent[], context: RenderContext): string {
  const summary = events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('')
  const end = events.at(-1)
  if (summary.trim() === '' || end?.type !== 'reply-end' || !end.usage) return ''
  const id = context.requestId.slice(context.requestId.indexOf('_') + 1)
  const item = jsonObject({
    id: jsonString(`cmp_${id}`),
    type: '"compaction"',
    encrypted_content: jsonString(writeCompaction(summary, context.contentTags)),
  })
  return jsonObject({
    id: jsonString(`resp_${id}`),
    object: '"response.compaction"',
    created_at: String(context.createdSeconds),
    output: jsonArray([item]),
    usage: renderUsage(end.usage, context.quotedUsd(end.usage)),
  })
}

/** What surrounds the number and the text of a delta. It is the same for every delta of a block. */
interface DeltaForm {
  readonly head: string
  readonly place: string
  readonly tail: string
}

/** The message that is open: adjacent texts and refusals are its parts. */
interface OpenMessage {
  readonly id: string
  readonly parts: RawJson[]
}

class ResponsesRenderer extends BlockRenderer {
  /** The response as it was last written. */
  response: RawJson = ''
  readonly #echo: Members = this.context.echo?.() ?? {}
  #id = ''
  #sequence = 0
  /** Complete items. The index of an open one is their number. */
  readonly #output: RawJson[] = []
  #message: OpenMessage | undefined
  /** Id of the open item, if it is not a message. */
  #item = ''
  /** Text of the open part, or arguments of the open call. */
  #text = ''
  #delta: DeltaForm | undefined
  #hasRefusal = false
  #status = ''

  /** `isStreamed`: events are written; otherwise only the response at their end. */
  constructor(
    context: RenderContext,
    private readonly isStreamed = true,
  ) {
    super(context)
  }

  get numbering(): EventNumbering {
    return { responseId: this.#id, next: this.#sequence, echo: this.#echo }
  }

  protected start(id: string | undefined): string {
    if (this.#id !== '') return ''
    this.#id = this.context.stateEcho?.id ?? idWith('resp', id ?? this.context.requestId)
    if (!this.isStreamed) return ''
    this.response = this.#renderResponse('in_progress', {})
    return (
      this.#event('response.created', { response: this.response }) +
      this.#event('response.in_progress', { response: this.response })
    )
  }

  protected startBlock(block: ReplyBlock): string {
    const started = this.start(undefined)
    this.#text = ''
    this.#delta = undefined
    switch (block.kind) {
      case 'text':
      case 'refusal':
        return started + this.#startPart(block)
      case 'thinking':
      case 'sealed-thinking':
        return started + this.#startReasoning(block)
      case 'tool-call':
        return started + this.#startCall(block)
    }
  }

  protected piece(text: string): string {
    const isFirst = this.#text === ''
    this.#text += text
    const { block } = this
    if (!this.isStreamed || !block) return ''
    const begun =
      isFirst && block.kind === 'thinking'
        ? this.#summaryEvent('response.reasoning_summary_part.added', { part: summaryPart('') })
        : ''
    this.#delta ??= this.#deltaForm(block)
    const { head, place, tail } = this.#delta
    return head === '' ? '' : `${begun}${head}${this.#sequence++}${place}${jsonString(text)}${tail}`
  }

  protected endBlock(block: ReplyBlock): string {
    switch (block.kind) {
      case 'text':
      case 'refusal':
        return this.#endPart(block.kind)
      case 'thinking':
        return this.#endThinking()
      case 'sealed-thinking':
        return this.#endItem(reasoningItem(this.#item, '', this.#encrypted(block)))
      case 'tool-call':
        return this.#endCall(block)
    }
  }

  protected end(stop: Stop, usage: Usage): string {
    let written = ''
    if (stop.unified === 'refusal' && !this.#hasRefusal) {
      // In a message of its own: Codex (0.169) does not know the part, and shows nothing of a message that has one.
      written += this.#endMessage()
      written += this.startBlock({ kind: 'refusal' })
      this.block = { kind: 'refusal' }
      written += this.piece(refusalText(stop))
      this.block = undefined
      written += this.#endPart('refusal')
    }
    written += this.#endMessage()
    const tier = usage.tier && openaiReplyTiers[usage.tier]
    const more: Members = {
      ...(tier !== undefined && { service_tier: jsonString(tier) }),
      usage: renderUsage(usage, this.context.quotedUsd(usage)),
    }
    if (stop.unified === 'length' && this.isStreamed && this.context.isCapLowered) {
      this.response = this.#renderResponse('failed', { ...more, error: unpaidError })
    } else if (stop.unified === 'length') {
      const incomplete = '{"reason":"max_output_tokens"}'
      this.response = this.#renderResponse('incomplete', { ...more, incomplete_details: incomplete })
    } else {
      this.response = this.#renderResponse('completed', { ...more, completed_at: String(this.context.nowSeconds()) })
    }
    this.terminal = this.#event(`response.${this.#status}`, { response: this.response })
    return written
  }

  #startPart(block: ReplyBlock & { readonly kind: 'text' | 'refusal' }): string {
    let written = block.kind === 'text' && block.apart ? this.#endMessage() : ''
    if (!this.#message) {
      this.#message = { id: this.#newId('msg'), parts: [] }
      written += this.#itemAdded(messageItem(this.#message, 'in_progress'))
    }
    return written + this.#partEvent('response.content_part.added', { part: messagePart(block.kind, '') })
  }

  #endPart(kind: 'text' | 'refusal'): string {
    if (kind === 'refusal') this.#hasRefusal = true
    const part = messagePart(kind, this.#text)
    if (!this.isStreamed) {
      this.#message?.parts.push(part)
      return ''
    }
    const done =
      kind === 'text'
        ? this.#partEvent('response.output_text.done', { text: jsonString(this.#text), logprobs: '[]' })
        : this.#partEvent('response.refusal.done', { refusal: jsonString(this.#text) })
    const written = done + this.#partEvent('response.content_part.done', { part })
    this.#message?.parts.push(part)
    return written
  }

  #endMessage(): string {
    if (!this.#message) return ''
    const item = messageItem(this.#message, 'completed')
    this.#message = undefined
    return this.#endItem(item)
  }

  #partEvent(type: string, members: Members): string {
    return this.#event(type, { ...this.#partPlace(), ...members })
  }

  #partPlace(): Members {
    return {
      item_id: jsonString(this.#message?.id ?? ''),
      output_index: String(this.#output.length),
      content_index: String(this.#message?.parts.length ?? 0),
    }
  }

  #deltaForm(block: ReplyBlock): DeltaForm {
    switch (block.kind) {
      case 'text':
        return deltaForm('output_text', this.#partPlace(), ',"logprobs":[]')
      case 'refusal':
        return deltaForm('refusal', this.#partPlace())
      case 'thinking':
        return deltaForm('reasoning_summary_text', { ...this.#itemPlace(), summary_index: '0' })
      case 'tool-call':
        return this.#isShell(block) ? noDelta : deltaForm(callTypes(block).deltas, this.#itemPlace())
      case 'sealed-thinking':
        return noDelta
    }
  }

  // Reasoning, as a summary: clients show it, and return it with the encrypted content.

  #startReasoning(block: ReplyBlock): string {
    const ended = this.#endMessage()
    this.#item = this.#newId('rs')
    const item = reasoningItem(this.#item, '', block.kind === 'sealed-thinking' ? this.#encrypted(block) : undefined)
    return ended + this.#itemAdded(item)
  }

  #endThinking(): string {
    const text = this.#text
    const done =
      text === ''
        ? ''
        : this.#summaryEvent('response.reasoning_summary_text.done', { text: jsonString(text) }) +
          this.#summaryEvent('response.reasoning_summary_part.done', { part: summaryPart(text) })
    const encrypted = this.#encrypted({ kind: 'thinking', signature: this.signature?.toWellFormed() })
    return done + this.#endItem(reasoningItem(this.#item, text, encrypted))
  }

  #encrypted(block: Parameters<typeof writeEncrypted>[0]): string | undefined {
    return writeEncrypted(block, this.context.contentTags)
  }

  #summaryEvent(type: string, members: Members): string {
    return this.#itemEvent(type, { summary_index: '0', ...members })
  }

  #startCall(call: ReplyCall): string {
    const ended = this.#endMessage()
    this.#item = this.#newId(callTypes(call).prefix)
    return this.#isShell(call) ? ended : ended + this.#itemAdded(this.#callItem(call, '', 'in_progress'))
  }

  /** A shell call has no deltas. */
  #isShell({ name }: ReplyCall): boolean {
    return this.context.callForms?.get(name)?.isShell === true
  }

  #endCall(call: ReplyCall): string {
    if (this.#isShell(call)) return this.#writeShell(call)
    const { deltas, member } = callTypes(call)
    // Empty arguments are not JSON.
    const text = this.#text.trim() === '' && !call.custom ? '{}' : this.#text
    const filled = text === this.#text ? '' : this.#itemEvent(`response.${deltas}.delta`, { delta: jsonString(text) })
    const done = this.#itemEvent(`response.${deltas}.done`, { [member]: jsonString(text) })
    return filled + done + this.#endItem(this.#callItem(call, text, 'completed'))
  }

  #writeShell({ id }: ReplyCall): string {
    const item = jsonObject({
      id: jsonString(this.#item),
      type: '"local_shell_call"',
      status: '"completed"',
      call_id: jsonString(id.toWellFormed()),
      action: argumentsObject(this.#text),
    })
    return this.#itemAdded(item) + this.#endItem(item)
  }

  #callItem(call: ReplyCall, text: string, status: string): RawJson {
    const { type, member } = callTypes(call)
    const form: CallForm | undefined = this.context.callForms?.get(call.name)
    return jsonObject({
      id: jsonString(this.#item),
      type: jsonString(type),
      status: jsonString(status),
      [member]: jsonString(text),
      call_id: jsonString(call.id.toWellFormed()),
      name: jsonString((form?.name ?? call.name).toWellFormed()),
      namespace: jsonString(form?.namespace),
    })
  }

  #newId(prefix: string): string {
    return `${prefix}_${this.#id.slice('resp_'.length)}_${this.#output.length}`
  }

  #itemAdded(item: RawJson): string {
    return this.#event('response.output_item.added', { output_index: String(this.#output.length), item })
  }

  #endItem(item: RawJson): string {
    const written = this.#event('response.output_item.done', { output_index: String(this.#output.length), item })
    this.#output.push(item)
    return written
  }

  #itemEvent(type: string, members: Members): string {
    return this.#event(type, { ...this.#itemPlace(), ...members })
  }

  #itemPlace(): Members {
    return { item_id: jsonString(this.#item), output_index: String(this.#output.length) }
  }

  #event(type: string, members: Members): string {
    if (!this.isStreamed) return ''
    const name = jsonString(type)
    return `event: ${type}\ndata: ${jsonObject({ type: name, sequence_number: String(this.#sequence++), ...members })}\n\n`
  }

  #renderResponse(status: string, more: Members): RawJson {
    const { createdSeconds, model, stateEcho } = this.context
    this.#status = status
    return jsonObject({
      id: jsonString(this.#id),
      ...resourceDefaults,
      created_at: String(createdSeconds),
      status: jsonString(status),
      model: jsonString(model),
      output: jsonArray(this.#output),
      previous_response_id: JSON.stringify(stateEcho?.previous_response_id ?? null),
      store: String(stateEcho?.store ?? false),
      ...this.#echo,
      ...more,
    })
  }
}

/** Not `incomplete`, after which Codex repeats the request, up to five times, and pays for each. */
export const unpaidError = jsonObject({
  code: '"insufficient_quota"',
  message: jsonString(
    'The answer ends here, because the wallet or a spend limit covers no more. Top up the wallet or raise the limit.',
  ),
})

type ReplyCall = ReplyBlock & { readonly kind: 'tool-call' }

function callTypes({ custom }: ReplyCall) {
  return custom
    ? ({ type: 'custom_tool_call', prefix: 'ctc', deltas: 'custom_tool_call_input', member: 'input' } as const)
    : ({ type: 'function_call', prefix: 'fc', deltas: 'function_call_arguments', member: 'arguments' } as const)
}

const noDelta: DeltaForm = { head: '', place: '', tail: '' }

function deltaForm(of: string, place: Members, more = ''): DeltaForm {
  const type = `response.${of}.delta`
  return {
    head: `event: ${type}\ndata: {"type":"${type}","sequence_number":`,
    place: `,${jsonObject(place).slice(1, -1)},"delta":`,
    tail: `${more}}\n\n`,
  }
}

function messageItem({ id, parts }: OpenMessage, status: string): RawJson {
  const content = jsonArray(parts)
  return jsonObject({ id: jsonString(id), type: '"message"', status: jsonString(status), role: '"assistant"', content })
}

function messagePart(kind: 'text' | 'refusal', text: string): RawJson {
  if (kind === 'refusal') return jsonObject({ type: '"refusal"', refusal: jsonString(text) })
  return jsonObject({ type: '"output_text"', text: jsonString(text), annotations: '[]', logprobs: '[]' })
}

function reasoningItem(id: string, text: string, encrypted: string | undefined): RawJson {
  return jsonObject({
    id: jsonString(id),
    type: '"reasoning"',
    summary: jsonArray(text === '' ? [] : [summaryPart(text)]),
    encrypted_content: jsonString(encrypted),
  })
}

function summaryPart(text: string): RawJson {
  return jsonObject({ type: '"summary_text"', text: jsonString(text) })
}

const idMax = 200

/** Clients drop ids without their prefix. */
function idWith(prefix: string, id: string): string {
  const own = id.slice(0, idMax).toWellFormed()
  return own.startsWith(`${prefix}_`) ? own : `${prefix}_${own.slice(own.indexOf('_') + 1)}`
}
