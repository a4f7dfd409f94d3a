// One request to each of the providers with the most models, as it goes out. The bodies are written from the
// providers' documents and the rules, by hand: a change of either shows here, beside the reason for it.

import { expect, test } from 'bun:test'
import { call, conversation, result, text, user } from '../../../test/parts/translation.ts'
import { builtInModels } from '../../catalog/data/built-in.ts'
import { anthropicMessages } from '../../dialects/anthropic-messages/index.ts'
import type { DialectId } from '../../dialects/dialect.ts'
import { gemini } from '../../dialects/gemini/index.ts'
import { openaiChat } from '../../dialects/openai-chat/index.ts'
import { openaiResponses } from '../../dialects/openai-responses/index.ts'
import { Failure } from '../../kernel/failure.ts'
import { rulesFor } from '../rules/rules-for.ts'
import { builtInProviders } from './built-in.ts'

const translations = {
  'openai-chat': openaiChat.translation,
  'anthropic-messages': anthropicMessages.translation,
  gemini: gemini.translation,
  'openai-responses': openaiResponses.translation,
}

const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

const asked = conversation({
  system: [text('Be brief.')],
  turns: [
    user('Rain in Oslo?'),
    { role: 'assistant', blocks: [call('abc123XYZ', '{"city":"Oslo"}', 'weather')] },
    user(result('abc123XYZ', 'rain')),
  ],
  tools: [{ kind: 'function', name: 'weather', schema: JSON.stringify(schema), description: undefined, strict: true }],
  toolChoice: { kind: 'required' },
  parallelTools: false,
  sampling: { temperature: 0.5, topK: 40, frequencyPenalty: 0.2, seed: 7 },
  outputCap: 1000,
  stop: ['END', 'STOP'],
  reasoning: { effort: 'medium' },
  endUserId: 'user-1',
})

const chatMessages = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Rain in Oslo?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'abc123XYZ', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
  },
  { role: 'tool', tool_call_id: 'abc123XYZ', content: 'rain' },
]
const looseTool = { type: 'function', function: { name: 'weather', parameters: schema } }
const strictTool = { type: 'function', function: { name: 'weather', parameters: schema, strict: true } }

/** The body for a host that accepts everything this dialect has. */
const chatBody = {
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: 1000,
  reasoning_effort: 'medium',
  temperature: 0.5,
  frequency_penalty: 0.2,
  seed: 7,
  stop: ['END', 'STOP'],
  user: 'user-1',
  tools: [strictTool],
  tool_choice: 'required',
  parallel_tool_calls: false,
  messages: chatMessages,
}

const messagesBody = {
  stream: true,
  max_tokens: 1000,
  system: [{ type: 'text', text: 'Be brief.' }],
  tools: [{ name: 'weather', input_schema: schema, strict: true }],
  tool_choice: { type: 'any', disable_parallel_tool_use: true },
  thinking: { type: 'adaptive' },
  output_config: { effort: 'medium' },
  stop_sequences: ['END', 'STOP'],
  metadata: { user_id: 'user-1' },
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Rain in Oslo?' }] },
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'abc123XYZ', name: 'weather', input: { city: 'Oslo' } }],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'abc123XYZ', content: 'rain' }] },
  ],
}

const unsigned = 'skip_thought_signature_validator'

const geminiBody = (id: object, signature: object, thinking: object) => ({
  model: undefined,
  systemInstruction: { parts: [{ text: 'Be brief.' }] },
  tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: schema }] }],
  toolConfig: { functionCallingConfig: { mode: 'ANY' } },
  generationConfig: {
    maxOutputTokens: 1000,
    temperature: 0.5,
    topK: 40,
    frequencyPenalty: 0.2,
    seed: 7,
    stopSequences: ['END', 'STOP'],
    thinkingConfig: { ...thinking, includeThoughts: true },
  },
  contents: [
    { role: 'user', parts: [{ text: 'Rain in Oslo?' }] },
    { role: 'model', parts: [{ functionCall: { ...id, name: 'weather', args: { city: 'Oslo' } }, ...signature }] },
    { role: 'user', parts: [{ functionResponse: { ...id, name: 'weather', response: { output: 'rain' } } }] },
  ],
})

/** Members with undefined are not in the body at all. */
const golden: readonly [provider: string, model: string, body: object][] = [
  ['huggingface', 'deepseek-ai/DeepSeek-V3.2', chatBody],
  ['alibaba', 'qwen3.8-max', chatBody],
  // Strict tools and effort have no common word there.
  ['nvidia', 'nvidia/nemotron-3-ultra-550b-a55b', { ...chatBody, tools: [looseTool], reasoning_effort: undefined }],
  // No strict tools; top_k is a setting of this host.
  ['together', 'openai/gpt-oss-120b', { ...chatBody, tools: [looseTool], top_k: 40 }],
  // GLM-5.3 knows low, high and max: medium is taken down to low, never up.
  ['fireworks', 'accounts/fireworks/models/glm-5p3', { ...chatBody, top_k: 40, reasoning_effort: 'low' }],
  ['openrouter', 'z-ai/glm-5.3', { ...chatBody, top_k: 40, reasoning_effort: 'low' }],
  // Only auto as a choice, only one stop word (more are matched here), no penalties, no seed.
  [
    'zai',
    'glm-5.3',
    {
      ...chatBody,
      reasoning_effort: 'low',
      frequency_penalty: undefined,
      seed: undefined,
      tool_choice: 'auto',
      stop: undefined,
    },
  ],
  // Reasoning is off or high there, and off is not what was asked for; a seed has another name; usage comes unasked, and end users are not asked for.
  [
    'mistral',
    'mistral-small-2603',
    { ...chatBody, reasoning_effort: 'high', seed: undefined, stream_options: undefined, user: undefined },
  ],
  // The newer names of cap and user; no dial on this model; system text in parts.
  [
    'openai',
    'gpt-4.1',
    {
      ...chatBody,
      max_tokens: undefined,
      max_completion_tokens: 1000,
      reasoning_effort: undefined,
      user: undefined,
      safety_identifier: 'user-1',
      messages: [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }, ...chatMessages.slice(1)],
    },
  ],
  // While it thinks it takes no sampling settings; penalties and seeds are unknown to the dialect.
  ['anthropic', 'claude-sonnet-4-6', messagesBody],
  ['amazon-bedrock', 'global.anthropic.claude-sonnet-4-6', messagesBody],
  // The model is in the path. An unsigned call in the history gets the placeholder signature.
  [
    'google',
    'gemini-3.8-flash',
    geminiBody({ id: 'abc123XYZ' }, { thoughtSignature: unsigned }, { thinkingLevel: 'medium' }),
  ],
  // No ids there; thinking is set by a budget, and calls may be unsigned.
  ['google-vertex', 'gemini-2.5-pro', geminiBody({}, {}, { thinkingBudget: 8192 })],
]

function bodyFor(providerId: string, upstreamModel: string, wanted?: DialectId): unknown {
  const provider = builtInProviders.find(({ id }) => id === providerId)
  const endpoint = provider?.endpoints.find(({ dialect }) => wanted === undefined || dialect === wanted)
  if (endpoint === undefined) throw new Error('no endpoint')
  const { dialect, rules: endpointRules, modelRules } = endpoint
  const rendered = translations[dialect].renderRequest(asked, {
    upstreamModel,
    issuer: `${providerId}/${dialect}`,
    rules: rulesFor({ dialect, upstreamModel, endpointRules, modelRules }),
    defaultOutputCap: undefined,
    maxOutputTokens: undefined,
  })
  if (rendered instanceof Failure) throw new Error(rendered.message)
  return JSON.parse(new TextDecoder().decode(rendered.body))
}

const written = (body: object): unknown => JSON.parse(JSON.stringify(body))

test.each(golden)('sends %s this body for %s', (providerId, upstreamModel, body) => {
  expect(bodyFor(providerId, upstreamModel)).toEqual(written({ model: upstreamModel, ...body }))
})

test.each([
  ['openai/gpt-oss-120b', 'medium'],
  ['llama-3.3-70b-versatile', undefined],
  // Only on or off, and on is what it is.
  ['qwen/qwen3.8-27b', undefined],
])('sends groq an effort for %s only if the model supports it', (upstreamModel, effort) => {
  const body = { ...chatBody, max_tokens: undefined, max_completion_tokens: 1000, reasoning_effort: effort }
  expect(bodyFor('groq', upstreamModel)).toEqual(written({ model: upstreamModel, ...body }))
})

test('sends openai this body if the request has tools and reasoning', () => {
  const part = (text: string) => [{ type: 'input_text', text }]
  expect(bodyFor('openai', 'gpt-5.6', 'openai-responses')).toEqual({
    model: 'gpt-5.6',
    stream: true,
    store: false,
    include: ['reasoning.encrypted_content'],
    max_output_tokens: 1000,
    // Sampling settings only go without reasoning; stops, penalties and seeds do not exist.
    reasoning: { effort: 'medium' },
    safety_identifier: 'user-1',
    tools: [{ type: 'function', name: 'weather', parameters: schema, strict: true }],
    tool_choice: 'required',
    parallel_tool_calls: false,
    // In parts, and the system text among them: only parts carry a mark for the cache.
    input: [
      { role: 'developer', content: part('Be brief.') },
      { role: 'user', content: part('Rain in Oslo?') },
      { type: 'function_call', call_id: 'abc123XYZ', name: 'weather', arguments: '{"city":"Oslo"}' },
      { type: 'function_call_output', call_id: 'abc123XYZ', output: part('rain') },
    ],
  })
})

test('these are the ones with the most models, each asked for one it serves', () => {
  const counts = new Map<string, number>()
  for (const { routes } of builtInModels) {
    for (const { provider } of routes) counts.set(provider, (counts.get(provider) ?? 0) + 1)
  }
  const largest = [...counts].sort((a, b) => b[1] - a[1]).slice(0, golden.length)
  expect(golden.map(([provider]) => provider).sort()).toEqual(largest.map(([provider]) => provider).sort())
  for (const [provider, model] of golden) {
    expect(builtInModels.some(({ routes }) => routes.some((r) => r.provider === provider && r.model === model))).toBe(
      true,
    )
  }
})
