// The schema of a function's arguments as OpenAI takes it: an object at the root that says what it holds, even nothing,
// without a choice between schemas there; and arrays that say it too. The rest stays as it was written.

import { JsonNode } from '../../wire/json-node.ts'
import type { FunctionTool, RawJson } from '../canonical/conversation.ts'
import { isRecord, parseJson } from '../canonical/json-value.ts'
import { lacksArrayItems, withArrayItems } from './array-items.ts'
import { jsonObject } from './json-text.ts'
import type { SchemaBudget } from './schema-budget.ts'
import { isPlainObject, toolSchema } from './tool-schema.ts'
import type { WarningList } from './warning-list.ts'

export interface FunctionParameters {
  readonly parameters: RawJson
  /** With what the schema can no longer say. */
  readonly description: string | undefined
}

type Described = Pick<FunctionTool, 'schema' | 'description' | 'place'>

export interface ParametersContext {
  readonly warnings: WarningList
  readonly schemas: SchemaBudget
}

export function functionParameters(tool: Described, { warnings, schemas }: ParametersContext): FunctionParameters {
  const { schema = '{}', description, place = '/tools' } = tool
  if (isTaken(parseJson(schema)) || schemas.take(schema) !== undefined) return { parameters: schema, description }
  const result = toolSchema(schema)
  // What cannot be merged may still suit a host that is less strict.
  if (typeof result === 'string') return { parameters: withArrayItems(schema), description }
  if (result.folded) warnings.add('tool_schema_merged', place)
  return {
    parameters: withArrayItems(withProperties(result.schema)),
    description: result.note === undefined ? description : [description, result.note].filter(Boolean).join('\n\n'),
  }
}

/** Nothing is to be changed, which is so for most. */
function isTaken(root: unknown): boolean {
  return isRecord(root) && isPlainObject(root) && isRecord(root.properties) && !lacksArrayItems(root)
}

function withProperties(schema: RawJson): RawJson {
  const root = JsonNode.of(schema)
  const properties = root.member('properties')
  if (properties && properties.text !== 'null') return schema
  const others = (root.members() ?? []).filter(([name]) => name !== 'properties')
  return jsonObject([...others.map(([name, value]) => [name, value.text] as const), ['properties', '{}']])
}
