// Parses a generateContent body into a Conversation. Warns about omissions, refuses what it cannot interpret, and checks
// nothing that depends on the model.

import type { Failure } from '../../../kernel/failure.ts'
import {
  type AssistantBlock,
  type ContentBlock,
  type Conversation,
  type Effort,
  efforts,
  type OutputFormat,
  type RawJson,
  type ReasoningBlock,
  type ReasoningSettings,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type ToolResultBlock,
  type Turn,
  type UserBlock,
} from '../../canonical/conversation.ts'
import { isRecord } from '../../canonical/json.ts'
import type { ParsedRequest, SentRequest } from '../../canonical/translation.ts'
import {
  collectUnsupported,
  type ParseContext,
  parseBody,
  type RequestFields,
  refuseAt,
  shownWord,
} from '../../request/fields.ts'
import { isWebUrl, mediaByContent, readMediaUrl } from '../../request/media.ts'
import { readThoughts } from '../reasoning.ts'
import { askedIn } from '../tiers.ts'

export function parseRequest(sent: SentRequest): ParsedRequest | Failure {
  return parseBody(sent, (body, context) => {
    const conversation = parseConversation(body, sent, context)
    const showsThoughts = conversation.reasoning?.visible === true
    const replyForm = { showsThoughts, isArrayReply: sent.envelope.isArrayReply ?? false }
    return { conversation, warnings: context.warnings.list, replyForm }
  })
}

export const supported = [
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  'model',
  'serviceTier',
]
/** The same as in the canonical form. */
const samplingNames = ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed'] as const
export const supportedConfig = [
  ...[...samplingNames, 'maxOutputTokens', 'stopSequences', 'responseMimeType', 'responseSchema'],
  ...['responseJsonSchema', '_responseJsonSchema', 'thinkingConfig', 'candidateCount'],
]

function parseConversation(body: RequestFields, sent: SentRequest, context: ParseContext): Conversation {
  collectUnsupported(body, supported, context)
  const config = body.optionalObject('generationConfig')
  const isText = (value: unknown) => Array.isArray(value) && value.every((each) => each === 'TEXT')
  const modalities = { isDefault: isText, reason: 'Only text is generated here. Leave out `responseModalities`.' }
  collectUnsupported(config, supportedConfig, context, { responseModalities: modalities })
  return {
    system: systemOf(body),
    turns: parseContents(body, context),
    tools: parseTools(body, context),
    toolChoice: parseChoice(body, context),
    sampling: Object.fromEntries(samplingNames.map((name) => [name, config?.optionalNumber(name)])),
    outputCap: sent.envelope.outputCap,
    stop: (config?.optionalList('stopSequences') ?? []).filter((each) => typeof each === 'string'),
    reasoning: config && parseThinking(config),
    outputFormat: config && parseFormat(config, context),
    serviceTier: askedIn(body.optionalText('serviceTier')),
    unsupported: context.unsupported,
    pointers: {
      system: '/systemInstruction',
      turns: '/contents',
      outputCap: '/generationConfig/maxOutputTokens',
      stop: '/generationConfig/stopSequences',
      reasoning: '/generationConfig/thinkingConfig',
      outputFormat: '/generationConfig/responseMimeType',
      serviceTier: '/serviceTier',
    },
  }
}

function systemOf(body: RequestFields): TextBlock[] {
  const parts = body.optionalObject('systemInstruction')?.objects('parts') ?? []
  return parts.flatMap((part): TextBlock[] => {
    const text = part.optionalText('text') ?? refuseAt(part.at, 'A system instruction has text only.')
    return text === '' ? [] : [{ kind: 'text', text }]
  })
}

/** A call without its result. Ids are optional in this dialect: results then belong to calls by name and order. */
interface OpenCall {
  readonly id: string
  readonly name: string
}

function parseContents(body: RequestFields, context: ParseContext): Turn[] {
  let open: OpenCall[] = []
  let calls = 0
  let thoughts = new TurnThoughts()
  return body.objects('contents').map((content): Turn => {
    const role = content.optionalWord('role', ['user', 'model', 'function', 'tool']) ?? 'user'
    const parts = content.objects('parts')
    const pointer = content.at
    if (role !== 'model') {
      thoughts = new TurnThoughts()
      const blocks = parts.map((part): UserBlock => {
        const result = part.optionalObject('functionResponse')
        return result ? parseResult(result, takeCall(result, open), context) : parseMedia(part)
      })
      return { role: 'user', blocks, pointer }
    }
    const blocks = modelBlocks(parts, thoughts, context, () => `call_${calls++}`)
    open = blocks.flatMap((block) => (block.kind === 'tool-call' ? [{ id: block.id, name: block.name }] : []))
    return { role: 'assistant', blocks, pointer }
  })
}

function takeCall(result: RequestFields, open: OpenCall[]): string {
  const id = result.optionalText('id')
  const name = result.optionalText('name')
  const known = open.findIndex((call) => call.id === id)
  const at = known === -1 ? open.findIndex((call) => call.name === name) : known
  const [call] = at === -1 ? [] : open.splice(at, 1)
  return call?.id ?? id ?? refuseAt(result.at, 'This function response follows no call of that name.')
}

/** The reasoning of a model's turn so far. Each of our signatures repeats what the ones before it contain. */
class TurnThoughts {
  #taken: readonly ReasoningBlock[] = []

  /** The reasoning in a signature that no part before it had; undefined if the signature is not ours. */
  take(signature: string): readonly ReasoningBlock[] | undefined {
    const thoughts = readThoughts(signature)
    const added = thoughts?.filter((thought, i) => !Bun.deepEquals(thought, this.#taken[i]))
    if (added) this.#taken = [...this.#taken, ...added]
    return added
  }
}

function modelBlocks(
  parts: readonly RequestFields[],
  thoughts: TurnThoughts,
  context: ParseContext,
  newId: () => string,
): AssistantBlock[] {
  return parts.flatMap((part): AssistantBlock[] => {
    const signature = part.optionalText('thoughtSignature')
    const added = signature === undefined ? [] : thoughts.take(signature)
    // Only the issuer can read it.
    if (!added) context.warnings.add('thinking_dropped', part.pointer('thoughtSignature'))
    const before = added ?? []
    // Our signatures contain the reasoning. Without one, no provider accepts it back.
    if (part.optionalBoolean('thought')) return [...before]
    const call = part.optionalObject('functionCall')
    if (call) {
      const args = call.optionalObject('args')
      const written = args ? context.rawText(args.at) : '{}'
      const id = call.optionalText('id') || newId()
      return [...before, { kind: 'tool-call', id, name: call.text('name'), arguments: written, custom: false }]
    }
    const text = part.optionalText('text')
    if (text === undefined && signature === undefined) context.warnings.add('part_dropped', part.at)
    return text ? [...before, { kind: 'text', text }] : [...before]
  })
}

function parseMedia(part: RequestFields): ContentBlock {
  const text = part.optionalText('text')
  if (text !== undefined) return { kind: 'text', text }
  const inline = part.optionalObject('inlineData')
  if (inline) {
    const type = (inline.optionalText('mimeType') ?? '').toLowerCase()
    const base64 = inline.text('data')
    if (type.startsWith('audio/')) return { kind: 'document', source: { kind: 'data', mediaType: type, base64 } }
    if (type.startsWith('text/')) {
      return { kind: 'document', source: { kind: 'text', text: Buffer.from(base64, 'base64').toString() } }
    }
    return mediaByContent(base64.replaceAll('-', '+').replaceAll('_', '/'), type, inline.pointer('data'))
  }
  const file = part.optionalObject('fileData')
  const url = file?.text('fileUri') ?? refuseAt(part.at, 'A part of this kind is not supported here.')
  const isStored = /^https?:\/\/generativelanguage\.googleapis\.com\//i.test(url)
  if (!isWebUrl(url) || isStored) {
    return refuseAt(part.at, 'Uploaded files are kept by one provider and not available here; send the data instead.')
  }
  const source = readMediaUrl(url, part.at)
  const isImage = (file?.optionalText('mimeType') ?? 'image/').startsWith('image/')
  return isImage ? { kind: 'image', source } : { kind: 'document', source }
}

/** Usually `{output: …}` or `{error: …}`; anything else is passed on as JSON. */
function parseResult(result: RequestFields, callId: string, context: ParseContext): ToolResultBlock {
  const response = result.optionalObject('response')
  const [only] = response?.names ?? []
  const isSingle = response?.names.length === 1 && (only === 'output' || only === 'error' || only === 'result')
  const value = isSingle ? response?.value(only ?? '') : undefined
  const media = result.objects('parts').map(parseMedia)
  // The member is required, so it is empty beside media.
  const isSaid = response !== undefined && (response.names.length > 0 || media.length === 0)
  const text = typeof value === 'string' ? value : isSaid ? context.rawText(response.at) : ''
  const content: ContentBlock[] = text === '' ? media : [{ kind: 'text', text }, ...media]
  return { kind: 'tool-result', callId, content, isError: isSingle && only === 'error' }
}

const supportedInFunction = ['name', 'description', 'parameters', 'parametersJsonSchema']
const isUsualBehavior = (value: unknown) => value === 'UNSPECIFIED' || value === 'BLOCKING'

function parseTools(body: RequestFields, context: ParseContext): Tool[] {
  return body.objects('tools').flatMap((entry) => {
    for (const name of entry.names.filter((each) => each !== 'functionDeclarations')) {
      const isSearch = /^(googleSearch|googleSearchRetrieval|urlContext)$/.test(name)
      const reason = `The tool ${shownWord(name)} is not available for this model.`
      context.unsupported.push({ field: entry.pointer(name), refuse: !isSearch, reason, addsInput: true })
    }
    return entry.objects('functionDeclarations').map((declared): Tool => {
      collectUnsupported(declared, supportedInFunction, context, { behavior: { isDefault: isUsualBehavior } })
      const json = declared.optionalObject('parametersJsonSchema')
      const open = declared.optionalObject('parameters')
      return {
        kind: 'function',
        name: declared.text('name'),
        description: declared.optionalText('description'),
        schema: json ? context.rawText(json.at) : open && jsonSchema(declared.value('parameters')),
        pointer: declared.at,
      }
    })
  })
}

function parseChoice(body: RequestFields, { warnings }: ParseContext): ToolChoice | undefined {
  const config = body.optionalObject('toolConfig')?.optionalObject('functionCallingConfig')
  const mode = config?.optionalText('mode')?.toUpperCase()
  const names = (config?.optionalList('allowedFunctionNames') ?? []).filter((name) => typeof name === 'string')
  if (mode === 'NONE') return { kind: 'none' }
  if (mode === 'ANY') {
    const [only] = names
    if (only === undefined) return { kind: 'required' }
    return names.length === 1 ? { kind: 'named', name: only } : { kind: 'allowed', names, force: true }
  }
  // No other dialect has calls that must match their schema while text is allowed too.
  if (config && mode === 'VALIDATED') warnings.add('tool_choice_relaxed', config.pointer('mode'))
  if (mode === 'VALIDATED' && names.length > 0) return { kind: 'allowed', names, force: false }
  return mode === undefined || mode === 'MODE_UNSPECIFIED' ? undefined : { kind: 'auto' }
}

function parseThinking(config: RequestFields): ReasoningSettings | undefined {
  const thinking = config.optionalObject('thinkingConfig')
  if (!thinking) return undefined
  const budget = thinking.optionalNumber('thinkingBudget')
  const level = thinking.optionalText('thinkingLevel')?.toLowerCase()
  const effort = efforts.find((each): each is Effort => each === level)
  return {
    ...(effort && { effort }),
    ...(budget === 0 ? { mode: 'off' } : budget === -1 ? { mode: 'adaptive' } : { budgetTokens: budget }),
    visible: thinking.optionalBoolean('includeThoughts') ?? false,
  }
}

function parseFormat(config: RequestFields, context: ParseContext): OutputFormat | undefined {
  if (config.optionalText('responseMimeType') !== 'application/json') return undefined
  const json = config.optionalObject('responseJsonSchema') ?? config.optionalObject('_responseJsonSchema')
  const open = config.value('responseSchema')
  if (!json && open === undefined) return { kind: 'json-object' }
  const schema = json ? context.rawText(json.at) : jsonSchema(open)
  return { kind: 'json-schema', schema }
}

/** Google's own form of schemas: types in capitals, `nullable`, and 64-bit numbers as text. */
function jsonSchema(schema: unknown): RawJson {
  return JSON.stringify(convert(schema))
}

const counts = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])

function convert(schema: unknown): unknown {
  if (!isRecord(schema)) return schema
  const converted: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(schema)) {
    if (name === 'nullable' || name === 'propertyOrdering') continue
    if (name === 'type' && typeof value === 'string') {
      const type = value.toLowerCase()
      converted.type = schema.nullable === true ? [type, 'null'] : type
    } else if (name === 'properties' && isRecord(value)) {
      converted.properties = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, convert(each)]))
    } else if (Array.isArray(value) && name === 'anyOf') converted.anyOf = value.map(convert)
    else if (name === 'items') converted.items = convert(value)
    else converted[name] = counts.has(name) && typeof value === 'string' ? Number(value) : value
  }
  return converted
}
