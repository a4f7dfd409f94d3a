// Prompts and answers on the wire: every byte that a gateway sends to the collectors of its operator, while a project exports
// its content and while another does not.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { type ReadSpan, readSpans } from '../parts/read-otlp.ts'
import { allSurfaces, chat, inWordsOf, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { dialectOf, usageIn, wantsStream, wordsOf } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy, until } from '../tenancy/tenancy.ts'
import { dialects } from './policy-gateway.ts'

const both = [false, true]
const pairs = allSurfaces.flatMap((surface) =>
  allSurfaces.flatMap((host) => both.map((stream) => [surface.name, host.name, stream, surface] as const)),
)
/** In each prompt and answer, so that one search finds any part of them. */
const promptWord = 'quokka'
const answerWord = 'wombat'
const key = `sk-proj-${'a1B2'.repeat(10)}`

let upstream: Upstream
let content: Upstream
let telemetry: Upstream
let tenancy: Tenancy
let log = ''
/** By the id of the request. */
const spans = new Map<string, ReadSpan>()
const answered = new Map<string, Response>()

const config = (url: string, collector: string): string => {
  const names = Object.keys(dialects) as TestSurface['name'][]
  const paths = { chat: '/v1', messages: '', responses: '/v1', gemini: '/v1beta' }
  const price = 'price: { input: "1.00", output: "2.00" }, max_output_tokens: 8000, default_max_tokens: 4096'
  return `content_export: { url: "${collector}/otlp/", response_header: on }
providers:
${names.map((name) => `  - { id: ${name}-host, dialect: ${dialects[name]}, base_url: "${url}${paths[name]}", api_key: k }`).join('\n')}
models:
${names.map((name) => `  - { id: acme/${name}, ${price}, routes: [{ provider: ${name}-host, model: up-${name} }] }`).join('\n')}
policies:
  - { id: judge, url: "${url}/judge", secret: "whsec_${Buffer.alloc(32, 7).toString('base64')}", when: answer, models: ["acme/gemini"], timeout_ms: 10000 }
`
}

async function call(name: string, as: string, surface: TestSurface, members: object, headers = {}): Promise<Response> {
  const cap = surface.name === 'messages' ? { max_tokens: 50 } : {}
  const body = inWordsOf(surface, { ...cap, ...members } as Parameters<typeof inWordsOf>[1])
  const response = await ask({ url: tenancy.gateway.url, key: as }, surface, body, headers)
  const text = await response.text()
  expect(`${response.status} ${text}`).toStartWith('200 ')
  answered.set(name, response)
  return response
}

/** After the provider's first words, which a policy holds back. */
async function leave(as: string): Promise<void> {
  const leaving = new AbortController()
  const members = { model: 'acme/gemini', stream: true, messages: [{ role: 'user', content: 'please wait' }] }
  const response = await ask({ url: tenancy.gateway.url, key: as }, chat, members, {}, leaving.signal)
  answered.set('left', response)
  leaving.abort()
  const id = response.headers.get('x-request-id')
  await until(async () => (await tenancy.api('GET', `/api/requests/${id}`)).status === 200)
}

const textOf = (received: Upstream) =>
  received.calls
    .map(({ path, headers, body }) => `${path} ${JSON.stringify([...headers])} ${Buffer.from(body)}`)
    .join('\n')

beforeAll(async () => {
  upstream = startUpstream(async (received, reply) => {
    const text = Buffer.from(received.body).toString()
    if (received.path === '/judge') {
      return await reply.json(200, { decision: text.includes('please leak') ? 'block' : 'allow' })
    }
    const words = wordsOf(dialectOf(received))
    const usage = usageIn(dialectOf(received), { input: 100, output: 50 })
    const leak = text.includes('please leak') ? ['please leak '] : []
    const said = { texts: [...leak, `the ${answerWord}`, ' says ', `ada@example.com ${key}`], usage }
    if (!wantsStream(received)) return await reply.json(200, words.whole(said))
    await reply.startStream()
    if (text.includes('please wait'))
      return await reply.chunk(words.opening(said) + said.texts.map(words.text).join(''))
    await reply.chunk(words.opening(said) + said.texts.map(words.text).join('') + words.ending(said))
    await reply.finish()
  })
  content = startUpstream((_, reply) => reply.json(200, {}))
  telemetry = startUpstream((_, reply) => reply.json(200, {}))
  tenancy = await startTenancy({
    config: config(upstream.url, content.url),
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: telemetry.url, TOLLGATE_CONTENT_HEADERS: 'x-api-key=canary' },
  })
  const silent = await tenancy.tenant({ credit: '10' })
  const exporting = await tenancy.tenant({ credit: '10' })
  await tenancy.must('PATCH', `/api/projects/${exporting.projectId}`, { exports_content: true })
  for (const [name, host, stream, surface] of pairs) {
    const messages = [{ role: 'user', content: `my ${promptWord} card is 4111 1111 1111 1111` }]
    const members = { model: `acme/${host}`, messages, stream }
    await call(`silent ${name} ${host} ${stream}`, silent.key, surface, members)
    await call(`${name} ${host} ${stream}`, exporting.key, surface, members)
  }
  const toolTurns = [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'weather?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'c1',
          type: 'function',
          function: { name: 'look', arguments: `{"at":"${key}","to":"eve\\u0040example.com"}` },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'sunny, ask bob@example.com' },
  ]
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }]
  await call(
    'tools',
    exporting.key,
    chat,
    { model: 'acme/chat', messages: toolTurns, tools },
    {
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00',
      'x-session-id': 'talk of eve@example.com',
    },
  )
  const leak = { model: 'acme/gemini', messages: [{ role: 'user', content: 'please leak' }] }
  for (const stream of both) await call(`blocked ${stream}`, exporting.key, chat, { ...leak, stream })
  await leave(exporting.key)
  await tenancy.gateway.stop()
  log = JSON.stringify(tenancy.gateway.logged())
  for (const span of content.calls.flatMap(({ body }) => readSpans(body))) {
    spans.set(String(span.attributes['tollgate.request_id']), span)
  }
})
afterAll(async () => {
  await tenancy[Symbol.asyncDispose]()
  for (const server of [upstream, content, telemetry]) server.stop()
})

const spanOf = (name: string) => spans.get(answered.get(name)?.headers.get('x-request-id') ?? '')
const messagesOf = (name: string, member: string) =>
  JSON.parse(String(spanOf(name)?.attributes[`gen_ai.${member}`] ?? 'null'))

describe.each(pairs)('%s of a provider of %s, streamed: %p', (name, host, stream) => {
  test('nothing of a project that does not export its content reaches the collector', () => {
    expect(answered.get(`silent ${name} ${host} ${stream}`)?.headers.get('x-tollgate-content')).toBeNull()
    expect(spanOf(`silent ${name} ${host} ${stream}`)).toBeUndefined()
  })

  test('a conversation arrives with its answer, redacted, and its cost', () => {
    const which = `${name} ${host} ${stream}`
    expect(answered.get(which)?.headers.get('x-tollgate-content')).toBe('exported')
    const parts = [{ type: 'text', content: `my ${promptWord} card is [redacted card]` }]
    expect(messagesOf(which, 'input.messages')).toEqual([{ role: 'user', parts }])
    const said = [{ type: 'text', content: `the ${answerWord} says [redacted e-mail] [redacted key]` }]
    expect(messagesOf(which, 'output.messages')).toEqual([{ role: 'assistant', parts: said, finish_reason: 'stop' }])
    // 100 tokens at $1 and 50 at $2 for a million.
    expect(spanOf(which)?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': `acme/${host}`,
      'gen_ai.response.model': `up-${host}`,
      'gen_ai.usage.input_tokens': 100n,
      'gen_ai.usage.output_tokens': 50n,
      'gen_ai.usage.cost': 0.0002,
    })
  })
})

test('every span on the wire is of a request of the project that exports, and carries the header of the operator', () => {
  const expected = [...answered].filter(([name]) => !name.startsWith('silent'))
  expect([...spans.keys()].sort()).toEqual(expected.map(([, { headers }]) => headers.get('x-request-id') ?? '').sort())
  for (const { path, headers } of content.calls) {
    expect([path, headers.get('x-api-key')]).toEqual(['/otlp/v1/traces', 'canary'])
    expect(headers.get('content-type')).toBe('application/x-protobuf')
  }
})

test('neither traces, metrics nor the log have a word of any prompt or answer', () => {
  expect(telemetry.calls.length).toBeGreaterThan(0)
  for (const text of [textOf(telemetry), log]) {
    expect(text).not.toContain(promptWord)
    expect(text).not.toContain(answerWord)
  }
})

test('no secret is on the wire', () => {
  const text = textOf(content)
  expect(text).toContain(promptWord)
  for (const secret of [key, '4111', 'ada@example.com', 'bob@example.com', 'eve']) expect(text).not.toContain(secret)
})

test('instructions, tool calls, their results and the tools arrive, below the span of the client', () => {
  expect(messagesOf('tools', 'system_instructions')).toEqual([{ type: 'text', content: 'be brief' }])
  const [, call, result] = messagesOf('tools', 'input.messages')
  const parts = {
    type: 'tool_call',
    id: 'c1',
    name: 'look',
    arguments: { at: '[redacted key]', to: '[redacted e-mail]' },
  }
  expect(call).toEqual({ role: 'assistant', parts: [parts] })
  const response = { type: 'tool_call_response', id: 'c1', response: 'sunny, ask [redacted e-mail]' }
  expect(result).toEqual({ role: 'tool', parts: [response] })
  const [tool] = messagesOf('tools', 'tool.definitions')
  expect(tool).toMatchObject({ type: 'function', name: 'look', parameters: { type: 'object' } })
  expect(spanOf('tools')).toMatchObject({
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    parentSpanId: '00f067aa0ba902b7',
    name: 'chat acme/chat',
  })
})

test.each(both)('of an answer that a policy blocked only the refusal is exported, streamed: %p', (stream) => {
  const [message] = messagesOf(`blocked ${stream}`, 'output.messages')
  expect(message.finish_reason).toBe('content_filter')
  expect(message.parts[0].content).toContain('The policy `judge` of this gateway blocked the answer')
  expect(JSON.stringify(message)).not.toContain(answerWord)
})

test('of an answer that no policy has judged nothing is exported', () => {
  const parts: object[] = []
  expect(messagesOf('left', 'output.messages')).toEqual([{ role: 'assistant', parts, finish_reason: 'error' }])
  expect(JSON.stringify(messagesOf('left', 'input.messages'))).toContain('please wait')
})

test('the last message and the answer are also exported as text, for lists of a session', () => {
  expect(spanOf('chat chat true')?.attributes).toMatchObject({
    'input.value': `my ${promptWord} card is [redacted card]`,
    'output.value': `the ${answerWord} says [redacted e-mail] [redacted key]`,
  })
  expect(spanOf('tools')?.attributes).toMatchObject({ 'input.value': 'sunny, ask [redacted e-mail]' })
})

test('the session that a client names is redacted', () => {
  const session = 'talk of [redacted e-mail]'
  expect(spanOf('tools')?.attributes).toMatchObject({ 'session.id': session, 'gen_ai.conversation.id': session })
})
