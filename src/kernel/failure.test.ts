import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import {
  type ClientName,
  chatClientNames,
  createChatClient,
  createMessageClient,
  expectedException,
  isChatClient,
  messageClientNames,
  readError,
} from '../../test/parts/official-clients.ts'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import { gemini } from '../dialects/gemini/index.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure, type FailureCode, failureTable, retryHeaders } from './failure.ts'

// The table, as the contract has it, against the dialects that render it, the clients that read it, and the page that
// explains it. The responses surface renders errors as the chat surface does.

interface Expected {
  readonly status: number | undefined
  /** A name of google.rpc.Code, by Google's mapping of HTTP statuses. */
  readonly gemini: string
  readonly chat: string
  readonly messages: string
  /** Whether official clients retry it by themselves. */
  readonly retried: boolean
}

const expected: Readonly<Record<FailureCode, Expected>> = {
  INVALID_REQUEST: row(400, 'INVALID_ARGUMENT', 'invalid_request_error'),
  POLICY_BLOCKED: { ...row(400, 'INVALID_ARGUMENT', 'content_policy_violation'), messages: 'invalid_request_error' },
  UNAUTHORIZED: row(401, 'UNAUTHENTICATED', 'authentication_error'),
  INSUFFICIENT_BALANCE: { ...row(402, 'FAILED_PRECONDITION', 'insufficient_quota'), messages: 'billing_error' },
  FORBIDDEN: row(403, 'PERMISSION_DENIED', 'permission_error'),
  NOT_FOUND: row(404, 'NOT_FOUND', 'not_found_error'),
  METHOD_NOT_ALLOWED: row(405, 'UNIMPLEMENTED', 'invalid_request_error'),
  REQUEST_TIMEOUT: {
    ...row(408, 'DEADLINE_EXCEEDED', 'invalid_request_error'),
    messages: 'timeout_error',
    retried: true,
  },
  PAYLOAD_TOO_LARGE: { ...row(413, 'INVALID_ARGUMENT', 'invalid_request_error'), messages: 'request_too_large' },
  UNSUPPORTED_MEDIA_TYPE: row(415, 'INVALID_ARGUMENT', 'invalid_request_error'),
  LIMIT_EXCEEDED: { ...row(429, 'RESOURCE_EXHAUSTED', 'rate_limit_error'), retried: true },
  INTERNAL: { ...row(500, 'INTERNAL', 'api_error'), retried: true },
  OVERLOADED: { ...row(503, 'UNAVAILABLE', 'overloaded_error'), retried: true },
  UNAVAILABLE: { ...row(503, 'UNAVAILABLE', 'server_error'), messages: 'overloaded_error', retried: true },
  POLICY_UNAVAILABLE: { ...row(503, 'UNAVAILABLE', 'server_error'), messages: 'overloaded_error', retried: true },
  STREAM_INTERRUPTED: row(undefined, 'INTERNAL', 'api_error'),
}

function row(status: number | undefined, gemini: string, type: string): Expected {
  return { status, gemini, chat: type, messages: type, retried: false }
}

const codes = Object.keys(failureTable) as FailureCode[]
const requestId = 'req_01M7EF904RE8QRFH844FE2HEQF'

test('the table is the one of the contract', () => {
  expect<string[]>(codes.toSorted()).toEqual(Object.keys(expected).toSorted())
  for (const code of codes) {
    const { status, gemini: geminiStatus, chat: chatType, messages: messagesType } = expected[code]
    expect<object>({ code, ...failureTable[code] }).toEqual({ code, status, geminiStatus, chatType, messagesType })
  }
})

const waits: readonly [retryAfterMs: number, seconds: string, milliseconds: string][] = [
  [0, '1', '1'],
  [0.2, '1', '1'],
  [999, '1', '999'],
  [1000, '1', '1000'],
  [1000.5, '2', '1001'],
  [12_000, '12', '12000'],
]

test.each(waits)('a wait of %d ms is %s whole seconds and %s ms', (retryAfterMs, seconds, milliseconds) => {
  const headers = retryHeaders(new Failure('LIMIT_EXCEEDED', 'wait', { retryAfterMs }))
  expect(headers).toEqual({ 'retry-after': seconds, 'retry-after-ms': milliseconds })
})

test('x-should-retry is sent only where the failure defines it', () => {
  expect(retryHeaders(new Failure('NOT_FOUND', 'no'))).toEqual({})
  expect(retryHeaders(new Failure('NOT_FOUND', 'no', { shouldRetry: false }))).toEqual({ 'x-should-retry': 'false' })
  expect(retryHeaders(new Failure('INSUFFICIENT_BALANCE', 'no', { shouldRetry: true, retryAfterMs: 5000 }))).toEqual({
    'retry-after': '5',
    'retry-after-ms': '5000',
    'x-should-retry': 'true',
  })
})

/** How often each address was asked. */
const asked = new Map<string, number>()

// Fails every call to /CODE/SHOULD-RETRY/CLIENT/… with that code, in the dialect of the rest of the path.
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname } = new URL(request.url)
    asked.set(pathname, (asked.get(pathname) ?? 0) + 1)
    const [, code, shouldRetry] = pathname.split('/')
    const surface = pathname.endsWith('/chat/completions') ? openaiChat : anthropicMessages
    const failure = new Failure(code as FailureCode, `What ${code} says.`, {
      retryAfterMs: 1,
      ...(shouldRetry !== 'unsaid' && { shouldRetry: shouldRetry === 'true' }),
    })
    const headers = { 'request-id': requestId, 'x-request-id': requestId, ...retryHeaders(failure) }
    if (failureTable[failure.code].status === undefined) {
      const type = 'text/event-stream; charset=utf-8'
      return new Response(surface.renderStreamFailure(failure, requestId), {
        headers: { ...headers, 'content-type': type },
      })
    }
    return new Response(surface.renderFailure(failure, requestId), {
      status: failure.status,
      headers: { ...headers, 'content-type': 'application/json' },
    })
  },
})
afterAll(() => server.stop(true))

/** A call with one retry allowed; answers with the exception and the number of tries. */
async function provoke(name: ClientName, code: FailureCode, shouldRetry: 'true' | 'false' | 'unsaid') {
  const path = `/${code}/${shouldRetry}/${encodeURIComponent(name)}`
  const baseURL = server.url.origin + path
  const error = await readError(name, isChatClient(name) ? chat(name, baseURL) : message(name, baseURL))
  return { error, tries: asked.get(`${path}${isChatClient(name) ? '/chat/completions' : '/v1/messages'}`) }
}

const user = { role: 'user' as const, content: 'hi' }
function chat(name: (typeof chatClientNames)[number], baseURL: string) {
  const client = createChatClient(name, { baseURL, apiKey: 'none', maxRetries: 1 })
  return client.chat.completions.stream({ model: 'any', messages: [user] }).finalChatCompletion()
}
function message(name: (typeof messageClientNames)[number], baseURL: string) {
  const client = createMessageClient(name, { baseURL, apiKey: 'none', maxRetries: 1 })
  return client.messages.stream({ model: 'any', max_tokens: 9, messages: [user] }).finalMessage()
}

for (const name of [...chatClientNames, ...messageClientNames]) {
  describe(name, () => {
    test.each(codes)('reads %s as its own exception, and retries what it should', async (code) => {
      const { error, tries } = await provoke(name, code, 'unsaid')
      const { status, retried, ...types } = expected[code]
      expect(error).toMatchObject({
        exception: expectedException(name, status),
        status,
        code,
        type: isChatClient(name) ? types.chat : types.messages,
        text: `What ${code} says.`,
        requestId,
      })
      expect(tries).toBe(retried ? 2 : 1)
    })

    test('obeys x-should-retry, whatever the status', async () => {
      expect((await provoke(name, 'INSUFFICIENT_BALANCE', 'true')).tries).toBe(2)
      expect((await provoke(name, 'LIMIT_EXCEEDED', 'false')).tries).toBe(1)
    })
  })
}

describe('docs/errors.md', async () => {
  const page = await Bun.file(join(import.meta.dir, '../../docs/errors.md')).text()
  const sections = new Map(
    page
      .split(/^## /m)
      .slice(1)
      .map((section) => [section.slice(0, section.indexOf('\n')), section]),
  )

  test('has one section for each code and no other', () => {
    expect(page.match(/^## .*/gm)?.toSorted()).toEqual(codes.map((code) => `## ${code}`).toSorted())
  })

  test.each(codes)('%s: says status, types and retries, and shows both bodies as they are sent', (code) => {
    const section = sections.get(code) ?? ''
    const { status, retried, ...types } = expected[code]
    const names = `chat \`${types.chat}\` · messages \`${types.messages}\` · Gemini \`${types.gemini}\``
    const line = `${status ?? 'in a stream'} · ${names} · ${retried ? '' : 'not '}retried`
    expect(section.split('\n')[1]).toBe(line)
    for (const label of ['**Cause**', '**What to do**']) expect(section).toContain(label)

    const [chatBody = '', messageBody = '', ...more] = [...section.matchAll(/^```json\n(.*)\n```$/gm)].map(
      ([, json]) => json,
    )
    expect(more).toEqual([])
    const { error } = JSON.parse(chatBody)
    const { param, metadata } = error
    const facts = { ...(param !== null && { param }), ...(metadata && { metadata }) }
    expect(openaiChat.renderFailure(new Failure(code, error.message, facts), requestId)).toBe(chatBody)
    const shown = new Failure(code, JSON.parse(messageBody).error.message, facts)
    expect(anthropicMessages.renderFailure(shown, requestId)).toBe(messageBody)
    const { error: geminiError } = JSON.parse(gemini.renderFailure(shown, requestId))
    expect(geminiError).toMatchObject({ code: status ?? 500, status: types.gemini, details: [{ reason: code }] })
  })

  test.each(codes)('%s: has its exceptions in the table', (code) => {
    const { status } = expected[code]
    const names = (['openai 7', 'anthropic 1', 'anthropic 0'] as const).map((name) => expectedException(name, status))
    const line = page
      .split('\n')
      .find((text) => text.startsWith('| ') && text.split(' | ')[0]?.includes(`${status ?? 'in a stream'}`))
    expect(line).toEndWith(`| ${names.join(' | ')} |`)
  })
})
