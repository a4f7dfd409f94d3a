// Parses messages into system blocks and turns, one turn per message.

import type {
  AssistantBlock,
  ContentBlock,
  Conversation,
  DocumentBlock,
  MediaBlock,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
  UserBlock,
} from '../../canonical/conversation.ts'
import { isRecord, recordOf } from '../../canonical/json.ts'
import { isOwnSignature, writeSignature } from '../../canonical/signature.ts'
import { breakpointOf } from '../../request/cache-marks.ts'
import { type ParseContext, type RequestFields, shownWord, wrongType } from '../../request/fields.ts'
import { mediaByContent, mediaByUrl, readMediaUrl } from '../../request/media.ts'
import { audioBlock, parseFileData } from '../../request/parse-openai.ts'
import { type PlacedReasoning, placeReasoning, reasoningFieldNames } from '../reasoning.ts'

const anyMembers = ['role', 'content', 'name', 'cache_control', 'prompt_cache_breakpoint']
const knownMembers: Readonly<Record<string, readonly string[]>> = {
  system: anyMembers,
  developer: anyMembers,
  user: anyMembers,
  function: anyMembers,
  tool: [...anyMembers, 'tool_call_id', 'is_error'],
  assistant: [
    ...[...anyMembers, ...reasoningFieldNames, 'refusal', 'audio', 'tool_calls', 'function_call'],
    // Output only, but clients send the whole message back.
    'annotations',
  ],
}

export function parseMessages(body: RequestFields, context: ParseContext): Pick<Conversation, 'system' | 'turns'> {
  const system: TextBlock[] = []
  const turns: Turn[] = []
  /** Every `function_call` without a `function` message so far. */
  const legacy: ToolCallBlock[] = []
  for (const [index, message] of body.objects('messages').entries()) {
    const role = message.text('role')
    const known = Object.hasOwn(knownMembers, role) ? knownMembers[role] : undefined
    if (!known) return message.refuse('role', `The role ${shownWord(role)} does not exist.`)
    message.warnUnknown(known, context.warnings)
    // A tool's name repeats the name in its call; any other name is lost.
    if (role !== 'tool' && role !== 'function' && message.optionalText('name')) {
      context.warnings.add('name_dropped', message.pointer('name'))
    }
    const turn = parseTurn(message, `call_legacy_${index}`, legacy, context)
    if (turn.role === 'system' && turns.length === 0) system.push(...turn.blocks)
    else turns.push(turn)
  }
  return { system, turns }
}

/** `legacyId` becomes the id of the message's `function_call`. */
function parseTurn(message: RequestFields, legacyId: string, legacy: ToolCallBlock[], context: ParseContext): Turn {
  const pointer = message.at
  switch (message.text('role')) {
    case 'system':
    case 'developer':
      return { role: 'system', blocks: marked(parseSystem(message, context), message, context), pointer }
    case 'user':
      return { role: 'user', blocks: marked(parseUser(message, context), message, context), pointer }
    case 'tool':
      return { role: 'user', blocks: [parseToolResult(message, message.text('tool_call_id'), context)], pointer }
    case 'function':
      return { role: 'user', blocks: [parseToolResult(message, answeredLegacyId(message, legacy), context)], pointer }
    default: {
      const blocks = parseAssistant(message, legacyId, context)
      legacy.push(...blocks.filter((block) => block.kind === 'tool-call').filter(({ id }) => id === legacyId))
      return { role: 'assistant', blocks: marked(blocks, message, context), pointer }
    }
  }
}

function parseSystem(message: RequestFields, context: ParseContext): TextBlock[] {
  return message.blocks('content', (part) => {
    warnPartMembers(part, context)
    return part.text('type') === 'text' ? parseTextPart(part, context) : refusePart(part, message.text('role'))
  })
}

function parseUser(message: RequestFields, context: ParseContext): UserBlock[] {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  return content.map((part): UserBlock => {
    // In the form of Messages.
    if (part.text('type') === 'tool_result') return parseToolResult(part, part.text('tool_use_id'), context)
    return parsePart(part, context) ?? refusePart(part, 'user')
  })
}

function parseToolResult(fields: RequestFields, callId: string, context: ParseContext): ToolResultBlock {
  return {
    kind: 'tool-result',
    callId,
    content: fields.blocks('content', (part) => parsePart(part, context) ?? refusePart(part, 'tool')),
    isError: fields.optionalBoolean('is_error') ?? false,
    ...breakpointOf(fields, context),
  }
}

function answeredLegacyId(message: RequestFields, legacy: ToolCallBlock[]): string {
  const name = message.text('name')
  const call = legacy.findIndex((open) => open.name === name)
  if (call === -1)
    return message.refuse('name', `The function message for ${shownWord(name)} answers no function call.`)
  return legacy.splice(call, 1)[0]?.id ?? ''
}

/** A mark on the message applies to its last block that can carry one. */
function marked<Block extends { readonly kind: string }>(
  blocks: readonly Block[],
  message: RequestFields,
  context: ParseContext,
): Block[] {
  const { cacheMark } = breakpointOf(message, context)
  const last = cacheMark ? blocks.findLastIndex(({ kind }) => !unmarkable.has(kind)) : -1
  return blocks.map((block, i) => (i === last ? { ...block, cacheMark } : block))
}

const unmarkable: ReadonlySet<string> = new Set(['thinking', 'sealed-thinking', 'refusal'])

// One assistant message: its text, then its calls, with the reasoning between them.

function parseAssistant(message: RequestFields, legacyId: string, context: ParseContext): AssistantBlock[] {
  if (message.value('audio') !== undefined) {
    message.refuse('audio', 'Audio of an earlier answer is not available for this model; send its text.')
  }
  const calls = message
    .objects('tool_calls')
    .flatMap((call) => [...parseProof(call, message, context), parseCall(call, context)])
  const said = parseContent(message, context).filter((block) => !isAmong(calls, block))
  const inContent = said.some(({ kind }) => kind === 'thinking' || kind === 'sealed-thinking')
  const refusal = message.optionalText('refusal')
  const blocks: AssistantBlock[] = [
    ...said,
    ...(refusal ? [{ kind: 'refusal', text: refusal } as const] : []),
    ...calls,
    ...parseLegacyCall(message, legacyId, context),
  ]
  return inContent ? blocks : placeReasoning(parseReasoningFields(message, context), blocks)
}

/** Some clients keep a call in both forms. Within one form an id may repeat: some models use one for all calls. */
function isAmong(calls: readonly AssistantBlock[], block: AssistantBlock): boolean {
  if (block.kind !== 'tool-call') return false
  return calls.some((call) => call.kind === 'tool-call' && call.id === block.id)
}

function parseContent(message: RequestFields, context: ParseContext): AssistantBlock[] {
  return message.blocks('content', (part): AssistantBlock[] => {
    switch (part.text('type')) {
      case 'text':
      case 'output_text': {
        const block = parseTextPart(part, context)
        return block.text === '' && !block.cacheMark ? [] : [block]
      }
      case 'refusal':
        return [{ kind: 'refusal', text: part.text('refusal') }]
      case 'thinking':
      case 'redacted_thinking':
        return parseReasoningPart(part)
      case 'tool_use':
        return [parseToolUse(part, context)]
      default:
        return refusePart(part, 'assistant')
    }
  })
}

/**
 * Reads our signature of the thinking before a call; it counts if the details did not come back. Google's own signature
 * cannot be used.
 */
function parseProof(call: RequestFields, message: RequestFields, context: ParseContext): AssistantBlock[] {
  if (call.value('extra_content') === undefined) return []
  const signature = recordOf(recordOf(call.value('extra_content')).google).thought_signature
  if (typeof signature !== 'string' || !isOwnSignature(signature)) {
    context.warnings.add('thinking_dropped', call.pointer('extra_content'))
    return []
  }
  const hasDetails = message.objects('reasoning_details').length > 0
  return hasDetails ? [] : [{ kind: 'thinking', text: '', signature }]
}

function parseCall(call: RequestFields, context: ParseContext): ToolCallBlock {
  const id = call.filledText('id')
  const type = call.optionalWord('type', ['function', 'custom']) ?? 'function'
  const detail = call.requiredObject(type)
  return {
    kind: 'tool-call',
    id,
    name: detail.filledText('name'),
    arguments: type === 'custom' ? (detail.optionalText('input') ?? '') : argumentText(detail, 'arguments', context),
    custom: type === 'custom',
    ...breakpointOf(call, context),
  }
}

/** In the form of Messages. */
function parseToolUse(part: RequestFields, context: ParseContext): ToolCallBlock {
  return {
    kind: 'tool-call',
    id: part.filledText('id'),
    name: part.filledText('name'),
    arguments: argumentText(part, 'input', context),
    custom: false,
    ...breakpointOf(part, context),
  }
}

function parseLegacyCall(message: RequestFields, id: string, context: ParseContext): ToolCallBlock[] {
  const call = message.optionalObject('function_call')
  if (!call) return []
  const name = call.filledText('name')
  return [{ kind: 'tool-call', id, name, arguments: argumentText(call, 'arguments', context), custom: false }]
}

/** A string is the text itself; for clients that send an object instead, the object's text. */
function argumentText(fields: RequestFields, name: string, context: ParseContext): string {
  const value = fields.value(name)
  if (value === undefined || typeof value === 'string') return value ?? ''
  if (typeof value !== 'object') return wrongType(fields.pointer(name), 'a string', value)
  return context.rawText(fields.pointer(name))
}

// Content parts of user and tool messages: text, images, files and audio. Parts in the form of Messages, which some
// clients send, are accepted too. The media type decides the kind of block, not the type of the part.

const partMembers = [
  ...['type', 'text', 'image_url', 'file', 'input_audio', 'source', 'title', 'context'],
  ...['cache_control', 'prompt_cache_breakpoint'],
]
/** Members of the object inside a part of any type. */
const detailMembers = [...['url', 'detail', 'file_id', 'filename', 'file_data', 'data', 'format', 'type', 'media_type']]

/** Warns about members that have no place in the canonical form. */
function warnPartMembers(part: RequestFields, { warnings }: ParseContext): void {
  if (!partParsers.has(part.text('type'))) return
  part.warnUnknown(partMembers, warnings)
  for (const name of ['image_url', 'file', 'input_audio', 'source']) {
    if (isRecord(part.value(name))) part.optionalObject(name)?.warnUnknown(detailMembers, warnings)
  }
}

type PartParser = (part: RequestFields, context: ParseContext) => ContentBlock

const partParsers = new Map<string, PartParser>([
  ['text', parseTextPart],
  ['input_text', parseTextPart],
  ['image_url', parseImageUrl],
  ['file', parseFile],
  ['image', parseSource],
  ['document', parseSource],
  ['input_audio', parseAudio],
])

/** undefined = not a content type. */
function parsePart(part: RequestFields, context: ParseContext): ContentBlock | undefined {
  warnPartMembers(part, context)
  const parse = partParsers.get(part.text('type'))
  return parse && { ...parse(part, context), ...breakpointOf(part, context) }
}

function parseTextPart(part: RequestFields, context: ParseContext): TextBlock {
  return { kind: 'text', text: part.text('text'), ...breakpointOf(part, context) }
}

function refusePart(part: RequestFields, role: string): never {
  const type = part.text('type')
  return part.refuse('type', `A content part of type ${shownWord(type)} is not supported in a ${role} message.`)
}

function parseImageUrl(part: RequestFields, { warnings }: ParseContext): MediaBlock {
  // Several clients send a plain string, although it is not documented.
  if (typeof part.value('image_url') === 'string') {
    return mediaByUrl(part.text('image_url'), part.pointer('image_url'))
  }
  const image = part.requiredObject('image_url')
  if ((image.optionalText('detail') ?? 'auto') !== 'auto') warnings.add('detail_dropped', image.pointer('detail'))
  return mediaByUrl(image.text('url'), image.pointer('url'))
}

function parseFile(part: RequestFields): MediaBlock {
  const file = part.requiredObject('file')
  if (file.optionalText('file_id') !== undefined) {
    return file.refuse('file_id', 'Files by id are kept by one provider and not available here; send `file_data`.')
  }
  return parseFileData(file)
}

/** wav and mp3 are documented; some hosts accept the others. */
const audioFormats: ReadonlySet<string> = new Set(['wav', 'mp3', 'aiff', 'aac', 'ogg', 'flac'])

function parseAudio(part: RequestFields): DocumentBlock {
  const audio = part.requiredObject('input_audio')
  const format = audio.text('format').toLowerCase()
  if (!audioFormats.has(format)) {
    return audio.refuse('format', `The audio format ${shownWord(format)} is not supported; send wav or mp3.`)
  }
  return audioBlock(audio, format)
}

/** An image or document in the form of Messages. */
function parseSource(part: RequestFields): MediaBlock {
  const source = part.requiredObject('source')
  const title = part.optionalText('title')
  const named = { title, context: part.optionalText('context') }
  const kind = part.text('type') === 'image' ? 'image' : 'document'
  switch (source.text('type')) {
    case 'base64': {
      const medium = mediaByContent(source.text('data'), source.text('media_type'), source.pointer('data'))
      return medium.kind === 'document' ? { ...medium, ...named } : medium
    }
    case 'url': {
      const at = readMediaUrl(source.text('url'), source.pointer('url'))
      return kind === 'image' ? { kind, source: at } : { kind, source: at, ...named }
    }
    case 'text':
      if (kind === 'document') return { kind, source: { kind: 'text', text: source.text('data') }, ...named }
  }
  return source.refuse('type', `The source type ${shownWord(source.text('type'))} is not supported in an ${kind}.`)
}

// Reasoning in an assistant message. These are the extensions in use, the most complete first: `reasoning_details`
// (OpenRouter and us), `thinking_blocks` (LiteLLM), plain text.

/** The format of Messages signatures, also assumed for entries without a format. */
const messagesFormat = 'anthropic-claude-v1'

function parseReasoningFields(message: RequestFields, context: ParseContext): PlacedReasoning<ReasoningBlock>[] {
  const details = message.objects('reasoning_details')
  if (details.length > 0) {
    return details.flatMap((detail) => placed(parseDetail(detail, context), detail.value('index')))
  }
  const blocks = message.objects('thinking_blocks')
  if (blocks.length > 0) return blocks.flatMap((block) => placed(parseReasoningPart(block)))
  const text = message.optionalText('reasoning_content') || message.optionalText('reasoning')
  return text ? placed([{ kind: 'thinking', text }]) : []
}

function placed(blocks: readonly ReasoningBlock[], index?: unknown): PlacedReasoning<ReasoningBlock>[] {
  return blocks.map((block) => ({ block, place: typeof index === 'number' ? index : undefined }))
}

function parseDetail(detail: RequestFields, { warnings }: ParseContext): ReasoningBlock[] {
  const format = detail.optionalText('format') || messagesFormat
  switch (detail.text('type')) {
    case 'reasoning.text': {
      const proof = detail.optionalText('signature') || undefined
      const signature = proof && issuedAs(proof, format)
      return [{ kind: 'thinking', text: detail.optionalText('text') ?? '', signature }]
    }
    case 'reasoning.summary':
      return [{ kind: 'thinking', text: detail.text('summary') }]
    case 'reasoning.encrypted':
      return [{ kind: 'sealed-thinking', data: issuedAs(detail.text('data'), format) }]
    default:
      warnings.add('reasoning_dropped', detail.at)
      return []
  }
}

/** Wraps a signature of another format in ours, so that it is not mistaken for a Messages signature. */
function issuedAs(proof: string, format: string): string {
  if (format === messagesFormat || format === 'unknown' || isOwnSignature(proof)) return proof
  return writeSignature({ issuer: format, blob: proof })
}

/** Blocks in the form of Messages, and Mistral's thinking part, whose text is a list of text parts. */
function parseReasoningPart(part: RequestFields): ReasoningBlock[] {
  if (part.text('type') === 'redacted_thinking') return [{ kind: 'sealed-thinking', data: part.text('data') }]
  const text = Array.isArray(part.value('thinking'))
    ? part
        .objects('thinking')
        .map((piece) => piece.optionalText('text') ?? '')
        .join('')
    : part.text('thinking')
  return [{ kind: 'thinking', text, signature: part.optionalText('signature') || undefined }]
}
