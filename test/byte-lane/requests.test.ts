// The request side of the byte lane: what the provider receives is what the client sent, byte for byte, but for the
// edits written beside each body.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { startUpstream, type UpstreamCall } from '../parts/upstream.ts'

/** What stands in the client's body, and what the provider gets in its place; each occurs once. */
type Edit = readonly [from: string, to: string]

type CapName = 'max_tokens' | 'max_completion_tokens'

interface Sent {
  readonly says: string
  readonly body: string
  readonly edits: readonly Edit[]
}

const model: Edit = ['"test/chat"', '"upstream-chat-1"']
const user = '"messages":[{"role":"user","content":"hi"}]'
const usageAsked = '"stream_options":{"include_usage":true}'

/** A streamed body whose stream_options are as given; only the model and they change. */
function withOptions(options: string, upstreamOptions: string): Sent {
  const text = `"stream_options":${options}`
  return {
    says: `stream_options ${options}`,
    body: `{"model":"test/chat","stream":true,${text},${user},"max_tokens":5}`,
    edits: text === upstreamOptions ? [model] : [model, [text, upstreamOptions]],
  }
}

const chatBodies: readonly Sent[] = [
  {
    says: 'odd order and spaces',
    body: '\n{ "stream" : false ,\n\t"messages":[ {"content":"hé 😀 \\u00e9\\/","role":"user"} ] , "model" : "test/chat" , "max_tokens": 7\r\n}\n ',
    edits: [model],
  },
  {
    says: 'unknown fields and numbers in any spelling',
    body: `{"seed":123456789012345678901234567890,"temperature":1.0,"top_p":1e0,"logit_bias":{"50256":-1E+2,"1":-0},"x_new":[null,{"a":[]}],"9":9,"1":1,${user},"max_tokens":1.2e1,"model":"test/chat"}`,
    edits: [model],
  },
  {
    says: 'other members of the same names further in',
    body: `{"messages":[{"role":"user","content":"\\"model\\":\\"x\\"","model":"a","stream":true,"max_tokens":1}],"metadata":{"model":"b","stream_options":{}},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"model":{"type":"string"},"constructor":{},"__proto__":{}}}}}],"model":"test/chat","max_tokens":9}`,
    edits: [model],
  },
  { says: 'an escaped name', body: `{"mod\\u0065l":"test/chat",${user},"max_tokens":5}`, edits: [model] },
  {
    says: 'an escaped value',
    body: `{"model":"test\\/ch\\u0061t",${user},"max_tokens":5}`,
    edits: [['"test\\/ch\\u0061t"', '"upstream-chat-1"']],
  },
  {
    says: 'no cap',
    body: `{"model":"test/chat",${user} }`,
    edits: [model, [`${user} }`, `${user},"max_tokens":4096 }`]],
  },
  {
    says: 'a cap of null',
    body: `{"max_tokens":null,"model":"test/chat",${user}}`,
    edits: [model, ['"max_tokens":null', '"max_tokens":4096']],
  },
  {
    says: 'a cap of null under the newer name',
    body: `{"model":"test/chat","max_completion_tokens":null,${user}}`,
    edits: [model, ['"max_completion_tokens":null', '"max_completion_tokens":4096']],
  },
  {
    says: 'a cap under the newer name',
    body: `{"model":"test/chat","max_completion_tokens":11,${user}}`,
    edits: [model],
  },
  {
    says: 'caps under both names',
    body: `{"model":"test/chat","max_completion_tokens":11,"max_tokens":12,${user}}`,
    edits: [model, ['"max_completion_tokens":11,"max_tokens":12', '"max_completion_tokens":11']],
  },
  {
    says: 'a stream without options or cap',
    body: `{"stream":true,${user},"model":"test/chat"}\n`,
    edits: [['"model":"test/chat"}', `"model":"upstream-chat-1","max_tokens":4096,${usageAsked}}`]],
  },
  withOptions('null', usageAsked),
  withOptions('{}', usageAsked),
  withOptions('{"include_usage":false}', usageAsked),
  withOptions('{"include_usage":null}', usageAsked),
  withOptions('{"include_usage":true}', usageAsked),
  withOptions(
    '{ "include_obfuscation" : false }',
    '"stream_options":{ "include_obfuscation" : false,"include_usage":true }',
  ),
  {
    says: 'stream_options without a stream',
    body: `{"model":"test/chat","stream":false,"stream_options":{"include_usage":false},${user},"max_tokens":5}`,
    edits: [model],
  },
  { says: 'a stream of null', body: `{"model":"test/chat","stream":null,${user},"max_tokens":5}`, edits: [model] },
]

const messagesModel: Edit = ['"test/messages"', '"upstream-messages-1"']

const messagesBodies: readonly Sent[] = [
  {
    says: 'thinking, cache marks, betas and a cap of zero',
    body: '{"max_tokens":0,"system":[{"type":"text","text":"x-anthropic-billing-header: a","cache_control":{"type":"ephemeral","ttl":"1h"}}],"model":"test/messages","thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"messages":[{"role":"user","content":[{"type":"text","text":"\\ud83d\\ude00 é"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"…","signature":"EqQB+/=="},{"type":"tool_use","id":"toolu_1","name":"f","input":{"model":"test","n":1.0,"big":12345678901234567890}}]}],"metadata":{"user_id":null}}',
    edits: [messagesModel],
  },
  {
    says: 'a stream, spaces and an escaped name',
    body: '{ "messages" : [ { "role":"user", "content":"hi" } ], "m\\u006fdel" : "test/messages", "stream":true, "max_tokens" : 1E1 }\n',
    edits: [messagesModel],
  },
]

function edited({ body, edits }: Sent): string {
  return edits.reduce((text, [from, to]) => {
    expect(text.split(from)).toHaveLength(2)
    return text.replace(from, () => to)
  }, body)
}

const upstream = startUpstream(async (call, reply) => {
  if (call.path.endsWith('/count_tokens')) return await reply.json(200, { input_tokens: 3 })
  if (!call.json().stream) {
    const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }]
    return await reply.json(200, { type: 'message', choices, content: [], stop_reason: 'end_turn' })
  }
  await reply.startStream()
  const isChat = call.path.endsWith('/chat/completions')
  await reply.chunk(
    isChat
      ? 'data: {"choices":[{"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n'
      : 'event: content_block_delta\ndata: {}\n\nevent: message_stop\ndata: {}\n\n',
  )
  await reply.finish()
})
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })

beforeEach(() => {
  upstream.calls.length = 0
})

afterAll(() => stopAll(gateway, upstream))

async function post(path: string, body: string, headers: Record<string, string> = {}): Promise<UpstreamCall> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body,
  })
  expect(`${response.status} ${await response.text()}`).toStartWith('200')
  const [call, ...more] = upstream.calls
  if (!call || more.length > 0) throw new Error(`${upstream.calls.length} upstream calls`)
  return call
}

describe('the body the provider receives', () => {
  test.each(chatBodies)('on the chat surface: $says', async (sent) => {
    const call = await post('/v1/chat/completions', sent.body)
    expect(new TextDecoder().decode(call.body)).toBe(edited(sent))
  })

  test.each(messagesBodies)('on the message surface: $says', async (sent) => {
    const call = await post('/v1/messages', sent.body)
    expect(new TextDecoder().decode(call.body)).toBe(edited(sent))
  })

  test('for a token count: the same, without a cap', async () => {
    const call = await post('/v1/messages/count_tokens', `{ "model":"test/messages",${user}, "x":1.0 }`)
    expect(call.path).toBe('/v1/messages/count_tokens')
    expect(new TextDecoder().decode(call.body)).toBe(`{ "model":"upstream-messages-1",${user}, "x":1.0 }`)
  })
})

describe('a host that knows one name of the cap', () => {
  const rows: readonly [says: string, body: string, capName: CapName, expected: string][] = [
    ['is sent the other one renamed', '{"max_tokens" : 5,M}', 'max_completion_tokens', '{"max_completion_tokens":5,M}'],
    ['is sent the newer one renamed', '{M,"max_completion_tokens":5}', 'max_tokens', '{M,"max_tokens":5}'],
    ['is sent its own as it is', '{M,"max_tokens": 5.0}', 'max_tokens', '{M,"max_tokens": 5.0}'],
    ['is sent the default under it', '{M}', 'max_completion_tokens', '{M,"max_completion_tokens":4096}'],
    [
      'is sent the default for null',
      '{M,"max_tokens":null}',
      'max_completion_tokens',
      '{M,"max_completion_tokens":4096}',
    ],
  ]
  test.each(rows)('%s', (_, body, outputCapName, expected) => {
    const whole = (text: string, id: string) => text.replace('M', `"model":"${id}",${user}`)
    const envelope = openaiChat.readEnvelope(new TextEncoder().encode(whole(body, 'a/b')), new Headers())
    if (envelope instanceof Failure) throw new Error(envelope.message)
    const { body: sent } = openaiChat.editRequest(envelope, {
      upstreamModel: 'up',
      defaultOutputCap: 4096,
      rules: { outputCapName },
    })
    expect(new TextDecoder().decode(sent)).toBe(whole(expected, 'up'))
  })
})

describe('the head the provider receives', () => {
  const private_ = {
    cookie: 'session=1',
    'x-stainless-lang': 'js',
    'openai-organization': 'org-1',
    'user-agent': 'SDK/1',
  }

  test("on the chat surface holds the operator's credential and nothing of the client's", async () => {
    const body = `{"model":"test/chat",${user}}`
    const call = await post('/v1/chat/completions?beta=true', body, { ...private_, 'x-api-key': gateway.key })
    expect(call.path).toBe('/v1/chat/completions')
    expect(call.headers.get('authorization')).toBe('Bearer upstream-secret-chat')
    expect(call.headers.get('content-type')).toBe('application/json')
    expect(call.headers.get('accept-encoding')).toBe('identity')
    for (const name of ['x-api-key', 'anthropic-version', 'cookie', 'x-stainless-lang', 'openai-organization']) {
      expect(call.headers.get(name)).toBeNull()
    }
    expect([...call.headers.values()].join()).not.toContain(gateway.key)
    expect(call.headers.get('user-agent')).not.toBe('SDK/1')
  })

  test('on the message surface holds it too, and every anthropic- header', async () => {
    const body = `{"model":"test/messages","max_tokens":5,${user}}`
    const call = await post('/v1/messages?beta=true', body, {
      ...private_,
      'x-api-key': gateway.key,
      'anthropic-beta': 'context-1m-2025-08-07,of-tomorrow-2099-01-01',
      'anthropic-workspace-id': 'wrkspc_1',
    })
    expect(call.path).toBe('/v1/messages')
    expect(call.headers.get('x-api-key')).toBe('upstream-secret-messages')
    expect(call.headers.get('authorization')).toBeNull()
    expect(call.headers.get('anthropic-beta')).toBe('context-1m-2025-08-07,of-tomorrow-2099-01-01')
    expect(call.headers.get('anthropic-workspace-id')).toBe('wrkspc_1')
    expect([...call.headers.values()].join()).not.toContain(gateway.key)
    for (const name of ['cookie', 'x-stainless-lang', 'openai-organization']) expect(call.headers.get(name)).toBeNull()
  })

  const versions: readonly [sent: string, received: string][] = [
    ['2023-06-01', '2023-06-01'],
    ['2026-10-21', '2026-10-21'],
    ['2025-01-01', '2023-06-01'],
    ['2099-12-31', '2026-10-21'],
    ['2021-01-01', '2023-06-01'],
  ]
  test.each(versions)('of a client that says version %s says version %s', async (sent, received) => {
    const body = `{"model":"test/messages","max_tokens":5,${user}}`
    const call = await post('/v1/messages', body, { 'anthropic-version': sent })
    expect(call.headers.get('anthropic-version')).toBe(received)
  })
})
