import { describe, expect, test } from 'bun:test'
import { faultFromError } from '../dialects/canonical/faults.ts'
import { classifyFault, type FaultClass, faultTable, plainBody, plainWords, refusesReasoning } from './faults.ts'

interface Said {
  readonly type?: string
  readonly code?: string
  readonly message?: string
}

/** By the table of what a provider's answer becomes. */
const rows: readonly [status: number | undefined, said: Said, faultClass: FaultClass][] = [
  [400, { message: 'bad' }, "caller's fault"],
  [422, { message: 'bad' }, "caller's fault"],
  [400, { code: 'content_filter', message: 'filtered' }, "caller's fault"],
  [400, { code: 'model_not_found', message: 'no' }, 'does not know the model'],
  [401, { message: 'no' }, 'refused our credential'],
  [402, { message: 'pay' }, 'out of quota'],
  [403, { message: 'no' }, 'refused our credential'],
  [403, {}, 'refused our credential'],
  [403, { code: 'model_not_found', message: 'no' }, 'does not know the model'],
  [404, { code: 'model_not_found', message: 'no' }, 'does not know the model'],
  [404, { message: 'no' }, 'failing'],
  [404, { code: 'invalid_api_key', message: 'Incorrect API key provided' }, 'refused our credential'],
  [404, { type: 'not_found_error', message: 'File not found: file_1' }, 'lacks what was asked for'],
  // An address that is wrong, a deployment that is not ready: another route may serve.
  [405, { message: 'Method Not Allowed' }, 'failing'],
  [408, {}, 'failing'],
  [409, {}, 'failing'],
  [410, {}, 'failing'],
  [410, { type: 'not_found_error', message: 'The container has expired.' }, 'lacks what was asked for'],
  [412, { code: 'PRECONDITION_FAILED', message: 'no' }, 'failing'],
  [415, {}, 'failing'],
  [414, { message: 'too long' }, "caller's fault"],
  [451, { message: 'forbidden' }, "caller's fault"],
  // A tool server that the caller named, a service tier that it chose: no fault of the route's, and others may do.
  [424, { message: 'Error retrieving tool list from MCP server' }, 'lacks what was asked for'],
  [498, { code: 'capacity_exceeded', message: 'Flex tier capacity exceeded' }, 'lacks what was asked for'],
  // Google's CANCELLED: it was not the caller who did.
  [499, { message: 'The operation was cancelled.' }, 'failing'],
  [413, { message: 'too big' }, 'too large'],
  [429, { message: 'slow down' }, 'throttled'],
  [429, { code: 'insufficient_quota' }, 'out of quota'],
  [400, { message: 'Your credit balance is too low to access the API.' }, 'out of quota'],
  [500, {}, 'failing'],
  [529, { type: 'overloaded_error' }, 'failing'],
  [302, {}, 'redirecting'],
  [undefined, { message: 'the engine fell over' }, 'garbled'],
]

test.each(rows)('a status of %p that says %j is %s', (status, said, faultClass) => {
  expect(classifyFault(faultFromError(status, undefined, said)).class).toBe(faultClass)
})

const tooLong = { message: 'prompt is too long: 210000 tokens > 200000 maximum' }

test.each([400, 413, 422, 500, 502, undefined])(
  'pitfall 147: a prompt that is too long is no fault of the route, under a status of %p either',
  (status) => {
    const { class: faultClass } = classifyFault(faultFromError(status, undefined, tooLong))
    expect(faultClass).toBe("caller's fault")
    expect(faultTable[faultClass].tryNext).toBe(false)
  },
)

test.each([401, 403, 404, 429])('with a status of %p the same words mean something else', (status) => {
  expect(classifyFault(faultFromError(status, undefined, tooLong)).class).not.toBe("caller's fault")
})

test.each([
  [400, { code: 'invalid_encrypted_content', message: 'The encrypted content could not be verified.' }, true],
  [400, { message: 'Corrupted thought signature.' }, true],
  [400, { message: 'messages.1.content.0: Invalid `signature` in `thinking` block' }, true],
  [
    400,
    {
      message:
        'messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.',
    },
    true,
  ],
  [400, { message: 'messages.1: The final block in an assistant message cannot be `thinking`.' }, true],
  [400, { message: 'The signature of this request is invalid' }, false],
  [400, { message: 'The latest assistant message cannot be modified' }, false],
  [500, { code: 'invalid_encrypted_content', message: 'no' }, false],
])('pitfall 88: a %p that says %j is about reasoning: %p', (status, said, isAbout) => {
  expect(refusesReasoning(faultFromError(status, undefined, said))).toBe(isAbout)
})

test('an unreadable answer of the model is repeated once, then tried elsewhere', () => {
  const fault = {
    ...faultFromError(400, undefined, { code: 'tool_use_failed', message: 'no' }),
    isInvalidOutput: true,
  } as const
  expect(classifyFault(fault)).toMatchObject({ class: 'garbled', isRepeatable: true })
  expect(faultTable.garbled.tryNext).toBe(true)
})

function classOf(status: number, said: Said, sent: string): FaultClass {
  return classifyFault(faultFromError(status, undefined, said), new TextEncoder().encode(sent)).class
}

const ordinary = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })

describe('an account without credit', () => {
  test.each([
    [
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
    ],
    ['You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.'],
    ['You have reached your specified workspace API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.'],
  ])('%s', (message) => {
    expect(classOf(400, { type: 'invalid_request_error', message }, ordinary)).toBe('out of quota')
  })

  test('is a 412 at Fireworks, which otherwise means a deployment', () => {
    const message = 'Account acme is suspended, possibly due to reaching the monthly spending limit.'
    expect(classOf(412, { code: 'PRECONDITION_FAILED', message }, ordinary)).toBe('out of quota')
    expect(classOf(412, { code: 'PRECONDITION_FAILED', message: 'no' }, ordinary)).toBe('failing')
  })

  test.each([
    [429, 'Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage …'],
    [429, 'Your project has exceeded its monthly spending cap. Please go to AI Studio at https://ai.studio/spend …'],
    [429, 'Your team 16f2-ab has either used all available credits or reached its monthly spending limit.'],
    [403, 'Your team 16f2-ab has either used all available credits or reached its monthly spending limit.'],
    [403, 'Your newly created team doesn’t have any credits or licenses yet.'],
    [403, 'Key limit exceeded (monthly limit). Manage it using https://openrouter.ai/settings/keys'],
    [429, 'Insufficient balance or no resource package. Please recharge.'],
    [429, 'insufficient balance (1008)'],
  ])('%p %s', (status, message) => {
    expect(classOf(status, { message }, ordinary)).toBe('out of quota')
    expect(classOf(status, { message }, JSON.stringify({ content: message }))).not.toBe('out of quota')
  })

  test('is not meant by tokens per minute under the same code', () => {
    const message =
      'Allocated quota exceeded, please increase your quota limit. See https://help.aliyun.com/x#token-limit'
    expect(classOf(429, { code: 'insufficient_quota', message }, ordinary)).toBe('throttled')
  })

  test.each([
    [429, 'billing_not_active'],
    [429, 'exceeded_current_quota_error'],
    [400, 'Arrearage'],
    [429, '1113'],
    [429, 'insufficient_balance_error'],
  ])('a %p with the word %s, as type or code', (status, word) => {
    expect(classOf(status, { type: word, message: 'no' }, ordinary)).toBe('out of quota')
    expect(classOf(status, { code: word, message: 'no' }, ordinary)).toBe('out of quota')
  })
})

describe('a request that exceeds the remaining credit', () => {
  const said: readonly [status: number, message: string][] = [
    [402, 'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only …'],
    [402, 'Prompt tokens limit exceeded: 230799 > 91442. To increase, visit https://openrouter.ai/settings/keys'],
    [400, 'Your organization must be verified to generate reasoning summaries. Please go to: https://platform …'],
  ]
  // Who writes such a sentence into a request must not have the account taken for empty.
  test.each(said)('%p %s, quoted or not', (status, message) => {
    for (const sent of [ordinary, JSON.stringify({ content: message })]) {
      expect(classOf(status, { code: String(status), message }, sent)).toBe('lacks what was asked for')
    }
  })
})

describe('a rejected credential with a 400', () => {
  test.each([
    ['Operation not allowed'],
    ['Access to Anthropic models is not allowed from unsupported countries, regions, or territories.'],
    ['This organization has been disabled.'],
    ['This credential is only authorized for use with Claude Code and cannot be used for other API requests.'],
    ['Incorrect API key provided: xa***. You can obtain an API key from https://console.x.ai.'],
  ])('%s', (message) => {
    expect(classOf(400, { type: 'invalid_request_error', message }, ordinary)).toBe('refused our credential')
  })

  test.each([['invalid_api_key'], ['organization_restricted']])('the code %s', (code) => {
    expect(classOf(400, { code, message: 'no' }, ordinary)).toBe('refused our credential')
  })
})

describe('an unknown model', () => {
  const sentences: readonly [status: number, message: string][] = [
    [404, 'model: claude-nope'],
    [404, 'The model `gpt-nope` does not exist or you do not have access to it.'],
    [404, 'models/gemini-nope is not found for API version v1beta, or is not supported for generateContent.'],
    [404, 'Publisher Model `projects/p/locations/l/publishers/anthropic/models/nope` was not found or your project …'],
    [404, "model 'nope' not found, try pulling it first"],
    [404, 'Model not found, inaccessible, and/or not deployed'],
    [404, 'Not found the model nope or Permission denied'],
    [404, 'Unable to access model nope. Please visit https://api.example/models'],
    [404, 'Could not resolve the foundation model from the provided model identifier.'],
    [404, 'This model version has reached the end of its life.'],
    [404, 'No endpoints found for acme/nope.'],
    [404, 'This model models/gemini-nope is no longer available to new users. Please update your code.'],
    [404, 'Access denied. This Model is marked by provider as Legacy and you have not been actively using the model.'],
    [404, 'Model use case details have not been submitted for this account.'],
    [404, 'This is not a chat model and thus not supported in the v1/chat/completions endpoint.'],
    [404, 'This model is only supported in v1/responses and not in v1/chat/completions.'],
    [404, 'Resource not found'],
    [404, "Function 'f-1': Not found for account 'a-1'"],
    [404, 'Model is not available'],
    [400, 'acme/nope is not a valid model ID'],
    [400, 'Model Not Exist'],
    [400, 'Invalid model: nope'],
    [400, "Invalid model 'nope'. Permitted models can be found in the documentation."],
    [400, 'The provided model identifier is invalid.'],
    [
      400,
      'Invocation of model ID anthropic.claude-v1:0 with on-demand throughput isn’t supported. Retry your request …',
    ],
    [400, "Invocation of model ID anthropic.claude-v1:0 with on-demand throughput isn't supported."],
    [400, 'Your account is not authorized to invoke this API operation.'],
    [403, "You don't have access to the model with the specified model ID."],
    [403, 'Model access is denied due to IAM user or service role is not authorized to perform the required AWS …'],
    [403, 'Your account is not authorized to access this model because your AWS Marketplace subscription …'],
    [400, 'Publisher Model `projects/p/locations/l/publishers/google/models/m` is not servable in region us-central1.'],
    [400, 'Project `123` is not allowed to use Publisher Model `projects/p/locations/l/publishers/anthropic/models/m`'],
    [400, "The requested model 'acme/m' is not supported by any provider you have enabled."],
    [400, 'Your organization must be verified to stream this model. Please go to: https://platform.openai.com'],
    [403, 'Your organization must be verified to use the model `m`. Please go to: https://platform.openai.com'],
    [410, "The model 'acme/m' has reached its end of life on 2026-05-14T00:00:00Z and is no longer available."],
  ]
  test.each(sentences)('%p %s', (status, message) => {
    expect(classOf(status, { type: 'some_error', message }, ordinary)).toBe('does not know the model')
  })

  test.each([
    ['model_not_found'],
    ['model_not_available'],
    ['model_decommissioned'],
    ['invalid_model'],
    ['DeploymentNotFound'],
    ['model_terms_required'],
    ['model_permission_blocked'],
    ['model_permission_blocked_org'],
    ['model_permission_blocked_project'],
    ['model_not_supported'],
    ['OperationNotSupported'],
  ])('the code %s', (code) => {
    for (const status of [400, 403, 404]) {
      expect(classOf(status, { code, message: 'no' }, ordinary)).toBe('does not know the model')
    }
  })
})

describe('words that a caller gets quoted', () => {
  /** A body, and the answer in which a provider quotes it. */
  const quotes: readonly [status: number, sent: string, message: string, faultClass: FaultClass][] = [
    [400, '{"role":"insufficient_quota"}', "Invalid value: 'insufficient_quota'.", "caller's fault"],
    [400, '{"role":"no such model"}', "Invalid value: 'no such model'.", "caller's fault"],
    [400, '{"role":"model_not_found"}', 'model_not_found is no role', "caller's fault"],
    // A member that a provider does not know comes first in its complaint.
    [
      400,
      '{"Your credit balance is too low":1}',
      'Your credit balance is too low: Extra inputs are not permitted',
      "caller's fault",
    ],
    [
      400,
      '{"\\u0059our credit b\\u0061lance is too low":1}',
      'Your credit balance is too low: Extra inputs are not permitted',
      "caller's fault",
    ],
    [400, '{"INVALID MODEL":1}', 'Invalid model: Extra inputs are not permitted', "caller's fault"],
    [400, '{"effort":"x not found"}', "The model `m` does not support the effort 'x not found'", "caller's fault"],
    [404, '{"file_id":"model: m"}', 'File not found: model: m', 'lacks what was asked for'],
    // OpenRouter takes further models from the body, and says the same of them.
    [400, '{"model":"m","models":["nope/nope"]}', 'nope/nope is not a valid model ID', "caller's fault"],
    [404, '{"models":["m","nope/nope"]}', 'No endpoints found for nope/nope.', 'lacks what was asked for'],
    [404, '{"model": "nope/nope"}', 'No endpoints found for nope/nope.', 'does not know the model'],
    [400, '{"Incorrect API key provided":1}', 'Incorrect API key provided: Extra inputs', "caller's fault"],
    [400, '{"role":"organization_restricted"}', "Invalid value: 'organization_restricted'.", "caller's fault"],
    [404, '{"file_id":"r"}', 'Resource not found: r', 'lacks what was asked for'],
    [403, '{"user":"Your account was flagged"}', 'Your account was flagged', "caller's fault"],
    [404, '{"tools":[]}', 'No endpoints found that support tool use.', 'lacks what was asked for'],
    [400, '{"Operation not allowed":1}', 'Operation not allowed', "caller's fault"],
    [400, '{"Model access is denied due to":1}', 'Model access is denied due to: Extra inputs', "caller's fault"],
    [400, '{"Insufficient balance":1}', 'Insufficient balance: Extra inputs are not permitted', "caller's fault"],
    [400, '{"role":"model_terms_required"}', "Invalid value: 'model_terms_required'.", "caller's fault"],
  ]
  test.each(quotes)('a %p to %s that says "%s" is %s', (status, sent, message, faultClass) => {
    expect(classOf(status, { type: 'invalid_request_error', message }, sent)).toBe(faultClass)
  })
})

describe('a 403', () => {
  const rows: readonly [said: Said, faultClass: FaultClass][] = [
    [
      { type: 'PERMISSION_DENIED', message: 'You do not have permission to access the File abc or it may not exist.' },
      'lacks what was asked for',
    ],
    [
      { type: 'PERMISSION_DENIED', message: 'CachedContent not found (or permission denied)' },
      'lacks what was asked for',
    ],
    [{ type: 'permission_error', message: 'This beta is not open to you.' }, 'lacks what was asked for'],
    [{ message: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO' }, "caller's fault"],
    [{ code: '403', message: 'Your input was flagged' }, "caller's fault"],
    [{ code: 'content_policy_violation', message: 'no' }, "caller's fault"],
    [{ code: '403', message: 'Your input was flagged, as your account was flagged before' }, "caller's fault"],
    [{ message: 'Your account was flagged for unusual activity.' }, 'refused our credential'],
    [{ message: 'Your API key has been flagged by our moderation.' }, 'refused our credential'],
    [{ message: 'This organization org-1 has been flagged.' }, 'refused our credential'],
    [{ message: 'Your current plan does not include this feature.' }, 'refused our credential'],
    [
      {
        code: 'missing_scope',
        message:
          'You have insufficient permissions for this operation. Missing scopes: api.files.read, model.request, tools.',
      },
      'refused our credential',
    ],
    // Who needs no files is served on the same key.
    [
      {
        code: 'missing_scope',
        message: 'You have insufficient permissions for this operation. Missing scopes: api.files.read.',
      },
      'lacks what was asked for',
    ],
    [{ type: 'permission_error', message: 'Your API key may not use this.' }, 'refused our credential'],
    [{ code: 'unsupported_country_region_territory', message: 'Country not supported' }, 'refused our credential'],
    // About the account's policies, not about the content.
    [{ message: 'not authorized, because no identity-based policy allows the action' }, 'refused our credential'],
    [
      { message: 'User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel on resource: …' },
      'refused our credential',
    ],
    [{}, 'refused our credential'],
  ]
  test.each(rows)('that says %j is %s', (said, faultClass) => {
    expect(classOf(403, said, ordinary)).toBe(faultClass)
  })
})

describe('a 404', () => {
  const rows: readonly [said: Said, faultClass: FaultClass][] = [
    [{ message: '<html><head><title>404 Not Found</title></head></html>' }, 'failing'],
    [{ message: '<h1>The requested file was not found</h1>' }, 'failing'],
    [{ message: 'Not Found' }, 'failing'],
    [{}, 'failing'],
    // Callers can have it said as often as they like.
    [{ message: 'File file_1 was not found' }, 'lacks what was asked for'],
    [{ type: 'not_found_error', message: 'Not Found' }, 'lacks what was asked for'],
    [{ code: 'NOT_FOUND', message: 'Not Found' }, 'lacks what was asked for'],
  ]
  test.each(rows)('that says %j is %s', (said, faultClass) => {
    expect(classOf(404, said, ordinary)).toBe(faultClass)
  })
})

function waitOf(message: string, { status = 429, header = undefined as number | undefined, sent = '{}' } = {}) {
  const fault = faultFromError(status, header, { code: 'rate_limit_exceeded', message })
  return classifyFault(fault, new TextEncoder().encode(sent)).provider?.retryAfterMs
}

test.each([
  ['Please try again in 20s.', 20_000],
  ['Please try again in 1.5s. Visit …', 1500],
  ['Please try again in 120ms.', 120],
  ['Please try again in 6m0s.', 360_000],
  ['Please try again in 1h2m3s.', 3_723_000],
  ['Please try again in 1 minute, 30 seconds.', 90_000],
  ['request reached organization max RPM: 20, please try again after 1 seconds', 1000],
  ['Please retry after 26 seconds.', 26_000],
  ['Please retry in 34.074824224s.', 34_075],
  ['Try again in 5 min', 300_000],
  ['Try again in 300 milliseconds', 300],
  ['Please try again in 99h.', 86_400_000],
  ['Please try again in 3 sparks.', undefined],
  ['Please try again later.', undefined],
  ['Please slow down.', undefined],
])('the wait is read from %j', (message, ms) => {
  expect(waitOf(message)).toBe(ms)
})

test('prefers a header, and reads waits only from a 429', () => {
  expect(waitOf('Please try again in 20s.', { header: 3000 })).toBe(3000)
  expect(waitOf('Please try again in 20s.', { status: 500 })).toBeUndefined()
})

test('a caller cannot park a route with a quoted sentence', () => {
  const message = 'Too many requests of user "try again in 24h"'
  expect(waitOf(message)).toBe(86_400_000)
  expect(waitOf(message, { sent: '{"user":"try again in 24h"}' })).toBeUndefined()
  expect(waitOf(message, { sent: '{"user":"try \\u0061gain in 24h"}' })).toBeUndefined()
})

test.each([
  ['Rate limit for user retry in 59 minutes exceeded.', '{"user":"retry in 59 minutes"}'],
  ['Rate limit for user retry in 59 minutes, slow down', '{"user":"retry in 59 minutes"}'],
  ['Rate limit for user retry in 59 min limit', '{"user":"retry in 59"}'],
])('nor by the beginning of one that the provider ends: %j', (message, sent) => {
  expect(waitOf(message)).toBe(59 * 60_000)
  expect(waitOf(message, { sent })).toBeUndefined()
})

const bytes = (text: string) => new TextEncoder().encode(text)

test.each([
  ['Your Credit', 'your credit'],
  ['Your Crédit €😀', 'YOUR CRéDIT €😀'],
  ['\\u0059our \\u0043r\\u00e9dit \\u20AC\\ud83d\\ude00', 'your crédit €😀'],
  ['a\\nb\\tc\\"d\\\\e\\/f', 'a\nb\tc"d\\e/f'],
  // Halves of pairs, and escapes that are none.
  ['a\\ud83db \\ude00 \\u12x', 'a�b � u12x'],
  ['cut off\\', 'cut off'],
])('%s is found as %s', (sent, words) => {
  expect(plainBody(bytes(sent)).toString()).toContain(plainWords(words))
})

test('finds every character, escaped or not', () => {
  for (let code = 0; code <= 0xffff; code++) {
    const sign = String.fromCharCode(code)
    if (sign === '"' || sign === '\\') continue
    const escaped = `<\\u${code.toString(16).padStart(4, '0')}>`
    // Half a pair is no character.
    const plain = plainWords(`<${sign}>`).toWellFormed()
    if (plainBody(bytes(escaped)).toString() !== plain) throw new Error(escaped)
    if (plainBody(bytes(`<${sign}>`)).toString() !== plain) throw new Error(`${escaped} unescaped`)
  }
})

test('does not find what was not sent', () => {
  expect(plainBody(bytes('{"content":"a\\\\u0062c"}')).toString()).not.toContain(plainWords('abc'))
})
