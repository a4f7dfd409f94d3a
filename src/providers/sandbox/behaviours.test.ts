import { describe, expect, test } from 'bun:test'
import { ask, createTransport, type Path, readRecords, say } from './ask.ts'
import { signThinking } from './thinking-signature.ts'

// What a reply amounts to, read off the whole body of either dialect.
interface Gist {
  text: string
  thinking: string
  calls: { name: string; input: unknown }[]
  stop: string
  in: number
  cacheRead: number
  cacheWrite: number
  out: number
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads the wire as a client without types would
type Wire = any

function gistOf(path: Path, body: Wire): Gist {
  if (path === '/chat/completions') {
    const { message, finish_reason } = body.choices[0]
    const { cached_tokens, cache_write_tokens } = body.usage.prompt_tokens_details
    return {
      text: message.content ?? '',
      thinking: message.reasoning_content ?? '',
      calls: (message.tool_calls ?? []).map((call: Wire) => ({
        name: call.function.name,
        input: JSON.parse(call.function.arguments),
      })),
      stop: finish_reason,
      in: body.usage.prompt_tokens - cached_tokens - cache_write_tokens,
      cacheRead: cached_tokens,
      cacheWrite: cache_write_tokens,
      out: body.usage.completion_tokens,
    }
  }
  const blocks = (type: string): Wire[] => body.content.filter((block: Wire) => block.type === type)
  return {
    text: blocks('text')
      .map((block) => block.text)
      .join(''),
    thinking: blocks('thinking')
      .map((block) => block.thinking)
      .join(''),
    calls: blocks('tool_use').map(({ name, input }) => ({ name, input })),
    stop: body.stop_reason,
    in: body.usage.input_tokens,
    cacheRead: body.usage.cache_read_input_tokens,
    cacheWrite: body.usage.cache_creation_input_tokens,
    out: body.usage.output_tokens,
  }
}

/** `stop` stands for chat's word, then for that of Messages. */
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
  const gist = async (body: object, transport = createTransport()): Promise<Gist> => {
    const response = await ask(transport, path, body)
    expect(response.status).toBe(200)
    return gistOf(path, await response.json())
  }

  describe(`echo over ${path}`, () => {
    const hello = 'hello from the other side of the gate'

    test('says the last user text, 12 tokens in and 8 out', async () => {
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
      const stops = ['gate', ' of', 'side of']
      const body = say(path, 'echo', hello, isChat ? { stop: stops } : { stop_sequences: stops })
      const json: Wire = await (await ask(createTransport(), path, body)).json()
      expect(gistOf(path, json).text).toBe('hello from the other ')
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

    test('fills in the schema when one is asked for', async () => {
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
      const json: Wire = await (await ask(createTransport(), path, say(path, 'think', 'why is it so'))).json()
      const thinking = 'The user wrote: why is it so\nNothing has to be looked up, so I can answer at once.'
      expect(gistOf(path, json)).toMatchObject({ thinking, text: 'After some thought: why is it so', in: 8 })
      // The user wrote : why is it so · Nothing has to be looked up , so I can answer at once . · After some thought : …
      expect(gistOf(path, json).out).toBe(8 + 14 + 8)
      const details = isChat ? json.usage.completion_tokens_details : json.usage.output_tokens_details
      expect(details).toEqual(isChat ? { reasoning_tokens: 22 } : { thinking_tokens: 22 })
    })

    test('does not think when told not to', async () => {
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

  describe(`failures on demand over ${path}`, () => {
    test('flaky-first fails every other call, flaky-second never', async () => {
      const transport = createTransport()
      const statuses: number[] = []
      for (const model of [
        'flaky-first',
        'flaky-second',
        'flaky-first',
        'flaky-first',
        'flaky-second',
        'flaky-first',
      ]) {
        statuses.push((await ask(transport, path, say(path, model, 'hi'))).status)
      }
      expect(statuses).toEqual([503, 200, 200, 503, 200, 200])
    })

    test('throttled says when to come back', async () => {
      const response = await ask(createTransport(), path, say(path, 'throttled', 'hi', { stream: true }))
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, '12'])
      const { error }: Wire = await response.json()
      expect(error).toMatchObject(
        isChat ? { type: 'requests', code: 'rate_limit_exceeded', param: null } : { type: 'rate_limit_error' },
      )
    })

    test('down is down, every time', async () => {
      const transport = createTransport()
      for (let call = 0; call < 3; call += 1) {
        const response = await ask(transport, path, say(path, 'down', 'hi'))
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, null])
        const { error }: Wire = await response.json()
        expect(error.type).toBe(isChat ? 'server_error' : 'overloaded_error')
      }
    })

    test('breaks-off ends in the middle, without the mark that means done', async () => {
      const records = await readRecords(
        await ask(createTransport(), path, say(path, 'breaks-off', 'a b c d', { stream: true })),
      )
      const bodies: Wire[] = records.map(({ data }) => JSON.parse(data))
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

    test('waits as long in all without a stream', async () => {
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

    test('nothing at all is sent before the first wait', async () => {
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

function call(id: string, name: string) {
  return { id, type: 'function', function: { name, arguments: '{}' } }
}
function use(id: string, name: string) {
  return { type: 'tool_use', id, name, input: {} }
}
function result(id: string, content: unknown) {
  return { type: 'tool_result', tool_use_id: id, content }
}

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
    const json: Wire = await (await ask(createTransport(), path, say(path, 'think', 'why', more))).json()
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
    const json: Wire = await response.json()
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

describe('cache writes by duration', () => {
  test('what stands before an hour’s mark is kept for an hour, the rest for five minutes', async () => {
    const mark = (ttl: string) => ({ cache_control: { type: 'ephemeral', ttl } })
    const content = [
      { type: 'text', text: 'now this', ...mark('5m') },
      { type: 'text', text: 'a question' },
    ]
    const system = [{ type: 'text', text: 'one two three', ...mark('1h') }]
    const body = { model: 'cache', max_tokens: 9, system, messages: [{ role: 'user', content }] }
    const { usage }: Wire = await (await ask(createTransport(), '/v1/messages', body)).json()
    expect(usage.cache_creation).toEqual({ ephemeral_1h_input_tokens: 7, ephemeral_5m_input_tokens: 6 })
    expect([usage.cache_creation_input_tokens, usage.input_tokens]).toEqual([13, 2])
  })
})
