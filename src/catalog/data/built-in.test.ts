import { describe, expect, test } from 'bun:test'
import { composeCatalog } from '../../../scripts/compose-catalog.ts'
import type { Bucket, Tier } from '../../kernel/usage.ts'
import { modelEntrySchema, modelFromEntry } from '../entry.ts'
import { hasTiers, pricedTiers, ratesAt } from '../price.ts'
import { builtInModels } from './built-in.ts'

const day = /^20\d\d-\d\d-\d\d$/
const models = builtInModels.map((model) => [model.id, model] as const)

test('the file is what its sources give', async () => {
  expect(await Bun.file(`${import.meta.dir}/models.json`).text()).toBe(await composeCatalog())
})

test('there are enough models, and enough of them with somewhere to go when a provider fails', () => {
  expect(builtInModels.length).toBeGreaterThanOrEqual(150)
  const withAlternative = builtInModels.filter(({ routes }) => new Set(routes.map(({ provider }) => provider)).size > 1)
  expect(withAlternative.length).toBeGreaterThanOrEqual(40)
})

test('nearly every release is known, those of the newest models too', () => {
  const unknown = builtInModels.filter(({ released }) => released === undefined)
  expect(unknown.length).toBeLessThanOrEqual(10)
  // platform.claude.com/docs/en/models/opus-5/overview: released July 24, 2026.
  expect(builtInModels.find(({ id }) => id === 'anthropic/claude-opus-5')?.released).toBe('2026-07-24')
})

test('no model is listed twice', () => {
  expect(new Set(builtInModels.map(({ id }) => id)).size).toBe(builtInModels.length)
})

describe('every model', () => {
  test.each(models)('%s could be written in the configuration file', (_, model) => {
    const { retires, provenance, ...entry } = model
    expect(modelEntrySchema.parse(entry)).toEqual(entry)
    if (retires !== undefined) expect(retires).toMatch(day)
  })

  test.each(models)('%s has a price or is free on purpose', (_, model) => {
    const { price } = modelFromEntry(model, 'built in')
    if (price === undefined) throw new Error('no price')
    const rate = (bucket: Bucket, inputTokens = 0) => ratesAt(price, inputTokens)[bucket] ?? 0n
    // Embeddings have no output, and it costs nothing.
    const isOutputRight = rate('output') > 0n !== (model.tags ?? []).includes('embeddings')
    expect(price.free || (rate('input') > 0n && isOutputRight)).toBe(true)
    // Reading a cache saves, more input per request never does.
    expect(rate('cache_read') <= rate('input')).toBe(true)
    for (const { when } of price.rows) {
      const tokens = (when?.overInputTokens ?? 0) + 1
      expect(rate('input', tokens) >= rate('input') && rate('output', tokens) >= rate('output')).toBe(true)
    }
  })

  test.each(models)('%s says where its facts and its price are from, and when somebody looked', (_, { provenance }) => {
    for (const { source, checked } of Object.values(provenance)) {
      expect(source).not.toBe('')
      expect(checked).toMatch(day)
      expect(new Date(`${checked}T00:00:00Z`).toISOString().slice(0, 10)).toBe(checked)
    }
  })

  test.each(models)('%s costs less in slow tiers and more in fast ones, for prompts of every length', (_, model) => {
    const { price } = modelFromEntry(model, 'built in')
    if (price === undefined) throw new Error('no price')
    expect(model.provenance.tiers !== undefined).toBe(hasTiers(price))
    const lengths = [0, ...price.rows.map(({ when }) => (when?.overInputTokens ?? 0) + 1)]
    for (const tier of pricedTiers(price)) {
      const isSlow = tier === 'flex' || tier === 'batch'
      for (const tokens of lengths) {
        const [there, usual] = [ratesAt(price, tokens, { tier }), ratesAt(price, tokens)]
        for (const bucket of ['input', 'output'] as const) {
          const [rate = 0n, standard = 0n] = [there[bucket], usual[bucket]]
          expect([tier, bucket, isSlow ? rate < standard : rate > standard]).toEqual([tier, bucket, true])
        }
        // A cached prompt is read at the standard price in some slow tiers.
        const [read = 0n, usualRead = 0n] = [there.cache_read, usual.cache_read]
        expect([tier, isSlow ? read <= usualRead : read > usualRead]).toEqual([tier, true])
      }
    }
  })

  test.each(models)('%s was trained before it was released', (_, { knowledge, released }) => {
    if (knowledge !== undefined && released !== undefined) expect(knowledge.slice(0, 7) <= released).toBe(true)
  })

  test.each(models)('%s takes images if and only if requests may have some', (_, { input, tags = [] }) => {
    if (input) expect(input.includes('image')).toBe(tags.includes('vision'))
  })

  test.each(models)('%s leaves room for a question beside its usual answer', (_, model) => {
    const { context_tokens: context = 0, max_output_tokens: most = context, default_max_tokens: usual = 0 } = model
    if (model.tags?.includes('embeddings')) return expect([usual, most]).toEqual([0, context])
    expect(usual).toBeGreaterThan(0)
    expect(usual).toBeLessThanOrEqual(Math.min(most, context / 4))
    expect(most).toBeLessThanOrEqual(context)
  })

  test.each(models)('%s has routes in one order, each to another provider', (_, { routes }) => {
    expect(routes.map(({ priority }) => priority)).toEqual(routes.map((_, at) => at + 1))
    expect(new Set(routes.map(({ provider }) => provider)).size).toBe(routes.length)
  })

  test.each(models)('%s is not already switched off', (_, { retires, provenance }) => {
    if (retires !== undefined) expect(retires > provenance.facts.checked).toBe(true)
  })
})

// Read off the creators' price pages by way of the sources; each is a line somebody can check.
const prices: readonly [id: string, input: string, output: string, cacheRead: string][] = [
  ['anthropic/claude-opus-5.5', '4.00', '20.00', '0.20'],
  ['anthropic/claude-sonnet-5.5', '2.00', '10.00', '0.10'],
  ['anthropic/claude-haiku-4.5', '1.00', '5.00', '0.10'],
  ['openai/gpt-5.6', '4.00', '20.00', '0.40'],
  ['openai/gpt-6.1-sol', '2.00', '10.00', '0.10'],
  ['moonshotai/kimi-k3', '3.00', '15.00', '0.30'],
  ['zai/glm-5.3', '1.40', '4.40', '0.26'],
  ['xai/grok-4.7', '2.00', '6.00', '0.50'],
  // A day has hours at half this price; a bill must cover the others.
  ['deepseek/deepseek-v4-pro', '1.32', '3.96', '0.13'],
  // OpenAI does not sell it: the dearest host does.
  ['openai/gpt-oss-120b', '0.35', '0.75', '0.35'],
]
test.each(prices)('%s costs %s in, %s out, %s from a cache', (id, input, output, cacheRead) => {
  const model = builtInModels.find((each) => each.id === id)
  expect(model?.price).toMatchObject({ input, output, cache_read: cacheRead })
})

test('a price above a bound of input tokens is kept', () => {
  const haiku = builtInModels.find(({ id }) => id === 'anthropic/claude-haiku-5.5')
  expect(haiku?.price).toMatchObject({ input: '0.10', over: { '100000': { input: '0.50', output: '2.50' } } })
})

// https://openai.com/api-fast-mode, https://platform.claude.com/docs/build-with-claude/fast-mode and batch-processing,
// https://ai.google.dev/gemini-api/docs/optimization, read on 2026-11-19.
const tierPrices: readonly [id: string, tier: Tier, input: string, output: string, cacheRead: string][] = [
  ['openai/gpt-5.5', 'priority', '12.50', '75.00', '1.25'],
  ['openai/gpt-5.4', 'priority', '5.00', '30.00', '0.50'],
  ['openai/gpt-5.4-mini', 'priority', '1.50', '9.00', '0.15'],
  ['openai/gpt-5.2', 'priority', '3.50', '28.00', '0.35'],
  ['openai/gpt-5.1', 'priority', '2.50', '20.00', '0.25'],
  ['openai/gpt-5.4', 'flex', '1.25', '7.50', '0.125'],
  ['openai/gpt-6.1-sol', 'ultrafast', '12.00', '60.00', '0.60'],
  ['anthropic/claude-opus-5', 'priority', '10.00', '50.00', '1.00'],
  ['anthropic/claude-sonnet-5.5', 'batch', '1.00', '5.00', '0.05'],
  ['google/gemini-3.6-flash', 'flex', '0.375', '1.875', '0.0375'],
  ['google/gemini-2.5-pro', 'flex', '0.625', '5.00', '0.125'],
]
test.each(tierPrices)('%s in %s costs %s in, %s out, %s from a cache', (id, tier, input, output, cacheRead) => {
  const price = builtInModels.find((each) => each.id === id)?.price
  expect(typeof price === 'object' && price.tiers?.[tier]).toMatchObject({ input, output, cache_read: cacheRead })
})

test('tiers that no source prices are left out', () => {
  const tiersOf = (id: string) => {
    const price = builtInModels.find((each) => each.id === id)?.price
    return typeof price === 'object' ? Object.keys(price.tiers ?? {}) : []
  }
  expect(tiersOf('openai/gpt-4.1')).toEqual(['priority', 'batch'])
  expect(tiersOf('openai/gpt-5-nano')).toEqual(['flex', 'batch'])
  expect(tiersOf('anthropic/claude-opus-4.7')).toEqual(['batch'])
  expect(tiersOf('xai/grok-4.5')).toEqual([])
})
