import { expect, test } from 'bun:test'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { openaiResponses } from '../dialects/openai-responses/index.ts'
import { Failure } from '../kernel/failure.ts'
import { createCacheKeys, readSession, type Session } from './session.ts'

function sessionOf(surface: Dialect, body: object, headers: Record<string, string> = {}): Session | undefined {
  const all = new Headers({ 'anthropic-version': '2023-06-01', ...headers })
  const envelope = surface.readEnvelope(new TextEncoder().encode(JSON.stringify(body)), all)
  if (envelope instanceof Failure) throw new Error(envelope.message)
  return readSession(all, envelope, surface)
}

const keyOf = (surface: Dialect, body: object) => sessionOf(surface, body)?.id

/** From the first to the last in precedence. */
const headerNames = [
  ...['x-tollgate-session-id', 'x-session-id', 'x-session-affinity', 'session-id', 'x-claude-code-session-id'],
  'agent-session-id',
]
const userId = 'user_0f_account_7d0e_session_5c9b2c9e-1111-2222-3333-444455556666'
const bodies: readonly [surface: Dialect, body: object][] = [
  [openaiChat, { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }],
  [openaiResponses, { model: 'm', input: 'Hi' }],
  [anthropicMessages, { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }],
]

test('takes the first header in the order of precedence, then the cache key, then the session of the user id', () => {
  for (const [surface, body] of bodies) {
    const named = { ...body, prompt_cache_key: 'by-key', metadata: { user_id: userId } }
    for (const [place, name] of headerNames.entries()) {
      const headers = Object.fromEntries(headerNames.slice(place).map((each) => [each, `by-${each}`]))
      expect(sessionOf(surface, named, headers)).toEqual({ id: `by-${name}`, isNamed: true })
    }
    expect(sessionOf(surface, named, { 'session-id': ' ' })).toEqual({ id: 'by-key', isNamed: true })
    const fromUser = { id: '5c9b2c9e-1111-2222-3333-444455556666', isNamed: true }
    expect(sessionOf(surface, { ...named, prompt_cache_key: ' ' })).toEqual(fromUser)
    expect(sessionOf(surface, { ...named, prompt_cache_key: 7 })).toEqual(fromUser)
    const newer = JSON.stringify({ device_id: 'd', account_uuid: '', session_id: 's-1' })
    expect(sessionOf(surface, { ...body, metadata: { user_id: newer } })).toEqual({ id: 's-1', isNamed: true })
    for (const metadata of [{ user_id: 'customer-7' }, { user_id: 7 }, {}, 'x', null]) {
      expect(sessionOf(surface, { ...body, metadata })).toBeUndefined()
    }
  }
})

test("takes opencode's spelling of the cache key", () => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], promptCacheKey: 'ses_1' }
  expect(sessionOf(openaiChat, body)).toEqual({ id: 'ses_1', isNamed: true })
  expect(sessionOf(openaiChat, { ...body, prompt_cache_key: 'by-key' })).toEqual({ id: 'by-key', isNamed: true })
})

test('replaces an id of more than 128 characters by its hash', () => {
  const [surface, body] = bodies[0] as (typeof bodies)[number]
  const idOf = (id: string) => sessionOf(surface, body, { 'x-session-id': id })?.id
  expect(idOf('x'.repeat(128))).toBe('x'.repeat(128))
  expect(idOf('x'.repeat(129))).toHaveLength(64)
  expect(idOf('x'.repeat(129))).not.toBe(idOf('x'.repeat(130)))
})

test('a conversation without an id is identified by its beginning', () => {
  expect(sessionOf(openaiChat, { model: 'm', messages: [hi, { role: 'user', content: prompt }] })).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{16}$/),
    isNamed: false,
  })
})

const prompt = 'You are careful. '.repeat(300)
const hi = { role: 'user', content: 'Hi' }
const turns = [hi, { role: 'assistant', content: 'Hello' }, { role: 'user', content: 'And?' }]

const messages = (system: unknown, list: readonly object[] = [hi]) =>
  keyOf(anthropicMessages, { model: 'test/model', max_tokens: 9, system, messages: list })
const chat = (system: string, list: readonly object[] = [hi]) =>
  keyOf(openaiChat, { model: 'test/model', messages: [{ role: 'system', content: system }, ...list] })

test('a short conversation has no session', () => {
  expect(messages('You are careful.')).toBeUndefined()
  expect(chat('You are careful.')).toBeUndefined()
})

test('a conversation with tools has a session from its first call, and keeps it as it grows', () => {
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  const loop = (list: readonly object[]) =>
    keyOf(anthropicMessages, { model: 'test/model', max_tokens: 9, tools, messages: list })
  expect(loop([hi])).toBeString()
  expect(loop([hi, { role: 'assistant', content: prompt }, hi])).toBe(loop([hi]) as string)
})

test('a short conversation that has grown has a session', () => {
  const grown = [hi, { role: 'assistant', content: prompt }, hi]
  expect(messages('You are careful.', grown)).toBe(messages('You are careful.', [...grown, ...grown]) as string)
})

test('every turn of a conversation has the same session', () => {
  expect(messages(prompt, turns)).toBe(messages(prompt) as string)
  expect(chat(prompt, turns)).toBe(chat(prompt) as string)
})

test('conversations that begin differently have different sessions', () => {
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

test('the cache key differs by workspace, session and secret, and contains neither', () => {
  const secret = new Uint8Array(32).fill(1)
  const keyFor = createCacheKeys(secret)
  const named = (id: string): Session => ({ id, isNamed: true })
  const key = keyFor('ws_1', named('s-1'))
  expect(key).toMatch(/^[\w-]{43}$/)
  expect(createCacheKeys(secret)('ws_1', named('s-1'))).toBe(key)
  const others = [
    keyFor('ws_2', named('s-1')),
    keyFor('ws_1', named('s-2')),
    createCacheKeys(new Uint8Array(32))('ws_1', named('s-1')),
  ]
  expect(new Set([key, ...others]).size).toBe(4)
})
