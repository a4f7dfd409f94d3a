// The body at a provider of Responses when a request has arrived, by the names of the rows. A row that is
// missing has no word there: it is refused, or left out with a warning.

import { absent, either, jsonText, type Shape, saying, some } from '../shape.ts'
import { type Shapes, schema } from './request-fixture.ts'

const part = (text: string): Shape => ({ type: 'input_text', text })
const user = (...content: readonly Shape[]): Shape => ({ role: 'user', content })
const developer = (...texts: readonly string[]): Shape => ({ role: 'developer', content: texts.map(part) })
const assistant = (content: string): Shape => ({ role: 'assistant', content })
const hi = user(part('hi'))
const dialogue = [user(part('one')), assistant('two'), user(part('three'))]
const declared = { tools: [{ type: 'function', name: 'look', parameters: schema, strict: false }] }
const call = (call_id: Shape, city: string): Shape => ({
  type: 'function_call',
  call_id,
  name: 'look',
  arguments: jsonText({ city }),
})
const result = (call_id: Shape, ...output: readonly Shape[]): Shape => ({
  type: 'function_call_output',
  call_id,
  output,
})
const anyId = (id: unknown): boolean => typeof id === 'string'
const dataUrl = (type: string) => (value: unknown) =>
  typeof value === 'string' && value.startsWith(`data:${type};base64,`)
const image = { type: 'input_image', image_url: dataUrl('image/png'), detail: 'auto' }
const pdf = { type: 'input_file', file_data: dataUrl('application/pdf') }
/** Members of the body by their own names. */
const body = (carried: Shape): Shapes => ({ carried })
const chosen = (tool_choice: Shape): Shapes => body({ ...declared, tool_choice })

const scripts = 'Größe 四 🎉\u2028 '.repeat(60)

export const responsesShapes: Readonly<Record<string, Shapes>> = {
  Text: body({ input: [hi] }),
  'Text in any script': body({ input: [user(part(scripts))] }),
  'System text at the start': body(either({ instructions: 'A\n\nB' }, { input: [developer('A', 'B'), hi] })),
  'System text in mid-conversation': body({ input: [...dialogue, developer('B')] }),
  'Several turns': body({ input: dialogue }),
  'Several turns of one role in a row': body({ input: [hi, user(part('you there'))] }),
  'A refusal in the history': body({ input: some(assistant('No.')) }),
  'Claude Code’s billing line': body(either({ instructions: 'A' }, { input: [developer('A'), hi] })),

  Tools: body(declared),
  'A tool call and its result': body({
    input: [hi, assistant('Looking.'), call('c1', 'Bern'), result('c1', part('rain'))],
  }),
  'Parallel calls and their results': body({
    input: [
      hi,
      call('c1', 'Bern'),
      call('c2', 'Oslo'),
      result('c2', part('snow')),
      result('c1', part('rain')),
      user(part('and?')),
    ],
  }),
  'A result that is an error': { emulated: { input: some(result('c1', part('[tool error] boom'))) } },
  'Strict schemas': body({ tools: [{ name: 'look', strict: true }] }),
  'A schema with alternatives': {
    emulated: { tools: [{ parameters: { type: 'object', properties: schema.properties } }] },
  },
  'Custom tools with free text': body({ tools: [{ type: 'custom', name: 'patch' }] }),
  'Custom tools with a grammar': body({
    tools: [{ type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'regex', definition: 'a+' } }],
  }),
  'Legacy functions': body({
    ...declared,
    tool_choice: { type: 'function', name: 'look' },
    input: [hi, call(anyId, 'Bern'), result(anyId, part('rain'))],
  }),
  'Claude’s tools that the caller runs (bash, editor, memory)': {
    emulated: { tools: [{ type: 'function', name: 'bash', parameters: { type: 'object' } }] },
  },
  'Tool choice: auto': chosen('auto'),
  'Tool choice: none': chosen('none'),
  'Tool choice: any': chosen('required'),
  'Tool choice: one by name': chosen({ type: 'function', name: 'look' }),
  'Tool choice: some of them': body({
    tools: [{ name: 'look' }, { name: 'other' }],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] },
  }),
  'One call at a time': body({ ...declared, parallel_tool_calls: false }),

  'Inline images': body({ input: [user(image)] }),
  'Images by URL': body({
    input: [user({ type: 'input_image', image_url: 'https://example.com/a.png', detail: 'auto' })],
  }),
  'Inline PDF': body({ input: [user({ ...pdf, filename: 'r.pdf' })] }),
  'PDF by URL': body({ input: [user({ type: 'input_file', file_url: 'https://example.com/a.pdf' })] }),
  'Text documents': { emulated: { input: [{ role: 'user', content: saying('notes') }] } },
  'Search results': {
    emulated: { input: [{ role: 'user', content: saying('Found\nhttps://example.com\n\nnotes') }] },
  },
  'Images in tool results': body({ input: some(result('c1', part('a view'), image)) }),
  'Documents in tool results': body({ input: some(result('c1', pdf)) }),

  'Effort: none': body({ reasoning: { effort: 'none' } }),
  'Effort: low': body({ reasoning: { effort: 'low' } }),
  'Effort: high': body({ reasoning: { effort: 'high' } }),
  'Effort together with tools': body({ ...declared, reasoning: { effort: 'high' } }),
  'Adaptive thinking': body({ reasoning: either(absent, { effort: absent }) }),
  // 4,000 tokens are what the word medium stands for.
  'Thinking with a budget': body({ reasoning: { effort: 'medium' } }),
  'Thinking only between tool calls': { emulated: { reasoning: { effort: 'none' } } },

  'Output cap': body({ max_output_tokens: 500 }),
  'No output cap': body({ max_output_tokens: 4096 }),
  // There are none: the gateway reads the answer for them itself.
  'Stop sequences': { emulated: { stop: absent, stop_sequences: absent } },
  'More than four stop sequences': { emulated: { stop: absent, stop_sequences: absent } },
  'Output by JSON schema': body({
    text: { format: { type: 'json_schema', schema: { properties: schema.properties, required: ['city'] } } },
  }),
  'Output as any JSON object': body({ text: { format: { type: 'json_object' } } }),
  Verbosity: body({ text: { verbosity: 'low' } }),
  'Cache marks on text': body({
    input: [{ role: 'developer', content: [{ text: 'A', prompt_cache_breakpoint: { mode: 'explicit' } }] }, hi],
  }),
  // It caches by itself and need not be asked.
  'Caching without marks': body({ input: [hi] }),
  'Caching only marked content': body({ prompt_cache_options: { mode: 'explicit' } }),
  'Cache key': body({ prompt_cache_key: 'k1' }),
  'End user’s id': body({ safety_identifier: 'u1' }),
  'Faster processing at a higher price': body({ service_tier: 'priority' }),
  'Cheaper processing': body({ service_tier: 'flex' }),
}
