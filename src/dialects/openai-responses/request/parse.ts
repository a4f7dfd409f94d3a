// Parses a Responses body into a Conversation. Warns about omissions, refuses what it cannot interpret, and checks
// nothing that depends on the model.

import type { Failure } from '../../../kernel/failure.ts'
import {
  type AssistantBlock,
  addTurn,
  type ContentBlock,
  type Conversation,
  type DocumentBlock,
  efforts,
  type MediaBlock,
  type RawJson,
  type ReasoningSettings,
  summaryWord,
  type TextBlock,
  type Tool,
  type ToolCallBlock,
  type ToolChoice,
  type ToolResultBlock,
  type Turn,
} from '../../canonical/conversation.ts'
import { jsonObject } from '../../canonical/json.ts'
import type { CallForm, ContentTags, ParsedRequest, SentRequest } from '../../canonical/translation.ts'
import { breakpointOf } from '../../request/cache-marks.ts'
import {
  collectUnsupported,
  type OwnFields,
  type ParseContext,
  parseBody,
  type RequestFields,
  routingMembers,
  shownWord,
  textBlocks,
  wrongType,
} from '../../request/fields.ts'
import { mediaByUrl, readMediaUrl } from '../../request/media.ts'
import {
  audioBlock,
  endUserPointer,
  isUsualRetention,
  nestedGrammar,
  parseFileData,
  parseFormat,
  parseServing,
} from '../../request/parse-openai.ts'
import { isStrictSchema } from '../../request/schema.ts'
import { forgedContent, readCompacted, readEncrypted, summaryTexts } from '../reasoning.ts'
import { echoOf } from '../resource.ts'

export function parseRequest(sent: SentRequest, contentTags?: ContentTags): ParsedRequest | Failure {
  return parseBody(sent, (body, shared) => {
    const context = { ...shared, contentTags }
    const { tools, callForms } = parseTools(body, context)
    const conversation = parseConversation(body, sent, tools, context)
    return { conversation, callForms, warnings: context.warnings.list, echo: () => echoOf(body) }
  })
}

function parseConversation(
  body: RequestFields,
  sent: SentRequest,
  tools: Conversation['tools'],
  context: ItemContext,
): Conversation {
  collectUnsupported(body, sent.envelope.isStored ? supportedWithStore : supported, context, otherFields)
  for (const [name, known] of Object.entries(knownInside)) {
    collectUnsupported(body.optionalObject(name), known, context)
  }
  const text = body.optionalObject('text')
  return {
    ...parseItems(body, context),
    tools,
    toolChoice: parseToolChoice(body, context),
    parallelTools: body.optionalBoolean('parallel_tool_calls'),
    sampling: { temperature: body.numberWithin('temperature', 0, 2), topP: body.numberWithin('top_p', 0, 1) },
    outputCap: sent.envelope.outputCap,
    stop: [],
    reasoning: parseReasoning(body),
    outputFormat: parseFormat(text?.optionalObject('format'), false, context),
    ...parseServing(body, context),
    verbosity: text?.optionalWord('verbosity', ['low', 'medium', 'high']),
    unsupported: context.unsupported,
    pointers: {
      system: '/instructions',
      turns: '/input',
      outputCap: '/max_output_tokens',
      outputFormat: '/text/format',
      reasoning: '/reasoning',
      endUserId: endUserPointer(body),
    },
  }
}

function parseReasoning(body: RequestFields): ReasoningSettings | undefined {
  const reasoning = body.optionalObject('reasoning')
  if (!reasoning) return undefined
  const effort = reasoning.optionalWord('effort', efforts)
  const summary = reasoning.optionalText('summary') ?? reasoning.optionalText('generate_summary')
  const visible = summary === undefined ? undefined : summary !== 'none'
  if (effort === undefined && visible === undefined) return undefined
  return { effort, visible, summary: summaryWord(summary) }
}

/** Parsed elsewhere, or without meaning for a provider. */
const supported: readonly string[] = [
  ...['model', 'input', 'instructions', 'stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['max_output_tokens', 'temperature', 'top_p', 'reasoning', 'text', 'service_tier', 'user', 'safety_identifier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'background'],
  // Codex's own records.
  'client_metadata',
  ...routingMembers,
]

const knownInside: Readonly<Record<string, readonly string[]>> = {
  text: ['verbosity', 'format'],
  reasoning: ['effort', 'summary', 'generate_summary'],
  // Padding of the deltas; the usage is always sent.
  stream_options: ['include_obfuscation', 'include_usage'],
}

const otherFields: OwnFields = {
  prompt_cache_retention: { isDefault: isUsualRetention },
  truncation: { isDefault: (value) => value === 'disabled' },
  // Reasoning always comes encrypted, and the other parts have no place here.
  include: { isDefault: isEncryptedReasoning },
  top_logprobs: { isDefault: (value) => value === 0, reason: '`top_logprobs` are not available for this model.' },
  max_tool_calls: {
    reason: '`max_tool_calls` limits tools that a provider runs, which are not available for this model.',
  },
}
export const supportedWithStore = [...supported, 'store']

function isEncryptedReasoning(value: unknown): boolean {
  return Array.isArray(value) && value.every((part) => part === 'reasoning.encrypted_content')
}

// Parses input items into system blocks and turns. Adjacent items of the assistant are one turn.

/** `own`: kept by the caller for itself, such as Codex's ids. */
const own = ['id', 'type', 'status', 'internal_chat_message_metadata_passthrough']
const membersOf: Readonly<Record<string, readonly string[]>> = {
  message: [...own, 'role', 'content', 'phase'],
  reasoning: [...own, 'summary', 'content', 'encrypted_content'],
  compaction: [...own, 'encrypted_content', 'created_by'],
  function_call: [...own, 'call_id', 'name', 'namespace', 'arguments'],
  function_call_output: [...own, 'call_id', 'output'],
  custom_tool_call: [...own, 'call_id', 'name', 'namespace', 'input'],
  custom_tool_call_output: [...own, 'call_id', 'name', 'output'],
  local_shell_call: [...own, 'call_id', 'action'],
  local_shell_call_output: [...own, 'call_id', 'output'],
  // Read with the tools.
  additional_tools: [...own, 'role', 'tools'],
}

interface ItemContext extends ParseContext {
  readonly contentTags: ContentTags | undefined
}

function parseItems(body: RequestFields, context: ItemContext): Pick<Conversation, 'system' | 'turns'> {
  const system = textBlocks(body.optionalText('instructions') ?? '')
  const input = body.textOrObjects('input')
  if (typeof input === 'string') {
    return { system, turns: [{ role: 'user', blocks: [{ kind: 'text', text: input }], pointer: '/input' }] }
  }
  const turns: Turn[] = []
  for (const item of input) {
    const turn = parseItem(item, context)
    if (turn?.role === 'system' && turns.length === 0) system.push(...turn.blocks)
    else if (turn) addTurn(turns, turn)
  }
  return { system, turns }
}

/** undefined: the item has nothing that can be carried. */
function parseItem(item: RequestFields, context: ItemContext): Turn | undefined {
  const type = item.optionalText('type') ?? 'message'
  const known = Object.hasOwn(membersOf, type) ? membersOf[type] : undefined
  if (known) item.warnUnknown(known, context.warnings)
  const pointer = item.at
  const assistant = (...blocks: AssistantBlock[]): Turn => ({ role: 'assistant', blocks, pointer })
  switch (type) {
    case 'message':
      return parseMessage(item, context)
    case 'reasoning':
      return assistant(...parseReasoningItem(item, context))
    case 'compaction':
      return parseCompaction(item, context)
    case 'function_call':
      return assistant(parseCall(item, item.text('arguments'), false))
    case 'custom_tool_call':
      return assistant(parseCall(item, item.text('input'), true))
    case 'local_shell_call':
      return assistant(parseShellCall(item, context))
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'local_shell_call_output':
      return { role: 'user', blocks: [parseOutput(item, context)], pointer }
    case 'additional_tools':
      return undefined
    case 'item_reference':
      return item.refuse('type', 'Items are not kept for this path. Send the item itself instead of a reference.')
    default:
      return dropItem(item, type, context)
  }
}

/** A summary that we made of the conversation before; one of a provider can only be opened there. */
function parseCompaction(item: RequestFields, context: ItemContext): Turn | undefined {
  const found = readCompacted(item.text('encrypted_content'), context.contentTags)
  if (found === 'forged') return item.refuse('encrypted_content', forgedContent)
  if (!found) return dropItem(item, 'compaction', context)
  return { role: 'user', blocks: [{ kind: 'text', text: found.summary }], pointer: item.at }
}

/** Open Responses names the types that its implementers add `slug:type`. */
const typeForm = /^([a-z0-9_-]{1,60}:)?[a-z0-9_]{1,60}$/

/** Items of tools that a provider runs, and newer ones: only their provider can use them. */
function dropItem(item: RequestFields, type: string, { warnings }: ParseContext): undefined {
  if (!typeForm.test(type)) item.refuse('type', `An item of type ${shownWord(type)} does not exist.`)
  warnings.add('item_dropped', item.at)
}

function parseMessage(item: RequestFields, context: ParseContext): Turn {
  const role = item.text('role')
  const pointer = item.at
  switch (role) {
    case 'system':
    case 'developer':
      return { role: 'system', blocks: parseSystem(item, context), pointer }
    case 'user':
      return { role: 'user', blocks: parseContent(item, 'content', context), pointer }
    case 'assistant':
      return { role: 'assistant', blocks: parseSaid(item, context), pointer }
    default:
      return item.refuse('role', `The role ${shownWord(role)} does not exist.`)
  }
}

function parseSystem(item: RequestFields, context: ParseContext): TextBlock[] {
  return item.blocks('content', (part) =>
    /^(input_)?text$/.test(part.text('type')) ? parseText(part, context) : refusePart(part, 'a developer message'),
  )
}

function parseSaid(item: RequestFields, context: ParseContext): AssistantBlock[] {
  return item.blocks('content', (part): AssistantBlock[] => {
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

function parseContent(item: RequestFields, name: string, context: ParseContext): ContentBlock[] {
  return item.blocks(name, (part) => parsePart(part, context))
}

/** Annotations and log probabilities are output only, but clients send the whole part back. */
const partMembers = [
  ...['type', 'text', 'image_url', 'detail', 'file_id', 'filename', 'file_url', 'file_data', 'input_audio'],
  ...['annotations', 'logprobs', 'cache_control', 'prompt_cache_breakpoint'],
]

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
  parse: (part: RequestFields, context: ParseContext) => MediaBlock,
  part: RequestFields,
  context: ParseContext,
): MediaBlock {
  part.warnUnknown(partMembers, context.warnings)
  return { ...parse(part, context), ...breakpointOf(part, context) }
}

const byId = 'Files by id are kept by one provider and not available here; send the data instead.'

function parseImage(part: RequestFields, { warnings }: ParseContext): MediaBlock {
  if (part.optionalText('file_id') !== undefined) part.refuse('file_id', byId)
  if ((part.optionalText('detail') ?? 'auto') !== 'auto') warnings.add('detail_dropped', part.pointer('detail'))
  return mediaByUrl(part.text('image_url'), part.pointer('image_url'))
}

function parseFile(part: RequestFields): MediaBlock {
  if (part.optionalText('file_id') !== undefined) part.refuse('file_id', byId)
  const title = part.optionalText('filename')
  const url = part.optionalText('file_url')
  if (url === undefined) return parseFileData(part)
  return { kind: 'document', source: readMediaUrl(url, part.pointer('file_url')), title }
}

const audioMembers = ['format', 'data']

function parseAudio(part: RequestFields, { warnings }: ParseContext): DocumentBlock {
  const audio = part.requiredObject('input_audio')
  audio.warnUnknown(audioMembers, warnings)
  return audioBlock(audio, audio.optionalWord('format', ['wav', 'mp3']) ?? audio.missing('format'))
}

function refusePart(part: RequestFields, where: string): never {
  return part.refuse('type', `A content part of type ${shownWord(part.text('type'))} is not supported in ${where}.`)
}

/** The encrypted reasoning of another gateway or provider cannot be opened; the readable part may still help. */
function parseReasoningItem(item: RequestFields, { warnings, contentTags }: ItemContext): AssistantBlock[] {
  const summary = summaryTexts(item.value('summary'))
  const content = item.objects('content').map((part) => part.optionalText('text') ?? '')
  const text = (summary.length > 0 ? summary : content).join('\n\n')
  const encrypted = item.optionalText('encrypted_content')
  const block = encrypted === undefined ? undefined : readEncrypted(encrypted, text, contentTags)
  if (block === 'forged') return item.refuse('encrypted_content', forgedContent)
  if (block) return [block]
  if (encrypted !== undefined) warnings.add('thinking_dropped', item.pointer('encrypted_content'))
  return text === '' ? [] : [{ kind: 'thinking', text }]
}

function parseCall(item: RequestFields, text: string, custom: boolean): ToolCallBlock {
  return { kind: 'tool-call', name: namedIn(item), id: item.filledText('call_id'), arguments: text, custom }
}

function parseShellCall(item: RequestFields, context: ParseContext): ToolCallBlock {
  const action = item.requiredObject('action')
  const id = item.filledText('call_id')
  return { kind: 'tool-call', id, name: 'local_shell', arguments: context.rawText(action.at), custom: false }
}

function parseOutput(item: RequestFields, context: ParseContext): ToolResultBlock {
  if (item.value('output') === undefined) item.missing('output')
  const callId = item.filledText('call_id')
  return { kind: 'tool-result', callId, content: parseContent(item, 'output', context), isError: false }
}

// Parses tools and the tool choice. Tools in a namespace get a joined name; `callForms` says how their calls are written.

const joint = '__'

function flatName(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}${joint}${name}` : name
}

/** The members of `local_shell_call.action`, in the schema that the model gets. */
const shellSchema = jsonObject({
  type: '"object"',
  properties: jsonObject({
    type: '{"type":"string","enum":["exec"]}',
    command: '{"type":"array","items":{"type":"string"},"description":"The program and its arguments."}',
    timeout_ms: '{"type":"integer"}',
    working_directory: '{"type":"string"}',
  }),
  required: '["type","command"]',
})

/** `callForms`: by canonical name, for tools whose calls are not written under it as function or custom calls. */
function parseTools(body: RequestFields, context: ParseContext) {
  const tools: Tool[] = []
  const callForms = new Map<string, CallForm>()
  const add = (entry: RequestFields, namespace?: string) => {
    const type = entry.text('type')
    switch (type) {
      case 'function':
      case 'custom': {
        const tool = (type === 'function' ? parseFunction : parseCustom)(entry, namespace, context)
        tools.push(tool)
        if (namespace !== undefined) callForms.set(tool.name, { namespace, name: entry.text('name') })
        return
      }
      case 'namespace':
        entry.warnUnknown(namespaceMembers, context.warnings)
        for (const inner of entry.objects('tools')) add(inner, entry.text('name'))
        return
      case 'local_shell': {
        entry.warnUnknown(shellMembers, context.warnings)
        const description = 'Runs a program in a shell of the caller.'
        const schema = shellSchema
        tools.push({ kind: 'function', name: type, description, schema, pointer: entry.at })
        callForms.set(type, { name: type, isShell: true })
        return
      }
      default:
        refuseOrDrop(entry, type, context)
    }
  }
  for (const entry of [...body.objects('tools'), ...additionalTools(body)]) add(entry)
  return { tools, callForms }
}

/** Codex sends the tools of some models in an input item. */
function additionalTools(body: RequestFields): RequestFields[] {
  const input = body.textOrObjects('input')
  if (typeof input === 'string') return []
  return input.filter((item) => item.value('type') === 'additional_tools').flatMap((item) => item.objects('tools'))
}

/** Searching is a help that a model can do without; a tool that the caller relies on is refused. */
function refuseOrDrop(entry: RequestFields, type: string, { unsupported }: ParseContext): void {
  if (!typeForm.test(type)) entry.refuse('type', `The tool type ${shownWord(type)} does not exist.`)
  const isSearch = /^(web_search|tool_search)/.test(type)
  unsupported.push({
    field: entry.at,
    refuse: !isSearch,
    reason: `The tool type ${shownWord(type)} is not available for this model.`,
    // The results of such a tool are input.
    addsInput: type !== 'tool_search',
    ...(type.startsWith('web_search') && { maxSearches: 20 }),
  })
}

function parseFunction(entry: RequestFields, namespace: string | undefined, context: ParseContext): Tool {
  entry.warnUnknown(functionMembers, context.warnings)
  const parameters = entry.optionalObject('parameters')
  const schema = parameters && context.rawText(parameters.at)
  return {
    kind: 'function',
    name: flatName(namespace, entry.filledText('name')),
    description: entry.optionalText('description'),
    schema,
    // Strict is the default here, as far as the schema allows it.
    strict: entry.optionalBoolean('strict') ?? (schema !== undefined && isStrictSchema(schema) ? true : undefined),
    pointer: entry.at,
  }
}

const named = ['type', 'name', 'description', 'defer_loading']
const functionMembers = [...named, 'parameters', 'strict']
const customMembers = [...named, 'format']
const namespaceMembers = [...named, 'tools']
const shellMembers = ['type']
const grammarMembers = ['type', 'syntax', 'definition']
const choiceMembers = ['type', 'namespace', 'name', 'mode', 'tools']

function parseCustom(entry: RequestFields, namespace: string | undefined, context: ParseContext): Tool {
  entry.warnUnknown(customMembers, context.warnings)
  const format = entry.optionalObject('format')
  return {
    kind: 'custom',
    name: flatName(namespace, entry.filledText('name')),
    description: entry.optionalText('description'),
    grammar: format && parseGrammar(format, context),
    isGrammarAdvice: true,
    pointer: entry.at,
  }
}

function parseGrammar(format: RequestFields, { warnings }: ParseContext): RawJson | undefined {
  format.warnUnknown(grammarMembers, warnings)
  return format.optionalWord('type', ['text', 'grammar']) === 'grammar' ? nestedGrammar(format) : undefined
}

function parseToolChoice(body: RequestFields, { warnings }: ParseContext): ToolChoice | undefined {
  const value = body.value('tool_choice')
  if (value === undefined) return undefined
  if (typeof value === 'string') {
    return { kind: body.optionalWord('tool_choice', ['none', 'auto', 'required']) ?? 'auto' }
  }
  if (typeof value !== 'object') return wrongType('/tool_choice', 'a string or an object', value)
  const choice = body.requiredObject('tool_choice')
  choice.warnUnknown(choiceMembers, warnings)
  const type = choice.text('type')
  if (type === 'function' || type === 'custom') return { kind: 'named', name: namedIn(choice) }
  if (type !== 'allowed_tools') {
    return choice.refuse('type', `A tool choice of type ${shownWord(type)} is not available for this model.`)
  }
  const names = choice.objects('tools').map(namedIn)
  if (names.length === 0) return choice.refuse('tools', 'No tool is allowed; name at least one.')
  return { kind: 'allowed', names, force: choice.optionalWord('mode', ['auto', 'required']) === 'required' }
}

function namedIn(entry: RequestFields): string {
  return flatName(entry.optionalText('namespace'), entry.filledText('name'))
}
