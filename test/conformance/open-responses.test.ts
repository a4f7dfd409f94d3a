// Open Responses (https://www.openresponses.org, version 2026-04-24): the resource with every required member in its type, whole
// and in every event that carries it, and the cases of the standard over HTTP and WebSockets, on providers of every dialect
// and the sandbox.

import { afterAll, describe, expect, test } from 'bun:test'
import { post } from '../parts/ask.ts'
import { type Message, SocketClient } from '../parts/web-socket.ts'
import { type DialectName, openStage, replyPair } from './cells.ts'
import { isCount, isMembers, listOf, type Members, membersOf } from './checker/violation.ts'
import { callOpening, chatBytes, wholeCall } from './replies/chat-bytes.ts'
import { callPart, geminiBytes } from './replies/gemini-bytes.ts'
import { callBlock, messagesBytes, textBlock } from './replies/messages-bytes.ts'
import { callItem, messageItem, responsesBytes, responsesUsage } from './replies/responses-bytes.ts'
import { answerWith } from './reply-cells.ts'

const stage = await openStage(() => {})
afterAll(() => stage.stop())

const modelAt = (upstream: DialectName): string => replyPair('responses', upstream).model

// ── The resource ──

type Check = (value: unknown) => boolean

const isNull: Check = (value) => value === null
const isText: Check = (value) => typeof value === 'string'
const isNumber: Check = (value) => typeof value === 'number'
const isWord =
  (...words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value)
const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((check) => check(value))
const has =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isMembers(value) && Object.entries(checks).every(([name, check]) => name in value && check(value[name]))
const listed =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)

const status = isWord('in_progress', 'completed', 'incomplete')
const isUsage = has({
  input_tokens: isCount,
  output_tokens: isCount,
  total_tokens: isCount,
  input_tokens_details: has({ cached_tokens: isCount }),
  output_tokens_details: has({ reasoning_tokens: isCount }),
})
const isTool = has({
  type: isWord('function'),
  name: isText,
  description: either(isText, isNull),
  parameters: either(isMembers, isNull),
  strict: either(isWord(true, false), isNull),
})
const itemChecks: Readonly<Record<string, Check>> = {
  message: has({
    id: isText,
    status,
    role: isWord('assistant'),
    content: listed(has({ type: isWord('output_text'), text: isText, annotations: listed(isMembers) })),
  }),
  function_call: has({ id: isText, call_id: isText, name: isText, arguments: isText, status }),
  reasoning: has({ id: isText, summary: listed(has({ type: isWord('summary_text'), text: isText })) }),
  compaction: has({ id: isText, encrypted_content: isText }),
}
const isItem: Check = (item) => itemChecks[String(membersOf(item).type)]?.(item) === true

/** Every member that the standard requires, and its type. */
const resource: Readonly<Record<string, Check>> = {
  id: isText,
  object: isWord('response'),
  created_at: isCount,
  completed_at: either(isCount, isNull),
  status: isWord('in_progress', 'completed', 'incomplete', 'failed'),
  incomplete_details: either(has({ reason: isText }), isNull),
  model: isText,
  previous_response_id: either(isText, isNull),
  instructions: either(isText, isNull),
  output: listed(isItem),
  error: either(has({ code: isText, message: isText }), isNull),
  tools: listed(isTool),
  tool_choice: either(isWord('none', 'auto', 'required'), has({ type: isText })),
  truncation: isWord('auto', 'disabled'),
  parallel_tool_calls: isWord(true, false),
  text: has({ format: has({ type: isWord('text', 'json_object', 'json_schema') }) }),
  top_p: isNumber,
  presence_penalty: isNumber,
  frequency_penalty: isNumber,
  top_logprobs: isCount,
  temperature: isNumber,
  reasoning: either(has({ effort: either(isText, isNull), summary: either(isText, isNull) }), isNull),
  usage: either(isUsage, isNull),
  max_output_tokens: either(isCount, isNull),
  max_tool_calls: either(isCount, isNull),
  store: isWord(true, false),
  background: isWord(true, false),
  service_tier: isText,
  metadata: isMembers,
  safety_identifier: either(isText, isNull),
  prompt_cache_key: either(isText, isNull),
}

function faultsIn(response: Members): readonly string[] {
  return Object.entries(resource).flatMap(([name, check]) =>
    name in response && check(response[name]) ? [] : [`${name}: ${JSON.stringify(response[name])}`],
  )
}

/** The events of a stream, each checked as the standard has it, and the response of the last one. */
function readStream(text: string, isBroken = false) {
  const records = text.split('\n\n').filter((record) => !record.startsWith(':') && record !== '')
  if (!isBroken) expect(records.pop()).toBe('data: [DONE]')
  const events = records.map((record) => {
    const [, type, data = ''] = /^event: (\S+)\ndata: (.*)$/.exec(record) ?? []
    const event = membersOf(JSON.parse(data))
    expect(event.type).toBe(type)
    return event
  })
  return readEvents(events)
}

function readEvents(events: readonly Members[]) {
  for (const [at, { type, sequence_number: number, response }] of events.entries()) {
    expect([type, number]).toEqual([type, at])
    if (response !== undefined) expect([type, faultsIn(membersOf(response))]).toEqual([type, []])
  }
  return { types: events.map(({ type }) => String(type)), events, response: membersOf(events.at(-1)?.response) }
}

// ── The cases ──

const tool = {
  type: 'function',
  name: 'get_weather',
  description: 'Get the current weather for a location',
  parameters: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
}
const json = '{"location":"San Francisco"}'
const usage = { ...responsesUsage, output_tokens_details: { reasoning_tokens: 0 } }
const says = {
  chat: chatBytes({ deltas: [{ content: 'hello' }], message: { content: 'hello' }, finish: 'stop' }),
  messages: messagesBytes({ blocks: [textBlock('hello')], stop: 'end_turn' }),
  gemini: geminiBytes({ records: [[{ text: 'hello' }]] }),
  responses: responsesBytes({ items: [messageItem(0, 'hello')], usage }),
}
const calls = {
  chat: chatBytes({
    deltas: [callOpening(0, 'call_1', 'get_weather', json)],
    message: { tool_calls: [wholeCall('call_1', 'get_weather', json)] },
    finish: 'tool_calls',
  }),
  messages: messagesBytes({ blocks: [callBlock('call_1', 'get_weather', json)], stop: 'tool_use' }),
  gemini: geminiBytes({ records: [[callPart('call_1', 'get_weather', json)]] }),
  responses: responsesBytes({ items: [callItem(0, 'call_1', 'get_weather', json)], usage }),
}

const user = (content: unknown) => ({ type: 'message', role: 'user', content })
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

interface Case {
  readonly body: object
  readonly calls?: true
}

const cases: Readonly<Record<string, Case>> = {
  'a text': { body: { input: [user('Say hello in exactly 3 words.')] } },
  'a text alone': { body: { input: 'Say hello.' } },
  'a system prompt': {
    body: { input: [{ type: 'message', role: 'system', content: 'You are a pirate.' }, user('Say hello.')] },
  },
  'a tool': { body: { input: [user('What is the weather like in San Francisco?')], tools: [tool] }, calls: true },
  'an image': {
    body: {
      input: [
        user([
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image_url: pixel },
        ]),
      ],
    },
  },
  'several turns': {
    body: {
      input: [
        user('My name is Alice.'),
        { type: 'message', role: 'assistant', content: 'Hello Alice!', phase: 'final_answer' },
        user('What is my name?'),
      ],
    },
  },
  'settings of every kind': {
    body: {
      input: 'Say hello.',
      ...{ instructions: 'Be kind.', max_output_tokens: 64, metadata: { run: '7' }, parallel_tool_calls: false },
      ...{ reasoning: { effort: 'low' }, service_tier: 'auto', safety_identifier: 'u1', prompt_cache_key: 'k1' },
      ...{ temperature: 0.5, top_p: 0.9, text: { verbosity: 'low' }, tools: [tool], truncation: 'disabled' },
      tool_choice: { type: 'allowed_tools', tools: [{ type: 'function', name: 'get_weather' }] },
    },
  },
  'members that are null': {
    body: {
      input: 'Say hello.',
      ...{ instructions: null, max_output_tokens: null, metadata: null, parallel_tool_calls: null, reasoning: null },
      ...{ temperature: null, top_p: null, text: null, tools: null, tool_choice: null, prompt_cache_key: null },
    },
  },
}

const places = [...(Object.keys(says) as DialectName[]), 'sandbox'] as const

describe.each(places)('on %s', (place) => {
  const ask = async (body: object, of: typeof says, path = '/v1/responses', sandbox = 'sandbox/echo') => {
    const answer = answerWith((dialect) => of[dialect])
    stage.upstream.handle(async (call, reply) => {
      // As hosts of this API other than OpenAI answer.
      if (call.path.endsWith('/compact')) return await reply.json(404, { error: { message: 'Not Found' } })
      await answer(call, reply)
    }, 'stay unasked')
    const model = place === 'sandbox' ? sandbox : modelAt(place)
    const response = await post(stage.gateway, path, { model, ...body })
    return { status: response.status, text: await response.text(), model }
  }

  describe.each(Object.entries(cases))('%s', (_, { body, calls: isCall }) => {
    const of = isCall ? calls : says
    const sandbox = isCall ? 'sandbox/tools' : 'sandbox/echo'
    const type = isCall ? 'function_call' : 'message'

    test('whole', async () => {
      const { status: code, text, model } = await ask(body, of, '/v1/responses', sandbox)
      expect([code, text.slice(0, 1)]).toEqual([200, '{'])
      const response = membersOf(JSON.parse(text))
      expect(faultsIn(response)).toEqual([])
      expect(response).toMatchObject({ status: 'completed', model })
      expect(listOf(response.output).map((item) => membersOf(item).type)).toContain(type)
    })

    test('streamed', async () => {
      const { status: code, text, model } = await ask({ ...body, stream: true }, of, '/v1/responses', sandbox)
      expect(code).toBe(200)
      const { types, events, response } = readStream(text)
      expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress'])
      expect(types.at(-1)).toBe('response.completed')
      expect(response).toMatchObject({ status: 'completed', model })
      const items = (of: string) => events.filter((event) => event.type === of).map(({ item }) => membersOf(item).type)
      expect(items('response.output_item.added')).toContain(type)
      expect(items('response.output_item.done')).toContain(type)
      const delta = isCall ? 'response.function_call_arguments' : 'response.output_text'
      expect(types).toContain(`${delta}.delta`)
      expect(types).toContain(`${delta}.done`)
    })
  })

  test('compaction', async () => {
    const { status: code, text } = await ask({ input: [user('A long story.')] }, says, '/v1/responses/compact')
    expect(code).toBe(200)
    const compacted = membersOf(JSON.parse(text))
    const isWhole = has({
      ...{ id: isText, object: isWord('response.compaction'), created_at: isCount },
      ...{ output: listed(isItem), usage: isUsage },
    })
    expect([isWhole(compacted), listOf(compacted.output).map((item) => membersOf(item).type)]).toEqual([
      true,
      ['compaction'],
    ])
    const next = await ask({ input: [...listOf(compacted.output), user('Go on.')] }, says)
    expect(next.status).toBe(200)
  })

  test('compaction without a model', async () => {
    const response = await post(stage.gateway, '/v1/responses/compact', { input: [user('A long story.')] })
    expect(response.status).toBe(400)
  })
})

// ── Over WebSockets ──

describe.each(places)('over a WebSocket on %s', (place) => {
  const model = place === 'sandbox' ? 'sandbox/echo' : modelAt(place)
  const store = { store: false }

  async function open(): Promise<SocketClient> {
    const answer = answerWith((dialect) => says[dialect])
    stage.upstream.handle(async (call, reply) => {
      if (call.path.endsWith('/compact')) return await reply.json(404, { error: { message: 'Not Found' } })
      await answer(call, reply)
    }, 'stay unasked')
    return await SocketClient.open(stage.gateway)
  }

  function completed(messages: readonly Message[]): Members {
    const { types, response } = readEvents(messages)
    expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress'])
    expect(types).toContain('response.output_item.done')
    expect([types.at(-1), response.status]).toEqual(['response.completed', 'completed'])
    return response
  }

  function expectUnknown(messages: readonly Message[]): void {
    expect(messages).toMatchObject([{ type: 'error', status: 400, error: { code: 'previous_response_not_found' } }])
  }

  test('a response', async () => {
    const client = await open()
    completed(await client.turn({ model, input: [user('Count from 1 to 3.')] }))
    await client.close()
  })

  test('one response after another', async () => {
    const client = await open()
    for (const word of ['first', 'second'])
      completed(await client.turn({ model, ...store, input: `Reply with exactly: ${word}` }))
    await client.close()
  })

  test('a response that continues another', async () => {
    const client = await open()
    const { id } = completed(await client.turn({ model, ...store, input: 'Remember the code word: cobalt.' }))
    const next = { model, ...store, input: 'What is the code word?', previous_response_id: id }
    const { previous_response_id: previous, usage } = completed(await client.turn(next))
    expect(previous).toBe(id)
    // The sandbox counts what it was sent.
    if (place === 'sandbox') expect(membersOf(usage).input_tokens).toBeGreaterThan(next.input.length / 4 + 5)
    else expect(JSON.stringify(stage.upstream.calls.at(-1)?.json())).toContain('cobalt')
    await client.close()
  })

  test('a response that was not stored is unknown on another connection, which starts anew', async () => {
    const before = await open()
    const { id } = completed(await before.turn({ model, ...store, input: 'Remember the code word: copper.' }))
    await before.close()
    const client = await open()
    expectUnknown(await client.turn({ model, ...store, input: 'Go on.', previous_response_id: id }))
    completed(await client.turn({ model, ...store, input: [user('Start again.')] }))
    await client.close()
  })

  test('an unknown response', async () => {
    const client = await open()
    expectUnknown(await client.turn({ model, ...store, input: 'Go on.', previous_response_id: 'resp_missing' }))
    await client.close()
  })

  test('a response cannot be continued after that failed', async () => {
    const client = await open()
    const { id } = completed(await client.turn({ model, ...store, input: 'Remember the code word: ember.' }))
    const result = { type: 'function_call_output', call_id: 'call_missing', output: 'There is no such call.' }
    const failed = await client.turn({ model, ...store, input: [result], previous_response_id: id })
    expect(failed).toMatchObject([{ type: 'error', status: 400, error: { param: 'input[0].call_id' } }])
    expectUnknown(await client.turn({ model, ...store, input: 'Go on.', previous_response_id: id }))
    await client.close()
  })

  test('a compacted conversation starts a new one', async () => {
    const client = await open()
    const body = { model, input: [user('A long story.'), user('More of it.')] }
    const compacted = await post(stage.gateway, '/v1/responses/compact', body)
    const { output } = membersOf(await compacted.json())
    const response = completed(await client.turn({ model, ...store, input: [...listOf(output), user('Go on.')] }))
    expect(response.previous_response_id).toBeNull()
    await client.close()
  })
})

test('a stream that fails ends with the whole resource', async () => {
  const full = { stream: `${says.chat.stream.split('\n\n').slice(0, 2).join('\n\n')}\n\n`, whole: says.chat.whole }
  stage.upstream.handle(answerWith(() => full))
  const body = { model: modelAt('chat'), input: 'Say hello.', temperature: 0.5, stream: true }
  const { types, response } = readStream(await (await post(stage.gateway, '/v1/responses', body)).text(), true)
  expect(types.at(-1)).toBe('response.failed')
  expect(response).toMatchObject({ status: 'failed', model: modelAt('chat'), temperature: 0.5, completed_at: null })
  expect(response.error).toMatchObject({ code: 'server_error' })
})

test('a translated response says when it was completed, and which settings were used', async () => {
  stage.upstream.handle(answerWith((dialect) => says[dialect]))
  const ask = async (more: object) => {
    const response = await post(stage.gateway, '/v1/responses', { model: modelAt('chat'), input: 'Hi.', ...more })
    return membersOf(await response.json())
  }
  const plain = await ask({})
  expect(plain).toMatchObject({ temperature: 1, top_p: 1, service_tier: 'default', text: { format: { type: 'text' } } })
  expect(Number(plain.completed_at)).toBeGreaterThanOrEqual(Number(plain.created_at))
  const set = await ask({ ...cases['settings of every kind']?.body })
  expect(set).toMatchObject({
    ...{ temperature: 0.5, top_p: 0.9, service_tier: 'default', reasoning: { effort: 'low', summary: null } },
    ...{ text: { format: { type: 'text' }, verbosity: 'low' }, metadata: { run: '7' }, safety_identifier: 'u1' },
    tools: [{ ...tool, strict: null }],
    tool_choice: { type: 'allowed_tools', mode: 'auto' },
  })
})

test.each(['chat', 'messages', 'gemini'] as const)(
  'types of extensions are left out or refused by name on %s',
  async (upstream) => {
    stage.upstream.handle(answerWith((dialect) => says[dialect]))
    const model = modelAt(upstream)
    const item = { type: 'acme:search_result', id: 'sr_1', status: 'completed' }
    const dropped = await post(stage.gateway, '/v1/responses', { model, input: [item, user('Hi.')] })
    expect([dropped.status, dropped.headers.get('x-tollgate-warnings')]).toEqual([200, 'item_dropped;field=/input/0'])
    const tools = [{ type: 'acme:search' }]
    const refused = await post(stage.gateway, '/v1/responses', { model, input: 'Hi.', tools })
    expect([refused.status, membersOf(membersOf(await refused.json()).error).param]).toEqual([400, 'tools[0]'])
  },
)

test('types of extensions reach a provider of this API as they are', async () => {
  stage.upstream.handle(answerWith((dialect) => says[dialect]))
  const item = { type: 'acme:search_result', id: 'sr_1', status: 'completed' }
  const body = { model: modelAt('responses'), input: [item, user('Hi.')] }
  expect((await post(stage.gateway, '/v1/responses', body)).status).toBe(200)
  expect(listOf(stage.upstream.calls.at(-1)?.json().input)[0]).toEqual(item)
})
