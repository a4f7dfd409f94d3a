// Parses tools and the tool choice. Besides the documented form, accepts flat entries, entries in the form of Messages,
// and the legacy `functions`.

import type { RawJson, Tool, ToolChoice } from '../../canonical/conversation.ts'
import { jsonObject, jsonString } from '../../canonical/json.ts'
import { breakpointOf } from '../../request/cache-marks.ts'
import { type ParseContext, type RequestFields, shownWord, wrongType } from '../../request/fields.ts'

const marks = ['cache_control', 'prompt_cache_breakpoint']
const knownMembers: ReadonlySet<string> = new Set([
  ...marks,
  ...['type', 'function', 'custom', 'name', 'description', 'parameters', 'input_schema', 'strict', 'format'],
])

export function parseTools(body: RequestFields, context: ParseContext): Tool[] {
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
    name: toolName(detail),
    description: detail.optionalText('description'),
    schema: schema && context.rawText(schema.at),
    strict: detail.optionalBoolean('strict'),
    place: entry.at,
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
    name: toolName(detail),
    description: detail.optionalText('description'),
    grammar: format && parseGrammar(format, context),
    place: entry.at,
    ...breakpointOf(entry, context),
  }
}

/** Reads `format`; flat entries have the grammar's members directly in it. */
function parseGrammar(format: RequestFields, context: ParseContext): RawJson | undefined {
  if (format.optionalWord('type', ['text', 'grammar']) !== 'grammar') return undefined
  if (format.value('grammar') !== undefined) return context.rawText(format.at)
  const grammar = jsonObject({
    definition: jsonString(format.text('definition')),
    syntax: jsonString(format.text('syntax')),
  })
  return jsonObject({ type: '"grammar"', grammar })
}

function toolName(detail: RequestFields): string {
  const name = detail.text('name')
  return name === '' ? detail.missing('name') : name
}

const choiceWords: Readonly<Record<string, ToolChoice>> = {
  none: { kind: 'none' },
  auto: { kind: 'auto' },
  required: { kind: 'required' },
  any: { kind: 'required' },
}

interface ParsedToolChoice {
  readonly toolChoice: ToolChoice | undefined
  readonly parallelTools: boolean | undefined
  readonly oneCallByForm?: boolean
}

export function parseToolChoice(body: RequestFields): ParsedToolChoice {
  if (!impliesOneCall(body)) return choiceOf(body, body.optionalBoolean('parallel_tool_calls'))
  return { ...choiceOf(body, false), oneCallByForm: true }
}

function choiceOf(body: RequestFields, parallelTools: boolean | undefined): ParsedToolChoice {
  const name = body.value('tool_choice') === undefined ? 'function_call' : 'tool_choice'
  const value = body.value(name)
  if (value === undefined) return { toolChoice: undefined, parallelTools }
  if (typeof value === 'string') return { toolChoice: choiceOfWord(body, name, value), parallelTools }
  if (typeof value !== 'object') return wrongType(body.pointer(name), 'a string or an object', value)
  const choice = body.optionalObject(name) ?? body.missing(name)
  const single = choice.optionalBoolean('disable_parallel_tool_use')
  return { toolChoice: choiceOfObject(choice), parallelTools: parallelTools ?? (single ? false : undefined) }
}

/**
 * The legacy response format has room for one call only. An explicit `parallel_tool_calls: false` is the caller's own
 * choice.
 */
export function impliesOneCall(body: RequestFields): boolean {
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
      return { kind: 'named', name: toolName(choice.optionalObject(type) ?? choice) }
    case 'allowed_tools': {
      const allowed = choice.optionalObject('allowed_tools') ?? choice
      const names = allowed.objects('tools').map((tool) => {
        const kind = tool.optionalText('type') ?? 'function'
        return toolName((kind === 'function' || kind === 'custom' ? tool.optionalObject(kind) : undefined) ?? tool)
      })
      if (names.length === 0) return allowed.refuse('tools', 'No tool is allowed; name at least one.')
      return { kind: 'allowed', names, force: allowed.optionalWord('mode', ['auto', 'required']) === 'required' }
    }
    default:
      return choiceOfWord(choice, 'type', type)
  }
}
