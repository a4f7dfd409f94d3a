import { describe, expect, test } from 'bun:test'
import type { Model, Route } from '../catalog/model.ts'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { gemini } from '../dialects/gemini/index.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { openaiResponses } from '../dialects/openai-responses/index.ts'
import { builtInProviders } from '../providers/data/built-in.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import { candidatesOf, type OfferedModel, type RequestedFeatures, rememberRules } from './plan.ts'
import type { RouteHealth } from './route.ts'

const route: Route = { providerId: 'acme', upstreamModel: 'gpt-5', priority: 1, weight: 1, timeouts: {} }
const endpoint: Endpoint = { dialect: 'openai-chat', baseUrl: 'https://api.example', auth: 'none' }
const untagged: Pick<Model, 'tags'> = { tags: [] }

test('caches the rules of a model at an endpoint', () => {
  const rulesOf = rememberRules()
  const rules = rulesOf(route, endpoint, untagged)
  expect(rules).toMatchObject({ sampling: 'none', outputCapName: 'max_completion_tokens' })
  expect(rulesOf(route, endpoint, untagged)).toBe(rules)
})

test('keeps the rules of different endpoints, dialects and models apart', () => {
  const rulesOf = rememberRules()
  rulesOf(route, endpoint, untagged)
  expect(rulesOf(route, { ...endpoint, rules: { outputCapName: 'max_tokens' } }, untagged).outputCapName).toBe(
    'max_tokens',
  )
  expect(rulesOf(route, { ...endpoint, dialect: 'anthropic-messages' }, untagged).sampling).toBeUndefined()
  expect(rulesOf({ ...route, upstreamModel: 'gpt-4o' }, endpoint, untagged).sampling).toBe('all')
})

test('applies the host’s model rules and the catalog’s tags', () => {
  const rulesOf = rememberRules()
  const llama = { ...route, upstreamModel: 'llama-3.3-70b-versatile' }
  expect(rulesOf(llama, endpoint, { tags: ['tools'] }).efforts).toEqual([])
  const modelRules = [{ models: /^llama/, rules: { efforts: ['high'] as const } }]
  expect(rulesOf(llama, { ...endpoint, modelRules }, untagged).efforts).toEqual(['high'])
})

const endpointsOf = (id: string) => builtInProviders.find((provider) => provider.id === id)?.endpoints ?? []
const responses: Endpoint = { ...endpoint, dialect: 'openai-responses' }
const messages: Endpoint = { ...endpoint, dialect: 'anthropic-messages' }

function chosen(
  upstreamModel: string,
  features: RequestedFeatures,
  surface: Dialect = openaiChat,
  endpoints: readonly Endpoint[] = [endpoint, responses],
) {
  const provider: Provider = { id: 'acme', endpoints, apiKey: undefined, source: 'a test' }
  const model = { routes: [{ ...route, upstreamModel }] } as unknown as OfferedModel
  const [candidate] = candidatesOf({
    model,
    surface,
    features,
    dialects: {
      'openai-chat': openaiChat,
      'anthropic-messages': anthropicMessages,
      gemini,
      'openai-responses': openaiResponses,
    },
    platform: new Map([['acme', provider]]),
    own: new Map(),
    sharesRoutes: true,
    rulesOf: rememberRules(),
    healthOf: () => ({}) as RouteHealth,
  })
  return [candidate?.dialect.id, candidate?.why] as const
}

const why = 'openai-responses, because openai-chat refuses tools while the model reasons'

test.each([
  // gpt-5.6 reasons unless the request disables it, and refuses tools then.
  ['gpt-5.6', { offersTools: true, reasoning: undefined }, ['openai-responses', why]],
  ['gpt-5.6', { offersTools: true, reasoning: 'on' }, ['openai-responses', why]],
  ['gpt-5.6', { offersTools: true, reasoning: 'off' }, ['openai-chat', undefined]],
  ['gpt-5.6', { offersTools: false, reasoning: 'on' }, ['openai-chat', undefined]],
  // gpt-5.4 only reasons on request.
  ['gpt-5.4', { offersTools: true, reasoning: undefined }, ['openai-chat', undefined]],
  ['gpt-5.4', { offersTools: true, reasoning: 'on' }, ['openai-responses', why]],
  ['gpt-4.1', { offersTools: true, reasoning: 'on' }, ['openai-chat', undefined]],
  ['gpt-5', { offersTools: true, reasoning: 'on' }, ['openai-chat', undefined]],
] as const)('%s asked with %j goes by %j', (model, features, expected) => {
  expect(chosen(model, features)).toEqual(expected)
  expect(chosen(model, features, anthropicMessages)).toEqual(expected)
})

test('uses the usual endpoint if none accepts both', () => {
  const features = { offersTools: true, reasoning: 'on' } as const
  expect(chosen('gpt-5.6', features, openaiChat, [endpoint])).toEqual(['openai-chat', undefined])
})

test('prefers an endpoint in the client’s dialect', () => {
  const features = { offersTools: true, reasoning: 'on' } as const
  expect(chosen('gpt-5.6', features, anthropicMessages, [endpoint, responses, messages])[0]).toBe('anthropic-messages')
})

describe('endpoints that serve only some models', () => {
  const features = { offersTools: true, reasoning: undefined } as const

  test.each([
    ['gemini-3-flash', 'gemini'],
    ['claude-opus-5-5', 'anthropic-messages'],
  ] as const)('calls %s at Vertex in %s, whatever the dialect of the caller', (model, dialect) => {
    for (const surface of [openaiChat, anthropicMessages]) {
      expect(chosen(model, features, surface, endpointsOf('google-vertex'))[0]).toBe(dialect)
    }
  })

  test.each(['gpt-5.5-pro', 'o3-pro-2025-06-10', 'gpt-5.3-codex', 'o3-deep-research'])(
    'calls %s by Responses at OpenAI',
    (model) => expect(chosen(model, features, openaiChat, endpointsOf('openai'))[0]).toBe('openai-responses'),
  )

  test.each(['gpt-4.1', 'ft:gpt-4o-mini-2024-07-18:acme-pro::x', 'ft:gpt-4.1:codex-labs::y'])(
    'calls %s by Chat Completions',
    (model) => expect(chosen(model, features, openaiChat, endpointsOf('openai'))[0]).toBe('openai-chat'),
  )

  test('a model that no endpoint claims uses the endpoint in the caller’s dialect', () => {
    const only = [
      { ...endpoint, models: /^a/ },
      { ...messages, models: /^b/ },
    ]
    expect(chosen('c', features, anthropicMessages, only)[0]).toBe('anthropic-messages')
  })
})

test('takes cache marks that the operator wants from the model', () => {
  const rulesOf = rememberRules()
  const endpoint = { dialect: 'anthropic-messages' } as Endpoint
  const rules = (cacheMarks: boolean) =>
    rulesOf({ upstreamModel: 'acme-large-v1' } as Route, endpoint, { tags: [], cacheMarks }).cachesOnlyMarked
  expect([rules(true), rules(false)]).toEqual([true, undefined])
})
