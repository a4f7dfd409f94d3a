// The form of the answer: a schema the provider holds the model to, or a tool of ours that the model must call with the
// answer, where there is no such thing.

import { type Conversation, placeOf, type RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt } from '../request/fields.ts'
import { toolSchema } from '../request/schema.ts'
import { jsonTool, type ToolContext, type WireTool } from './render-tools.ts'
import { subsetSchema } from './schema-subset.ts'

export interface WireOutput {
  readonly format?: RawJson
  readonly tool?: WireTool
}

/**
 * What is taken natively counts against what strict tools may hold, so that this comes before them. `mustCallOwn`: the
 * model must call one of several tools of the caller's, and could call ours instead.
 */
export function chooseOutput(
  conversation: Conversation,
  context: ToolContext,
  { mustCallOwn }: { readonly mustCallOwn: boolean },
): WireOutput {
  const { rules, warnings } = context
  const format = conversation.outputFormat
  if (format?.kind !== 'json-schema') return {}
  const place = placeOf(conversation, 'outputFormat')
  const byTool = () => ({ tool: jsonTool(format, place, context) })
  if (rules.jsonOutput !== undefined && rules.jsonOutput !== 'schema') {
    if (rules.forcedToolChoice === false) refuseAt(place, 'This model cannot be held to a JSON schema.')
    return byTool()
  }
  const result = subsetSchema(format.schema, context.merges)
  const isTaken = 'schema' in result && (!result.tightened || mustCallOwn) && context.strictBudget.take(result.schema)
  // A tool takes objects with any fields, also recursive ones, and is no part of what the provider compiles.
  const canBeTool = !isTaken && rules.forcedToolChoice !== false && !('why' in result && !result.isAudio)
  const input = canBeTool ? toolSchema(format.schema) : undefined
  if (typeof input === 'object') {
    if (format.strict) warnings.add('strict_dropped', place)
    if (input.folded) warnings.add('output_schema_loosened', place)
    return byTool()
  }
  if ('why' in result) return refuseAt(place, `The schema of the output format cannot be used: ${result.why}.`)
  if (format.description) warnings.add('description_dropped', place)
  if (result.loosened) warnings.add('output_schema_loosened', place)
  if (result.tightened) warnings.add('output_schema_tightened', place)
  return {
    format: jsonObject([
      ['type', '"json_schema"'],
      ['schema', result.schema],
    ]),
  }
}

export function writeOutputConfig(effort: string | undefined, { format }: WireOutput): RawJson | undefined {
  if (effort === undefined && format === undefined) return undefined
  return jsonObject([
    ['effort', effort === undefined ? undefined : jsonString(effort)],
    ['format', format],
  ])
}
