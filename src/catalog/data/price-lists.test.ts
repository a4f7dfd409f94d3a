import { describe, expect, test } from 'bun:test'
import { packagePrice } from '../../../scripts/price-lists.ts'
import { dearest, decimal, priceEntry, timesFactor } from '../listed-prices.ts'

describe('the dearest of several price lists', () => {
  test('has the highest price of each bucket, ignoring lists without a cache price', () => {
    const lists = [
      { input: 1, output: 5, cache_read: 0.1 },
      { input: 2, output: 4 },
      { input: 1.5, output: 4.5, cache_read: 0.3, cache_write: 2.5 },
    ]
    expect(dearest(lists)).toEqual({ input: 2, output: 5, cache_read: 0.3, cache_write: 2.5 })
  })

  test('has every tier of any of them, priced as that list and the others price so long a request', () => {
    const tiered = { input: 1, output: 5, over: { 200: { input: 2, output: 8 }, 400: { input: 3, output: 9 } } }
    const flat = { input: 2.5, output: 4 }
    expect(dearest([tiered, flat])).toEqual({
      input: 2.5,
      output: 5,
      over: { 200: { input: 2.5, output: 8 }, 400: { input: 3, output: 9 } },
    })
  })

  test('has no tier that changes nothing', () => {
    const tiered = { input: 1, output: 1, over: { 200: { input: 2, output: 2 } } }
    expect(dearest([tiered, { input: 3, output: 3 }])).toEqual({ input: 3, output: 3 })
  })

  test('is undefined without a list', () => expect(dearest([])).toBeUndefined())
})

test('a factor multiplies every price of tokens, without the dust of floats, and no other', () => {
  const list = {
    input: 0.1,
    output: 1.25,
    cache_read: 0.01,
    web_search: 10,
    over: { 200: { input: 0.2, output: 2.5 } },
  }
  expect(timesFactor(list, () => 1.8)).toEqual({
    ...{ input: 0.18, output: 2.25, cache_read: 0.018 },
    over: { 200: { input: 0.36, output: 4.5 } },
  })
})

describe('the package', () => {
  // Its own notes: $1 in and $6 out before 2026-07-30, a fifth of it since; twice and 1.5 times that above 271,999.
  test('has the price of a given day', () => {
    const before = packagePrice('openai', 'gpt-5.6-luna', '2026-07-29')
    expect(before).toMatchObject({ input: 1, output: 6 })
    expect(packagePrice('openai', 'gpt-5.6-luna', '2026-07-30')).toEqual({
      ...{ input: 0.2, output: 1.2, cache_read: 0.02, cache_write: 0.25 },
      web_search: 10,
      over: { 271999: { input: 0.4, output: 1.8, cache_read: 0.04, cache_write: 0.5 } },
    })
  })

  test('has the price of the most expensive hour', () => {
    const hours = packagePrice('deepseek', 'deepseek-v4-pro', '2026-11-15')
    expect(hours).toEqual({ input: 1.32, output: 3.96, cache_read: 0.044 })
  })

  test('has the prices of audio', () => {
    expect(packagePrice('google', 'gemini-2.5-flash', '2026-11-15')).toMatchObject({
      ...{ input: 0.3, cache_read: 0.03, audio_input: 1, audio_cache_read: 0.1 },
    })
  })

  test('does not confuse a model with its successor', () => {
    expect(packagePrice('anthropic', 'claude-sonnet-5', '2026-11-15')?.input).toBe(2)
    expect(packagePrice('anthropic', 'claude-sonnet-5-5', '2026-11-15')).toBeUndefined()
    expect(packagePrice('nobody', 'nothing', '2026-11-15')).toBeUndefined()
  })

  test('refuses a model with a fee per request', () => {
    expect(() => packagePrice('perplexity', 'sonar', '2026-11-15')).toThrow('sonar: a fee per request')
  })
})

test('a price is a decimal, exactly', () => {
  expect([30, 2.5, 0.0375, 0.003625].map(decimal)).toEqual(['30.00', '2.50', '0.0375', '0.003625'])
  expect(() => decimal(1 / 3)).toThrow('more than six decimals')
})

test('a fee for storing a cache does not make writing it cheaper than input', () => {
  expect(priceEntry({ input: 0.3, output: 2.5, cache_read: 0.03, cache_write: 1 / 12 })).toEqual({
    ...{ input: '0.30', output: '2.50', cache_read: '0.03' },
  })
})
