import { describe, expect, test } from 'bun:test'
import { priceUsage } from '../../catalog/price.ts'
import type { CatalogEntry, CatalogRoute } from './entry.ts'
import { exactCount, shortCount, usd } from './figures.ts'
import { emptyQuery, isNarrowed, parseQuery, renderQuery } from './query.ts'
import { orderRoutes } from './route-order.ts'
import { describeSources, selectEntries } from './select-entries.ts'
import { parseSample, priceOf, usageOf } from './shown-price.ts'
import { isTelling, missingFigure, modelStanding } from './standing.ts'

const row = { input: '1.00', output: '2.00', cache_read: '0.10', cache_write: '1.25', cache_write_1h: '2.00' }

function route(part: Partial<CatalogRoute> = {}): CatalogRoute {
  const names = { provider: 'acme', upstream_model: 'large' }
  return { ...names, priority: 1, weight: 1, health: 'healthy', first_event_ms: null, tokens_per_second: null, ...part }
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
    callable: true,
    routes: [route()],
    ...part,
  }
}

const ids = (entries: readonly CatalogEntry[]) => entries.map(({ id }) => id)

describe('a query', () => {
  test('survives the way into the address and back', () => {
    const address =
      'q=large+one&creator=acme&provider=p&tag=tools&tag=vision&max_input=2.50&min_context=128000&routes=2&free=1&sort=price&m=acme%2Flarge&m=acme%2Fsmall'
    expect(renderQuery(parseQuery(new URLSearchParams(address)))).toBe(address)
  })

  test('drops what makes no sense', () => {
    const address = 'max_input=cheap&min_context=-4&routes=3&free=yes&sort=best&tag='
    expect(parseQuery(new URLSearchParams(address))).toEqual(emptyQuery)
  })

  test('ticks four models at most, each once, and is not narrowed by them', () => {
    const query = parseQuery(new URLSearchParams('m=a/1&m=a/1&m=&m=a/2&m=a/3&m=a/4&m=a/5'))
    expect(query.compared).toEqual(['a/1', 'a/2', 'a/3', 'a/4'])
    expect(isNarrowed(query)).toBe(false)
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
    ['words in any order and case', 'q=LIGHT+bolt', ['bolt/cheap']],
    ['a maker', 'creator=acme', ['acme/dear', 'acme/free']],
    ['all of the tags', 'tag=tools&tag=vision', ['acme/dear']],
    ['a highest input price, which an unknown one does not keep', 'max_input=1.00', ['acme/free', 'bolt/cheap']],
    ['a smallest context, which an unknown one does not reach', 'min_context=200000', ['bolt/none']],
    ['two routes or more', 'routes=2', ['bolt/cheap']],
    ['free ones', 'free=1', ['acme/free']],
    ['the cheapest first and the unpriced last', 'sort=price', ['acme/free', 'bolt/cheap', 'acme/dear', 'bolt/none']],
    ['the longest first and the unknown last', 'sort=context', ['bolt/none', 'acme/dear', 'bolt/cheap', 'acme/free']],
  ]
  for (const [name, address, expected] of cases) {
    test(`shows ${name}`, () => {
      expect(ids(selectEntries(entries, parseQuery(new URLSearchParams(address))))).toEqual([...expected])
    })
  }

  test('says where prices come from', () => {
    const set = entry('bolt/own', { source: 'tollgate.yaml:14' })
    // It is built in, and its price is not.
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

  test('keeps the example where a number is none', () => {
    const sample = parseSample(new URLSearchParams('in=lots&cached=101&out=-1&calls=1e3'))
    expect(sample).toEqual({ inputTokens: 3000, outputTokens: 500, cachedPercent: 60, calls: 1000 })
  })
})

describe('the order of routes', () => {
  const told = (routes: readonly CatalogRoute[]) =>
    orderRoutes(routes).map(({ route: { provider }, place, why }) => `${place ?? 'out'} ${provider}: ${why}`)

  test('goes by priority, and shares a priority by weight', () => {
    const routes = [
      route({ provider: 'c', priority: 2 }),
      route({ provider: 'a', weight: 1 }),
      route({ provider: 'b', weight: 3 }),
    ]
    expect(told(routes)).toEqual([
      '1 b: priority 1; 75 % of the first tries, by weight',
      '1 a: priority 1; 25 % of the first tries, by weight',
      '2 c: priority 2; after every route of a lower number',
    ])
  })

  test('leaves out what cools down, and says how long', () => {
    const cooling = route({ provider: 'a', health: 'ejected', wait_ms: 41_000, why: 'timed out' })
    expect(told([cooling, route({ provider: 'b', priority: 2 })])).toEqual([
      '1 b: priority 2; alone there, so it goes first',
      'out a: left out: cooling 41 s (last fault: timed out)',
    ])
  })

  test('tries failing routes when no better one is left, but not those that were set aside', () => {
    const routes = [route({ provider: 'a', health: 'ejected' }), route({ provider: 'b', health: 'parked' })]
    expect(orderRoutes(routes).map(({ place }) => place)).toEqual([1, undefined])
  })

  test('gives half a share to a route that is slow for its group', () => {
    const figures = (p95: number) => ({ p50: p95, p95, samples: 20, window_ms: 1000 })
    const routes = [route({ provider: 'slow', first_event_ms: figures(301) }), route({ first_event_ms: figures(100) })]
    // The faster one is the measure: above three times its 95th percentile. 1 : ½ is 67 to 33.
    expect(told(routes)).toEqual([
      '1 acme: priority 1; 67 % of the first tries, by weight',
      '1 slow: priority 1; 33 % of the first tries, by weight; half its share: slow for this group',
    ])
  })
})

describe('what is measured', () => {
  const figures = { p50: 210, p95: 400, samples: 19, window_ms: 60_000 }

  test('is a number from twenty samples on, and otherwise says why not', () => {
    expect(isTelling({ ...figures, samples: 20 })).toBe(true)
    expect(isTelling(figures)).toBe(false)
    expect(missingFigure(figures, false)).toBe('too little traffic yet (n = 19)')
    expect(missingFigure(null, false)).toBe('no traffic yet')
    // However many calls it had.
    expect(missingFigure(null, true)).toBe('not measured')
  })

  test('is told for a model in one word', () => {
    const word = (part: Partial<CatalogEntry>) => modelStanding(entry('a/b', part)).word
    expect(word({})).toBe('healthy')
    expect(word({ routes: [route(), route({ health: 'parked' })] })).toBe('1 of 2 open')
    expect(word({ routes: [route({ health: 'ejected' })] })).toBe('no route now')
    expect(word({ price: null, callable: false })).toBe('not callable')
  })
})

test('counts are short where they are shown and whole where they matter', () => {
  const counts = [999, 1000, 5120, 65_535, 200_000, 999_999, 1_048_576]
  expect(counts.map(shortCount)).toEqual(['999', '1K', '5.12K', '65.5K', '200K', '1M', '1.05M'])
  expect(exactCount(1_048_576)).toBe('1,048,576')
})
