// Renders turns as input items. Each item depends only on its own turn and those before it, so a growing conversation
// keeps its prefix.

import type {
  AssistantBlock,
  DocumentBlock,
  ImageBlock,
  RawJson,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
  UserBlock,
} from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import { refuseAt } from '../../request/fields.ts'
import { refuseAudio, refuseMediaUrl } from '../../request/media.ts'
import { type Rendering, reasons } from './context.ts'

type UserTurn = Turn & { readonly role: 'user' }

export function renderMessages(turns: readonly Turn[], rendering: Rendering): RawJson[] {
  const items: RawJson[] = []
  let at = 0
  while (at < turns.length) {
    const turn = turns[at]
    if (turn?.role === 'assistant') {
      items.push(...renderAssistant(turn.blocks, rendering))
      at += 1
      continue
    }
    const next = turns.findIndex((later, i) => i > at && later.role === 'assistant')
    const end = next === -1 ? turns.length : next
    items.push(...renderOthers(turns.slice(at, end), rendering))
    at = end
  }
  return items
}

/** Everything up to the next assistant turn: first all results, then the rest, in order. */
function renderOthers(run: readonly Turn[], rendering: Rendering): RawJson[] {
  const items: RawJson[] = []
  const media: RawJson[] = []
  let lastResult: Turn | undefined
  for (const turn of run) {
    for (const block of turn.blocks) {
      if (block.kind !== 'tool-result') continue
      const rendered = renderToolResult(block, rendering, turnPlace(turn))
      items.push(rendered.item)
      media.push(...rendered.media)
      lastResult = turn
    }
  }
  for (const turn of run) {
    if (turn.role === 'system') items.push(...renderSystemTurn(turn, rendering))
    // Media go with the turn of the last result, which later turns cannot change.
    else if (turn.role === 'user') items.push(...renderUser(turn, turn === lastResult ? media : [], rendering))
  }
  return items
}

function renderUser(turn: UserTurn, media: readonly RawJson[], rendering: Rendering): RawJson[] {
  const said = turn.blocks.flatMap((block: UserBlock) => (block.kind === 'tool-result' ? [] : [block])).filter(isFilled)
  if (said.length === 0 && media.length === 0) return []
  const place = turnPlace(turn)
  if (media.length === 0) return [message('user', renderContent(said, rendering, place))]
  return [message('user', jsonArray([...media, ...said.flatMap((block) => renderParts(block, rendering, place))]))]
}

/** System text as an input message; none if it is empty. */
export function renderSystem(blocks: readonly TextBlock[], rendering: Rendering): RawJson[] {
  const text = joinedText(blocks)
  if (text === '') return []
  const { rules, marks } = rendering
  const content = marks.inUse ? renderContent(blocks.filter(isFilled), rendering, '') : jsonString(text)
  return [message(rules.systemRole ?? 'developer', content)]
}

/** Where a host accepts system messages only at the front, a later one stays in place as tagged user text. */
function renderSystemTurn(turn: Turn & { readonly role: 'system' }, rendering: Rendering): RawJson[] {
  if (rendering.rules.midSystem !== false) return renderSystem(turn.blocks, rendering)
  const text = joinedText(turn.blocks)
  if (text === '') return []
  rendering.warnings.add('system_inlined', turnPlace(turn))
  return [message('user', jsonString(`<system>\n${text}\n</system>`))]
}

export function joinedText(blocks: readonly TextBlock[]): string {
  return blocks
    .map(({ text }) => text)
    .filter((text) => text !== '')
    .join('\n\n')
}

function turnPlace({ place }: Turn): string {
  return place ?? '/messages'
}

function message(role: string, content: RawJson): RawJson {
  return jsonObject([
    ['role', jsonString(role)],
    ['content', content],
  ])
}

// Assistant turns: text, calls and reasoning as items, in order. Reasoning is sent back encrypted or not at all, never
// as visible text.

/** Expects the blocks that restoreThinking returned. */
export function renderAssistant(blocks: readonly AssistantBlock[], rendering: Rendering): RawJson[] {
  // The provider's label cannot be returned by callers, so derive it from the turn's content.
  const phase = blocks.some(({ kind }) => kind === 'tool-call') ? 'commentary' : 'final_answer'
  const items: RawJson[] = []
  let said = ''
  const flush = () => {
    if (said !== '') items.push(renderSaid(said, phase, rendering))
    said = ''
  }
  for (const block of blocks) {
    // The dialect has refusals only in messages with a provider id.
    if (block.kind === 'text' || block.kind === 'refusal') {
      said += block.text
      continue
    }
    flush()
    if (block.kind === 'tool-call') items.push(renderCall(block, rendering))
    else if (block.kind === 'thinking' && block.signature !== undefined) items.push(block.signature)
  }
  flush()
  return items
}

/** Older models ignore the phase; hosts of other models may not know the member. */
function renderSaid(text: string, phase: string, { rules }: Rendering): RawJson {
  return jsonObject([
    ['role', '"assistant"'],
    ['content', jsonString(text)],
    ['phase', reasons(rules) ? jsonString(phase) : undefined],
  ])
}

function renderCall(call: ToolCallBlock, { names, customCalls }: Rendering): RawJson {
  const isCustom = customCalls.has(call.id)
  return jsonObject([
    ['type', isCustom ? '"custom_tool_call"' : '"function_call"'],
    ['call_id', jsonString(call.id)],
    ['name', jsonString(names.sent(call.name))],
    isCustom ? ['input', jsonString(call.arguments)] : ['arguments', jsonString(argumentText(call))],
  ])
}

/** As the model wrote it, except that not every host can parse empty arguments. */
function argumentText(call: ToolCallBlock): string {
  if (call.custom) return jsonObject([['input', jsonString(call.arguments)]])
  return call.arguments.trim() === '' ? '{}' : call.arguments
}

// Tool results as call outputs: a string if it is all text, a list of parts if it contains media. For hosts that accept
// only text, media are replaced by a stub and returned, to be placed in a user message.

/** The dialect has no field for a failed call. */
const errorMark = '[tool error] '

export interface RenderedResult {
  readonly item: RawJson
  /** Parts for the user message, starting with the call they belong to. */
  readonly media: readonly RawJson[]
}

export function renderToolResult(result: ToolResultBlock, rendering: Rendering, place: string): RenderedResult {
  const { rules, marks, customCalls } = rendering
  const media = result.content.filter((block) => textIn(block) === undefined)
  const isHoisted = media.length > 0 && rules.mediaInToolResults === false
  const isParts = !isHoisted && (media.length > 0 || marks.inUse)
  const parts = isParts
    ? resultParts(result, rendering, place)
    : isHoisted && marks.inUse
      ? [stubPart(result, rendering)]
      : []
  const item = jsonObject([
    ['type', customCalls.has(result.callId) ? '"custom_tool_call_output"' : '"function_call_output"'],
    ['call_id', jsonString(result.callId)],
    ['output', parts.length > 0 ? jsonArray(parts) : jsonString(stringOf(result))],
  ])
  if (!isHoisted) return { item, media: [] }
  const label = textPart(`From the result of tool call ${result.callId}:`)
  return { item, media: [label, ...media.flatMap((block) => renderParts(block, rendering, place))] }
}

function resultParts(result: ToolResultBlock, rendering: Rendering, place: string): RawJson[] {
  const filled = result.content.filter(isFilled)
  const failed = result.isError && filled[0]?.kind !== 'text' ? [textPart(errorMark.trim())] : []
  const parts = filled.flatMap((block, i) => {
    const saysFailed = result.isError && i === 0 && block.kind === 'text'
    const shown = saysFailed ? { ...block, text: errorMark + block.text } : block
    return renderParts(shown, rendering, place, i === filled.length - 1 ? [block, result] : [block])
  })
  return [...failed, ...parts]
}

/** The text of a result whose media are placed elsewhere, with all its marks. */
function stubPart(result: ToolResultBlock, { marks }: Rendering): RawJson {
  const texts = result.content.filter((block) => textIn(block) !== undefined)
  return jsonObject([
    ['type', '"input_text"'],
    ['text', jsonString(stringOf(result))],
    marks.memberOf(result, ...texts),
  ])
}

function stringOf({ isError, content }: ToolResultBlock): string {
  return (isError ? errorMark : '') + content.map((block) => textIn(block) ?? `[${block.kind}]`).join('\n')
}

/** undefined for media. */
function textIn(block: ContentBlock): string | undefined {
  if (block.kind === 'text') return block.text
  return block.kind === 'document' && block.source.kind === 'text' ? documentText(block, block.source.text) : undefined
}

// Content blocks as input parts, in any position.

export type ContentBlock = TextBlock | ImageBlock | DocumentBlock
type Members = readonly (readonly [string, RawJson | undefined])[]

/** A string for a single unmarked text, which every host accepts; parts otherwise. */
export function renderContent(blocks: readonly ContentBlock[], rendering: Rendering, place: string): RawJson {
  const [only, ...more] = blocks
  if (only?.kind === 'text' && more.length === 0 && !rendering.marks.inUse) return jsonString(only.text)
  return jsonArray(blocks.flatMap((block) => renderParts(block, rendering, place)))
}

/** Empty text is refused. */
export function isFilled(block: ContentBlock): boolean {
  return block.kind !== 'text' || block.text !== ''
}

/** `ended`: everything that ends with this block and may be marked, such as the result whose last part it is. */
export function renderParts(
  block: ContentBlock,
  rendering: Rendering,
  place: string,
  ended: readonly (ContentBlock | ToolResultBlock)[] = [block],
): RawJson[] {
  const parts = blockParts(block, rendering, place)
  // A mark covers the whole block, so it goes on its last part.
  const mark = rendering.marks.memberOf(...ended)
  return parts.map((part, i) => jsonObject(i === parts.length - 1 ? [...part, mark] : part))
}

function blockParts(block: ContentBlock, rendering: Rendering, place: string): Members[] {
  if (block.kind === 'text') return [textMembers(block.text)]
  if (block.kind === 'image') return [imageMembers(block, rendering, place)]
  if (block.source.kind === 'text') return [textMembers(documentText(block, block.source.text))]
  return documentMembers(block, block.source, rendering, place)
}

export function textPart(text: string): RawJson {
  return jsonObject(textMembers(text))
}

function textMembers(text: string): Members {
  return [
    ['type', '"input_text"'],
    ['text', jsonString(text)],
  ]
}

function imageMembers({ source }: ImageBlock, { rules }: Rendering, place: string): Members {
  if (rules.images === false) return refuseAt(place, 'This model does not take images.')
  refuseMediaUrl(source, rules, place)
  return [
    ['type', '"input_image"'],
    ['image_url', jsonString(source.kind === 'url' ? source.url : dataUrl(source))],
    // Required by the dialect.
    ['detail', '"auto"'],
  ]
}

function documentMembers(
  { title, context }: DocumentBlock,
  source: ImageBlock['source'],
  { rules }: Rendering,
  place: string,
): Members[] {
  refuseAudio(source, place)
  if (rules.documents === false) {
    return refuseAt(place, 'This model does not take documents; send their text instead.')
  }
  refuseMediaUrl(source, rules, place)
  const type = ['type', '"input_file"'] as const
  if (source.kind === 'data') {
    const file: Members = [
      type,
      ['filename', jsonString(title ?? 'document.pdf')],
      ['file_data', jsonString(dataUrl(source))],
    ]
    return context === undefined ? [file] : [file, textMembers(context)]
  }
  // A file by URL has no name.
  const about = [title, context].filter((line) => line !== undefined).join('\n\n')
  const file: Members = [type, ['file_url', jsonString(source.url)]]
  return about === '' ? [file] : [file, textMembers(about)]
}

function dataUrl({ mediaType, base64 }: { readonly mediaType: string; readonly base64: string }): string {
  return `data:${mediaType};base64,${base64}`
}

/** A plain-text document as prompt text: title, text and context. */
export function documentText({ title, context }: DocumentBlock, text: string): string {
  return [title, text, context].filter((line) => line !== undefined).join('\n\n')
}
