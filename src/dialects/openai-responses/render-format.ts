// The form the answer must have, and how much is to be said: the member `text`. Where a host cannot be held to a form, it
// is asked for in words, with a warning.

import { type Conversation, type OutputFormat, placeOf, type RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { isStrictSchema } from '../request/schema.ts'
import type { Rendering } from './rendering.ts'

export interface RenderedFormat {
  /** The member's value; undefined = nothing is said. */
  readonly text: RawJson | undefined
  /** To stand at the end of the system prompt. */
  readonly instruction: string | undefined
  /** Any JSON object is asked for: the provider refuses that unless the input speaks of JSON. */
  readonly isAnyObject: boolean
}

const anyObject = '{"type":"json_object"}'

export function renderFormat(conversation: Conversation, rendering: Rendering): RenderedFormat {
  const { format, instruction } = formatOf(conversation, rendering)
  const { verbosity } = conversation
  const text = jsonObject([
    ['format', format],
    ['verbosity', verbosity && jsonString(verbosity)],
  ])
  return { text: text === '{}' ? undefined : text, instruction, isAnyObject: format === anyObject }
}

interface Format {
  readonly format?: RawJson
  readonly instruction?: string
}

function formatOf(conversation: Conversation, rendering: Rendering): Format {
  const { outputFormat } = conversation
  if (!outputFormat) return {}
  const { rules, warnings } = rendering
  const place = placeOf(conversation, 'outputFormat')
  const way = rules.jsonOutput ?? 'schema'
  if (outputFormat.kind === 'json-object') {
    if (way !== 'emulated') return { format: anyObject }
    warnings.add('json_object_emulated', place)
    return { instruction: 'Answer with a single JSON object.' }
  }
  if (way === 'schema') return { format: jsonSchema(outputFormat, rendering, place) }
  warnings.add('json_schema_emulated', place)
  const instruction = `Answer with a single JSON object that follows this JSON Schema:\n${outputFormat.schema}`
  return way === 'object' ? { format: anyObject, instruction } : { instruction }
}

function jsonSchema(
  { name, description, schema, strict }: OutputFormat & { kind: 'json-schema' },
  { warnings }: Rendering,
  place: string,
): RawJson {
  const canBeStrict = isStrictSchema(schema)
  if (strict && !canBeStrict) warnings.add('strict_dropped', place)
  return jsonObject([
    ['type', '"json_schema"'],
    ['name', jsonString(labelOf(name))],
    ['description', description === undefined ? undefined : jsonString(description)],
    ['schema', schema],
    ['strict', String((strict ?? true) && canBeStrict)],
  ])
}

/** A label the dialect demands and nothing depends on. */
function labelOf(name: string | undefined): string {
  return name?.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'output'
}
