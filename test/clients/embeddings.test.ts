// POST /v1/embeddings: the official clients, the bytes of vectors, the other providers' forms, charges and refusals.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { OpenAIEmbeddings } from '@langchain/openai'
import OpenAI from 'openai'
import { invokeEmbedding, predictEmbedding } from '../../src/providers/wrapping/embeddings.ts'
import { createWallets } from '../money/wallets.ts'
import { post } from '../parts/ask.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { googleClients } from '../recipes/clients.ts'
import { fetchPython, pythonClients } from '../recipes/python.ts'

const idle: UpstreamHandler = (_, reply) => void reply.json(500, {})
const upstream = startUpstream(idle)
const tagged = 'tags: [embeddings], context_tokens: 8192'
/** A model for each fault: a route that failed is not tried first again. */
const faultModels = Array.from(
  { length: 6 },
  (_, i) =>
    `  - { id: test/fault-${i}, ${tagged}, price: { input: "0.13", output: "0" }, routes: [{ provider: first, model: up-${i}, priority: 1 }, { provider: second, model: up-${i}, priority: 2 }] }`,
).join('\n')
const gateway = await startGateway({
  config: `
providers:
  - { id: first, dialect: openai-chat, base_url: "${upstream.url}/first/v1", api_key: upstream-secret }
  - { id: second, dialect: openai-chat, base_url: "${upstream.url}/second/v1", api_key: upstream-secret }
  - { id: googly, dialect: gemini, base_url: "${upstream.url}/v1beta", api_key: upstream-secret }
  - { id: claudish, dialect: anthropic-messages, base_url: "${upstream.url}", api_key: upstream-secret }
models:
  - { id: test/embed, ${tagged}, price: { input: "0.13", output: "0" }, routes: [{ provider: first, model: up-embed, priority: 1 }, { provider: second, model: up-embed, priority: 2 }] }
  - { id: test/google, ${tagged}, price: { input: "0.15", output: "0" }, routes: [{ provider: googly, model: g-embed }] }
  - { id: test/claude, ${tagged}, price: { input: "0.15", output: "0" }, routes: [{ provider: claudish, model: c }] }
  - { id: test/chat, price: free, routes: [{ provider: first, model: chat }] }
${faultModels}
`,
})
afterAll(() => stopAll(gateway, upstream))
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })

const embed = (body: object | string, headers: Record<string, string> = {}) =>
  post(gateway, '/v1/embeddings', body, headers)
const vectors = '[{"object":"embedding","index":0,"embedding":[0.0012300,-1.5E-3, 7e0]}]'
const answerWith =
  (tokens: number, data = vectors): UpstreamHandler =>
  (_, reply) =>
    reply.send(
      200,
      { 'content-type': 'application/json' },
      `{"object":"list","data":${data},"model":"up-embed-2","usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`,
    )

describe('the sandbox', () => {
  test('openai: one text, a batch and tokens; floats and base64 are the same vectors', async () => {
    const one = await client.embeddings.create({ model: 'sandbox/embed', input: 'a red fox' })
    const floats = await client.embeddings.create({
      model: 'sandbox/embed',
      input: 'a red fox',
      encoding_format: 'float',
    })
    expect(one.data[0]?.embedding).toEqual(floats.data[0]?.embedding as number[])
    expect(one.data[0]?.embedding).toHaveLength(256)
    // Three words, one token each, at $0.02 per million.
    expect(one).toMatchObject({ model: 'sandbox/embed', usage: { prompt_tokens: 3, total_tokens: 3, cost: 6e-8 } })
    const batch = await client.embeddings.create({ model: 'sandbox/embed', input: ['a red fox', 'x'], dimensions: 8 })
    expect(batch.data.map(({ index, embedding }) => [index, embedding.length])).toEqual([
      [0, 8],
      [1, 8],
    ])
    const tokens = await client.embeddings.create({ model: 'sandbox/embed', input: [[1, 2], [3]] })
    expect(tokens.data).toHaveLength(2)
  })

  test('langchain: texts that share words are nearer than texts that do not', async () => {
    const configuration = { baseURL: `${gateway.url}/v1` }
    const chain = new OpenAIEmbeddings({ model: 'sandbox/embed', apiKey: gateway.key, configuration })
    const query = await chain.embedQuery('the red fox')
    const [near = [], far = []] = await chain.embedDocuments(['a red fox runs', 'stock prices fell'])
    const dot = (a: number[], b: number[]) => a.reduce((sum, each, i) => sum + each * (b[i] ?? 0), 0)
    expect(dot(query, near)).toBeGreaterThan(dot(query, far))
  })
})

/** Each embeds a text and prints the vector; arguments: URL, key, model. */
const programs = {
  'OpenAI Python': `
import sys, openai
url, key, model = sys.argv[1:]
client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
print(list(client.embeddings.create(model=model, input="a red fox").data[0].embedding))`,
  // It would download a tokenizer to measure texts, and send tokens.
  'LangChain Python': `
import sys
from langchain_openai import OpenAIEmbeddings
url, key, model = sys.argv[1:]
client = OpenAIEmbeddings(base_url=url + "/v1", api_key=key, model=model, check_embedding_ctx_length=False, max_retries=0)
print(client.embed_query("a red fox"))`,
  'Google Gen AI Python': `
import sys
from google import genai
url, key, model = sys.argv[1:]
client = genai.Client(api_key=key, http_options={"base_url": url})
config = {"output_dimensionality": 256}
print(client.models.embed_content(model=model, contents="a red fox", config=config).embeddings[0].values)`,
  'Google Gen AI JS': `
import { GoogleGenAI } from '@google/genai'
const [, baseUrl, apiKey, model] = process.argv
const ai = new GoogleGenAI({ apiKey, httpOptions: { baseUrl } })
const config = { outputDimensionality: 256 }
const { embeddings } = await ai.models.embedContent({ model, contents: 'a red fox', config })
console.log(JSON.stringify(embeddings[0].values))`,
}
const langchainVersion = '1.7.3'
const langchain = await fetchPython('langchain-openai', langchainVersion)
const folder = createThrowAwayFolder()
afterAll(() => folder[Symbol.dispose]())
const others = [
  ...(await pythonClients()).map(({ client, missing }) => ({ ...client, missing, cwd: folder.path })),
  ...(await googleClients()).map(({ client, missing }) => ({
    ...client,
    missing,
    cwd: join(folder.path, client.version),
  })),
  {
    ...{ name: 'LangChain Python', version: langchainVersion, surfaces: ['chat'], cwd: folder.path },
    command: () => [langchain.python],
    missing: langchain.missing,
  },
].filter(({ name, surfaces }) => name in programs && surfaces[0] !== 'responses')

for (const { name, version, command, missing, cwd } of others) {
  test.skipIf(missing !== undefined)(`${name} ${version}: the same vector as with openai for JavaScript`, async () => {
    mkdirSync(cwd, { recursive: true })
    const [program = ''] = command(cwd)
    const source = programs[name as keyof typeof programs]
    const words = program === 'node' ? ['--input-type=module', '-e', source, '--'] : ['-c', source]
    const child = Bun.spawn([program, ...words, gateway.url, gateway.key, 'sandbox/embed'], {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH ?? '' },
    })
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    expect(errors).toBe('')
    const { data } = await client.embeddings.create({ model: 'sandbox/embed', input: 'a red fox' })
    expect((JSON.parse(output) as number[]).map(Math.fround)).toEqual(data[0]?.embedding.map(Math.fround) as number[])
  })
}

test('vectors are passed on byte for byte, with the cost in the usage', async () => {
  upstream.handle(answerWith(1_001))
  const response = await embed('{"model":"test/embed","input":"hi","dimensions":3,"made_up":1e2}')
  const text = await response.text()
  expect(text).toContain(`"data":${vectors},"model":"test/embed"`)
  // 1,001 tokens at 130 nano-dollars are 130,130 nano-dollars.
  expect(text).toContain('"usage":{"prompt_tokens":1001,"total_tokens":1001,"cost":0.00013013}')
  expect(response.headers.get('x-tollgate-cost')).toBe('0.00013013')
  const { path, body } = upstream.calls.at(-1) ?? {}
  expect(path).toBe('/first/v1/embeddings')
  expect(Buffer.from(body ?? []).toString()).toBe('{"model":"up-embed","input":"hi","dimensions":3,"made_up":1e2}')
})

test('a batch may have more tokens than one text can', async () => {
  upstream.handle(answerWith(50_000))
  const input = Array.from({ length: 100 }, () => 'word '.repeat(500))
  const response = await embed({ model: 'test/embed', input, encoding_format: 'base64' })
  // 50,000 tokens at 130 nano-dollars.
  expect(response.headers.get('x-tollgate-cost')).toBe('0.0065')
  expect(response.headers.get('x-tollgate-usage')).toBeNull()
})

test('numbers become base64 for a client that asked for it, where a host ignores that', async () => {
  upstream.handle(answerWith(2))
  const { data } = await client.embeddings.create({ model: 'test/embed', input: 'hi' })
  expect(data[0]?.embedding).toEqual([Math.fround(0.00123), Math.fround(-0.0015), 7])
})

const faults: readonly (readonly [string, UpstreamHandler])[] = [
  ['an overloaded host', (_, reply) => reply.json(503, { error: { message: 'overloaded' } })],
  ['a throttled host', (_, reply) => reply.json(429, { error: { message: 'slow down' } })],
  ['a connection that breaks', (_, reply) => reply.reset()],
  ['a page in place of vectors', (_, reply) => reply.send(200, { 'content-type': 'text/html' }, '<p>')],
  ['an error inside a 200', (_, reply) => reply.json(200, { error: { message: 'x', code: 'server_error' } })],
  ['a reply without vectors', (_, reply) => reply.json(200, { data: [] })],
]

test.each(faults.map(([what, fault], i) => [what, fault, `test/fault-${i}`] as const))(
  '%s: the next route answers, and is charged once',
  async (_, fault, model) => {
    upstream.handle((call, reply) =>
      call.path.startsWith('/second') ? answerWith(1)(call, reply) : fault(call, reply),
    )
    const response = await embed({ model, input: 'hi' })
    expect(response.headers.get('x-tollgate-provider')).toBe('second')
    expect(Number(response.headers.get('x-tollgate-attempts'))).toBeGreaterThan(1)
    // One token.
    expect(response.headers.get('x-tollgate-cost')).toBe('0.00000013')
  },
)

describe('money', () => {
  const wallets = createWallets(gateway)
  const google = (key: string) =>
    fetch(`${gateway.url}/v1beta/models/test/embed:embedContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ content: { parts: [{ text: 'hi' }] } }),
    })

  test('both APIs charge the same, to the nano-dollar, and leave no hold', async () => {
    upstream.handle(answerWith(1_001))
    const { workspaceId, key } = await wallets.open('1')
    await embed({ model: 'test/embed', input: 'hi' }, { authorization: `Bearer ${key}` })
    // 1,001 tokens at 130 nano-dollars.
    expect(await wallets.read(workspaceId)).toEqual({ posted: 999_869_870n, held: 0n })
    expect((await google(key)).headers.get('x-tollgate-cost')).toBe('0.00013013')
    expect(await wallets.read(workspaceId)).toEqual({ posted: 999_739_740n, held: 0n })
  })

  test('an empty wallet is refused before the provider is called, on both APIs', async () => {
    const calls = upstream.calls.length
    const { key } = await wallets.open()
    const poor = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 })
    const refused = await poor.embeddings
      .create({ model: 'test/embed', input: 'hi' })
      .catch((thrown: unknown) => thrown)
    expect(refused).toBeInstanceOf(OpenAI.APIError)
    const { status, code } = refused as InstanceType<typeof OpenAI.APIError>
    expect([status, code]).toEqual([402, 'INSUFFICIENT_BALANCE'])
    const response = await google(key)
    const { error } = (await response.json()) as { error: { status: string; details: object[] } }
    expect([response.status, error.status]).toEqual([402, 'FAILED_PRECONDITION'])
    expect(error.details[0]).toMatchObject({ reason: 'INSUFFICIENT_BALANCE' })
    expect(upstream.calls).toHaveLength(calls)
  })

  test('a spend limit that is used up is a 429 on both APIs', async () => {
    upstream.handle(answerWith(1_001))
    // Each call costs $0.00013013, and the hold of a word is far below that.
    const { key } = await wallets.open('1', { spend_per_day: '0.00014' })
    const headers = { authorization: `Bearer ${key}` }
    expect((await embed({ model: 'test/embed', input: 'hi' }, headers)).status).toBe(200)
    const input = 'word '.repeat(200)
    const refused = await embed({ model: 'test/embed', input }, headers)
    expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('per day')])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('requests per minute count embeddings of both APIs', async () => {
    upstream.handle(answerWith(1))
    const { key } = await wallets.open('1', { requests_per_minute: 2 })
    const headers = { authorization: `Bearer ${key}` }
    expect((await embed({ model: 'test/embed', input: 'hi' }, headers)).status).toBe(200)
    expect((await google(key)).status).toBe(200)
    expect((await embed({ model: 'test/embed', input: 'hi' }, headers)).status).toBe(429)
    expect((await google(key)).status).toBe(429)
  })
})

test('usage that is missing or impossible is estimated', async () => {
  upstream.handle(answerWith(9_000_000))
  const response = await embed({ model: 'test/embed', input: 'hi' })
  expect(response.headers.get('x-tollgate-usage')).toBe('estimated')
  expect(Number(response.headers.get('x-tollgate-cost'))).toBeLessThan(0.00001)
})

test('gemini: a batch in its form, and vectors in the caller’s', async () => {
  upstream.handle((_, reply) => reply.json(200, { embeddings: [{ values: [0.5, -1] }, { values: [2, 3] }] }))
  const response = await embed({ model: 'test/google', input: ['a', 'b'], dimensions: 2 })
  expect(await response.json()).toMatchObject({
    object: 'list',
    model: 'test/google',
    data: [
      { object: 'embedding', index: 0, embedding: [0.5, -1] },
      { object: 'embedding', index: 1, embedding: [2, 3] },
    ],
  })
  const call = upstream.calls.at(-1)
  expect(call?.path).toBe('/v1beta/models/g-embed:batchEmbedContents')
  const request = (text: string) => ({
    model: 'models/g-embed',
    content: { parts: [{ text }] },
    outputDimensionality: 2,
  })
  expect(call?.json()).toEqual({ requests: [request('a'), request('b')] })
})

describe('hosts with their own format', () => {
  const call = (body: object) => ({
    ...{ path: '/embeddings', headers: {} },
    body: new TextEncoder().encode(JSON.stringify(body)),
  })
  const jsonOf = (bytes: Uint8Array = new Uint8Array()) => JSON.parse(Buffer.from(bytes).toString())
  const back = async (wrapping: typeof invokeEmbedding, reply: object, headers = {}) =>
    jsonOf(await wrapping.unwrap(Response.json(reply, { headers })).bytes())

  test('Titan on Bedrock takes one text', async () => {
    const model = 'amazon.titan-embed-text-v2:0'
    const wrapped = invokeEmbedding.wrap(call({ model, input: 'a', dimensions: 256 }), {} as never)
    expect(wrapped?.path).toBe('/model/amazon.titan-embed-text-v2%3A0/invoke')
    expect(jsonOf(wrapped?.body)).toEqual({ inputText: 'a', dimensions: 256 })
    expect(invokeEmbedding.wrap(call({ model, input: ['a', 'b'] }), {} as never)?.refused?.message).toContain(
      'one text',
    )
    expect(await back(invokeEmbedding, { embedding: [1, 2], inputTextTokenCount: 5 })).toMatchObject({
      data: [{ index: 0, embedding: [1, 2] }],
      usage: { prompt_tokens: 5 },
    })
  })

  test('Cohere on Bedrock takes many', async () => {
    const wrapped = invokeEmbedding.wrap(call({ model: 'cohere.embed-v4:0', input: ['a', 'b'] }), {} as never)
    expect(jsonOf(wrapped?.body)).toMatchObject({ texts: ['a', 'b'], embedding_types: ['float'] })
    const reply = { embeddings: { float: [[1], [2]] } }
    expect(await back(invokeEmbedding, reply, { 'x-amzn-bedrock-input-token-count': '4' })).toMatchObject({
      data: [{ embedding: [1] }, { embedding: [2] }],
      usage: { prompt_tokens: 4 },
    })
  })

  test('Vertex predicts', async () => {
    const wrapped = predictEmbedding.wrap(
      call({ model: 'gemini-embedding-001', input: 'a', dimensions: 9 }),
      {} as never,
    )
    expect(wrapped?.path).toBe('/models/gemini-embedding-001:predict')
    expect(jsonOf(wrapped?.body)).toEqual({ instances: [{ content: 'a' }], parameters: { outputDimensionality: 9 } })
    const statistics = { token_count: 3 }
    expect(await back(predictEmbedding, { predictions: [{ embeddings: { values: [1], statistics } }] })).toMatchObject({
      data: [{ embedding: [1] }],
      usage: { prompt_tokens: 3 },
    })
  })
})

test.each<[string, string, object, number, string]>([
  ['a chat model', '/v1/embeddings', { model: 'sandbox/echo', input: 'hi' }, 400, 'does not make embeddings'],
  [
    'a prompt',
    '/v1/chat/completions',
    { model: 'sandbox/embed', messages: [{ role: 'user', content: 'x' }] },
    400,
    'POST /v1/embeddings',
  ],
  ['an unknown model', '/v1/embeddings', { model: 'nope', input: 'hi' }, 404, 'No model'],
  ['no input', '/v1/embeddings', { model: 'sandbox/embed' }, 400, '`input` is missing'],
  ['messages', '/v1/embeddings', { model: 'sandbox/embed', messages: [] }, 400, '/v1/chat/completions'],
  ['an empty list', '/v1/embeddings', { model: 'sandbox/embed', input: [] }, 400, '`input` is empty'],
  ['an empty text in a list', '/v1/embeddings', { model: 'sandbox/embed', input: ['a', ''] }, 400, 'input[1]'],
  ['a stream', '/v1/embeddings', { model: 'sandbox/embed', input: 'a', stream: true }, 400, 'not streamed'],
  ['a provider without embeddings', '/v1/embeddings', { model: 'test/claude', input: 'a' }, 404, 'has no embeddings'],
  ['tokens for Gemini', '/v1/embeddings', { model: 'test/google', input: [1, 2] }, 400, 'not tokens'],
])('%s is refused with what to do', async (_, path, body, status, says) => {
  const response = await post(gateway, path, body)
  expect(await response.text()).toContain(says)
  expect(response.status).toBe(status)
})

test('the same idempotency key is paid for once', async () => {
  const headers = { 'idempotency-key': 'embed-1' }
  const first = await embed({ model: 'sandbox/embed', input: 'once', dimensions: 4 }, headers)
  const again = await embed({ model: 'sandbox/embed', input: 'once', dimensions: 4 }, headers)
  expect(await again.text()).toBe(await first.text())
  expect(again.headers.get('x-tollgate-cost')).toBe('0.00')
})
