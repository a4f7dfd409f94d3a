import { expect, test } from 'bun:test'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { systemClock } from '../kernel/clock.ts'
import { Failure, retryHeaders } from '../kernel/failure.ts'
import { createMemoryLimiter } from '../limits/memory-limiter.ts'
import { createLog } from '../telemetry/log.ts'
import type { Caller } from '../tenancy/caller.ts'
import { createBodyRoom } from '../wire/read-body.ts'
import { type AdmitDependencies, admit, conversationKey } from './admit.ts'
import { GatewayRequest } from './request.ts'
import { endRefused, type SettlementDependencies } from './settlement.ts'

const caller: Caller = {
  keyId: 'key_1',
  keyName: 'k',
  projectId: 'prj_1',
  workspaceId: 'ws_1',
  workspaceName: 'w',
  projectName: 'p',
  allow: [],
  limits: [{ kind: 'key', id: 'key_1', name: 'k', limits: { concurrentRequests: 1 } }],
  sources: undefined,
  sharesRoutes: false,
}

function createBench() {
  const room = createBodyRoom(300_000)
  const limiter = createMemoryLimiter(systemClock)
  const deps = {
    authenticate: () => caller,
    limiter,
    bodyBytesMax: 1_000_000,
    bodyRoom: room,
    random: () => 0.5,
    offer() {
      throw new Error('a defect')
    },
    credentials: { open: () => new Map() },
  } as unknown as AdmitDependencies
  const log = createLog({ format: 'json', clock: systemClock, write: () => {} })
  const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }
  const settling = { clock: systemClock, log, requests: { write: () => {} }, observe: () => {}, unconfirmed: new Set() }
  const start = (http: Request) => new GatewayRequest(systemClock, http, openaiChat, '/path', connection)
  return { room, limiter, deps, start, settling: settling as unknown as SettlementDependencies }
}

function upload(bytes: number, headers: Record<string, string> = {}): Request {
  const body = `{"model":"m","messages":[{"role":"user","content":"${'x'.repeat(bytes)}"}]}`
  const all = { 'content-type': 'application/json', 'content-length': String(body.length), ...headers }
  return new Request('http://gateway/', { method: 'POST', headers: all, body })
}

test('refuses a large body while others fill the memory for bodies', async () => {
  const { room, deps, start } = createBench()
  expect(room.take(250_000, 0)).toBe(true)
  const failure = await admit(deps, start(upload(100_000)), openaiChat.readEnvelope, () => 0)
  if (!(failure instanceof Failure)) throw new Error('was admitted')
  expect([failure.code, failure.status]).toEqual(['OVERLOADED', 503])
  expect(retryHeaders(failure)).toEqual({ 'retry-after': '2', 'retry-after-ms': '2000' })
})

test('frees the concurrency slot however the request ends', async () => {
  const { room, limiter, deps, start, settling } = createBench()
  const isFull = () => limiter.arrive(caller.limits).kind === 'refused'
  const endings: readonly [http: Request, status: number][] = [
    [upload(1, { 'content-type': 'text/plain' }), 415],
    [upload(1, { 'content-encoding': 'gzip' }), 415],
    [upload(1_000_000), 413],
    [
      new Request('http://gateway/', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' }),
      400,
    ],
    [upload(100_000), 503],
  ]
  expect(room.take(250_000, 0)).toBe(true)
  for (const [http, status] of endings) {
    const each = start(http)
    const failure = await admit(deps, each, openaiChat.readEnvelope, () => 0)
    expect(failure).toMatchObject({ status })
    endRefused(settling, each, failure as Failure)
    const next = limiter.arrive(caller.limits)
    expect([status, next.kind]).toEqual([status, 'arrived'])
    if (next.kind === 'arrived') next.end()
  }
  // Also after a defect.
  const each = start(upload(1))
  await expect(admit(deps, each, openaiChat.readEnvelope, () => 0)).rejects.toThrow('a defect')
  expect(isFull()).toBe(true)
  endRefused(settling, each, new Failure('INTERNAL', 'failed'))
  expect(isFull()).toBe(false)
})

function keyOf(surface: Dialect, body: object): string | undefined {
  const headers = new Headers({ 'anthropic-version': '2023-06-01' })
  const envelope = surface.readEnvelope(new TextEncoder().encode(JSON.stringify(body)), headers)
  if (envelope instanceof Failure) throw new Error(envelope.message)
  return conversationKey('ws_1', 'test/model', surface, envelope)
}

const prompt = 'You are careful. '.repeat(300)
const hi = { role: 'user', content: 'Hi' }
const turns = [hi, { role: 'assistant', content: 'Hello' }, { role: 'user', content: 'And?' }]

const messages = (system: unknown, list: readonly object[] = [hi]) =>
  keyOf(anthropicMessages, { model: 'test/model', max_tokens: 9, system, messages: list })
const chat = (system: string, list: readonly object[] = [hi]) =>
  keyOf(openaiChat, { model: 'test/model', messages: [{ role: 'system', content: system }, ...list] })

test('a short conversation has no key', () => {
  expect(messages('You are careful.')).toBeUndefined()
  expect(chat('You are careful.')).toBeUndefined()
})

test('a conversation with tools has a key from its first call, and keeps it as it grows', () => {
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  const loop = (list: readonly object[]) =>
    keyOf(anthropicMessages, { model: 'test/model', max_tokens: 9, tools, messages: list })
  expect(loop([hi])).toBeString()
  expect(loop([hi, { role: 'assistant', content: prompt }, hi])).toBe(loop([hi]) as string)
})

test('a short conversation that has grown has a key', () => {
  const grown = [hi, { role: 'assistant', content: prompt }, hi]
  expect(messages('You are careful.', grown)).toBe(messages('You are careful.', [...grown, ...grown]) as string)
})

test('every turn of a conversation has the same key', () => {
  expect(messages(prompt, turns)).toBe(messages(prompt) as string)
  expect(chat(prompt, turns)).toBe(chat(prompt) as string)
})

test('conversations that begin differently have different keys', () => {
  const other = [{ role: 'user', content: 'Ho' }]
  expect(messages(prompt)).not.toBe(messages(prompt, other))
  expect(chat(prompt)).not.toBe(chat(prompt, other))
  expect(messages(prompt)).not.toBe(messages(`Now then: ${prompt}`))
  expect(chat(prompt)).not.toBe(chat(`Now then: ${prompt}`))
})

test('pitfall 1: the billing line, which changes with every call, is not part of the key', () => {
  const blocks = (hash: string, text = prompt) => [
    { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.100; cc_entrypoint=cli; cch=${hash};` },
    { type: 'text', text },
  ]
  expect(messages(blocks('ab12'))).toBe(messages(blocks('cd3456')) as string)
  expect(messages(blocks('ab12'))).not.toBe(messages(blocks('ab12', `Now then: ${prompt}`)))
  expect(messages([{ type: 'text', text: prompt }])).toBe(messages(blocks('ab12').slice(1)) as string)
})
