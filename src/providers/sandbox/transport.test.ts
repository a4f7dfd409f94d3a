import { describe, expect, test } from 'bun:test'
import { ask, createTransport, readRecords, say } from '../../../test/parts/ask-sandbox.ts'

const surfaces = ['/chat/completions', '/v1/messages'] as const
const hello = 'hello from the other side of the gate'

describe('bytes on the wire', () => {
  test('a chat completion has every key, in whole seconds of the clock', async () => {
    const response = await ask(createTransport(), '/chat/completions', say('/chat/completions', 'echo', hello))
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-request-id')).toMatch(/^req_sandbox_[0-9a-f]{24}$/)
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^chatcmpl-sandbox-[0-9a-f]{24}$/),
      object: 'chat.completion',
      created: 1_794_700_800,
      model: 'echo',
      service_tier: 'default',
      system_fingerprint: null,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: hello, refusal: null, annotations: [] },
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

  test('a message has every key', async () => {
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
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: 8,
        output_tokens_details: null,
        server_tool_use: null,
        service_tier: 'standard',
        inference_geo: null,
        speed: 'standard',
      },
    })
  })

  test.each([true, false])('chat chunks: role, words, finish, [DONE]; usage asked for: %p', async (include_usage) => {
    const body = say('/chat/completions', 'echo', 'one two', { stream: true, stream_options: { include_usage } })
    const response = await ask(createTransport(), '/chat/completions', body)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const records = await readRecords(response)
    expect(records.every(({ event }) => event === undefined)).toBe(true)
    expect(records.at(-1)?.data).toBe('[DONE]')
    const chunks = records.slice(0, -1).map(({ data }) => JSON.parse(data))
    const choices = chunks.flatMap((chunk) => chunk.choices)
    expect(choices.map(({ delta, finish_reason }) => [delta, finish_reason])).toEqual([
      [{ role: 'assistant', content: '', refusal: null }, null],
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
  })

  test('message events: named, one block at a time, thinking sealed just before its end', async () => {
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
      'ping',
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

  test('chat tool calls: identity once, then arguments in several fragments, one call after another', async () => {
    const tools = ['a', 'b'].map((name) => ({ type: 'function', function: { name } }))
    const body = say('/chat/completions', 'tools', 'parallel', { stream: true, tools })
    const records = await readRecords(await ask(createTransport(), '/chat/completions', body))
    const deltas = records.slice(0, -1).flatMap(({ data }) => JSON.parse(data).choices[0].delta)
    const id = expect.stringMatching(/^call_[0-9a-f]{24}\d$/)
    expect(deltas).toEqual([
      { role: 'assistant', content: null, refusal: null },
      { tool_calls: [{ index: 0, id, type: 'function', function: { name: 'a', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '}' } }] },
      { tool_calls: [{ index: 1, id, type: 'function', function: { name: 'b', arguments: '' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '}' } }] },
      {},
    ])
  })

  test('custom tools of the chat dialect are called with free text', async () => {
    const tools = [{ type: 'custom', custom: { name: 'note' } }]
    const body = say('/chat/completions', 'tools', 'go', { tools })
    const json = (await (await ask(createTransport(), '/chat/completions', body)).json()) as {
      choices: [{ message: { tool_calls: object[] } }]
    }
    expect(json.choices[0].message.tool_calls).toMatchObject([
      { type: 'custom', custom: { name: 'note', input: 'sandbox' } },
    ])
  })

  test('max_tokens 0 warms the cache and says nothing', async () => {
    const body = say('/v1/messages', 'echo', 'hi', { max_tokens: 0 })
    const json = await (await ask(createTransport(), '/v1/messages', body)).json()
    expect(json).toMatchObject({ content: [], stop_reason: 'max_tokens', usage: { output_tokens: 0 } })
  })

  test('tokens are counted without a generation', async () => {
    const body = { model: 'down', messages: [{ role: 'user', content: hello }], system: 'be kind' }
    const response = await ask(createTransport(), '/v1/messages/count_tokens', body)
    expect(await response.json()).toEqual({ input_tokens: 18 })
  })
})

describe('the same request gives the same bytes', () => {
  test.each(surfaces)('over %s, streamed or not, whichever transport', async (path) => {
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

  test('another request has other ids', async () => {
    const ids = new Set<string | null>()
    for (const text of ['a', 'b']) {
      const response = await ask(createTransport(), '/v1/messages', say('/v1/messages', 'echo', text))
      ids.add(response.headers.get('request-id'))
    }
    expect(ids.size).toBe(2)
  })
})
