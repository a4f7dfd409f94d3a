import { expect, test } from 'bun:test'
import { type Pico, parsePrice } from '../kernel/money.ts'
import { type ModelEntry, modelEntrySchema, modelFromEntry, priceFromEntry } from './entry.ts'
import { createPrice, freePrice, ratesAt } from './price.ts'

const route = { provider: 'acme', model: 'acme-large-v1' }
const pico = (value: bigint) => value as Pico

function faultPaths(entry: unknown): string[] {
  const result = modelEntrySchema.safeParse(entry)
  return result.success ? [] : result.error.issues.map((issue) => issue.path.join('.'))
}

test('an entry with everything becomes a model', () => {
  const entry = modelEntrySchema.parse({
    id: 'acme/large',
    owned_by: 'acme-labs',
    name: 'Acme Large',
    released: '2026-02-28',
    context_tokens: 200_000,
    max_output_tokens: 32_000,
    default_max_tokens: 4_096,
    tags: ['tools', 'vision', 'tools'],
    price: { input: '2.50', output: '10.00', cache_read: '0.25', cache_write: '3.125', cache_write_1h: '5.00' },
    routes: [{ ...route, priority: 2, weight: 3, timeouts: { connect_ms: 3000, total_ms: 900_000 } }],
  })
  expect(modelFromEntry(entry, 'tollgate.yaml:7')).toEqual({
    id: 'acme/large',
    ownedBy: 'acme-labs',
    name: 'Acme Large',
    contextTokens: 200_000,
    maxOutputTokens: 32_000,
    defaultMaxTokens: 4_096,
    tags: ['tools', 'vision'],
    price: {
      free: false,
      rows: [
        { bucket: 'input', picoDollarsPerUnit: pico(2_500_000n) },
        { bucket: 'output', picoDollarsPerUnit: pico(10_000_000n) },
        { bucket: 'cache_read', picoDollarsPerUnit: pico(250_000n) },
        { bucket: 'cache_write', picoDollarsPerUnit: pico(3_125_000n) },
        { bucket: 'cache_write_1h', picoDollarsPerUnit: pico(5_000_000n) },
      ],
      factors: {},
    },
    routes: [
      {
        providerId: 'acme',
        upstreamModel: 'acme-large-v1',
        priority: 2,
        weight: 3,
        timeouts: { connectMs: 3000, totalMs: 900_000 },
      },
    ],
    routing: 'priority',
    hedge: false,
    fallbacks: [],
    hostedTools: [],
    released: '2026-02-28',
    source: 'tollgate.yaml:7',
  })
})

test('an entry needs only an id and a route, and is then not priced', () => {
  const model = modelFromEntry(modelEntrySchema.parse({ id: 'acme/small', routes: [route] }), 'built in')
  expect(model).toEqual({
    id: 'acme/small',
    ownedBy: 'acme',
    name: 'acme/small',
    contextTokens: undefined,
    maxOutputTokens: undefined,
    defaultMaxTokens: undefined,
    tags: [],
    price: undefined,
    routes: [{ providerId: 'acme', upstreamModel: 'acme-large-v1', priority: 1, weight: 1, timeouts: {} }],
    routing: 'priority',
    hedge: false,
    fallbacks: [],
    hostedTools: [],
    released: undefined,
    source: 'built in',
  })
})

test('reads the routing policy, the cost of a route and its content idle timeout', () => {
  const routes = [{ ...route, cost: { input: '1.25', output: '6.00' }, timeouts: { content_idle_ms: 90_000 } }]
  const entry = modelEntrySchema.parse({ id: 'acme/large', routing: 'cheapest', routes })
  const model = modelFromEntry(entry, 'built in')
  expect(model.routing).toBe('cheapest')
  expect(model.routes[0]).toMatchObject({
    cost: createPrice({ input: pico(1_250_000n), output: pico(6_000_000n) }),
    timeouts: { contentIdleMs: 90_000 },
  })
  expect(modelEntrySchema.safeParse({ id: 'acme/large', routing: 'random', routes }).success).toBe(false)
})

test('reads the price free', () => {
  expect(priceFromEntry('free')).toBe(freePrice)
})

test('tiers are sorted by size and use their own fallbacks, not the base price', () => {
  const price = priceFromEntry({
    input: '1',
    output: '2',
    cache_read: '0.1',
    over: { '1000000': { input: '7', output: '8' }, '200000': { input: '3', output: '4', cache_write: '5' } },
  })
  const bounds = price.rows.flatMap(({ when }) => when?.overInputTokens ?? [])
  expect([...new Set(bounds)]).toEqual([200_000, 1_000_000])
  expect(ratesAt(price, 200_001)).toEqual({
    input: pico(3_000_000n),
    output: pico(4_000_000n),
    cache_read: pico(3_000_000n),
    cache_write: pico(5_000_000n),
    cache_write_1h: pico(5_000_000n),
  })
  expect(ratesAt(price, 200_000).cache_read).toBe(pico(100_000n))
})

test.each([
  ['a number', 2.5],
  ['a negative price', '-1.00'],
  ['an exponent', '1e3'],
  ['seven decimals', '0.0000001'],
  ['a comma', '2,50'],
  ['a currency', '$2.50'],
  ['nothing', ''],
])('%s is not a price', (_, input) => {
  const entry = { id: 'a/b', routes: [route], price: { input, output: '1' } }
  expect(modelEntrySchema.safeParse(entry).success).toBe(false)
})

test('the pattern shown to editors agrees with the code that decides', () => {
  const price = modelEntrySchema.shape.price.unwrap().def.options[1]
  const pattern = new RegExp(String(price.shape.input.meta()?.pattern))
  for (const text of '0 2.50 0.000001 999999999 1. .5 01 -1 +1 1e3 0.0000001 1000000000'.split(' ')) {
    expect([text, pattern.test(text)]).toEqual([text, parsePrice(text) !== undefined])
  }
})

test.each<[string, Record<string, unknown>, string]>([
  ['an id without a creator', { id: 'large' }, 'id'],
  ['an id with two slashes', { id: 'a/b/c' }, 'id'],
  ['an id with a space', { id: 'a/b c' }, 'id'],
  ['no route', { routes: [] }, 'routes'],
  ['an unknown tag', { tags: ['tools', 'teleport'] }, 'tags.1'],
  ['a fraction of a token', { context_tokens: 1.5 }, 'context_tokens'],
  ['more tokens by default than at most', { max_output_tokens: 5, default_max_tokens: 6 }, 'default_max_tokens'],
  ['a weight of zero', { routes: [{ ...route, weight: 0 }] }, 'routes.0.weight'],
  ['a timeout of zero', { routes: [{ ...route, timeouts: { idle_ms: 0 } }] }, 'routes.0.timeouts.idle_ms'],
  ['a day that does not exist', { released: '2026-02-30' }, 'released'],
  ['a date in another order', { released: '28.02.2026' }, 'released'],
])('%s is refused', (_, change, path) => {
  expect(faultPaths({ id: 'a/b', routes: [route], ...change })).toEqual([path])
})

test.each(['0', '-5', '1.5', '2147483649', 'many'])('a tier over %p is refused', (key) => {
  const price = { input: '1', output: '1', over: { [key]: { input: '1', output: '1' } } }
  expect(modelEntrySchema.safeParse({ id: 'a/b', routes: [route], price }).success).toBe(false)
})

test('a tier over the largest count is accepted', () => {
  const price = { input: '1', output: '1', over: { '2147483648': { input: '1', output: '1' } } }
  const entry: ModelEntry = modelEntrySchema.parse({ id: 'a/b', routes: [route], price })
  expect(modelFromEntry(entry, 'built in').price?.rows.some(({ when }) => when?.overInputTokens === 2 ** 31)).toBe(true)
})

test('a cap above the maximum is reported together with other faults of the entry', () => {
  const entry = { id: 'nonsense', routes: [route], max_output_tokens: 5, default_max_tokens: 6 }
  expect(faultPaths(entry)).toEqual(['id', 'default_max_tokens'])
})
