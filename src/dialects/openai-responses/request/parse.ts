// Parses a Responses body into a Conversation. Warns about omissions, refuses what it cannot interpret, and checks
// nothing that depends on the model.

import type { Failure } from '../../../kernel/failure.ts'
import { utf8Text } from '../../../wire/bytes.ts'
import { routingMembers } from '../../byte-lane/envelope.ts'
import {
  type Conversation,
  efforts,
  type OutputFormat,
  type RawJson,
  type ReasoningSettings,
} from '../../canonical/conversation.ts'
import { recordOf } from '../../canonical/json.ts'
import type { ContentTags, Envelope, ParsedRequest } from '../../canonical/translation.ts'
import { readCacheOptions } from '../../request/cache-marks.ts'
import {
  collectUnsupported,
  createParseContext,
  type OwnField,
  type ParseContext,
  RequestFields,
  readRequest,
  shownWord,
} from '../../request/fields.ts'
import { type ItemContext, parseItems } from './parse-items.ts'
import { parseToolChoice, parseTools } from './parse-tools.ts'

export function parseRequest(envelope: Envelope, contentTags?: ContentTags): ParsedRequest | Failure {
  return readRequest(() => {
    const body = RequestFields.of(JSON.parse(utf8Text(envelope.body, 0, envelope.body.length)), '')
    const context = { ...createParseContext(envelope), contentTags }
    const { tools, callForms } = parseTools(body, context)
    const conversation = parseConversation(body, envelope, tools, context)
    return { conversation, callForms, warnings: context.warnings.list, echo: () => echoOf(body) }
  })
}

const echoed = [
  ...['instructions', 'max_output_tokens', 'metadata', 'parallel_tool_calls', 'prompt_cache_key', 'reasoning'],
  ...['safety_identifier', 'service_tier', 'temperature', 'tool_choice', 'tools', 'top_p', 'truncation', 'user'],
]

/** Serialized again: the caller's own text may have line breaks, which end the line of an event. */
function echoOf(body: RequestFields): Record<string, RawJson> {
  const members = echoed.flatMap((name) => {
    const value = body.value(name)
    return value === undefined ? [] : [[name, JSON.stringify(value)] as const]
  })
  const text = JSON.stringify({ format: { type: 'text' }, ...recordOf(body.value('text')) })
  return { ...Object.fromEntries(members), text }
}

function parseConversation(
  body: RequestFields,
  envelope: Envelope,
  tools: Conversation['tools'],
  context: ItemContext,
): Conversation {
  collectUnsupported(body, envelope.isStored ? supportedWithStore : supported, context, otherFields)
  for (const [name, known] of Object.entries(knownInside)) {
    collectUnsupported(body.optionalObject(name), known, context)
  }
  const text = body.optionalObject('text')
  return {
    ...parseItems(body, context),
    tools,
    toolChoice: parseToolChoice(body, context),
    parallelTools: body.optionalBoolean('parallel_tool_calls'),
    sampling: { temperature: within(body, 'temperature', 2), topP: within(body, 'top_p', 1) },
    outputCap: envelope.outputCap,
    stop: [],
    reasoning: parseReasoning(body),
    outputFormat: text && parseFormat(text, context),
    endUserId: body.optionalText('safety_identifier') || body.optionalText('user') || undefined,
    serviceTier: parseTier(body, context),
    verbosity: text?.optionalWord('verbosity', ['low', 'medium', 'high']),
    promptCacheKey: body.optionalText('prompt_cache_key') || undefined,
    promptCacheOptions: readCacheOptions(body, context),
    automaticCache: undefined,
    stream: envelope.stream,
    wantsStreamUsage: true,
    unsupported: context.unsupported,
    places: {
      system: '/instructions',
      turns: '/input',
      outputCap: '/max_output_tokens',
      outputFormat: '/text/format',
      reasoning: '/reasoning',
      endUserId: body.optionalText('safety_identifier') ? '/safety_identifier' : '/user',
      serviceTier: '/service_tier',
      parallelTools: '/parallel_tool_calls',
    },
  }
}

function within(body: RequestFields, name: string, most: number): number | undefined {
  const value = body.optionalNumber(name)
  if (value === undefined || (value >= 0 && value <= most)) return value
  return body.refuse(name, `\`${name}\` must be from 0 to ${most}.`)
}

function parseReasoning(body: RequestFields): ReasoningSettings | undefined {
  const reasoning = body.optionalObject('reasoning')
  if (!reasoning) return undefined
  const effort = reasoning.optionalWord('effort', efforts)
  const summary = reasoning.optionalText('summary') ?? reasoning.optionalText('generate_summary')
  const visible = summary === undefined ? undefined : summary !== 'none'
  return effort === undefined && visible === undefined ? undefined : { effort, visible }
}

const formatMembers: ReadonlySet<string> = new Set(['type', 'name', 'description', 'schema', 'strict'])

function parseFormat(text: RequestFields, context: ParseContext): OutputFormat | undefined {
  const format = text.optionalObject('format')
  const type = format?.text('type')
  if (!format || type === 'text') return undefined
  if (type === 'json_object') return { kind: 'json-object' }
  if (type !== 'json_schema') {
    return format.refuse('type', `The output format ${shownWord(type)} is not available for this model.`)
  }
  format.warnUnknown(formatMembers, context.warnings)
  const schema = format.optionalObject('schema') ?? format.missing('schema')
  return {
    kind: 'json-schema',
    name: format.optionalText('name'),
    description: format.optionalText('description'),
    schema: context.rawText(schema.at),
    strict: format.optionalBoolean('strict'),
  }
}

const tiers = { auto: 'auto', default: 'standard', flex: 'economy', priority: 'fast', fast: 'fast' } as const

function parseTier(body: RequestFields, { unsupported }: ParseContext): Conversation['serviceTier'] {
  const tier = body.optionalText('service_tier')
  if (tier === undefined) return undefined
  if (Object.hasOwn(tiers, tier)) return tiers[tier as keyof typeof tiers]
  unsupported.push({ field: '/service_tier', refuse: false })
  return undefined
}

/** Parsed elsewhere, or without meaning for a provider. */
const supported: readonly string[] = [
  ...['model', 'input', 'instructions', 'stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['max_output_tokens', 'temperature', 'top_p', 'reasoning', 'text', 'service_tier', 'user', 'safety_identifier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'background'],
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

const otherFields = new Map<string, OwnField>([
  ['truncation', { isDefault: (value) => value === 'disabled' }],
  // Reasoning always comes encrypted, and the other parts have no place here.
  ['include', { isDefault: isEncryptedReasoning }],
  ['top_logprobs', { isDefault: (value) => value === 0, reason: '`top_logprobs` are not available for this model.' }],
  [
    'max_tool_calls',
    { reason: '`max_tool_calls` limits tools that a provider runs, which are not available for this model.' },
  ],
])
const supportedWithStore = [...supported, 'store']

function isEncryptedReasoning(value: unknown): boolean {
  return Array.isArray(value) && value.every((part) => part === 'reasoning.encrypted_content')
}
