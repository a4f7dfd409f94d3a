// Reasoning that a provider signed goes back to it as it came, whichever surface the caller uses and whatever the
// surface made of it in between.

import { afterAll, describe, expect, test } from 'bun:test'
import { type DialectName, openStage, type Pair, replyPairs, withModel } from './cells.ts'
import { listOf, membersOf } from './checker/violation.ts'
import { callOpening, chatBytes, wholeCall } from './replies/chat-bytes.ts'
import { callPart, geminiBytes, thoughtPart } from './replies/gemini-bytes.ts'
import { callBlock, messagesBytes, sealedBlock, textBlock, thinkingBlock } from './replies/messages-bytes.ts'
import { readReply } from './replies/read-reply.ts'
import { callItem, reasoningItem, responsesBytes } from './replies/responses-bytes.ts'
import { answerWith } from './reply-cells.ts'

const stage = await openStage(() => {})
afterAll(() => stage.stop())

const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/8Ug=='
const blocks = [
  { type: 'thinking', thinking: 'I must 看 look.', signature },
  { type: 'redacted_thinking', data: 'EmwKAhgB' },
]
const details = [
  { type: 'reasoning.summary', summary: 'I must 看 look.', format: 'openai-responses-v1', index: 0 },
  { type: 'reasoning.encrypted', data: 'gAAAAABo+/=', id: 'rs_1', format: 'openai-responses-v1', index: 0 },
]
const proof = 'gAAAAABo+/='
const bytes = {
  chat: chatBytes({
    deltas: [{ reasoning_details: details }, callOpening(0, 'call_1', 'look', '{}')],
    message: { reasoning_details: details, tool_calls: [wholeCall('call_1', 'look', '{}')] },
    finish: 'tool_calls',
  }),
  messages: messagesBytes({
    blocks: [thinkingBlock(signature, 'I must ', '看 look.'), sealedBlock('EmwKAhgB'), callBlock('call_1', 'look')],
    stop: 'tool_use',
  }),
  gemini: geminiBytes({
    records: [[thoughtPart('I must 看 look.')], [callPart('call_1', 'look', '{}', { thoughtSignature: proof })]],
  }),
  responses: responsesBytes({
    items: [reasoningItem(0, proof, 'I must ', '看 look.'), callItem(1, 'call_1', 'look', '{}')],
  }),
}

const tools = {
  chat: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
  messages: [{ name: 'look', input_schema: { type: 'object', properties: {} } }],
  responses: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }],
  gemini: [{ functionDeclarations: [{ name: 'look' }] }],
}

const geminiFirst = { role: 'user', parts: [{ text: 'go' }] }

function firstBody({ surface }: Pair): object {
  if (surface === 'responses') {
    return { max_output_tokens: 3000, input: [{ role: 'user', content: 'go' }], tools: tools[surface] }
  }
  if (surface === 'gemini') {
    return { contents: [geminiFirst], generationConfig: { maxOutputTokens: 3000 }, tools: tools[surface] }
  }
  return { max_tokens: 3000, messages: [{ role: 'user', content: 'go' }], tools: tools[surface] }
}

/** Each looks at the second request: the proof stands where it came from. */
const checks: Readonly<Record<DialectName, (sent: Readonly<Record<string, unknown>>) => void>> = {
  chat: ({ messages }) => expect(membersOf(listOf(messages)[1]).reasoning_details).toEqual(details),
  messages: ({ messages }) => expect(listOf(membersOf(listOf(messages)[1]).content).slice(0, 2)).toEqual(blocks),
  // Google signs the call, not the thought before it.
  gemini: ({ contents }) =>
    expect(listOf(membersOf(listOf(contents)[1]).parts).at(-1)).toEqual({
      functionCall: { id: 'call_1', name: 'look', args: {} },
      thoughtSignature: proof,
    }),
  responses: ({ input }) =>
    expect(listOf(input).slice(1, 3)).toEqual([
      {
        type: 'reasoning',
        id: 'rs_0',
        summary: [{ type: 'summary_text', text: 'I must 看 look.' }],
        encrypted_content: proof,
      },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
    ]),
}

/** As clients send it back that keep no more of reasoning than Google's extension of calls. */
function nextWithProofOnCall(pair: Pair, extraContent: unknown): object {
  const call = { ...wholeCall('call_1', 'look', '{}'), extra_content: extraContent }
  const messages = [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
  ]
  return { ...firstBody(pair), messages }
}

/** The conversation with the answer in it, as a program of the surface would send it back. */
function nextBody(pair: Pair, proofs: readonly unknown[]): object {
  const first = { role: 'user', content: 'go' }
  if (pair.surface === 'responses') {
    const call = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' }
    const result = { type: 'function_call_output', call_id: 'call_1', output: 'rain' }
    return { ...firstBody(pair), input: [first, ...proofs, call, result] }
  }
  if (pair.surface === 'gemini') {
    const functionCall = { id: 'call_1', name: 'look', args: {} }
    const functionResponse = { id: 'call_1', name: 'look', response: { output: 'rain' } }
    const contents = [
      geminiFirst,
      { role: 'model', parts: [{ functionCall, thoughtSignature: proofs[0] }] },
      { role: 'user', parts: [{ functionResponse }] },
    ]
    return { ...firstBody(pair), contents }
  }
  const messages =
    pair.surface === 'chat'
      ? [
          first,
          {
            role: 'assistant',
            content: null,
            reasoning_details: proofs,
            tool_calls: [wholeCall('call_1', 'look', '{}')],
          },
          { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
        ]
      : [
          first,
          { role: 'assistant', content: [...proofs, { type: 'tool_use', id: 'call_1', name: 'look', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'rain' }] },
        ]
  return { ...firstBody(pair), messages }
}

describe.each(replyPairs)('$upstream → $surface and back', (pair) => {
  test.each([true, false])('streamed: %p', async (stream) => {
    stage.upstream.handle(answerWith((dialect) => bytes[dialect]))
    const response = await stage.ask(pair, { ...firstBody(pair), stream })
    const { content } = readReply(pair.surface, await response.text(), { stream })
    expect(content.proof.length).toBeGreaterThan(0)

    const again = await stage.ask(pair, { ...nextBody(pair, content.proof), stream })
    await again.text()
    expect([again.status, again.headers.get('x-tollgate-warnings')]).toEqual([200, null])
    const sent = membersOf(stage.upstream.calls.at(-1)?.json())
    checks[pair.upstream](sent)
  })
})

const interleaved = messagesBytes({
  blocks: [
    thinkingBlock('sigA==', 'A'),
    textBlock('One'),
    textBlock(' moment.'),
    thinkingBlock('sigB==', 'B'),
    callBlock('call_1', 'look'),
    sealedBlock('EmwKAhgB'),
    callBlock('call_2', 'look'),
  ],
  stop: 'tool_use',
})

test('pitfall 72: messages → chat and back with thinking between text and calls', async () => {
  const pair = withModel({ surface: 'chat', upstream: 'messages', model: '', upstreamModel: '' }, 'claude-sonnet-4-5')
  stage.upstream.handle(answerWith(() => interleaved))
  const whole = await stage.ask(pair, { ...firstBody(pair), stream: false })
  const { message } = membersOf(listOf(membersOf(await whole.json()).choices)[0])
  const streamed = await stage.ask(pair, { ...firstBody(pair), stream: true })
  const { content } = readReply('chat', await streamed.text(), { stream: true })
  expect(content.proof).toEqual(listOf(membersOf(message).reasoning_details))

  const results = ['call_1', 'call_2'].map((id) => ({ role: 'tool', tool_call_id: id, content: 'rain' }))
  const messages = [{ role: 'user', content: 'go' }, message, ...results]
  const again = await stage.ask(pair, { ...firstBody(pair), messages })
  await again.text()
  expect([again.status, again.headers.get('x-tollgate-warnings')]).toEqual([200, null])
  const sent = membersOf(listOf(membersOf(stage.upstream.calls.at(-1)?.json()).messages)[1])
  expect(sent.content).toEqual([
    { type: 'thinking', thinking: 'A', signature: 'sigA==' },
    { type: 'text', text: 'One moment.' },
    { type: 'thinking', thinking: 'B', signature: 'sigB==' },
    { type: 'tool_use', id: 'call_1', name: 'look', input: {} },
    { type: 'redacted_thinking', data: 'EmwKAhgB' },
    { type: 'tool_use', id: 'call_2', name: 'look', input: {} },
  ])
})

/** The parts of the answer, as a client puts those of a stream one after the other. */
function partsOf(body: string, stream: boolean): unknown[] {
  const records = stream ? [...body.matchAll(/^data: (.*)$/gm)].map(([, json]) => json ?? '') : [body]
  return records.flatMap((record) => {
    const { content } = membersOf(listOf(membersOf(JSON.parse(record)).candidates)[0])
    return listOf(membersOf(content).parts)
  })
}

test.each([
  ['streamed', true, false],
  ['whole', false, false],
  ['streamed, and sent back as one content for each part', true, true],
] as const)('pitfall 72: messages → gemini and back with thinking between calls: %s', async (_, stream, isSplit) => {
  const pair = withModel({ surface: 'gemini', upstream: 'messages', model: '', upstreamModel: '' }, 'claude-sonnet-4-5')
  stage.upstream.handle(answerWith(() => interleaved))
  const response = await stage.ask(pair, { ...firstBody(pair), stream })
  const parts = partsOf(await response.text(), stream)

  const functionResponse = { name: 'look', response: { output: 'rain' } }
  const results = ['call_1', 'call_2'].map((id) => ({ functionResponse: { ...functionResponse, id } }))
  const answer = isSplit ? parts.map((part) => ({ role: 'model', parts: [part] })) : [{ role: 'model', parts }]
  const contents = [geminiFirst, ...answer, { role: 'user', parts: results }]
  const again = await stage.ask(pair, { ...firstBody(pair), contents })
  await again.text()
  expect([again.status, again.headers.get('x-tollgate-warnings')]).toEqual([200, null])
  const sent = membersOf(listOf(membersOf(stage.upstream.calls.at(-1)?.json()).messages)[1])
  const texts = stream ? ['One', ' moment.'] : ['One moment.']
  expect(sent.content).toEqual([
    { type: 'thinking', thinking: 'A', signature: 'sigA==' },
    ...texts.map((text) => ({ type: 'text', text })),
    { type: 'thinking', thinking: 'B', signature: 'sigB==' },
    { type: 'tool_use', id: 'call_1', name: 'look', input: {} },
    { type: 'redacted_thinking', data: 'EmwKAhgB' },
    { type: 'tool_use', id: 'call_2', name: 'look', input: {} },
  ])
})

const proving = replyPairs.filter(
  ({ surface, upstream }) => surface === 'chat' && upstream !== 'messages' && upstream !== 'chat',
)

test.each(proving)('pitfall 80: $upstream → chat and back on the call alone', async (pair) => {
  stage.upstream.handle(answerWith((dialect) => bytes[dialect]))
  const response = await stage.ask(pair, { ...firstBody(pair), stream: false })
  const { choices } = (await response.json()) as {
    choices: [{ message: { tool_calls: [{ extra_content: unknown }] } }]
  }
  const again = await stage.ask(pair, nextWithProofOnCall(pair, choices[0].message.tool_calls[0].extra_content))
  await again.text()
  const sent = membersOf(stage.upstream.calls.at(-1)?.json())
  checks[pair.upstream](sent)
})

const refusals: Partial<Record<DialectName, object>> = {
  gemini: { error: { code: 400, message: 'Corrupted thought signature.', status: 'INVALID_ARGUMENT' } },
  responses: { error: { message: 'The encrypted content could not be verified.', code: 'invalid_encrypted_content' } },
  messages: {
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message:
        'messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.',
    },
  },
}

test.each(replyPairs.filter(({ upstream, surface }) => refusals[upstream] && upstream !== surface))(
  'pitfall 88: $upstream → $surface: what is refused all the same is left out, and asked for once more',
  async (pair) => {
    stage.upstream.handle(answerWith((dialect) => bytes[dialect]))
    const response = await stage.ask(pair, { ...firstBody(pair), stream: true })
    const { content } = readReply(pair.surface, await response.text(), { stream: true })

    const before = stage.upstream.calls.length
    stage.upstream.handle((call, reply) =>
      stage.upstream.calls.length === before + 1
        ? reply.send(400, { 'content-type': 'application/json' }, JSON.stringify(refusals[pair.upstream]))
        : answerWith((dialect) => bytes[dialect])(call, reply),
    )
    const again = await stage.ask(pair, { ...nextBody(pair, content.proof), stream: true })
    await again.text()
    expect([again.status, again.headers.get('x-tollgate-warnings')]).toEqual([
      200,
      expect.stringContaining('thinking_dropped'),
    ])
    const given = pair.upstream === 'messages' ? signature : proof
    const sent = stage.upstream.calls.slice(before).map((call) => JSON.stringify(call.json()).includes(given))
    expect(sent).toEqual([true, false])
  },
)
