// Chat clients do not send signed reasoning back. It is kept for them and goes back to its provider, at its place, for
// an hour, for the same workspace and session, unless that is switched off.

import { afterAll, describe, expect, test } from 'bun:test'
import { stopAll } from '../parts/gateway.ts'
import { manage } from '../parts/manage.ts'
import { type DialectName, openStage, type Pair, replyPairs, type Stage, withModel } from './cells.ts'
import { listOf, membersOf } from './checker/violation.ts'
import { callOpening, chatBytes, wholeCall } from './replies/chat-bytes.ts'
import { callPart, geminiBytes, thoughtPart } from './replies/gemini-bytes.ts'
import { callBlock, messagesBytes, sealedBlock, textBlock, thinkingBlock } from './replies/messages-bytes.ts'
import { callItem, messageItem, reasoningItem, responsesBytes } from './replies/responses-bytes.ts'
import { answerWith } from './reply-cells.ts'

const stage = await openStage(() => {})
const without = await openStage(() => {}, 'sessions: { keep_reasoning: off }\n')
afterAll(() => stopAll(stage, without))

const first = 'EqQBCgIYAhIMfirst=='
const second = 'EqQBCgIYAhIMsecond=='
/** A call after signed reasoning. */
const calling = (call: string) => ({
  chat: chatBytes({
    deltas: [callOpening(0, call, 'look', '{}')],
    message: { tool_calls: [wholeCall(call, 'look', '{}')] },
    finish: 'tool_calls',
  }),
  messages: messagesBytes({ blocks: [thinkingBlock(first, 'I look.'), callBlock(call, 'look')], stop: 'tool_use' }),
  gemini: geminiBytes({
    records: [[thoughtPart('I look.')], [callPart(call, 'look', '{}', { thoughtSignature: first })]],
  }),
  responses: responsesBytes({ items: [reasoningItem(0, first, 'I look.'), callItem(1, call, 'look', '{}')] }),
})
/** A text after signed reasoning. */
const saying = {
  chat: chatBytes({ deltas: [{ content: 'It rains.' }], message: { content: 'It rains.' }, finish: 'stop' }),
  messages: messagesBytes({ blocks: [thinkingBlock(second, 'I know.'), textBlock('It rains.')], stop: 'end_turn' }),
  gemini: geminiBytes({ records: [[thoughtPart('I know.')], [{ text: 'It rains.', thoughtSignature: second }]] }),
  responses: responsesBytes({ items: [reasoningItem(0, second, 'I know.'), messageItem(1, 'It rains.')] }),
}

const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }]
const historyOf = (call: string, opening: string) => [
  { role: 'user', content: opening },
  { role: 'assistant', content: null, tool_calls: [wholeCall(call, 'look', '{}')] },
  { role: 'tool', tool_call_id: call, content: 'rain' },
  { role: 'assistant', content: 'It rains.\n' },
  { role: 'user', content: 'And tomorrow?' },
]

let conversations = 0

interface Spoken {
  readonly history: readonly object[]
  /** Sends the history up to this many messages; returns which of the two proofs the provider got. */
  proofs(messages: number, headers?: Record<string, string>): Promise<string[]>
}

/** Two turns of a new conversation. */
async function speak(at: Stage, pair: Pair, stream = false): Promise<Spoken> {
  const call = `call_${++conversations}`
  const history = historyOf(call, `go ${conversations}`)
  let warnings: string | null = null
  const ask = async (messages: number, headers = {}) => {
    const response = await at.ask(
      pair,
      { max_tokens: 3000, tools, messages: history.slice(0, messages), stream },
      headers,
    )
    await response.text()
    expect(response.status).toBe(200)
    warnings = response.headers.get('x-tollgate-warnings')
  }
  const proofs = async (messages: number, headers = {}) => {
    await ask(messages, headers)
    const sent = JSON.stringify(at.upstream.calls.at(-1)?.json())
    const found = [first, second].filter((proof) => sent.includes(proof))
    // Gemini gets the value for a missing signature; nothing else is lost, since the caller sent none.
    if (warnings !== null) expect([warnings, found]).toEqual(['thought_signature_skipped;field=/messages/1', []])
    return found
  }
  at.upstream.handle(answerWith((dialect) => calling(call)[dialect]))
  await ask(1)
  at.upstream.handle(answerWith((dialect) => saying[dialect]))
  return { history, proofs }
}

const chatPairs = replyPairs.filter(({ surface, upstream }) => surface === 'chat' && upstream !== 'chat')

/** The reasoning stands where it came from. */
const checks: Readonly<Partial<Record<DialectName, (sent: Readonly<Record<string, unknown>>) => void>>> = {
  messages: ({ messages }) => {
    const blocks = listOf(messages).map((message) => listOf(membersOf(message).content)[0])
    expect(blocks[1]).toEqual({ type: 'thinking', thinking: 'I look.', signature: first })
    expect(blocks[3]).toEqual({ type: 'thinking', thinking: 'I know.', signature: second })
  },
  gemini: ({ contents }) => {
    const parts = listOf(contents).map((content) => membersOf(listOf(membersOf(content).parts).at(-1)))
    expect([parts[1]?.thoughtSignature, parts[3]?.thoughtSignature]).toEqual([first, second])
  },
  responses: ({ input }) => {
    const items = listOf(input).map((item) => membersOf(item))
    expect([items[1]?.encrypted_content, items[4]?.encrypted_content]).toEqual([first, second])
  },
}

describe.each(chatPairs)('chat client of $upstream', (pair) => {
  test.each([true, false])(
    'signed reasoning is back in the second and the third turn, streamed: %p',
    async (stream) => {
      const { proofs } = await speak(stage, pair, stream)
      expect(await proofs(3)).toEqual([first])
      expect(await proofs(5)).toEqual([first, second])
      checks[pair.upstream]?.(membersOf(stage.upstream.calls.at(-1)?.json()))
      // Each turn repeats what the one before was sent.
      expect(await proofs(5)).toEqual([first, second])
    },
  )

  test('it is gone an hour after its last use', async () => {
    const { proofs } = await speak(stage, pair)
    stage.jump(3599)
    expect(await proofs(3)).toEqual([first])
    stage.jump(3600)
    expect(await proofs(3)).toEqual([])
  })

  test('another session and another workspace do not get it', async () => {
    const { proofs } = await speak(stage, pair)
    expect(await proofs(3, { 'x-session-id': 'another' })).toEqual([])
    const other = await otherKey(stage)
    expect(await proofs(3, { authorization: `Bearer ${other}` })).toEqual([])
    expect(await proofs(3)).toEqual([first])
  })

  test('it is not kept when switched off', async () => {
    const { proofs } = await speak(without, pair)
    expect(await proofs(3)).toEqual([])
    expect(await proofs(5)).toEqual([])
  })
})

async function otherKey({ gateway }: Stage): Promise<string> {
  const { id } = await manage(gateway, 'POST', '/api/workspaces', { name: `other ${conversations}` })
  const project = await manage(gateway, 'POST', `/api/workspaces/${id}/projects`, { name: 'project' })
  const { secret } = await manage(gateway, 'POST', `/api/projects/${project.id}/keys`, { name: 'key' })
  await manage(gateway, 'POST', `/api/workspaces/${id}/topups`, { amount: '1.00' })
  return secret
}

const claude = withModel({ surface: 'chat', upstream: 'messages', model: '', upstreamModel: '' }, 'claude-sonnet-4-5')

test('reasoning between text and calls is back in its order', async () => {
  const interleaved = messagesBytes({
    blocks: [
      thinkingBlock('sigA==', 'A'),
      textBlock('One moment.'),
      thinkingBlock('sigB==', 'B'),
      callBlock('call_x', 'look'),
      sealedBlock('EmwKAhgB'),
      callBlock('call_y', 'look'),
    ],
    stop: 'tool_use',
  })
  stage.upstream.handle(answerWith(() => interleaved))
  const opening = { role: 'user', content: 'in order' }
  await (await stage.ask(claude, { max_tokens: 3000, tools, messages: [opening] })).text()
  const calls = ['call_x', 'call_y']
  const messages = [
    opening,
    // With the readable part alone, as some clients return it.
    {
      role: 'assistant',
      content: 'One moment.',
      reasoning_content: 'A\n\nB',
      tool_calls: calls.map((id) => wholeCall(id, 'look', '{}')),
    },
    ...calls.map((id) => ({ role: 'tool', tool_call_id: id, content: 'rain' })),
  ]
  const again = await stage.ask(claude, { max_tokens: 3000, tools, messages })
  await again.text()
  expect([again.status, again.headers.get('x-tollgate-warnings')]).toEqual([200, null])
  const sent = membersOf(listOf(membersOf(stage.upstream.calls.at(-1)?.json()).messages)[1])
  expect(sent.content).toEqual([
    { type: 'thinking', thinking: 'A', signature: 'sigA==' },
    { type: 'text', text: 'One moment.' },
    { type: 'thinking', thinking: 'B', signature: 'sigB==' },
    { type: 'tool_use', id: 'call_x', name: 'look', input: {} },
    { type: 'redacted_thinking', data: 'EmwKAhgB' },
    { type: 'tool_use', id: 'call_y', name: 'look', input: {} },
  ])
})

test('reasoning is not sent to another model', async () => {
  const { proofs, history } = await speak(stage, claude)
  expect(await proofs(3)).toEqual([first])
  const gemini = withModel({ ...claude, upstream: 'gemini' }, 'gemini-3.8-flash')
  const response = await stage.ask(gemini, { max_tokens: 3000, tools, messages: history.slice(0, 3) })
  await response.text()
  expect(response.headers.get('x-tollgate-warnings')).toBe('thought_signature_skipped;field=/messages/1')
  expect(JSON.stringify(stage.upstream.calls.at(-1)?.json())).not.toContain(first)
})

test('a turn whose reasoning is lost ends the run: earlier reasoning stays out, later goes back', async () => {
  const { history, proofs } = await speak(stage, claude)
  expect(await proofs(3)).toEqual([first])
  // The client rewrote the answer before the last.
  const rewritten = history.with(3, { role: 'assistant', content: 'It drizzles.' })
  stage.upstream.handle(answerWith((dialect) => saying[dialect]))
  await (await stage.ask(claude, { max_tokens: 3000, tools, messages: rewritten })).text()
  const later = [...rewritten, { role: 'assistant', content: 'It rains.' }, { role: 'user', content: 'Really?' }]
  await (await stage.ask(claude, { max_tokens: 3000, tools, messages: later })).text()
  const sent = JSON.stringify(stage.upstream.calls.at(-1)?.json())
  expect([sent.includes(first), sent.includes(second)]).toEqual([false, true])
})

test('reasoning that the provider refuses is left out, and asked for once more', async () => {
  const { proofs } = await speak(stage, claude)
  expect(await proofs(3)).toEqual([first])
  const refusal = {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'messages.1.content.0: Invalid `signature` in `thinking` block' },
  }
  const before = stage.upstream.calls.length
  stage.upstream.handle((call, reply) =>
    stage.upstream.calls.length === before + 1
      ? reply.send(400, { 'content-type': 'application/json' }, JSON.stringify(refusal))
      : answerWith((dialect) => saying[dialect])(call, reply),
  )
  expect(await proofs(3)).toEqual([])
  expect(stage.upstream.calls.length).toBe(before + 2)
})
