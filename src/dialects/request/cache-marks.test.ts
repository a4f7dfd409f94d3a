// Marks for callers that set none. What dialects do with marks is tested where they render them.

import { expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { anthropicMessages } from '../anthropic-messages/index.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { Dialect } from '../dialect.ts'
import { openaiChat } from '../openai-chat/index.ts'
import { openaiResponses } from '../openai-responses/index.ts'
import { placeMarks } from './cache-marks.ts'

const claude: TargetRules = { cachesOnlyMarked: true }
const short = { type: 'ephemeral' }
const long = { type: 'ephemeral', ttl: '1h' }

interface Options {
  readonly isNamed?: boolean
  readonly rules?: TargetRules
}

/** Where the rendered request has marks, in prompt order, and which; then its warnings. */
function marksOf(surface: Dialect, body: object, { isNamed = false, rules = claude }: Options = {}): unknown[] {
  const bytes = new TextEncoder().encode(JSON.stringify({ model: 'm', ...body }))
  const envelope = surface.readEnvelope(bytes, new Headers())
  if (envelope instanceof Failure) throw new Error(envelope.message)
  const parsed = surface.translation.parseRequest(envelope)
  if (parsed instanceof Failure) throw new Error(parsed.message)
  const target = { upstreamModel: 'up', issuer: 'i', rules, defaultOutputCap: 9, maxOutputTokens: 9 }
  const rendered = anthropicMessages.translation.renderRequest(placeMarks(parsed.conversation, rules, isNamed), target)
  if (rendered instanceof Failure) throw new Error(rendered.message)
  const sent = JSON.parse(new TextDecoder().decode(rendered.body))
  const found: unknown[] = []
  const note = (pointer: string, { cache_control: mark }: { cache_control?: unknown }) =>
    mark && found.push([pointer, mark])
  for (const [i, tool] of (sent.tools ?? []).entries()) note(`tools/${i}`, tool)
  for (const [i, block] of (sent.system ?? []).entries()) note(`system/${i}`, block)
  for (const [i, { content }] of sent.messages.entries()) {
    for (const [j, block] of content.entries()) note(`messages/${i}/${j}`, block)
  }
  return [...found, ...rendered.warnings.map(({ code }) => code)]
}

const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })
const system = { role: 'system', content: 'You are careful.' }
const user = (content: unknown) => ({ role: 'user', content })
const call = (id: string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
})
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'seen' })
const chat = (messages: readonly object[], more: object = {}, options?: Options) =>
  marksOf(openaiChat, { messages, tools: [tool('look'), tool('edit')], ...more }, options)

test('marks the end of the system text and of the last two user turns of a growing conversation', () => {
  expect(chat([system, user('a'), call('1'), result('1')])).toEqual([
    ['system/0', short],
    ['messages/0/0', short],
    ['messages/2/0', short],
  ])
  // Results of parallel calls and the next message are one turn; system text in between is none.
  const parallel = { ...call('1'), tool_calls: [...call('1').tool_calls, ...call('2').tool_calls] }
  expect(chat([system, user('a'), call('0'), result('0'), parallel, result('1'), result('2'), user('b')])).toEqual([
    ['system/0', short],
    ['messages/2/0', short],
    ['messages/4/2', short],
  ])
})

test('marks the last tool if there is no system text', () => {
  const marks = chat([user('a'), { role: 'assistant', content: 'b' }, user('c')])
  expect(marks).toEqual([
    ['tools/1', short],
    ['messages/0/0', short],
    ['messages/2/0', short],
  ])
})

test('a named session is marked as a whole from its first turn', () => {
  expect(chat([system, user('a')], {}, { isNamed: true })).toEqual([
    ['system/0', short],
    ['messages/0/0', short],
  ])
})

test('the first turn of another conversation is marked up to its messages, and only if it has tools', () => {
  expect(chat([system, user('a')])).toEqual([['system/0', short]])
  expect(chat([system, user('a')], { tools: [] })).toEqual([])
})

test('marks the caller’s own dialect of Responses alike', () => {
  const input = [
    { role: 'user', content: 'a' },
    { type: 'function_call', call_id: '1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: '1', output: 'seen' },
  ]
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }]
  expect(marksOf(openaiResponses, { instructions: 'You are careful.', input, tools })).toEqual([
    ['system/0', short],
    ['messages/0/0', short],
    ['messages/2/0', short],
  ])
})

test('adds none to marks that the caller set', () => {
  const marked = user([
    { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } },
    { type: 'text', text: 'b' },
  ])
  expect(chat([system, marked, call('1'), result('1')])).toEqual([['messages/0/0', long]])
  expect(chat([system, user('a'), call('1'), result('1')], { cache_control: short })).toEqual([])
})

test('honours prompt_cache_options: no marks in explicit mode, from the first turn and for an hour if asked', () => {
  const turns = [system, user('a'), call('1'), result('1')]
  expect(chat(turns, { prompt_cache_options: { mode: 'explicit' } })).toEqual([])
  expect(chat([system, user('a')], { tools: [], prompt_cache_options: { mode: 'implicit', ttl: '30m' } })).toEqual([
    ['system/0', long],
    ['messages/0/0', long],
  ])
})

test('leaves targets that cache by themselves alone', () => {
  expect(chat([system, user('a'), call('1'), result('1')], {}, { rules: {} })).toEqual([])
})
