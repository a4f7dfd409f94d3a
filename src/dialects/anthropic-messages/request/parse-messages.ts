// Parses messages into turns. Blocks of Anthropic's server-side tools have no equivalent elsewhere and are omitted with
// a warning. What a user sent is never omitted silently.

import type {
  AssistantBlock,
  DocumentBlock,
  ImageBlock,
  MediaSource,
  TextBlock,
  ToolResultBlock,
  Turn,
  UserBlock,
} from '../../canonical/conversation.ts'
import { isRecord } from '../../canonical/json.ts'
import { type ParseContext, type RequestFields, shownWord, textBlocks } from '../../request/fields.ts'
import { knownMediaType, readMediaUrl } from '../../request/media.ts'
import { markOf } from './context.ts'
import { parseToolChange, type ToolChange } from './parse-tools.ts'

export interface ParsedMessages {
  /** System messages before all others. */
  readonly leading: readonly TextBlock[]
  readonly turns: readonly Turn[]
  readonly toolChanges: readonly ToolChange[]
}

const spokenMembers: ReadonlySet<string> = new Set(['role', 'content'])
const systemMembers: ReadonlySet<string> = new Set(['role', 'content', 'clear_at', 'output_config'])

export function parseMessages(messages: readonly RequestFields[], context: ParseContext): ParsedMessages {
  const roles = messages.map((message) => message.text('role'))
  const lastUser = roles.lastIndexOf('user')
  let leading: TextBlock[] = []
  let toolChanges: ToolChange[] = []
  let turns: Turn[] = []
  for (const [i, message] of messages.entries()) {
    if (roles[i] === 'user') {
      message.warnUnknown(spokenMembers, context.warnings)
      turns.push({ role: 'user', blocks: parseUser(message, context), place: message.at })
    } else if (roles[i] === 'assistant') {
      message.warnUnknown(spokenMembers, context.warnings)
      const parsed = parseAssistant(message, context)
      if (parsed.toolChanges.length > 0) toolChanges = toolChanges.concat(parsed.toolChanges)
      // Everything before a compaction is replaced by its summary.
      if (parsed.startsAnew) turns = []
      turns.push(...parsed.turns)
    } else if (roles[i] === 'system') {
      const system = parseSystemMessage(message, context)
      if (system.toolChanges.length > 0) toolChanges = toolChanges.concat(system.toolChanges)
      if (message.value('clear_at') === 'next_user_message' && lastUser > i) continue
      if (turns.length === 0) leading = leading.concat(system.blocks)
      else if (system.blocks.length > 0) turns.push({ role: 'system', blocks: system.blocks, place: message.at })
    } else {
      message.refuse('role', `\`messages[${i}].role\` must be user, assistant or system, not ${shownWord(roles[i])}.`)
    }
  }
  return { leading, turns, toolChanges }
}

function parseUser(message: RequestFields, context: ParseContext): UserBlock[] {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') {
    if (message.value('content') === undefined) message.missing('content')
    return textBlocks(content)
  }
  return content.flatMap((block): UserBlock[] => {
    const parsed = parseContentBlock(block, context)
    if (parsed) return parsed
    const type = block.text('type')
    if (type === 'tool_result') return [parseToolResult(block, context)]
    return block.refuse('type', `A ${shownWord(type)} block in a user message is not available for this model.`)
  })
}

const resultMembers: ReadonlySet<string> = new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control'])

function parseToolResult(fields: RequestFields, context: ParseContext): ToolResultBlock {
  fields.warnUnknown(resultMembers, context.warnings)
  const content = fields.textOrObjects('content')
  return {
    kind: 'tool-result',
    callId: fields.text('tool_use_id'),
    content:
      typeof content === 'string'
        ? textBlocks(content)
        : content.flatMap((block) => parseContentBlock(block, context) ?? [asJson(block, context)]),
    isError: fields.optionalBoolean('is_error') ?? false,
    ...markOf(fields),
  }
}

/** Unknown blocks, such as references and browser states, are passed as JSON, which the model can read. */
function asJson(block: RequestFields, context: ParseContext): TextBlock {
  return { kind: 'text', text: context.rawText(block.at), ...markOf(block) }
}

function parseSystemMessage(
  message: RequestFields,
  context: ParseContext,
): { blocks: TextBlock[]; toolChanges: ToolChange[] } {
  message.warnUnknown(systemMembers, context.warnings)
  const config = message.optionalObject('output_config')
  if (config && config.names.length > 0) {
    context.warnings.add('output_config_dropped', message.pointer('output_config'))
  }
  const content = message.textOrObjects('content')
  if (typeof content === 'string') return { blocks: textBlocks(content), toolChanges: [] }
  const blocks: TextBlock[] = []
  const toolChanges: ToolChange[] = []
  for (const block of content) {
    if (block.text('type') === 'text') {
      warnBlockMembers(block, context)
      blocks.push(parseText(block, context))
      continue
    }
    const change = parseToolChange(block, context)
    if (change) toolChanges.push(change)
  }
  return { blocks, toolChanges }
}

// Assistant messages. Text, calls and reasoning keep their order. Blocks of Anthropic's own tools are omitted with a
// warning, or described in text if nothing else would be left.

interface ParsedAssistant {
  readonly turns: readonly Turn[]
  /** It contains a summary that replaces everything before it. */
  readonly startsAnew: boolean
  readonly toolChanges: readonly ToolChange[]
}

function parseAssistant(message: RequestFields, context: ParseContext): ParsedAssistant {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') {
    const turn: Turn = { role: 'assistant', blocks: textBlocks(content), place: message.at }
    return { turns: [turn], startsAnew: false, toolChanges: [] }
  }
  const turns: Turn[] = []
  const toolChanges: ToolChange[] = []
  let startsAnew = false
  let blocks: AssistantBlock[] = []
  let dropped: string[] = []
  for (const block of content) {
    const type = block.text('type')
    if (type === 'compaction') {
      // Only the last summary counts; it replaces everything before it, in this message too.
      turns.length = 0
      blocks = []
      dropped = []
      startsAnew = true
      turns.push(...summaryTurn(block, context))
      toolChanges.push(...block.objects('tool_changes').flatMap((change) => parseToolChange(change, context) ?? []))
      continue
    }
    const parsed = parseBlock(block, type, context)
    if (parsed) blocks.push(parsed)
    else dropped.push(inWords(block, type, context))
  }
  const kept = blocks.length > 0 ? blocks : dropped.map((text): AssistantBlock => ({ kind: 'text', text }))
  if (kept.length > 0) turns.push({ role: 'assistant', blocks: kept, place: message.at })
  return { turns, startsAnew, toolChanges }
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
  const callerType = caller?.text('type') ?? 'direct'
  if (caller && callerType !== 'direct') {
    caller.refuse('type', `Tool calls made by ${shownWord(callerType)} can only be continued at Anthropic.`)
  }
  const input = block.value('input')
  // Some clients send the object's text, or an empty string for a call without arguments.
  const written = typeof input === 'string' ? input : inputText(block, context)
  return {
    kind: 'tool-call',
    id: block.text('id'),
    name: block.text('name'),
    arguments: written,
    custom: false,
    ...markOf(block),
  }
}

function summaryTurn(block: RequestFields, context: ParseContext): Turn[] {
  const summary = block.optionalText('content')
  if (summary === undefined || summary.trim() === '') {
    context.warnings.add('compaction_dropped', block.at)
    return []
  }
  const text = `Summary of the conversation so far:\n\n${summary}`
  return [{ role: 'user', blocks: [{ kind: 'text', text, ...markOf(block) }], place: block.at }]
}

function inputText(block: RequestFields, context: ParseContext): string {
  return block.value('input') === undefined ? '{}' : context.rawText(block.pointer('input'))
}

function inWords(block: RequestFields, type: string, context: ParseContext): string {
  const name = block.value('name')
  if (type.endsWith('_tool_use') && typeof name === 'string') return `[${name} ${inputText(block, context)}]`
  const results = block.value('content')
  const titles = Array.isArray(results)
    ? results.flatMap((result: { title?: unknown; url?: unknown } | null) =>
        typeof result?.url === 'string'
          ? `\n${typeof result.title === 'string' ? result.title : ''} ${result.url}`
          : [],
      )
    : []
  return `[${type}]${titles.join('')}`
}

// Content blocks of user messages and tool results: text, media, search results. Blocks without a canonical equivalent
// become text.

export type ContentBlock = TextBlock | ImageBlock | DocumentBlock

const blockMembers: ReadonlySet<string> = new Set([
  ...['type', 'text', 'source', 'title', 'context', 'content', 'citations', 'transformations', 'cache_control'],
])
const sourceMembers: ReadonlySet<string> = new Set(['type', 'data', 'media_type', 'url', 'file_id', 'content'])

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
function parseImage(fields: RequestFields, { warnings }: ParseContext): ImageBlock | DocumentBlock {
  if (fields.value('transformations') !== undefined) {
    warnings.add('transformations_dropped', fields.pointer('transformations'))
  }
  const source = fields.optionalObject('source') ?? fields.missing('source')
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
  const source = fields.optionalObject('source') ?? fields.missing('source')
  if (fields.optionalObject('citations')?.optionalBoolean('enabled')) {
    context.warnings.add('citations_dropped', fields.pointer('citations'))
  }
  const named = { title: fields.optionalText('title'), context: fields.optionalText('context') }
  const document = (of: DocumentBlock['source']): DocumentBlock => ({ kind: 'document', source: of, ...named })
  const type = source.text('type')
  if (type === 'text') return [{ ...document({ kind: 'text', text: source.text('data') }), ...markOf(fields) }]
  if (type !== 'content') return [{ ...document(parseMedia(source)), ...markOf(fields) }]
  if (typeof source.value('content') === 'string') {
    return [{ ...document({ kind: 'text', text: source.text('content') }), ...markOf(fields) }]
  }
  const parts = namedParts(parseParts(source, context), named)
  const last = parts.at(-1)
  return last ? [...parts.slice(0, -1), { ...last, ...markOf(fields) }] : []
}

/** A document made of blocks becomes its texts and images, in order. */
function parseParts(source: RequestFields, context: ParseContext): (ImageBlock | DocumentBlock)[] {
  return source.objects('content').map((part) => {
    const type = part.text('type')
    warnBlockMembers(part, context)
    if (type === 'image') return parseImage(part, context)
    if (type === 'text') return { kind: 'document', source: { kind: 'text', text: part.text('text') }, ...markOf(part) }
    return part.refuse('type', `A document cannot hold a ${shownWord(type)} block.`)
  })
}

/** Title and context apply to the whole document: the title comes before the first part, the context after the last. */
function namedParts(
  parts: readonly (ImageBlock | DocumentBlock)[],
  { title, context }: Pick<DocumentBlock, 'title' | 'context'>,
): ContentBlock[] {
  const named: ContentBlock[] = [...parts]
  const [first] = named
  if (title && first) {
    if (first.kind === 'document') named[0] = { ...first, title }
    else named.unshift({ kind: 'text', text: title })
  }
  const last = named.at(-1)
  if (context && last) {
    if (last.kind === 'document') named[named.length - 1] = { ...last, context }
    else named.push({ kind: 'text', text: context })
  }
  return named
}

function parseSearchResult(fields: RequestFields, context: ParseContext): TextBlock {
  if (fields.optionalObject('citations')?.optionalBoolean('enabled')) {
    context.warnings.add('citations_dropped', fields.pointer('citations'))
  }
  const parts = fields.objects('content')
  for (const part of parts) warnBlockMembers(part, context)
  const body = parts.map((part) => part.text('text'))
  const text = [fields.text('title'), fields.text('source'), '', ...body].join('\n')
  // The parts become one text, so a mark inside applies to all of it.
  const marks = [...parts, fields].map(markOf).filter(({ cacheMark }) => cacheMark)
  return { kind: 'text', text, ...marks.at(-1) }
}
