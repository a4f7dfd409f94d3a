// Providers that were asked for a stream and answer with a whole reply: on both lanes the client gets what it asked
// for, as its own accumulator reads it.

import { afterAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import {
  chatClientNames,
  createChatClient,
  createMessageClient,
  messageClientNames,
} from '../parts/official-clients.ts'
import { bothSurfaces } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'

const upstream = startUpstream((call, reply) =>
  reply.json(200, call.path.endsWith('/chat/completions') ? chatReply : messagesReply),
)
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })
afterAll(() => stopAll(gateway, upstream))

const chatReply = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_794_700_000,
  model: 'up',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Let me see.',
        refusal: null,
        tool_calls: [
          { id: 'call_a', type: 'function', function: { name: 'look', arguments: '{"at":"Zürich 🎉"}' } },
          { id: 'call_b', type: 'function', function: { name: 'wait', arguments: '{}' } },
        ],
      },
      logprobs: null,
      finish_reason: 'tool_calls',
    },
  ],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
}

const messagesReply = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'up',
  content: [
    { type: 'text', text: 'Let me see.' },
    { type: 'tool_use', id: 'call_a', name: 'look', input: { at: 'Zürich 🎉' } },
    { type: 'tool_use', id: 'call_b', name: 'wait', input: {} },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: { input_tokens: 100, output_tokens: 20 },
}

// 100 in at $1.00 and 20 out at $2.00 per million.
const cost = 0.00014
const models = ['test/chat', 'test/messages']
const user = { role: 'user' as const, content: 'hi' }

describe.each([...chatClientNames])('%s', (name) => {
  const client = () => createChatClient(name, { baseURL: `${gateway.url}/v1`, apiKey: gateway.key })

  test.each(models)('pitfall 139: reads a stream of %s', async (model) => {
    const asked = { model, messages: [user], stream_options: { include_usage: true } }
    const completion = await client().chat.completions.stream(asked).finalChatCompletion()
    const { message, finish_reason } = completion.choices[0] ?? {}
    expect([completion.model, message?.content, finish_reason]).toEqual([model, 'Let me see.', 'tool_calls'])
    expect(message?.tool_calls?.map((call) => ('function' in call ? [call.id, call.function.name] : []))).toEqual([
      ['call_a', 'look'],
      ['call_b', 'wait'],
    ])
    expect(message?.tool_calls?.map((call) => ('function' in call ? call.function.arguments : ''))).toEqual([
      '{"at":"Zürich 🎉"}',
      '{}',
    ])
    expect(completion.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 20, cost })
    expect(upstream.calls.at(-1)?.json().stream).toBe(true)
  })

  test.each(models)('reads a whole reply of %s', async (model) => {
    const completion = await client().chat.completions.create({ model, messages: [user] })
    expect(completion.choices[0]?.message.tool_calls).toHaveLength(2)
    expect(completion.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 20, cost })
  })

  test('keeps the usage from a client that did not ask', async () => {
    const stream = await client().chat.completions.create({ model: 'test/chat', messages: [user], stream: true })
    for await (const chunk of stream) expect([chunk.choices.length, chunk.usage ?? null]).toEqual([1, null])
  })
})

describe.each([...messageClientNames])('%s', (name) => {
  const client = () => createMessageClient(name, { baseURL: gateway.url, apiKey: gateway.key })

  test.each(models)('pitfall 139: reads a stream of %s', async (model) => {
    const message = await client()
      .messages.stream({ model, max_tokens: 99, messages: [user] })
      .finalMessage()
    expect([message.model, message.stop_reason]).toEqual([model, 'tool_use'])
    expect(message.content).toMatchObject([
      { type: 'text', text: 'Let me see.' },
      { type: 'tool_use', id: 'call_a', name: 'look', input: { at: 'Zürich 🎉' } },
      { type: 'tool_use', id: 'call_b', name: 'wait', input: {} },
    ])
    expect(message.usage).toMatchObject({ input_tokens: 100, output_tokens: 20 })
    expect(upstream.calls.at(-1)?.json().stream).toBe(true)
  })

  test.each(models)('reads a whole reply of %s', async (model) => {
    const message = await client().messages.create({ model, max_tokens: 99, messages: [user] })
    expect(message.content).toHaveLength(3)
    expect(message.usage).toMatchObject({ input_tokens: 100, output_tokens: 20, cost })
  })
})

test.each([
  // JSON that is whole has ended, also where it does not say how.
  [null, 200],
  ['error', 404],
])('a whole reply that ended with %p is a %d on either surface', async (finish, status) => {
  const unfinished = { ...chatReply, choices: [{ ...chatReply.choices[0], finish_reason: finish }] }
  upstream.handle((_, reply) => reply.json(200, unfinished))
  for (const surface of bothSurfaces) {
    const body = { model: 'test/chat', max_tokens: 9, messages: [user], stream: true }
    expect((await ask(gateway, surface, body)).status).toBe(status)
  }
})
