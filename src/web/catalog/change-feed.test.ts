import { expect, test } from 'bun:test'
import { sandboxEntries } from '../../../test/parts/web.ts'
import { createChangeFeed } from './change-feed.ts'
import type { CatalogEntry } from './entry.ts'

/** A feed whose seconds pass when a test says so. */
function setUp() {
  const shop = { entries: sandboxEntries() }
  let look: (() => void) | undefined
  const feed = createChangeFeed({
    entries: () => shop.entries,
    every(_milliseconds, run) {
      look = run
      return () => {
        look = undefined
      }
    },
  })
  return { shop, feed, isLooking: () => look !== undefined, second: () => look?.() }
}

async function read(reader: ReturnType<typeof listen>): Promise<string> {
  const { value, done } = await reader.read()
  return done ? 'the end' : new TextDecoder().decode(value)
}

function listen(feed: ReturnType<typeof createChangeFeed>) {
  const reader = feed.listen(new AbortController().signal, '192.0.2.1')?.getReader()
  if (!reader) throw new Error('nobody may listen')
  return reader
}

function changeFirst(entries: readonly CatalogEntry[], change: (entry: CatalogEntry) => CatalogEntry) {
  return entries.map((entry, index) => (index === 0 ? change(entry) : entry))
}

test('a changed price is announced at the next poll, once', async () => {
  const { shop, feed, second } = setUp()
  const reader = listen(feed)
  const first = await read(reader)
  expect(first).toMatch(/^retry: 2000\nevent: changed\ndata: \S+\n\n$/)
  shop.entries = changeFirst(shop.entries, (entry) => ({ ...entry, price: 'free' }))
  second()
  const told = await read(reader)
  expect(told).toMatch(/^event: changed\ndata: \S+\n\n$/)
  expect(first).not.toContain(told.slice(told.indexOf('data: ')))
  for (let seconds = 1; seconds < 15; seconds++) second()
  // Fourteen polls without a change send nothing; the fifteenth keeps the connection alive.
  expect(await read(reader)).toBe(': keep-alive\n\n')
})

test('measurements are announced every fifteenth poll, and passing time is not a change', async () => {
  const { shop, feed, second } = setUp()
  const reader = listen(feed)
  await read(reader)
  const measure = (samples: number, window: number) =>
    changeFirst(shop.entries, (entry) => ({
      ...entry,
      routes: entry.routes.map((route) => ({
        ...route,
        first_event_ms: { p50: 41, p95: 88, samples, window_ms: window },
      })),
    }))
  shop.entries = measure(1, 1000)
  for (let seconds = 0; seconds < 15; seconds++) second()
  expect(await read(reader)).toBe('event: measured\ndata: again\n\n')
  shop.entries = measure(1, 2000)
  for (let seconds = 0; seconds < 15; seconds++) second()
  expect(await read(reader)).toBe(': keep-alive\n\n')
})

test('the catalog is not polled without listeners', async () => {
  const { feed, isLooking } = setUp()
  expect(isLooking()).toBe(false)
  const [one, other] = [listen(feed), listen(feed)]
  await one.cancel()
  expect(isLooking()).toBe(true)
  await other.cancel()
  expect(isLooking()).toBe(false)
})

test('closing ends every stream', async () => {
  const { feed, isLooking } = setUp()
  const reader = listen(feed)
  await read(reader)
  feed.close()
  expect(await read(reader)).toBe('the end')
  expect(isLooking()).toBe(false)
  // A page that comes back while the gateway stops would keep it from stopping.
  expect(feed.listen(new AbortController().signal, '192.0.2.1')).toBeUndefined()
})

test('a change of access is announced once at the next poll, to slow readers when they read', async () => {
  const { shop, feed, second } = setUp()
  const [quick, slow] = [listen(feed), listen(feed)]
  await read(quick)
  // The first word and three more are all that waits for somebody who does not read.
  for (const price of ['free', null, 'free'] as const) {
    shop.entries = changeFirst(shop.entries, (entry) => ({ ...entry, price }))
    second()
    await read(quick)
  }
  feed.accessChanged()
  feed.accessChanged()
  second()
  expect(await read(quick)).toBe('event: access\ndata: changed\n\n')
  second()
  for (let word = 1; word <= 4; word++) expect(await read(slow)).toContain('event: changed')
  second()
  expect(await read(slow)).toBe('event: access\ndata: changed\n\n')
  shop.entries = changeFirst(shop.entries, (entry) => ({ ...entry, price: null }))
  second()
  for (const reader of [quick, slow]) expect(await read(reader)).toContain('event: changed')
})

test('one address cannot use up all listeners, and unknown addresses share one', () => {
  const { feed } = setUp()
  const leaving = new AbortController()
  const listenFrom = (address: string | undefined, signal = new AbortController().signal) =>
    feed.listen(signal, address) !== undefined
  expect(listenFrom('192.0.2.1', leaving.signal)).toBe(true)
  for (let more = 1; more < 50; more++) expect(listenFrom('192.0.2.1')).toBe(true)
  expect(listenFrom('192.0.2.1')).toBe(false)
  expect(listenFrom('192.0.2.2')).toBe(true)
  for (let more = 0; more < 50; more++) expect(listenFrom(undefined)).toBe(true)
  expect(listenFrom(undefined)).toBe(false)
  leaving.abort()
  expect(listenFrom('192.0.2.1')).toBe(true)
  // Five hundred in all, from wherever.
  for (let more = 101; more < 500; more++) expect(listenFrom(`198.51.100.${more % 100}`)).toBe(true)
  expect(listenFrom('203.0.113.1')).toBe(false)
  feed.close()
})
