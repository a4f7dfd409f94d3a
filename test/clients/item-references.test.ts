// The AI SDK's default provider of OpenAI (`openai(…)`) counts on stored responses: from its second step on it sends ids of
// reasoning and messages instead of them. They are kept for their session, on providers of every dialect.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, type ModelMessage, streamText, tool } from 'ai'
import { z } from 'zod'
import { type DialectName, openStage, type Pair, replyPair, type Stage } from '../conformance/cells.ts'
import { listOf, membersOf } from '../conformance/checker/violation.ts'
import { callOpening, chatBytes, wholeCall } from '../conformance/replies/chat-bytes.ts'
import { callPart, geminiBytes, thoughtPart } from '../conformance/replies/gemini-bytes.ts'
import { callBlock, messagesBytes, textBlock, thinkingBlock } from '../conformance/replies/messages-bytes.ts'
import type { ProviderBytes } from '../conformance/replies/reply-fixture.ts'
import { callItem, messageItem, reasoningItem, responsesBytes } from '../conformance/replies/responses-bytes.ts'
import { answerWith } from '../conformance/reply-cells.ts'
import { manage } from '../parts/manage.ts'

const stage = await openStage(() => {})
const without = await openStage(() => {}, 'sessions: { keep_reasoning: off }\n')
afterAll(() => Promise.all([stage.stop(), without.stop()]))

const dialects = ['chat', 'messages', 'gemini', 'responses'] as const
const pairOf = (upstream: DialectName): Pair => replyPair('responses', upstream)
/** What each step's reasoning has to be sent back with. */
const proof = (step: number) => `EqQBCgIYAhIMproof${step}==`

/** One reply: signed reasoning, and a call or, as the last of them, a text. `at`: in the ids of items of Responses. */
function replyOf(step: number, isLast: boolean, at = 10 * step): Readonly<Record<DialectName, ProviderBytes>> {
  const id = `call_${step}`
  const details = [{ type: 'reasoning.encrypted', data: proof(step), index: 0 }]
  const said = 'It rains.'
  return {
    chat: isLast
      ? chatBytes({
          deltas: [{ reasoning_details: details }, { content: said }],
          message: { reasoning_details: details, content: said },
          finish: 'stop',
        })
      : chatBytes({
          deltas: [{ reasoning_details: details }, callOpening(0, id, 'look', '{}')],
          message: { reasoning_details: details, content: null, tool_calls: [wholeCall(id, 'look', '{}')] },
          finish: 'tool_calls',
        }),
    messages: messagesBytes({
      blocks: [thinkingBlock(proof(step), `Thought ${step}.`), isLast ? textBlock(said) : callBlock(id, 'look')],
      stop: isLast ? 'end_turn' : 'tool_use',
    }),
    gemini: geminiBytes({
      records: [
        [thoughtPart(`Thought ${step}.`)],
        [
          isLast
            ? { text: said, thoughtSignature: proof(step) }
            : callPart(id, 'look', '{}', { thoughtSignature: proof(step) }),
        ],
      ],
    }),
    responses: responsesBytes({
      items: [
        reasoningItem(at, proof(step), `Thought ${step}.`),
        isLast ? messageItem(at, said) : callItem(at, id, 'look'),
      ],
    }),
  }
}

/** Replies with `calls` calls, one in each step, and then with a text. `repeatsIds`: of items, in every reply. */
function script(at: Stage, calls: number, repeatsIds = false): void {
  let step = 0
  at.upstream.calls.length = 0
  at.upstream.handle((call, reply) => {
    const replies = replyOf(step, step >= calls, repeatsIds ? 0 : undefined)
    step++
    return answerWith((dialect) => replies[dialect])(call, reply)
  })
}

interface Ran {
  readonly text: string
  readonly messages: readonly ModelMessage[]
  /** The bodies that the client sent. */
  readonly sent: readonly string[]
}

interface Options {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
}

async function run(
  at: Stage,
  { model }: Pair,
  stream: boolean,
  messages: ModelMessage[],
  { key = at.gateway.key, headers = {} }: Options = {},
): Promise<Ran> {
  const sent: string[] = []
  const send = (url: Parameters<typeof fetch>[0], init?: RequestInit) => {
    sent.push(String(init?.body))
    return fetch(url, init)
  }
  const openai = createOpenAI({
    baseURL: `${at.gateway.url}/v1`,
    apiKey: key,
    headers,
    fetch: send as unknown as typeof fetch,
  })
  const asked = {
    model: openai(model),
    messages,
    maxRetries: 0,
    maxOutputTokens: 3000,
    tools: { look: tool({ inputSchema: z.object({}), execute: () => 'rain' }) },
    stopWhen: isStepCount(5),
    providerOptions: { openai: { forceReasoning: true, reasoningEffort: 'low', reasoningSummary: 'auto' } },
  }
  if (!stream) {
    const { text, responseMessages } = await generateText(asked)
    return { text, messages: [...messages, ...responseMessages], sent }
  }
  const thrown: unknown[] = []
  const result = streamText({ ...asked, onError: ({ error }) => void thrown.push(error) })
  await result.consumeStream()
  if (thrown.length > 0) throw thrown[0]
  return { text: await result.text, messages: [...messages, ...(await result.responseMessages)], sent }
}

/** Distinguishes conversations, which have no name here. */
let conversations = 0
const user = (content: string): ModelMessage => ({ role: 'user', content })
const opening = () => user(`Question ${++conversations}: how is the weather?`)

const provenIn = (call: { json(): unknown } | undefined) => {
  const body = JSON.stringify(call?.json())
  return [0, 1, 2, 3].filter((step) => body.includes(proof(step)))
}

async function refusal(call: Promise<unknown>) {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const { statusCode, responseBody } = error as { statusCode: number; responseBody: string }
  return { statusCode, error: JSON.parse(responseBody).error as { param: string; message: string } }
}

beforeEach(() => stage.calm())

describe.each(dialects)('on a provider of %s', (dialect) => {
  const pair = pairOf(dialect)

  describe.each([true, false])('streamed: %p', (stream) => {
    test.each([1, 2])('%d calls, and a further question', async (calls) => {
      script(stage, calls)
      const first = await run(stage, pair, stream, [opening()])
      expect(first.text).toBe('It rains.')
      const { calls: asked } = stage.upstream
      expect(asked.length).toBe(calls + 1)
      // Each step has the reasoning of all steps before it.
      expect(asked.map(provenIn)).toEqual(asked.map((_, step) => Array.from({ length: step }, (__, i) => i)))
      expect(first.sent.map((body) => body.split('"item_reference"').length - 1)).toEqual(asked.map((_, i) => i))

      const next = await run(stage, pair, stream, [...first.messages, user('And tomorrow?')])
      expect(next.text).toBe('It rains.')
      expect(next.sent.at(-1)).toContain('"item_reference"')
      expect(provenIn(asked.at(-1))).toEqual(Array.from({ length: calls + 1 }, (_, i) => i))
      expect(JSON.stringify(asked.at(-1)?.json())).toContain('It rains.')
    })
  })

  test('neither another workspace nor another session gets them', async () => {
    script(stage, 1)
    const { messages } = await run(stage, pair, true, [opening()], { headers: { 'x-session-id': 'one' } })
    const history = [...messages, user('And tomorrow?')]
    const sentBefore = stage.upstream.calls.length
    const others: Options[] = [
      { headers: { 'x-session-id': 'two' } },
      {},
      { key: await otherKey(), headers: { 'x-session-id': 'one' } },
    ]
    for (const options of others) {
      const { statusCode, error } = await refusal(run(stage, pair, true, history, options))
      expect([statusCode, error.param]).toEqual([400, 'input[1].id'])
      expect(error.message).toContain('`store: false`')
      expect(error.message).toContain('`sessions.keep_reasoning`')
    }
    expect(stage.upstream.calls.length).toBe(sentBefore)
    // A conversation without a name is one of its first message.
    const unnamed = await run(stage, pair, true, [opening()])
    const rewritten = [opening(), ...unnamed.messages.slice(1), user('And tomorrow?')]
    expect((await refusal(run(stage, pair, true, rewritten))).statusCode).toBe(400)
    const { text } = await run(stage, pair, true, history, { headers: { 'x-session-id': 'one' } })
    expect(text).toBe('It rains.')
  })

  test('they are gone an hour after their last use', async () => {
    script(stage, 1)
    const { messages } = await run(stage, pair, false, [opening()])
    const history = [...messages, user('And tomorrow?')]
    stage.jump(3599)
    expect((await run(stage, pair, false, history)).text).toBe('It rains.')
    stage.jump(3599)
    expect((await run(stage, pair, false, history)).text).toBe('It rains.')
    stage.jump(3600)
    expect((await refusal(run(stage, pair, false, history))).statusCode).toBe(400)
  })

  test('they are not kept when the setting is off, and the error says what to do', async () => {
    script(without, 1)
    const { statusCode, error } = await refusal(run(without, pair, false, [opening()]))
    expect([statusCode, error.param]).toEqual([400, 'input[1].id'])
    expect(error.message).toContain('`sessions.keep_reasoning` is off')
    expect(error.message).toContain('`store: false`')
    expect(without.upstream.calls.length).toBe(1)
  })

  test('nothing is kept of a request that declines storage', async () => {
    script(stage, 5)
    const { content } = opening()
    const body = { input: [{ role: 'user', content }], max_output_tokens: 3000, store: false }
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }]
    const { output } = (await (await stage.ask(pair, { ...body, tools })).json()) as { output: { id: string }[] }
    const input = [...body.input, { type: 'item_reference', id: output[0]?.id }]
    const response = await stage.ask(pair, { ...body, tools, input })
    expect(response.status).toBe(400)
  })
})

async function otherKey(): Promise<string> {
  const { gateway } = stage
  const { id } = await manage(gateway, 'POST', '/api/workspaces', { name: `other ${++conversations}` })
  const project = await manage(gateway, 'POST', `/api/workspaces/${id}/projects`, { name: 'project' })
  const { secret } = await manage(gateway, 'POST', `/api/projects/${project.id}/keys`, { name: 'key' })
  await manage(gateway, 'POST', `/api/workspaces/${id}/topups`, { amount: '1.00' })
  return secret
}

test('a provider of Responses gets the items themselves, in their places, and is asked for encrypted reasoning', async () => {
  script(stage, 2)
  const pair = pairOf('responses')
  await run(stage, pair, true, [opening()])
  const sent = membersOf(stage.upstream.calls.at(-1)?.json())
  expect([sent.store, sent.include]).toEqual([false, ['reasoning.encrypted_content']])
  const items = listOf(sent.input).map(membersOf)
  expect(items.map(({ type, role }) => type ?? role)).toEqual([
    'user',
    ...['reasoning', 'function_call', 'function_call_output'],
    ...['reasoning', 'function_call', 'function_call_output'],
  ])
  expect([items[1]?.encrypted_content, items[4]?.encrypted_content]).toEqual([proof(0), proof(1)])
})

test.each<[string[], string[]]>([
  [['message.output_text.logprobs'], ['message.output_text.logprobs', 'reasoning.encrypted_content']],
  [['reasoning.encrypted_content'], ['reasoning.encrypted_content']],
])('encrypted reasoning is added to include %p', async (include, wanted) => {
  script(stage, 0)
  const pair = pairOf('responses')
  await (await stage.ask(pair, { input: 'hi', include })).text()
  expect(membersOf(stage.upstream.calls.at(-1)?.json()).include).toEqual(wanted)
  await (await stage.ask(pair, { input: 'hi', include, store: false })).text()
  expect(membersOf(stage.upstream.calls.at(-1)?.json()).include).toEqual(include)
})

test('items are found if the server leaves them out of its last event', async () => {
  const pair = pairOf('responses')
  const { stream, whole } = replyOf(0, true).responses
  const output = JSON.stringify(JSON.parse(whole).output)
  const without = stream.replace(`"output":${output}`, '"output":[]')
  expect(without).not.toBe(stream)
  stage.upstream.handle(answerWith(() => ({ stream: without, whole })))
  const question = [{ role: 'user', content: String(opening().content) }]
  const answer = await (await stage.ask(pair, { input: question, stream: true })).text()
  expect(answer).toContain(`"output":${output}`)
  const input = [...question, { type: 'item_reference', id: 'rs_0' }, { type: 'item_reference', id: 'msg_0' }]
  await (await stage.ask(pair, { input })).text()
  const items = listOf(membersOf(stage.upstream.calls.at(-1)?.json()).input).map(membersOf)
  expect(items.map(({ type }) => type)).toEqual([undefined, 'reasoning', 'message'])
})

test.each([true, false])('a host may repeat the ids of its items, streamed: %p', async (stream) => {
  const pair = pairOf('responses')
  script(stage, 2, true)
  const first = await run(stage, pair, stream, [opening()])
  await run(stage, pair, stream, [...first.messages, user('And tomorrow?')])
  expect(stage.upstream.calls.map(provenIn)).toEqual([[], [0], [0, 1], [0, 1, 2]])
})

test('a reference whose item is not certain is refused', async () => {
  const pair = pairOf('responses')
  script(stage, 0, true)
  const question = [{ role: 'user', content: String(opening().content) }]
  const ask = async (input: object[]) => (await stage.ask(pair, { input })).status
  const reference = { type: 'item_reference', id: 'rs_0' }
  expect(await ask(question)).toBe(200)
  expect(await ask([...question, reference])).toBe(200)
  // Now there are two of that id.
  expect(await ask([...question, reference])).toBe(400)
  expect(await ask([...question, reference, reference])).toBe(200)
  expect(provenIn(stage.upstream.calls.at(-1))).toEqual([0, 1])
})

test('references that would make a body too large are refused', async () => {
  const pair = pairOf('responses')
  const text = 'x'.repeat(400_000)
  stage.upstream.handle(answerWith(() => responsesBytes({ items: [messageItem(0, text)] })))
  const question = [{ role: 'user', content: String(opening().content) }]
  await (await stage.ask(pair, { input: question })).text()
  // 32 MiB are 83 times as much.
  const references = Array.from({ length: 84 }, () => ({ type: 'item_reference', id: 'msg_0' }))
  const before = stage.upstream.calls.length
  expect((await stage.ask(pair, { input: [...question, ...references] })).status).toBe(413)
  expect(stage.upstream.calls.length).toBe(before)
})
