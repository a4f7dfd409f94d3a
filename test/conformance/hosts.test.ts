// Hosts that need more than an address and a key: one whose address comes from a variable and who speaks two dialects,
// one that has requests signed and frames its streams, and one whose key is exchanged for a token.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { systemClock } from '../../src/kernel/clock.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { callEndpoint } from '../../src/providers/call-endpoint.ts'
import { createSign, signAws } from '../../src/providers/credentials.ts'
import type { Endpoint, Provider } from '../../src/providers/provider.ts'
import { post } from '../parts/ask.ts'
import { chunkFrame, eventFrame } from '../parts/event-frames.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { startUpstream, type UpstreamCall, type UpstreamHandler } from '../parts/upstream.ts'
import { answerHello, wordsFor } from '../parts/upstream-words.ts'
import { type Pair, type SurfaceName, surfaces } from './cells.ts'
import { readReply } from './replies/read-reply.ts'
import { requestCell } from './request-cells.ts'
import { requestFixtures } from './requests/index.ts'

const upstream = startUpstream(answerHello)
const gateway = await startGateway({
  env: { AZURE_OPENAI_API_KEY: 'azure-secret', AZURE_OPENAI_ENDPOINT: `${upstream.url}/` },
  config: `providers:
  - { id: framed, dialect: bedrock, base_url: "${upstream.url}", api_key: "AKID:shh-secret:session-1" }
models:
  - { id: test/deployed, price: free, routes: [{ provider: azure, model: gpt-5.6 }] }
  - { id: test/roomy, price: free, max_output_tokens: 8000, default_max_tokens: 4096, routes: [{ provider: framed, model: "anthropic.claude-sonnet-4-5-v1:0" }] }
  - { id: test/framed, price: free, max_output_tokens: 100, routes: [{ provider: framed, model: "anthropic.claude-sonnet-4-5-v1:0" }] }
`,
})
afterAll(() => stopAll(gateway, upstream))

const schema = { type: 'object', properties: {} }
const tools = {
  chat: [{ type: 'function', function: { name: 'look', parameters: schema } }],
  messages: [{ name: 'look', input_schema: schema }],
}

/** Surface, and whether a stream is requested. */
const everyWay = [
  ['chat', true],
  ['chat', false],
  ['messages', true],
  ['messages', false],
] as const

function ask(surface: SurfaceName, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const members = { max_tokens: 50, messages: [{ role: 'user', content: 'hi' }], ...body }
  return post(gateway, surfaces[surface].path, members, { ...surfaces[surface].headers, ...headers })
}

function lastCall(): UpstreamCall {
  const call = upstream.calls.at(-1)
  if (!call) throw new Error('nothing was sent')
  return call
}

test.each([
  ['chat', {}, '/openai/v1/chat/completions'],
  ['chat', { tools: tools.chat }, '/openai/v1/responses'],
  ['chat', { tools: tools.chat, reasoning_effort: 'high' }, '/openai/v1/responses'],
  ['chat', { tools: tools.chat, reasoning_effort: 'none' }, '/openai/v1/chat/completions'],
  ['chat', { tools: [], reasoning_effort: 'high' }, '/openai/v1/chat/completions'],
  ['messages', {}, '/openai/v1/chat/completions'],
  ['messages', { tools: tools.messages, thinking: { type: 'adaptive' } }, '/openai/v1/responses'],
  ['messages', { tools: tools.messages, output_config: { effort: 'low' } }, '/openai/v1/responses'],
  ['messages', { tools: tools.messages, thinking: { type: 'disabled' } }, '/openai/v1/chat/completions'],
] as const)(
  'calls a model that refuses tools while it reasons, requested on %s with %j, at %s',
  async (surface, body, path) => {
    upstream.handle(answerHello)
    for (const stream of [true, false]) {
      const response = await ask(surface, { model: 'test/deployed', stream, ...body })
      const { content } = readReply(surface, await response.text(), { stream })
      expect([response.status, content.text]).toEqual([200, 'hello'])
      expect(response.headers.get('x-tollgate-warnings') ?? '').not.toContain('reasoning_dropped')
      expect(lastCall().path).toBe(path)
      expect(lastCall().headers.get('api-key')).toBe('azure-secret')
      expect(lastCall().headers.get('authorization')).toBeNull()
    }
  },
)

test.each(['chat', 'messages'] as const)('a reply may begin with a byte order mark, on %s', async (surface) => {
  upstream.handle((call, reply) =>
    reply.send(200, { 'content-type': 'application/json' }, `\ufeff${wordsFor(call).whole}`),
  )
  const response = await ask(surface, { model: 'test/deployed' })
  const { content } = readReply(surface, await response.text(), { stream: false })
  expect([response.status, content.text]).toEqual([200, 'hello'])
})

const events = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'up',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüße 🎉' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 3, outputTokenCount: 2 } },
]

/** In pieces that end inside frames. */
const framed: UpstreamHandler = async (call, reply) => {
  if (call.path.endsWith('/invoke')) {
    const message = { ...events[0]?.message, content: [{ type: 'text', text: 'Grüße 🎉' }], stop_reason: 'end_turn' }
    return reply.json(200, { ...message, usage: { input_tokens: 3, output_tokens: 2 } })
  }
  const stream = Buffer.concat(events.map(chunkFrame))
  await reply.startStream({ 'content-type': 'application/vnd.amazon.eventstream' })
  for (let at = 0; at < stream.length; at += 100) await reply.chunk(stream.subarray(at, at + 100))
  await reply.finish()
}

/** The signature that the headers of a call should have had. */
function expectedSignature({ path, headers, body }: UpstreamCall): string {
  const names = /SignedHeaders=([^,]+)/.exec(headers.get('authorization') ?? '')?.[1]?.split(';') ?? []
  const time = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(headers.get('x-amz-date') ?? '')?.slice(1) ?? []
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = time.map(Number)
  const given = names.filter((name) => !['host', 'x-amz-date', 'x-amz-security-token'].includes(name))
  const request = {
    url: upstream.url + path,
    headers: Object.fromEntries(given.map((name) => [name, headers.get(name) ?? ''])),
    body,
  }
  const credential = { accessKeyId: 'AKID', secretAccessKey: 'shh-secret', sessionToken: 'session-1' }
  const epochMs = Date.UTC(year, month - 1, day, hour, minute, second)
  return signAws(request, credential, { epochMs }).authorization ?? ''
}

test.each(everyWay)(
  'a host that frames its streams and checks signatures serves %s, streamed: %p',
  async (surface, stream) => {
    upstream.handle(framed)
    const beta = { 'anthropic-beta': 'tomorrow-2027-01-01' }
    const response = await ask(surface, { model: 'test/framed', stream }, surface === 'messages' ? beta : {})
    const warned = surface === 'messages' ? 'beta_dropped;field=/anthropic-beta/tomorrow-2027-01-01' : null
    expect(response.headers.get('x-tollgate-warnings')).toBe(warned)
    const { content } = readReply(surface, await response.text(), { stream })
    expect([response.status, content.text, content.models]).toEqual([200, 'Grüße 🎉', ['test/framed']])
    const call = lastCall()
    const verb = stream ? 'invoke-with-response-stream' : 'invoke'
    expect(call.path).toBe(`/model/anthropic.claude-sonnet-4-5-v1%3A0/${verb}`)
    expect(call.json()).toMatchObject({ anthropic_version: 'bedrock-2023-05-31', max_tokens: 50 })
    expect(Object.keys(call.json())).not.toContain('model')
    expect(Object.keys(call.json())).not.toContain('anthropic_beta')
    expect(call.headers.get('authorization')).toBe(expectedSignature(call))
    expect(call.headers.get('x-amz-security-token')).toBe('session-1')
    expect(call.headers.get('anthropic-version')).toBeNull()
  },
)

/** Flags that Claude Code 2.1 sends (ex-machina-co/opencode-anthropic-auth#174, BerriAI/litellm#19373, 2026). */
const claudeCodeBetas = [
  ...['claude-code-20250219', 'context-1m-2025-08-07', 'interleaved-thinking-2025-05-14'],
  ...['thinking-token-count-2026-05-13', 'context-management-2025-06-27', 'prompt-caching-scope-2026-01-05'],
  ...['advanced-tool-use-2025-11-20', 'effort-2025-11-24'],
]

describe.each([true, false])('pitfall 150: what Claude Code asks of Bedrock (streamed: %p)', (stream) => {
  const deferred = { ...tools.messages[0], defer_loading: true }
  const body = {
    ...{ model: 'test/framed', stream, context_management: { edits: [] }, output_config: { effort: 'low' } },
    system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', scope: 'global' } }],
    tools: [deferred],
  }
  const headers = { 'anthropic-beta': claudeCodeBetas.join(',') }

  test('is sent as far as the host accepts it; the rest is named in the warnings', async () => {
    upstream.handle(framed)
    const response = await ask('messages', body, headers)
    await response.bytes()
    expect(response.status).toBe(200)
    expect(lastCall().json()).toMatchObject({
      anthropic_beta: [
        ...['context-1m-2025-08-07', 'interleaved-thinking-2025-05-14', 'context-management-2025-06-27'],
        ...['tool-search-tool-2025-10-19', 'effort-2025-11-24'],
      ],
      ...{ context_management: { edits: [] }, output_config: { effort: 'low' }, tools: [deferred] },
      system: [{ cache_control: { type: 'ephemeral' } }],
    })
    expect(response.headers.get('x-tollgate-warnings')?.split(', ')).toEqual([
      'beta_dropped;field=/anthropic-beta/claude-code-20250219',
      'beta_dropped;field=/anthropic-beta/thinking-token-count-2026-05-13',
      'beta_dropped;field=/anthropic-beta/prompt-caching-scope-2026-01-05',
      'scope_dropped;field=/system/0/cache_control/scope',
    ])
  })

  test('is refused in strict mode without calling the host', async () => {
    const before = upstream.calls.length
    const response = await ask('messages', body, { ...headers, 'x-tollgate-strict': 'true' })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect([response.status, error.code, upstream.calls.length]).toEqual([400, 'INVALID_REQUEST', before])
    for (const lost of ['claude-code-20250219', 'thinking-token-count-2026-05-13', 'prompt-caching-scope-2026-01-05']) {
      expect(error.message).toContain(lost)
    }
    expect(error.message).toEndWith('(capability_rejected: beta_header:claude-code-20250219)')
  })

  test('loses defer_loading without the flag that unlocks it, with a warning', async () => {
    upstream.handle(framed)
    const response = await ask('messages', body, { 'anthropic-beta': 'context-management-2025-06-27' })
    await response.bytes()
    expect(lastCall().json().tools).toEqual(tools.messages)
    expect(response.headers.get('x-tollgate-warnings')).toBe(
      'scope_dropped;field=/system/0/cache_control/scope, defer_loading_dropped;field=/tools/0/defer_loading',
    )
  })
})

describe.each(['chat', 'messages'] as const)('every request fixture on %s → Bedrock', (surface) => {
  const pair: Pair = { surface, upstream: 'messages', model: 'test/roomy', upstreamModel: 'claude-sonnet-4-5' }
  const stage = {
    ask: ({ model }: Pair, body: object) => ask(surface, { model, max_tokens: undefined, ...body }),
    get upstream() {
      return upstream
    },
  }

  beforeAll(() => upstream.handle(framed))

  test.each([...requestFixtures.values()].flat())('$feature is carried, named or refused', async (fixture) => {
    for (const stream of [true, false]) {
      const { mark, notes } = await requestCell(stage, pair as Pair, fixture, { stream })
      expect(mark === 'lost' ? notes : []).toEqual([])
    }
  })
})

const calledBefore = {
  chat: [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'rain' },
  ],
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'rain' }] },
  ],
}

test.each(everyWay)(
  'pitfall 170: Bedrock gets definitions for called tools on %s, streamed: %p',
  async (surface, stream) => {
    upstream.handle(framed)
    const response = await ask(surface, { model: 'test/framed', stream, messages: calledBefore[surface] })
    const { content } = readReply(surface, await response.text(), { stream })
    expect([response.status, content.text]).toEqual([200, 'Grüße 🎉'])
    expect(lastCall().json()).toMatchObject({
      tools: [{ name: 'look', input_schema: { type: 'object' } }],
      tool_choice: { type: 'none' },
    })
    expect(response.headers.get('x-tollgate-warnings')).toBeNull()
  },
)

/** The refusal as a response with a status, or as an exception inside a stream that has begun with a 200. */
function refuseAsHost(message: string, where: 'response' | 'frame'): void {
  upstream.handle(async (call, reply) => {
    const body = JSON.stringify({ message })
    if (where === 'response' || call.path.endsWith('/invoke')) {
      return reply.send(400, { 'x-amzn-errortype': 'ValidationException', 'content-type': 'application/json' }, body)
    }
    await reply.startStream({ 'content-type': 'application/vnd.amazon.eventstream' })
    await reply.chunk(eventFrame({ ':message-type': 'exception', ':exception-type': 'validationException' }, body))
    await reply.finish()
  })
}

describe.each(everyWay)('pitfall 147: a prompt that Bedrock finds too long, on %s, streamed: %p', (surface, stream) => {
  test.each([
    ['Input is too long for requested model.', 'response', 'prompt is too long: Provider framed: Input is too long'],
    ['Input is too long for requested model.', 'frame', 'prompt is too long: Provider framed: Input is too long'],
    [
      'The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum',
      'response',
      'The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum',
    ],
    [
      'The model returned the following errors: input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000, decrease input length or `max_tokens` and try again',
      'response',
      'The model returned the following errors: input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000, decrease',
    ],
    [
      'messages.0.content: too many total text bytes: 30000000 > 25000000',
      'response',
      'prompt is too long: Provider framed',
    ],
  ] as const)('%s (%s)', async (message, where, start) => {
    refuseAsHost(message, where)
    const response = await ask(surface, { model: 'test/framed', stream })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect([response.status, error.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(error.message).toContain(message)
    if (surface === 'messages') expect(error.message).toStartWith(start)
    else expect(error.message).toContain('context_length_exceeded')
  })
})

test('a key that is exchanged for a token is never sent, and the token is', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  upstream.handle((call, reply) =>
    call.path === '/token' ? reply.json(200, { access_token: 'ya29.t', expires_in: 3600 }) : answerHello(call, reply),
  )
  const keyFile = { client_email: 'robot@acme.example', private_key: pem, token_uri: `${upstream.url}/token` }
  const apiKey = new Secret(JSON.stringify(keyFile))
  const sign = createSign('google-oauth', {
    clock: systemClock,
    operator: apiKey,
    identity: { settings: {}, instance: undefined },
  })
  const endpoint: Endpoint = {
    dialect: 'anthropic-messages',
    baseUrl: `${upstream.url}/v1/projects/acme/locations/global/publishers/anthropic`,
    auth: 'google-oauth',
    wrapping: 'raw-predict',
    ...(sign && { sign }),
  }
  const provider: Provider = { id: 'acme', endpoints: [endpoint], apiKey, source: 'a test' }
  const body = new TextEncoder().encode('{"model":"claude-opus-5-5","stream":true,"messages":[]}')
  const { signal } = new AbortController()
  const before = upstream.calls.length
  for (let i = 0; i < 2; i++) {
    const response = await callEndpoint(provider, endpoint, { path: '/v1/messages', headers: {}, body, signal })
    expect(response.status).toBe(200)
    await response.bytes()
  }
  const place = '/v1/projects/acme/locations/global/publishers/anthropic/models/claude-opus-5-5:streamRawPredict'
  expect(upstream.calls.slice(before).map(({ path }) => path)).toEqual(['/token', place, place])
  expect(lastCall().headers.get('authorization')).toBe('Bearer ya29.t')
  expect(lastCall().json()).toEqual({ anthropic_version: 'vertex-2023-10-16', stream: true, messages: [] })
})
