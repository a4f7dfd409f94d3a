// Parses tools into functions. Tools that run at Anthropic, or whose schema is not published, are refused by type.

import { tokenCount } from '../../../kernel/usage.ts'
import type { Tool } from '../../canonical/conversation.ts'
import { markOf } from '../../request/cache-marks.ts'
import { type ParseContext, type RequestFields, shownWord } from '../../request/fields.ts'

/** If the caller sets no limit. */
const defaultMaxSearches = 10

/** Members of tools whose type implies the schema. */
const clientToolFields = [
  ...['type', 'name', 'cache_control', 'defer_loading', 'eager_input_streaming', 'allowed_callers'],
]
const customFields = [...[...clientToolFields, 'description', 'input_schema', 'strict', 'input_examples']]

/** undefined = recorded as unsupported, and refused if the request goes to another dialect. */
export function parseTool(fields: RequestFields, context: ParseContext): Tool | undefined {
  warnLoadingHints(fields, context)
  requireDirectCalls(fields)
  const type = fields.optionalText('type') ?? 'custom'
  const shared = { pointer: fields.at, ...markOf(fields) }
  if (type === 'custom') {
    fields.warnUnknown(customFields, context.warnings)
    const schema = fields.optionalObject('input_schema')
    return {
      kind: 'function',
      name: toolName(fields),
      description: withExamples(fields, context),
      schema: schema && context.rawText(schema.at),
      strict: fields.optionalBoolean('strict'),
      ...shared,
    }
  }
  const known = clientTools.get(type)
  if (known) {
    fields.warnUnknown(clientToolFields, context.warnings)
    const name = fields.optionalText('name') ?? known.name
    return { kind: 'function', ...known, name, ...shared }
  }
  context.unsupported.push({
    field: fields.at,
    refuse: true,
    addsInput: true,
    ...(type.startsWith('web_search') && { maxSearches: tokenCount(fields.value('max_uses')) ?? defaultMaxSearches }),
    reason: `The tool type \`${type}\` is only available where Anthropic's Messages API serves the model; remove it from \`tools\` or choose such a model.`,
  })
  return undefined
}

function toolName(fields: RequestFields): string {
  const name = fields.text('name')
  return name === '' ? fields.refuse('name', 'A tool needs a name.') : name
}

/** All tools are sent at once, and their input streams as the provider sends it. */
function warnLoadingHints(fields: RequestFields, { warnings }: ParseContext): void {
  for (const name of ['defer_loading', 'eager_input_streaming']) {
    if (fields.optionalBoolean(name)) warnings.add(`${name}_dropped`, fields.pointer(name))
  }
}

function requireDirectCalls(fields: RequestFields): void {
  const callers = fields.optionalList('allowed_callers')
  if (!callers || callers.includes('direct')) return
  const name = fields.optionalText('name') ?? fields.optionalText('type')
  fields.refuse('allowed_callers', `The tool ${shownWord(name)} may only be called by code that runs at Anthropic.`)
}

function withExamples(fields: RequestFields, context: ParseContext): string | undefined {
  const description = fields.optionalText('description')
  const examples = fields.optionalList('input_examples') ?? []
  if (examples.length === 0) return description
  const lines = examples.map((_, i) => context.rawText(`${fields.pointer('input_examples')}/${i}`))
  return [...(description ? [description, ''] : []), 'Examples of input:', ...lines].join('\n')
}

// Tools added and removed during the conversation. Other dialects have one list per request, so the changes are
// collected and applied to that list.

export type ToolChange =
  | { readonly kind: 'define'; readonly name: string; readonly tool: Tool }
  | { readonly kind: 'offer' | 'withdraw'; readonly name: string }

/** Empty if it concerns something that this gateway does not offer. */
export function parseToolChange(block: RequestFields, context: ParseContext): ToolChange[] {
  const type = block.text('type')
  if (type !== 'tool_addition' && type !== 'tool_removal') {
    return block.refuse('type', `A ${shownWord(type)} block in a system message is not available for this model.`)
  }
  context.warnings.add(`${type}_merged`, block.at)
  const subject = block.requiredObject('tool')
  const subjectType = subject.text('type')
  if (subjectType === 'tool_reference') {
    return [{ kind: type === 'tool_addition' ? 'offer' : 'withdraw', name: subject.text('name') }]
  }
  if (subjectType !== 'tool_definition') return []
  const tool = parseTool(subject.requiredObject('definition'), context)
  return tool ? [{ kind: 'define', name: tool.name, tool }] : []
}

/** The tools offered at the end of the conversation. */
export function applyToolChanges(tools: readonly Tool[], changes: readonly ToolChange[]): Tool[] {
  const known = new Map(tools.map((tool) => [tool.name, tool]))
  const withdrawn = new Set<string>()
  for (const change of changes) {
    if (change.kind === 'define') known.set(change.name, change.tool)
    if (change.kind === 'withdraw') withdrawn.add(change.name)
    else withdrawn.delete(change.name)
  }
  return [...known.values()].filter(({ name }) => !withdrawn.has(name))
}

// Tools that the caller runs but describes only by a dated type, because Claude was trained on them. For other models
// they become functions with the schemas below. Sources: the parameter lists in Anthropic's docs (bash, text editor and
// memory tool) and the command types of @anthropic-ai/sdk 1.8.0, read 2026-11-15. To add one: the type, its usual name,
// one sentence, and the documented parameters, `required` only if every command needs it.

function clientTool(name: string, description: string, properties: object, required?: readonly string[]) {
  return { name, description, schema: JSON.stringify({ type: 'object', properties, required }) }
}

const text = (description: string) => ({ type: 'string', description })
const commands = (...words: string[]) => ({ type: 'string', enum: words })
const path = text('Path of the file or directory.')
const editParameters = {
  view_range: {
    type: 'array',
    items: { type: 'integer' },
    description: 'For view: first and last line, counted from 1; -1 as the last means to the end of the file.',
  },
  file_text: text('For create: the content of the new file.'),
  old_str: text('For str_replace: the text to replace; it must match exactly one place.'),
  insert_line: { type: 'integer', description: 'For insert: the line after which to insert; 0 is the beginning.' },
}
const replaceParameters = {
  new_str: text('For str_replace: the new text.'),
  insert_text: text('For insert: the text to insert.'),
}
const editing = 'Views, creates and edits text files.'

const bash = clientTool('bash', 'Runs a command in a bash shell that keeps its state between calls.', {
  command: text('The command to run. Not needed with restart.'),
  restart: { type: 'boolean', description: 'true restarts the shell.' },
})

/** Up to 2025-01-24: insert takes its text as new_str, and the last edit can be undone. */
const undoingEditor = clientTool(
  'str_replace_editor',
  editing,
  {
    command: commands('view', 'create', 'str_replace', 'insert', 'undo_edit'),
    ...{ path, ...editParameters },
    new_str: text('For str_replace and insert: the new text.'),
  },
  ['command', 'path'],
)

const editor = clientTool(
  'str_replace_based_edit_tool',
  editing,
  { command: commands('view', 'create', 'str_replace', 'insert'), path, ...editParameters, ...replaceParameters },
  ['command', 'path'],
)

const memory = clientTool(
  'memory',
  'Keeps notes in files under /memories that last beyond this conversation.',
  {
    command: commands('view', 'create', 'str_replace', 'insert', 'delete', 'rename'),
    path: text('Path under /memories; not for rename.'),
    ...{ ...editParameters, ...replaceParameters },
    old_path: text('For rename: the present path.'),
    new_path: text('For rename: the new path.'),
  },
  ['command'],
)

const clientTools = new Map([
  ['bash_20241022', bash],
  ['bash_20250124', bash],
  ['text_editor_20241022', undoingEditor],
  ['text_editor_20250124', undoingEditor],
  ['text_editor_20250429', editor],
  ['text_editor_20250728', editor],
  ['memory_20250818', memory],
])
