// Renders turns as messages by the provider's rules: tool results come first in the user message after their calls,
// system messages only after a user message, nothing is blank. A turn's rendering depends only on the turns before it
// and those it is joined with, so a growing conversation keeps its prefix.

import {
  type AssistantBlock,
  type CacheMark,
  type Conversation,
  type DocumentBlock,
  type ImageBlock,
  type MediaSource,
  pointerTo,
  type RawJson,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  turnPointer,
  type UserBlock,
} from '../../canonical/conversation.ts'
import { filledArray, jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { type Marked, writeCacheControl } from '../../request/cache-marks.ts'
import { paramOf, refuseAt, refusePrefill, type WarningList } from '../../request/fields.ts'
import { knownMediaType, refuseAudio, refuseMediaUrl } from '../../request/media.ts'
import { type ArgumentNames, callInput, type ToolNames } from '../../request/tools.ts'

// Content blocks before it is decided which cache marks are sent. Marks on blocks that are not sent move to a
// neighbour; of the rest the provider accepts four.

export interface WireBlock extends Marked {
  readonly type: string
  /** Set for a text block; blank ones are never sent. */
  readonly text?: string
  /** The members after `type`, for other blocks. */
  readonly members?: Members
  /** Whether the provider accepts a mark on it. */
  readonly markable: boolean
}

function textBlock(text: string, mark?: CacheMark): WireBlock {
  return { type: 'text', text, markable: true, mark }
}

function wireBlock(type: string, members: Members, mark?: CacheMark): WireBlock {
  return { type, members, markable: true, mark }
}

function isBlank({ text }: WireBlock): boolean {
  return text !== undefined && text.trim() === ''
}

export function writeBlock({ type, text, members, mark }: WireBlock): RawJson {
  return jsonObject({
    type: jsonString(type),
    text: jsonString(text),
    ...members,
    cache_control: writeCacheControl(mark),
  })
}

/** The mark of a block that cannot carry it moves to the nearest block before it, otherwise after it. */
function moveMarks(blocks: readonly WireBlock[]): void {
  let before: WireBlock | undefined
  let waiting: CacheMark | undefined
  for (const block of blocks) {
    if (block.markable && !isBlank(block)) {
      block.mark ??= waiting
      waiting = undefined
      before = block
    } else if (block.mark) {
      if (before) before.mark ??= block.mark
      else waiting = block.mark
      block.mark = undefined
    }
  }
}

export interface WireMessage {
  readonly role: 'user' | 'assistant' | 'system'
  readonly blocks: WireBlock[]
}

export interface HistoryContext {
  readonly rules: TargetRules
  readonly warnings: WarningList
  readonly names: ToolNames
  readonly argumentNames: ArgumentNames
  /** There is system text before the messages. */
  readonly isInstructed: boolean
  /** JSON pointer to the caller's messages. */
  readonly pointer: string
}

interface RenderedTurn {
  readonly turn: Turn
  readonly blocks: readonly WireBlock[]
}

/**
 * The first message must be a user message. Chats that start with a greeting by the assistant have none, nor do those
 * with only system text so far.
 */
const openingText = '(The conversation begins with the assistant.)'

export function renderMessages(turns: readonly Turn[], context: HistoryContext): WireMessage[] {
  const rendered = turns.map((turn) => ({ turn, blocks: renderTurn(turn, context) }))
  moveMarks(rendered.flatMap(({ blocks }) => blocks))
  const list = joinTurns(
    rendered
      .map(({ turn, blocks }) => ({ turn, blocks: blocks.filter((block) => !isBlank(block)) }))
      .filter(({ blocks }) => blocks.length > 0),
    context,
  )
  if (list.length === 0 && !context.isInstructed) {
    refuseAt(context.pointer, `\`${paramOf(context.pointer)}\` has no content: at least one user message is needed.`)
  }
  if (list.length > 0 && list[0]?.role !== 'assistant') return list
  context.warnings.add('opening_added', turnPointer(turns[0]))
  return [{ role: 'user', blocks: [textBlock(openingText)] }, ...list]
}

/** Joins turns of one role, and holds back system messages until they are legal. */
function joinTurns(turns: readonly RenderedTurn[], { rules, warnings }: HistoryContext): WireMessage[] {
  const list: WireMessage[] = []
  let held: RenderedTurn[] = []
  const join = (role: WireMessage['role'], blocks: readonly WireBlock[]): void => {
    const last = list.at(-1)
    if (last?.role === role) for (const block of blocks) last.blocks.push(block)
    else list.push({ role, blocks: [...blocks] })
  }
  const inline = ({ turn, blocks }: RenderedTurn): void => {
    warnings.add('system_inlined', turnPointer(turn))
    join(
      'user',
      blocks.map(({ text, mark }) => textBlock(`<system_message>\n${text}\n</system_message>`, mark)),
    )
  }
  // Before an assistant turn and at the end, held system messages go after the user message, or become text without one.
  const place = (): void => {
    const isLegal = list.at(-1)?.role === 'user'
    for (const each of held) {
      if (isLegal) join('system', each.blocks)
      else inline(each)
    }
    held = []
  }
  for (const each of turns) {
    const { role } = each.turn
    if (role === 'assistant') place()
    if (role !== 'system') join(role, each.blocks)
    else if (rules.midSystem) held.push(each)
    else inline(each)
  }
  place()
  return list.map(({ role, blocks }) => {
    if (role !== 'user') return { role, blocks }
    const results = blocks.filter(({ type }) => type === 'tool_result')
    return { role, blocks: results.concat(blocks.filter(({ type }) => type !== 'tool_result')) }
  })
}

/** A conversation that ends with an assistant message asks the model to continue it. */
export function checkPrefill(messages: readonly WireMessage[], rules: TargetRules, conversation: Conversation): void {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return
  if (rules.prefill === false || conversation.outputFormat?.kind === 'json-schema') {
    refusePrefill(conversation.turns.at(-1))
  }
  const block = last.blocks.at(-1)
  if (block?.text !== undefined) last.blocks.splice(-1, 1, textBlock(block.text.trimEnd(), block.mark))
}

export function writeMessages(messages: readonly WireMessage[]): RawJson {
  return jsonArray(
    messages.map(({ role, blocks }) => jsonObject({ role: `"${role}"`, content: jsonArray(blocks.map(writeBlock)) })),
  )
}

// The blocks of one turn. Blank text is still included, because its cache mark has to move to a neighbour.

function renderTurn(turn: Turn, context: HistoryContext): WireBlock[] {
  const blocks: readonly (UserBlock | AssistantBlock)[] = turn.blocks
  return blocks.flatMap((block) => renderBlock(block, turnPointer(turn), context))
}

function renderBlock(block: UserBlock | AssistantBlock, pointer: string, context: HistoryContext): WireBlock[] {
  switch (block.kind) {
    case 'text':
      return [textBlock(block.text, block.cacheMark)]
    case 'refusal':
      return [textBlock(block.text)]
    case 'image':
      return [renderImage(block, context.rules, pointer)]
    case 'document':
      return [renderDocument(block, context.rules, pointer)]
    case 'tool-result':
      return [renderToolResult(block, pointer, context)]
    case 'tool-call':
      return [renderToolCall(block, pointer, context)]
    case 'thinking': {
      const members = { thinking: jsonString(block.text), signature: jsonString(block.signature ?? '') }
      return [{ ...wireBlock('thinking', members), markable: false }]
    }
    case 'sealed-thinking':
      return [{ ...wireBlock('redacted_thinking', { data: jsonString(block.data) }), markable: false }]
  }
}

/** Marks inside apply to the whole result. */
function renderToolResult(result: ToolResultBlock, pointer: string, context: HistoryContext): WireBlock {
  const content = result.content
    .flatMap((block) => renderBlock(block, pointer, context))
    .filter((block) => !isBlank(block))
  const mark = result.cacheMark ?? result.content.findLast(({ cacheMark }) => cacheMark)?.cacheMark
  for (const block of content) block.mark = undefined
  // An error without text is refused.
  if (content.length === 0 && result.isError) content.push(textBlock('[tool error]'))
  const [only] = content
  const text = content.length === 1 ? only?.text : undefined
  const members = {
    tool_use_id: jsonString(result.callId),
    content: text === undefined ? filledArray(content.map(writeBlock)) : jsonString(text),
    is_error: result.isError ? 'true' : undefined,
  }
  return wireBlock('tool_result', members, mark)
}

function renderToolCall(call: ToolCallBlock, pointer: string, context: HistoryContext): WireBlock {
  const { warnings, names, argumentNames } = context
  const name = names.sent(call.name)
  const input = argumentNames.inCall(name, callInput(call, pointer, warnings))
  return wireBlock('tool_use', { id: jsonString(call.id), name: jsonString(name), input }, call.cacheMark)
}

// System text: one block per block of the caller's, because joining them would move cache marks.

/** Emulates the output format "any JSON object", for which the provider has no setting. */
const jsonInstruction =
  'Answer with a single JSON object and nothing else: no text before or after it, and no code fence around it.'

export function renderSystem(conversation: Conversation, warnings: WarningList): WireBlock[] {
  const blocks = conversation.system.map(({ text, cacheMark }) => textBlock(text, cacheMark))
  if (conversation.outputFormat?.kind === 'json-object') {
    warnings.add('json_object_emulated', pointerTo(conversation, 'outputFormat'))
    blocks.push(textBlock(jsonInstruction))
  }
  moveMarks(blocks)
  return blocks.filter((block) => !isBlank(block))
}

// Images and documents. The media type is detected from the bytes, because the provider refuses a wrong label.

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

function renderImage(image: ImageBlock, rules: TargetRules, pointer: string): WireBlock {
  const { source, cacheMark } = image
  const mediaType = source.kind === 'data' ? knownMediaType(source.base64, source.mediaType) : undefined
  if (mediaType === 'application/pdf') return renderDocument({ ...image, kind: 'document' }, rules, pointer)
  if (rules.images === false) refuseAt(pointer, 'This model does not take images.')
  refuseMediaUrl(source, rules, pointer)
  if (mediaType !== undefined && !imageTypes.includes(mediaType)) {
    refuseAt(pointer, `An image of type \`${mediaType}\` is not supported; send JPEG, PNG, GIF or WebP.`)
  }
  return wireBlock('image', { source: renderSource(source, mediaType) }, cacheMark)
}

function renderDocument(document: DocumentBlock, rules: TargetRules, pointer: string): WireBlock {
  const { source, title, context, cacheMark } = document
  const rendered = renderDocumentSource(source, rules, pointer)
  // An empty document is refused, like an empty text.
  if (rendered === undefined) return textBlock('', cacheMark)
  const members = { source: rendered, title: jsonString(title || undefined), context: jsonString(context || undefined) }
  return wireBlock('document', members, cacheMark)
}

/** undefined = it is empty. */
function renderDocumentSource(
  source: DocumentBlock['source'],
  rules: TargetRules,
  pointer: string,
): RawJson | undefined {
  if (source.kind === 'text') return renderPlainText(source.text)
  const mediaType = source.kind === 'data' ? knownMediaType(source.base64, source.mediaType) : undefined
  if (source.kind === 'data' && mediaType && /^text\/|^application\/json$/.test(mediaType)) {
    return renderPlainText(Buffer.from(source.base64, 'base64').toString())
  }
  refuseAudio(source, pointer)
  if (rules.documents === false) refuseAt(pointer, 'This model does not take documents.')
  refuseMediaUrl(source, rules, pointer)
  if (mediaType !== undefined && mediaType !== 'application/pdf') {
    refuseAt(pointer, `A document of type \`${mediaType}\` is not supported; send PDF or plain text.`)
  }
  return renderSource(source, mediaType)
}

function renderPlainText(text: string): RawJson | undefined {
  if (text.trim() === '') return undefined
  return jsonObject({ type: '"text"', media_type: '"text/plain"', data: jsonString(text) })
}

function renderSource(source: MediaSource, mediaType: string | undefined): RawJson {
  if (source.kind === 'url') return jsonObject({ type: '"url"', url: jsonString(source.url) })
  return jsonObject({
    type: '"base64"',
    media_type: jsonString(mediaType ?? source.mediaType),
    data: jsonString(source.base64),
  })
}
