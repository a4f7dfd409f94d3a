// Attempts to get a text past a policy that fails closed: whatever a parser at the provider may find in the body, the
// policy must have been sent, or the request must be refused. Bodies are written byte by byte.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { allSurfaces, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy, type Tenant } from '../tenancy/tenancy.ts'
import { forbidden, policyConfig, startPolicyEndpoint } from './policy-gateway.ts'

let upstream: Upstream
let endpoint: Upstream
let tenancy: Tenancy
let tenant: Tenant
beforeAll(async () => {
  upstream = startUpstream(answerHello)
  endpoint = startPolicyEndpoint()
  tenancy = await startTenancy({ config: policyConfig(upstream.url, endpoint.url, 'request') })
  tenant = await tenancy.tenant({ credit: '10' })
})
afterAll(async () => {
  await tenancy[Symbol.asyncDispose]()
  upstream.stop()
  endpoint.stop()
})

const paths: Readonly<Record<TestSurface['name'], string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  gemini: '/v1beta/models/judge/gemini:generateContent',
}

const send = (name: TestSurface['name'], body: string, headers: Readonly<Record<string, string>> = {}) =>
  sendTo(paths[name], body, headers)
const sendTo = (path: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(tenancy.gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${tenant.key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body,
  })

const escaped = forbidden.replaceAll('-', '\\u002d')
const base64 = Buffer.from(`the key is ${forbidden}`).toString('base64')
/** `members`: beside the model. */
const chat = (members: string) => `{"model":"judge/chat",${members}}`
const hi = '"messages":[{"role":"user","content":"hi"}]'
const messages = (members: string) => `{"model":"judge/messages","max_tokens":50,${members}}`
const responses = (members: string) => `{"model":"judge/responses",${members}}`
const called = (args: string) =>
  `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":${JSON.stringify(args)}}}]},{"role":"tool","tool_call_id":"c1","content":"x"}]`
const used = (input: string) =>
  `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}]`

const evasions: readonly [how: string, surface: TestSurface['name'], body: string][] = [
  ['a second content before', 'chat', chat(`"messages":[{"role":"user","content":"${forbidden}","content":"hi"}]`)],
  ['a second content behind', 'chat', chat(`"messages":[{"role":"user","content":"hi","content":"${forbidden}"}]`)],
  [
    'a second content by another spelling of its name',
    'chat',
    chat(`"messages":[{"role":"user","\\u0063ontent":"${forbidden}","content":"hi"}]`),
  ],
  ['a second list of messages', 'chat', chat(`"messages":[{"role":"user","content":"${forbidden}"}],${hi}`)],
  ['a second member of metadata', 'chat', chat(`"metadata":{"a":"${forbidden}","a":"b"},${hi}`)],
  [
    'a second description in a schema',
    'chat',
    chat(
      `"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object","description":"${forbidden}","description":"b"}}}],${hi}`,
    ),
  ],
  ['a second member of an unknown field', 'chat', chat(`"unheard_of":{"a":{"b":"${forbidden}"},"a":"b"},${hi}`)],
  [
    'a name in a value that is hidden by a second one',
    'chat',
    chat(
      `"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"${forbidden}":{}},"properties":{}}}}],${hi}`,
    ),
  ],
  [
    'an object with thousands of members',
    'chat',
    chat(
      `"metadata":{${Array.from({ length: 5000 }, (_, i) => `"m${i}":"x"`).join()},"a":"${forbidden}","a":"b"},${hi}`,
    ),
  ],
  ['a member called type', 'chat', chat(`"metadata":{"type":"${forbidden}"},${hi}`)],
  ['a member called role', 'chat', chat(`"metadata":{"role":"${forbidden}"},${hi}`)],
  ['a member called model', 'chat', chat(`"metadata":{"model":"${forbidden}"},${hi}`)],
  ['the name of a member', 'chat', chat(`"metadata":{"${forbidden}":"x"},${hi}`)],
  [
    'the name of a property',
    'chat',
    chat(
      `"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"${forbidden}":{}}}}}],${hi}`,
    ),
  ],
  ['an escape in a text', 'chat', chat(`"messages":[{"role":"user","content":"${escaped}"}]`)],
  ['escapes in the arguments of a call', 'chat', chat(called(`{"a":"${escaped}"}`))],
  ['an escaped name in the arguments of a call', 'chat', chat(called(`{"${escaped}":1}`))],
  ['a second member in the arguments of a call', 'chat', chat(called(`{"a":"${forbidden}","a":"b"}`))],
  [
    'a file of text',
    'chat',
    chat(
      `"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,${base64}"}}]}]`,
    ),
  ],
  [
    'an image of text',
    'chat',
    chat(
      `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:text/plain;base64,${base64}"}}]}]`,
    ),
  ],
  [
    'the refusal of an earlier answer',
    'chat',
    chat(
      `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"refusal":"${forbidden}"},{"role":"user","content":"go"}]`,
    ),
  ],
  [
    'reasoning of an earlier answer',
    'chat',
    chat(
      `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"a","reasoning_content":"${forbidden}"},{"role":"user","content":"go"}]`,
    ),
  ],
  [
    'a cache marker',
    'chat',
    chat(
      `"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"${forbidden}"}}]}]`,
    ),
  ],
  ['the end user', 'chat', chat(`"user":"${forbidden}",${hi}`)],
  ['the key of a prompt cache', 'chat', chat(`"prompt_cache_key":"${forbidden}",${hi}`)],
  [
    'a schema of the answer',
    'chat',
    chat(
      `"response_format":{"type":"json_schema","json_schema":{"name":"a","description":"${forbidden}","schema":{"type":"object"}}},${hi}`,
    ),
  ],
  [
    'a name of a member in a body that cannot be translated',
    'chat',
    chat(`"messages":[{"role":"user","content":[{"type":"unheard_of","words":{"${forbidden}":1}}]}]`),
  ],
  ['escapes in the input of a call', 'messages', messages(used(`{"a":"${escaped}"}`))],
  ['an escaped name in the input of a call', 'messages', messages(used(`{"${escaped}":1}`))],
  ['a second member in the input of a call', 'messages', messages(used(`{"a":"${forbidden}","a":"b"}`))],
  [
    'a second system prompt in a block',
    'messages',
    messages(`"system":[{"type":"text","text":"${forbidden}","text":"b"}],${hi}`),
  ],
  [
    'a document of text',
    'messages',
    messages(
      `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"${forbidden}"}},{"type":"text","text":"x"}]}]`,
    ),
  ],
  [
    'a document of text in base64',
    'messages',
    messages(
      `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"text/plain","data":"${base64}"}},{"type":"text","text":"x"}]}]`,
    ),
  ],
  [
    'a document of blocks',
    'messages',
    messages(
      `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"${forbidden}"}]}},{"type":"text","text":"x"}]}]`,
    ),
  ],
  [
    'thinking of an earlier answer',
    'messages',
    messages(
      `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"thinking","thinking":"${forbidden}","signature":"c2ln"},{"type":"text","text":"a"}]},{"role":"user","content":"go"}]`,
    ),
  ],
  [
    'sealed thinking of an earlier answer',
    'messages',
    messages(
      `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"${forbidden}"},{"type":"text","text":"a"}]},{"role":"user","content":"go"}]`,
    ),
  ],
  ['the id of the end user', 'messages', messages(`"metadata":{"user_id":"${forbidden}"},${hi}`)],
  [
    'the name of a member of a result',
    'messages',
    messages(
      `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"search_result","source":"s","title":"${forbidden}","content":[{"type":"text","text":"x"}]}]}]}]`,
    ),
  ],
  [
    'escapes in the arguments of a call',
    'responses',
    responses(
      `"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"c1","name":"read","arguments":${JSON.stringify(`{"a":"${escaped}"}`)}},{"type":"function_call_output","call_id":"c1","output":"x"}]`,
    ),
  ],
  [
    'the input of a custom call',
    'responses',
    responses(
      `"input":[{"role":"user","content":"go"},{"type":"custom_tool_call","call_id":"c1","name":"read","input":"${forbidden}"},{"type":"custom_tool_call_output","call_id":"c1","output":"x"}]`,
    ),
  ],
  [
    'a summary of reasoning',
    'responses',
    responses(
      `"input":[{"role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"${forbidden}"}],"encrypted_content":"eA=="},{"role":"user","content":"go"}]`,
    ),
  ],
  [
    'sealed reasoning',
    'responses',
    responses(
      `"input":[{"role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"${forbidden}"},{"role":"user","content":"go"}]`,
    ),
  ],
  [
    'a file of text',
    'responses',
    responses(
      `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,${base64}"}]}]`,
    ),
  ],
  [
    'a second text of a part',
    'responses',
    responses(`"input":[{"role":"user","content":[{"type":"input_text","text":"${forbidden}","text":"b"}]}]`),
  ],
  [
    'a compaction',
    'responses',
    responses(
      `"input":[{"type":"compaction","id":"cmp_1","encrypted_content":"${forbidden}"},{"role":"user","content":"go"}]`,
    ),
  ],
  [
    'the header of a server of tools',
    'responses',
    responses(
      `"tools":[{"type":"mcp","server_label":"a","server_url":"https://a.example","headers":{"x-a":"${forbidden}"}}],"input":"hi"`,
    ),
  ],
  [
    'the variables of a kept prompt',
    'responses',
    responses(`"prompt":{"id":"p","variables":{"a":"${forbidden}"}},"input":"hi"`),
  ],
  [
    'the other spelling of a name',
    'gemini',
    `{"systemInstruction":{"parts":[{"text":"a"}]},"system_instruction":{"parts":[{"text":"${forbidden}"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
  ],
  ['a second text of a part', 'gemini', `{"contents":[{"role":"user","parts":[{"text":"${forbidden}","text":"hi"}]}]}`],
  [
    'inline data of text',
    'gemini',
    `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"text/plain","data":"${base64}"}},{"text":"hi"}]}]}`,
  ],
  [
    'escapes in the arguments of a call',
    'gemini',
    `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"read","args":{"a":"${escaped}"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"x"}}}]}]}`,
  ],
  [
    'escapes in a result',
    'gemini',
    `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"a":["${escaped}"]}}}]}]}`,
  ],
  [
    'an escaped name in a result',
    'gemini',
    `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"${escaped}":1}}}]}]}`,
  ],
  ['a label', 'gemini', `{"labels":{"a":"${forbidden}"},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`],
  [
    'code that was executed',
    'gemini',
    `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"${forbidden}"}}]},{"role":"user","parts":[{"text":"go"}]}]}`,
  ],
]

test('the cases cover every API', () => {
  expect(new Set(evasions.map(([, surface]) => surface))).toEqual(new Set(allSurfaces.map(({ name }) => name)))
})

test.each(evasions)('L8: nothing is sent with the text in %s, on %s', async (_, surface, body) => {
  const before = upstream.calls.length
  const response = await send(surface, body)
  expect(`${response.status} ${await response.text()}`).toMatch(/^400 /)
  expect(upstream.calls).toHaveLength(before)
})

test.each(['anthropic-beta', 'anthropic-note'])('nothing is sent with the text in the header %s', async (name) => {
  const before = upstream.calls.length
  const response = await send('messages', messages(hi), { [name]: `a-beta, ${forbidden}` })
  expect(`${response.status} ${await response.text()}`).toMatch(/^400 .*POLICY_BLOCKED/)
  expect(upstream.calls).toHaveLength(before)
})

const said = `{"role":"user","content":"${forbidden}"}`
const parts = `"parts":[{"text":"${forbidden}"}]`
const doors: readonly [path: string, body: string][] = [
  ['/v1/v1/chat/completions', chat(`"messages":[${said}]`)],
  ['/chat/completions', chat(`"messages":[${said}]`)],
  // As Cursor sends it.
  ['/v1/chat/completions', chat(`"input":[${said}]`)],
  ['/v1/messages?beta=true', messages(`"messages":[${said}]`)],
  ['/v1/messages/count_tokens', messages(`"messages":[${said}]`)],
  ['/v1/responses/compact', responses(`"input":[${said}]`)],
  ['/v1/responses/compact', `{"model":"judge/chat","input":[${said}]}`],
  ['/v1/responses/input_tokens', responses(`"input":[${said}]`)],
  ['/v1/embeddings', `{"model":"judge/embed","input":"${forbidden}"}`],
  ['/v1/embeddings', `{"model":"judge/embed","input":"a","user":"${forbidden}"}`],
  ['/v1beta/models/judge/gemini:streamGenerateContent', `{"contents":[{"role":"user",${parts}}]}`],
  ['/v1beta/models/judge/gemini:streamGenerateContent?alt=sse', `{"contents":[{"role":"user",${parts}}]}`],
  ['/v1beta/judge/gemini:generateContent', `{"contents":[{"role":"user",${parts}}]}`],
  ['/v1beta/models/judge/gemini:countTokens', `{"contents":[{"role":"user",${parts}}]}`],
  ['/v1beta/models/judge/gemini:countTokens', `{"generateContentRequest":{"contents":[{"role":"user",${parts}}]}}`],
  ['/v1beta/models/judge/embed:embedContent', `{"content":{${parts}}}`],
  ['/v1beta/models/judge/embed:embedContent', `{"title":"${forbidden}","content":{"parts":[{"text":"a"}]}}`],
  [
    '/v1beta/models/judge/embed:batchEmbedContents',
    `{"requests":[{"model":"models/judge/embed","content":{${parts}}}]}`,
  ],
]
test.each(doors)('nothing is sent by POST %s', async (path, body) => {
  const before = upstream.calls.length
  const response = await sendTo(path, body)
  const text = `${response.status} ${await response.text()}`
  // An estimate of tokens, for which nothing is sent.
  if (!text.includes('POLICY_BLOCKED')) expect(text).toMatch(/^(404|200 .*okens)/s)
  expect(upstream.calls).toHaveLength(before)
})
