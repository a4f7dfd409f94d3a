import { afterAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { startGateway } from '../parts/gateway.ts'
import {
  type ClientName,
  chatClientNames,
  createChatClient,
  createMessageClient,
  expectedException,
  isChatClient,
  messageClientNames,
  readError,
} from '../parts/official-clients.ts'

// Every error that the gateway can give today, as the exception a program has to catch. What no client can provoke yet
// is in src/kernel/failure.test.ts, a stream that breaks off in interruptions.test.ts, a drain in retries.test.ts.

const gateway = await startGateway({ env: { TOLLGATE_BODY_BYTES_MAX: '4096' } })
afterAll(() => gateway.stop())

/** As the contract has them. */
const vocabulary = {
  INVALID_REQUEST: { status: 400, chat: 'invalid_request_error', messages: 'invalid_request_error' },
  UNAUTHORIZED: { status: 401, chat: 'authentication_error', messages: 'authentication_error' },
  NOT_FOUND: { status: 404, chat: 'not_found_error', messages: 'not_found_error' },
  METHOD_NOT_ALLOWED: { status: 405, chat: 'invalid_request_error', messages: 'invalid_request_error' },
  PAYLOAD_TOO_LARGE: { status: 413, chat: 'invalid_request_error', messages: 'request_too_large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, chat: 'invalid_request_error', messages: 'invalid_request_error' },
  LIMIT_EXCEEDED: { status: 429, chat: 'rate_limit_error', messages: 'rate_limit_error' },
} as const

/** The calls that both families have. */
interface Sender {
  /** A request that would work, with some members and options changed; undefined leaves a member out. */
  send(members?: object, options?: object): PromiseLike<unknown>
  /** The same through the accumulator. */
  accumulate(members: object): PromiseLike<unknown>
  /** GET on the path of generations. */
  getIt(): PromiseLike<unknown>
}

interface Row<Subject> {
  readonly when: string
  readonly code: keyof typeof vocabulary
  readonly says: RegExp
  /** The field at fault; only the chat shape has a place for it. */
  readonly param?: string
  readonly headers?: Readonly<Record<string, string | null>>
  call(subject: Subject): PromiseLike<unknown>
}

const user = { role: 'user' as const, content: 'hi' }
const chatSender = (client: OpenAI): Sender => ({
  send: (members, options) =>
    client.chat.completions.create({ model: 'sandbox/echo', messages: [user], ...members }, options),
  accumulate: (members) =>
    client.chat.completions.stream({ model: 'sandbox/echo', messages: [user], ...members }).done(),
  getIt: () => client.get('/chat/completions'),
})
const messageSender = (client: Anthropic): Sender => ({
  send: (members, options) =>
    client.messages.create({ model: 'sandbox/echo', max_tokens: 9, messages: [user], ...members }, options),
  accumulate: (members) =>
    client.messages.stream({ model: 'sandbox/echo', max_tokens: 9, messages: [user], ...members }).done(),
  getIt: () => client.get('/v1/messages'),
})

const throttled = { 'retry-after': '12', 'retry-after-ms': '12000' }
const retry = { 'x-should-retry': 'true', 'retry-after': '4', 'retry-after-ms': '4000' }

const rows: readonly Row<Sender>[] = [
  {
    when: 'a field has the wrong type',
    code: 'INVALID_REQUEST',
    says: /`max_tokens` must be a whole number, not a string/,
    param: 'max_tokens',
    call: ({ send }) => send({ max_tokens: 'many' }),
  },
  {
    when: 'a field is empty',
    code: 'INVALID_REQUEST',
    says: /`messages` is empty/,
    param: 'messages',
    call: ({ send }) => send({ messages: [] }),
  },
  {
    when: 'the key is none of ours',
    code: 'UNAUTHORIZED',
    says: /Tollgate does not accept this key/,
    call: ({ send }) => send({}, { headers: { authorization: 'Bearer sk-wrong', 'x-api-key': null } }),
  },
  {
    when: 'the key is unknown',
    code: 'UNAUTHORIZED',
    says: /Tollgate does not accept this key/,
    call: ({ send }) => {
      const last = gateway.key.at(-1) === 'a' ? 'b' : 'a'
      return send({}, { headers: { authorization: null, 'x-api-key': gateway.key.slice(0, -1) + last } })
    },
  },
  {
    when: 'the key is missing',
    code: 'UNAUTHORIZED',
    says: /Tollgate needs an API key/,
    call: ({ send }) => send({}, { headers: { authorization: null, 'x-api-key': null } }),
  },
  {
    when: 'the model is unknown',
    code: 'NOT_FOUND',
    says: /^No model `sandbox\/nobody`/,
    param: 'model',
    call: ({ send }) => send({ model: 'sandbox/nobody' }),
  },
  {
    when: 'no route can serve',
    code: 'NOT_FOUND',
    says: /^`sandbox\/down` exists, but its provider sandbox is failing \(503 after 3 tries\)\. Retry in 4 s/,
    headers: retry,
    call: ({ send }) => send({ model: 'sandbox/down' }),
  },
  {
    when: 'no route can serve a stream',
    code: 'NOT_FOUND',
    says: /^`sandbox\/down` exists, but its provider sandbox is failing \(503 after 3 tries\)\. Retry in 4 s/,
    headers: retry,
    call: ({ accumulate }) => accumulate({ model: 'sandbox/down' }),
  },
  {
    when: 'the method is wrong',
    code: 'METHOD_NOT_ALLOWED',
    says: /GET is not served here; use POST/,
    headers: { allow: 'POST' },
    call: ({ getIt }) => getIt(),
  },
  {
    when: 'the body is too large',
    code: 'PAYLOAD_TOO_LARGE',
    says: /larger than this gateway takes/,
    call: ({ send }) => send({ messages: [{ role: 'user', content: 'x'.repeat(5000) }] }),
  },
  {
    when: 'the body is not announced as JSON',
    code: 'UNSUPPORTED_MEDIA_TYPE',
    says: /Content-Type: application\/json; got text\/plain/,
    call: ({ send }) => send({}, { headers: { 'content-type': 'text/plain' } }),
  },
  {
    when: 'every route is throttled',
    code: 'LIMIT_EXCEEDED',
    says: /Provider sandbox throttled its only route\. Retry in 12 s/,
    headers: throttled,
    call: ({ send }) => send({ model: 'sandbox/throttled' }),
  },
  {
    when: 'every route of a stream is throttled',
    code: 'LIMIT_EXCEEDED',
    says: /Provider sandbox throttled its only route\. Retry in 12 s/,
    headers: throttled,
    call: ({ accumulate }) => accumulate({ model: 'sandbox/throttled' }),
  },
]

const chatRows: readonly Row<OpenAI>[] = [
  {
    when: 'a body belongs to another API',
    code: 'INVALID_REQUEST',
    says: /`messages` is missing\./,
    param: 'messages',
    call: (client) => chatSender(client).send({ messages: undefined, prompt: 'hi' }),
  },
  {
    when: 'a body of Responses refers to something stored',
    code: 'INVALID_REQUEST',
    says: /`conversation`: conversations are not stored here/,
    param: 'conversation',
    call: (client) => chatSender(client).send({ messages: undefined, input: 'hi', conversation: 'conv_1' }),
  },
  {
    when: 'the provider refuses the request',
    code: 'INVALID_REQUEST',
    says: /^Provider sandbox refused the request \(400\): messages\[0\]: the tool result call_1 does not answer a call/,
    param: 'messages[0]',
    call: (client) => chatSender(client).send({ messages: [{ role: 'tool', tool_call_id: 'call_1', content: '' }] }),
  },
  {
    when: 'the path is unknown',
    code: 'NOT_FOUND',
    says: /POST \/v1\/chat\/completion\b.*Did you mean \/v1\/chat\/completions\?/,
    call: (client) => client.post('/chat/completion', { body: {} }),
  },
  {
    when: 'the path is another API of the vendor',
    code: 'NOT_FOUND',
    says: /POST \/v1\/images\/generations/,
    call: (client) => client.images.generate({ model: 'sandbox/echo', prompt: 'hi' }),
  },
]

const messageRows: readonly Row<Anthropic>[] = [
  {
    when: 'max_tokens is missing',
    code: 'INVALID_REQUEST',
    says: /`max_tokens` is missing/,
    call: (client) => messageSender(client).send({ max_tokens: undefined }),
  },
  {
    when: 'the version header is missing',
    code: 'INVALID_REQUEST',
    says: /`anthropic-version` is missing; send a date such as/,
    call: (client) => messageSender(client).send({}, { headers: { 'anthropic-version': null } }),
  },
  {
    when: 'the version header is no date',
    code: 'INVALID_REQUEST',
    says: /`anthropic-version` is not a date; send a date such as/,
    call: (client) => messageSender(client).send({}, { headers: { 'anthropic-version': 'latest' } }),
  },
  {
    when: 'the provider refuses the request, word for word',
    code: 'INVALID_REQUEST',
    says: /^messages\[0\]\.content\[0\]: text content blocks must contain non-whitespace text$/,
    call: (client) =>
      messageSender(client).send({ messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] }),
  },
  {
    when: 'the path is unknown',
    code: 'NOT_FOUND',
    says: /GET \/v1\/messages\/batches/,
    call: (client) => client.messages.batches.list(),
  },
  {
    when: 'the path is another API of the vendor',
    code: 'NOT_FOUND',
    says: /GET \/v1\/files/,
    call: (client) => client.beta.files.list(),
  },
]

async function expectError(name: ClientName, row: Omit<Row<never>, 'call'>, call: PromiseLike<unknown>) {
  const { status, chat, messages } = vocabulary[row.code]
  const error = await readError(name, call)
  expect(error).toMatchObject({
    exception: expectedException(name, status),
    status,
    code: row.code,
    type: isChatClient(name) ? chat : messages,
    text: expect.stringMatching(row.says),
    ...(isChatClient(name) && { param: row.param ?? null }),
  })
  // Only the message shape names the request in the body, too.
  expect(error.bodyRequestId).toBe(isChatClient(name) ? undefined : error.requestId)
  const headers = error.headers
  expect(error.requestId).toMatch(/^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  expect(headers?.get('x-request-id')).toBe(String(error.requestId))
  expect(headers?.get('request-id')).toBe(String(error.requestId))
  for (const [header, value] of Object.entries(row.headers ?? {})) expect(headers?.get(header) ?? null).toBe(value)
}

for (const name of chatClientNames) {
  describe(`${name} throws when`, () => {
    const client = () => createChatClient(name, { baseURL: `${gateway.url}/v1`, apiKey: gateway.key })
    test.each(rows)('$when', (row) => expectError(name, row, row.call(chatSender(client()))))
    test.each(chatRows)('$when', (row) => expectError(name, row, row.call(client())))
  })
}

for (const name of messageClientNames) {
  describe(`${name} throws when`, () => {
    const client = () => createMessageClient(name, { baseURL: gateway.url, apiKey: gateway.key })
    test.each(rows)('$when', (row) => expectError(name, row, row.call(messageSender(client()))))
    test.each(messageRows)('$when', (row) => expectError(name, row, row.call(client())))
  })
}
