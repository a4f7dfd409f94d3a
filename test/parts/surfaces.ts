// The public surfaces as a test needs them: a good request for each, written out byte by byte, and the shape its
// failures must have by the contract.

import { expect } from 'bun:test'
import type { RawResponse } from './raw-client.ts'

export interface TestSurface {
  readonly name: 'chat' | 'messages' | 'responses' | 'gemini'
  readonly path: string
  readonly model: string
  /** Beside key, type and length. */
  readonly headers: Readonly<Record<string, string>>
  /** The members of a good body, each value as raw JSON. */
  readonly members: Readonly<Record<string, string>>
}

export const chat: TestSurface = {
  name: 'chat',
  path: '/v1/chat/completions',
  model: 'test/chat',
  headers: {},
  members: { model: '"test/chat"', messages: '[{"role":"user","content":"hi"}]' },
}

export const messages: TestSurface = {
  name: 'messages',
  path: '/v1/messages',
  model: 'test/messages',
  headers: { 'anthropic-version': '2023-06-01' },
  members: { model: '"test/messages"', messages: '[{"role":"user","content":"hi"}]', max_tokens: '5' },
}

export const responses: TestSurface = {
  name: 'responses',
  path: '/v1/responses',
  model: 'test/responses',
  headers: {},
  members: { model: '"test/responses"', input: '[{"role":"user","content":"hi"}]' },
}

/** Its model and the wish for a stream are in the address: see `addressed`. */
export const gemini: TestSurface = {
  name: 'gemini',
  path: '/v1beta/models',
  model: 'test/gemini',
  headers: {},
  members: { model: '"test/gemini"', contents: '[{"role":"user","parts":[{"text":"hi"}]}]' },
}

/** Where a body goes, and what of it is sent. Tests write `model` and `stream` as members for every surface. */
export function addressed(
  surface: Pick<TestSurface, 'name' | 'path'>,
  body: string,
): { readonly path: string; readonly body: string } {
  if (surface.name !== 'gemini') return { path: surface.path, body }
  const { model, stream, ...rest } = JSON.parse(body) as { model: string; stream?: boolean }
  const verb = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  return { path: `${surface.path}/${model}:${verb}`, body: JSON.stringify(rest) }
}

/** The members of a body that tests write in the names of Chat Completions and Messages. */
export function inWordsOf({ name }: Pick<TestSurface, 'name'>, members: object): object {
  if (name === 'gemini') return inGeminiWords(members as ChatMembers)
  const names: Readonly<Record<string, string>> = { messages: 'input', max_tokens: 'max_output_tokens' }
  if (name !== 'responses') return members
  return Object.fromEntries(Object.entries(members).map(([member, value]) => [names[member] ?? member, value]))
}

interface ChatMembers {
  /** A test may send a value of a wrong type, which stays as it is. */
  readonly messages?: readonly { readonly role: string; readonly content: string }[] | string
  readonly max_tokens?: number
}

function inGeminiWords({ messages, max_tokens, ...rest }: ChatMembers): object {
  const contents =
    typeof messages === 'string'
      ? messages
      : messages?.map(({ role, content }) => ({
          role: role === 'assistant' ? 'model' : 'user',
          parts: [{ text: content }],
        }))
  return {
    ...rest,
    ...(contents && { contents }),
    ...(max_tokens !== undefined && { generationConfig: { maxOutputTokens: max_tokens } }),
  }
}

export const bothSurfaces: readonly TestSurface[] = [chat, messages]
export const allSurfaces: readonly TestSurface[] = [chat, messages, responses, gemini]

/** A body with some members changed to other raw JSON, or left out where that is undefined. */
export function bodyOf(surface: TestSurface, changed: Readonly<Record<string, string | undefined>> = {}): string {
  const members = Object.entries({ ...surface.members, ...changed }).filter(([, value]) => value !== undefined)
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

export interface RequestParts {
  readonly key: string
  readonly method?: string
  readonly target?: string
  readonly body?: Uint8Array | string
  /** Added to or, where undefined, taken from the usual ones. */
  readonly headers?: Readonly<Record<string, string | undefined>>
}

/** The bytes of a request; all of it is as usual but for what is said. */
export function requestBytes(surface: TestSurface, parts: RequestParts): Buffer {
  const { key, method = 'POST', body: written = bodyOf(surface) } = parts
  const { path, body } = typeof written === 'string' ? addressed(surface, written) : { ...surface, body: written }
  const { target = path } = parts
  const payload = Buffer.from(body)
  const headers: Record<string, string | undefined> = {
    host: 'gateway.test',
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': String(payload.length),
    ...surface.headers,
    ...parts.headers,
  }
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : `${name}: ${value}\r\n`))
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), payload])
}

/** The vocabulary as the contract has it: status, type in OpenAI's form, on the messages surface, status of google.rpc. */
const vocabulary: Readonly<Record<string, readonly [status: number, chat: string, messages: string, gemini: string]>> =
  {
    INVALID_REQUEST: [400, 'invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT'],
    UNAUTHORIZED: [401, 'authentication_error', 'authentication_error', 'UNAUTHENTICATED'],
    NOT_FOUND: [404, 'not_found_error', 'not_found_error', 'NOT_FOUND'],
    METHOD_NOT_ALLOWED: [405, 'invalid_request_error', 'invalid_request_error', 'UNIMPLEMENTED'],
    REQUEST_TIMEOUT: [408, 'invalid_request_error', 'timeout_error', 'DEADLINE_EXCEEDED'],
    UNSUPPORTED_MEDIA_TYPE: [415, 'invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT'],
    PAYLOAD_TOO_LARGE: [413, 'invalid_request_error', 'request_too_large', 'INVALID_ARGUMENT'],
    OVERLOADED: [503, 'overloaded_error', 'overloaded_error', 'UNAVAILABLE'],
    UNAVAILABLE: [503, 'server_error', 'overloaded_error', 'UNAVAILABLE'],
  }

export interface ExpectedFailure {
  readonly code: string
  /** The field at fault: `param` in OpenAI's form, and named in the message on all surfaces. */
  readonly param?: string | undefined
  /** Further text that the message must contain. */
  readonly says?: string | RegExp | undefined
}

/** Checks status, headers and body of a failure, all of it; answers with the message. */
export function expectFailure(
  surface: TestSurface,
  response: RawResponse | 'closed',
  expected: ExpectedFailure,
): string {
  if (response === 'closed') throw new Error('the connection was closed instead of an answer')
  const { code, param, says } = expected
  const [status, chatType, messagesType, geminiStatus] = vocabulary[code] ?? []
  const requestId = response.headers.get('x-request-id')
  expect(`${response.status} ${response.body}`).toStartWith(`${status} {`)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(requestId).toMatch(/^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  expect(response.headers.get('request-id')).toBe(requestId)
  const body = JSON.parse(response.body) as { error: { message: string } }
  const { message } = body.error
  const info = expect.objectContaining({ reason: code, metadata: expect.objectContaining(param ? { param } : {}) })
  const openai = { error: { message, type: chatType, param: param ?? null, code } }
  const wholes: Readonly<Record<TestSurface['name'], object>> = {
    chat: openai,
    responses: openai,
    messages: { type: 'error', error: { type: messagesType, message, code }, request_id: requestId },
    gemini: { error: { code: status, message, status: geminiStatus, details: expect.arrayContaining([info]) } },
  }
  expect<object>(body).toEqual(wholes[surface.name])
  if (param !== undefined) expect(message).toContain(param)
  if (says !== undefined) expect(message).toMatch(says)
  return message
}
