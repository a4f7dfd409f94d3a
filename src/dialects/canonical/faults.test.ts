import { describe, expect, test } from 'bun:test'
import type { ContextOverflow } from '../../kernel/failure.ts'
import { faultFromBody, faultFromError, readOverflow } from './faults.ts'

const said = (body: unknown) =>
  faultFromBody(400, new Headers(), typeof body === 'string' ? body : JSON.stringify(body)).message

test.each<[says: string, body: unknown, message: string]>([
  ['the families', { error: { message: 'no', type: 'invalid_request_error' } }, 'no'],
  ['a bare object', { object: 'error', message: 'no', code: 400 }, 'no'],
  ['a text', { error: 'no' }, 'no'],
  [
    'a word, and beside it the sentence',
    { error: 'Bad Request', message: 'temperature is too high' },
    'temperature is too high',
  ],
  ['FastAPI', { detail: 'no such field' }, 'no such field'],
  [
    'FastAPI, of each field',
    {
      detail: [
        { loc: ['body', 'temperature'], msg: 'too high', type: 'value_error', input: 'secret' },
        { loc: ['body', 'messages', 0], msg: 'missing' },
      ],
    },
    'body.temperature: too high; body.messages.0: missing',
  ],
  [
    'FastAPI inside of a message',
    { object: 'error', message: { detail: [{ loc: ['body', 'n'], msg: 'must be 1' }] }, type: 'invalid_request_error' },
    'body.n: must be 1',
  ],
  ['problem+json', { type: 'about:blank', title: 'Bad Request', detail: 'n must be 1', status: 400 }, 'n must be 1'],
  ['problem+json without details', { title: 'Bad Request', status: 400 }, 'Bad Request'],
  ['a list of texts', { errors: ['a', 'b'] }, 'a; b'],
  ['a list of objects', { errors: [{ message: 'a' }, { message: 'b', code: 7 }] }, 'a; b'],
  ['a short name', { error: { msg: 'no' } }, 'no'],
  ['an object for a message', { error: { message: { error: { message: 'no' } } } }, 'no'],
  ['an error that says nothing beside one that does', { error: { code: 7 }, detail: 'no' }, 'no'],
  ['an empty message and a telling detail', { error: { message: '', detail: 'no' } }, 'no'],
  ...[
    ['in words', 'too hot'],
    ['as JSON', '{"error":{"message":"too hot"}}'],
    ['as a list', '[{"error":{"message":"too hot"}}]'],
    ['as an object', { error: { message: 'too hot' } }],
  ].map(([form, raw]): [string, unknown, string] => [
    `OpenRouter ${form}`,
    { error: { message: 'Provider returned error', code: 400, metadata: { raw, provider_name: 'P' } } },
    'too hot',
  ]),
  ['OpenRouter with nothing more', { error: { message: 'Provider returned error' } }, 'Provider returned error'],
  ['OpenRouter with its own words', { error: { message: 'no credits', metadata: { raw: 'x' } } }, 'no credits'],
  ['JSON of another shape', { error: { message: 'Provider returned error', metadata: { raw: '{"a":1}' } } }, '{"a":1}'],
  ['plain text', ' upstream says no\n', 'upstream says no'],
])('the text is found as %s write it', (_, body, message) => {
  expect(said(body)).toBe(message)
})

test('keeps the body unchanged if no known place holds text', () => {
  expect(said('{"error":{"why":"no"}}')).toBe('{"error":{"why":"no"}}')
  expect(said('{"errors":{"n":["must be 1"]}}')).toBe('{"errors":{"n":["must be 1"]}}')
  expect(said('["no",1]')).toBe('["no",1]')
  expect(said('')).toBe('')
})

test('cuts long messages, and reads messages that were cut before as text', () => {
  const long = 'x'.repeat(200_000)
  expect(said({ error: { message: long } })).toBe('x'.repeat(4096))
  expect(said({ errors: Array.from({ length: 9_000 }, () => 'a') })).toHaveLength(4096)
  expect(said(`{"error":{"message":"${long}`)).toBe(`{"error":{"message":"${long}`.slice(0, 4096))
})

test('a type, code or param of more than 256 characters is none, and details of more than 4,096 are left out', () => {
  const word = 'ab-'.repeat(85)
  // As JSON, there are eight characters around the text.
  const details = { a: 'x'.repeat(4088) }
  const kept = { type: word, code: word, param: word, details }
  expect(faultFromError(400, undefined, kept)).toMatchObject(kept)
  const long = { type: `${word}ab`, code: `${word}ab`, param: `${word}ab`, details: { a: `${details.a}x` } }
  const none = { type: undefined, code: undefined, param: undefined, details: undefined }
  expect(faultFromError(400, undefined, long)).toMatchObject(none)
  // Google's words, wherever they stand.
  expect(faultFromError(400, undefined, { status: 'A'.repeat(257) }).type).toBeUndefined()
})

test('reads the wait from long details too', () => {
  const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' }
  const fault = faultFromError(429, undefined, { details: [retry, { a: 'x'.repeat(5000) }] })
  expect(fault).toMatchObject({ details: undefined, retryAfterMs: 7000 })
})

test('an endless nest is not followed', () => {
  const nest = `${'{"error":'.repeat(5_000)}"deep"${'}'.repeat(5_000)}`
  expect(said(nest)).toBe(nest.slice(0, 4096))
})

test('words for programs are read beside a text, too', () => {
  const fault = faultFromBody(429, new Headers({ 'retry-after': '3' }), '{"error":"slow down","code":"rate_limit"}')
  expect(fault).toMatchObject({ status: 429, message: 'slow down', code: 'rate_limit', retryAfterMs: 3000 })
  expect(faultFromError(undefined, undefined, 'overloaded')).toMatchObject({ message: 'overloaded', type: undefined })
})

describe('errors of Google in another dialect', () => {
  const error = {
    code: 429,
    message: 'Quota exceeded for aiplatform.googleapis.com/online_prediction_requests_per_base_model.',
    status: 'RESOURCE_EXHAUSTED',
    details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7.5s' }],
  }

  test.each([
    ['a list', [{ error }]],
    ['an object', { error }],
  ])('is read from %s, with its word and its wait', (_, body) => {
    const { message } = error
    const overflows = { status: 429, type: 'RESOURCE_EXHAUSTED', code: '429', message, retryAfterMs: 7500 }
    expect(faultFromBody(429, new Headers(), JSON.stringify(body))).toMatchObject(overflows)
  })

  test('a header that says how long goes first', () => {
    const fault = faultFromBody(429, new Headers({ 'retry-after': '2' }), JSON.stringify([{ error }]))
    expect(fault.retryAfterMs).toBe(2000)
  })

  test('a word that is no status of Google’s tells nothing', () => {
    expect(faultFromBody(404, new Headers(), '{"status":"error","message":"no"}').type).toBeUndefined()
    expect(faultFromBody(404, new Headers(), '{"status":404,"title":"Not Found"}').type).toBeUndefined()
  })
})

/** One sentence of each kind, as hosts write it, and what it tells. */
const overflows: readonly [message: string, counts: ContextOverflow][] = [
  ['prompt is too long: 210000 tokens > 200000 maximum', { tokens: 210_000, limit: 200_000 }],
  [
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    { tokens: 209_573, limit: 200_000, outputCap: 21_333 },
  ],
  [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
    { tokens: 130_000, limit: 128_000 },
  ],
  [
    "This model's maximum context length is 65536 tokens. However, you requested 66434 tokens (58242 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    { tokens: 66_434, limit: 65_536, outputCap: 8192 },
  ],
  [
    "This endpoint's maximum context length is 204800 tokens. However, you requested about 309977 tokens (309000 of text input, 977 in the output). Please reduce the length of either one.",
    { tokens: 309_977, limit: 204_800, outputCap: 977 },
  ],
  [
    "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens.",
    { tokens: 262_145, limit: 262_144, outputCap: 0 },
  ],
  [
    "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (5000 > 4096 - 100).",
    { tokens: 5100, limit: 4096, outputCap: 5000 },
  ],
  [
    'Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300,100 tokens. Please reduce the length of the messages.',
    { tokens: 300_100, limit: 272_000 },
  ],
  ['Your input exceeds the context window of this model. Please adjust your input and try again.', {}],
  [
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    { tokens: 537_812, limit: 131_072 },
  ],
  [
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).',
    { tokens: 1_196_265, limit: 1_048_576 },
  ],
  [
    'request (9123 tokens) exceeds the available context size (8192 tokens), try increasing it',
    { tokens: 9123, limit: 8192 },
  ],
  ['the request exceeds the available context size. try increasing the context size', {}],
  ["Input length (265330) exceeds model's maximum context length (262144).", { tokens: 265_330, limit: 262_144 }],
  [
    'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.',
    { tokens: 131_393, limit: 131_040 },
  ],
  [
    "The input (345516 tokens) is longer than the model's context length (262144 tokens).",
    { tokens: 345_516, limit: 262_144 },
  ],
  ['Your request exceeded model token limit: 262144 (requested: 566084)', { tokens: 566_084, limit: 262_144 }],
  [
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    { tokens: 40_000, limit: 32_768 },
  ],
  ['Input is too long for requested model.', {}],
  [
    'The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum',
    { tokens: 227_255, limit: 200_000 },
  ],
  ['messages.0.content: too many total text bytes: 30000000 > 25000000', {}],
  ['litellm.BadRequestError: context_length_exceeded', {}],
]

test.each(overflows)('%s', (message, counts) => {
  expect(readOverflow(faultFromError(400, undefined, { message }))).toEqual(counts)
})

test.each(['context_length_exceeded', 'exceed_context_size_error'])('%s as a code or type is enough', (word) => {
  expect(readOverflow(faultFromError(400, undefined, { message: 'Too much.', code: word }))).toEqual({})
  expect(readOverflow(faultFromError(400, undefined, { message: 'Too much.', type: word }))).toEqual({})
})

const others = [
  'messages: text content blocks must be non-empty',
  'max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5',
  'Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.',
  'Too many tokens, please wait before trying again.',
  'Invalid value: tool_choice. Set the context length in your server settings.',
]

test.each(others)('something else: %s', (message) => {
  expect(readOverflow(faultFromError(400, undefined, { message }))).toBeUndefined()
})
