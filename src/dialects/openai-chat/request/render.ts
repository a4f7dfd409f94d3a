// Renders a Conversation as a Chat Completions body. A stream is requested with usage, because the gateway reads it. The
// part that grows from turn to turn comes last, so the bytes before it stay the same.

import {
  type AssistantBlock,
  type ContentBlock,
  type Conversation,
  type DocumentBlock,
  type Effort,
  type MediaSource,
  pointerTo,
  type RawJson,
  type TextBlock,
  type ToolCallBlock,
  type ToolResultBlock,
} from '../../canonical/conversation.ts'
import { filledArray, jsonArray, jsonObject, jsonString, type Members, parseJson } from '../../canonical/json.ts'
import { blobFor, readSignature } from '../../canonical/signature.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { openaiHostTiers } from '../../canonical/tiers.ts'
import { type RenderedRequest, renderedRequest, type Target } from '../../canonical/translation.ts'
import type { FoundMark } from '../../request/cache-marks.ts'
import { refuseAt, refuseEmpty, refusing } from '../../request/fields.ts'
import { isAudio } from '../../request/media.ts'
import { fitEffort, isThinking, proofOf } from '../../request/reasoning.ts'
import {
  argumentText,
  dataUrl,
  isFilled,
  joinedText,
  mediaOutside,
  message,
  type OpenaiForm,
  openRendering,
  type OpenaiRendering as Rendering,
  renderFormat,
  renderParts,
  renderTools,
  resultText,
  samplingMembers,
  servingMembers,
  type TurnWriter,
  textIn,
  textMembers,
  writeTurns,
} from '../../request/render-openai.ts'
import { renderOutputCap, splitStop, withInstruction } from '../../request/settings.ts'

const stopMaxDefault = 4
export const toolIdMaxDefault = 40

export const renderRequest = refusing(render)

function render(conversation: Conversation, target: Target): RenderedRequest {
  const rendering = openRendering(chatForm, conversation, target)
  const { rules, warnings } = rendering
  const { format, instruction } = renderFormat(conversation, rendering)
  const effort = renderEffort(conversation, rendering)
  const tools = renderTools(conversation, rendering)
  const stop = splitStop(conversation.stop, rules.stopMax ?? stopMaxDefault)
  const messages = renderMessages(withInstruction(conversation.system, instruction), rendering)
  if (messages.length === 0) refuseEmpty(conversation)
  const body = jsonObject({
    model: jsonString(target.upstreamModel),
    stream: String(!target.wantsWhole),
    stream_options: target.wantsWhole || rules.streamUsage === false ? undefined : '{"include_usage":true}',
    [rules.outputCapName ?? 'max_tokens']: renderOutputCap(conversation, target, warnings),
    reasoning_effort: jsonString(effort),
    ...samplingMembers(conversation, effort, rendering),
    stop: filledArray(stop.sent.map(jsonString)),
    response_format: format,
    verbosity: jsonString(conversation.verbosity),
    ...servingMembers(conversation, rendering),
    ...tools.members,
    messages: jsonArray(messages),
  })
  return renderedRequest(body, warnings.list, { ...tools.mapping, stop: stop.matched })
}

/** The effort to send; undefined = none. */
function renderEffort(conversation: Conversation, rendering: Rendering): Effort | undefined {
  const { rules, warnings } = rendering
  const wanted = fitEffort(conversation, rendering)
  // Hosts show their reasoning or do not; the dialect has no member to ask for it.
  if (conversation.reasoning?.summary) warnings.add('summary_dropped', '/reasoning/summary')
  if (conversation.tools.length === 0 || rules.toolsWithReasoning !== false || wanted === 'none') return wanted
  if (wanted === undefined && !rules.thinksByDefault) return undefined
  // The host refuses tools while the model reasons, and the caller needs the tools more.
  warnings.add('reasoning_dropped', wanted === undefined ? '/tools' : pointerTo(conversation, 'reasoning'))
  return 'none'
}

// How the dialect writes what it shares with Responses.

const chatForm: OpenaiForm = {
  isNested: true,
  writesStrict: false,
  endUserName: 'user',
  tierWords: openaiHostTiers,
  midSystem: false,
  toolIdMax: toolIdMaxDefault,
  textType: 'text',
  image: (url) => ({ type: '"image_url"', image_url: jsonObject({ url: jsonString(url) }) }),
  document: documentParts,
  takesCustom: ({ customTools }) => customTools === true,
  canRestrict: ({ allowedTools }) => allowedTools === true,
  grammar: (grammar) => grammar,
  canCarry,
  sampling: [
    { setting: 'temperature', member: 'temperature' },
    { setting: 'topP', member: 'top_p' },
    { setting: 'topK', member: 'top_k', when: ({ topK }) => topK === true },
    { setting: 'frequencyPenalty', member: 'frequency_penalty', when: ({ penalties }) => penalties !== false },
    { setting: 'presencePenalty', member: 'presence_penalty', when: ({ penalties }) => penalties !== false },
    { setting: 'seed', member: 'seed', always: true, when: ({ seed }) => seed !== false },
    { setting: 'logitBias', member: 'logit_bias', when: ({ logitBias }) => logitBias !== false },
  ],
}

function documentParts(document: DocumentBlock, source: MediaSource, rules: TargetRules, pointer: string): Members[] {
  if (source.kind === 'url') {
    return refuseAt(pointer, 'This model does not take documents by URL; send the data instead.')
  }
  if (isAudio(source)) {
    const format = jsonString(source.mediaType.slice('audio/'.length))
    return [{ type: '"input_audio"', input_audio: jsonObject({ data: jsonString(source.base64), format }) }]
  }
  if (rules.documents !== true) {
    return refuseAt(pointer, 'This model does not take documents; send their text instead.')
  }
  const { title = 'document.pdf', context } = document
  const file = jsonObject({ filename: jsonString(title), file_data: jsonString(dataUrl(source)) })
  const part = { type: '"file"', file }
  return context === undefined ? [part] : [part, textMembers(context, { textType: 'text' })]
}

function canCarry({ within, block }: FoundMark): boolean {
  if (within === 'tools' || within === 'tool-result') return false
  if (block.kind === 'tool-result') return block.content.length > 0 || block.isError
  return block.kind !== 'tool-call' && (block.kind !== 'text' || block.text !== '')
}

// Renders turns as messages. Each message depends only on its own turns and those before it, so a growing conversation
// keeps its prefix.

/** Inserted between a tool message and a user message for hosts whose templates require it. */
export const bridge = '{"role":"assistant","content":"OK."}'

function renderMessages(system: readonly TextBlock[], rendering: Rendering): readonly RawJson[] {
  const messages = new MessageList(rendering)
  messages.system(system)
  writeTurns(messages, rendering)
  return messages.end()
}

const blankLine = '\n\n'

/** One turn's part of a user message. Consecutive ones are one message, because many templates refuse two in a row. */
interface SaidTurn {
  /** Before the blocks. */
  readonly media: readonly RawJson[]
  readonly blocks: readonly ContentBlock[]
  readonly pointer: string
  /** The blocks that are marked, where they are not those that are written. */
  readonly marked?: readonly TextBlock[]
}

class MessageList implements TurnWriter {
  readonly #list: RawJson[] = []
  #said: SaidTurn[] = []
  #lastSpoken: string | undefined

  constructor(private readonly rendering: Rendering) {}

  end(): readonly RawJson[] {
    this.#pushSaid()
    return this.#list
  }

  assistant(blocks: readonly AssistantBlock[], pointer: string): void {
    const message = renderAssistant(blocks, this.rendering, pointer)
    if (message !== undefined) this.#push('assistant', message)
  }

  result(result: ToolResultBlock, pointer: string): readonly RawJson[] {
    const rendered = renderToolResult(result, this.rendering, pointer)
    this.#push('tool', rendered.message)
    return rendered.media
  }

  user(blocks: readonly ContentBlock[], pointer: string, media: readonly RawJson[]): void {
    if (blocks.length + media.length > 0) this.#said.push({ media, blocks: blocks.filter(isFilled), pointer })
  }

  system(blocks: readonly TextBlock[]): void {
    const filled = blocks.filter(isFilled)
    if (filled.length === 0) return
    const { rules, marks } = this.rendering
    const content =
      rules.systemAsParts || marks.inUse
        ? jsonArray(filled.flatMap((block) => renderParts(block, this.rendering, '')))
        : jsonString(joinedText(filled))
    this.#push('system', message(rules.systemRole ?? 'system', content))
  }

  inlinedSystem(text: string, blocks: readonly TextBlock[], pointer: string): void {
    const marked = blocks.filter((each) => this.rendering.marks.keeps(each)).slice(-1)
    this.#said.push({ media: [], blocks: [{ kind: 'text', text }], pointer, marked })
  }

  #push(role: 'system' | 'assistant' | 'tool', text: RawJson): void {
    this.#pushSaid()
    if (role !== 'system') this.#lastSpoken = role
    this.#list.push(text)
  }

  #pushSaid(): void {
    if (this.#said.length === 0) return
    if (this.#lastSpoken === 'tool' && this.rendering.rules.assistantAfterTool) this.#list.push(bridge)
    this.#lastSpoken = 'user'
    this.#list.push(message('user', this.#userContent()))
    this.#said = []
  }

  /**
   * A string if each turn is one unmarked text, which every host accepts; parts otherwise. Turns are separated by a blank
   * line in both, because templates join parts without a separator.
   */
  #userContent(): RawJson {
    const said = this.#said.filter(({ media, blocks }) => media.length + blocks.length > 0)
    const texts = said.flatMap(({ media, blocks: [first, ...others] }) =>
      first?.kind === 'text' && others.length + media.length === 0 ? [first.text] : [],
    )
    if (texts.length === said.length && !this.rendering.marks.inUse) return jsonString(texts.join(blankLine))
    return filledArray(said.flatMap((turn, i) => this.#userParts(turn, i === 0 ? '' : blankLine))) ?? '""'
  }

  /** `lead` comes before a text at the start. */
  #userParts({ media, blocks, pointer, marked }: SaidTurn, lead: string): RawJson[] {
    const parts = blocks.flatMap((block, i) => {
      const isFirst = i === 0 && media.length === 0 && block.kind === 'text'
      const shown = isFirst ? { ...block, text: lead + block.text } : block
      return renderParts(shown, this.rendering, pointer, marked ?? [block])
    })
    return [...media, ...parts]
  }
}

// Assistant messages: text, calls, and as much of the reasoning as the host wants back. Reasoning never becomes visible
// text.

/** undefined if the message would be empty. */
function renderAssistant(
  blocks: readonly AssistantBlock[],
  rendering: Rendering,
  pointer: string,
): RawJson | undefined {
  const calls = blocks.filter((block) => block.kind === 'tool-call')
  const refusal = blocks.flatMap((block) => (block.kind === 'refusal' ? [block.text] : [])).join('')
  const content = renderSaid(blocks, rendering)
  const details = restoredDetails(blocks, rendering)
  const echo = echoOf(blocks, rendering)
  warnDropped(blocks, rendering, pointer)
  if (content === undefined && calls.length === 0 && refusal === '' && !echo?.text && details === undefined) {
    return undefined
  }
  // Beside a call OpenAI uses null; some servers require a string.
  const isNull = (calls.length > 0 || refusal !== '') && rendering.rules.emptyContent !== 'string'
  return jsonObject({
    role: '"assistant"',
    content: content ?? (isNull ? 'null' : '""'),
    refusal: jsonString(refusal || undefined),
    ...(echo && { [echo.field]: jsonString(echo.text) }),
    reasoning_details: details,
    tool_calls: filledArray(calls.map((call) => renderCall(call, rendering))),
  })
}

function renderSaid(blocks: readonly AssistantBlock[], rendering: Rendering): RawJson | undefined {
  const texts = blocks.flatMap((block) => (block.kind === 'text' && block.text !== '' ? [block] : []))
  if (texts.length === 0) return undefined
  if (!texts.some((block) => rendering.marks.keeps(block))) return jsonString(texts.map(({ text }) => text).join(''))
  return jsonArray(texts.flatMap((block) => renderParts(block, rendering, '')))
}

function renderCall(call: ToolCallBlock, { names, rules }: Rendering): RawJson {
  const id = jsonString(call.id)
  const name = jsonString(names.sent(call.name))
  if (call.custom && rules.customTools) {
    return jsonObject({ id, type: '"custom"', custom: jsonObject({ name, input: jsonString(call.arguments) }) })
  }
  const called = jsonObject({ name, arguments: jsonString(argumentText(call)) })
  return jsonObject({ id, type: '"function"', function: called })
}

/** Hosts that want reasoning back refuse a message without the field, so it is sent empty if there is none. */
function echoOf(blocks: readonly AssistantBlock[], { rules }: Rendering) {
  const echo = rules.reasoningEcho
  if (!echo || (echo.when === 'tool-turns' && !blocks.some(({ kind }) => kind === 'tool-call'))) return undefined
  const texts = blocks.flatMap((block) => (block.kind === 'thinking' && block.text !== '' ? [block.text] : []))
  return { field: echo.field, text: texts.join('\n\n') }
}

/** Reasoning that this host issued goes back unchanged. The data may be forged, so only lists are spliced in. */
function restoredDetails(blocks: readonly AssistantBlock[], { issuer }: Rendering): RawJson | undefined {
  const entries = blocks.flatMap((block) => {
    const blob = (isThinking(block) && blobFor(issuer, proofOf(block))) || ''
    const list = parseJson(blob)
    return Array.isArray(list) && list.length > 0 ? [blob.trim().slice(1, -1)] : []
  })
  return filledArray(entries)
}

function warnDropped(blocks: readonly AssistantBlock[], { rules, issuer, warnings }: Rendering, pointer: string): void {
  for (const block of blocks) {
    if (!isThinking(block)) continue
    const own = readSignature(proofOf(block) ?? '')
    // No warning for reasoning that is only for display, was restored above, or is echoed as text.
    if (own && (own.blob === undefined || own.issuer === issuer)) continue
    if (block.kind === 'thinking' && rules.reasoningEcho) continue
    warnings.add('thinking_dropped', pointer)
  }
}

// Tool results as tool messages, which hold only text: media are replaced by a stub and returned, to be placed in a
// user message after all tool messages of the batch.

/** `media`: parts for the user message, starting with the call they belong to. */
function renderToolResult(result: ToolResultBlock, rendering: Rendering, pointer: string) {
  const media = result.content.filter((block) => textIn(block) === undefined)
  const text = resultText(result)
  // Hosts that forward to Claude refuse an empty part, but not an empty string.
  const isParts = rendering.marks.inUse && text !== ''
  const content = isParts
    ? jsonArray(renderParts({ kind: 'text', text }, rendering, pointer, [result]))
    : jsonString(text)
  return {
    message: jsonObject({ role: '"tool"', tool_call_id: jsonString(result.callId), content }),
    media: mediaOutside(media, result.callId, rendering, pointer),
  }
}
