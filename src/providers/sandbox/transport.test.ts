import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ask, createTransport, type Path, readJson, readRecords, say } from '../../../test/parts/ask-sandbox.ts'

const surfaces = ['/chat/completions', '/v1/messages'] as const
const hello = 'hello from the other side of the gate'

describe('bytes on the wire', () => {
  test('renders a chat completion, with the time in whole seconds', async () => {
    const response = await ask(createTransport(), '/chat/completions', say('/chat/completions', 'echo', hello))
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-request-id')).toMatch(/^req_sandbox_[0-9a-f]{24}$/)
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^chatcmpl-sandbox_[0-9a-f]{24}$/),
      object: 'chat.completion',
      created: 1_794_700_800,
      model: 'echo',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: hello, refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 12,
        completion_tokens: 8,
        total_tokens: 20,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      },
    })
  })

  test('renders a message', async () => {
    const response = await ask(createTransport(), '/v1/messages', say('/v1/messages', 'echo', hello))
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('request-id')).toMatch(/^req_sandbox_[0-9a-f]{24}$/)
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^msg_sandbox_[0-9a-f]{24}$/),
      type: 'message',
      role: 'assistant',
      model: 'echo',
      content: [{ type: 'text', text: hello, citations: null }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: {
        input_tokens: 12,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: null,
        output_tokens: 8,
        output_tokens_details: null,
        server_tool_use: null,
        service_tier: null,
        inference_geo: null,
        speed: null,
      },
    })
  })

  test.each([true, false])(
    'streams chat chunks: role, words, finish, [DONE]; include_usage: %p',
    async (include_usage) => {
      const body = say('/chat/completions', 'echo', 'one two', { stream: true, stream_options: { include_usage } })
      const response = await ask(createTransport(), '/chat/completions', body)
      expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
      const records = await readRecords(response)
      expect(records.every(({ event }) => event === undefined)).toBe(true)
      expect(records.at(-1)?.data).toBe('[DONE]')
      const chunks = records.slice(0, -1).map(({ data }) => JSON.parse(data))
      const choices = chunks.flatMap((chunk) => chunk.choices)
      expect(choices.map(({ delta, finish_reason }) => [delta, finish_reason])).toEqual([
        [{ role: 'assistant', content: '' }, null],
        [{ content: 'one' }, null],
        [{ content: ' two' }, null],
        [{}, 'stop'],
      ])
      expect(new Set(chunks.map(({ id, created, object }) => `${id} ${created} ${object}`)).size).toBe(1)
      if (include_usage) {
        expect(chunks.map(({ usage }) => usage?.total_tokens ?? usage)).toEqual([null, null, null, null, 8])
        expect(chunks.at(-1).choices).toEqual([])
      } else {
        expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
      }
    },
  )

  test('streams message events one block at a time, with the signature at the end of the thinking', async () => {
    const body = say('/v1/messages', 'think', 'hm', { stream: true })
    const records = await readRecords(await ask(createTransport(), '/v1/messages', body))
    const events = records.map(({ data }) => JSON.parse(data))
    expect(records.map(({ event }) => event ?? '')).toEqual(events.map(({ type }) => type))
    const outline = events.map(({ type, index, delta }) =>
      [type, index, delta?.type].filter((x) => x !== undefined).join(' '),
    )
    expect(outline.filter((line, at) => line !== outline[at - 1])).toEqual([
      'message_start',
      'content_block_start 0',
      'content_block_delta 0 thinking_delta',
      'content_block_delta 0 signature_delta',
      'content_block_stop 0',
      'content_block_start 1',
      'content_block_delta 1 text_delta',
      'content_block_stop 1',
      'message_delta',
      'message_stop',
    ])
    expect(events[0].message).toMatchObject({
      content: [],
      stop_reason: null,
      usage: { input_tokens: 5, output_tokens: 1 },
    })
    expect(events[1].content_block).toEqual({ type: 'thinking', thinking: '', signature: '' })
    // The user wrote : hm Nothing … once . (5 + 14), After some thought : hm (5)
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null },
      usage: { input_tokens: 5, output_tokens: 24, output_tokens_details: { thinking_tokens: 19 } },
    })
  })

  test('streams chat tool calls one after another, with the id once and the arguments in fragments', async () => {
    const tools = ['a', 'b'].map((name) => ({ type: 'function', function: { name } }))
    const body = say('/chat/completions', 'tools', 'parallel', { stream: true, tools })
    const records = await readRecords(await ask(createTransport(), '/chat/completions', body))
    const deltas = records.slice(0, -1).flatMap(({ data }) => JSON.parse(data).choices[0].delta)
    const id = expect.stringMatching(/^call_[0-9a-f]{24}\d$/)
    expect(deltas).toEqual([
      { role: 'assistant', content: '' },
      { tool_calls: [{ index: 0, id, type: 'function', function: { name: 'a', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '}' } }] },
      { tool_calls: [{ index: 1, id, type: 'function', function: { name: 'b', arguments: '' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '}' } }] },
      {},
    ])
  })

  test('calls custom chat tools with free text', async () => {
    const tools = [{ type: 'custom', custom: { name: 'note' } }]
    const body = say('/chat/completions', 'tools', 'go', { tools })
    const json = (await (await ask(createTransport(), '/chat/completions', body)).json()) as {
      choices: [{ message: { tool_calls: object[] } }]
    }
    expect(json.choices[0].message.tool_calls).toMatchObject([
      { type: 'custom', custom: { name: 'note', input: 'sandbox' } },
    ])
  })

  test('max_tokens 0 generates nothing', async () => {
    const body = say('/v1/messages', 'echo', 'hi', { max_tokens: 0 })
    const json = await (await ask(createTransport(), '/v1/messages', body)).json()
    expect(json).toMatchObject({ content: [{ text: '' }], stop_reason: 'max_tokens', usage: { output_tokens: 0 } })
  })

  test('counts tokens without generating', async () => {
    const body = { model: 'down', messages: [{ role: 'user', content: hello }], system: 'be kind' }
    const response = await ask(createTransport(), '/v1/messages/count_tokens', body)
    expect(await response.json()).toEqual({ input_tokens: 18 })
  })
})

describe('the same request returns the same bytes', () => {
  test.each(surfaces)('over %s, streamed or not, from any transport', async (path) => {
    for (const model of ['echo', 'tools', 'think', 'cache', 'slow']) {
      for (const stream of [true, false]) {
        const body = say(path, model, 'in parallel: größe 👍🏽', { stream })
        const [first, second] = await Promise.all(
          [createTransport(), createTransport()].map(async (transport) => (await ask(transport, path, body)).text()),
        )
        expect(second).toBe(first ?? '')
      }
    }
  })

  test('another request has another id', async () => {
    const ids = new Set<string | null>()
    for (const text of ['a', 'b']) {
      const response = await ask(createTransport(), '/v1/messages', say('/v1/messages', 'echo', text))
      ids.add(response.headers.get('request-id'))
    }
    expect(ids.size).toBe(2)
  })
})

const hi = [{ role: 'user', content: 'hi' }]

describe('refuses invalid chat requests', () => {
  const called = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  const answer = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'x' })
  const ok = { model: 'echo', messages: hi }

  test.each<[what: string, body: unknown, param: string | null, message: string]>([
    ['no JSON', '{', null, 'not usable JSON'],
    ['no object', [], null, 'expected a JSON object'],
    ['no model', { messages: hi }, 'model', '`model` is missing'],
    ['a model that is not a string', { ...ok, model: 5 }, 'model', 'must be a string'],
    ['no messages', { model: 'echo' }, 'messages', '`messages` is missing'],
    ['messages that are not a list', { ...ok, messages: 'hi' }, 'messages', 'must be an array'],
    ['an empty list', { ...ok, messages: [] }, 'messages', 'is empty'],
    ['an unknown role', { ...ok, messages: [{ role: 'god', content: '' }] }, 'messages[0].role', '`god`'],
    [
      'an unknown part',
      { ...ok, messages: [{ role: 'user', content: [{ type: 'x' }] }] },
      'messages[0].content[0].type',
      '`x`',
    ],
    ['a cap of zero', { ...ok, max_tokens: 0 }, 'max_tokens', 'at least 1'],
    ['a fraction as cap', { ...ok, max_completion_tokens: 1.5 }, 'max_completion_tokens', 'a whole number'],
    ['two choices', { ...ok, n: 2 }, 'n', 'must be 1'],
    ['functions', { ...ok, functions: [{ name: 'f' }] }, 'functions', 'use `tools`'],
    ['a tool without a name', { ...ok, tools: [{ type: 'function' }] }, 'tools[0].name', 'is missing'],
    ['a result without its call', { ...ok, messages: [...hi, called, answer('c2')] }, 'messages[2]', 'c2'],
    ['a call without a result', { ...ok, messages: [...hi, called, ...hi] }, 'messages[2]', 'c1'],
    ['a call at the end', { ...ok, messages: [...hi, called] }, 'messages', 'c1'],
  ])('%s', async (_, body, param, message) => {
    const response = await ask(createTransport(), '/chat/completions', body)
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code'])
    expect(error).toMatchObject({ type: 'invalid_request_error', param, message: expect.stringContaining(message) })
  })

  test('a prompt of more than 128,000 tokens', async () => {
    const messages = [{ role: 'user', content: 'a '.repeat(127_997) }]
    const response = await ask(createTransport(), '/chat/completions', { model: 'echo', messages })
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(error.code).toBe('context_length_exceeded')
    expect(error.message).toContain('128001 tokens')
  })

  test('but accepts calls with their results', async () => {
    const body = { model: 'tools', messages: [...hi, called, answer('c1'), ...hi] }
    expect((await ask(createTransport(), '/chat/completions', body)).status).toBe(200)
  })
})

describe('refuses invalid message requests', () => {
  const ok = { model: 'echo', max_tokens: 2000, messages: hi }
  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'x' })
  const turns = (...contents: unknown[]) =>
    contents.map((content, at) => ({ role: at % 2 ? 'assistant' : 'user', content }))
  const text = { type: 'text', text: 'x' }

  test.each<[what: string, body: unknown, message: string]>([
    ['no JSON', '{', 'not usable JSON'],
    ['no model', { ...ok, model: undefined }, '`model` is missing'],
    ['no cap', { ...ok, max_tokens: undefined }, '`max_tokens` is missing'],
    ['a cap that is not a number', { ...ok, max_tokens: '5' }, '`max_tokens` must be a whole number'],
    ['no messages', { ...ok, messages: undefined }, '`messages` is missing'],
    ['an empty list', { ...ok, messages: [] }, '`messages` is empty'],
    ['an unknown role', { ...ok, messages: [{ role: 'tool', content: 'x' }] }, '`messages[0].role`'],
    ['no content', { ...ok, messages: turns('') }, 'messages[0]: all messages must have non-empty content'],
    ['an empty text', { ...ok, messages: turns([{ type: 'text', text: '' }]) }, 'messages[0].content[0]: text content'],
    ['a blank text', { ...ok, messages: turns(' \n') }, 'non-whitespace'],
    ['an unknown block', { ...ok, messages: turns([{ type: 'smell' }]) }, '`smell` block'],
    ['a result without its call', { ...ok, messages: turns([result('t1')]) }, 'messages[0]: the tool result t1'],
    ['a result of another call', { ...ok, messages: turns('x', [use('t1')], [result('t2')]) }, 'messages[2]: '],
    ['a call without a result', { ...ok, messages: turns('x', [use('t1')], 'x') }, 'no result right after them: t1'],
    [
      'a result after a text',
      { ...ok, messages: turns('x', [use('t1')], [text, result('t1')]) },
      'right after them: t1',
    ],
    ['a late result', { ...ok, messages: turns('x', [use('t1')], 'x', 'y', [result('t1')]) }, 'right after them: t1'],
    ['a repeated id', { ...ok, messages: turns('x', [use('t1'), use('t1')], [result('t1')]) }, 'must be unique'],
    ['a long prompt', { ...ok, messages: turns('a '.repeat(127_997)) }, 'prompt is too long: 128001 tokens > 128000'],
  ])('%s', async (_, body, message) => {
    const response = await ask(createTransport(), '/v1/messages', body)
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: expect.stringContaining(message) },
      request_id: response.headers.get('request-id'),
    })
  })

  test('but treats neighbouring turns of one role as one', async () => {
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [use('t1')] },
      { role: 'assistant', content: [use('t2')] },
      { role: 'user', content: [result('t1')] },
      { role: 'user', content: [result('t2'), { type: 'text', text: 'x' }] },
    ]
    expect((await ask(createTransport(), '/v1/messages', { ...ok, messages })).status).toBe(200)
  })
})

test.each([
  ['/v1/messages/batches', 'not_found_error'],
  ['/images/generations', 'invalid_request_error'],
])('%s is not served', async (path, type) => {
  const response = await ask(createTransport(), path, { model: 'echo' })
  const { error } = (await response.json()) as { error: { type: string } }
  expect([response.status, error.type]).toEqual([404, type])
})

test('ignores the query of a path', async () => {
  const body = { model: 'echo', max_tokens: 5, messages: hi }
  expect((await ask(createTransport(), '/v1/messages?beta=true', body)).status).toBe(200)
})

for (const path of ['/chat/completions', '/v1/messages'] as const) {
  const isChat = path === '/chat/completions'

  describe(`fails on demand over ${path}`, () => {
    test('flaky-first fails every other call, flaky-second never', async () => {
      const transport = createTransport()
      const statuses: number[] = []
      for (const model of 'flaky-first flaky-second flaky-first flaky-first flaky-second flaky-first'.split(' ')) {
        statuses.push((await ask(transport, path, say(path, model, 'hi'))).status)
      }
      expect(statuses).toEqual([503, 200, 200, 503, 200, 200])
    })

    test('throttled says when to retry', async () => {
      const response = await ask(createTransport(), path, say(path, 'throttled', 'hi', { stream: true }))
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, '12'])
      const { error } = await readJson(response)
      expect(error).toMatchObject(
        isChat ? { type: 'requests', code: 'rate_limit_exceeded', param: null } : { type: 'rate_limit_error' },
      )
    })

    test('down fails every time', async () => {
      const transport = createTransport()
      for (let call = 0; call < 3; call += 1) {
        const response = await ask(transport, path, say(path, 'down', 'hi'))
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, null])
        const { error } = await readJson(response)
        expect(error.type).toBe(isChat ? 'server_error' : 'overloaded_error')
      }
    })

    test('breaks-off stops in the middle, without the end of the stream', async () => {
      const records = await readRecords(
        await ask(createTransport(), path, say(path, 'breaks-off', 'a b c d', { stream: true })),
      )
      const bodies = records.map(({ data }) => JSON.parse(data))
      const text = bodies.map((body) => (isChat ? (body.choices[0].delta.content ?? '') : (body.delta?.text ?? '')))
      expect(text.join('')).toBe('a b')
      const endings = bodies.filter((body) => (isChat ? body.choices[0].finish_reason : body.type === 'message_delta'))
      expect(endings).toEqual([])
    })

    test('breaks-off without a stream cuts the body in mid-JSON', async () => {
      const response = await ask(createTransport(), path, say(path, 'breaks-off', 'a b c d'))
      const text = await response.text()
      expect(response.status).toBe(200)
      expect(text.startsWith('{"id":"')).toBe(true)
      expect(() => JSON.parse(text)).toThrow()
    })
  })

  describe(`slow over ${path}`, () => {
    async function waits(body: object): Promise<number[]> {
      const waited: number[] = []
      const transport = createTransport(async (ms) => void waited.push(ms))
      await (await ask(transport, path, body)).text()
      return waited
    }

    test('waits 1.5 s, then 150 ms between words', async () => {
      expect(await waits(say(path, 'slow', 'one two three', { stream: true }))).toEqual([1500, 150, 150])
    })

    test('waits as long in total without a stream', async () => {
      expect(await waits(say(path, 'slow', 'one two three'))).toEqual([1800])
    })

    test.each([
      ['wait 5s', 5000],
      ['please Wait 250 ms', 250],
      ['wait 2.5s', 2500],
      ['wait 999s', 120_000],
      ['await 5s', 1500],
    ])('%s: the first event after %d ms', async (text, ms) => {
      expect((await waits(say(path, 'slow', text, { stream: true })))[0]).toBe(ms)
    })

    test('sends nothing before the first wait', async () => {
      const never = createTransport(
        (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      )
      const response = await ask(never, path, say(path, 'slow', 'hi', { stream: true }))
      const reader = (response.body as ReadableStream<Uint8Array>).getReader()
      const read = reader.read().then(() => 'read')
      expect(await Promise.race([read, Bun.sleep(0).then(() => 'nothing')])).toBe('nothing')
      await reader.cancel()
    })
  })
}

describe('an ending before the end', () => {
  /** Waits until the reader goes away, like a provider that has fallen silent. */
  const silent = () =>
    createTransport((_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())))

  test.each(surfaces)('%s: the signal makes a waiting read fail with its reason', async (path) => {
    const controller = new AbortController()
    const response = await ask(silent(), path, say(path, 'slow', 'hi', { stream: true }), controller.signal)
    const reading = response.text()
    controller.abort(new Error('gone'))
    await expect(reading).rejects.toThrow('gone')
  })

  test.each(surfaces)('%s: the signal ends a stream that is not read', async (path) => {
    const controller = new AbortController()
    const response = await ask(silent(), path, say(path, 'echo', 'hi', { stream: true }), controller.signal)
    controller.abort(new Error('gone'))
    await Bun.sleep(0)
    await expect(response.text()).rejects.toThrow('gone')
  })

  test.each(surfaces)('%s: cancelling wakes the wait', async (path) => {
    let woken = false
    const transport = createTransport(
      (_, signal) =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => {
            woken = true
            resolve()
          }),
        ),
    )
    const response = await ask(transport, path, say(path, 'slow', 'hi', { stream: true }))
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const read = reader.read()
    await reader.cancel()
    expect(await read).toEqual({ done: true, value: undefined })
    expect(woken).toBe(true)
  })

  test.each(surfaces)('%s: an abort after the end changes nothing', async (path) => {
    const controller = new AbortController()
    const response = await ask(createTransport(), path, say(path, 'echo', 'hi', { stream: true }), controller.signal)
    const text = await response.text()
    controller.abort()
    expect(text).toContain(path === '/v1/messages' ? 'message_stop' : '[DONE]')
  })

  test.each(surfaces)('%s: without a stream the call itself fails with the reason', async (path) => {
    const controller = new AbortController()
    const asking = ask(silent(), path, say(path, 'slow', 'hi'), controller.signal)
    controller.abort(new Error('gone'))
    await expect(asking).rejects.toThrow('gone')
    await expect(ask(silent(), path, say(path, 'echo', 'hi'), controller.signal)).rejects.toThrow('gone')
  })

  test('a stream is made as it is read, not ahead of the reader', async () => {
    let pulled = 0
    const transport = createTransport(async () => {
      pulled += 1
    })
    const response = await ask(
      transport,
      '/chat/completions',
      say('/chat/completions', 'slow', 'a b c d e', { stream: true }),
    )
    await Bun.sleep(0)
    expect(pulled).toBe(0)
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    expect(pulled).toBe(1)
    await reader.cancel()
  })
})

describe('any JSON at all', () => {
  const messageLike = fc.record(
    {
      role: fc.oneof(fc.constantFrom('user', 'assistant', 'tool', 'system'), fc.jsonValue()),
      content: fc.oneof(
        fc.string(),
        fc.array(
          fc.record({ type: fc.constantFrom('text', 'tool_use', 'tool_result', 'thinking'), text: fc.jsonValue() }),
        ),
        fc.jsonValue(),
      ),
      tool_calls: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  const requestLike = fc.record(
    {
      model: fc.oneof(fc.constantFrom('echo', 'tools', 'think', 'cache'), fc.jsonValue()),
      max_tokens: fc.oneof(fc.nat(50), fc.jsonValue()),
      messages: fc.oneof(fc.array(messageLike), fc.jsonValue()),
      tools: fc.jsonValue(),
      tool_choice: fc.jsonValue(),
      system: fc.jsonValue(),
      stop: fc.jsonValue(),
      stream: fc.oneof(fc.boolean(), fc.jsonValue()),
      thinking: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )

  test.each<Path>(['/chat/completions', '/v1/messages', '/v1/messages/count_tokens'])('%s answers it', async (path) => {
    const transport = createTransport()
    await fc.assert(
      fc.asyncProperty(fc.oneof(requestLike, fc.jsonValue()), async (body) => {
        const response = await ask(transport, path, JSON.stringify(body) ?? '')
        expect([200, 400, 404]).toContain(response.status)
        expect((await response.text()).length).toBeGreaterThan(0)
      }),
      { numRuns: 500 },
    )
  })

  test.each<Path>(['/chat/completions', '/v1/messages'])('%s refuses a body that is nested too deep', async (path) => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const tool = (schema: string) =>
      path === '/v1/messages'
        ? `{"name":"f","input_schema":${schema}}`
        : `{"type":"function","function":{"name":"f","parameters":${schema}}}`
    const body = `{"model":"tools","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[${tool(`{"type":"object","x":${deep}}`)}]}`
    expect((await ask(createTransport(), path, body)).status).toBe(400)
  })

  test.each<Path>(['/chat/completions', '/v1/messages'])(
    '%s refuses objects that pretend to be strings',
    async (path) => {
      const trick = { toString: 1, valueOf: 1 }
      for (const body of [
        { ...say(path, 'echo', 'hi'), tool_choice: { type: trick }, tools: [{ type: trick }] },
        { ...say(path, 'echo', ''), messages: [{ role: trick }] },
      ]) {
        expect((await ask(createTransport(), path, body)).status).toBe(400)
      }
    },
  )
})
