// Parses messages into turns. Blocks of Anthropic's server-side tools have no equivalent elsewhere and are omitted with
// a warning. What a user sent is never omitted silently.

import type {
  AssistantBlock,
  ContentBlock,
  DocumentBlock,
  MediaBlock,
  MediaSource,
  TextBlock,
  ToolResultBlock,
  Turn,
  UserBlock,
} from '../../canonical/conversation.ts'
import { isRecord, listOf, recordOf, textOf } from '../../canonical/json.ts'
import { markOf } from '../../request/cache-marks.ts'
import { type ParseContext, type RequestFields, shownWord, textBlocks } from '../../request/fields.ts'
import { knownMediaType, readMediaUrl } from '../../request/media.ts'
import { parseToolChange, type ToolChange } from './parse-tools.ts'

interface MessagesContext extends ParseContext {
  /** Filled as messages are parsed. */
  readonly toolChanges: ToolChange[]
}

const spokenMembers = ['role', 'content']
const systemMembers = ['role', 'content', 'clear_at', 'output_config']

/** `leading`: system messages before all others. */
export function parseMessages(messages: readonly RequestFields[], shared: ParseContext) {
  const context: MessagesContext = { ...shared, toolChanges: [] }
  const lastUser = messages.findLastIndex((message) => message.value('role') === 'user')
  const leading: TextBlock[] = []
  const turns: Turn[] = []
  for (const [i, message] of messages.entries()) {
    const role = message.text('role')
    if (role === 'system') {
      const blocks = parseSystemMessage(message, context)
      if (message.value('clear_at') === 'next_user_message' && lastUser > i) continue
      // Lists of any length: spreading them into arguments could exceed the stack.
      if (turns.length === 0) for (const block of blocks) leading.push(block)
      else if (blocks.length > 0) turns.push({ role, blocks, pointer: message.at })
      continue
    }
    if (role !== 'user' && role !== 'assistant') {
      return message.refuse(
        'role',
        `\`messages[${i}].role\` must be user, assistant or system, not ${shownWord(role)}.`,
      )
    }
    message.warnUnknown(spokenMembers, context.warnings)
    if (role === 'user') turns.push({ role, blocks: parseUser(message, context), pointer: message.at })
    else parseAssistant(message, turns, context)
  }
  return { leading, turns, toolChanges: context.toolChanges }
}

function parseUser(message: RequestFields, context: ParseContext): UserBlock[] {
  if (message.value('content') === undefined) message.missing('content')
  return message.blocks('content', (block): readonly UserBlock[] => {
    const parsed = parseContentBlock(block, context)
    if (parsed) return parsed
    const type = block.text('type')
    if (type === 'tool_result') return [parseToolResult(block, context)]
    return block.refuse('type', `A ${shownWord(type)} block in a user message is not available for this model.`)
  })
}

const resultMembers = ['type', 'tool_use_id', 'content', 'is_error', 'cache_control']

function parseToolResult(fields: RequestFields, context: ParseContext): ToolResultBlock {
  fields.warnUnknown(resultMembers, context.warnings)
  return {
    kind: 'tool-result',
    callId: fields.text('tool_use_id'),
    content: fields.blocks('content', (block) => parseContentBlock(block, context) ?? [asJson(block, context)]),
    isError: fields.optionalBoolean('is_error') ?? false,
    ...markOf(fields),
  }
}

/** Unknown blocks, such as references and browser states, are passed as JSON, which the model can read. */
function asJson(block: RequestFields, context: ParseContext): TextBlock {
  return { kind: 'text', text: context.rawText(block.at), ...markOf(block) }
}

function parseSystemMessage(message: RequestFields, context: MessagesContext): TextBlock[] {
  message.warnUnknown(systemMembers, context.warnings)
  const config = message.optionalObject('output_config')
  if (config && config.names.length > 0) context.warnings.add('output_config_dropped', config.at)
  return message.blocks('content', (block): TextBlock[] => {
    if (block.text('type') !== 'text') {
      context.toolChanges.push(...parseToolChange(block, context))
      return []
    }
    warnBlockMembers(block, context)
    return [parseText(block, context)]
  })
}

// Assistant messages. Text, calls and reasoning keep their order. Blocks of Anthropic's own tools are omitted with a
// warning, or described in text if nothing else would be left.

/** Adds to the turns so far, or replaces them with a summary. */
function parseAssistant(message: RequestFields, turns: Turn[], context: MessagesContext): void {
  const add = (blocks: readonly AssistantBlock[]) => turns.push({ role: 'assistant', blocks, pointer: message.at })
  const content = message.textOrObjects('content')
  if (typeof content === 'string') return void add(textBlocks(content))
  let blocks: AssistantBlock[] = []
  let dropped: AssistantBlock[] = []
  for (const block of content) {
    const type = block.text('type')
    if (type === 'compaction') {
      turns.splice(0, turns.length, ...summaryTurn(block, context))
      blocks = []
      dropped = []
      for (const change of block.objects('tool_changes')) context.toolChanges.push(...parseToolChange(change, context))
      continue
    }
    const parsed = parseBlock(block, type, context)
    if (parsed) blocks.push(parsed)
    else dropped.push({ kind: 'text', text: inWords(block, type, context) })
  }
  const kept = blocks.length > 0 ? blocks : dropped
  if (kept.length > 0) add(kept)
}

/** undefined = omitted with a warning. */
function parseBlock(block: RequestFields, type: string, context: ParseContext): AssistantBlock | undefined {
  switch (type) {
    case 'text':
      return parseText(block, context)
    case 'tool_use':
      return parseToolUse(block, context)
    case 'thinking':
      return { kind: 'thinking', text: block.text('thinking'), signature: block.optionalText('signature') || undefined }
    case 'redacted_thinking':
      return { kind: 'sealed-thinking', data: block.text('data') }
    case 'image':
    case 'document':
    case 'container_upload':
      return block.refuse('type', `A ${shownWord(type)} block in an assistant message is not available for this model.`)
    default:
      context.warnings.add(/^\w{1,64}$/.test(type) ? `${type}_dropped` : 'block_dropped', block.at)
      return undefined
  }
}

function parseToolUse(block: RequestFields, context: ParseContext): AssistantBlock {
  const caller = block.optionalObject('caller')
  const callerType = caller?.text('type')
  if (caller && callerType !== 'direct') {
    caller.refuse('type', `Tool calls made by ${shownWord(callerType)} can only be continued at Anthropic.`)
  }
  const [id, name, input] = [block.text('id'), block.text('name'), block.value('input')]
  // Some clients send the object's text, or an empty string for a call without arguments.
  const written = typeof input === 'string' ? input : inputText(block, context)
  return { kind: 'tool-call', id, name, arguments: written, custom: false, ...markOf(block) }
}

function summaryTurn(block: RequestFields, context: ParseContext): Turn[] {
  const summary = block.optionalText('content')
  if (summary === undefined || summary.trim() === '') {
    context.warnings.add('compaction_dropped', block.at)
    return []
  }
  const text = `Summary of the conversation so far:\n\n${summary}`
  return [{ role: 'user', blocks: [{ kind: 'text', text, ...markOf(block) }], pointer: block.at }]
}

function inputText(block: RequestFields, context: ParseContext): string {
  return block.value('input') === undefined ? '{}' : context.rawText(block.pointer('input'))
}

function inWords(block: RequestFields, type: string, context: ParseContext): string {
  const name = block.value('name')
  if (type.endsWith('_tool_use') && typeof name === 'string') return `[${name} ${inputText(block, context)}]`
  const titles = listOf(block.value('content')).map((result) => {
    const { title, url } = recordOf(result)
    return typeof url === 'string' ? `\n${textOf(title)} ${url}` : ''
  })
  return `[${type}]${titles.join('')}`
}

// Content blocks of user messages and tool results: text, media, search results. Blocks without a canonical equivalent
// become text.

const blockMembers = [
  ...['type', 'text', 'source', 'title', 'context', 'content', 'citations', 'transformations', 'cache_control'],
]
const sourceMembers = ['type', 'data', 'media_type', 'url', 'file_id', 'content']

/** Warns about members that have no place in the canonical form. */
export function warnBlockMembers(fields: RequestFields, { warnings }: ParseContext): void {
  if (!contentTypes.has(fields.optionalText('type') ?? 'text')) return
  fields.warnUnknown(blockMembers, warnings)
  if (isRecord(fields.value('source'))) fields.optionalObject('source')?.warnUnknown(sourceMembers, warnings)
}

const contentTypes: ReadonlySet<string> = new Set(['text', 'image', 'document', 'search_result'])

/** undefined = not a content type. */
export function parseContentBlock(fields: RequestFields, context: ParseContext): ContentBlock[] | undefined {
  warnBlockMembers(fields, context)
  switch (fields.text('type')) {
    case 'text':
      return [parseText(fields, context)]
    case 'image':
      return [parseImage(fields, context)]
    case 'document':
      return parseDocument(fields, context)
    case 'search_result':
      return [parseSearchResult(fields, context)]
    default:
      return undefined
  }
}

export function parseText(fields: RequestFields, { warnings }: ParseContext): TextBlock {
  if ((fields.optionalList('citations') ?? []).length > 0)
    warnings.add('citations_dropped', fields.pointer('citations'))
  return { kind: 'text', text: fields.text('text'), ...markOf(fields) }
}

/** The content decides: a PDF sent as an image is a document. */
function parseImage(fields: RequestFields, { warnings }: ParseContext): MediaBlock {
  if (fields.value('transformations') !== undefined) {
    warnings.add('transformations_dropped', fields.pointer('transformations'))
  }
  const source = fields.requiredObject('source')
  const media = parseMedia(source)
  if (media.kind === 'data' && media.mediaType === 'application/pdf') {
    return { kind: 'document', source: media, ...markOf(fields) }
  }
  if (media.kind === 'data' && !imageTypes.includes(media.mediaType)) {
    source.refuse('media_type', 'Images of this type are not supported; send JPEG, PNG, GIF or WebP.')
  }
  return { kind: 'image', source: media, ...markOf(fields) }
}

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

function parseMedia(source: RequestFields): MediaSource {
  const type = source.text('type')
  if (type === 'base64') {
    const base64 = source.text('data')
    return { kind: 'data', mediaType: knownMediaType(base64, source.text('media_type')), base64 }
  }
  if (type === 'url') return readMediaUrl(source.text('url'), source.pointer('url'))
  if (type === 'file') {
    return source.refuse(
      'file_id',
      'Files by id are kept by Anthropic and not available for this model; send the data.',
    )
  }
  return source.refuse('type', `The source type ${shownWord(type)} is not supported for this model.`)
}

function parseDocument(fields: RequestFields, context: ParseContext): ContentBlock[] {
  warnCitations(fields, context)
  const source = fields.requiredObject('source')
  const named = { title: fields.optionalText('title'), context: fields.optionalText('context') }
  const type = source.text('type')
  const textName = type === 'text' ? 'data' : typeof source.value('content') === 'string' ? 'content' : undefined
  if (type !== 'content' || textName) {
    const of = textName ? { kind: 'text' as const, text: source.text(textName) } : parseMedia(source)
    return [{ kind: 'document', source: of, ...named, ...markOf(fields) }]
  }
  const parts = namedParts(
    source.objects('content').map((part) => parsePart(part, context)),
    named,
  )
  const last = parts.at(-1)
  return last ? [...parts.slice(0, -1), { ...last, ...markOf(fields) }] : []
}

/** A document made of blocks becomes its texts and images, in order. */
function parsePart(part: RequestFields, context: ParseContext): MediaBlock {
  const type = part.text('type')
  warnBlockMembers(part, context)
  if (type === 'image') return parseImage(part, context)
  if (type === 'text') return { kind: 'document', source: { kind: 'text', text: part.text('text') }, ...markOf(part) }
  return part.refuse('type', `A document cannot hold a ${shownWord(type)} block.`)
}

/** Title and context apply to the whole document: the title comes before the first part, the context after the last. */
function namedParts(
  parts: readonly MediaBlock[],
  { title, context }: Pick<DocumentBlock, 'title' | 'context'>,
): ContentBlock[] {
  const named: ContentBlock[] = [...parts]
  const [first, last] = [parts[0], parts.at(-1)]
  if (context && last?.kind === 'document') named.splice(-1, 1, { ...last, context })
  else if (context && last) named.push({ kind: 'text', text: context })
  if (title && first?.kind === 'document') named[0] = { ...(named[0] as DocumentBlock), title }
  else if (title && first) named.unshift({ kind: 'text', text: title })
  return named
}

function warnCitations(fields: RequestFields, { warnings }: ParseContext): void {
  if (fields.optionalObject('citations')?.optionalBoolean('enabled')) {
    warnings.add('citations_dropped', fields.pointer('citations'))
  }
}

function parseSearchResult(fields: RequestFields, context: ParseContext): TextBlock {
  warnCitations(fields, context)
  const parts = fields.objects('content')
  for (const part of parts) warnBlockMembers(part, context)
  const body = parts.map((part) => part.text('text'))
  const text = [fields.text('title'), fields.text('source'), '', ...body].join('\n')
  // The parts become one text, so a mark inside applies to all of it.
  const marks = [...parts, fields].map(markOf).filter(({ cacheMark }) => cacheMark)
  return { kind: 'text', text, ...marks.at(-1) }
}
