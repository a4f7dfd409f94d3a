import { describe, expect, test } from 'bun:test'
import { ask, createTransport, type Path, readJson, say } from '../../../test/parts/ask-sandbox.ts'
import { type Gist, gistOfChat, gistOfMessage } from '../../../test/parts/reply-gist.ts'
import { sandboxModels } from '../../catalog/data/sandbox.ts'
import { modelEntrySchema, modelFromEntry } from '../../catalog/entry.ts'
import { priceUsage } from '../../catalog/price.ts'
import { embedModel } from './embed.ts'
import { createModels, createPrefixCache, outputTokensMax, signThinking } from './models.ts'

/** Each dialect's word for the same ending. */
const words = {
  end: { '/chat/completions': 'stop', '/v1/messages': 'end_turn' },
  length: { '/chat/completions': 'length', '/v1/messages': 'max_tokens' },
  tools: { '/chat/completions': 'tool_calls', '/v1/messages': 'tool_use' },
} as const

const weather = {
  name: 'get_weather',
  schema: {
    type: 'object',
    required: ['city', 'unit'],
    properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'kelvin'] }, days: { type: 'integer' } },
  },
}
const schemaTokens = {
  // 16 words; a run of signs before each and one at the end, of which `"]},"` after kelvin is two.
  weather: 16 + 17 + 1,
  // {" type ":" object "," properties ":{} }
  clock: 8,
}
const clock = { name: 'get_time', schema: { type: 'object', properties: {} } }

function offer(path: Path, tools: { name: string; schema: object }[]): object[] {
  return tools.map(({ name, schema }) =>
    path === '/v1/messages'
      ? { name, input_schema: schema }
      : { type: 'function', function: { name, parameters: schema } },
  )
}

for (const path of ['/chat/completions', '/v1/messages'] as const) {
  const isChat = path === '/chat/completions'
  const gistOf = isChat ? gistOfChat : gistOfMessage
  const gist = async (body: object, transport = createTransport()): Promise<Gist> => {
    const response = await ask(transport, path, body)
    expect(response.status).toBe(200)
    return gistOf(await readJson(response))
  }

  describe(`echo over ${path}`, () => {
    const hello = 'hello from the other side of the gate'

    test('repeats the last user text, with 12 input and 8 output tokens', async () => {
      expect(await gist(say(path, 'echo', hello))).toMatchObject({ text: hello, stop: words.end[path], in: 12, out: 8 })
    })

    test('stops at the cap', async () => {
      const reply = await gist(say(path, 'echo', hello, { max_tokens: 3 }))
      expect(reply).toMatchObject({ text: 'hello from the', stop: words.length[path], out: 3 })
    })

    test('a text of exactly the cap is not cut', async () => {
      expect(await gist(say(path, 'echo', hello, { max_tokens: 8 }))).toMatchObject({
        text: hello,
        stop: words.end[path],
      })
    })

    test('stops before the earliest stop sequence, and says which where the dialect can', async () => {
      const stops = ['gate', 'side of', ' of']
      const body = say(path, 'echo', hello, isChat ? { stop: stops } : { stop_sequences: stops })
      const json = await readJson(await ask(createTransport(), path, body))
      expect(gistOf(json).text).toBe('hello from the other ')
      expect(isChat ? [json.choices[0].finish_reason] : [json.stop_reason, json.stop_sequence]).toEqual(
        isChat ? ['stop'] : ['stop_sequence', 'side of'],
      )
    })

    test('has a sentence for those who say nothing', async () => {
      const image = isChat
        ? { type: 'image_url', image_url: { url: 'https://example.test/a.png' } }
        : { type: 'image', source: { type: 'url', url: 'https://example.test/a.png' } }
      const body = { ...say(path, 'echo', ''), messages: [{ role: 'user', content: [image] }] }
      // 256 for the image, 4 for the turn.
      expect(await gist(body)).toMatchObject({ text: expect.stringContaining('nothing to echo'), in: 260 })
    })

    test('fills in the schema if one is requested', async () => {
      const schema = { type: 'object', required: ['ok'], properties: { ok: { type: 'boolean' } } }
      const format = isChat
        ? { response_format: { type: 'json_schema', json_schema: { name: 'r', schema } } }
        : { output_config: { format: { type: 'json_schema', schema } } }
      expect((await gist(say(path, 'echo', hello, format))).text).toBe('{"ok":true}')
    })
  })

  describe(`tools over ${path}`, () => {
    const both = offer(path, [weather, clock])
    const weatherCall = { name: 'get_weather', input: { city: 'sandbox', unit: 'celsius' } }
    const timeCall = { name: 'get_time', input: {} }

    test('calls the first tool with arguments made from its schema', async () => {
      const reply = await gist(say(path, 'tools', 'how is it there', { tools: both }))
      expect(reply).toMatchObject({ text: '', calls: [weatherCall], stop: words.tools[path] })
      // get _ weather, then {" city ":" sandbox "," unit ":" celsius "}
      expect(reply.out).toBe(3 + 9)
    })

    test.each([
      [['Bash', 'Edit', 'Glob', 'Read'], 'Glob'],
      [['write_to_file', 'execute_command', 'list_files', 'read_file'], 'list_files'],
      [['run_shell_command', 'todo'], 'todo'],
      [['exec_command', 'apply_patch'], 'exec_command'],
    ])('of the tools of an agent %p it calls %s', async (names, chosen) => {
      const tools = offer(
        path,
        names.map((name) => ({ name, schema: { type: 'object' } })),
      )
      const { calls } = await gist(say(path, 'tools', 'fix the bug', { tools }))
      expect(calls).toEqual([{ name: chosen, input: {} }])
    })

    test('calls the tool that is named', async () => {
      const choice = isChat ? { type: 'function', function: { name: 'get_time' } } : { type: 'tool', name: 'get_time' }
      expect((await gist(say(path, 'tools', 'go', { tools: both, tool_choice: choice }))).calls).toEqual([timeCall])
    })

    test('calls all of them when asked to do so in parallel', async () => {
      const reply = await gist(say(path, 'tools', 'both in parallel please', { tools: both }))
      expect(reply.calls).toEqual([weatherCall, timeCall])
    })

    test('calls one where parallel calls are switched off', async () => {
      const off = isChat
        ? { parallel_tool_calls: false }
        : { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }
      expect((await gist(say(path, 'tools', 'in parallel', { tools: both, ...off }))).calls).toEqual([weatherCall])
    })

    test('speaks where tools are forbidden, or there are none', async () => {
      const none = isChat ? 'none' : { type: 'none' }
      const forbidden = await gist(say(path, 'tools', 'go', { tools: both, tool_choice: none }))
      expect(forbidden).toMatchObject({ calls: [], text: expect.stringContaining('none'), stop: words.end[path] })
      expect((await gist(say(path, 'tools', 'go'))).text).toContain('No tools were offered')
    })

    test('a call that does not fit under the cap is left out whole', async () => {
      const reply = await gist(say(path, 'tools', 'go', { tools: both, max_tokens: 5 }))
      expect(reply).toMatchObject({ calls: [], text: '', stop: words.length[path], out: 0 })
    })

    test('uses the results', async () => {
      const asked = isChat
        ? { role: 'assistant', content: null, tool_calls: [call('c1', 'get_weather'), call('c2', 'get_time')] }
        : { role: 'assistant', content: [use('c1', 'get_weather'), use('c2', 'get_time')] }
      const results = isChat
        ? [
            { role: 'tool', tool_call_id: 'c1', content: 'rain' },
            { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'noon' }] },
          ]
        : [{ role: 'user', content: [result('c1', 'rain'), result('c2', [{ type: 'text', text: 'noon' }])] }]
      const messages = [{ role: 'user', content: 'go' }, asked, ...results]
      const reply = await gist({ model: 'tools', max_tokens: 100, tools: both, messages })
      expect(reply).toMatchObject({ text: 'The tool said: rain; noon', calls: [], stop: words.end[path] })
      // Tools: get _ weather and the schema, get _ time and the schema, 4 each for being offered.
      // Turns: go 1, two calls of 3 + {} 1 each, two results of 1 each; 4 for user, assistant and each result.
      const offered = 2 * (3 + 4) + schemaTokens.weather + schemaTokens.clock
      expect(reply.in).toBe(offered + (4 + 1) + (4 + 2 * 4) + 2 * (4 + 1))
    })
  })

  describe(`think over ${path}`, () => {
    test('thinks, then answers', async () => {
      const json = await readJson(await ask(createTransport(), path, say(path, 'think', 'why is it so')))
      const thinking = 'The user wrote: why is it so\nNothing has to be looked up, so I can answer at once.'
      expect(gistOf(json)).toMatchObject({ thinking, text: 'After some thought: why is it so', in: 8 })
      // The user wrote : why is it so · Nothing has to be looked up , so I can answer at once . · After some thought : …
      expect(gistOf(json).out).toBe(8 + 14 + 8)
      const details = isChat ? json.usage.completion_tokens_details : json.usage.output_tokens_details
      expect(details).toEqual(isChat ? { reasoning_tokens: 22 } : { thinking_tokens: 22 })
    })

    test('does not think if the request disables it', async () => {
      const off = isChat ? { reasoning_effort: 'none' } : { thinking: { type: 'disabled' } }
      expect(await gist(say(path, 'think', 'hm', off))).toMatchObject({ thinking: '', text: 'After some thought: hm' })
    })

    test('a cap inside the thoughts leaves no answer', async () => {
      const reply = await gist(say(path, 'think', 'hm', { max_tokens: 3 }))
      expect(reply).toMatchObject({ thinking: 'The user wrote', text: '', stop: words.length[path], out: 3 })
    })
  })

  describe(`cache over ${path}`, () => {
    // Eight words and four for the turn.
    const long = 'a rather long text that is always there'
    const ask1 = isChat
      ? {
          model: 'cache',
          messages: [
            { role: 'system', content: long },
            { role: 'user', content: 'first' },
          ],
        }
      : { model: 'cache', max_tokens: 50, system: long, messages: [{ role: 'user', content: 'first' }] }

    test('writes a prefix the first time and reads it afterwards', async () => {
      const transport = createTransport()
      expect(await gist(ask1, transport)).toMatchObject({ in: 5, cacheWrite: 12, cacheRead: 0, text: 'first' })
      expect(await gist(ask1, transport)).toMatchObject({ in: 5, cacheWrite: 0, cacheRead: 12, text: 'first' })
    })

    test('another prefix is written again, and one message alone has none', async () => {
      const transport = createTransport()
      await gist(ask1, transport)
      const other = JSON.parse(JSON.stringify(ask1).replace('always', 'never'))
      expect(await gist(other, transport)).toMatchObject({ cacheWrite: 12, cacheRead: 0 })
      expect(await gist(say(path, 'cache', 'hi'), transport)).toMatchObject({ in: 5, cacheWrite: 0, cacheRead: 0 })
    })

    test('a mark says where the prefix ends', async () => {
      const marked = { type: 'text', text: 'keep this', cache_control: { type: 'ephemeral' } }
      const content = [marked, { type: 'text', text: 'not that one' }]
      const body = { ...say(path, 'cache', ''), messages: [{ role: 'user', content }] }
      expect(await gist(body)).toMatchObject({ in: 3, cacheWrite: 6 })
    })
  })
}

function call(id: string, name: string) {
  return { id, type: 'function', function: { name, arguments: '{}' } }
}
function use(id: string, name: string) {
  return { type: 'tool_use', id, name, input: {} }
}
function result(id: string, content: unknown) {
  return { type: 'tool_result', tool_use_id: id, content }
}

describe('cache writes by duration', () => {
  test('caches text before a 1h mark for an hour, and the rest for five minutes', async () => {
    const mark = (ttl: string) => ({ cache_control: { type: 'ephemeral', ttl } })
    const content = [
      { type: 'text', text: 'now this', ...mark('5m') },
      { type: 'text', text: 'a question' },
    ]
    const system = [{ type: 'text', text: 'one two three', ...mark('1h') }]
    const body = { model: 'cache', max_tokens: 9, system, messages: [{ role: 'user', content }] }
    const { usage } = await readJson(await ask(createTransport(), '/v1/messages', body))
    expect(usage.cache_creation).toEqual({ ephemeral_1h_input_tokens: 7, ephemeral_5m_input_tokens: 6 })
    expect([usage.cache_creation_input_tokens, usage.input_tokens]).toEqual([13, 2])
  })
})

test('the prefix cache forgets the least recently used prefix', () => {
  const lookUp = createPrefixCache(2)
  const about = (topic: string) =>
    lookUp([
      { from: 'system', turn: -1, text: `about ${topic}`, tokens: 6, mark: undefined },
      { from: 'user', turn: 0, text: 'tell me', tokens: 6, mark: undefined },
    ])
  const written = { read: 0, writtenShort: 6, writtenLong: 0 }
  const read = { read: 6, writtenShort: 0, writtenLong: 0 }
  expect([about('a'), about('b'), about('a'), about('c'), about('a'), about('b')]).toEqual([
    ...[written, written, read, written, read, written],
  ])
})

describe('signed thinking', () => {
  const path = '/v1/messages'
  const replay = (thinking: object) => ({
    ...say(path, 'think', ''),
    messages: [
      { role: 'user', content: 'why' },
      { role: 'assistant', content: [thinking, { type: 'text', text: 'because' }] },
      { role: 'user', content: 'and then' },
    ],
  })

  async function thoughtOf(more: object = {}) {
    const json = await readJson(await ask(createTransport(), path, say(path, 'think', 'why', more)))
    return json.content[0]
  }

  test('comes back unchanged and is accepted', async () => {
    const response = await ask(createTransport(), path, replay(await thoughtOf()))
    expect(response.status).toBe(200)
  })

  test.each(['altered', 'missing'])('a signature that is %s is refused in the words of Anthropic', async (how) => {
    const { signature, ...thought } = await thoughtOf()
    const block = how === 'missing' ? thought : { ...thought, thinking: `${thought.thinking} or not`, signature }
    const response = await ask(createTransport(), path, replay(block))
    const json = await readJson(response)
    expect(response.status).toBe(400)
    expect(json.error.type).toBe('invalid_request_error')
    expect(json.error.message).toBe('messages.1.content.0: Invalid `signature` in `thinking` block')
  })

  test('has a signature without text where the text is not wanted', async () => {
    const thought = await thoughtOf({ thinking: { type: 'adaptive', display: 'omitted' } })
    expect(thought).toEqual({ type: 'thinking', thinking: '', signature: signThinking('') })
    expect((await ask(createTransport(), path, replay(thought))).status).toBe(200)
  })

  test('is `sandbox.` and an HMAC of 32 bytes', () => {
    expect(signThinking('a')).toMatch(/^sandbox\.[A-Za-z0-9_-]{43}$/)
    expect(signThinking('a')).not.toBe(signThinking('b'))
  })
})

test('every route of the catalog has a behaviour, and every behaviour a route', () => {
  const routed = sandboxModels.flatMap((model) => model.routes.map((route) => route.model))
  expect(routed.toSorted()).toEqual([...createModels().keys(), embedModel].toSorted())
})

test('the models are entries as the configuration file would take them', () => {
  for (const model of sandboxModels) expect(modelEntrySchema.parse(model)).toEqual(model)
  expect(sandboxModels.map((model) => model.id)).toEqual([
    'sandbox/echo',
    'sandbox/embed',
    'sandbox/tools',
    'sandbox/think',
    'sandbox/cache',
    'sandbox/slow',
    'sandbox/flaky',
    'sandbox/throttled',
    'sandbox/down',
    'sandbox/breaks-off',
  ])
})

test('the first call costs 28,000 nano-dollars: 12 × $1.00/M + 8 × $2.00/M', () => {
  const [echo] = sandboxModels.map((model) => modelFromEntry(model, 'built in'))
  const buckets = { inputTokens: 12, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 }
  const usage = { ...buckets, outputTokens: 8, source: 'reported' } as const
  expect(echo?.price && String(priceUsage(echo.price, usage))).toBe('28000')
})

test('a model writes no more than its entry says', () => {
  for (const model of sandboxModels) {
    expect(model.max_output_tokens).toBe(model.id === 'sandbox/embed' ? undefined : outputTokensMax)
  }
})
