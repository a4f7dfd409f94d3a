import { expect, test } from 'bun:test'
import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { rulesFor } from './rules-for.ts'

function facts(upstreamModel: string): TargetRules {
  return rulesFor({ dialect: 'gemini', upstreamModel, endpointRules: undefined })
}

// How thinking is set for each, from Google's table of thinking levels and budgets and the data of pi-ai 1.5.0.
const rows: readonly [model: string, facts: TargetRules][] = [
  ['gemini-4-argon', { efforts: ['low', 'medium', 'high'], thinksByDefault: true }],
  ['gemini-3.8-flash', { efforts: ['low', 'medium', 'high'], thinksByDefault: true }],
  ['gemini-3.7-flash', { efforts: ['low', 'medium', 'high'], thinksByDefault: true }],
  ['gemini-3.6-flash', { efforts: ['minimal', 'low', 'medium', 'high'], thinksByDefault: true }],
  ['gemini-3.1-flash-lite', { efforts: ['minimal', 'low', 'medium', 'high'], thinksByDefault: true }],
  ['gemini-3-flash-preview', { efforts: ['minimal', 'low', 'medium', 'high'], thinksByDefault: true }],
  ['gemini-3.1-pro-preview', { efforts: ['low', 'medium', 'high'], thinksByDefault: true }],
  ['gemini-3-pro-preview', { efforts: ['low', 'high'], thinksByDefault: true }],
  ['gemini-2.5-flash', { efforts: [], thinking: ['enabled', 'disabled'], thinksByDefault: true, penalties: false }],
  ['gemini-2.5-flash-lite', { efforts: [], thinking: ['enabled', 'disabled'], thinksByDefault: false }],
  ['gemini-2.5-pro', { efforts: [], thinking: ['enabled'], thinksByDefault: true }],
  ['gemini-2.0-flash', { efforts: [], thinking: [], thinksByDefault: false }],
  ['gemini-9-tomorrow', { efforts: ['low', 'medium', 'high'], thinksByDefault: true }],
]

test.each(rows)('%s thinks as it is documented', (model, expected) => {
  expect(facts(model)).toMatchObject(expected)
})

test('penalties are only refused by the generation that refuses them', () => {
  expect(facts('gemini-3.8-flash').penalties).toBeUndefined()
  expect(facts('gemini-2.0-flash').penalties).toBeUndefined()
})

test('a model of somebody else on the same API is not taken for one', () => {
  expect(facts('gemma-4-27b-it').efforts).toBeUndefined()
})
