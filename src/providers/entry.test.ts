import { expect, test } from 'bun:test'
import { Secret } from '../kernel/secret.ts'
import { invokedClaude } from './data/built-in.ts'
import { endpointOfEntry, providerEntrySchema, resolveProviderEntry } from './entry.ts'

const acme = { id: 'acme', dialect: 'openai-chat', base_url: 'http://127.0.0.1:9000/v1' }

function faults(change: Record<string, unknown>): string[] {
  const result = providerEntrySchema.safeParse({ ...acme, ...change })
  return result.success ? [] : result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
}

test('an entry keeps its dialect and loses the slash at the end of its address', () => {
  const entry = providerEntrySchema.parse({
    ...acme,
    base_url: 'https://api.acme.example/v1/',
    api_key: 'ignored here',
  })
  const apiKey = new Secret('sk-acme')
  expect(resolveProviderEntry(entry, { apiKey, source: 'tollgate.yaml:2' })).toEqual({
    id: 'acme',
    dialect: 'openai-chat',
    baseUrl: 'https://api.acme.example/v1',
    apiKey,
    source: 'tollgate.yaml:2',
  })
})

test('an openai-chat address may have any path', () => {
  expect(faults({ base_url: 'https://acme.example/compatible' })).toEqual([])
})

test('the name of the output cap is a rule of the host', () => {
  const entry = providerEntrySchema.parse({ ...acme, output_cap: 'max_completion_tokens' })
  const resolved = resolveProviderEntry(entry, { apiKey: undefined, source: 'tollgate.yaml:2' })
  expect(endpointOfEntry(resolved)?.rules).toEqual({ outputCapName: 'max_completion_tokens' })
  expect(faults({ output_cap: 'max' })).toEqual(['output_cap: expected max_tokens or max_completion_tokens'])
})

test('a second key at the address of a built-in provider is called by its rules, unless the entry says otherwise', () => {
  const at = (baseUrl: string, more: object = {}) => {
    const entry = providerEntrySchema.parse({ ...acme, base_url: baseUrl, ...more })
    return endpointOfEntry(resolveProviderEntry(entry, { apiKey: undefined, source: 'tollgate.yaml:2' }))?.rules
  }
  // Groq answers logit_bias with a 400.
  expect(at('https://api.groq.com/openai/v1/')).toMatchObject({
    logitBias: false,
    outputCapName: 'max_completion_tokens',
  })
  expect(at('https://api.groq.com/openai/v1', { output_cap: 'max_tokens' })).toMatchObject({
    logitBias: false,
    outputCapName: 'max_tokens',
  })
  expect(at('https://api.groq.example/openai/v1')).toBeUndefined()
})

test('whether reasoning comes on top of the output cap is a fact of the host', () => {
  const entry = providerEntrySchema.parse({ ...acme, cap_excludes_reasoning: true })
  const resolved = resolveProviderEntry(entry, { apiKey: undefined, source: 'tollgate.yaml:2' })
  expect(endpointOfEntry(resolved)?.rules).toEqual({ capExcludesReasoning: true })
  expect(faults({ cap_excludes_reasoning: 'yes' })).toEqual(['cap_excludes_reasoning: expected true or false'])
})

test('whether the host takes a cache key is a fact of the host', () => {
  for (const takes of [true, false]) {
    const entry = providerEntrySchema.parse({ ...acme, prompt_cache_key: takes })
    const resolved = resolveProviderEntry(entry, { apiKey: undefined, source: 'tollgate.yaml:2' })
    expect(endpointOfEntry(resolved)?.rules).toEqual({ promptCacheKey: takes })
  }
  expect(faults({ prompt_cache_key: 'yes' })).toEqual(['prompt_cache_key: expected true or false'])
})

test('the sandbox needs no address and has none', () => {
  const entry = providerEntrySchema.parse({ id: 'sandbox-eu', dialect: 'sandbox' })
  const resolved = resolveProviderEntry(entry, { apiKey: undefined, source: 'tollgate.yaml:2' })
  expect(resolved.dialect).toBe('sandbox')
  expect(resolved.baseUrl).toBeUndefined()
})

test.each(['Acme', 'a_b', '-a', '', 'a/b', 'a'.repeat(64)])('the id %p is refused', (id) => {
  expect(faults({ id })).toHaveLength(1)
})

test('an id may have 63 characters', () => {
  expect(faults({ id: 'a'.repeat(63) })).toEqual([])
})

test('an unknown dialect is refused with the list of known ones', () => {
  expect(faults({ dialect: 'soap' })).toEqual([
    'dialect: expected one of openai-chat, anthropic-messages, gemini, openai-responses, bedrock, sandbox',
  ])
})

test.each([
  ['openai-chat', { dialect: 'openai-chat', auth: 'bearer' }],
  ['anthropic-messages', { dialect: 'anthropic-messages', auth: 'x-api-key' }],
  ['gemini', { dialect: 'gemini', auth: 'x-goog-api-key' }],
  ['openai-responses', { dialect: 'openai-responses', auth: 'bearer' }],
  ['bedrock', invokedClaude],
] as const)('a provider of %s is called as that dialect has it', (dialect, endpoint) => {
  const entry = { id: 'acme', dialect, baseUrl: 'https://acme.example/x', source: 'tollgate.yaml:2' }
  expect(endpointOfEntry({ ...entry, apiKey: new Secret('k') })).toEqual({ ...endpoint, baseUrl: entry.baseUrl })
  expect(endpointOfEntry({ ...entry, apiKey: undefined })?.auth).toBe('none')
})

test('pitfall 150: one of bedrock is sent the flags that the host knows, and its rules hold', () => {
  expect(invokedClaude).toMatchObject({ dialect: 'anthropic-messages', auth: 'sigv4', wrapping: 'invoke-model' })
  expect(invokedClaude.betas).toContain('context-1m-2025-08-07')
  expect(invokedClaude.rules).toMatchObject({ mediaUrls: false })
})

test('refuses a gemini address without a version', () => {
  expect(faults({ dialect: 'gemini', base_url: 'https://acme.example' })).toEqual([
    'base_url: must contain the version, as in https://HOST/v1beta',
  ])
  expect(faults({ dialect: 'gemini', base_url: 'https://acme.example/v1beta' })).toEqual([])
})

test.each([
  ['is missing', undefined],
  ['is not an address', 'acme'],
  ['has another scheme', 'ftp://acme.example/canary'],
  ['has one slash too few', 'http:/acme.example/canary'],
  ['contains a space', 'http://acme.example/can ary'],
  ['contains a password', 'https://user:canary@acme.example/v1'],
  ['contains a query', 'https://acme.example/v1?key=canary'],
])('an address that %s is refused without being repeated', (_, base_url) => {
  const [fault, ...others] = faults({ base_url })
  expect(others).toEqual([])
  expect(fault).toStartWith('base_url: ')
  expect(fault).not.toContain('canary')
})

test.each(['https://acme.example/v1', 'https://acme.example/v1/'])(
  'refuses /v1 in the anthropic-messages address %s',
  (base_url) => {
    expect(faults({ dialect: 'anthropic-messages', base_url })).toEqual([
      'base_url: must not end in /v1: the anthropic-messages dialect appends it; leave it out',
    ])
    expect(faults({ dialect: 'anthropic-messages', base_url: 'https://acme.example' })).toEqual([])
  },
)

test('reports a wrong address together with other faults of the entry', () => {
  expect(faults({ id: 'Acme', base_url: 'acme' })).toHaveLength(2)
})

test('an empty key is refused', () => {
  expect(faults({ api_key: '' })).toHaveLength(1)
})
