// Good requests of the surfaces with every kind of member in them, for fuzzing to damage. The prompt of each holds a
// secret that no refusal may repeat.

import { utf8 } from './damage.ts'

/** In the content of every request: only the provider may get what a caller says. */
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

const said = { parts: [{ text: promptSecret }] }

export const geminiRequests: readonly Uint8Array<ArrayBuffer>[] = [
  { contents: [said] },
  {
    systemInstruction: said,
    contents: [
      {
        role: 'user',
        parts: [{ text: promptSecret }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }],
      },
      {
        role: 'model',
        parts: [
          { text: 'hm', thought: true },
          { functionCall: { id: 'c1', name: 'look', args: { a: [1, { b: null }] } }, thoughtSignature: 'c2ln' },
        ],
      },
      { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'look', response: { output: promptSecret } } }] },
      { role: 'user', parts: [{ fileData: { mimeType: 'image/png', fileUri: 'https://a.test/b.png' } }] },
    ],
    tools: [{ functionDeclarations: [{ name: 'look', description: 'd', parametersJsonSchema: schema }] }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['look'] } },
    safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
    generationConfig: {
      ...{ maxOutputTokens: 2000, temperature: 1, topP: 0.9, topK: 40, stopSequences: ['END'], seed: 7 },
      ...{
        candidateCount: 1,
        responseMimeType: 'application/json',
        responseSchema: { type: 'OBJECT', nullable: true },
      },
      thinkingConfig: { thinkingLevel: 'LOW', includeThoughts: true },
    },
    serviceTier: 'flex',
  },
].map((body) => utf8(JSON.stringify(body)))

export const embeddingsRequests: readonly Uint8Array<ArrayBuffer>[] = [
  { model: 'm', input: promptSecret },
  { model: 'm', input: [promptSecret, 'b'], dimensions: 3, encoding_format: 'base64', user: 'u1' },
  { model: 'm', input: [[1, 2], [3]], encoding_format: 'float' },
].map((body) => utf8(JSON.stringify(body)))

const one = { model: 'models/m', content: said, taskType: 'RETRIEVAL_DOCUMENT', title: 't', outputDimensionality: 3 }

export const geminiEmbeddingRequests: readonly Uint8Array<ArrayBuffer>[] = [one, { requests: [one, one] }].map((body) =>
  utf8(JSON.stringify(body)),
)
