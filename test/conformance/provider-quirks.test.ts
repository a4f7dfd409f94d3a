// Requirements of single providers and models, through the real gateway with a client that knows nothing of them: the
// request that they get, and how their answer is read.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { chat, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

const chatModels = ['plain-1', 'gpt-4.1', 'gpt-5.6', 'grok-4-0709', 'gpt-oss-120b', 'deepseek-v4-pro']
const chatHosts = ['mistral-large-2512']
const messagesModels = ['claude-sonnet-4-5', 'claude-opus-5-5']

const upstream = startUpstream(answerHello)
const models = [
  ...[...chatModels, ...chatHosts].map((name) => [name, 'chatty']),
  ...messagesModels.map((name) => [name, 'messy']),
]
const lines = models.map(
  ([name, provider]) =>
    `  - { id: "test/${name}", price: free, max_output_tokens: 64000, default_max_tokens: 4096, routes: [{ provider: ${provider}, model: "${name}" }] }`,
)
const gateway = await startGateway({
  config: `providers:
  - { id: chatty, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: secret-chat }
  - { id: messy, dialect: anthropic-messages, base_url: "${upstream.url}", api_key: secret-messages }
models:
${lines.join('\n')}
`,
})
beforeEach(() => upstream.handle(answerHello, 'stay unasked'))
afterAll(() => stopAll(gateway, upstream))

/** A stream of the records given, as a chat provider sends them. */
function answerWith(...records: (object | string)[]): void {
  upstream.handle(async (_, reply) => {
    await reply.startStream()
    for (const record of records) {
      await reply.chunk(typeof record === 'string' ? record : `data: ${JSON.stringify(record)}\n\n`)
    }
    await reply.chunk('data: [DONE]\n\n')
    await reply.finish()
  })
}
const delta = (fields: object, finish: string | null = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
})

interface Sent {
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any shape are looked into
  readonly body: any
  /** Codes of the warnings. */
  readonly warned: readonly string[]
  // biome-ignore lint/suspicious/noExplicitAny: the same
  readonly answer: any
}

const say = (surface: TestSurface, model: string, fields: object = {}) =>
  ask(gateway, surface, {
    model: `test/${model}`,
    messages: [{ role: 'user', content: 'hi' }],
    ...(surface === messages ? { max_tokens: 4000 } : {}),
    ...fields,
  })

async function send(surface: TestSurface, model: string, fields: object): Promise<Sent> {
  const before = upstream.calls.length
  const response = await say(surface, model, fields)
  const answer = await response.json()
  const call = upstream.calls[before]
  if (response.status !== 200 || !call) throw new Error(`${response.status} ${JSON.stringify(answer)}`)
  const header = response.headers.get('x-tollgate-warnings')
  return { body: call.json(), warned: header?.split(', ').map((entry) => entry.split(';')[0] ?? '') ?? [], answer }
}

const tool = { name: 'look', input_schema: { type: 'object', properties: {} } }
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const thoughtful = [
  { role: 'user', content: 'hi' },
  {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 'EqQB' },
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
    ],
  },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'seen' }] },
]

describe('requests', () => {
  test('pitfall 22: who says nothing about thinking says nothing about it to the provider', async () => {
    for (const model of chatModels) {
      const { body } = await send(messages, model, {})
      expect(Object.keys(body)).not.toContain('reasoning_effort')
    }
    expect((await send(chat, 'claude-sonnet-4-5', {})).body.thinking).toBeUndefined()
  })

  test('pitfall 93: an image by URL goes out as a URL, in both directions', async () => {
    const url = 'https://example.com/a.png'
    const toMessages = await send(chat, 'claude-sonnet-4-5', {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    })
    expect(toMessages.body.messages[0].content).toEqual([{ type: 'image', source: { type: 'url', url } }])
    const toChat = await send(messages, 'gpt-4.1', {
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] }],
    })
    expect(toChat.body.messages[0].content).toEqual([{ type: 'image_url', image_url: { url } }])
  })

  test('pitfall 94: what would have to be fetched is refused by its place, never replaced by words', async () => {
    const before = upstream.calls.length
    const document = { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }
    const response = await say(messages, 'gpt-4.1', { messages: [{ role: 'user', content: [document] }] })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect([response.status, error.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(error.message).toContain('by URL')
    expect(upstream.calls).toHaveLength(before)
  })

  test('pitfall 137: asks for a stream if the answer may be long, and for a whole reply if the caller wants one', async () => {
    const { body, answer } = await send(messages, 'plain-1', { max_tokens: 60_000 })
    expect(body).toMatchObject({ stream: true, max_tokens: 60_000 })
    expect(answer.content).toEqual([{ type: 'text', text: 'hello', citations: null }])
    const whole = await send(chat, 'claude-sonnet-4-5', {})
    expect(whole.body.stream).toBe(false)
    expect(whole.answer.choices[0].message.content).toBe('hello')
  })

  test('pitfall 175, 176 and 183: a host gets no field it might not know: no empty lists, no reasoning', async () => {
    for (const model of ['plain-1', 'mistral-large-2512']) {
      const empty = await send(messages, model, { tools: [] })
      expect(Object.keys(empty.body).toSorted()).toEqual(['max_tokens', 'messages', 'model', 'stream'])
      const { body } = await send(messages, model, { tools: [tool], messages: thoughtful })
      const assistant = body.messages.find(({ role }: { role: string }) => role === 'assistant')
      expect(Object.keys(assistant).toSorted()).toEqual(['content', 'role', 'tool_calls'])
      expect(JSON.stringify(body)).not.toContain('hm')
    }
  })

  test('pitfall 177: Grok has no dial and takes no stop, which is matched here instead', async () => {
    const options = { output_config: { effort: 'high' }, stop_sequences: ['lo'] }
    const { body, warned, answer } = await send(messages, 'grok-4-0709', options)
    expect(body.reasoning_effort).toBeUndefined()
    expect(body.stop).toBeUndefined()
    expect(warned).toEqual(['reasoning_dropped'])
    expect([answer.stop_reason, answer.stop_sequence, answer.content[0].text]).toEqual(['stop_sequence', 'lo', 'hel'])
  })

  test('pitfall 177: sends no tool choice without tools', async () => {
    const { body } = await send(messages, 'grok-4-0709', { tools: [], tool_choice: { type: 'auto' } })
    expect(body.tool_choice).toBeUndefined()
  })

  test('pitfall 178: reasoning of gpt-oss cannot be turned off, and the caller gets a warning', async () => {
    const { body, warned } = await send(messages, 'gpt-oss-120b', { thinking: { type: 'disabled' } })
    expect(body.reasoning_effort).toBe('low')
    expect(warned).toEqual(['reasoning_not_disabled'])
  })

  test('pitfall 33 and 48: Mistral gets ids of nine characters and its order of turns from a chat client too', async () => {
    const call = { id: 'call_abc123', type: 'function', function: { name: 'look', arguments: '{}' } }
    const history = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_abc123', content: 'seen' },
      { role: 'user', content: 'and?' },
    ]
    const { body } = await send(chat, 'mistral-large-2512', { messages: history })
    const id = body.messages[1].tool_calls[0].id
    expect(id).toMatch(/^[A-Za-z0-9]{9}$/)
    expect(body.messages).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [{ ...call, id }] },
      { role: 'tool', tool_call_id: id, content: 'seen' },
      { role: 'assistant', content: 'OK.' },
      { role: 'user', content: 'and?' },
    ])
  })

  test('pitfall 184: an image in a tool result is shown to OpenAI in a user message', async () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
    const [first, second] = thoughtful
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [image] }] }
    const { body } = await send(messages, 'gpt-4.1', { tools: [tool], messages: [first, second, result] })
    const [toolMessage, userMessage] = body.messages.slice(-2)
    expect([toolMessage.role, typeof toolMessage.content]).toEqual(['tool', 'string'])
    expect(userMessage.role).toBe('user')
    expect(JSON.stringify(userMessage)).toContain(png)
  })

  test('pitfall 185: DeepSeek is not forced while it thinks, and gets no empty tools', async () => {
    const { body, warned } = await send(messages, 'deepseek-v4-pro', { tools: [tool], tool_choice: { type: 'any' } })
    expect(body.tool_choice).toBe('auto')
    expect(warned).toContain('tool_choice_relaxed')
    expect((await send(messages, 'deepseek-v4-pro', { tools: [] })).body.tools).toBeUndefined()
  })

  test('pitfall 9: supported settings are sent, the others cause a warning', async () => {
    const options = { output_config: { effort: 'high' } }
    const able = await send(messages, 'gpt-5.6', options)
    expect([able.body.reasoning_effort, able.warned]).toEqual(['high', []])
    const unable = await send(messages, 'gpt-4.1', options)
    expect([unable.body.reasoning_effort, unable.warned]).toEqual([undefined, ['reasoning_dropped']])
    await (await say(messages, 'claude-opus-5-5', { stream: true, ...options })).text()
    expect(upstream.calls.at(-1)?.json().output_config).toEqual({ effort: 'high' })
  })
})

describe('replies', () => {
  const calls = (answer: { content: { type: string; id: string; input: unknown }[] }) =>
    answer.content.filter(({ type }) => type === 'tool_use').map(({ id, input }) => [id, input])
  const call = (fields: object) => delta({ tool_calls: [fields] })

  test('pitfall 49: ids of calls reach the caller as the provider gave them', async () => {
    answerWith(
      delta({ role: 'assistant' }),
      call({ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }),
      call({ index: 1, id: 'fc_1', type: 'function', function: { name: 'look', arguments: '{}' } }),
      delta({}, 'tool_calls'),
    )
    const { answer } = await send(messages, 'plain-1', { tools: [tool] })
    expect(calls(answer).map(([id]) => id)).toEqual(['call_1', 'fc_1'])
  })

  test("pitfall 169: Azure's first record without choices is no content, on either lane", async () => {
    const first = { id: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] }
    answerWith(first, delta({ role: 'assistant', content: '' }), delta({ content: 'hello' }), delta({}, 'stop'))
    const { answer } = await send(messages, 'plain-1', {})
    expect(answer.content).toEqual([{ type: 'text', text: 'hello', citations: null }])
    expect(await (await say(chat, 'plain-1', { stream: true })).text()).toContain('"content":"hello"')
  })

  test('pitfall 180: Ollama gives every call the number 0', async () => {
    answerWith(
      delta({ role: 'assistant' }),
      call({ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{"n":1}' } }),
      call({ index: 0, id: 'b', type: 'function', function: { name: 'look', arguments: '{"n":2}' } }),
      delta({}, 'stop'),
    )
    const { answer } = await send(messages, 'plain-1', { tools: [tool] })
    expect(calls(answer)).toEqual([
      ['a', { n: 1 }],
      ['b', { n: 2 }],
    ])
    expect(answer.stop_reason).toBe('tool_use')
  })

  test('pitfall 178: a whole call in one record with its end is a call', async () => {
    const whole = { id: 'a', type: 'function', function: { name: 'look', arguments: '{"n":1}' }, index: 0 }
    answerWith(delta({ role: 'assistant', tool_calls: [whole] }, 'tool_calls'))
    const { answer } = await send(messages, 'plain-1', { tools: [tool] })
    expect(calls(answer)).toEqual([['a', { n: 1 }]])
  })

  test('pitfall 181: vLLM says `reasoning`, and null in everything it continues', async () => {
    const nulls = { role: null, content: null, id: null }
    answerWith(
      delta({ role: 'assistant', content: '' }),
      delta({ reasoning: 'hm' }),
      call({ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{"n"' } }),
      delta({ ...nulls, tool_calls: [{ index: 0, id: null, type: null, function: { name: null, arguments: ':1}' } }] }),
      delta({}, 'tool_calls'),
    )
    const { answer } = await send(messages, 'plain-1', { tools: [tool] })
    expect(answer.content[0]).toMatchObject({ type: 'thinking', thinking: 'hm' })
    expect(calls(answer)).toEqual([['a', { n: 1 }]])
  })

  test('pitfall 182: OpenRouter sends comments, details of its reasoning, and errors under a 200', async () => {
    const detail = { type: 'reasoning.encrypted', data: 'blob', format: 'openai-responses-v1', index: 0 }
    answerWith(
      ': OPENROUTER PROCESSING\n\n',
      delta({ role: 'assistant', content: '' }),
      ': OPENROUTER PROCESSING\n\n',
      delta({ reasoning_details: [detail] }),
      delta({ content: 'hello' }),
      delta({}, 'stop'),
    )
    const { answer } = await send(messages, 'plain-1', {})
    const [thinking, text] = answer.content
    expect(text.text).toBe('hello')
    // Encrypted reasoning comes back unchanged with the next turn.
    const history = [{ role: 'user', content: 'hi' }, { role: 'assistant', content: [thinking, text] }, thoughtful[0]]
    upstream.handle(answerHello)
    const { body } = await send(messages, 'plain-1', { messages: history })
    expect(body.messages[1].reasoning_details).toEqual([detail])

    answerWith({ id: 'x', choices: [], error: { code: 502, message: 'Provider returned error' } })
    expect((await say(messages, 'plain-1')).status).toBe(404)
  })
})
