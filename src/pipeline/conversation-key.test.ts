import { expect, test } from 'bun:test'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import { conversationKey } from './conversation-key.ts'

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

test('a short conversation has no name', () => {
  expect(messages('You are careful.')).toBeUndefined()
  expect(chat('You are careful.')).toBeUndefined()
})

test('with tools it has one from the first call on, and keeps it while it grows', () => {
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  const loop = (list: readonly object[]) =>
    keyOf(anthropicMessages, { model: 'test/model', max_tokens: 9, tools, messages: list })
  expect(loop([hi])).toBeString()
  expect(loop([hi, { role: 'assistant', content: prompt }, hi])).toBe(loop([hi]) as string)
})

test('one that has grown has a name, however it began', () => {
  const grown = [hi, { role: 'assistant', content: prompt }, hi]
  expect(messages('You are careful.', grown)).toBe(messages('You are careful.', [...grown, ...grown]) as string)
})

test('every turn of a conversation has the same name', () => {
  expect(messages(prompt, turns)).toBe(messages(prompt) as string)
  expect(chat(prompt, turns)).toBe(chat(prompt) as string)
})

test('conversations that begin differently have different names', () => {
  const other = [{ role: 'user', content: 'Ho' }]
  expect(messages(prompt)).not.toBe(messages(prompt, other))
  expect(chat(prompt)).not.toBe(chat(prompt, other))
  expect(messages(prompt)).not.toBe(messages(`Now then: ${prompt}`))
  expect(chat(prompt)).not.toBe(chat(`Now then: ${prompt}`))
})

test('pitfall 1: the line for billing, which changes with every call, is no part of the name', () => {
  const blocks = (hash: string, text = prompt) => [
    { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.100; cc_entrypoint=cli; cch=${hash};` },
    { type: 'text', text },
  ]
  expect(messages(blocks('ab12'))).toBe(messages(blocks('cd3456')) as string)
  expect(messages(blocks('ab12'))).not.toBe(messages(blocks('ab12', `Now then: ${prompt}`)))
  expect(messages([{ type: 'text', text: prompt }])).toBe(messages(blocks('ab12').slice(1)) as string)
})
