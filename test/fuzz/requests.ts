// Good requests of both surfaces with every kind of member in them, for fuzzing to damage. The prompt of each holds a
// secret that no refusal may repeat.

import { utf8 } from './damage.ts'

/** In the content of every request: what a caller says is nobody's business but the provider's. */
export const promptSecret = 'swordfish-0123456789'

const schema = {
  type: 'object',
  properties: { __proto__x: { type: 'string' }, constructor: { type: 'integer', default: 1 } },
  required: [],
}
const image = 'data:image/png;base64,iVBORw0KGgo='

export const chatRequests: readonly Uint8Array<ArrayBuffer>[] = [
  { model: 'm', messages: [{ role: 'user', content: promptSecret }] },
  {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    max_completion_tokens: 50,
    n: 1,
    temperature: 0.5,
    top_p: 0.9,
    stop: ['END'],
    user: 'u1',
    messages: [
      { role: 'system', content: promptSecret },
      {
        role: 'user',
        content: [
          { type: 'text', text: promptSecret },
          { type: 'image_url', image_url: { url: image } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: promptSecret },
      { role: 'assistant', content: 'Well.', reasoning_content: 'hm' },
      { role: 'user', content: promptSecret },
    ],
    tools: [{ type: 'function', function: { name: 'look', description: 'd', parameters: schema, strict: false } }],
    tool_choice: { type: 'function', function: { name: 'look' } },
    parallel_tool_calls: false,
    response_format: { type: 'json_schema', json_schema: { name: 'out', schema } },
    reasoning_effort: 'low',
    metadata: { a: 'b' },
  },
].map((body) => utf8(JSON.stringify(body)))

export const messagesRequests: readonly Uint8Array<ArrayBuffer>[] = [
  { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: promptSecret }] },
  {
    model: 'm',
    max_tokens: 2000,
    stream: true,
    temperature: 1,
    stop_sequences: ['END'],
    system: [{ type: 'text', text: promptSecret, cache_control: { type: 'ephemeral' } }],
    metadata: { user_id: 'u1' },
    thinking: { type: 'enabled', budget_tokens: 1024 },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: promptSecret },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
          { type: 'redacted_thinking', data: 'Emw=' },
          { type: 'text', text: 'Well.' },
          { type: 'tool_use', id: 't1', name: 'look', input: { a: [1, { b: null }] } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: promptSecret, is_error: false }] },
    ],
    tools: [{ name: 'look', description: 'd', input_schema: schema }],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    output_config: { format: { type: 'json_schema', schema } },
  },
].map((body) => utf8(JSON.stringify(body)))
