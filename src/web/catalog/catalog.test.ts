import { describe, expect, test } from 'bun:test'
import { sandboxEntries } from '../../../test/parts/web.ts'
import { priceUsage } from '../../catalog/price.ts'
import { cachePriceHistory } from './catalog-pages.ts'
import type { CatalogEntry, CatalogRoute } from './entry.ts'
import { exactCount, shortCount, usd } from './format.ts'
import { describeSources, emptyQuery, isFiltered, parseQuery, renderQuery, selectEntries } from './query.ts'
import { parseSample, priceOf, usageOf } from './sample-cost.ts'
import { hasEnoughSamples, missingFigureText, modelStatus, orderRoutes } from './status.ts'
import { isOwnKeyOnly, usableEntries, withOwnKeyModels } from './usable-models.ts'

const row = { input: '1.00', output: '2.00', cache_read: '0.10', cache_write: '1.25', cache_write_1h: '2.00' }

function route(part: Partial<CatalogRoute> = {}): CatalogRoute {
  const names = { provider: 'acme', upstream_model: 'large', rehearsal: false }
  const healthy = { health: 'healthy', factor: 1, wait_ms: null, why: null } as const
  return { ...names, ...healthy, priority: 1, weight: 1, first_event_ms: null, tokens_per_second: null, ...part }
}

function entry(id: string, part: Partial<CatalogEntry> = {}): CatalogEntry {
  return {
    id,
    name: id,
    owned_by: id.slice(0, id.indexOf('/')),
    context_tokens: 100_000,
    max_output_tokens: 4000,
    tags: [],
    released: null,
    source: 'built in',
    price: row,
    price_source: null,
    price_version: null,
    callable: true,
    routes: [route()],
    ...part,
  }
}

const ids = (entries: readonly CatalogEntry[]) => entries.map(({ id }) => id)

describe('a query', () => {
  test('round-trips through the address', () => {
    const address =
      'q=large+one&creator=acme&provider=p&tag=tools&tag=vision&max_input=2.50&min_context=128000&routes=2&free=1&sort=price&m=acme%2Flarge&m=acme%2Fsmall'
    expect(renderQuery(parseQuery(new URLSearchParams(address)))).toBe(address)
  })

  test('ignores invalid values', () => {
    const address = 'max_input=cheap&min_context=-4&routes=3&free=yes&sort=best&tag='
    expect(parseQuery(new URLSearchParams(address))).toEqual(emptyQuery)
  })

  test('selects at most four models, each once, and is not a filter by that', () => {
    const query = parseQuery(new URLSearchParams('m=a/1&m=a/1&m=&m=a/2&m=a/3&m=a/4&m=a/5'))
    expect(query.m).toEqual(['a/1', 'a/2', 'a/3', 'a/4'])
    expect(isFiltered(query)).toBe(false)
  })
})

describe('the list', () => {
  const entries = [
    entry('acme/dear', { price: { ...row, input: '10.00' }, tags: ['tools', 'vision'] }),
    entry('acme/free', { price: 'free', tags: ['tools'], context_tokens: null }),
    entry('bolt/cheap', { price: { ...row, input: '0.05' }, name: 'Lightning', routes: [route(), route()] }),
    entry('bolt/none', { price: null, callable: false, context_tokens: 1_000_000 }),
  ]
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ['everything, by id', '', ['acme/dear', 'acme/free', 'bolt/cheap', 'bolt/none']],
    ['models with the words, in any order and case', 'q=LIGHT+bolt', ['bolt/cheap']],
    ['models of a creator', 'creator=acme', ['acme/dear', 'acme/free']],
    ['models with all of the tags', 'tag=tools&tag=vision', ['acme/dear']],
    ['models up to an input price, without those of unknown price', 'max_input=1.00', ['acme/free', 'bolt/cheap']],
    ['models from a context size, without those of unknown size', 'min_context=200000', ['bolt/none']],
    ['models with several routes', 'routes=2', ['bolt/cheap']],
    ['free models', 'free=1', ['acme/free']],
    ['the cheapest first and the unpriced last', 'sort=price', ['acme/free', 'bolt/cheap', 'acme/dear', 'bolt/none']],
    ['the longest first and the unknown last', 'sort=context', ['bolt/none', 'acme/dear', 'bolt/cheap', 'acme/free']],
  ]
  for (const [name, address, expected] of cases) {
    test(`shows ${name}`, () => {
      expect(ids(selectEntries(entries, parseQuery(new URLSearchParams(address))))).toEqual([...expected])
    })
  }

  test('describes where prices come from', () => {
    const set = entry('bolt/own', { source: 'tollgate.yaml:14' })
    // A built-in model with a price set by the API.
    const changed = entry('bolt/changed', { price_source: 'management API' })
    expect(describeSources([...entries, set, changed], '2026-11-15')).toBe(
      '6 models from 1 provider; prices: 3 built in, 2026-11-15; 1 set in tollgate.yaml; 1 set by the management API; 1 without a price',
    )
  })
})

describe('the calculator', () => {
  test('bills what the ledger would', () => {
    const price = priceOf(entry('acme/large'))
    const sample = parseSample(new URLSearchParams('in=3000&cached=60&out=500&calls=1'))
    // 1,200 × $1.00/M + 1,800 × $0.10/M + 500 × $2.00/M = $0.0012 + $0.00018 + $0.001
    expect(price && usd(priceUsage(price, usageOf(sample)))).toBe('$0.00238')
  })

  test('uses the prices of the tier that the input reaches', () => {
    const over = { '2000': { ...row, input: '3.00', cache_read: '0.30', output: '4.00' } }
    const price = priceOf(entry('acme/large', { price: { ...row, over } }))
    const sample = parseSample(new URLSearchParams('in=3000&cached=0&out=0'))
    // 3,000 × $3.00/M
    expect(price && usd(priceUsage(price, usageOf(sample)))).toBe('$0.009')
  })

  test('keeps the example value of an invalid number', () => {
    const sample = parseSample(new URLSearchParams('in=lots&cached=101&out=-1&calls=1e3'))
    expect(sample).toEqual({ in: 3000, cached: 60, out: 500, calls: 1000 })
  })
})

describe('the order of routes', () => {
  const described = (routes: readonly CatalogRoute[]) =>
    orderRoutes(routes).map(({ route: { provider }, place, why }) => `${place ?? 'out'} ${provider}: ${why}`)

  test('goes by priority, and shares a priority by weight', () => {
    const routes = [
      route({ provider: 'c', priority: 2 }),
      route({ provider: 'a', weight: 1 }),
      route({ provider: 'b', weight: 3 }),
    ]
    expect(described(routes)).toEqual([
      '1 b: priority 1; 75 % of first attempts, by weight',
      '1 a: priority 1; 25 % of first attempts, by weight',
      '2 c: priority 2; tried after lower priority numbers',
    ])
  })

  test('skips a route in cooldown and says for how long', () => {
    const cooling = route({ provider: 'a', health: 'ejected', factor: 0, wait_ms: 41_000, why: 'timed out' })
    expect(described([cooling, route({ provider: 'b', priority: 2 })])).toEqual([
      '1 b: priority 2; the only route of this priority, so tried first',
      'out a: skipped: cooldown 41 s (last fault: timed out)',
    ])
  })

  test('tries failing routes when no better one is left, but not paused ones', () => {
    const routes = [
      route({ provider: 'a', health: 'ejected', factor: 0 }),
      route({ provider: 'b', health: 'parked', factor: 0 }),
    ]
    expect(orderRoutes(routes).map(({ place }) => place)).toEqual([1, undefined])
  })

  test('gives half a share to a route that is slower than its peers', () => {
    const figures = (p95: number) => ({ p50: p95, p95, samples: 20, window_ms: 1000 })
    const routes = [route({ provider: 'slow', first_event_ms: figures(301) }), route({ first_event_ms: figures(100) })]
    // Slow means more than three times the p95 of the faster one. 1 : ½ is 67 to 33.
    expect(described(routes)).toEqual([
      '1 acme: priority 1; 67 % of first attempts, by weight',
      '1 slow: priority 1; 33 % of first attempts, by weight; half share: slower than its peers',
    ])
  })
})

describe('measurements', () => {
  const figures = { p50: 210, p95: 400, samples: 19, window_ms: 60_000 }

  test('are shown from twenty samples on; otherwise the reason is', () => {
    expect(hasEnoughSamples({ ...figures, samples: 20 })).toBe(true)
    expect(hasEnoughSamples(figures)).toBe(false)
    expect(missingFigureText(figures, false)).toBe('not enough traffic yet (n = 19)')
    expect(missingFigureText(null, false)).toBe('no traffic yet')
    // However many requests it had.
    expect(missingFigureText(null, true)).toBe('not measured')
  })

  test('give a model a status', () => {
    const text = (part: Partial<CatalogEntry>) => modelStatus(entry('a/b', part)).text
    const used = route({ first_event_ms: figures })
    // Nobody has shown that an unused route works.
    expect(text({})).toBe('no recent traffic')
    expect(text({ routes: [used] })).toBe('healthy')
    expect(text({ routes: [route(), used] })).toBe('healthy')
    expect(text({ routes: [used, route({ health: 'slow start' })] })).toBe('recovering')
    expect(text({ routes: [route({ rehearsal: true })] })).toBe('simulated')
    expect(text({ routes: [route(), route({ health: 'parked' })] })).toBe('1 of 2 available')
    expect(text({ routes: [route({ health: 'ejected' })] })).toBe('unavailable')
    expect(text({ price: null, callable: false })).toBe('not callable')
  })
})

test('counts are abbreviated or exact', () => {
  const counts = [999, 1000, 5120, 65_535, 200_000, 999_999, 1_048_576]
  expect(counts.map(shortCount)).toEqual(['999', '1K', '5.12K', '65.5K', '200K', '1M', '1.05M'])
  expect(exactCount(1_048_576)).toBe('1,048,576')
})

test('a price history is read once per snapshot of the catalog, and again after a failure', async () => {
  const reads: string[] = []
  let fails = false
  const historyIn = cachePriceHistory(async (id) => {
    reads.push(id)
    if (fails) throw new Error('not now')
    return []
  })
  const snapshot = sandboxEntries()
  await Promise.all([1, 2, 3].map(() => historyIn(snapshot, 'sandbox/echo')))
  await historyIn(snapshot, 'sandbox/slow')
  await historyIn(snapshot, 'acme/unknown')
  expect(reads).toEqual(['sandbox/echo', 'sandbox/slow'])
  fails = true
  const later = [...snapshot]
  expect(historyIn(later, 'sandbox/echo')).rejects.toThrow('not now')
  await Bun.sleep(0)
  fails = false
  expect(await historyIn(later, 'sandbox/echo')).toEqual([])
  expect(reads).toHaveLength(4)
})

test('without a key or project the whole catalog is shown', () => {
  const entries = sandboxEntries()
  expect(usableEntries(entries, undefined)).toBe(entries)
})

test('a key sees exactly the models that the gateway lists for it, with their catalog data', () => {
  const shown = usableEntries(sandboxEntries(), [
    { id: 'sandbox/echo', owned_by: 'sandbox' },
    { id: 'sandbox/cache', owned_by: 'sandbox', own_key: true },
    { id: 'acme/private', owned_by: 'acme', own_key: true },
  ])
  expect(shown.map(({ id, own_key }) => [id, own_key ?? false])).toEqual([
    ['sandbox/echo', false],
    ['sandbox/cache', true],
    ['acme/private', true],
  ])
  expect(shown.map(isOwnKeyOnly)).toEqual([false, false, true])
  expect(shown[0]?.name).toBe('Sandbox Echo')
  // Callable, although its price is unknown here.
  const [, , unlisted] = shown
  expect(unlisted && modelStatus(unlisted).text).toBe('own key')
})

test('models that own keys unlock are added to the catalog, and those that they also serve are marked', () => {
  const entries = sandboxEntries()
  expect(withOwnKeyModels(entries, [])).toBe(entries)
  const shown = withOwnKeyModels(entries, [
    { id: 'acme/private', owned_by: 'acme', own_key: true },
    { id: 'sandbox/cache', owned_by: 'sandbox', own_key: true },
  ])
  expect(shown.map(({ id }) => id)).toEqual(['acme/private', ...entries.map(({ id }) => id).sort()])
  expect(shown.filter(({ own_key }) => own_key).map(({ id }) => id)).toEqual(['acme/private', 'sandbox/cache'])
  expect(shown.filter(isOwnKeyOnly).map(({ id, callable }) => [id, callable])).toEqual([['acme/private', true]])
})
