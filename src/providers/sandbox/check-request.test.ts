import { describe, expect, test } from 'bun:test'
import { ask, createTransport } from '../../../test/parts/ask-sandbox.ts'

const hi = [{ role: 'user', content: 'hi' }]

describe('chat requests that OpenAI would refuse', () => {
  const called = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  const answer = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'x' })

  test.each<[what: string, body: unknown, param: string | null, message: string]>([
    ['not JSON', '{', null, 'could not parse'],
    ['not an object', [], null, 'could not parse'],
    ['no model', { messages: hi }, 'model', 'provide a model'],
    ['a model that is no string', { model: 5, messages: hi }, 'model', 'expected a string, but got an integer'],
    ['no messages', { model: 'echo' }, 'messages', "Missing required parameter: 'messages'"],
    ['messages of a wrong type', { model: 'echo', messages: 'hi' }, 'messages', 'expected an array of objects'],
    ['an empty list', { model: 'echo', messages: [] }, 'messages', 'empty array'],
    ['a strange role', { model: 'echo', messages: [{ role: 'god', content: '' }] }, 'messages[0].role', "'god'"],
    ['no content', { model: 'echo', messages: [{ role: 'user' }] }, 'messages[0].content', 'got null'],
    [
      'a strange part',
      { model: 'echo', messages: [{ role: 'user', content: [{ type: 'smell' }] }] },
      'messages[0].content[0].type',
      "'smell'",
    ],
    ['a cap of nothing', { model: 'echo', messages: hi, max_tokens: 0 }, 'max_tokens', '>= 1'],
    ['a broken cap', { model: 'echo', messages: hi, max_completion_tokens: 1.5 }, 'max_completion_tokens', 'a decimal'],
    ['five stops', { model: 'echo', messages: hi, stop: ['1', '2', '3', '4', '5'] }, 'stop', 'maximum length 4'],
    ['two choices', { model: 'echo', messages: hi, n: 2 }, 'n', 'must be 1'],
    ['options of no stream', { model: 'echo', messages: hi, stream_options: {} }, 'stream_options', 'only allowed'],
    [
      'a nameless tool',
      { model: 'echo', messages: hi, tools: [{ type: 'function' }] },
      'tools[0].function.name',
      'Missing',
    ],
    ['a choice of no tools', { model: 'echo', messages: hi, tool_choice: 'required' }, 'tool_choice', 'only allowed'],
    [
      'a result to no call',
      { model: 'tools', messages: [...hi, called, answer('c2')] },
      'messages[2].tool_call_id',
      "'c2'",
    ],
    ['a call without a result', { model: 'tools', messages: [...hi, called, ...hi] }, 'messages', 'c1'],
    ['a call at the very end', { model: 'tools', messages: [...hi, called] }, 'messages', 'c1'],
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

  test('answered calls are in order', async () => {
    const body = { model: 'tools', messages: [...hi, called, answer('c1'), ...hi] }
    expect((await ask(createTransport(), '/chat/completions', body)).status).toBe(200)
  })
})

describe('message requests that Anthropic would refuse', () => {
  const ok = { model: 'echo', max_tokens: 2000, messages: hi }
  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'x' })
  const turns = (...contents: unknown[]) =>
    contents.map((content, at) => ({ role: at % 2 ? 'assistant' : 'user', content }))
  const mark = { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }

  test.each<[what: string, body: unknown, message: string]>([
    ['not JSON', '{', 'not valid JSON'],
    ['no model', { ...ok, model: undefined }, 'model: Field required'],
    ['no cap', { ...ok, max_tokens: undefined }, 'max_tokens: Field required'],
    ['a cap that is no number', { ...ok, max_tokens: '5' }, 'max_tokens: Input should be a valid integer'],
    ['no messages', { ...ok, messages: undefined }, 'messages: Field required'],
    ['an empty list', { ...ok, messages: [] }, 'messages: at least one message is required'],
    ['a strange role', { ...ok, messages: [{ role: 'tool', content: 'x' }] }, 'messages.0.role: '],
    ['an assistant first', { ...ok, messages: [{ role: 'assistant', content: 'x' }] }, 'first message must use'],
    ['no content', { ...ok, messages: turns('') }, 'messages.0: all messages must have non-empty content'],
    ['an empty text', { ...ok, messages: turns([{ type: 'text', text: '' }]) }, 'must be non-empty'],
    [
      'a block of a strange kind',
      { ...ok, messages: turns([{ type: 'smell' }]) },
      "messages.0.content.0: Input tag 'smell'",
    ],
    ['a blank text', { ...ok, messages: turns(' \n') }, 'non-whitespace'],
    ['a blank stop', { ...ok, stop_sequences: ['\n'] }, 'stop_sequences: each'],
    ['a small budget', { ...ok, thinking: { type: 'enabled', budget_tokens: 5 } }, 'greater than or equal to 1024'],
    ['a large budget', { ...ok, thinking: { type: 'enabled', budget_tokens: 2000 } }, 'must be greater than'],
    ['a tool without schema', { ...ok, tools: [{ name: 'f' }] }, 'tools.0.custom.input_schema: Field required'],
    ['a choice of no tools', { ...ok, tool_choice: { type: 'any' } }, 'tool_choice: '],
    ['five marks', { ...ok, messages: turns([mark, mark, mark, mark, mark]) }, 'Found 5'],
    [
      'a result to no use',
      { ...ok, messages: turns([result('t1')]) },
      'messages.0.content.0: unexpected `tool_use_id`',
    ],
    ['a result to another use', { ...ok, messages: turns('x', [use('t1')], [result('t2')]) }, 'messages.2.content.0: '],
    [
      'a use without a result',
      { ...ok, messages: turns('x', [use('t1')], 'x') },
      'messages.1: `tool_use` ids were found',
    ],
    [
      'a result behind a text',
      { ...ok, messages: turns('x', [use('t1')], [{ type: 'text', text: 'x' }, result('t1')]) },
      'immediately after: t1',
    ],
    [
      'a late result',
      { ...ok, messages: turns('x', [use('t1')], 'x', 'y', [result('t1')]) },
      'messages.1: `tool_use` ids were found',
    ],
    ['an id used twice', { ...ok, messages: turns('x', [use('t1'), use('t1')], [result('t1')]) }, 'must be unique'],
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

  test('neighbouring turns of one role count as one', async () => {
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
  ['/embeddings', 'invalid_request_error'],
])('%s is not served', async (path, type) => {
  const response = await ask(createTransport(), path, { model: 'echo' })
  const { error } = (await response.json()) as { error: { type: string } }
  expect([response.status, error.type]).toEqual([404, type])
})

test('the query of a path changes nothing', async () => {
  const body = { model: 'echo', max_tokens: 5, messages: hi }
  expect((await ask(createTransport(), '/v1/messages?beta=true', body)).status).toBe(200)
})
