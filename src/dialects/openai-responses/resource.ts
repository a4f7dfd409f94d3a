// The response as a resource, with every member that Open Responses requires (https://www.openresponses.org, 2026-04-24),
// in its type: callers may read any of them from a whole reply and from each event that carries the response.

import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, type Members, recordOf } from '../canonical/json.ts'
import type { RequestFields } from '../request/fields.ts'

/** As they are for a caller that sets none. Penalties, log probabilities and a limit of tool calls are not available. */
export const resourceDefaults = {
  object: '"response"',
  completed_at: 'null',
  background: 'false',
  error: 'null',
  frequency_penalty: '0',
  incomplete_details: 'null',
  instructions: 'null',
  max_output_tokens: 'null',
  max_tool_calls: 'null',
  metadata: '{}',
  output: '[]',
  parallel_tool_calls: 'true',
  presence_penalty: '0',
  previous_response_id: 'null',
  prompt_cache_key: 'null',
  reasoning: '{"effort":null,"summary":null}',
  safety_identifier: 'null',
  service_tier: '"default"',
  store: 'false',
  temperature: '1',
  text: '{"format":{"type":"text"}}',
  tool_choice: '"auto"',
  tools: '[]',
  top_logprobs: '0',
  top_p: '1',
  truncation: '"disabled"',
  usage: 'null',
  user: 'null',
} as const satisfies Members

const echoed = [
  ...['instructions', 'max_output_tokens', 'metadata', 'parallel_tool_calls', 'prompt_cache_key'],
  ...['safety_identifier', 'temperature', 'top_p', 'truncation', 'user'],
]

type Rewrite = (value: unknown) => unknown

/** Members whose form in a response has more than callers have to send. */
const rewritten: Readonly<Record<string, Rewrite>> = {
  reasoning: (value) => ({ effort: null, summary: null, ...recordOf(value) }),
  // The tier that was used, which `auto` leaves to the provider.
  service_tier: (value) => (value === 'auto' ? 'default' : value),
  text(value) {
    const { format, ...text } = recordOf(value)
    return { format: formatOf(format), ...text }
  },
  tool_choice: (value) => (recordOf(value).type === 'allowed_tools' ? { mode: 'auto', ...recordOf(value) } : value),
  tools: (value) => (Array.isArray(value) ? value.map(toolOf) : value),
}

/** Serialized again: the caller's own text may have line breaks, which end the line of an event. */
export function echoOf(body: RequestFields): Record<string, RawJson> {
  const members: Record<string, RawJson> = {}
  const add = (name: string, rewrite: Rewrite = (value) => value) => {
    const value = body.value(name)
    if (value !== undefined) members[name] = JSON.stringify(rewrite(value))
  }
  for (const name of echoed) add(name)
  for (const [name, rewrite] of Object.entries(rewritten)) add(name, rewrite)
  return members
}

function formatOf(format: unknown): unknown {
  if (!isRecord(format)) return { type: 'text' }
  return format.type === 'json_schema' ? withDefaults({ description: null, strict: false }, format) : format
}

function toolOf(tool: unknown): unknown {
  const isFunction = isRecord(tool) && tool.type === 'function'
  return isFunction ? withDefaults({ description: null, parameters: null, strict: null }, tool) : tool
}

/** Members that the caller sent as null are as if they were not sent. */
function withDefaults(defaults: object, sent: Readonly<Record<string, unknown>>): object {
  return { ...defaults, ...Object.fromEntries(Object.entries(sent).filter(([, value]) => value != null)) }
}
