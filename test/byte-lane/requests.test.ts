// The request side of the byte lane: what the provider receives is what the client sent, byte for byte, but for the
// edits written beside each body.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { gemini } from '../../src/dialects/gemini/index.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { post as postTo } from '../parts/ask.ts'
import { geminiConfig, startGateway, stopAll } from '../parts/gateway.ts'
import { startUpstream, type UpstreamCall } from '../parts/upstream.ts'

/** A text in the client's body, and the provider's text in its place; each occurs once. */
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

const files = 'https://generativelanguage.googleapis.com/v1beta/files'

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

/** Members beside the contents, and what the provider gets; the model is in the URL. */
const geminiBodies: readonly Sent[] = [
  {
    says: 'odd order and spaces, signatures, unknown names inside calls and results',
    body: '\n{ "generationConfig" : { "maxOutputTokens" : 1.2e1 , "seed":7 } ,\t"contents":[ {"role":"user","parts":[{"text":"hé 😀 \\/"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{"model":"test","n":1.0,"big":12345678901234567890}},"thoughtSignature":"EqQB+/=="}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"file":{"uri":"x"}}}}]} ]\r\n}\n ',
    edits: [],
  },
  {
    says: 'safety settings, a schema in Google’s form, tools and an escaped text',
    body: '{"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"contents":[{"parts":[{"text":"fileData \\u003cb\\u003e"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"STRING"},"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true},"maxOutputTokens":5},"serviceTier":"flex","systemInstruction":{"parts":[{"text":"be brief"}]}}',
    edits: [],
  },
  {
    says: 'no settings',
    body: '{"contents":[{"parts":[{"text":"hi"}]}] }',
    edits: [['}] }', '}],"generationConfig":{"maxOutputTokens":4096} }']],
  },
  {
    says: 'settings of null',
    body: '{"generationConfig":null,"contents":[{"parts":[{"text":"hi"}]}]}',
    edits: [['null', '{"maxOutputTokens":4096}']],
  },
  {
    says: 'no cap',
    body: '{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{ "topK":1 }}',
    edits: [['"topK":1 }', '"topK":1,"maxOutputTokens":4096 }']],
  },
  {
    says: 'no cap in empty settings',
    body: '{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{ }}',
    edits: [['{ }', '{"maxOutputTokens":4096 }']],
  },
  {
    says: 'a cap above the model’s',
    body: '{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":9000}}',
    edits: [['9000', '8000']],
  },
  {
    says: 'a cap above the model’s in the other spelling',
    body: '{"contents":[{"parts":[{"text":"hi"}]}], "generation_config" : { "max_output_tokens" : 9000 }}',
    edits: [
      ['"generation_config" : ', '"generationConfig":'],
      ['"max_output_tokens" : 9000', '"maxOutputTokens":8000'],
    ],
  },
  {
    says: 'the names of Google’s Python client, and the same names in JSON of the caller',
    body: '{"contents":[{"parts":[{"text":"\\"top_p\\""}]},{"role":"model","parts":[{"function_call":{"name":"f","args":{"top_p":1.0}},"thought_signature":"EqQB"}]},{"parts":[{"functionResponse":{"name":"f","response":{"top_p":2}}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters_json_schema":{"type":"object","properties":{"top_p":{"max_items":3}}}},{"name":"g","parameters":{"properties":{"top_p":{"max_items":"3"}}}}]}],"generationConfig":{"maxOutputTokens":5,"top_p":0.5}}',
    edits: [
      ['function_call', 'functionCall'],
      ['thought_signature', 'thoughtSignature'],
      ['parameters_json_schema', 'parametersJsonSchema'],
      ['"max_items":"3"', '"maxItems":"3"'],
      ['"top_p":0.5', '"topP":0.5'],
    ],
  },
  {
    says: 'an image',
    body: '{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}],"generationConfig":{"maxOutputTokens":5}}',
    edits: [],
  },
]

/** Translated or refused, because the operator would pay for it or it belongs to the operator's account. */
const geminiSuspects: readonly (readonly [says: string, members: string, status: 200 | 400])[] = [
  ['a cache in the other spelling', '"contents":[C],"cached_content":"cachedContents/1"', 400],
  ['an uploaded file', `"contents":[C,{"parts":[{"fileData":{"fileUri":"${files}/1"}}]}]`, 400],
  ['an uploaded file in the other spelling', `"contents":[{"parts":[{"file_data":{"file_uri":"${files}/1"}}]}]`, 400],
  [
    'an uploaded file with letters escaped',
    `"contents":[{"parts":[{"f\\u0069leData":{"fileUri":"${files}/1"}}]}]`,
    400,
  ],
  [
    'an uploaded file as an instruction',
    `"contents":[C],"systemInstruction":{"parts":{"fileData":{"fileUri":"${files}/1"}}}`,
    400,
  ],
  [
    'an uploaded file in a result',
    `"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f","response":{},"parts":[{"fileData":{"fileUri":"${files}/1"}}]}}]}]`,
    400,
  ],
  ['a search', '"contents":[C],"tools":[{"googleSearch":{}}]', 200],
  ['a search in the other spelling', '"contents":[C],"tools":[{"google_search":{}}]', 200],
  ['code that Google runs', '"contents":[C],"tools":[{"functionDeclarations":[]},{"codeExecution":{}}]', 400],
  ['tools without a list', '"contents":[C],"tools":{"codeExecution":{}}', 400],
  ['pictures to be made', '"contents":[C],"generationConfig":{"responseModalities":["IMAGE"]}', 400],
  ['labels of the operator’s bill', '"contents":[C],"labels":{"a":"b"}', 200],
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
    const candidates = [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP' }]
    return await reply.json(200, { type: 'message', choices, content: [], stop_reason: 'end_turn', candidates })
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
const flex = 'tiers: { flex: { input: "0.50", output: "1.00" } }'
const gateway = await startGateway({ config: geminiConfig(upstream.url).replaceAll('"2.00" }', `"2.00", ${flex} }`) })

beforeEach(() => {
  upstream.calls.length = 0
})

afterAll(() => stopAll(gateway, upstream))

async function post(path: string, body: string, headers: Record<string, string> = {}): Promise<UpstreamCall> {
  const response = await postTo(gateway, path, body, { 'anthropic-version': '2023-06-01', ...headers })
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

  test.each(messagesBodies)('on the messages surface: $says', async (sent) => {
    const call = await post('/v1/messages', sent.body)
    expect(new TextDecoder().decode(call.body)).toBe(edited(sent))
  })

  test.each(geminiBodies)('on Gemini’s surface: $says', async (sent) => {
    const call = await post('/v1beta/models/test/gemini:generateContent', sent.body)
    expect(call.path).toBe('/v1beta/models/upstream-gemini-1:generateContent')
    expect(new TextDecoder().decode(call.body)).toBe(edited(sent))
  })

  test.each(geminiSuspects)('on Gemini’s surface never as it is: %s', async (_, members, status) => {
    const body = `{${members.replace('C', '{"parts":[{"text":"hi"}]}')}}`
    const response = await fetch(`${gateway.url}/v1beta/models/test/gemini:generateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': gateway.key, 'content-type': 'application/json' },
      body,
    })
    expect(`${response.status} ${await response.text()}`).toStartWith(String(status))
    const sent = upstream.calls.map((call) => Object.keys(call.json()).sort().join())
    // The rest of it: the contents, and the cap of the model.
    expect(sent).toEqual(status === 200 ? ['contents,generationConfig'] : [])
    if (status === 200) {
      expect(upstream.calls[0]?.json().generationConfig).toEqual({ maxOutputTokens: 4096 })
      expect(response.headers.get('x-tollgate-warnings')).not.toBeNull()
    }
  })

  test('a history with reasoning of another model is translated', async () => {
    const own = Buffer.from('tgs1[{"text":"hm","signature":"c2ln"}]').toString('base64')
    const body = `{"contents":[{"role":"model","parts":[{"text":"hi","thoughtSignature":"${own}"}]},{"parts":[{"text":"hi"}]}]}`
    const call = await post('/v1beta/models/test/gemini:generateContent', body)
    expect(new TextDecoder().decode(call.body)).not.toContain('thoughtSignature')
  })

  test('a host that refuses ids gets none', () => {
    const body =
      '{"contents":[{"parts":[{"functionCall":{"id":"a","name":"f","args":{"id":1}}},{"functionResponse":{"name":"f", "id" : "a"}}]}]}'
    const envelope = gemini.readEnvelope(new TextEncoder().encode(body), new Headers())
    if (envelope instanceof Failure) throw new Error(envelope.message)
    const rules = { upstreamModel: 'up', defaultOutputCap: undefined, rules: { toolIdMax: 0 } }
    expect(new TextDecoder().decode(gemini.editRequest(envelope, rules).body)).toBe(
      '{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"id":1}}},{"functionResponse":{"name":"f"}}]}]}',
    )
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

  test('on the messages surface holds it too, and every anthropic- header', async () => {
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
