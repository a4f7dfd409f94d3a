// A fake provider by other authors plays every upstream: what they know of OpenAI, Anthropic, Google and
// Bedrock meets what we know of them. Text, a tool call and its result, streamed and not, through both surfaces.

import { afterAll, describe, expect, test } from 'bun:test'
import { LLMock } from '@copilotkit/aimock'
import { ask as askGateway } from '../parts/ask.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { type SurfaceName, surfaces } from './cells.ts'
import { readReply } from './replies/read-reply.ts'

const upstreams = {
  chat: { dialect: 'openai-chat', path: '/v1', key: 'sk-test', model: 'gpt-4o' },
  messages: { dialect: 'anthropic-messages', path: '', key: 'sk-ant-test', model: 'claude-sonnet-4-5' },
  gemini: { dialect: 'gemini', path: '/v1beta', key: 'AIza-test', model: 'gemini-2.5-flash' },
  vertex: {
    dialect: 'gemini',
    path: '/v1/projects/acme/locations/global/publishers/google',
    key: 'token',
    model: 'gemini-2.5-pro',
  },
  responses: { dialect: 'openai-responses', path: '/v1', key: 'sk-test', model: 'gpt-5.6' },
  bedrock: { dialect: 'bedrock', path: '', key: 'AKID:secret', model: 'anthropic.claude-sonnet-4-5-20250929-v1:0' },
} as const
type UpstreamName = keyof typeof upstreams
/** Providers that a caller's own bytes go to. */
const dialectsOf: Readonly<Record<SurfaceName, readonly string[]>> = {
  chat: ['openai-chat'],
  messages: ['anthropic-messages', 'bedrock'],
  responses: ['openai-responses'],
  gemini: ['gemini'],
}

const mock = new LLMock({ port: 0 })
mock.on({ userMessage: 'hello' }, { content: 'Grüße — 四 🎉' })
mock.on(
  { userMessage: 'weather', hasToolResult: false },
  { toolCalls: [{ name: 'look', arguments: '{"city":"Oslo"}' }] },
)
mock.on({ userMessage: 'weather', hasToolResult: true }, { content: 'It rains in Oslo.' })
await mock.start()
const gateway = await startGateway({ config: configOf(mock.url) })
afterAll(() => stopAll(gateway, mock))

function configOf(url: string): string {
  const entries = Object.entries(upstreams)
  const providers = entries.map(
    ([name, { dialect, path, key }]) =>
      `  - { id: ${name}, dialect: ${dialect}, base_url: "${url}${path}", api_key: "${key}" }`,
  )
  const models = entries.map(
    ([name, { model }]) =>
      `  - { id: test/${name}, price: { input: "1.00", output: "2.00" }, max_output_tokens: 8000, routes: [{ provider: ${name}, model: "${model}" }] }`,
  )
  return `providers:\n${providers.join('\n')}\nmodels:\n${models.join('\n')}\n`
}

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tools = {
  chat: [{ type: 'function', function: { name: 'look', description: 'Looks it up.', parameters } }],
  messages: [{ name: 'look', description: 'Looks it up.', input_schema: parameters }],
  responses: [{ type: 'function', name: 'look', description: 'Looks it up.', parameters }],
  gemini: [{ functionDeclarations: [{ name: 'look', description: 'Looks it up.', parametersJsonSchema: parameters }] }],
}

function membersOf(surface: SurfaceName, messages: readonly object[]): object {
  if (surface === 'gemini') return { contents: messages, generationConfig: { maxOutputTokens: 1000 } }
  return surface === 'responses' ? { input: messages } : { max_tokens: 1000, messages }
}

const said = (surface: SurfaceName, content: string) =>
  surface === 'gemini' ? { role: 'user', parts: [{ text: content }] } : { role: 'user', content }

async function ask(surface: SurfaceName, upstream: UpstreamName, stream: boolean, messages: readonly object[]) {
  const body = {
    model: `test/${upstream}`,
    ...membersOf(surface, messages),
    tools: tools[surface],
    stream,
    ...(surface === 'chat' && stream && { stream_options: { include_usage: true } }),
  }
  const response = await askGateway(gateway, surfaces[surface], body)
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status} ${text}`)
  return readReply(surface, text, { stream })
}

/** The conversation with the call and its result in it. */
function afterCall(surface: SurfaceName, id: string): readonly object[] {
  const first = said(surface, 'weather')
  if (surface === 'gemini') {
    return [
      first,
      { role: 'model', parts: [{ functionCall: { id, name: 'look', args: { city: 'Oslo' } } }] },
      { role: 'user', parts: [{ functionResponse: { id, name: 'look', response: { output: 'rain' } } }] },
    ]
  }
  if (surface === 'messages') {
    return [
      first,
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'look', input: { city: 'Oslo' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] },
    ]
  }
  if (surface === 'responses') {
    return [
      first,
      { type: 'function_call', call_id: id, name: 'look', arguments: '{"city":"Oslo"}' },
      { type: 'function_call_output', call_id: id, output: 'rain' },
    ]
  }
  const call = { id, type: 'function', function: { name: 'look', arguments: '{"city":"Oslo"}' } }
  return [
    first,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: id, content: 'rain' },
  ]
}

const cases = (Object.keys(upstreams) as UpstreamName[]).flatMap((upstream) =>
  (['chat', 'messages', 'responses', 'gemini'] as const).flatMap((surface) =>
    [true, false].map((stream) => [upstream, surface, stream] as const),
  ),
)

describe.each(cases)('%s through %s, streamed: %p', (upstream, surface, stream) => {
  test('text arrives, counted and priced', async () => {
    const { content, violations } = await ask(surface, upstream, stream, [said(surface, 'hello')])
    expect(content.text).toBe('Grüße — 四 🎉')
    expect(content.calls).toEqual([])
    expect(content.models).toEqual([`test/${upstream}`])
    expect(content.usage?.output).toBeGreaterThan(0)
    expect(content.usage?.cost).toBeGreaterThan(0)
    // Between sides of one dialect its own bytes pass, as tidy as they are.
    if (!dialectsOf[surface].includes(upstreams[upstream].dialect)) expect(violations).toEqual([])
  })

  test('a tool is called, and its result answered', async () => {
    const { content } = await ask(surface, upstream, stream, [said(surface, 'weather')])
    const [call] = content.calls
    expect(content.calls).toHaveLength(1)
    expect([call?.name, JSON.parse(call?.arguments ?? '')]).toEqual(['look', { city: 'Oslo' }])
    expect(content.stop).toBe(surface === 'messages' ? 'tool_use' : 'tool_calls')
    const after = await ask(surface, upstream, stream, afterCall(surface, call?.id ?? ''))
    expect(after.content.text).toBe('It rains in Oslo.')
    expect(after.content.stop).toBe(
      { chat: 'stop', messages: 'end_turn', responses: 'completed', gemini: 'STOP' }[surface],
    )
  })
})
