// Ids of calls that a provider sends without one: agents match results by them, so no two calls of a conversation may
// share one, and the next request must still pair each result with its call. And ids of answers, which hosts may repeat.

import { afterAll, describe, expect, test } from 'bun:test'
import { type DialectName, openStage, type Pair, replyPairs } from './cells.ts'
import type { ReplyCall } from './checker/reply-content.ts'
import { listOf, membersOf } from './checker/violation.ts'
import { callOpening, chatBytes, wholeCall } from './replies/chat-bytes.ts'
import { geminiBytes } from './replies/gemini-bytes.ts'
import { callBlock, messagesBytes } from './replies/messages-bytes.ts'
import { readReply } from './replies/read-reply.ts'
import type { ProviderBytes } from './replies/reply-fixture.ts'
import { answerWith } from './reply-cells.ts'

const stage = await openStage(() => {})
afterAll(() => stage.stop())

const callPart = { functionCall: { name: 'look', args: {} } }
const gemini = geminiBytes({ records: [[callPart, callPart]] })
const withoutReplyId = ({ stream, whole }: ProviderBytes): ProviderBytes => ({
  stream: stream.replaceAll(',"responseId":"Up1"', ''),
  whole: whole.replaceAll(',"responseId":"Up1"', ''),
})

/** Two calls without ids, in replies that always have the same id, or none. */
const answers: readonly [string, DialectName, ProviderBytes][] = [
  ['the same id', 'gemini', gemini],
  ['no id', 'gemini', withoutReplyId(gemini)],
  [
    'the same id',
    'chat',
    chatBytes({
      deltas: [callOpening(0, '', 'look', '{}'), callOpening(1, '', 'look', '{}')],
      message: { tool_calls: [wholeCall('', 'look', '{}'), wholeCall('', 'look', '{}')] },
      finish: 'tool_calls',
    }),
  ],
  [
    'the same id',
    'messages',
    messagesBytes({ blocks: [callBlock('', 'look'), callBlock('', 'look')], stop: 'tool_use' }),
  ],
]
const cells = answers.flatMap(([replies, upstream, bytes]) =>
  replyPairs
    .filter((pair) => pair.upstream === upstream && pair.surface !== upstream)
    .map((pair) => ({ replies, bytes, pair, upstream, surface: pair.surface })),
)

/** A conversation in which each turn's calls were answered, as a program of the surface sends it. */
function bodyOf({ surface }: Pair, turns: readonly (readonly ReplyCall[])[]): object {
  const go = { role: 'user', content: 'go' }
  const parameters = { type: 'object', properties: {} }
  const history = turns.flatMap((calls) => turnOf[surface](calls.map(({ id }) => id)))
  switch (surface) {
    case 'chat': {
      const tools = [{ type: 'function', function: { name: 'look', parameters } }]
      return { max_tokens: 3000, tools, messages: [go, ...history] }
    }
    case 'messages':
      return { max_tokens: 3000, tools: [{ name: 'look', input_schema: parameters }], messages: [go, ...history] }
    case 'responses': {
      const tools = [{ type: 'function', name: 'look', parameters }]
      return { max_output_tokens: 3000, tools, input: [go, ...history] }
    }
    case 'gemini': {
      const tools = [{ functionDeclarations: [{ name: 'look' }] }]
      const contents = [{ role: 'user', parts: [{ text: 'go' }] }, ...history]
      return { generationConfig: { maxOutputTokens: 3000 }, tools, contents }
    }
  }
}

/** Calls and their results. */
const turnOf: Readonly<Record<Pair['surface'], (ids: readonly string[]) => object[]>> = {
  chat: (ids) => [
    { role: 'assistant', content: null, tool_calls: ids.map((id) => wholeCall(id, 'look', '{}')) },
    ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: `of ${id}` })),
  ],
  messages: (ids) => [
    { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', id, name: 'look', input: {} })) },
    { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: `of ${id}` })) },
  ],
  responses: (ids) => [
    ...ids.map((id) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' })),
    ...ids.map((id) => ({ type: 'function_call_output', call_id: id, output: `of ${id}` })),
  ],
  gemini: (ids) => [
    { role: 'model', parts: ids.map((id) => ({ functionCall: { id, name: 'look', args: {} } })) },
    {
      role: 'user',
      parts: ids.map((id) => ({ functionResponse: { id, name: 'look', response: { output: `of ${id}` } } })),
    },
  ],
}

/** The results that the provider got, each as the id of its call and its text, in their order. */
const resultsIn: Readonly<Record<DialectName, (sent: Readonly<Record<string, unknown>>) => unknown[]>> = {
  chat: ({ messages }) =>
    listOf(messages)
      .map(membersOf)
      .filter(({ role }) => role === 'tool')
      .map(({ tool_call_id, content }) => [tool_call_id, content]),
  messages: ({ messages }) =>
    listOf(messages)
      .flatMap((message) => listOf(membersOf(message).content))
      .map(membersOf)
      .filter(({ type }) => type === 'tool_result')
      .map(({ tool_use_id, content }) => [tool_use_id, content]),
  gemini: ({ contents }) =>
    listOf(contents)
      .flatMap((content) => listOf(membersOf(content).parts))
      .map((part) => membersOf(membersOf(part).functionResponse))
      .filter(({ name }) => name === 'look')
      .map(({ id, response }) => [id, membersOf(response).output]),
  responses: () => [],
}

/** Ids of answers, and on Responses also of their items. */
const idForms: Readonly<Record<Pair['surface'], RegExp>> = {
  chat: /"id": ?"(chatcmpl-[^"]+)"/g,
  messages: /"id": ?"(msg_[^"]+)"/g,
  responses: /"id": ?"((?:resp|fc)_[^"]+)"/g,
  gemini: /"responseId": ?"([^"]+)"/g,
}

describe.each(cells)('$upstream with $replies in every reply → $surface', ({ bytes, pair }) => {
  test.each([true, false])('every call has an id of its own, streamed: %p', async (stream) => {
    const turns: (readonly ReplyCall[])[] = []
    for (let turn = 0; turn < 3; turn++) {
      stage.upstream.handle(answerWith(() => bytes))
      const response = await stage.ask(pair, { ...bodyOf(pair, turns), stream })
      const reply = await response.text()
      expect(response.status).toBe(200)
      turns.push(readReply(pair.surface, reply, { stream }).content.calls)
    }
    const ids = turns.flat().map(({ id }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([6, 6])
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{1,40}$/)
    // The last request had the calls of two turns.
    const sent = membersOf(stage.upstream.calls.at(-1)?.json())
    expect(resultsIn[pair.upstream](sent)).toEqual(ids.slice(0, 4).map((id) => [id, `of ${id}`]))
  })
})

// Claude Code joins answers that share an id into one message, and callers of Responses refer to items by theirs.
describe.each(cells)('$upstream with $replies in every reply → $surface', ({ bytes, pair }) => {
  test.each([true, false])('every answer and its items have ids of their own, streamed: %p', async (stream) => {
    const answers: Set<string>[] = []
    for (let turn = 0; turn < 3; turn++) {
      stage.upstream.handle(answerWith(() => bytes))
      const reply = await (await stage.ask(pair, { ...bodyOf(pair, []), stream })).text()
      answers.push(new Set([...reply.matchAll(idForms[pair.surface])].map(([, id = '']) => id)))
    }
    // An answer on Responses has two items.
    for (const ids of answers) expect(ids.size).toBe(pair.surface === 'responses' ? 3 : 1)
    expect(new Set(answers.flatMap((ids) => [...ids])).size).toBe(pair.surface === 'responses' ? 9 : 3)
  })
})
