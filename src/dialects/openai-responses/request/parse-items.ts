// Parses input items into system blocks and turns. Adjacent items of the assistant are one turn.

import type {
  AssistantBlock,
  DocumentBlock,
  ImageBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../canonical/conversation.ts'
import type { ContentTags } from '../../canonical/translation.ts'
import { breakpointOf } from '../../request/cache-marks.ts'
import { type ParseContext, type RequestFields, shownWord, textBlocks } from '../../request/fields.ts'
import { isWebUrl, mediaByContent, mediaByUrl, readDataUrl, readMediaUrl } from '../../request/media.ts'
import { forgedContent, readEncrypted } from '../encrypted-content.ts'
import { summaryTexts } from '../reasoning.ts'
import { flatName } from './parse-tools.ts'

interface ParsedItems {
  readonly system: readonly TextBlock[]
  readonly turns: readonly Turn[]
}

/** `own`: kept by the caller for itself, such as Codex's ids. */
const own = ['id', 'type', 'status', 'internal_chat_message_metadata_passthrough']
const membersOf: Readonly<Record<string, ReadonlySet<string>>> = {
  message: new Set([...own, 'role', 'content', 'phase']),
  reasoning: new Set([...own, 'summary', 'content', 'encrypted_content']),
  function_call: new Set([...own, 'call_id', 'name', 'namespace', 'arguments']),
  function_call_output: new Set([...own, 'call_id', 'output']),
  custom_tool_call: new Set([...own, 'call_id', 'name', 'namespace', 'input']),
  custom_tool_call_output: new Set([...own, 'call_id', 'name', 'output']),
  local_shell_call: new Set([...own, 'call_id', 'action']),
  local_shell_call_output: new Set([...own, 'call_id', 'output']),
  // Read with the tools.
  additional_tools: new Set([...own, 'role', 'tools']),
}

export interface ItemContext extends ParseContext {
  readonly contentTags: ContentTags | undefined
}

export function parseItems(body: RequestFields, context: ItemContext): ParsedItems {
  const system = textBlocks(body.optionalText('instructions') ?? '')
  const input = body.textOrObjects('input')
  if (typeof input === 'string') {
    return { system, turns: [{ role: 'user', blocks: [{ kind: 'text', text: input }], place: '/input' }] }
  }
  const turns: Turn[] = []
  for (const item of input) {
    const turn = parseItem(item, context)
    const last = turns.at(-1)
    if (!turn) continue
    if (turn.role === 'system' && turns.length === 0) system.push(...turn.blocks)
    else if (turn.role === 'assistant' && last?.role === 'assistant') {
      turns.splice(-1, 1, { ...last, blocks: [...last.blocks, ...turn.blocks] })
    } else turns.push(turn)
  }
  return { system, turns }
}

/** undefined: the item has nothing that can be carried. */
function parseItem(item: RequestFields, context: ItemContext): Turn | undefined {
  const type = item.optionalText('type') ?? 'message'
  const known = Object.hasOwn(membersOf, type) ? membersOf[type] : undefined
  if (known) item.warnUnknown(known, context.warnings)
  const place = item.at
  const assistant = (...blocks: AssistantBlock[]): Turn => ({ role: 'assistant', blocks, place })
  switch (type) {
    case 'message':
      return parseMessage(item, context)
    case 'reasoning':
      return assistant(...parseReasoning(item, context))
    case 'function_call':
      return assistant(parseCall(item, item.text('arguments'), false))
    case 'custom_tool_call':
      return assistant(parseCall(item, item.text('input'), true))
    case 'local_shell_call':
      return assistant(parseShellCall(item, context))
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'local_shell_call_output':
      return { role: 'user', blocks: [parseOutput(item, context)], place }
    case 'additional_tools':
      return undefined
    case 'item_reference':
      return item.refuse('type', 'Items are not stored here; send the item itself instead of a reference.')
    default:
      return dropItem(item, type, context)
  }
}

/** Items of tools that a provider runs, and newer ones: only their provider can use them. */
function dropItem(item: RequestFields, type: string, { warnings }: ParseContext): undefined {
  if (!/^[a-z_]{1,60}$/.test(type)) item.refuse('type', `An item of type ${shownWord(type)} does not exist.`)
  warnings.add('item_dropped', item.at)
}

function parseMessage(item: RequestFields, context: ParseContext): Turn {
  const role = item.text('role')
  const place = item.at
  switch (role) {
    case 'system':
    case 'developer':
      return { role: 'system', blocks: parseSystem(item, context), place }
    case 'user':
      return { role: 'user', blocks: parseContent(item, 'content', context), place }
    case 'assistant':
      return { role: 'assistant', blocks: parseSaid(item, context), place }
    default:
      return item.refuse('role', `The role ${shownWord(role)} does not exist.`)
  }
}

function parseSystem(item: RequestFields, context: ParseContext): TextBlock[] {
  const content = item.textOrObjects('content')
  if (typeof content === 'string') return textBlocks(content)
  return content.map((part) =>
    /^(input_)?text$/.test(part.text('type')) ? parseText(part, context) : refusePart(part, 'a developer message'),
  )
}

function parseSaid(item: RequestFields, context: ParseContext): AssistantBlock[] {
  const content = item.textOrObjects('content')
  if (typeof content === 'string') return textBlocks(content)
  return content.flatMap((part): AssistantBlock[] => {
    const type = part.text('type')
    if (type === 'refusal') return [{ kind: 'refusal', text: part.text('refusal') }]
    // Some clients write a returned answer as input.
    if (type !== 'output_text' && type !== 'input_text' && type !== 'text') {
      return refusePart(part, 'an assistant message')
    }
    const block = parseText(part, context)
    return block.text === '' && !block.cacheMark ? [] : [block]
  })
}

type ContentBlock = TextBlock | ImageBlock | DocumentBlock

function parseContent(item: RequestFields, name: string, context: ParseContext): ContentBlock[] {
  const content = item.textOrObjects(name)
  if (typeof content === 'string') return textBlocks(content)
  return content.map((part) => parsePart(part, context))
}

/** Annotations and log probabilities are output only, but clients send the whole part back. */
const partMembers: ReadonlySet<string> = new Set([
  ...['type', 'text', 'image_url', 'detail', 'file_id', 'filename', 'file_url', 'file_data', 'input_audio'],
  ...['annotations', 'logprobs', 'cache_control', 'prompt_cache_breakpoint'],
])

function parsePart(part: RequestFields, context: ParseContext): ContentBlock {
  switch (part.text('type')) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return parseText(part, context)
    case 'input_image':
      return parseMedia(parseImage, part, context)
    case 'input_file':
      return parseMedia(parseFile, part, context)
    case 'input_audio':
      return parseMedia(parseAudio, part, context)
    default:
      return refusePart(part, 'this place')
  }
}

function parseText(part: RequestFields, context: ParseContext): TextBlock {
  part.warnUnknown(partMembers, context.warnings)
  return { kind: 'text', text: part.text('text'), ...breakpointOf(part, context) }
}

function parseMedia(
  parse: (part: RequestFields, context: ParseContext) => ImageBlock | DocumentBlock,
  part: RequestFields,
  context: ParseContext,
): ImageBlock | DocumentBlock {
  part.warnUnknown(partMembers, context.warnings)
  return { ...parse(part, context), ...breakpointOf(part, context) }
}

const byId = 'Files by id are kept by one provider and not available here; send the data instead.'

function parseImage(part: RequestFields, { warnings }: ParseContext): ImageBlock | DocumentBlock {
  if (part.optionalText('file_id') !== undefined) part.refuse('file_id', byId)
  if ((part.optionalText('detail') ?? 'auto') !== 'auto') warnings.add('detail_dropped', part.pointer('detail'))
  return mediaByUrl(part.text('image_url'), part.pointer('image_url'))
}

function parseFile(part: RequestFields): ImageBlock | DocumentBlock {
  if (part.optionalText('file_id') !== undefined) part.refuse('file_id', byId)
  const title = part.optionalText('filename')
  const url = part.optionalText('file_url')
  if (url !== undefined) return { kind: 'document', source: readMediaUrl(url, part.pointer('file_url')), title }
  const data = part.text('file_data')
  const pointer = part.pointer('file_data')
  if (isWebUrl(data)) return { kind: 'document', source: readMediaUrl(data, pointer), title }
  const { mediaType, base64 } = readDataUrl(data) ?? { mediaType: 'application/octet-stream', base64: data }
  if (mediaType.startsWith('text/') || mediaType === 'application/json') {
    return { kind: 'document', source: { kind: 'text', text: Buffer.from(base64, 'base64').toString() }, title }
  }
  const medium = mediaByContent(base64, mediaType, pointer)
  return medium.kind === 'document' ? { ...medium, title } : medium
}

const audioMembers: ReadonlySet<string> = new Set(['format', 'data'])

function parseAudio(part: RequestFields, { warnings }: ParseContext): DocumentBlock {
  const audio = part.optionalObject('input_audio') ?? part.missing('input_audio')
  audio.warnUnknown(audioMembers, warnings)
  const format = audio.optionalWord('format', ['wav', 'mp3']) ?? audio.missing('format')
  const data = audio.text('data')
  const base64 = readDataUrl(data)?.base64 ?? data
  return { kind: 'document', source: { kind: 'data', mediaType: `audio/${format}`, base64 } }
}

function refusePart(part: RequestFields, where: string): never {
  return part.refuse('type', `A content part of type ${shownWord(part.text('type'))} is not supported in ${where}.`)
}

/** The encrypted reasoning of another gateway or provider cannot be opened; the readable part may still help. */
function parseReasoning(item: RequestFields, { warnings, contentTags }: ItemContext): AssistantBlock[] {
  const summary = summaryTexts(item.value('summary'))
  const content = item.objects('content').map((part) => part.optionalText('text') ?? '')
  const text = (summary.length > 0 ? summary : content).join('\n\n')
  const encrypted = item.optionalText('encrypted_content')
  const block = encrypted === undefined ? undefined : readEncrypted(encrypted, text, contentTags)
  if (block === 'forged') return item.refuse('encrypted_content', forgedContent)
  if (block) return [block]
  if (encrypted !== undefined) warnings.add('thinking_dropped', item.pointer('encrypted_content'))
  return text === '' ? [] : [{ kind: 'thinking', text, signature: undefined }]
}

function parseCall(item: RequestFields, text: string, custom: boolean): ToolCallBlock {
  const name = item.text('name')
  if (name === '') item.missing('name')
  return {
    kind: 'tool-call',
    id: callId(item),
    name: flatName(item.optionalText('namespace'), name),
    arguments: text,
    custom,
  }
}

function parseShellCall(item: RequestFields, context: ParseContext): ToolCallBlock {
  const action = item.optionalObject('action') ?? item.missing('action')
  return {
    kind: 'tool-call',
    id: callId(item),
    name: 'local_shell',
    arguments: context.rawText(action.at),
    custom: false,
  }
}

function parseOutput(item: RequestFields, context: ParseContext): ToolResultBlock {
  if (item.value('output') === undefined) item.missing('output')
  return {
    kind: 'tool-result',
    callId: callId(item),
    content: parseContent(item, 'output', context),
    isError: false,
  }
}

function callId(item: RequestFields): string {
  const id = item.text('call_id')
  return id === '' ? item.missing('call_id') : id
}
