import { describe, expect, test } from 'bun:test'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import { replyFault } from '../dialects/canonical/faults.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Secret } from '../kernel/secret.ts'
import { Exhausted, exhaustedFailure, maskSecrets } from './exhausted.ts'
import { attemptFault, classifyFault } from './faults.ts'
import type { Candidate } from './plan.ts'

test('says so if a provider refused without a message', () => {
  const candidate = { provider: { id: 'acme' }, dialect: openaiChat } as unknown as Candidate
  const fault = classifyFault(openaiChat.readFault(400, new Headers(), ''))
  const failure = exhaustedFailure('acme/large', new Exhausted([{ candidate, fault }]), 'NOT_FOUND')
  expect(openaiChat.renderFailure(failure, 'req_1')).toContain(
    'Provider acme refused the request (400): It did not say why.',
  )
})

test('a 404 that is not of the API says that the address or the dialect may be wrong', () => {
  const candidate = { provider: { id: 'acme' }, dialect: openaiChat } as unknown as Candidate
  const messageOf = (body: string) => {
    const fault = classifyFault(openaiChat.readFault(404, new Headers(), body))
    return exhaustedFailure('acme/large', new Exhausted([{ candidate, fault }]), 'NOT_FOUND').message
  }
  for (const body of ['', '<html>Not Found</html>', '{"detail":"Not Found"}', '404 page not found']) {
    // Only the operator can remove the cause, so no wait is named.
    expect(messageOf(body)).toBe(
      'No route of `acme/large` can serve now: acme answers 404; its base_url or dialect may be wrong, which tollgate doctor tells the operator. Use another model.',
    )
  }
  const missing =
    '{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}'
  expect(messageOf(missing)).not.toContain('base_url')
})

describe('a prompt that is too long', () => {
  const candidate = {
    ...{ provider: { id: 'acme' }, dialect: anthropicMessages, model: { contextTokens: 200_000 } },
  } as unknown as Candidate
  const messageOf = (said: string, tokens: number): string => {
    const body = JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: said } })
    const fault = classifyFault(anthropicMessages.readFault(400, new Headers(), body))
    const failure = exhaustedFailure('m', new Exhausted([{ candidate, fault }]), 'UNAVAILABLE', () => tokens)
    return JSON.parse(anthropicMessages.renderFailure(failure, 'req_1')).error.message
  }
  const wordless = 'Input is too long for requested model.'

  test('has our numbers if the provider gave none', () => {
    expect(messageOf(wordless, 210_000)).toStartWith(
      `prompt is too long: 210000 tokens > 200000 maximum (estimated by Tollgate). Provider acme: ${wordless}`,
    )
  })

  test('has no numbers that contradict the provider', () => {
    expect(messageOf(wordless, 200_000)).toStartWith(`prompt is too long: Provider acme: ${wordless}`)
  })

  test("keeps the provider's numbers", () => {
    const said = 'prompt is too long: 227255 tokens > 199999 maximum'
    expect(messageOf(said, 210_000)).toBe(said)
  })
})

const hex = '0123456789abcdef0123456789abcdef'
const base64 = 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ+/83vEjRWeA='

test.each([
  ['Incorrect API key provided: sk-proj-0123456789abcdef.', 'Incorrect API key provided: sk-….'],
  ['bad header: Authorization: Bearer letmein, sorry', 'bad header: Authorization: Bearer … sorry'],
  ['got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1 here', 'got eyJ… here'],
  ['got eyJhbGciOiJIUzI1NiJ9.eyJzd', 'got eyJ…'],
  ['got ya29.a0AfB_byC-1.x here', 'got ya29… here'],
  ['got AIzaSyA-0123456789_abc here', 'got AIza… here'],
  ['got AKIAIOSFODNN7EXAMPLE here', 'got AKIA… here'],
  ['got AQ.Ab8RN6KQ0123456789abc-_ here', 'got AQ.… here'],
  ['got r8_0123456789abcdefGHIJ here', 'got r8_… here'],
  ['got ABSKQmVkcm9ja0FQSUtleS0xMjM0NTY= here', 'got ABSK… here'],
  [`api-key: ${hex}`, 'api-key: …'],
  [`{"api_key":"${hex}"}`, '{"api_key":"…"}'],
  [`The token that you sent, ${base64}, is old`, 'The token that you sent, …, is old'],
  [`secret=${base64}`, 'secret=…'],
  [`got abcd-${'e'.repeat(64)}1 here`, 'got abcd-… here'],
  [`got abcd-${'e'.repeat(300)}1 here`, 'got abcd-… here'],
])('%s', (text, masked) => {
  expect(maskSecrets(text, undefined)).toBe(masked)
})

test.each([
  ["Unsupported parameter: 'max_completion_tokens_details'."],
  [`The image ${hex} is broken`],
  ['This model has a limit of 8192 tokens, and 9000 were asked for'],
])('%s stays', (text) => {
  expect(maskSecrets(text, undefined)).toBe(text)
})

describe('our own', () => {
  test('is masked in any form, and so is each part of it', () => {
    const own = new Secret('identity.1:open sesame:short')
    expect(maskSecrets('refused identity.1:open sesame:short', own)).toBe('refused …')
    expect(maskSecrets('identity.1 sent "open sesame", in short', own)).toBe('… sent "…", in short')
  })

  test('a placeholder is not masked', () => {
    expect(maskSecrets('no model in ollama', new Secret('ollama'))).toBe('no model in ollama')
  })

  test('is not in any error for a caller', () => {
    const key = 'opensesame'
    const said = {
      ...replyFault(`no: ${key}`),
      code: key,
      param: key,
      details: [{ sent: { key: [`x ${key}`, 1, null] } }],
    }
    const candidate = { provider: { id: 'a', apiKey: new Secret(key) }, dialect: { id: 'd' } } as unknown as Candidate
    const failure = exhaustedFailure(
      'm',
      new Exhausted([{ candidate, fault: attemptFault("caller's fault", said) }]),
      'NOT_FOUND',
    )
    expect(failure).toMatchObject({
      message: 'no: …',
      facts: { param: '…', details: [{ sent: { key: ['x …', 1, null] } }], refusal: { word: undefined } },
    })
  })
})
