// The official OpenAI client and LangChain on /v1/responses: what their helpers make of our answers and errors.

import { afterAll, expect, test } from 'bun:test'
import { HumanMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { openaiResponses } from '../../src/dialects/openai-responses/index.ts'
import { Failure, type FailureCode, failureTable } from '../../src/kernel/failure.ts'
import { createWallets } from '../money/wallets.ts'
import { startGateway } from '../parts/gateway.ts'

const gateway = await startGateway({ env: { TOLLGATE_BODY_BYTES_MAX: '1048576' } })
afterAll(() => gateway.stop())
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })

/** OpenAI's names; other statuses are plain APIErrors. */
const exceptionNames: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  409: 'ConflictError',
  422: 'UnprocessableEntityError',
  429: 'RateLimitError',
}
const requestId = /^req_[0-9A-HJKMNP-TV-Z]{26}$/
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const weather = { type: 'function' as const, name: 'get_weather', description: 'Weather', parameters, strict: true }

/** The types of output items are wider than those of input items. */
const sentBack = ({ output }: OpenAI.Responses.Response) => output as OpenAI.Responses.ResponseInput

test('create: text, usage, the settings of the request, and the id of the request', async () => {
  const response = await client.responses.create({ model: 'sandbox/echo', input: 'hello there', temperature: 0.5 })
  expect(response).toMatchObject({
    object: 'response',
    status: 'completed',
    model: 'sandbox/echo',
    output_text: 'hello there',
    temperature: 0.5,
    tools: [],
    error: null,
  })
  expect(response.id).toStartWith('resp_')
  expect(response._request_id).toMatch(requestId)
  expect(response.usage?.total_tokens).toBe((response.usage?.input_tokens ?? 0) + (response.usage?.output_tokens ?? 0))
})

test('stream: the accumulator ends with the whole response', async () => {
  const stream = client.responses.stream({ model: 'sandbox/think', input: 'why is it so' })
  let said = ''
  const numbers: number[] = []
  stream.on('response.output_text.delta', ({ delta }) => {
    said += delta
  })
  stream.on('event', ({ sequence_number }) => {
    numbers.push(sequence_number)
  })
  const response = await stream.finalResponse()
  expect(response.output_text).toBe('After some thought: why is it so')
  expect(said).toBe(response.output_text)
  expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
  expect(response.usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(0)
  expect(numbers).toEqual(numbers.map((_, at) => at))
})

test('parse: structured output', async () => {
  const text = { format: zodTextFormat(z.object({ city: z.string() }), 'place') }
  const response = await client.responses.parse({ model: 'sandbox/echo', input: 'where', text })
  expect(response.output_parsed).toEqual({ city: expect.any(String) })
})

test('tools: a call and its result, with the items sent back as they came', async () => {
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'What is the weather like?' }]
  const first = await client.responses.create({ model: 'sandbox/tools', input, tools: [weather] })
  const call = first.output.find((item) => item.type === 'function_call')
  expect(call).toMatchObject({ name: 'get_weather', status: 'completed' })
  input.push(...sentBack(first), { type: 'function_call_output', call_id: call?.call_id ?? '', output: 'it rains' })
  const second = await client.responses.create({ model: 'sandbox/tools', input, tools: [weather] })
  expect(second.output_text).toContain('it rains')
})

test('images and files', async () => {
  const content: OpenAI.Responses.ResponseInputContent[] = [
    { type: 'input_text', text: 'look' },
    { type: 'input_image', image_url: `data:image/png;base64,${dot}`, detail: 'auto' },
    { type: 'input_file', filename: 'a.txt', file_data: `data:text/plain;base64,${btoa('notes')}` },
  ]
  const response = await client.responses.create({ model: 'sandbox/echo', input: [{ role: 'user', content }] })
  expect(response).toMatchObject({ status: 'completed', output_text: expect.stringContaining('look') })
})

test('the reasoning of one turn is taken back in the next', async () => {
  const first = await client.responses.create({ model: 'sandbox/think', input: 'why is it so' })
  const input = [...sentBack(first), { role: 'user' as const, content: 'and then' }]
  const second = await client.responses.create({ model: 'sandbox/think', input })
  expect(second.output_text).toContain('and then')
})

/** A client of a workspace without credit. */
async function penniless(): Promise<OpenAI> {
  return client.withOptions({ apiKey: (await createWallets(gateway).open()).key })
}
const priced = { model: 'sandbox/echo', input: 'hi' }

const bad = (members: object) => client.responses.create({ model: 'sandbox/echo', input: 'hi', ...members })

test.each<[name: string, status: number, code: string, ask: () => Promise<unknown>]>([
  ['BadRequestError', 400, 'INVALID_REQUEST', () => bad({ previous_response_id: 'resp_1' })],
  [
    'AuthenticationError',
    401,
    'UNAUTHORIZED',
    () => client.withOptions({ apiKey: 'sk-tg-wrong' }).responses.create({ model: 'sandbox/echo', input: 'hi' }),
  ],
  ['NotFoundError', 404, 'NOT_FOUND', () => bad({ model: 'nobody/knows' })],
  ['NotFoundError', 404, 'NOT_FOUND', () => client.responses.retrieve('resp_1')],
  ['RateLimitError', 429, 'LIMIT_EXCEEDED', () => bad({ model: 'sandbox/throttled' })],
  ['APIError', 413, 'PAYLOAD_TOO_LARGE', () => bad({ input: 'x'.repeat(1_048_576) })],
  ['APIError', 402, 'INSUFFICIENT_BALANCE', async () => (await penniless()).responses.create(priced)],
])('an error is a %s with status %p and code %p', async (name, status, code, ask) => {
  const error = await ask().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(OpenAI.APIError)
  if (!(error instanceof OpenAI.APIError)) return
  expect([error.constructor.name, error.status, error.code]).toEqual([name, status, code])
  expect(error.requestID).toMatch(requestId)
})

/** All that have a status; a stream that breaks off ends as below. */
const codes = (Object.keys(failureTable) as FailureCode[]).filter((code) => failureTable[code].status !== undefined)

test.each(codes)('%s is its exception, with our code, message and request id', async (code) => {
  const { status = 0 } = failureTable[code]
  const failure = new Failure(code, 'What to do.')
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => {
      const headers = { 'content-type': 'application/json', 'x-request-id': 'req_1' }
      return new Response(openaiResponses.renderFailure(failure, 'req_1'), { status, headers })
    },
  })
  const broken = new OpenAI({ baseURL: `${server.url}v1`, apiKey: 'k', maxRetries: 0 })
  const error = await broken.responses.create({ model: 'a/b', input: 'hi' }).catch((thrown: unknown) => thrown)
  await server.stop(true)
  if (!(error instanceof OpenAI.APIError)) throw error
  expect([error.constructor.name, error.status, error.code, error.requestID]).toEqual([
    exceptionNames[status] ?? (status >= 500 ? 'InternalServerError' : 'APIError'),
    status,
    code,
    'req_1',
  ])
  expect(error.message).toContain('What to do.')
})

test('a huge input is refused with its limit, and one below it is answered', async () => {
  const count = 60_000
  const items = Array.from({ length: count / 100 }, () => ({ role: 'user' as const, content: 'word '.repeat(100) }))
  const response = await client.responses.create({ model: 'sandbox/echo', input: items, max_output_tokens: 16 })
  expect(response.usage?.input_tokens).toBeGreaterThanOrEqual(count)
})

test('a stream that breaks off ends as a failed response with our code', async () => {
  const stream = await client.responses.create({ model: 'sandbox/breaks-off', input: 'hello there you', stream: true })
  const events = await Array.fromAsync(stream)
  const last = events.at(-1)
  expect(last).toMatchObject({
    type: 'response.failed',
    response: { status: 'failed', error: { code: 'server_error', metadata: { code: 'STREAM_INTERRUPTED' } } },
  })
})

test('LangChain in its Responses mode: text, streams and tools', async () => {
  const options = { apiKey: gateway.key, configuration: { baseURL: `${gateway.url}/v1` }, useResponsesApi: true }
  const echo = new ChatOpenAI({ ...options, model: 'sandbox/echo' })
  expect((await echo.invoke('hello there')).text).toBe('hello there')
  let streamed = ''
  for await (const chunk of await echo.stream('hello there')) streamed += chunk.text
  expect(streamed).toBe('hello there')
  const caller = new ChatOpenAI({ ...options, model: 'sandbox/tools' }).bindTools([
    { type: 'function', function: { name: 'get_weather', description: 'Weather', parameters } },
  ])
  const { tool_calls } = await caller.invoke([new HumanMessage('What is the weather like?')])
  expect(tool_calls).toMatchObject([{ name: 'get_weather' }])
})
