// Provider streams, translated, as the official client libraries read them with their own accumulators.

import { afterAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { renderStreamFailure as renderMessagesFailure } from '../../src/dialects/anthropic-messages/errors.ts'
import { parseStream as parseMessages } from '../../src/dialects/anthropic-messages/reply/parse.ts'
import {
  renderStream as renderMessages,
  renderReply as renderMessagesReply,
} from '../../src/dialects/anthropic-messages/reply/render.ts'
import type { ReplyEvent } from '../../src/dialects/canonical/reply.ts'
import type { StreamRenderer } from '../../src/dialects/canonical/translation.ts'
import { renderStreamFailure as renderChatFailure } from '../../src/dialects/openai-chat/errors.ts'
import { parseStream as parseChat } from '../../src/dialects/openai-chat/reply/parse.ts'
import {
  renderStream as renderChat,
  renderReply as renderChatReply,
} from '../../src/dialects/openai-chat/reply/render.ts'
import { Failure } from '../../src/kernel/failure.ts'
import {
  chatClientNames,
  createChatClient,
  createMessageClient,
  messageClientNames,
  readError,
} from '../parts/official-clients.ts'
import { call, context, custom, ended, started, text, thinking } from '../parts/reply-events.ts'
import { parseWhole, requestId } from '../parts/reply-notation.ts'
import { targetOf } from '../parts/translation.ts'

/** The server's answers, by requested model; bodies that begin with `{` are whole replies. */
const answers = new Map<string, string>()
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { model } = (await request.json()) as { model: string }
    const body = answers.get(model) ?? ''
    const type = body.startsWith('{') ? 'application/json' : 'text/event-stream; charset=utf-8'
    return new Response(body, { headers: { 'content-type': type, 'request-id': 'req_1' } })
  },
})
afterAll(() => server.stop(true))

/** Serves an answer under a new model name. */
function serve(body: string): string {
  const model = `m${answers.size}`
  answers.set(model, body)
  return model
}

const target = targetOf('up', 'acme/openai-chat')()
const streamOf = (renderer: StreamRenderer, events: readonly ReplyEvent[]): string =>
  events.map((event) => renderer.render(event)).join('') + renderer.terminal
const fixture = (path: string): Uint8Array => readFileSync(`${import.meta.dir}/../fixtures/${path}.sse`)
const messagesFixture = (name: string): ReplyEvent[] =>
  parseWhole(parseMessages(target, requestId), fixture(`messages/${name}`))
const chatFixture = (name: string): ReplyEvent[] => parseWhole(parseChat(target, requestId), fixture(`chat/${name}`))
const chunk = (delta: unknown, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c1', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const chatEvents = (...records: string[]): ReplyEvent[] =>
  parseWhole(parseChat(target, requestId), `${records.join('')}data: [DONE]\n\n`)
const toolCalls = ended({ unified: 'tool-calls', raw: 'x' })
const interrupted = new Failure('STREAM_INTERRUPTED', 'Provider acme broke off.')

describe.each([...chatClientNames])('%s reads a Messages provider', (name) => {
  const client = createChatClient(name, { baseURL: `${server.url}v1`, apiKey: 'k' })
  const tool = (strict: boolean) => ({
    type: 'function' as const,
    function: {
      name: 'now',
      strict,
      parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
    },
  })
  const stream = (events: readonly ReplyEvent[], more: object = {}) =>
    client.chat.completions.stream({
      model: serve(streamOf(renderChat(context), events)),
      messages: [{ role: 'user', content: 'x' }],
      stream_options: { include_usage: true },
      ...more,
    })

  test('thinking, text and usage', async () => {
    const completion = await stream(messagesFixture('thinking')).finalChatCompletion()
    const choice = completion.choices[0]
    expect([completion.id, completion.model, choice?.finish_reason]).toEqual([
      'chatcmpl-msg_01Vx7',
      'acme/large',
      'stop',
    ])
    expect(choice?.message.content).toBe('The answer is **4** 🎉\nEnd\u2028of "line".')
    const details: unknown = choice && 'reasoning_details' in choice.message && choice.message.reasoning_details
    const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/8Ug=='
    expect(details).toEqual([
      {
        type: 'reasoning.text',
        text: 'Let me think: 2² = 4 → «vier» 四',
        signature,
        format: 'anthropic-claude-v1',
        index: 0,
      },
    ])
    expect(completion.usage).toEqual({
      prompt_tokens: 25 + 512 + 2048,
      completion_tokens: 94,
      total_tokens: 25 + 512 + 2048 + 94,
      prompt_tokens_details: { cached_tokens: 2048, cache_write_tokens: 512 },
      completion_tokens_details: { reasoning_tokens: 61 },
      cost: 0.000012345,
    } as never)
  })

  test('calls, one of them without arguments', async () => {
    const { choices } = await stream(messagesFixture('tools')).finalChatCompletion()
    expect(choices[0]?.finish_reason).toBe('tool_calls')
    expect(choices[0]?.message.content).toBe("I'll look.")
    expect(
      choices[0]?.message.tool_calls?.map((each) => [each.id, 'function' in each ? each.function : undefined]),
    ).toMatchObject([
      [
        'toolu_01A',
        {
          name: 'get_weather',
          arguments: '{"city": "Zürich", "model":"claude-opus-5-5-20261014", "n":12345678901234567890}',
        },
      ],
      ['toolu_01B', { name: 'now', arguments: '{}' }],
    ])
  })

  test('vector 71: a strict tool called without arguments', async () => {
    const events = [started, ...call('c', 'now'), toolCalls]
    const { choices } = await stream(events, { tools: [tool(true)] }).finalChatCompletion()
    expect(choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { arguments: '{}', parsed_arguments: {} } })
  })

  test('two strict calls after another', async () => {
    const events = [started, ...text('a'), ...call('c', 'now', '{', '}'), ...call('d', 'now', '{}'), toolCalls]
    const { choices } = await stream(events, { tools: [tool(true)] }).finalChatCompletion()
    expect(choices[0]?.message.tool_calls?.map(({ id }) => id)).toEqual(['c', 'd'])
  })

  test('custom calls', async () => {
    const model = serve(renderChatReply([started, ...custom('c', 'patch', 'a\n', 'b'), toolCalls], context))
    const whole = await client.chat.completions.create({ model, messages: [] })
    expect(whole.choices[0]?.message.tool_calls).toEqual([
      { id: 'c', type: 'custom', custom: { name: 'patch', input: 'a\nb' } },
    ])
  })

  test('vector 73: pings as comments, not as records', async () => {
    const events: ReplyEvent[] = [started, { type: 'keep-alive' }, ...text('a'), { type: 'keep-alive' }, ended()]
    const { choices } = await stream(events).finalChatCompletion()
    expect(choices[0]?.message.content).toBe('a')
  })

  test('vector 62: a refusal as such, also where JSON was asked for', async () => {
    const refused = [started, ended({ unified: 'refusal', raw: 'refusal', explanation: 'Not this.' })]
    const { choices } = await stream(refused).finalChatCompletion()
    expect([choices[0]?.finish_reason, choices[0]?.message.refusal]).toEqual(['content_filter', 'Not this.'])
    const json_schema = {
      name: 'o',
      strict: true,
      schema: { type: 'object', properties: {}, required: [], additionalProperties: false },
    }
    const asked = stream(refused, { response_format: { type: 'json_schema', json_schema } }).finalChatCompletion()
    const outcome = await asked.then(
      () => 'a reply',
      (error: Error) => error.constructor.name,
    )
    // The older major parses only what its own helper asked for; what matters is that neither sees bad JSON.
    expect(outcome).toBe(name === 'openai 7' ? 'ContentFilterFinishReasonError' : 'a reply')
  })

  test('vector 75: an error in mid-stream as an error with its code', async () => {
    const half = streamOf(renderChat(context), [started, ...text('half').slice(0, 2)])
    const model = serve(half + new TextDecoder().decode(renderChatFailure(interrupted)))
    const error = await readError(name, client.chat.completions.stream({ model, messages: [] }).finalChatCompletion())
    expect([error.code, error.type]).toEqual(['STREAM_INTERRUPTED', 'api_error'])
  })

  test('vector 86: halved characters whole', async () => {
    const seen: string[] = []
    const running = stream([started, ...text('a\ud83d', '\ude00'), ended()])
    running.on('content', (piece) => seen.push(piece))
    await running.finalChatCompletion()
    expect(seen).toEqual(['a', '😀'])
  })
})

describe.each([...messageClientNames])('%s reads a Chat Completions provider', (name) => {
  const client = createMessageClient(name, { baseURL: server.url.origin, apiKey: 'k' })
  const stream = (events: readonly ReplyEvent[]) =>
    client.messages.stream({
      model: serve(streamOf(renderMessages(context), events)),
      max_tokens: 9,
      messages: [{ role: 'user', content: 'x' }],
    })

  test('reasoning, text and usage', async () => {
    const message = await stream(chatFixture('deepseek')).finalMessage()
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'Hmm，用户想知道 2²', signature: expect.stringMatching(/^tg1\./) },
      { type: 'text', text: '四！ (4)' },
    ])
    expect([message.model, message.stop_reason]).toEqual(['acme/large', 'end_turn'])
    expect(message.usage).toMatchObject({ input_tokens: 5, cache_read_input_tokens: 32, output_tokens: 20 })
  })

  test('vector 79: mixed calls as consistent input events', async () => {
    const head = (index: number) => ({
      index,
      id: `t${index}`,
      type: 'function',
      function: { name: 'f', arguments: '' },
    })
    const piece = (index: number, text: string): string =>
      chunk({ tool_calls: [{ index, function: { arguments: text } }] })
    const running = stream(
      chatEvents(
        chunk({ tool_calls: [head(0), head(1)] }),
        piece(0, '{"a"'),
        piece(1, '{"b"'),
        piece(0, ':1}'),
        piece(1, ':2}'),
        chunk({}, 'stop'),
      ),
    )
    const snapshots: unknown[] = []
    running.on('inputJson', (_, snapshot) => snapshots.push(structuredClone(snapshot)))
    const { content, stop_reason: reason } = await running.finalMessage()
    expect(content).toMatchObject([
      { type: 'tool_use', id: 't0', name: 'f', input: { a: 1 } },
      { type: 'tool_use', id: 't1', name: 'f', input: { b: 2 } },
    ])
    expect(snapshots.filter((snapshot) => Object.keys(snapshot as object).length > 0)).toEqual([{ a: 1 }, { b: 2 }])
    expect(reason).toBe('tool_use')
  })

  test('calls with text before them, as separate events', async () => {
    const message = await stream(chatFixture('openai-tools')).finalMessage()
    const whole = await client.messages.create({
      model: serve(renderMessagesReply(chatFixture('openai-tools'), context)),
      max_tokens: 9,
      messages: [],
    })
    expect<unknown>(message.content).toEqual(whole.content)
    expect(message.stop_reason).toBe('tool_use')
    expect(message.content.filter(({ type }) => type === 'tool_use').length).toBeGreaterThan(0)
  })

  test('vector 83: nothing at all as an empty text', async () => {
    expect(await stream(chatEvents(chunk({ role: 'assistant', content: '' }), chunk({}, 'stop'))).finalText()).toBe('')
  })

  test('thinking that is all signature, and pings', async () => {
    const events: ReplyEvent[] = [
      { type: 'keep-alive' },
      started,
      { type: 'keep-alive' },
      ...thinking([], 'tg1.x'),
      ...text('a'),
      ended(),
    ]
    const { content } = await stream(events).finalMessage()
    expect(content).toMatchObject([
      { type: 'thinking', thinking: '', signature: 'tg1.x' },
      { type: 'text', text: 'a' },
    ])
  })

  test('arguments that are no object as an object', async () => {
    const { content } = await stream([started, ...call('t', 'f', '[1', ']'), toolCalls]).finalMessage()
    expect(content).toMatchObject([{ input: { value: [1] } }])
  })

  test('an error in mid-stream as an error with its code', async () => {
    const half = streamOf(renderMessages(context), [started, ...text('half').slice(0, 2)])
    const model = serve(half + new TextDecoder().decode(renderMessagesFailure(interrupted, 'req_1')))
    const error = await readError(name, client.messages.stream({ model, max_tokens: 9, messages: [] }).finalMessage())
    expect([error.code, error.type]).toEqual(['STREAM_INTERRUPTED', 'api_error'])
  })
})
