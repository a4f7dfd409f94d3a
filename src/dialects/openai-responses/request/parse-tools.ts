// Parses tools and the tool choice. Tools in a namespace get a joined name; `callForms` says how their calls are written.

import type { RawJson, Tool, ToolChoice } from '../../canonical/conversation.ts'
import { jsonObject, jsonString } from '../../canonical/json.ts'
import type { CallForm } from '../../canonical/translation.ts'
import { type ParseContext, type RequestFields, shownWord, wrongType } from '../../request/fields.ts'
import { isStrictSchema } from '../../request/schema.ts'

export interface ParsedTools {
  readonly tools: readonly Tool[]
  /** By canonical name, for tools whose calls are not written under it as function or custom calls. */
  readonly callForms: ReadonlyMap<string, CallForm>
}

const joint = '__'

export function flatName(namespace: string | undefined, name: string): string {
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

export function parseTools(body: RequestFields, context: ParseContext): ParsedTools {
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
        tools.push({ kind: 'function', name: type, description, schema, strict: undefined, place: entry.at })
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
  if (!/^[a-z0-9_]{1,60}$/.test(type)) entry.refuse('type', `The tool type ${shownWord(type)} does not exist.`)
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
    name: flatName(namespace, toolName(entry)),
    description: entry.optionalText('description'),
    schema,
    // Strict is the default here, as far as the schema allows it.
    strict: entry.optionalBoolean('strict') ?? (schema !== undefined && isStrictSchema(schema) ? true : undefined),
    place: entry.at,
  }
}

const named = ['type', 'name', 'description', 'defer_loading']
const functionMembers: ReadonlySet<string> = new Set([...named, 'parameters', 'strict'])
const customMembers: ReadonlySet<string> = new Set([...named, 'format'])
const namespaceMembers: ReadonlySet<string> = new Set([...named, 'tools'])
const shellMembers: ReadonlySet<string> = new Set(['type'])
const formatMembers: ReadonlySet<string> = new Set(['type', 'syntax', 'definition'])
const choiceMembers: ReadonlySet<string> = new Set(['type', 'namespace', 'name', 'mode', 'tools'])

function parseCustom(entry: RequestFields, namespace: string | undefined, context: ParseContext): Tool {
  entry.warnUnknown(customMembers, context.warnings)
  const format = entry.optionalObject('format')
  return {
    kind: 'custom',
    name: flatName(namespace, toolName(entry)),
    description: entry.optionalText('description'),
    grammar: format && parseGrammar(format, context),
    isGrammarAdvice: true,
    place: entry.at,
  }
}

/** In the form of Chat Completions, which is the canonical one. */
function parseGrammar(format: RequestFields, { warnings }: ParseContext): RawJson | undefined {
  format.warnUnknown(formatMembers, warnings)
  if (format.optionalWord('type', ['text', 'grammar']) !== 'grammar') return undefined
  const grammar = jsonObject({
    definition: jsonString(format.text('definition')),
    syntax: jsonString(format.text('syntax')),
  })
  return jsonObject({ type: '"grammar"', grammar })
}

function toolName(entry: RequestFields): string {
  const name = entry.text('name')
  return name === '' ? entry.missing('name') : name
}

export function parseToolChoice(body: RequestFields, { warnings }: ParseContext): ToolChoice | undefined {
  const value = body.value('tool_choice')
  if (value === undefined) return undefined
  if (typeof value === 'string') {
    return { kind: body.optionalWord('tool_choice', ['none', 'auto', 'required']) ?? 'auto' }
  }
  if (typeof value !== 'object') return wrongType('/tool_choice', 'a string or an object', value)
  const choice = body.optionalObject('tool_choice') ?? body.missing('tool_choice')
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
  return flatName(entry.optionalText('namespace'), toolName(entry))
}
