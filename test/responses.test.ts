// /v1/responses over real sockets: tools of every kind on providers of every dialect, the same price as on the other
// surfaces, endings that no client pays for twice, and paths that are not served.

import { afterAll, describe, expect, test } from 'bun:test'
import { writeSignature } from '../src/dialects/canonical/signature.ts'
import { type DialectName, openStage, type Pair, replyPair, replyPairs } from './conformance/cells.ts'
import { listOf, membersOf } from './conformance/checker/violation.ts'
import { callOpening, chatBytes, wholeCall } from './conformance/replies/chat-bytes.ts'
import { callPart, geminiBytes } from './conformance/replies/gemini-bytes.ts'
import { callBlock, messagesBytes, textBlock } from './conformance/replies/messages-bytes.ts'
import { readReply } from './conformance/replies/read-reply.ts'
import { callItem, customItem, messageItem, responsesBytes } from './conformance/replies/responses-bytes.ts'
import { answerWith } from './conformance/reply-cells.ts'
import { createWallets } from './money/wallets.ts'
import { post } from './parts/ask.ts'
import { manage } from './parts/manage.ts'

const stage = await openStage(() => {})
afterAll(() => stage.stop())

const served = replyPairs.filter(({ surface }) => surface === 'responses')
const translated = served.filter(({ upstream }) => upstream !== 'responses')

/** A provider of each dialect that calls one tool with these arguments. */
const calling = (name: string, json: string) => ({
  chat: chatBytes({
    deltas: [callOpening(0, 'call_1', name, json)],
    message: { tool_calls: [wholeCall('call_1', name, json)] },
    finish: 'tool_calls',
  }),
  messages: messagesBytes({ blocks: [callBlock('call_1', name, json)], stop: 'tool_use' }),
  gemini: geminiBytes({ records: [[callPart('call_1', name, json)]] }),
  responses: responsesBytes({ items: [callItem(0, 'call_1', name, json)] }),
})

/** The last event of a stream, which the end marker follows. */
function lastEvent(text: string) {
  const records = text.trim().split('\n\n')
  expect(records.pop()).toBe('data: [DONE]')
  return membersOf(JSON.parse(records.at(-1)?.split('\n').at(-1)?.slice('data: '.length) ?? ''))
}

async function ask(pair: Pair, body: object, stream: boolean) {
  const response = await stage.ask(pair, { ...body, stream })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status} ${text}`)
  const { violations } = readReply('responses', text, { stream })
  expect(violations).toEqual([])
  const json = stream ? lastEvent(text) : membersOf(JSON.parse(text))
  const sent = membersOf(stage.upstream.calls.at(-1)?.json())
  return { response, output: listOf(membersOf(stream ? json.response : json).output).map(membersOf), sent }
}

/** The descriptions of the tools that a provider was offered, wherever its dialect has them. */
function offered(dialect: DialectName, sent: Readonly<Record<string, unknown>>): string {
  const tools = listOf(sent.tools).map(membersOf)
  const [only] = dialect === 'gemini' ? listOf(tools[0]?.functionDeclarations).map(membersOf) : tools
  return String((dialect === 'chat' ? membersOf(only?.function) : only)?.description)
}

const patch = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edits files.',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "*** Begin"' },
}

describe.each(translated)('on $upstream', (pair) => {
  test.each([true, false])('a custom tool is a function there and a custom call here, streamed: %p', async (stream) => {
    stage.upstream.handle(answerWith((dialect) => calling('apply_patch', '{"input":"*** Begin\\n+x"}')[dialect]))
    const { output, sent, response } = await ask(pair, { input: 'go', tools: [patch] }, stream)
    expect(output).toMatchObject([
      { type: 'custom_tool_call', call_id: 'call_1', name: 'apply_patch', input: '*** Begin\n+x' },
    ])
    expect(offered(pair.upstream, sent)).toBe(
      'Edits files.\n\n`input` must match this lark grammar:\nstart: "*** Begin"',
    )
    expect(response.headers.get('x-tollgate-warnings')).toContain('grammar_not_enforced;field=/tools/0')
  })

  test.each([true, false])('a tool in a namespace is called by its own name, streamed: %p', async (stream) => {
    stage.upstream.handle(answerWith((dialect) => calling('git__status', '{"a":1}')[dialect]))
    const inner = { type: 'function', name: 'status', parameters: { type: 'object', properties: {} }, strict: false }
    const tools = [{ type: 'namespace', name: 'git', description: 'Git', tools: [inner] }]
    const { output } = await ask(pair, { input: 'go', tools }, stream)
    expect(output).toMatchObject([
      { type: 'function_call', call_id: 'call_1', namespace: 'git', name: 'status', arguments: '{"a":1}' },
    ])
  })

  test.each([true, false])('a shell call is an action, streamed: %p', async (stream) => {
    const action = '{"type":"exec","command":["ls","-l"]}'
    stage.upstream.handle(answerWith((dialect) => calling('local_shell', action)[dialect]))
    const response = await stage.ask(pair, { input: 'go', tools: [{ type: 'local_shell' }], stream })
    const text = await response.text()
    const last = stream ? lastEvent(text).response : JSON.parse(text)
    expect(membersOf(last).output).toMatchObject([
      { type: 'local_shell_call', call_id: 'call_1', action: { type: 'exec', command: ['ls', '-l'] } },
    ])
  })
})

test('a provider of the dialect gets the caller’s bytes, with nothing stored and our reasoning left out', async () => {
  const pair = replyPair('responses', 'responses')
  stage.upstream.handle(answerWith(() => responsesBytes({ items: [customItem(0, 'call_1', 'apply_patch', '*** x')] })))
  const input = [
    { role: 'user', content: 'go' },
    { type: 'reasoning', summary: [], encrypted_content: 'tgr1.s.untagged.sig' },
    { type: 'reasoning', summary: [], encrypted_content: 'gAAAA' },
    { role: 'user', content: 'on' },
  ]
  const { output, sent } = await ask(pair, { input, tools: [patch], store: true, unknown: { z: 1 } }, true)
  expect(output).toMatchObject([{ type: 'custom_tool_call', input: '*** x' }])
  expect(sent).toEqual({
    model: 'gpt-5.6',
    input: [input[0], input[2], input[3]],
    tools: [patch],
    store: false,
    unknown: { z: 1 },
    stream: true,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: expect.stringMatching(/^[\w-]{43}$/),
    max_output_tokens: 4096,
  })
})

const answers = {
  chat: chatBytes({ deltas: [{ content: 'hello' }], message: { content: 'hello' }, finish: 'stop' }),
  messages: messagesBytes({ blocks: [textBlock('hello')], stop: 'end_turn' }),
  gemini: geminiBytes({ records: [[{ text: 'hello' }]] }),
  responses: responsesBytes({ items: [messageItem(0, 'hello')] }),
}

test('a call costs the same through every surface, streamed or not', async () => {
  stage.upstream.handle(answerWith((dialect) => answers[dialect]))
  for (const stream of [true, false]) {
    const costs = new Map<string, Set<unknown>>()
    for (const pair of replyPairs) {
      const body = pair.surface === 'responses' ? { input: 'go' } : { messages: [{ role: 'user', content: 'go' }] }
      const capped = pair.surface === 'messages' ? { max_tokens: 100 } : {}
      const usage = pair.surface === 'chat' && stream ? { stream_options: { include_usage: true } } : {}
      const response = await stage.ask(pair, { ...body, ...capped, ...usage, stream })
      const { content } = readReply(pair.surface, await response.text(), { stream })
      costs.set(pair.upstream, (costs.get(pair.upstream) ?? new Set()).add(content.usage?.cost))
    }
    for (const [upstream, found] of costs) expect([upstream, [...found]]).toEqual([upstream, [0.00002]])
  }
})

test('a translated response repeats the settings of its request', async () => {
  stage.upstream.handle(answerWith((dialect) => answers[dialect]))
  const settings = {
    instructions: 'Be kind.\nAlways.',
    max_output_tokens: 100,
    metadata: { run: '7' },
    parallel_tool_calls: false,
    temperature: 0.5,
    tool_choice: 'none',
    tools: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }],
    top_p: 0.9,
  }
  const pair = replyPair('responses', 'chat')
  const whole = await stage.ask(pair, { input: 'go', ...settings, text: { verbosity: 'low' } })
  const text = { format: { type: 'text' }, verbosity: 'low' }
  expect(await whole.json()).toMatchObject({ ...settings, text, store: false, status: 'completed' })
  const streamed = await (await stage.ask(pair, { input: 'go', ...settings, stream: true })).text()
  expect(readReply('responses', streamed, { stream: true }).violations).toEqual([])
  const [created] = [...streamed.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => membersOf(JSON.parse(data ?? '')))
  expect(created?.response).toMatchObject({ ...settings, text: { format: { type: 'text' } }, status: 'in_progress' })
})

test.each(replyPairs.filter(({ surface }) => surface === 'chat'))(
  'a body of Responses on the chat path is answered as a chat completion ($upstream)',
  async (pair) => {
    stage.upstream.handle(answerWith((dialect) => answers[dialect]))
    for (const stream of [true, false]) {
      const body = {
        input: [{ role: 'user', content: [{ type: 'input_text', text: 'go' }] }],
        instructions: 'Be kind.',
      }
      const response = await stage.ask(pair, { ...body, stream, stream_options: { include_usage: true } })
      const { content, violations } = readReply('chat', await response.text(), { stream })
      expect([content.text, content.usage?.cost, violations]).toEqual(['hello', 0.00002, []])
    }
    const neither = await stage.ask(pair, { stream: true })
    expect([neither.status, membersOf(membersOf(await neither.json()).error).param]).toEqual([400, 'messages'])
  },
)

describe('an answer that a spend limit cuts off', () => {
  const cut = {
    ...answers,
    chat: chatBytes({ deltas: [{ content: 'So' }], message: { content: 'So' }, finish: 'length' }),
    responses: responsesBytes({
      items: [messageItem(0, 'So')],
      status: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
    }),
  }

  test.each(served.filter(({ upstream }) => upstream === 'chat' || upstream === 'responses'))(
    'fails with a code that clients do not try again ($upstream)',
    async (pair) => {
      const [key] = (await manage(stage.gateway, 'GET', '/api/keys')).data
      // The price of 4,096 tokens of output is more than this.
      await manage(stage.gateway, 'PUT', `/api/keys/${key.id}/limits`, { spend_per_day: '0.005' })
      try {
        stage.upstream.handle(answerWith((dialect) => cut[dialect]))
        const response = await stage.ask(pair, { input: 'go', stream: true })
        const text = await response.text()
        const last = lastEvent(text)
        expect(last).toMatchObject({
          type: 'response.failed',
          response: { status: 'failed', error: { code: 'insufficient_quota' }, usage: { output_tokens: 5 } },
        })
        expect(readReply('responses', text, { stream: true }).violations).toEqual([])
      } finally {
        await manage(stage.gateway, 'PUT', `/api/keys/${key.id}/limits`, {})
      }
    },
  )

  test('ends as incomplete where the caller’s own cap cut it off', async () => {
    stage.upstream.handle(answerWith((dialect) => cut[dialect]))
    const response = await stage.ask(replyPair('responses', 'chat'), {
      input: 'go',
      stream: true,
      max_output_tokens: 5,
    })
    expect(await response.text()).toContain('event: response.incomplete')
  })
})

test('tokens are counted, stored responses do not exist, and without a handshake there is no WebSocket', async () => {
  const { url, key } = stage.gateway
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = { model: 'test/plain-1', input: 'one two three' }
  const counted = await post(stage.gateway, '/v1/responses/input_tokens', body)
  expect([counted.status, await counted.json()]).toMatchObject([200, { object: 'response.input_tokens' }])

  for (const [method, path] of [
    ['GET', '/v1/responses/resp_1'],
    ['DELETE', '/v1/responses/resp_1'],
    ['POST', '/v1/responses/resp_1/cancel'],
  ] as const) {
    const response = await fetch(url + path, { method, headers })
    expect([path, response.status, membersOf(membersOf(await response.json()).error).code]).toEqual([
      path,
      404,
      'NOT_FOUND',
    ])
  }

  // Proxies remove the first, but not the second.
  for (const asked of [{ upgrade: 'websocket' }, { 'openai-beta': 'responses_websockets=2026-02-06' }]) {
    const upgrade = await fetch(`${url}/v1/responses`, { headers: { ...headers, ...asked } as Record<string, string> })
    expect(upgrade.status).toBe(426)
  }
})

// Bodies that cannot be understood are refused with the field named, whatever the provider's dialect, and never sent.
const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }
const called = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' }
const user = { role: 'user', content: 'go' }

describe.each(translated)('bad input, from $upstream', (pair) => {
  test.each<[body: object, param: string]>([
    [{ input: [{ type: 'Strange!' }] }, 'input[0].type'],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].id'],
    [{ input: 'go', tools: [{ type: 'Strange!' }] }, 'tools[0].type'],
    [{ input: 'go', tools: [{ type: 'mcp', server_label: 'x' }] }, 'tools[0]'],
    [{ input: [user, { ...called, call_id: undefined }] }, 'input[1].call_id'],
    [{ input: [user, { ...called, call_id: '' }] }, 'input[1].call_id'],
    [{ input: [user, called, user] }, 'input[1]'],
    [{ input: [user, { type: 'function_call_output', call_id: 'c1', output: 'x' }] }, 'input[1]'],
    [{ input: [user, called, { type: 'function_call_output', call_id: 'c2', output: 'x' }] }, 'input[2]'],
    [{ input: [user, { type: 'reasoning', summary: 5 }, user, { role: 'x' }] }, 'input[3].role'],
    [{ input: 'go', previous_response_id: 'resp_1' }, 'previous_response_id'],
    [{ input: 'go', conversation: { id: 'conv_1' } }, 'conversation'],
    [{ input: 'go', background: true }, 'background'],
    [{ input: 'go', prompt: { id: 'pmpt_1' } }, 'prompt'],
    [{ input: [{ type: 'compaction', encrypted_content: 'x' }] }, 'input'],
  ])('%j', async (body, param) => {
    const before = stage.upstream.calls.length
    const response = await stage.ask(pair, { tools: [look], ...body, stream: true })
    const { error } = membersOf(await response.json())
    expect([response.status, membersOf(error)]).toMatchObject([
      400,
      { type: 'invalid_request_error', code: 'INVALID_REQUEST', param },
    ])
    expect(stage.upstream.calls).toHaveLength(before)
  })

  test('reasoning without an answer is left out, and damaged content of ours is refused', async () => {
    stage.upstream.handle(
      answerWith((dialect) => answers[dialect]),
      'stay unasked',
    )
    const signature = writeSignature({ issuer: 'chatty/openai-chat/plain-1', blob: '[{"type":"x"}]' })
    const sealed = `tgr1.s.${stage.tags.tag(`tgr1.s.${signature}`)}.${signature}`
    const damaged = [...sealed].flatMap((_, at) => [
      sealed.slice(0, at),
      `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`,
    ])
    for (const encrypted_content of [sealed, 'tgr1.e.', ...damaged]) {
      const reasoning = { type: 'reasoning', summary: [], encrypted_content }
      const response = await stage.ask(pair, { input: [user, reasoning, user] })
      // Without our mark it is another provider's, which is left out.
      const isOurs = encrypted_content === sealed || !/^tgr1\.[se]\./.test(encrypted_content)
      const { error } = membersOf(await response.json())
      const refusal = [response.status, membersOf(error).param, membersOf(error).code]
      const forged = [400, 'input[1].encrypted_content', 'INVALID_REQUEST']
      expect([encrypted_content, ...refusal]).toEqual([
        encrypted_content,
        ...(isOurs ? [200, undefined, undefined] : forged),
      ])
    }
  })
})

test('reasoning issued to another workspace is refused, also where it would only be left out', async () => {
  stage.upstream.handle(
    answerWith((dialect) => answers[dialect]),
    'stay unasked',
  )
  const { key } = await createWallets(stage.gateway).open('5.00')
  const reasoning = { type: 'reasoning', summary: [], encrypted_content: 'tgr1.s.untagged.sig' }
  for (const pair of served) {
    const before = stage.upstream.calls.length
    const response = await stage.ask(pair, { input: [user, reasoning, user] }, { authorization: `Bearer ${key}` })
    const { error } = membersOf(await response.json())
    expect([response.status, membersOf(error).param]).toEqual([400, 'input[1].encrypted_content'])
    expect(stage.upstream.calls).toHaveLength(before)
  }
})
