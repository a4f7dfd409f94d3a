// Gemini's API: what callers send in Google's form reaches every model, and comes back in Google's form.

import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { startUpstream } from '../parts/upstream.ts'

const upstream = startUpstream((_, reply) => void reply.json(500, {}))
const price = 'price: { input: "1.00", output: "2.00" }, max_output_tokens: 8000'
const gateway = await startGateway({
  config: `
providers:
  - { id: chatty, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: upstream-secret }
  - { id: messy, dialect: anthropic-messages, base_url: "${upstream.url}", api_key: upstream-secret }
  - { id: googly, dialect: gemini, base_url: "${upstream.url}/v1beta", api_key: upstream-secret }
models:
  - { id: test/chat, ${price}, routes: [{ provider: chatty, model: up-chat }] }
  - { id: test/messages, ${price}, tags: [reasoning, tools], routes: [{ provider: messy, model: claude-up }] }
  - { id: test/gemini, ${price}, tags: [reasoning, tools], routes: [{ provider: googly, model: gemini-3-up }] }
`,
})
afterAll(() => stopAll(gateway, upstream))

interface Reply {
  readonly candidates: readonly {
    readonly content: { readonly parts: readonly Record<string, unknown>[]; readonly role: string }
    readonly finishReason?: string
  }[]
  readonly usageMetadata?: Record<string, number>
  readonly modelVersion: string
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly status: string
    readonly details: object[]
  }
}

const call = (target: string, body: object, headers: Record<string, string> = { 'x-goog-api-key': gateway.key }) =>
  fetch(`${gateway.url}/v1beta/models/${target}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
const ask = async (target: string, body: object) => (await (await call(target, body)).json()) as Reply
const user = (text: string) => ({ role: 'user', parts: [{ text }] })
const hello = 'hello from the other side of the gate'

describe('the sandbox', () => {
  test.each(['sandbox/echo', 'sandbox%2Fecho'])('generateContent of %s, at the price of the other APIs', async (id) => {
    expect(await ask(`${id}:generateContent`, { contents: [user(hello)] })).toEqual({
      candidates: [{ content: { parts: [{ text: hello }], role: 'model' }, finishReason: 'STOP', index: 0 }],
      // 8 words and 4 for the turn at $1 per million, 8 words at $2.
      usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 8, totalTokenCount: 20, cost: 0.000028 },
      modelVersion: 'sandbox/echo',
      responseId: expect.any(String),
    } as never)
  })

  test('streamGenerateContent: records with alt=sse, one list without', async () => {
    const response = await call('sandbox/echo:streamGenerateContent?alt=sse', { contents: [user(hello)] })
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    const records = (await response.text())
      .trim()
      .split('\n\n')
      .map((line) => JSON.parse(line.slice('data: '.length)) as Reply)
    const text = records.map(({ candidates }) => candidates[0]?.content.parts[0]?.text).join('')
    expect(text).toBe(hello)
    expect(records.length).toBeGreaterThan(3)
    expect(records.at(-1)).toMatchObject({ usageMetadata: { cost: 0.000028 }, candidates: [{ finishReason: 'STOP' }] })
    const list = await call('sandbox/echo:streamGenerateContent', { contents: [user(hello)] })
    expect(await list.json()).toMatchObject([{ modelVersion: 'sandbox/echo' }])
  })

  test('a call and its result, by name where the client sends no ids', async () => {
    const declared = {
      name: 'get_weather',
      parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] },
    }
    const tools = [{ functionDeclarations: [declared] }]
    const contents: object[] = [user('What is the weather like?')]
    const first = await ask('sandbox/tools:generateContent', { contents, tools })
    const part = (first.candidates[0]?.content.parts[0] ?? {}) as { functionCall?: Record<string, unknown> }
    const { id: _, ...functionCall } = part.functionCall ?? {}
    expect(functionCall).toEqual({ name: 'get_weather', args: { city: 'sandbox' } })
    const functionResponse = { name: 'get_weather', response: { output: 'it rains' } }
    contents.push({ role: 'model', parts: [{ functionCall }] }, { role: 'user', parts: [{ functionResponse }] })
    const second = await ask('sandbox/tools:generateContent', { contents, tools })
    expect(second.candidates[0]?.content.parts).toEqual([{ text: 'The tool said: it rains' }])
  })

  test('thoughts are shown if the caller asks for them', async () => {
    const body = (includeThoughts: boolean) => ({
      contents: [user('why')],
      generationConfig: { thinkingConfig: { includeThoughts, thinkingLevel: 'low' } },
    })
    const parts = async (shown: boolean) =>
      (await ask('sandbox/think:generateContent', body(shown))).candidates[0]?.content.parts
    expect((await parts(true))?.map(({ thought = false }) => thought)).toEqual([true, false])
    expect((await parts(false))?.map(({ text }) => text)).toEqual(['After some thought: why'])
  })

  test('a JSON schema in Google’s form', async () => {
    const responseSchema = { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] }
    const generationConfig = { responseMimeType: 'application/json', responseSchema }
    const { candidates } = await ask('sandbox/echo:generateContent', { contents: [user('x')], generationConfig })
    expect(candidates[0]?.content.parts).toEqual([{ text: '{"city":"sandbox"}' }])
  })

  test('countTokens, embedContent, batchEmbedContents and the list of models', async () => {
    const generateContentRequest = { contents: [user(hello)] }
    expect(await ask('sandbox/echo:countTokens', generateContentRequest)).toEqual({
      totalTokens: expect.any(Number),
    } as never)
    expect(await ask('sandbox/echo:countTokens', { generateContentRequest })).toEqual({
      totalTokens: expect.any(Number),
    } as never)
    const content = { parts: [{ text: 'a red fox' }] }
    const one = await ask('sandbox/embed:embedContent', { content, outputDimensionality: 8 })
    const { embedding } = one as unknown as { embedding: { values: number[] } }
    expect(embedding.values).toHaveLength(8)
    const batch = await ask('sandbox/embed:batchEmbedContents', { requests: [{ content }, { content }] })
    expect(batch).toMatchObject({ embeddings: [{}, {}], usageMetadata: { promptTokenCount: 6, cost: 1.2e-7 } } as never)
    const get = async (path: string) =>
      (await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${gateway.key}` } })).json()
    const item = { name: 'models/sandbox/embed', supportedGenerationMethods: ['embedContent', 'batchEmbedContents'] }
    expect(await get('/v1beta/models/sandbox/embed')).toMatchObject(item)
    const models = expect.arrayContaining([expect.objectContaining(item)])
    expect(await get('/v1beta/models')).toMatchObject({ models })
    // Google's clients list models under /v1 since version 3.
    const headers = { 'x-goog-api-key': gateway.key }
    const ofGoogle = async (path: string) => (await fetch(`${gateway.url}${path}`, { headers })).json()
    expect(await ofGoogle('/v1/models')).toMatchObject({ models })
    expect(await ofGoogle('/v1/models/sandbox/embed')).toMatchObject(item)
  })

  // The AI SDK's Google provider writes `models/` only before names without a slash.
  test.each(['/v1beta', '/v1alpha', '/v1', '/v1beta/v1beta'])(
    'every call under %s without models/',
    async (version) => {
      const post = (target: string, body: object) =>
        fetch(`${gateway.url}${version}/${target}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-goog-api-key': gateway.key },
          body: JSON.stringify(body),
        })
      const contents = [user(hello)]
      const answer = { candidates: [{ content: { parts: [{ text: hello }] } }], modelVersion: 'sandbox/echo' }
      for (const id of ['sandbox/echo', 'sandbox%2Fecho']) {
        expect(await (await post(`${id}:generateContent`, { contents })).json()).toMatchObject(answer)
      }
      expect(await (await post('sandbox/echo:streamGenerateContent', { contents })).json()).toMatchObject([answer])
      const stream = await post('sandbox/echo:streamGenerateContent?alt=sse', { contents })
      expect(stream.headers.get('content-type')).toStartWith('text/event-stream')
      expect(await stream.text()).toContain('"finishReason":"STOP"')
      expect(await (await post('sandbox/echo:countTokens', { contents })).json()).toEqual({
        totalTokens: expect.any(Number),
      })
      const content = { parts: [{ text: 'a red fox' }] }
      const one = await post('sandbox/embed:embedContent', { content })
      expect(await one.json()).toMatchObject({ embedding: { values: expect.any(Array) } })
      const batch = await post('sandbox/embed:batchEmbedContents', { requests: [{ content }, { content }] })
      expect(await batch.json()).toMatchObject({ embeddings: [{}, {}] })
      const unknown = await post('sandbox/nothing:generateContent', { contents })
      expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { status: 'NOT_FOUND' } }])
    },
  )
})

test('names in the spelling of Google’s Python client reach other models, and the caller’s own stay', async () => {
  upstream.handle((_, reply) =>
    reply.json(200, {
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 5 },
    }),
  )
  const schema = { type: 'object', properties: { top_p: { type: 'string' } } }
  await ask('test/chat:generateContent', {
    contents: [user('x')],
    system_instruction: { parts: [{ text: 'be brief' }] },
    tools: [
      {
        function_declarations: [
          { name: 'f', parameters_json_schema: schema, response_json_schema: { type: 'string' } },
          { name: 'g', parameters: { type: 'OBJECT', properties: { top_k: { any_of: [{ type: 'STRING' }] } } } },
        ],
      },
    ],
    generation_config: { max_output_tokens: 9, top_p: 0.5 },
  })
  const sent = upstream.calls.at(-1)?.json()
  expect(sent).toMatchObject({ max_tokens: 9, top_p: 0.5, messages: [{ role: 'system', content: 'be brief' }, {}] })
  const tools = (sent?.tools ?? []) as { function: { parameters: object } }[]
  expect(tools.map((tool) => tool.function.parameters)).toEqual([
    schema,
    { type: 'object', properties: { top_k: { anyOf: [{ type: 'string' }] } } },
  ])
})

test('signed thinking of Claude goes to the caller and back, on the call that it led to', async () => {
  const thinking = { type: 'thinking', thinking: 'hm', signature: 'c2ln' }
  const used = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } }
  upstream.handle((_, reply) =>
    reply.json(200, {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-up', stop_reason: 'tool_use' },
      ...{ content: [thinking, used], usage: { input_tokens: 10, output_tokens: 5 } },
    }),
  )
  const tools = [{ functionDeclarations: [{ name: 'look' }] }]
  const generationConfig = { maxOutputTokens: 4000, thinkingConfig: { thinkingBudget: 2000 } }
  const contents: object[] = [user('look there')]
  const { candidates } = await ask('test/messages:generateContent', { contents, tools, generationConfig })
  const [part] = candidates[0]?.content.parts ?? []
  expect(part).toEqual({
    functionCall: { id: 'toolu_1', name: 'look', args: { at: 1 } },
    thoughtSignature: expect.any(String),
  })
  const functionResponse = { id: 'toolu_1', name: 'look', response: { output: 'seen' } }
  contents.push({ role: 'model', parts: [part] }, { role: 'user', parts: [{ functionResponse }] })
  await ask('test/messages:generateContent', { contents, tools, generationConfig })
  const { messages } = (upstream.calls.at(-1)?.json() ?? {}) as { messages: { content: unknown[] }[] }
  expect(messages[1]?.content).toMatchObject([thinking, used])
  expect(messages[2]?.content).toMatchObject([{ type: 'tool_result', tool_use_id: 'toolu_1' }])
})

test('Gemini’s own thought signature comes back to Gemini on its call', async () => {
  const functionCall = { name: 'look', args: {} }
  upstream.handle((_, reply) =>
    reply.json(200, {
      candidates: [
        { content: { role: 'model', parts: [{ functionCall, thoughtSignature: 'c2lnbmVk' }] }, finishReason: 'STOP' },
      ],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 },
    }),
  )
  const tools = [{ functionDeclarations: [{ name: 'look' }] }]
  const generationConfig = { maxOutputTokens: 100 }
  const contents: object[] = [user('look there')]
  const { candidates } = await ask('test/gemini:generateContent', { contents, tools, generationConfig })
  const functionResponse = { name: 'look', response: { output: 'seen' } }
  contents.push(candidates[0]?.content as object, { role: 'user', parts: [{ functionResponse }] })
  await ask('test/gemini:generateContent', { contents, tools, generationConfig })
  const sent = (upstream.calls.at(-1)?.json() ?? {}) as { contents: { parts: object[] }[] }
  expect(sent.contents[1]?.parts[0]).toMatchObject({ functionCall: { name: 'look' }, thoughtSignature: 'c2lnbmVk' })
})

const ok = { 'x-goog-api-key': gateway.key }
const asking = { contents: [user('x')] }
const generate = 'sandbox/echo:generateContent'
const invalid = ['INVALID_ARGUMENT', 'INVALID_REQUEST'] as const

test.each<[string, string, object, Record<string, string>, number, string, string]>([
  ['no key', generate, {}, {}, 401, 'UNAUTHENTICATED', 'UNAUTHORIZED'],
  ['a wrong key', generate, {}, { 'x-goog-api-key': 'nope' }, 401, 'UNAUTHENTICATED', 'UNAUTHORIZED'],
  ['an unknown model', 'nope:generateContent', asking, ok, 404, 'NOT_FOUND', 'NOT_FOUND'],
  ['an unknown verb', 'sandbox/echo:predict', {}, ok, 404, 'NOT_FOUND', 'NOT_FOUND'],
  ['no contents', generate, {}, ok, 400, ...invalid],
  ['cached contents', generate, { ...asking, cachedContent: 'a' }, ok, 400, ...invalid],
  ['an embedding model', 'sandbox/embed:generateContent', asking, ok, 400, ...invalid],
  ['a throttled model', 'sandbox/throttled:generateContent', asking, ok, 429, 'RESOURCE_EXHAUSTED', 'LIMIT_EXCEEDED'],
])('%s is an error in Google’s form', async (_, target, body, headers, code, status, reason) => {
  const response = await call(target, body, headers)
  const { error } = (await response.json()) as Reply
  expect(response.status).toBe(code)
  expect(error).toMatchObject({ code, status, message: expect.any(String) })
  expect(error?.details[0]).toMatchObject({ reason, domain: 'tollgate' })
  if (code === 429) {
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(error?.details[1]).toMatchObject({ retryDelay: expect.stringMatching(/^\d+s$/) })
  }
})
