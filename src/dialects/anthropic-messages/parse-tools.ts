// Tools as functions. Those that run at Anthropic, or whose schema is not published, are refused by their type.

import { tokenCount } from '../../kernel/usage.ts'
import type { JsonNode } from '../../wire/json-node.ts'
import type { Tool } from '../canonical/conversation.ts'
import { RequestFields, shownWord } from '../request/fields.ts'
import { clientTools } from './client-tools.ts'
import { markOf, type ParseContext } from './parse-context.ts'

/** Where the caller sets no limit. */
const searchesUsual = 10

const customFields: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
  'defer_loading',
  'eager_input_streaming',
  'allowed_callers',
  'input_examples',
])

/** Of tools whose schema is known by their type. */
const clientToolFields: ReadonlySet<string> = new Set([
  ...['type', 'name', 'cache_control', 'defer_loading', 'eager_input_streaming', 'allowed_callers'],
])

export function parseTools(list: readonly unknown[], raw: JsonNode | undefined, context: ParseContext): Tool[] {
  return list.flatMap((value, i) => {
    const fields = RequestFields.of(value, `/tools/${i}`)
    return parseTool(fields, () => raw?.element(i), context) ?? []
  })
}

/** undefined = refused once it is clear that the request goes to another dialect. */
export function parseTool(
  fields: RequestFields,
  node: () => JsonNode | undefined,
  context: ParseContext,
): Tool | undefined {
  warnLoadingHints(fields, context)
  requireDirectCalls(fields)
  const type = fields.optionalText('type') ?? 'custom'
  const place = { place: fields.at, ...markOf(fields) }
  if (type === 'custom') {
    fields.warnUnknown(customFields, context.warnings)
    const schema = fields.value('input_schema') === undefined ? undefined : fields.optionalObject('input_schema')
    const rawSchema = schema && (node()?.member('input_schema')?.text ?? fields.refuse('', 'A member stands twice.'))
    return {
      kind: 'function',
      name: toolName(fields),
      description: withExamples(fields, node),
      schema: rawSchema,
      strict: fields.optionalBoolean('strict'),
      ...place,
    }
  }
  const known = clientTools.get(type)
  if (known) {
    fields.warnUnknown(clientToolFields, context.warnings)
    const name = fields.optionalText('name') ?? known.name
    return { kind: 'function', name, description: known.description, schema: known.schema, strict: undefined, ...place }
  }
  context.unsupported.push({
    field: fields.at,
    refuse: true,
    addsInput: true,
    ...(type.startsWith('web_search') && { maxSearches: tokenCount(fields.value('max_uses')) ?? searchesUsual }),
    reason: `The tool type \`${type}\` is only available where Anthropic's Messages API serves the model; remove it from \`tools\` or choose such a model.`,
  })
  return undefined
}

function toolName(fields: RequestFields): string {
  const name = fields.text('name')
  return name === '' ? fields.refuse('name', 'A tool needs a name.') : name
}

/** Every tool is sent at once, and its input as the provider streams it. */
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

function withExamples(fields: RequestFields, node: () => JsonNode | undefined): string | undefined {
  const description = fields.optionalText('description')
  const examples = fields.optionalList('input_examples') ?? []
  if (examples.length === 0) return description
  const raw = node()?.member('input_examples')
  const lines = examples.map((_, i) => raw?.element(i)?.text ?? '')
  return [...(description ? [description, ''] : []), 'Examples of input:', ...lines].join('\n')
}
