import { expect, test } from 'bun:test'
import { received, responseOf } from '../../test/parts/http.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { operations } from '../dialects/surface.ts'
import { Failure } from '../kernel/failure.ts'
import { Answer } from '../pipeline/answer.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import { createHandler, type HandlerDependencies } from './handler.ts'

// Defects outside the pipeline (for those inside: pipeline/run.test.ts): the caller gets only an id, in the shape of its
// client.

const defect = async (): Promise<Answer> => {
  throw new Error('secret of the house')
}
const reported: { error: unknown; id: string }[] = []
const dependencies: HandlerDependencies = {
  generate: defect,
  countTokens: defect,
  compact: defect,
  embed: defect,
  openSocket: defect,
  models: defect,
  modelInfo: defect,
  spend: defect,
  managedSettings: defect,
  clientTelemetry: defect,
  storedResponses: async () => undefined,
  openaiBatches: async () => undefined,
  anthropicBatches: async () => undefined,
  settings: { current: { corsOrigins: [], storeResponses: false } },
  management: async () => undefined,
  metrics: defect,
  signIn: async () => undefined,
  pages: async () => undefined,
  payments: undefined,
  shutdown: { phase: 'serving' },
  unreadiness: () => undefined,
  degraded: () => undefined,
  onDefect(error, id) {
    reported.push({ error, id })
    return new Failure('INTERNAL', 'Tollgate failed.')
  },
  addressOf: () => undefined,
  idleSeconds: 60,
}
const handler = createHandler(dependencies)
const responseTo = async (path: string, sent: RequestInit = {}, handle = handler) =>
  responseOf(await handle(received(new Request(`http://gateway${path}`, sent)), socket))

const socket = { pendingRequests: 1, timeout() {}, close() {} }

const calls: readonly [method: string, path: string, shape: 'chat' | 'message', headers?: Record<string, string>][] = [
  ['GET', '/v1/models', 'chat'],
  ['GET', '/v1/models', 'message', { 'anthropic-version': '2023-06-01' }],
  ['GET', '/v1/models/sandbox/echo', 'chat'],
  ['GET', '/v1/models/sandbox/echo', 'message', { 'anthropic-version': '2023-06-01' }],
]

test.each(calls)('answers a defect under %s %s with 500 in the %s shape, logged under its id', async (...call) => {
  const [method, path, shape, headers = {}] = call
  const response = await responseTo(path, { method, headers })
  const text = await response.text()
  expect(response.status).toBe(500)
  expect(text).not.toContain('secret')
  const last = reported.at(-1)
  expect(String(last?.error)).toBe('Error: secret of the house')
  const id = response.headers.get('x-request-id')
  expect(id).toBe(String(last?.id))
  expect(response.headers.get('request-id')).toBe(id)
  const error = { type: 'api_error', message: 'Tollgate failed.', code: 'INTERNAL' }
  expect(JSON.parse(text)).toEqual(
    shape === 'chat' ? { error: { ...error, param: null } } : { type: 'error', error, request_id: id },
  )
})

test('refuses methods other than POST where answers are generated, and WebSockets in the way that Codex understands', async () => {
  for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses']) {
    expect(await responseTo(path)).toMatchObject({ status: 405 })
    expect(await responseTo(path, { headers: { upgrade: 'websocket' } })).toMatchObject({ status: 426 })
  }
})

test.each(['/v1//models', '/v1/../api/keys', '/v1/%2e%2e/keys', '/v1/%ff'])('refuses the path %s', async (url) => {
  const request = Object.defineProperty(received(new Request('http://gateway/')), 'url', { value: url })
  expect(await handler(request, socket)).toMatchObject({ status: 400 })
})

// The paths of the four APIs, from their documentation: each reaches one operation, in its own dialect.
const served = [
  ['/v1/chat/completions', 'generate', 'openai-chat'],
  ['/v1/embeddings', 'embed', 'openai-chat'],
  ['/v1/messages', 'generate', 'anthropic-messages'],
  ['/v1/messages/count_tokens', 'countTokens', 'anthropic-messages'],
  ['/v1/responses', 'generate', 'openai-responses'],
  ['/v1/responses/input_tokens', 'countTokens', 'openai-responses'],
  ['/v1/responses/compact', 'compact', 'openai-responses'],
  ['/v1beta/models/acme/large:generateContent', 'generate', 'gemini'],
  ['/v1beta/models/acme%2Flarge:streamGenerateContent?alt=sse', 'generate', 'gemini'],
  ['/v1/v1beta/models/acme/large:countTokens/', 'countTokens', 'gemini'],
  ['/v1/models/acme/large:embedContent', 'embed', 'gemini'],
  ['/v1alpha/models/acme/large:batchEmbedContents', 'embed', 'gemini'],
] as const

test.each(served)('POST %s is %s of the dialect %s', async (path, operation, dialect) => {
  const reached: string[][] = []
  const runs = operations.map((name) => [
    name,
    async (_: ClientRequest, { id }: Dialect) => {
      reached.push([name, id])
      return new Answer(200, {})
    },
  ])
  const handle = createHandler({ ...dependencies, ...Object.fromEntries(runs) })
  await responseTo(path, { method: 'POST' }, handle)
  expect(reached).toEqual([[operation, dialect]])
})

test('GET of a path that names a model without an operation shows the model, in the dialect of the path', async () => {
  const shown: string[][] = []
  const handle = createHandler({
    ...dependencies,
    async models(_, { id }, __, encodedId) {
      shown.push([id, encodedId])
      return new Answer(200, {})
    },
  })
  for (const path of ['/v1beta/models', '/v1beta/models/a%2Fb', '/v1beta/models/a/b:c', '/v1/models/a/b']) {
    await responseTo(path, {}, handle)
  }
  expect(shown).toEqual([
    ['gemini', ''],
    ['gemini', 'a%2Fb'],
    ['gemini', 'a/b:c'],
    ['openai-chat', 'a/b'],
  ])
})

test.each([
  [false, 'responses are not stored here'],
  [true, 'Nothing is served at GET /v1/responses/a/b.'],
])('an unknown path below /v1/responses, with storing on: %p', async (storeResponses, message) => {
  const settings = { current: { corsOrigins: [], storeResponses } }
  const handle = createHandler({ ...dependencies, settings })
  const response = await responseTo('/v1/responses/a/b', {}, handle)
  expect(response.status).toBe(404)
  expect(await response.text()).toContain(message)
})
