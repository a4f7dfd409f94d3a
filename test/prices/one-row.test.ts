// The catalog, /v1/models, the hold, the bill and the explanation of a request read the same row, for every model that
// comes with the gateway. What they must say is worked out here from the list itself.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { builtInModels } from '../../src/catalog/data/built-in.ts'
import type { Tier } from '../../src/kernel/usage.ts'
import { usd } from '../money/wallets.ts'
import { cap, openPriced, type PricedGateway, pico, roughTokens, used } from './priced-gateway.ts'

const providerIds = [...new Set(builtInModels.flatMap(({ routes }) => routes.map(({ provider }) => provider)))]
const providers = (url: string) =>
  providerIds.map((id) => `  - { id: ${id}, dialect: openai-chat, base_url: "${url}/v1", api_key: a-key }`).join('\n')

let priced: PricedGateway
beforeAll(async () => {
  priced = await openPriced({ config: (url) => `providers:\n${providers(url)}\n` })
})
afterAll(() => priced[Symbol.asyncDispose]())

interface Row {
  readonly input: string
  readonly output: string
  readonly cache_read?: string | undefined
  readonly cache_write?: string | undefined
  readonly cache_write_1h?: string | undefined
  readonly audio_input?: string | undefined
  readonly audio_cache_read?: string | undefined
  readonly audio_output?: string | undefined
}

/** Buckets that are not listed cost as much as input, and a long cache as much as a short one. */
function expectedOf(row: Row) {
  const [input, output] = [pico(row.input), pico(row.output)]
  const read = row.cache_read === undefined ? input : pico(row.cache_read)
  const write = row.cache_write === undefined ? input : pico(row.cache_write)
  const writeLong = row.cache_write_1h === undefined ? write : pico(row.cache_write_1h)
  const dearest = [input, read, write].reduce((max, each) => (each > max ? each : max))
  const bill =
    BigInt(used.input) * input + BigInt(used.read) * read + BigInt(used.write) * write + BigInt(used.output) * output
  const hold = BigInt(roughTokens) * dearest + BigInt(cap) * output
  const audio = (['audio_input', 'audio_cache_read', 'audio_output'] as const).flatMap((name) => {
    const listed = row[name]
    return listed === undefined ? [] : [[name, pico(listed)] as const]
  })
  const text = { input, output, cache_read: read, cache_write: write, cache_write_1h: writeLong }
  const shown = { ...text, ...Object.fromEntries(audio) }
  return { shown, cost: usd((bill + 999n) / 1000n), held: usd((hold + 999n) / 1000n) }
}

const picos = (prices: object) =>
  Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, pico(String(price))]))

test('catalog, list, cost, hold and explanation agree for every built-in model', async () => {
  expect(builtInModels.length).toBeGreaterThanOrEqual(150)
  for (const { id, price, tags } of builtInModels) {
    // They answer no prompts; test/clients/embeddings.test.ts has what they cost.
    if (tags?.includes('embeddings')) continue
    expect([id, price === undefined]).toEqual([id, false])
    const { catalog, isListed, cost, held, explained, version } = await priced.everywhere(id)
    expect([id, isListed, version]).toEqual([id, true, `${id}#1`])
    if (price === undefined || price === 'free') {
      expect([id, catalog, cost, held]).toEqual([id, 'free', '0.00', '0.00'])
      continue
    }
    const expected = expectedOf(price)
    const { over: _long, tiers = {}, web_search: search, us_only: factor, ...row } = catalog as Record<string, unknown>
    expect([id, Object.keys(tiers as object)]).toEqual([id, Object.keys(price.tiers ?? {})])
    for (const [name, { over: _, ...tier }] of Object.entries(tiers as Record<string, Record<string, unknown>>)) {
      const listed = price.tiers?.[name as Tier]
      if (!listed) throw new Error(`${id} has no tier ${name}`)
      expect([id, name, picos(tier)]).toEqual([id, name, expectedOf(listed).shown])
    }
    expect([id, search, factor]).toEqual([id, price.web_search, price.us_only])
    expect([id, picos(row)]).toEqual([id, expected.shown])
    const { input, output, cache_read, cache_write } = expected.shown
    const usedPrices = { input, output, cache_read, cache_write }
    expect([id, picos(explained)]).toEqual([id, usedPrices])
    expect([id, cost, held]).toEqual([id, expected.cost, expected.held])
  }
})

test('a price that was set is the row that all five read from the next request on', async () => {
  const { id } = builtInModels[0] ?? { id: '' }
  const price = { input: '3.00', output: '15.00', cache_read: '0.30', cache_write: '3.75', cache_write_1h: '6.00' }
  const { version } = (await priced.put(id, price)).body
  expect(version).toBe(`${id}#2`)
  // 100 × 3 + 20 × 0.3 + 10 × 3.75 + 50 × 15 = 1,093.5 micro-dollars; held 150 × 3.75 + 100 × 15 = 2,062.5.
  expect(await priced.everywhere(id)).toEqual({
    catalog: price,
    isListed: true,
    cost: '0.0010935',
    held: '0.0020625',
    explained: { input: '3.00', cache_read: '0.30', cache_write: '3.75', output: '15.00' },
    version,
  })
})
