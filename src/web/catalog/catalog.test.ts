import { describe, expect, test } from 'bun:test'
import { createJumpClock } from '../../../test/parts/jump-clock.ts'
import { sandboxEntries } from '../../../test/parts/web.ts'
import { modelStatus } from '../../api/route-state.ts'
import { priceUsage } from '../../catalog/price.ts'
import { cacheLists, cachePriceHistory } from './catalog-pages.ts'
import {
  blendedPrice,
  type CatalogEntry,
  type CatalogRoute,
  hasNewPrice,
  isNew,
  isOwnKeyOnly,
  withOwnKeyModels,
} from './entry.ts'
import { amountText, exactCount, percentText, roundPrice, shortCount, spanText, usd, usdText } from './format.ts'
import {
  describeEntries,
  emptyQuery,
  isFiltered,
  pageSize,
  parseQuery,
  renderQuery,
  toggleFacet,
  toggleSort,
  viewOf,
} from './query.ts'
import { parseSample, priceOf, usageOf } from './sample-cost.ts'
import { hasEnoughSamples, missingFigureText, orderRoutes } from './status.ts'

const row = { input: '1.00', output: '2.00', cache_read: '0.10', cache_write: '1.25', cache_write_1h: '2.00' }

function route(part: Partial<CatalogRoute> = {}): CatalogRoute {
  const names = { provider: 'acme', upstream_model: 'large', rehearsal: false, state: 'unused' } as const
  const healthy = { health: 'healthy', factor: 1, wait_ms: null, why: null } as const
  const measured = { first_event_ms: null, tokens_per_second: null }
  return { ...names, ...healthy, ...measured, priority: 1, weight: 1, ...part }
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
      'q=large+one&creator=acme&provider=p&tag=tools&tag=json&modality=image&max_price=2.50&min_context=128000&routes=2&sort=-price&page=3&m=acme%2Flarge&m=acme%2Fsmall'
    expect(renderQuery(parseQuery(new URLSearchParams(address)))).toBe(address)
  })

  test('ignores invalid values', () => {
    const address = 'max_price=cheap&min_context=-4&routes=3&sort=best&page=0&tag='
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
  const view = (address: string, used: readonly string[] = []) =>
    viewOf(entries, parseQuery(new URLSearchParams(address)), used)
  // Blended: (3 × 10.00 + 2.00) / 4 = 8.00, free, (3 × 0.05 + 2.00) / 4 = 0.5375, unknown.
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ['everything, by name', '', ['acme/dear', 'acme/free', 'bolt/none', 'bolt/cheap']],
    ['models with the words, in any order and case', 'q=LIGHT+bolt', ['bolt/cheap']],
    ['models of a creator', 'creator=acme', ['acme/dear', 'acme/free']],
    ['models with all of the tags', 'tag=tools&tag=vision', ['acme/dear']],
    ['models that take images', 'modality=image', ['acme/dear']],
    ['models up to a blended price, without those of unknown price', 'max_price=1.00', ['acme/free', 'bolt/cheap']],
    ['free models', 'max_price=0', ['acme/free']],
    ['models from a context size, without those of unknown size', 'min_context=200000', ['bolt/none']],
    ['models with several routes', 'routes=2', ['bolt/cheap']],
    ['the cheapest first and the unpriced last', 'sort=price', ['acme/free', 'bolt/cheap', 'acme/dear', 'bolt/none']],
    ['the dearest first and the unpriced last', 'sort=-price', ['acme/dear', 'bolt/cheap', 'acme/free', 'bolt/none']],
    ['the longest first and the unknown last', 'sort=context', ['bolt/none', 'acme/dear', 'bolt/cheap', 'acme/free']],
  ]
  for (const [name, address, expected] of cases) {
    test(`shows ${name}`, () => {
      expect(ids(view(address).rows)).toEqual([...expected])
    })
  }

  test('shows the most used models first and the others by name', () => {
    const used = ['bolt/none', 'gone/model', 'acme/free']
    expect(ids(view('', used).rows)).toEqual(['bolt/none', 'acme/free', 'acme/dear', 'bolt/cheap'])
  })

  test('counts what each value of a facet would leave', () => {
    const { facets } = view('')
    expect(facets.tag).toEqual([['tools', 2]])
    expect(facets.modality).toEqual([
      ['text', 4],
      ['image', 1],
    ])
    expect(facets.max_price).toEqual([
      ['0', 1],
      ['0.50', 1],
      ['2.00', 2],
      ['5.00', 2],
      ['15.00', 3],
    ])
    expect(facets.creator).toEqual([
      ['acme', 2],
      ['bolt', 2],
    ])
    expect(facets.routes).toEqual([['2', 1]])
  })

  test('counts a facet of which one value applies without its own choice, and the others with it', () => {
    const { facets, matching, total } = view('creator=acme')
    expect(facets.creator).toEqual([
      ['acme', 2],
      ['bolt', 2],
    ])
    expect(facets.tag).toEqual([['tools', 2]])
    expect([matching, total]).toEqual([2, 4])
    // All tags apply, so another tag only counts among the models that have the chosen one.
    expect(view('tag=vision').facets.tag).toEqual([
      ['tools', 1],
      ['vision', 1],
    ])
  })

  test('offers a chosen value that is not among the steps', () => {
    expect(view('max_price=9.00').facets.max_price).toContainEqual(['9.00', 3])
  })

  test('has pages, and the last one in place of one beyond it', () => {
    const many = Array.from({ length: 2 * pageSize + 1 }, (_, at) => entry(`acme/m${String(at).padStart(3, '0')}`))
    const pageOf = (address: string) => viewOf(many, parseQuery(new URLSearchParams(address)), [])
    expect(pageOf('').rows).toHaveLength(pageSize)
    expect(ids(pageOf('page=3').rows)).toEqual(['acme/m100'])
    expect(pageOf('page=9')).toMatchObject({ page: 3, pages: 3, matching: 101 })
  })

  test('links toggle a value and an order, and lead to the first page', () => {
    const query = parseQuery(new URLSearchParams('tag=tools&creator=acme&sort=price&page=2'))
    expect(renderQuery(toggleFacet(query, 'tag', 'json'))).toBe('creator=acme&tag=tools&tag=json&sort=price')
    expect(renderQuery(toggleFacet(query, 'tag', 'tools'))).toBe('creator=acme&sort=price')
    expect(renderQuery(toggleFacet(query, 'creator', 'bolt'))).toBe('creator=bolt&tag=tools&sort=price')
    expect(renderQuery(toggleSort(query, 'price'))).toBe('creator=acme&tag=tools&sort=-price')
    expect(renderQuery(toggleSort(query, 'context'))).toBe('creator=acme&tag=tools&sort=context')
  })

  test('describes where prices come from', () => {
    const set = entry('bolt/own', { source: 'tollgate.yaml:14' })
    // A built-in model with a price set by the API.
    const changed = entry('bolt/changed', { price_source: 'management API' })
    expect(describeEntries([...entries, set, changed])).toBe('6 models from 1 provider, 1 without a price')
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

test('the blended price counts three input tokens for each output token, and only input for embeddings', () => {
  const shown = (part: Partial<CatalogEntry>) => {
    const price = blendedPrice(entry('acme/large', part))
    return price === undefined ? undefined : roundPrice(price)
  }
  // (3 × 1.25 + 10.00) / 4 = 3.4375
  expect(shown({ price: { ...row, input: '1.25', output: '10.00' } })).toBe('3.44')
  // (3 × 0.03 + 0.06) / 4 = 0.0375
  expect(shown({ price: { ...row, input: '0.03', output: '0.06' } })).toBe('0.038')
  expect(shown({ price: { ...row, input: '0.02', output: '0.00' }, tags: ['embeddings'] })).toBe('0.02')
  expect(shown({ price: 'free' })).toBe('0.00')
  expect(shown({ price: null })).toBeUndefined()
})

test('a model is new for 30 days, and its price for the day', () => {
  const released = (day: string | null) => isNew({ released: day }, '2026-11-17')
  expect(['2026-11-18', '2026-11-17', '2026-10-18', '2026-10-17', null].map(released)).toEqual([
    false,
    true,
    true,
    false,
    false,
  ])
  const changed = entry('a/b', { price_changed_at: '2026-11-17T03:00:00.000Z' })
  expect([hasNewPrice(changed, '2026-11-17'), hasNewPrice(changed, '2026-11-18')]).toEqual([true, false])
  expect(hasNewPrice(entry('a/b'), '2026-11-17')).toBe(false)
})

test('the most used models are read once a minute, and stay known when the database fails', async () => {
  const clock = createJumpClock()
  let reads = 0
  const used = cacheLists(async () => {
    if (++reads === 2) throw new Error('not now')
    return [`acme/m${reads}`]
  }, clock)
  expect([await used(''), await used('')]).toEqual([['acme/m1'], ['acme/m1']])
  clock.jump(61)
  expect(await used('')).toEqual(['acme/m1'])
  clock.jump(61)
  expect(await used('')).toEqual(['acme/m3'])
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
    const cooling = route({
      provider: 'a',
      state: 'cooldown',
      health: 'ejected',
      factor: 0,
      wait_ms: 41_000,
      why: 'timed out',
    })
    expect(described([cooling, route({ provider: 'b', priority: 2 })])).toEqual([
      '1 b: priority 2; the only route of this priority, so tried first',
      'out a: skipped: cooldown 41 s. Last fault: timed out. It is not tried for a while.',
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
    expect(missingFigureText(figures, false)).toBe('not enough traffic yet (19 calls)')
    expect(missingFigureText(null, false)).toBe('no streams yet')
    // However many requests it had.
    expect(missingFigureText(null, true)).toBe('not measured')
  })

  test('give a model a status', () => {
    const text = (part: Partial<CatalogEntry>) => modelStatus(entry('a/b', part)).text
    const used = route({ state: 'available' })
    const paused = route({ state: 'paused', wait_ms: 41_000 })
    // An unused route has not shown that it works.
    expect(text({})).toBe('no recent traffic')
    expect(text({ routes: [used] })).toBe('available')
    expect(text({ routes: [route(), used] })).toBe('available')
    expect(text({ routes: [used, route({ state: 'recovering' })] })).toBe('recovering')
    expect(text({ routes: [route({ state: 'simulated' })] })).toBe('simulated')
    expect(text({ routes: [route(), paused] })).toBe('1 of 2 available')
    // One route: its own state, as everywhere.
    expect(text({ routes: [paused] })).toBe('paused 41 s')
    expect(text({ routes: [route({ state: 'failing' })] })).toBe('failing')
    expect(text({ routes: [route({ state: 'cooldown' }), route({ state: 'failing' })] })).toBe('unavailable')
    expect(text({ price: null, callable: false })).toBe('not callable')
  })
})

test('counts are abbreviated or exact', () => {
  const counts = [999, 1000, 5120, 65_535, 200_000, 999_999, 1_048_576]
  expect(counts.map(shortCount)).toEqual(['999', '1K', '5.12K', '65.5K', '200K', '1M', '1.05M'])
  expect(exactCount(1_048_576)).toBe('1,048,576')
})

test('amounts are rounded to two decimals, and below a cent to their first two digits', () => {
  const amounts = [
    ...['4.644999999', '4.645', '1234.50', '0.00', '0', '-0.996', '999.999', '0.01', '0.0949'],
    ...['0.00999', '0.00994', '0.000045281', '0.000045500', '-0.0007', '0.000000009', 'free'],
  ]
  expect(amounts.map(amountText)).toEqual([
    ...['$4.64', '$4.65', '$1,234.50', '$0.00', '$0.00', '−$1.00', '$1,000.00', '$0.01', '$0.09'],
    ...['$0.01', '$0.0099', '$0.000045', '$0.000046', '−$0.0007', '$0.000000009', 'free'],
  ])
  expect(['4.649999999', '-0.0007', 'free'].map(usdText)).toEqual(['$4.649999999', '−$0.0007', 'free'])
})

test('percentages have one decimal, and only nothing is 0 % and all 100 %', () => {
  const shares = [0, 0.0000001, 0.001, 0.1234, 0.5, 0.999, 0.9999999, 1, 4.5, -0.05]
  expect(shares.map(percentText)).toEqual([
    '0.0 %',
    '< 0.1 %',
    '0.1 %',
    '12.3 %',
    '50.0 %',
    '99.9 %',
    '> 99.9 %',
    '100.0 %',
    '450.0 %',
    '−5.0 %',
  ])
})

test('spans of time have one unit', () => {
  const minute = 60_000
  const spans = [0, 26_500, 119_000, 120_000, 90 * minute, 3 * 60 * minute, 50 * 60 * minute, 90 * 1440 * minute]
  expect([...spans, 213.08 * 1440 * minute].map(spanText)).toEqual([
    '0 s',
    '27 s',
    '119 s',
    '2 min',
    '90 min',
    '3 h',
    '2 days',
    '90 days',
    '7 months',
  ])
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
  const echo = { id: 'sandbox/echo', price_version: 'sandbox/echo#3' }
  await Promise.all([1, 2, 3].map(() => historyIn(snapshot, echo)))
  await historyIn(snapshot, { id: 'sandbox/slow', price_version: null })
  // A price in a list has versions of its own.
  await historyIn(snapshot, { id: 'sandbox/echo', price_version: 'sandbox/echo#list-retail#12' })
  expect(reads).toEqual(['sandbox/echo', 'sandbox/slow', 'sandbox/echo#list-retail'])
  fails = true
  const later = [...snapshot]
  expect(historyIn(later, echo)).rejects.toThrow('not now')
  await Bun.sleep(0)
  fails = false
  expect(await historyIn(later, echo)).toEqual([])
  expect(reads).toHaveLength(5)
})

test('models that own keys unlock are added to the catalog, and those that they also serve are marked', () => {
  const entries = sandboxEntries()
  const [entry] = entries
  if (!entry) throw new Error('the sandbox has models')
  expect(withOwnKeyModels(entries, [])).toBe(entries)
  const shown = withOwnKeyModels(entries, [
    { ...entry, id: 'acme/private', owned_by: 'acme', price: null, routes: [], own_key: true },
    { ...entry, id: 'sandbox/cache', own_key: true },
  ])
  expect(shown.map(({ id }) => id)).toEqual(['acme/private', ...entries.map(({ id }) => id).sort()])
  expect(shown.filter(({ own_key }) => own_key).map(({ id }) => id)).toEqual(['acme/private', 'sandbox/cache'])
  expect(shown.filter(isOwnKeyOnly).map(({ id, callable }) => [id, callable])).toEqual([['acme/private', true]])
})
