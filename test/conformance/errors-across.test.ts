// A provider's refusal on either surface, from either dialect, streamed or whole: the status and code of the vocabulary,
// and the words that programs look for.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { connect } from '../parts/raw-client.ts'
import { bodyOf, bothSurfaces, chat, messages, requestBytes, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamReply } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

/** A day passes between two tests: what was learned of the providers' health is over. */
const clock = createJumpClock()

const upstream = startUpstream(() => {})
const price = 'price: free'
const gateway = await startGateway({
  config: upstreamConfig(
    upstream.url,
    `  - { id: test/both, ${price}, routes: [{ provider: chatty, model: first, priority: 1 }, { provider: messy, model: second, priority: 2 }] }
  - { id: test/twice, ${price}, routes: [{ provider: chatty, model: first, priority: 1 }, { provider: chatty, model: second, priority: 2 }] }
`,
  ),
  clock,
})
beforeEach(() => clock.jump(86_400))
afterAll(() => stopAll(gateway, upstream))

interface Refused {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
  readonly error: Record<string, unknown>
}

async function refusal(surface: TestSurface, model: string, stream: boolean): Promise<Refused> {
  clock.jump(86_400)
  const response = await ask(
    gateway,
    surface,
    bodyOf(surface, { model: JSON.stringify(model), stream: String(stream) }),
  )
  const body = (await response.json()) as Record<string, unknown>
  return { status: response.status, headers: response.headers, body, error: body.error as Record<string, unknown> }
}

/** A provider that answers everything with one error, in the shape of its dialect. */
function refuseWith(status: number, error: Record<string, unknown>, headers: Record<string, string> = {}): void {
  upstream.handle((call, reply) => {
    const isChat = call.path.endsWith('/chat/completions')
    return reply.json(status, isChat ? { error } : { type: 'error', error, request_id: 'req_theirs' }, headers)
  })
}

const openaiTooLong =
  "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."
const anthropicTooLong = 'prompt is too long: 210000 tokens > 200000 maximum'
const both = [false, true]

describe.each(both)('a prompt that is too long (streamed: %p)', (stream) => {
  test('vector 91: said by a Messages provider, keeps its text on chat and has the word clients look for', async () => {
    refuseWith(400, { type: 'invalid_request_error', message: anthropicTooLong })
    const { status, error } = await refusal(chat, 'test/messages', stream)
    expect([status, error.code, error.type]).toEqual([400, 'INVALID_REQUEST', 'invalid_request_error'])
    expect(error.message).toContain(anthropicTooLong)
    expect(error.message).toContain('context_length_exceeded')
  })

  test("vector 91: said by a chat provider, is in Anthropic's words on Messages", async () => {
    refuseWith(400, { message: openaiTooLong, type: 'invalid_request_error', code: 'context_length_exceeded' })
    const { status, error } = await refusal(messages, 'test/chat', stream)
    expect([status, error.code, error.type]).toEqual([400, 'INVALID_REQUEST', 'invalid_request_error'])
    expect(error.message).toStartWith('prompt is too long: 130000 tokens > 128000 maximum')
    expect(error.message).toContain('capability_rejected: prompt_too_long')
    expect(error.message).toContain(openaiTooLong)
  })

  test('pitfall 147: the message names the output cap in the words by which clients lower it', async () => {
    const message =
      "This model's maximum context length is 65536 tokens. However, you requested 66434 tokens (58242 in the messages, 8192 in the completion)."
    refuseWith(400, { message, code: 'invalid_request_error' })
    const { error } = await refusal(messages, 'test/chat', stream)
    expect(error.message).toStartWith('prompt is too long: 66434 tokens > 65536 maximum')
    expect(error.message).toContain('input length and `max_tokens` exceed context limit: 58242 + 8192 > 65536')
    // The prompt alone fits, so the client lowers the cap; it compacts where the prompt alone does not.
    expect(error.message).toEndWith('(capability_rejected: max_tokens_context_overflow)')
  })

  test('without numbers it still begins with those words', async () => {
    refuseWith(400, { message: 'Your input exceeds the context window of this model.', code: null })
    const { error } = await refusal(messages, 'test/chat', stream)
    expect(error.message).toMatch(/^prompt is too long: .*exceeds the context window of this model/)
    expect(error.message).toContain('capability_rejected: prompt_too_long')
  })

  test('in its own dialect it stays word for word on Messages', async () => {
    refuseWith(400, { type: 'invalid_request_error', message: anthropicTooLong, details: { error_code: 'x' } })
    const { error } = await refusal(messages, 'test/messages', stream)
    expect(error).toEqual({
      type: 'invalid_request_error',
      message: anthropicTooLong,
      code: 'INVALID_REQUEST',
      details: { error_code: 'x' },
    })
  })

  test('and has the word on chat, where `code` is ours', async () => {
    refuseWith(400, { message: openaiTooLong, type: 'invalid_request_error', code: 'context_length_exceeded' })
    const { error } = await refusal(chat, 'test/chat', stream)
    expect(error.message).toContain(openaiTooLong)
    expect(error.message).toContain('context_length_exceeded')
    expect(error.code).toBe('INVALID_REQUEST')
  })

  test.each([500, 502])('pitfall 147: under a status of %p it is the same', async (status) => {
    refuseWith(status, { message: openaiTooLong })
    for (const surface of bothSurfaces) {
      const refused = await refusal(surface, 'test/chat', stream)
      expect([refused.status, refused.error.code]).toEqual([400, 'INVALID_REQUEST'])
    }
  })

  test('pitfall 147: it is reported also if another route had failed before', async () => {
    upstream.handle((call, reply) =>
      call.path.endsWith('/chat/completions')
        ? reply.json(503, { error: { message: 'down' } })
        : reply.json(400, { type: 'error', error: { type: 'invalid_request_error', message: anthropicTooLong } }),
    )
    const onChat = await refusal(chat, 'test/both', stream)
    expect([onChat.status, onChat.error.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(onChat.error.message).toContain('context_length_exceeded')
    expect(onChat.headers.get('x-tollgate-attempts')).toBe('2')
    const onMessages = await refusal(messages, 'test/both', stream)
    expect([onMessages.status, onMessages.error.message]).toEqual([400, anthropicTooLong])
  })

  test('no other route is tried after it', async () => {
    refuseWith(400, { message: openaiTooLong, code: 'context_length_exceeded' })
    const { headers } = await refusal(chat, 'test/twice', stream)
    expect(headers.get('x-tollgate-attempts')).toBe('1')
  })
})

describe.each(both)('other refusals (streamed: %p)', (stream) => {
  test("pitfall 148: a content filter is a 400 with the provider's word, and no other route is tried", async () => {
    const message = 'The response was filtered due to the prompt triggering a management policy.'
    refuseWith(400, { message, type: null, param: 'prompt', code: 'content_filter' })
    for (const surface of bothSurfaces) {
      const { status, error, headers } = await refusal(surface, 'test/twice', stream)
      expect([status, error.code, headers.get('x-tollgate-attempts')]).toEqual([400, 'INVALID_REQUEST', '1'])
      expect(error.message).toContain(message)
      expect(error.message).toContain('content_filter')
    }
  })

  test('pitfall 145: a 400 keeps the text and the field, without the key it quotes', async () => {
    const message = 'Unsupported value: temperature, for the key sk-proj-abcdefghijklmnopqrstuv.'
    refuseWith(400, { message, type: 'invalid_request_error', param: 'temperature', code: 'unsupported_value' })
    const onChat = await refusal(chat, 'test/chat', stream)
    expect(onChat.error).toMatchObject({ param: 'temperature', code: 'INVALID_REQUEST' })
    expect(onChat.error.message).toContain('Unsupported value: temperature')
    expect(onChat.error.message).toContain('unsupported_value')
    for (const { error } of [onChat, await refusal(messages, 'test/chat', stream)]) {
      expect(error.message).toContain('Unsupported value: temperature')
      expect(error.message).not.toContain('sk-proj-abcdefghij')
    }
  })

  test('vector 93: 529 from every route is a 404 on both surfaces', async () => {
    refuseWith(529, { type: 'overloaded_error', message: 'Overloaded' })
    for (const surface of bothSurfaces) {
      const { status, error, headers } = await refusal(surface, 'test/both', stream)
      expect([status, error.code, error.type]).toEqual([404, 'NOT_FOUND', 'not_found_error'])
      // Both once, and the first again.
      expect(headers.get('x-tollgate-attempts')).toBe('3')
    }
  })

  test('vector 93: a throttled only route is a 429 with the wait it asked for', async () => {
    refuseWith(429, { type: 'rate_limit_error', message: 'slow down' }, { 'retry-after': '34' })
    for (const surface of bothSurfaces) {
      for (const model of ['test/chat', 'test/messages']) {
        const { status, error, headers } = await refusal(surface, model, stream)
        expect([status, error.code, error.type]).toEqual([429, 'LIMIT_EXCEEDED', 'rate_limit_error'])
        expect([headers.get('retry-after'), headers.get('retry-after-ms')]).toEqual(['34', '34000'])
      }
    }
  })

  test('pitfall 151: when all routes are throttled, the shortest wait counts', async () => {
    upstream.handle((call, reply) => {
      const wait = call.path.endsWith('/chat/completions') ? '40' : '7'
      return reply.json(429, { error: { message: 'slow down' } }, { 'retry-after': wait })
    })
    for (const surface of bothSurfaces) {
      const { status, headers } = await refusal(surface, 'test/both', stream)
      expect([status, headers.get('retry-after'), headers.get('retry-after-ms')]).toEqual([429, '7', '7000'])
    }
  })

  test.each([
    ['chat', 429, { code: 'insufficient_quota', message: 'You exceeded your current quota.' }],
    [
      'messages',
      429,
      { type: 'rate_limit_error', message: 'no', details: { error_code: 'enforced_spend_limit_reached' } },
    ],
  ])("vector 94: a %s provider's quota is a failed route, not a wait", async (name, status, error) => {
    refuseWith(status, error)
    for (const surface of bothSurfaces) {
      const refused = await refusal(surface, `test/${name}`, stream)
      expect([refused.status, refused.error.code]).toEqual([404, 'NOT_FOUND'])
      expect(refused.headers.get('retry-after')).toBeNull()
    }
  })

  test('pitfall 144: what fails before the first byte has a status, and is no empty 200', async () => {
    for (const status of [401, 403, 404, 500]) {
      refuseWith(status, { message: 'no such model', type: 'x' })
      for (const surface of bothSurfaces) {
        for (const model of ['test/chat', 'test/messages']) {
          const refused = await refusal(surface, model, stream)
          expect([status, refused.status, refused.error.code]).toEqual([status, 404, 'NOT_FOUND'])
        }
      }
    }
  })

  test('vector 95, pitfall 146: every error has the shape of its surface, and one request id everywhere', async () => {
    for (const status of [400, 401, 413, 429, 500]) {
      refuseWith(status, { message: 'no', type: 'BadRequestError', code: 40_001 })
      for (const model of ['test/chat', 'test/messages']) {
        const onChat = await refusal(chat, model, stream)
        const onMessages = await refusal(messages, model, stream)
        expect(Object.keys(onChat.body)).toEqual(['error'])
        expect(Object.keys(onChat.error).toSorted()).toEqual(['code', 'message', 'param', 'type'])
        expect(Object.keys(onMessages.body).toSorted()).toEqual(['error', 'request_id', 'type'])
        expect(onMessages.body.type).toBe('error')
        expect(onMessages.body.request_id).toBe(onMessages.headers.get('request-id'))
        for (const { headers, error } of [onChat, onMessages]) {
          expect(headers.get('request-id')).toMatch(/^req_/)
          expect(headers.get('request-id')).toBe(headers.get('x-request-id'))
          expect(headers.get('content-type')).toBe('application/json')
          expect(error.code).toMatch(/^[A-Z_]+$/)
        }
      }
    }
  })
})

/** Errors inside a 200, as the first thing a chat provider says, and what they become when no route is left. */
const disguised: readonly [error: Record<string, unknown>, status: number, code: string][] = [
  [{ message: openaiTooLong, code: 'context_length_exceeded' }, 400, 'INVALID_REQUEST'],
  [{ message: openaiTooLong }, 400, 'INVALID_REQUEST'],
  [{ message: 'filtered', code: 'content_filter' }, 400, 'INVALID_REQUEST'],
  [{ message: 'slow down', type: 'tokens', code: 'rate_limit_exceeded' }, 429, 'LIMIT_EXCEEDED'],
  [{ message: 'slow down', code: 429 }, 429, 'LIMIT_EXCEEDED'],
  [{ message: 'pay', type: 'insufficient_quota', code: 'insufficient_quota' }, 404, 'NOT_FOUND'],
  [{ message: 'who', code: 'invalid_api_key' }, 404, 'NOT_FOUND'],
  [{ message: 'fell over', type: 'server_error', code: null }, 404, 'NOT_FOUND'],
  [{ message: 'fell over', code: 502 }, 404, 'NOT_FOUND'],
  [{ message: 'whatever', code: 'something_new' }, 404, 'NOT_FOUND'],
]

describe.each(disguised)('an error under a 200, %j', (error, status, code) => {
  const ways: Record<string, (reply: UpstreamReply) => Promise<void>> = {
    'in a stream': async (reply) => {
      await reply.startStream()
      await reply.chunk(`data: ${JSON.stringify({ error })}\n\n`)
      await reply.finish()
    },
    'as a body': (reply) => reply.json(200, { error }),
  }
  test.each(Object.keys(ways))(`%s, is a ${status}`, async (way) => {
    upstream.handle((_, reply) => ways[way]?.(reply))
    for (const surface of bothSurfaces) {
      for (const stream of both) {
        // Who neither asks for a stream nor is translated gets none.
        if (way === 'in a stream' && surface === chat && !stream) continue
        const refused = await refusal(surface, 'test/chat', stream)
        expect([refused.status, refused.error.code]).toEqual([status, code])
      }
    }
  })
})

test.each([...bothSurfaces])('after content the same error is an interrupted stream on $name', async (surface) => {
  const seen = Promise.withResolvers<void>()
  upstream.handle(async (call, reply) => {
    await reply.startStream()
    await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
    await seen.promise
    await reply.chunk('data: {"error":{"message":"slow down","code":"rate_limit_exceeded"}}\n\n')
    await reply.finish()
  })
  const connection = await connect(gateway.url)
  const body = bodyOf(surface, { model: '"test/chat"', stream: 'true' })
  await connection.send(requestBytes(surface, { key: gateway.key, body }))
  await connection.until('hello')
  seen.resolve()
  const response = await connection.response()
  if (response === 'closed') throw new Error('closed without an end')
  expect(response.body).toContain('"code":"STREAM_INTERRUPTED"')
  expect(response.body).not.toContain('[DONE]')
  expect(response.body).not.toContain('message_stop')
})

test.each([
  ['System message must be at the beginning.', 'mid_conv_system'],
  ['Unrecognized request argument supplied: cache_control', 'cache_control_field'],
  ['The encrypted content gAAA could not be verified.', 'thinking_signature'],
  ['Function call is missing a thought_signature in functionCall parts.', 'thinking_signature'],
  ['`thinking.type: "adaptive"` is not supported by this model.', 'thinking_type:adaptive'],
  ['thinking type enabled is unsupported here', 'thinking_type:enabled'],
  ['Unexpected value(s) `context-1m-2025-08-07` for the `anthropic-beta` header.', 'beta_header:context-1m-2025-08-07'],
  ["Invalid parameter: 'response_format' of type 'json_schema' is not supported.", 'structured_outputs_unsupported'],
  ["Unsupported parameter: 'reasoning_effort'", 'effort_unsupported'],
  ['Too many images in request: 21 > 20.', 'media_budget'],
  ['This model does not support image input.', 'image_block'],
  ['Unable to process input image. Please retry.', 'image_block'],
  ['This model does not support file inputs.', 'document_block'],
])('what a chat provider refuses with "%s" has the token %s for Claude Code', async (message, token) => {
  refuseWith(400, { message, type: 'invalid_request_error' })
  const { error } = await refusal(messages, 'test/chat', true)
  expect(error.message).toEndWith(`(capability_rejected: ${token})`)
  expect(error.message).toContain(message)
  expect((await refusal(chat, 'test/chat', true)).error.message).not.toContain('capability_rejected')
})

test('a refusal for another reason has no token', async () => {
  refuseWith(400, { message: 'Invalid value for temperature: 3.', type: 'invalid_request_error' })
  expect((await refusal(messages, 'test/chat', true)).error.message).not.toContain('capability_rejected')
})
