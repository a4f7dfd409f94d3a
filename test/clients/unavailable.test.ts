// What each API answers when no route of a model replies. On the two endpoints of the specification that is a 404; clients of
// the others give up on a 404 and retry a 503. A model that does not exist is a 404 everywhere.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { embed, generateText, streamText } from 'ai'
import OpenAI from 'openai'
import { post } from '../parts/ask.ts'
import { failFirst } from '../parts/failing-provider.ts'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

const clock = createJumpClock()
const upstream = startUpstream(() => {})
const price = 'price: { input: "1.00", output: "2.00" }'
const config = `
providers:
  - { id: chatty, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: upstream-secret }
  - { id: ready, dialect: openai-responses, base_url: "${upstream.url}/v1", api_key: upstream-secret }
models:
  - { id: test/chat, ${price}, max_output_tokens: 8000, routes: [{ provider: chatty, model: up-chat }] }
  - { id: test/responses, ${price}, max_output_tokens: 8000, routes: [{ provider: ready, model: up-responses }] }
  - { id: test/embed, ${price}, tags: [embeddings], routes: [{ provider: chatty, model: up-embed }] }
`
const gateway = await startGateway({ config, clock })
const always503 = await startGateway({ config: `${config}retries: { unavailable_status: 503 }\n`, clock })
afterAll(() => stopAll(gateway, always503, upstream))
beforeEach(() => {
  // After a day no failure of an earlier test counts against a route.
  clock.jump(86_400)
  upstream.calls.length = 0
})

interface Endpoint {
  readonly path: (model: string) => string
  readonly model: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: (model: string) => object
  readonly isSpecified?: true
}

const turn = [{ role: 'user', content: 'hi' }]
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
const content = { parts: [{ text: 'hi' }] }
const fixed = (path: string) => () => path
const named = (verb: string) => (model: string) => `/v1beta/models/${model}:${verb}`
const anthropic = { 'anthropic-version': '2023-06-01' }

const endpoints: Readonly<Record<string, Endpoint>> = {
  chat: {
    ...{ path: fixed('/v1/chat/completions'), model: 'test/chat', isSpecified: true },
    body: (model) => ({ model, messages: turn }),
  },
  'chat, streamed': {
    ...{ path: fixed('/v1/chat/completions'), model: 'test/chat', isSpecified: true },
    body: (model) => ({ model, messages: turn, stream: true }),
  },
  messages: {
    ...{ path: fixed('/v1/messages'), model: 'test/chat', isSpecified: true, headers: anthropic },
    body: (model) => ({ model, messages: turn, max_tokens: 5 }),
  },
  'messages, streamed': {
    ...{ path: fixed('/v1/messages'), model: 'test/chat', isSpecified: true, headers: anthropic },
    body: (model) => ({ model, messages: turn, max_tokens: 5, stream: true }),
  },
  responses: {
    ...{ path: fixed('/v1/responses'), model: 'test/chat' },
    body: (model) => ({ model, input: 'hi' }),
  },
  'responses, streamed': {
    ...{ path: fixed('/v1/responses'), model: 'test/chat' },
    body: (model) => ({ model, input: 'hi', stream: true }),
  },
  'responses, compacted': {
    ...{ path: fixed('/v1/responses/compact'), model: 'test/responses' },
    body: (model) => ({ model, input: 'hi' }),
  },
  gemini: { path: named('generateContent'), model: 'test/chat', body: () => ({ contents }) },
  'gemini, streamed': {
    ...{ path: named('streamGenerateContent?alt=sse'), model: 'test/chat' },
    body: () => ({ contents }),
  },
  embeddings: {
    ...{ path: fixed('/v1/embeddings'), model: 'test/embed' },
    body: (model) => ({ model, input: 'hi' }),
  },
  'gemini, embeddings': { path: named('embedContent'), model: 'test/embed', body: () => ({ content }) },
}

interface ErrorBody {
  readonly error: Readonly<Record<string, unknown>> & { readonly message: string }
}

async function refusal(of: Gateway, { path, headers, body }: Endpoint, model: string) {
  const response = await post(of, path(model), body(model), headers)
  const { error } = (await response.json()) as ErrorBody
  const { message, details, ...words } = error
  const [info] = (details ?? []) as readonly { readonly reason: string }[]
  const said = { status: response.status, code: info?.reason ?? words.code, word: words.type ?? words.status }
  return { said, message, headers: response.headers }
}

/** Four seconds, or what is left of the cooldown of a route that has failed five times: 15 s at most. */
function expectRetry(headers: Headers): void {
  expect(headers.get('x-should-retry')).toBe('true')
  expect(Number(headers.get('retry-after'))).toBeWithin(4, 16)
}

const notFound = (name: string) => ({
  ...{ status: 404, code: 'NOT_FOUND' },
  word: name.startsWith('gemini') ? 'NOT_FOUND' : 'not_found_error',
})
const unavailable = (name: string) => ({
  ...{ status: 503, code: 'UNAVAILABLE' },
  word: name.startsWith('gemini') ? 'UNAVAILABLE' : name.startsWith('messages') ? 'overloaded_error' : 'server_error',
})

describe.each(Object.entries(endpoints))('%s', (name, endpoint) => {
  const { model, isSpecified } = endpoint

  test.each([500, 503, 529])('a provider that answers %d', async (status) => {
    upstream.handle((_, reply) => reply.json(status, { error: { message: 'no' } }))
    const { said, headers, message } = await refusal(gateway, endpoint, model)
    expect(said).toEqual(isSpecified ? notFound(name) : unavailable(name))
    expectRetry(headers)
    expect(message).toMatch(
      new RegExp(`^\`${model}\` exists, but its provider \\w+ is failing \\(${status} after 3 tries`),
    )
  })

  test('a setting makes it a 503 everywhere', async () => {
    upstream.handle((_, reply) => reply.json(503, { error: { message: 'no' } }))
    const { said, headers } = await refusal(always503, endpoint, model)
    expect(said).toEqual(unavailable(name))
    expectRetry(headers)
  })

  test('an unknown model is a 404, whatever the setting', async () => {
    for (const each of [gateway, always503]) {
      const { said, message } = await refusal(each, endpoint, 'test/nothing')
      expect(said).toEqual(notFound(name))
      expect(message).toStartWith('No model `test/nothing`')
    }
  })

  test('what only the operator can fix is a 404, whatever the setting', async () => {
    upstream.handle((_, reply) => reply.json(401, { error: { message: 'no' } }))
    for (const each of [gateway, always503]) {
      const { said, headers } = await refusal(each, endpoint, model)
      expect(said).toEqual(notFound(name))
      expect([headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([null, 'false'])
    }
  })
})

describe('clients that retry a 503 survive an outage that is longer than the gateway’s retries', () => {
  /** The statuses of the errors that a client got. */
  let refusals: number[] = []
  beforeEach(() => {
    refusals = []
  })
  /** For clients, in place of `fetch`: the wait that an error asks for passes in an instant. */
  const hastened = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, init)
    if (response.ok) return response
    refusals.push(response.status)
    expectRetry(response.headers)
    const headers = new Headers(response.headers)
    headers.set('retry-after-ms', '0')
    return new Response(response.body, { status: response.status, headers })
  }

  const vector: Parameters<typeof failFirst>[2] = (_, reply) =>
    reply.json(200, {
      ...{ object: 'list', model: 'up-embed', usage: { prompt_tokens: 1, total_tokens: 1 } },
      data: [{ object: 'embedding', index: 0, embedding: [1, 2] }],
    })
  const access = (of: Gateway) => ({ baseURL: `${of.url}/v1`, apiKey: of.key, fetch: hastened as typeof fetch })
  const official = () => new OpenAI(access(gateway))
  const openai = (of: Gateway) => createOpenAI(access(of))
  const compatible = (of: Gateway) => createOpenAICompatible({ name: 'tollgate', ...access(of) })
  const messages = (of: Gateway) => createAnthropic(access(of))
  const prompt = { prompt: 'hi', maxOutputTokens: 50 }

  test.each<[string, () => PromiseLike<unknown>]>([
    ['openai, /v1/responses', () => official().responses.create({ model: 'test/chat', input: 'hi' })],
    ['AI SDK, /v1/responses', () => generateText({ model: openai(gateway)('test/chat'), ...prompt })],
    ['AI SDK, /v1/responses, streamed', () => streamText({ model: openai(gateway)('test/chat'), ...prompt }).text],
    ['AI SDK, chat with the setting', () => generateText({ model: compatible(always503)('test/chat'), ...prompt })],
    ['AI SDK, messages with the setting', () => generateText({ model: messages(always503)('test/chat'), ...prompt })],
  ])('%s', async (_, call) => {
    upstream.handle(failFirst(4, 'a 503', answerHello))
    expect(JSON.stringify(await call())).toContain('hello')
    // Three calls for the first request, two for its repetition.
    expect(upstream.calls).toHaveLength(5)
    expect(refusals).toEqual([503])
  })

  test.each<[string, () => PromiseLike<unknown>]>([
    ['openai', () => official().embeddings.create({ model: 'test/embed', input: 'hi', encoding_format: 'float' })],
    ['AI SDK', () => embed({ model: openai(gateway).embedding('test/embed'), value: 'hi' })],
  ])('%s, /v1/embeddings', async (_, call) => {
    upstream.handle(failFirst(4, 'a 503', vector))
    expect(JSON.stringify(await call())).toContain('[1,2]')
    expect(upstream.calls).toHaveLength(5)
    expect(refusals).toEqual([503])
  })
})
