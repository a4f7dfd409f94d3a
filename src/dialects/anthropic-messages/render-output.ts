// The form of the answer: a schema the provider holds the model to, or a tool of ours that the model must call with the
// answer, where there is no such thing.

import type { Conversation, RawJson } from '../canonical/conversation.ts'
import { placeOf } from '../canonical/places.ts'
import { jsonObject, jsonString } from '../request/json-text.ts'
import { refuseAt } from '../request/request-fields.ts'
import { jsonTool, type ToolContext, type WireTool } from './render-tools.ts'
import { subsetSchema } from './schema-subset.ts'

export interface WireOutput {
  readonly format?: RawJson
  readonly tool?: WireTool
}

export function chooseOutput(conversation: Conversation, { rules, names, warnings }: ToolContext): WireOutput {
  const format = conversation.outputFormat
  if (format?.kind !== 'json-schema') return {}
  const place = placeOf(conversation, 'outputFormat')
  if (rules.jsonOutput !== undefined && rules.jsonOutput !== 'schema') {
    if (rules.forcedToolChoice === false) refuseAt(place, 'This model cannot be held to a JSON schema.')
    return { tool: jsonTool(names.unused('json'), format.schema, format.description, place) }
  }
  if (format.description) warnings.add('description_dropped', place)
  const result = subsetSchema(format.schema)
  if (typeof result === 'string') return refuseAt(place, `The schema of the output format cannot be used: ${result}.`)
  if (result.loosened) warnings.add('output_schema_loosened', place)
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
