// Tools as the provider takes them: functions with an object schema. A tool for free text becomes a function with one
// string, which the reply is read back from.

import type { CacheMark, FunctionTool, OutputFormat, RawJson, Tool } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { refuseAt, shownWord } from '../request/fields.ts'
import { toolSchema } from '../request/schema.ts'
import type { ArgumentNames, ToolNames } from '../request/tools.ts'
import type { WarningList } from '../request/warnings.ts'
import type { MergeBudget } from './merge-all-of.ts'
import { fitsSubset } from './schema-subset.ts'
import type { StrictBudget } from './strict-budget.ts'
import { writeMark } from './wire-block.ts'

export interface WireTool {
  /** The caller's. */
  readonly name: string
  readonly members: readonly (readonly [name: string, value: RawJson | undefined])[]
  mark: CacheMark | undefined
}

export interface ToolContext {
  readonly rules: TargetRules
  readonly names: ToolNames
  readonly argumentNames: ArgumentNames
  readonly warnings: WarningList
  /** What is left for strict tools once the form of the answer has had its part. */
  readonly strictBudget: StrictBudget
  readonly merges: MergeBudget
}

export function renderTools(tools: readonly Tool[], context: ToolContext): WireTool[] {
  const { toolsMax } = context.rules
  if (toolsMax !== undefined && tools.length > toolsMax) {
    refuseAt('/tools', `This model takes at most ${toolsMax} tools; the request has ${tools.length}.`)
  }
  const seen = new Set<string>()
  return tools.map((tool, i) => {
    const place = tool.place ?? `/tools/${i}`
    if (seen.has(tool.name)) refuseAt(place, `The tool ${shownWord(tool.name)} stands twice in \`tools\`.`)
    seen.add(tool.name)
    if (tool.kind === 'function') return renderFunction(tool, place, context)
    if (tool.grammar !== undefined) {
      refuseAt(place, `The grammar of the custom tool ${shownWord(tool.name)} cannot be enforced by this model.`)
    }
    return wireTool(tool, inputOnly, tool.description, context)
  })
}

const inputOnly = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'

function renderFunction(tool: FunctionTool, place: string, context: ToolContext): WireTool {
  const { rules, warnings, strictBudget, merges } = context
  const { schema, note } = objectSchema(tool, place, warnings)
  const wanted = tool.strict === true
  const strict = wanted && rules.strictTools === true && fitsSubset(schema, merges) && strictBudget.takeTool(schema)
  if (wanted && !strict) warnings.add('strict_dropped', place)
  const description = note === undefined ? tool.description : [tool.description, note].filter(Boolean).join('\n\n')
  const rendered = wireTool(tool, schema, description, context)
  return strict ? { ...rendered, members: [...rendered.members, ['strict', 'true']] } : rendered
}

function objectSchema(tool: FunctionTool, place: string, warnings: WarningList): { schema: RawJson; note?: string } {
  const result = toolSchema(tool.schema)
  if (typeof result === 'string') return refuseAt(place, `The tool ${shownWord(tool.name)} cannot be used: ${result}.`)
  if (result.folded) warnings.add('tool_schema_merged', place)
  return result
}

function wireTool(
  tool: Tool,
  schema: RawJson,
  description: string | undefined,
  { names, argumentNames }: ToolContext,
): WireTool {
  const name = names.sent(tool.name)
  return {
    name: tool.name,
    members: [
      ['name', jsonString(name)],
      ['description', description ? jsonString(description) : undefined],
      ['input_schema', argumentNames.inSchema(name, schema)],
    ],
    mark: tool.cacheMark,
  }
}

/** The tool that stands for an answer in JSON where the model has no other way to be held to a schema. */
export function jsonTool(
  { schema, description }: OutputFormat & { readonly kind: 'json-schema' },
  place: string,
  { names, argumentNames }: ToolContext,
): WireTool {
  const name = names.unused('json')
  const result = toolSchema(schema)
  if (typeof result === 'string') return refuseAt(place, `The output format cannot be used with this model: ${result}.`)
  const text = [description || 'Call this tool to answer; its input is the answer.', result.note].filter(Boolean)
  return {
    name,
    members: [
      ['name', jsonString(name)],
      ['description', jsonString(text.join('\n\n'))],
      ['input_schema', argumentNames.inSchema(name, result.schema)],
    ],
    mark: undefined,
  }
}

export function writeTool({ members, mark }: WireTool): RawJson {
  return jsonObject([...members, ['cache_control', writeMark(mark)]])
}
