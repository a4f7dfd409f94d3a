// Parses a Responses body into a Conversation. Warns about omissions, refuses what it cannot interpret, and checks
// nothing that depends on the model.

import type { Failure } from '../../../kernel/failure.ts'
import { utf8Text } from '../../../wire/bytes.ts'
import { type Conversation, efforts, type OutputFormat, type ReasoningWish } from '../../canonical/conversation.ts'
import type { Envelope, ParsedRequest } from '../../canonical/translation.ts'
import { createParseContext, type ParseContext, RequestFields, readRequest, shownWord } from '../../request/fields.ts'
import { parseItems } from './parse-items.ts'
import { parseToolChoice, parseTools } from './parse-tools.ts'

export function parseRequest(envelope: Envelope): ParsedRequest | Failure {
  return readRequest(() => {
    const body = RequestFields.of(JSON.parse(utf8Text(envelope.body, 0, envelope.body.length)), '')
    const context = createParseContext(envelope)
    const { tools, callForms } = parseTools(body, context)
    const conversation = parseConversation(body, envelope, tools, context)
    return { conversation, callForms, warnings: context.warnings.list }
  })
}

function parseConversation(
  body: RequestFields,
  envelope: Envelope,
  tools: Conversation['tools'],
  context: ParseContext,
): Conversation {
  parseUnsupported(body, context)
  const text = body.optionalObject('text')
  const cacheOptions = body.optionalObject('prompt_cache_options')
  return {
    ...parseItems(body, context),
    tools,
    toolChoice: parseToolChoice(body),
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
    promptCacheOptions: cacheOptions && {
      written: context.rawText(cacheOptions.at),
      onlyMarked: cacheOptions.optionalText('mode') === 'explicit',
    },
    automaticCache: undefined,
    stream: envelope.stream,
    wantsStreamUsage: true,
    unsupported: context.unsupported,
    places: {
      system: '/instructions',
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

function parseReasoning(body: RequestFields): ReasoningWish | undefined {
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
const supported: ReadonlySet<string> = new Set([
  ...['model', 'input', 'instructions', 'stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['max_output_tokens', 'temperature', 'top_p', 'reasoning', 'text', 'service_tier', 'user', 'safety_identifier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'background'],
  // For the caller's records.
  ...['metadata', 'client_metadata'],
])

/** Values that change nothing. */
const defaults: Readonly<Record<string, (value: unknown) => boolean>> = {
  store: (value) => value === false,
  truncation: (value) => value === 'disabled',
  top_logprobs: (value) => value === 0,
  // Reasoning always comes encrypted, and the other parts have no place here.
  include: (value) => Array.isArray(value) && value.every((part) => part === 'reasoning.encrypted_content'),
}

const refusals: Readonly<Record<string, string>> = {
  top_logprobs: '`top_logprobs` are not available for this model.',
  max_tool_calls: '`max_tool_calls` limits tools that a provider runs, which are not available for this model.',
}

function parseUnsupported(body: RequestFields, { unsupported }: ParseContext): void {
  for (const name of body.names) {
    const value = body.value(name)
    if (value === undefined || supported.has(name)) continue
    if (Object.hasOwn(defaults, name) && defaults[name]?.(value)) continue
    const reason = Object.hasOwn(refusals, name) ? refusals[name] : undefined
    unsupported.push({ field: body.pointer(name), refuse: reason !== undefined, reason })
  }
}
