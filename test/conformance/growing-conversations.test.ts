// A conversation that grows turn by turn, translated for several kinds of models: every request begins with the bytes
// of the one before, so that prompt caches hit and signed thinking stays bound to what it was made from. In another
// process, started for it, the bytes are the same.

import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issuerName, writeSignature } from '../../src/dialects/canonical/signature.ts'
import { type Asked, ask } from '../parts/ask.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { chat, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

/** Each stands for other rules: roles, ids, tools, thinking, images, system messages inside the conversation. */
const chatModels = ['gpt-4.1', 'gpt-5.6', 'deepseek-v4-pro', 'mistral-large-2512', 'plain-1']
const messagesModels = ['claude-opus-5-5', 'claude-opus-4-8', 'claude-sonnet-4-5', 'claude-3-7-sonnet-20250219']

function configFor(url: string): string {
  const models = [...chatModels.map((name) => [name, 'chatty']), ...messagesModels.map((name) => [name, 'messy'])]
  const lines = models.map(
    ([name, provider]) =>
      `  - { id: test/${name}, price: free, max_output_tokens: 8000, default_max_tokens: 4096, routes: [{ provider: ${provider}, model: ${name} }] }`,
  )
  return `providers:
  - { id: chatty, dialect: openai-chat, base_url: "${url}/v1", api_key: secret-chat }
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: secret-messages }
models:
${lines.join('\n')}
`
}

const upstream = startUpstream(async (call, reply) => {
  const words = wordsFor(call)
  await reply.startStream()
  await reply.chunk(words.opening + words.says('hello') + words.ending)
  await reply.finish()
})
const gateway = await startGateway({ config: configFor(upstream.url) })
afterAll(() => stopAll(gateway, upstream))

/** The body that the provider got for a request. */
async function upstreamBody(at: Asked, surface: TestSurface, body: object): Promise<string> {
  const before = upstream.calls.length
  let response = await ask(at, surface, body)
  // A process that has just started on a busy machine turns calls away for a moment.
  while (response.status === 503 && upstream.calls.length === before) {
    await Bun.sleep(50)
    response = await ask(at, surface, body)
  }
  const answer = await response.text()
  const call = upstream.calls[before]
  if (response.status !== 200 || !call) throw new Error(`${response.status} ${answer}`)
  // Marks move with the end of the conversation; they are not part of the prompt.
  return new TextDecoder().decode(call.body).replaceAll(',"cache_control":{"type":"ephemeral"}', '')
}

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const schema = { type: 'object', properties: { at: { type: 'string' }, n: { type: 'integer' } }, required: ['at'] }

const chatTools = [
  { type: 'function', function: { name: 'look', description: 'Looks.', parameters: schema } },
  { type: 'function', function: { name: 'files.read v2', parameters: schema } },
  { type: 'custom', custom: { name: 'patch', description: 'Patches.' } },
]
const chatCall = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
const detail = (text: string, signature: string) => ({
  type: 'reasoning.text',
  text,
  signature,
  format: 'anthropic-claude-v1',
  index: 0,
})

/** The turns of a chat client; each list is what one request adds to the one before. */
const chatTurns: readonly object[][] = [
  [
    { role: 'system', content: 'You are terse.' },
    { role: 'developer', content: [{ type: 'text', text: 'Metric units.' }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
      ],
    },
  ],
  [
    {
      role: 'assistant',
      content: 'Let me look.',
      reasoning_details: [detail('It is small.', 'EqQBCgIYAg==')],
      tool_calls: [
        chatCall('call_1', 'look', '{"at": "left", "n": 12345678901234567890}'),
        chatCall('call 2', 'files.read v2', '{"n":1.0,"at":"x"}'),
        { id: 'call_3', type: 'custom', custom: { name: 'patch', input: 'a\nb' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call 2', content: 'second first' },
    { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'a pixel' }] },
    { role: 'tool', tool_call_id: 'call_3', content: '' },
  ],
  [
    { role: 'assistant', content: 'A pixel.', reasoning_details: [detail('', 'Eabc')] },
    { role: 'system', content: 'From now on answer in French.' },
    { role: 'user', content: 'Sure?' },
  ],
  [
    {
      role: 'assistant',
      content: null,
      reasoning_details: [detail('Once more.', 'Edef')],
      tool_calls: [chatCall('call_1', 'look', '')],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'yes 🎉' },
  ],
  [
    { role: 'assistant', content: 'Oui.' },
    { role: 'user', content: [{ type: 'text', text: 'Read it.' }] },
    { role: 'developer', content: 'Be brief.' },
  ],
  [
    { role: 'assistant', content: '', refusal: 'Non.' },
    { role: 'user', content: 'Why?' },
  ],
]

const toolUse = (id: string, name: string, input: object) => ({ type: 'tool_use', id, name, input })
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }

/** The same for a client of Messages; `signature` is what its thinking came back with. */
const messagesTurns = (signature: string): readonly object[][] => [
  [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }],
  [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'It is small.', signature },
        { type: 'text', text: 'Let me look.' },
        toolUse('toolu_1', 'look', { at: 'left', n: 7 }),
        toolUse('toolu_2', 'files.read_v2', { at: 'x' }),
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_2', content: [{ type: 'text', text: 'shot' }, image] },
        { type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, content: 'boom' },
      ],
    },
  ],
  [
    { role: 'assistant', content: [{ type: 'text', text: 'A pixel.' }] },
    { role: 'user', content: 'Sure?' },
    { role: 'system', content: 'From now on answer in French.' },
  ],
  [
    { role: 'assistant', content: [toolUse('toolu_1', 'look', {})] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1' },
        { type: 'text', text: 'and?' },
      ],
    },
  ],
  [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature },
        { type: 'text', text: 'Oui.' },
      ],
    },
    { role: 'user', content: 'Why?' },
  ],
]

const messagesTools = [
  { name: 'look', description: 'Looks.', input_schema: schema },
  { name: 'files.read_v2', input_schema: schema },
]

interface Growing {
  readonly surface: TestSurface
  readonly model: string
  readonly turns: readonly object[][]
  /** Everything of the body but its messages. */
  readonly rest: object
}

const growing: readonly Growing[] = [
  ...messagesModels.map((name) => ({
    surface: chat,
    model: `test/${name}`,
    turns: chatTurns,
    rest: { tools: chatTools, reasoning_effort: 'high', max_tokens: 4000, user: 'ann@example.com' },
  })),
  ...chatModels.map((name) => ({
    surface: messages,
    model: `test/${name}`,
    turns: messagesTurns(
      writeSignature({
        issuer: issuerName('chatty', 'openai-chat', name),
        blob: '[{"type":"reasoning.encrypted","data":"x"}]',
      }),
    ),
    rest: {
      max_tokens: 4000,
      system: [
        { type: 'text', text: 'You are terse.' },
        { type: 'text', text: 'Metric units.' },
      ],
      tools: messagesTools,
      thinking: { type: 'adaptive' },
      metadata: { user_id: 'u'.repeat(200) },
    },
  })),
]

function requestAt({ model, turns, rest }: Growing, turn: number): object {
  return { ...rest, model, messages: turns.slice(0, turn + 1).flat() }
}

describe.each(growing)('$surface.name onto $model', (conversation) => {
  const { surface, turns } = conversation

  test('vector 99, pitfall 5: each request begins with all of the one before', async () => {
    let before = ''
    for (let turn = 0; turn < turns.length; turn++) {
      const body = await upstreamBody(gateway, surface, requestAt(conversation, turn))
      JSON.parse(body)
      // The list of messages stands last; only what closes it and the body may differ.
      expect(body).toEndWith(']}')
      expect(body.slice(0, before.length)).toBe(before)
      expect(body.length).toBeGreaterThan(before.length)
      before = body.slice(0, -']}'.length)
    }
  })

  test('vector 99: the same request twice is the same bytes', async () => {
    const last = requestAt(conversation, turns.length - 1)
    expect(await upstreamBody(gateway, surface, last)).toBe(await upstreamBody(gateway, surface, last))
  })
})

test('vector 99: another process, with other secrets and ids, sends the same bytes', async () => {
  using folder = createThrowAwayFolder()
  const configPath = join(folder.path, 'tollgate.yaml')
  writeFileSync(configPath, configFor(upstream.url))
  const command = [join(import.meta.dir, '../../bin/tollgate')]
  const again = await startCrashGateway({ dataFolder: folder.path, databaseUrl: undefined, configPath }, { command })
  for (const conversation of growing) {
    const last = requestAt(conversation, conversation.turns.length - 1)
    const here = await upstreamBody(gateway, conversation.surface, last)
    expect(await upstreamBody(again, conversation.surface, last)).toBe(here)
  }
  await again.kill()
})
