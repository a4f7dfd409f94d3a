// Parses a Chat Completions body into a Conversation. Warns about omissions, refuses what it cannot interpret, and
// checks nothing that depends on the model.

import type { Failure } from '../../../kernel/failure.ts'
import {
  type Conversation,
  efforts,
  type Pointers,
  type RawJson,
  type ReasoningSettings,
  type Sampling,
  summaryWord,
  type Tool,
  type ToolChoice,
} from '../../canonical/conversation.ts'
import { isRecord } from '../../canonical/json.ts'
import type { ParsedRequest, SentRequest } from '../../canonical/translation.ts'
import { breakpointOf } from '../../request/cache-marks.ts'
import {
  collectUnsupported,
  type OwnFields,
  type ParseContext,
  parseBody,
  type RequestFields,
  routingMembers,
  shownWord,
  wrongType,
} from '../../request/fields.ts'
import {
  endUserPointer,
  isUsualRetention,
  nestedGrammar,
  parseFormat,
  parseServing,
} from '../../request/parse-openai.ts'
import { parseMessages } from './parse-messages.ts'

export function parseRequest(sent: SentRequest): ParsedRequest | Failure {
  return parseBody(sent, (body, context) => {
    const conversation = parseConversation(body, sent, context)
    return { conversation, warnings: context.warnings.list }
  })
}

function parseConversation(body: RequestFields, sent: SentRequest, context: ParseContext): Conversation {
  const reasoning = parseReasoning(body)
  collectUnsupported(body, supported, context, otherFields)
  for (const [name, known] of Object.entries(knownInside)) {
    if (isRecord(body.value(name))) collectUnsupported(body.optionalObject(name), known, context)
  }
  noteCapPair(body, context)
  return {
    ...parseMessages(body, context),
    tools: parseTools(body, context),
    ...parseToolChoice(body),
    sampling: parseSampling(body, context),
    outputCap: sent.envelope.outputCap,
    stop: parseStop(body, context),
    reasoning: reasoning?.settings,
    outputFormat: parseFormat(body.optionalObject('response_format'), true, context),
    ...parseServing(body, context),
    verbosity: body.optionalWord('verbosity', ['low', 'medium', 'high']),
    automaticCache: breakpointOf(body, context).cacheMark,
    unsupported: context.unsupported,
    pointers: pointersOf(body, reasoning?.pointer),
  }
}

/** If two caps differ, the newer name counts. */
function noteCapPair(body: RequestFields, { warnings }: ParseContext): void {
  const older = body.optionalNumber('max_tokens')
  const newer = body.optionalNumber('max_completion_tokens')
  if (older !== undefined && newer !== undefined && older !== newer) warnings.add('max_tokens_ignored', '/max_tokens')
}

function pointersOf(body: RequestFields, reasoning: string | undefined): Pointers {
  return {
    system: '/messages/0',
    outputCap: body.value('max_completion_tokens') === undefined ? '/max_tokens' : '/max_completion_tokens',
    endUserId: endUserPointer(body),
    parallelTools: impliesOneCall(body) ? '/functions' : '/parallel_tool_calls',
    reasoning,
  }
}

// Parses everything except messages and tools: sampling, stop sequences, reasoning, output format, and the fields that
// only this dialect has. An explicit default counts as not set.

function parseSampling(body: RequestFields, context: ParseContext): Sampling {
  const topK = body.optionalNumber('top_k')
  const bias = body.optionalObject('logit_bias')
  return {
    temperature: body.numberWithin('temperature', 0, 2),
    topP: body.numberWithin('top_p', 0, 1),
    // In vLLM, -1 or 0 means all tokens.
    topK: topK !== undefined && topK > 0 ? topK : undefined,
    // 0 is the default of both penalties.
    frequencyPenalty: body.numberWithin('frequency_penalty', -2, 2) || undefined,
    presencePenalty: body.numberWithin('presence_penalty', -2, 2) || undefined,
    seed: body.optionalNumber('seed'),
    logitBias: bias && bias.names.length > 0 ? context.rawText(bias.at) : undefined,
  }
}

function parseStop(body: RequestFields, { warnings }: ParseContext): string[] {
  const value = body.value('stop')
  const stop = typeof value === 'string' ? [value] : body.texts('stop')
  if (stop.includes('')) warnings.add('stop_dropped', '/stop')
  return stop.filter((text) => text !== '')
}

/** The reasoning settings and where they were written. Of several fields the native one comes first. */
function parseReasoning(body: RequestFields): { settings: ReasoningSettings; pointer: string } | undefined {
  const native = body.optionalWord('reasoning_effort', efforts)
  const reasoning = body.optionalObject('reasoning')
  const thinking = body.optionalObject('thinking')
  const effort = native ?? reasoning?.optionalWord('effort', efforts)
  const budgetTokens =
    effort === undefined ? (tokens(reasoning, 'max_tokens') ?? tokens(thinking, 'budget_tokens')) : undefined
  const mode = effort === undefined ? modeOf(reasoning, thinking) : undefined
  const summary = reasoning?.optionalText('summary')
  const visible = visibility(body, reasoning) ?? (summary === undefined ? undefined : summary !== 'none')
  if (effort === undefined && budgetTokens === undefined && mode === undefined && visible === undefined)
    return undefined
  const written = native ? 'reasoning_effort' : reasoning ? 'reasoning' : thinking ? 'thinking' : 'include_reasoning'
  return { settings: { effort, budgetTokens, mode, visible, summary: summaryWord(summary) }, pointer: `/${written}` }
}

function tokens(fields: RequestFields | undefined, name: string): number | undefined {
  const value = fields?.optionalNumber(name)
  if (value === undefined || (Number.isInteger(value) && value >= 0)) return value
  return fields?.refuse(name, `\`${name}\` must be a whole number of tokens.`)
}

function modeOf(reasoning: RequestFields | undefined, thinking: RequestFields | undefined): ReasoningSettings['mode'] {
  const type = thinking?.optionalWord('type', ['enabled', 'disabled', 'adaptive', 'auto', 'between_tools'])
  if (type === 'disabled') return 'off'
  if (type === 'between_tools') return 'between-tools'
  if (type === 'adaptive' || type === 'auto') return 'adaptive'
  const enabled = reasoning?.optionalBoolean('enabled') ?? (type === 'enabled' ? true : undefined)
  return enabled === undefined ? undefined : enabled ? 'on' : 'off'
}

function visibility(body: RequestFields, reasoning: RequestFields | undefined): boolean | undefined {
  const exclude = reasoning?.optionalBoolean('exclude')
  return exclude === undefined ? body.optionalBoolean('include_reasoning') : !exclude
}

// Fields without an equivalent in other dialects.

/** Parsed elsewhere, or without meaning for a provider. */
export const supported = [
  ...['model', 'messages', 'stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['functions', 'function_call', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'top_k'],
  ...['frequency_penalty', 'presence_penalty', 'seed', 'logit_bias', 'stop', 'response_format'],
  ...['reasoning_effort', 'reasoning', 'thinking', 'include_reasoning', 'verbosity', 'service_tier'],
  ...['user', 'safety_identifier', 'prompt_cache_key', 'promptCacheKey', 'prompt_cache_options', 'cache_control'],
  ...routingMembers,
]

/** Searches that hosts run at most if the caller sets no limit. */
const searching = { addsInput: true, maxSearches: 20 }

const isZero = (value: unknown) => value === 0
const isText = (value: unknown) => Array.isArray(value) && value.every((modality) => modality === 'text')

const otherFields: OwnFields = {
  n: {
    isDefault: (value) => value === 1,
    reason: 'This model gives one answer per request: leave out `n`, or send the request several times.',
  },
  logprobs: { reason: '`logprobs` are not available for this model.' },
  top_logprobs: { isDefault: isZero, reason: '`top_logprobs` are not available for this model.' },
  audio: { wantsAudio: true, reason: '`audio` output is not available for this model.' },
  modalities: {
    ...{ isDefault: isText, wantsAudio: true },
    reason: '`modalities` other than text are not available for this model.',
  },
  moderation: { reason: '`moderation` is not available for this model.' },
  web_search_options: { ...searching, reason: '`web_search_options` is not available for this model.' },
  plugins: searching,
  search_parameters: searching,
  web_search: searching,
  prompt_cache_retention: { isDefault: isUsualRetention },
  min_p: { isDefault: isZero },
  repetition_penalty: { isDefault: (value) => value === 1 },
}

/** Known members of settings that are objects; others are omitted with a warning. */
const knownInside: Readonly<Record<string, readonly string[]>> = {
  stream_options: ['include_usage'],
  reasoning: ['effort', 'max_tokens', 'enabled', 'exclude', 'summary'],
  thinking: ['type', 'budget_tokens'],
  response_format: ['type', 'json_schema'],
  // Also flat, as some clients send it.
  tool_choice: [
    ...['type', 'name', 'function', 'custom', 'tool', 'allowed_tools', 'mode', 'tools'],
    'disable_parallel_tool_use',
  ],
}

// Parses tools and the tool choice. Besides the documented form, accepts flat entries, entries in the form of Messages,
// and the legacy `functions`.

const marks = ['cache_control', 'prompt_cache_breakpoint']
const knownMembers = [
  ...marks,
  ...['type', 'function', 'custom', 'name', 'description', 'parameters', 'input_schema', 'strict', 'format'],
]

function parseTools(body: RequestFields, context: ParseContext): Tool[] {
  const legacy = body.objects('functions').map((entry) => parseFunction(entry, entry, context))
  return [...body.objects('tools').map((entry) => parseTool(entry, context)), ...legacy]
}

function parseTool(entry: RequestFields, context: ParseContext): Tool {
  entry.warnUnknown(knownMembers, context.warnings)
  const messagesShaped = entry.value('input_schema') !== undefined
  const type = entry.optionalText('type') ?? (messagesShaped || entry.value('function') ? 'function' : 'missing')
  if (type === 'custom' && !messagesShaped) return parseCustom(entry, context)
  if (type === 'function' || messagesShaped)
    return parseFunction(entry, entry.optionalObject('function') ?? entry, context)
  if (type === 'missing') return entry.missing('type')
  return entry.refuse('type', `The tool type ${shownWord(type)} is not available for this model.`)
}

/** `detail` holds the name and schema; in flat entries it is the entry itself. */
function parseFunction(entry: RequestFields, detail: RequestFields, context: ParseContext): Tool {
  const schemaName = detail.value('input_schema') === undefined ? 'parameters' : 'input_schema'
  const schema = detail.optionalObject(schemaName)
  if (detail !== entry) detail.warnUnknown(knownMembers, context.warnings)
  return {
    kind: 'function',
    name: detail.filledText('name'),
    description: detail.optionalText('description'),
    schema: schema && context.rawText(schema.at),
    strict: detail.optionalBoolean('strict'),
    pointer: entry.at,
    // Some clients mark the detail instead of the entry.
    ...breakpointOf(detail, context),
    ...breakpointOf(entry, context),
  }
}

function parseCustom(entry: RequestFields, context: ParseContext): Tool {
  const detail = entry.optionalObject('custom') ?? entry
  if (detail !== entry) detail.warnUnknown(knownMembers, context.warnings)
  const format = detail.optionalObject('format')
  return {
    kind: 'custom',
    name: detail.filledText('name'),
    description: detail.optionalText('description'),
    grammar: format && parseGrammar(format, context),
    pointer: entry.at,
    ...breakpointOf(entry, context),
  }
}

/** Reads `format`; flat entries have the grammar's members directly in it. */
function parseGrammar(format: RequestFields, context: ParseContext): RawJson | undefined {
  if (format.optionalWord('type', ['text', 'grammar']) !== 'grammar') return undefined
  return format.value('grammar') === undefined ? nestedGrammar(format) : context.rawText(format.at)
}

const choiceWords: Readonly<Record<string, ToolChoice>> = {
  none: { kind: 'none' },
  auto: { kind: 'auto' },
  required: { kind: 'required' },
  any: { kind: 'required' },
}

function parseToolChoice(body: RequestFields): Pick<Conversation, 'toolChoice' | 'parallelTools' | 'oneCallByForm'> {
  if (!impliesOneCall(body)) return choiceOf(body, body.optionalBoolean('parallel_tool_calls'))
  return { ...choiceOf(body, false), oneCallByForm: true }
}

function choiceOf(body: RequestFields, parallelTools: boolean | undefined) {
  const name = body.value('tool_choice') === undefined ? 'function_call' : 'tool_choice'
  const value = body.value(name)
  if (value === undefined) return { toolChoice: undefined, parallelTools }
  if (typeof value === 'string') return { toolChoice: choiceOfWord(body, name, value), parallelTools }
  if (typeof value !== 'object') return wrongType(body.pointer(name), 'a string or an object', value)
  const choice = body.requiredObject(name)
  const single = choice.optionalBoolean('disable_parallel_tool_use')
  return { toolChoice: choiceOfObject(choice), parallelTools: parallelTools ?? (single ? false : undefined) }
}

/**
 * The legacy response format has room for one call only. An explicit `parallel_tool_calls: false` is the caller's own
 * choice.
 */
function impliesOneCall(body: RequestFields): boolean {
  const offersLegacyOnly = body.objects('functions').length > 0 && body.objects('tools').length === 0
  return offersLegacyOnly && body.optionalBoolean('parallel_tool_calls') !== false
}

function choiceOfWord(body: RequestFields, name: string, word: string): ToolChoice {
  if (Object.hasOwn(choiceWords, word)) return choiceWords[word] as ToolChoice
  return body.refuse(name, `\`${name}\` must be none, auto, required, or an object that names a tool.`)
}

function choiceOfObject(choice: RequestFields): ToolChoice {
  // Legacy: only {name}. Messages: {type: 'tool', name}.
  const type = choice.optionalText('type') ?? 'tool'
  switch (type) {
    case 'tool':
    case 'function':
    case 'custom':
      return { kind: 'named', name: (choice.optionalObject(type) ?? choice).filledText('name') }
    case 'allowed_tools': {
      const allowed = choice.optionalObject('allowed_tools') ?? choice
      const names = allowed.objects('tools').map((tool) => {
        const kind = tool.optionalText('type') ?? 'function'
        const inner = kind === 'function' || kind === 'custom' ? tool.optionalObject(kind) : undefined
        return (inner ?? tool).filledText('name')
      })
      if (names.length === 0) return allowed.refuse('tools', 'No tool is allowed; name at least one.')
      return { kind: 'allowed', names, force: allowed.optionalWord('mode', ['auto', 'required']) === 'required' }
    }
    default:
      return choiceOfWord(choice, 'type', type)
  }
}
