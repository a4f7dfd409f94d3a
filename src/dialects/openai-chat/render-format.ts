// The form the answer must have: natively where the target can, through a hidden tool or an instruction where not.

import type { Conversation, OutputFormat, RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt } from '../request/fields.ts'
import { isStrictSchema } from '../request/schema.ts'
import type { HiddenTool } from './render-tools.ts'
import type { Rendering } from './rendering.ts'

export interface RenderedFormat {
  readonly responseFormat?: RawJson
  readonly hiddenTool?: HiddenTool
  /** To stand at the end of the system prompt. */
  readonly instruction?: string
}

const anyObject = '{"type":"json_object"}'

export function renderFormat({ outputFormat, places }: Conversation, rendering: Rendering): RenderedFormat {
  if (!outputFormat) return {}
  const { rules, warnings, names } = rendering
  const place = places?.outputFormat ?? '/response_format'
  const way = rules.jsonOutput ?? 'schema'
  if (way === 'emulated') {
    if (rules.forcedToolChoice === false) return refuseAt(place, 'This model cannot be held to a JSON form.')
    const schema = outputFormat.kind === 'json-schema' ? outputFormat.schema : '{"type":"object"}'
    return { hiddenTool: { name: names.unused('json_output'), schema } }
  }
  if (outputFormat.kind === 'json-object') return { responseFormat: anyObject }
  if (way === 'schema') return { responseFormat: jsonSchema(outputFormat, rendering, place) }
  warnings.add('json_schema_emulated', place)
  const instruction = `Answer with a single JSON object that follows this JSON Schema:\n${outputFormat.schema}`
  return { responseFormat: anyObject, instruction }
}

function jsonSchema(
  { name, description, schema, strict }: OutputFormat & { kind: 'json-schema' },
  { warnings }: Rendering,
  place: string,
): RawJson {
  const canBeStrict = isStrictSchema(schema)
  if (strict && !canBeStrict) warnings.add('strict_dropped', place)
  const wanted = jsonObject([
    ['name', jsonString(labelOf(name))],
    ['description', description === undefined ? undefined : jsonString(description)],
    ['schema', schema],
    ['strict', String((strict ?? true) && canBeStrict)],
  ])
  return jsonObject([
    ['type', '"json_schema"'],
    ['json_schema', wanted],
  ])
}

/** A label the dialect demands and nothing depends on. */
function labelOf(name: string | undefined): string {
  return name?.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'output'
}
