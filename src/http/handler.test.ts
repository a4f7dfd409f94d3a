import { expect, test } from 'bun:test'
import { Failure } from '../kernel/failure.ts'
import { createHandler } from './handler.ts'

// Defects outside the pipeline (for those inside: pipeline/run.test.ts): the caller gets only an id, in the shape of its
// client.

const defect = async (): Promise<Response> => {
  throw new Error('secret of the house')
}
const reported: { error: unknown; id: string }[] = []
const handler = createHandler({
  generate: defect,
  countTokens: defect,
  compact: defect,
  embed: defect,
  models: defect,
  modelInfo: defect,
  spend: defect,
  storedResponses: () => undefined,
  management: () => undefined,
  metrics: defect,
  pages: () => undefined,
  payments: undefined,
  refusal: () => undefined,
  unreadiness: () => undefined,
  degraded: () => undefined,
  onDefect(error, id) {
    reported.push({ error, id })
    return new Failure('INTERNAL', 'Tollgate failed.')
  },
  addressOf: () => undefined,
  idleSeconds: 60,
})

const socket = { timeout() {} }

const calls: readonly [method: string, path: string, shape: 'chat' | 'message', headers?: Record<string, string>][] = [
  ['GET', '/v1/models', 'chat'],
  ['GET', '/v1/models', 'message', { 'anthropic-version': '2023-06-01' }],
  ['GET', '/v1/models/sandbox/echo', 'chat'],
  ['GET', '/v1/models/sandbox/echo', 'message', { 'anthropic-version': '2023-06-01' }],
]

test.each(calls)('answers a defect under %s %s with 500 in the %s shape, logged under its id', async (...call) => {
  const [method, path, shape, headers = {}] = call
  const response = await handler(new Request(`http://gateway${path}`, { method, headers }), socket)
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

test('serves the usual spelling of each path by a separate handler, with the same result', async () => {
  expect(Object.keys(handler.exact)).toEqual(['/v1/chat/completions', '/v1/messages', '/v1/responses'])
  for (const [path, handle] of Object.entries(handler.exact)) {
    const request = new Request(`http://gateway${path}`, { method: 'GET' })
    const [exact, usual] = await Promise.all([handle(request, socket), handler(request, socket)])
    expect(exact.status).toBe(405)
    expect(usual.status).toBe(405)
    const upgrade = new Request(`http://gateway${path}`, { headers: { upgrade: 'websocket' } })
    expect((await handle(upgrade, socket)).status).toBe(426)
  }
})
