import { expect, test } from 'bun:test'
import { sandboxModels } from '../../catalog/data/sandbox.ts'
import { modelEntrySchema, modelFromEntry } from '../../catalog/entry.ts'
import { priceUsage } from '../../catalog/price.ts'
import { createBehaviours } from './behaviours.ts'
import { outputTokensMax } from './compose-reply.ts'

test('every route of the catalog has a behaviour, and every behaviour a route', () => {
  const routed = sandboxModels.flatMap((model) => model.routes.map((route) => route.model))
  expect(routed.toSorted()).toEqual([...createBehaviours().keys()].toSorted())
})

test('the nine models are entries as the configuration file would take them', () => {
  for (const model of sandboxModels) expect(modelEntrySchema.parse(model)).toEqual(model)
  expect(sandboxModels.map((model) => model.id)).toEqual([
    'sandbox/echo',
    'sandbox/tools',
    'sandbox/think',
    'sandbox/cache',
    'sandbox/slow',
    'sandbox/flaky',
    'sandbox/throttled',
    'sandbox/down',
    'sandbox/breaks-off',
  ])
})

test('the first call costs 28,000 nano-dollars: 12 × $1.00/M + 8 × $2.00/M', () => {
  const [echo] = sandboxModels.map((model) => modelFromEntry(model, 'built in'))
  const buckets = { inputTokens: 12, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 }
  const usage = { ...buckets, outputTokens: 8, source: 'reported' } as const
  expect(echo?.price && String(priceUsage(echo.price, usage))).toBe('28000')
})

test('a model writes no more than its entry says', () => {
  for (const model of sandboxModels) expect(model.max_output_tokens).toBe(outputTokensMax)
})
