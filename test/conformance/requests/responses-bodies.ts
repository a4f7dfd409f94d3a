// The body of a Responses caller for each row, by the names of the rows; `input` is "hi" unless said otherwise. A row
// that is missing has no word there.

import { writeSignature } from '../../../src/dialects/canonical/signature.ts'
import { writeEncrypted } from '../../../src/dialects/openai-responses/reasoning.ts'
import { noTags } from '../../parts/content-tags.ts'
import { own } from './reasoning.ts'
import { type Members, schema } from './request-fixture.ts'

const user = (...content: unknown[]) => ({ input: [{ role: 'user', content }] })
const hi = { role: 'user', content: 'hi' }
const after = { role: 'user', content: 'go on' }
const dialogue = [
  { role: 'user', content: 'one' },
  { role: 'assistant', content: [{ type: 'output_text', text: 'two', annotations: [] }] },
  { role: 'user', content: 'three' },
]
const tool = (name: string, more: Members = {}) => ({
  type: 'function',
  name,
  description: 'Looks it up.',
  parameters: schema,
  strict: false,
  ...more,
})
const tools = { tools: [tool('look')] }
const call = (call_id: string, city: string) => ({
  type: 'function_call',
  call_id,
  name: 'look',
  arguments: `{"city":"${city}"}`,
})
const result = (call_id: string, output: unknown) => ({ type: 'function_call_output', call_id, output })
const closed = { ...schema, additionalProperties: false }

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const pdf = `data:application/pdf;base64,${btoa('%PDF-1.4\n%%EOF')}`
const image = { type: 'input_image', image_url: `data:image/png;base64,${png}` }
const url = 'https://example.com/a.png'

const reasoned = (encrypted_content: string | undefined) => ({
  input: [
    hi,
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Let me see.' }], encrypted_content },
    { role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] },
    after,
  ],
})
const signed = (signature: string) => reasoned(writeEncrypted({ kind: 'thinking', signature }, noTags))
const effort = (word: string) => ({ reasoning: { effort: word } })

export const responsesBodies: Readonly<Record<string, Members>> = {
  Text: {},
  'Text in any script': { input: 'Größe 四 🎉\u2028 '.repeat(60) },
  'System text at the start': { instructions: 'A', input: [{ role: 'developer', content: 'B' }, hi] },
  'System text in mid-conversation': { input: [...dialogue, { role: 'developer', content: 'B' }] },
  'Several turns': { input: dialogue },
  'Several turns of one role in a row': { input: [hi, { role: 'user', content: 'you there' }] },
  'A prefilled answer': { input: [hi, { role: 'assistant', content: 'Well,' }] },
  'A refusal in the history': {
    input: [
      hi,
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      { role: 'user', content: 'why' },
    ],
  },

  Tools: tools,
  'A tool call and its result': {
    ...tools,
    input: [hi, { role: 'assistant', content: 'Looking.' }, call('c1', 'Bern'), result('c1', 'rain')],
  },
  'Parallel calls and their results': {
    ...tools,
    input: [
      hi,
      call('c1', 'Bern'),
      call('c2', 'Oslo'),
      result('c2', 'snow'),
      result('c1', 'rain'),
      { role: 'user', content: 'and?' },
    ],
  },
  'A call without a result': { ...tools, input: [hi, call('c1', 'Bern'), hi] },
  'Strict schemas': { tools: [tool('look', { strict: true, parameters: closed })] },
  'A schema with alternatives': {
    tools: [tool('look', { parameters: { anyOf: [schema, { type: 'object', properties: {} }] } })],
  },
  'Custom tools with free text': { tools: [{ type: 'custom', name: 'patch', description: 'Applies it.' }] },
  'Custom tools with a grammar': {
    tools: [{ type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'regex', definition: 'a+' } }],
  },
  'Tools in a namespace': { tools: [{ type: 'namespace', name: 'git', description: 'Git', tools: [tool('look')] }] },
  'Tools in an input item': { input: [{ type: 'additional_tools', role: 'developer', tools: [tool('look')] }, hi] },
  'A local shell': { tools: [{ type: 'local_shell' }] },
  'Web search as a tool': { tools: [{ type: 'web_search' }] },
  'Other tools that the provider runs': { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
  'Items of tools that the provider ran': {
    input: [
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'rain' } },
      hi,
    ],
  },
  'Items by reference': { input: [{ type: 'item_reference', id: 'msg_1' }, hi] },
  'Tool choice: auto': { ...tools, tool_choice: 'auto' },
  'Tool choice: none': { ...tools, tool_choice: 'none' },
  'Tool choice: any': { ...tools, tool_choice: 'required' },
  'Tool choice: one by name': { ...tools, tool_choice: { type: 'function', name: 'look' } },
  'Tool choice: some of them': {
    tools: [tool('look'), tool('other')],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] },
  },
  'One call at a time': { ...tools, parallel_tool_calls: false },

  'Inline images': user(image),
  'Images by URL': user({ type: 'input_image', image_url: url }),
  'Image detail': user({ type: 'input_image', image_url: url, detail: 'high' }),
  'Inline PDF': user({ type: 'input_file', filename: 'r.pdf', file_data: pdf }),
  'PDF by URL': user({ type: 'input_file', file_url: 'https://example.com/a.pdf' }),
  'Text documents': user({
    type: 'input_file',
    filename: 'n.txt',
    file_data: `data:text/plain;base64,${btoa('notes')}`,
  }),
  'Files by id': user({ type: 'input_file', file_id: 'file-1' }),
  'Images in tool results': {
    ...tools,
    input: [hi, call('c1', 'Bern'), result('c1', [{ type: 'input_text', text: 'a view' }, image])],
  },
  'Documents in tool results': {
    ...tools,
    input: [hi, call('c1', 'Bern'), result('c1', [{ type: 'input_file', file_data: pdf }])],
  },
  Audio: user({ type: 'input_audio', input_audio: { data: btoa('RIFF\x04\0\0\0WAVE'), format: 'wav' } }),

  'Effort: none': effort('none'),
  'Effort: low': effort('low'),
  'Effort: high': effort('high'),
  'Effort: max': effort('max'),
  'Effort together with tools': { ...tools, ...effort('high') },
  'Claude’s signed thinking in the history': signed('EqQBCgIYAg=='),
  'Claude’s encrypted thinking in the history': reasoned(
    writeEncrypted({ kind: 'sealed-thinking', data: 'EmwKAhgB' }, noTags),
  ),
  'Reasoning of gpt-5.6 in the history': signed(own.signature),
  'Another provider’s reasoning in the history': signed(writeSignature({ issuer: 'another/openai-chat', blob: '[]' })),
  'Unsigned reasoning in the history': reasoned(undefined),

  'Output cap': { max_output_tokens: 500 },
  'Output cap above the model’s': { max_output_tokens: 9000 },
  'No output cap': {},
  Temperature: { temperature: 0.5 },
  'Temperature above 1': { temperature: 1.5 },
  'Top-p': { top_p: 0.5 },
  'Output by JSON schema': { text: { format: { type: 'json_schema', name: 'place', strict: true, schema: closed } } },
  'Output as any JSON object': { text: { format: { type: 'json_object' } } },
  Verbosity: { text: { verbosity: 'low' } },
  'Cache marks on text': {
    input: [
      {
        role: 'developer',
        content: [{ type: 'input_text', text: 'A', prompt_cache_breakpoint: { mode: 'explicit' } }],
      },
      hi,
    ],
  },
  'Caching only marked content': { prompt_cache_options: { mode: 'explicit' } },
  'Cache key': { prompt_cache_key: 'k1' },
  'End user’s id': { safety_identifier: 'u1' },
  'Faster processing at a higher price': { service_tier: 'priority' },
  'Cheaper processing': { service_tier: 'flex' },
  'Storing the answer at the provider': { store: true },
  'Log probabilities': { top_logprobs: 3 },
  'Moderation by the provider': { moderation: { model: 'omni-moderation-latest' } },
  'Editing the context at the provider': { context_management: [{ type: 'compaction' }] },
  'Responses stored by the provider': { previous_response_id: 'resp_1' },
  'Conversations stored by the provider': { conversation: 'conv_1' },
  'Prompts stored by the provider': { prompt: { id: 'pmpt_1' } },
  'Background processing': { background: true },
  'A limit on the provider’s tool calls': { max_tool_calls: 3 },
  'Automatic truncation': { truncation: 'auto' },
  'An unknown field': { tomorrow: { option: 1 } },
}
