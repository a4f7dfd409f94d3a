// An unknown member, written into every object of a request: translation leaves it out, so it must be named
// or refused. What the caller echoes of an answer is exempt, because answers carry members that ask for nothing.

import { describe, expect, test } from 'bun:test'
import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { openaiResponses } from '../../src/dialects/openai-responses/index.ts'
import { Failure } from '../../src/kernel/failure.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const pdf = Buffer.from('%PDF-1.4\n%%EOF').toString('base64')
const wav = Buffer.from('RIFF\x04\0\0\0WAVE').toString('base64')
const schema = { type: 'object', properties: {} }
const mark = { cache_control: { type: 'ephemeral' } }

const chat = {
  model: 'a/b',
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'S' }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'u' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
        { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
        { type: 'file', file: { file_data: `data:application/pdf;base64,${pdf}`, filename: 'r.pdf' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'r' }] },
  ],
  tools: [
    { type: 'function', function: { name: 'look', parameters: schema } },
    { type: 'custom', custom: { name: 'patch' } },
  ],
  tool_choice: { type: 'function', function: { name: 'look' } },
  response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
  stream_options: { include_usage: true },
  stream: true,
  reasoning: { effort: 'low' },
  thinking: { type: 'enabled', budget_tokens: 2000 },
}

const messages = {
  model: 'a/b',
  max_tokens: 100,
  system: [{ type: 'text', text: 'S', ...mark }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'u', ...mark },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'y' }] } },
        { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'z' }] },
      ],
    },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'c1',
          content: [{ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }],
        },
      ],
    },
    { role: 'system', content: [{ type: 'text', text: 'mid' }] },
    { role: 'user', content: 'next' },
  ],
  tools: [
    { name: 'look', input_schema: schema, ...mark },
    { type: 'bash_20250124', name: 'bash' },
  ],
  tool_choice: { type: 'auto' },
  thinking: { type: 'adaptive' },
  output_config: { effort: 'low', format: { type: 'json_schema', schema } },
  metadata: { user_id: 'u' },
}

const responses = {
  model: 'a/b',
  instructions: 'I',
  input: [
    { type: 'additional_tools', role: 'developer', tools: [{ type: 'function', name: 'more', parameters: schema }] },
    { role: 'developer', content: [{ type: 'input_text', text: 'S' }] },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'u', prompt_cache_breakpoint: { mode: 'explicit' } },
        { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'auto' },
        { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
        { type: 'input_file', file_data: `data:application/pdf;base64,${pdf}`, filename: 'r.pdf' },
      ],
    },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'a' }] },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'r' }] },
    { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'x' },
    { type: 'custom_tool_call_output', call_id: 'c2', output: 'ok' },
  ],
  tools: [
    { type: 'function', name: 'look', parameters: schema },
    { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'regex', definition: 'a+' } },
    { type: 'namespace', name: 'git', description: 'Git', tools: [{ type: 'function', name: 'log' }] },
    { type: 'local_shell' },
  ],
  tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] },
  text: { verbosity: 'low', format: { type: 'json_schema', name: 'n', schema } },
  reasoning: { effort: 'low', summary: 'auto' },
  stream_options: { include_obfuscation: false },
  stream: true,
}

/** Schemas are the caller's own; a cache mark is judged as one; names of tools in a choice are only looked up. */
const exempt =
  /\/(schema|input_schema|parameters|cache_control|prompt_cache_breakpoint)(\/|$)|^\/tool_choice\/(function$|tools)/

/** JSON pointers to all objects of a value but those that are exempt or echo an answer. */
function objectsIn(value: unknown, at = ''): string[] {
  if (typeof value !== 'object' || value === null || exempt.test(at)) return []
  const isEcho = 'role' in value && value.role === 'assistant'
  const inner = isEcho ? [] : Object.entries(value).flatMap(([name, each]) => objectsIn(each, `${at}/${name}`))
  return Array.isArray(value) ? inner : [at, ...inner]
}

function withUnknown(body: object, at: string): object {
  const copy = structuredClone(body)
  const steps = at.split('/').slice(1)
  const place = steps.reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], copy)
  Object.assign(place as object, { unheard_of: 'x' })
  return copy
}

describe.each([
  ['chat', openaiChat, chat],
  ['messages', anthropicMessages, messages],
  ['responses', openaiResponses, responses],
] as const)('%s', (_, { readEnvelope, translation }, body) => {
  const warnedOf = (request: object): string => {
    const bytes = new TextEncoder().encode(JSON.stringify(request))
    const envelope = readEnvelope(bytes, new Headers({ 'anthropic-version': '2023-06-01' }))
    const parsed = envelope instanceof Failure ? envelope : translation.parseRequest(envelope)
    if (parsed instanceof Failure) return parsed.message
    return [...parsed.warnings, ...parsed.conversation.unsupported].map(({ field }) => field).join(' ')
  }

  test('the request itself loses nothing', () => expect(warnedOf(body)).toBe(''))

  test.each(objectsIn(body).map((at) => [at]))('an unknown member of %p is named', (at) => {
    expect(warnedOf(withUnknown(body, at))).toContain(`${at}/unheard_of`)
  })
})
