import { expect, test } from 'bun:test'
import type { Route } from '../catalog/model.ts'
import type { Endpoint } from '../providers/provider.ts'
import { rememberRules } from './plan.ts'

const route: Route = { providerId: 'acme', upstreamModel: 'gpt-5', priority: 1, weight: 1, timeouts: {} }
const endpoint: Endpoint = { dialect: 'openai-chat', baseUrl: 'https://api.example', auth: 'none' }

test('the rules of a route are the model’s and the endpoint’s, worked out once', () => {
  const rulesOf = rememberRules()
  const rules = rulesOf(route, endpoint)
  expect(rules).toMatchObject({ sampling: 'none', outputCapName: 'max_completion_tokens' })
  expect(rulesOf(route, endpoint)).toBe(rules)
})

test('another endpoint, dialect or model is another answer', () => {
  const rulesOf = rememberRules()
  rulesOf(route, endpoint)
  expect(rulesOf(route, { ...endpoint, rules: { outputCapName: 'max_tokens' } }).outputCapName).toBe('max_tokens')
  expect(rulesOf(route, { ...endpoint, dialect: 'anthropic-messages' }).sampling).toBeUndefined()
  expect(rulesOf({ ...route, upstreamModel: 'gpt-4o' }, endpoint).sampling).toBe('all')
})
