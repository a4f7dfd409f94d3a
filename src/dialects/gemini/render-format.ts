// The form the answer must have: natively where the target can, through a hidden function or an instruction where not.

import { type Conversation, type OutputFormat, placeOf, type RawJson } from '../canonical/conversation.ts'
import { refuseAt } from '../request/fields.ts'
import type { HiddenTool } from './render-tools.ts'
import { type Rendering, thinksByLevel } from './rendering.ts'
import { subsetSchema } from './schema-subset.ts'
import { toolParameters } from './tool-parameters.ts'

export interface RenderedFormat {
  /** Members of generationConfig. */
  readonly members: readonly (readonly [name: string, value: RawJson | undefined])[]
  readonly hiddenTool?: HiddenTool
  /** To stand at the end of the system instruction. */
  readonly instruction?: string
}

const json = ['responseMimeType', '"application/json"'] as const

export function renderFormat(conversation: Conversation, rendering: Rendering): RenderedFormat {
  const { outputFormat, tools } = conversation
  if (!outputFormat) return { members: [] }
  const { rules, warnings } = rendering
  const place = placeOf(conversation, 'outputFormat')
  // Older models refuse a JSON form beside functions.
  const isEmulated = rules.jsonOutput === 'emulated' || (tools.length > 0 && !thinksByLevel(rules))
  if (isEmulated) return { members: [], hiddenTool: hiddenTool(outputFormat, rendering, place) }
  if (outputFormat.kind === 'json-object') return { members: [json] }
  if (outputFormat.description) warnings.add('description_dropped', place)
  if (rules.jsonOutput === 'object') {
    warnings.add('json_schema_emulated', place)
    const instruction = `Answer with a single JSON object that follows this JSON Schema:\n${outputFormat.schema}`
    return { members: [json], instruction }
  }
  const result = subsetSchema(outputFormat.schema, rendering.schemas)
  if (typeof result === 'string') return refuseAt(place, `The schema of the output format cannot be used: ${result}.`)
  if (result.loosened) warnings.add('output_schema_loosened', place)
  return { members: [json, ['responseJsonSchema', result.schema]] }
}

function hiddenTool(format: OutputFormat, { rules, names, warnings, schemas }: Rendering, place: string): HiddenTool {
  if (rules.forcedToolChoice === false) return refuseAt(place, 'This model cannot be held to a JSON form.')
  const isSchema = format.kind === 'json-schema'
  const parameters = toolParameters(isSchema ? format.schema : '{"type":"object"}', schemas)
  if (typeof parameters === 'string') {
    return refuseAt(place, `The output format cannot be used with this model: ${parameters}.`)
  }
  if (parameters.loosened) warnings.add('output_schema_loosened', place)
  const description =
    (isSchema ? format.description : undefined) || 'Call this to answer; its arguments are the answer.'
  return { name: names.unused('json'), parameters: parameters.schema ?? '{"type":"object"}', description }
}
