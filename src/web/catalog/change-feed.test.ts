import { expect, test } from 'bun:test'
import { bodyOf } from '../../../test/parts/http.ts'
import { sandboxEntries } from '../../../test/parts/web.ts'
import { createChangeFeed } from './change-feed.ts'
import type { CatalogEntry } from './entry.ts'

/** A feed whose timer is run by the test. */
function setUp() {
  const catalog = { entries: sandboxEntries() }
  let poll: (() => void) | undefined
  const feed = createChangeFeed({
    entries: () => catalog.entries,
    every(_milliseconds, run) {
      poll = run
      return () => {
        poll = undefined
      }
    },
  })
  return { catalog, feed, isPolling: () => poll !== undefined, second: () => poll?.() }
}

async function read(reader: ReturnType<typeof listen>): Promise<string> {
  const { value, done } = await reader.read()
  return done ? 'the end' : new TextDecoder().decode(value)
}

function listen(feed: ReturnType<typeof createChangeFeed>) {
  const stream = feed.listen('192.0.2.1')
  if (!stream) throw new Error('the feed refused a listener')
  return bodyOf(stream).getReader()
}

function changeFirst(entries: readonly CatalogEntry[], change: (entry: CatalogEntry) => CatalogEntry) {
  return entries.map((entry, index) => (index === 0 ? change(entry) : entry))
}

test('a changed price is announced at the next poll, once', async () => {
  const { catalog, feed, second } = setUp()
  const reader = listen(feed)
  const first = await read(reader)
  expect(first).toMatch(/^retry: 2000\nevent: changed\ndata: \S+ \S+\n\n$/)
  catalog.entries = changeFirst(catalog.entries, (entry) => ({ ...entry, price: 'free' }))
  second()
  const change = await read(reader)
  expect(change).toMatch(/^event: changed\ndata: \S+ \S+\n\n$/)
  expect(first).not.toContain(change.slice(change.indexOf('data: ')))
  for (let seconds = 1; seconds < 15; seconds++) second()
  // Fourteen polls without a change send nothing; the fifteenth keeps the connection alive.
  expect(await read(reader)).toBe(': keep-alive\n\n')
})

test('measurements are announced every fifteenth poll, and passing time is not a change', async () => {
  const { catalog, feed, second } = setUp()
  const reader = listen(feed)
  await read(reader)
  const measure = (samples: number, window: number) =>
    changeFirst(catalog.entries, (entry) => ({
      ...entry,
      routes: entry.routes.map((route) => ({
        ...route,
        first_event_ms: { p50: 41, p95: 88, samples, window_ms: window },
      })),
    }))
  catalog.entries = measure(1, 1000)
  for (let seconds = 0; seconds < 15; seconds++) second()
  expect(await read(reader)).toBe('event: measured\ndata: again\n\n')
  catalog.entries = measure(1, 2000)
  for (let seconds = 0; seconds < 15; seconds++) second()
  expect(await read(reader)).toBe(': keep-alive\n\n')
})

test('the catalog is not polled without listeners', async () => {
  const { feed, isPolling } = setUp()
  expect(isPolling()).toBe(false)
  const [one, other] = [listen(feed), listen(feed)]
  await one.cancel()
  expect(isPolling()).toBe(true)
  await other.cancel()
  expect(isPolling()).toBe(false)
})

test('closing ends every stream', async () => {
  const { feed, isPolling } = setUp()
  const reader = listen(feed)
  await read(reader)
  feed.close()
  expect(await read(reader)).toBe('the end')
  expect(isPolling()).toBe(false)
  // A page that reconnects would keep the gateway from stopping.
  expect(feed.listen('192.0.2.1')).toBeUndefined()
})

test('a change of access is announced once at the next poll, and slow readers get the latest change when they read', async () => {
  const { catalog, feed, second } = setUp()
  const [quick, slow] = [listen(feed), listen(feed)]
  const versionIn = (message: string) => /^event: changed\ndata: (\S+) (\S+)\n\n$/.exec(message)?.slice(1) ?? []
  await read(quick)
  // The first message and three more fill the buffer of a listener that does not read.
  let before: string[] = []
  for (const price of ['free', null, 'free'] as const) {
    catalog.entries = changeFirst(catalog.entries, (entry) => ({ ...entry, price }))
    second()
    before = versionIn(await read(quick))
  }
  feed.accessChanged()
  feed.accessChanged()
  second()
  const change = await read(quick)
  expect(versionIn(change)[0]).toBe(before[0] ?? '')
  expect(versionIn(change)[1]).not.toBe(before[1] ?? '')
  second()
  for (let message = 1; message <= 4; message++) expect(await read(slow)).toContain('event: changed')
  second()
  expect(await read(slow)).toBe(change)
  catalog.entries = changeFirst(catalog.entries, (entry) => ({ ...entry, price: null }))
  second()
  for (const reader of [quick, slow]) expect(versionIn(await read(reader))[1]).toBe(versionIn(change)[1] ?? '')
})

test('one address cannot use up all listeners, and unknown addresses share one', async () => {
  const { feed } = setUp()
  const listenFrom = (address: string | undefined) => feed.listen(address) !== undefined
  const leaving = feed.listen('192.0.2.1')
  for (let more = 1; more < 50; more++) expect(listenFrom('192.0.2.1')).toBe(true)
  expect(listenFrom('192.0.2.1')).toBe(false)
  expect(listenFrom('192.0.2.2')).toBe(true)
  for (let more = 0; more < 50; more++) expect(listenFrom(undefined)).toBe(true)
  expect(listenFrom(undefined)).toBe(false)
  await leaving?.clientLeft()
  expect(listenFrom('192.0.2.1')).toBe(true)
  // Five hundred in total, from any address.
  for (let more = 101; more < 500; more++) expect(listenFrom(`198.51.100.${more % 100}`)).toBe(true)
  expect(listenFrom('203.0.113.1')).toBe(false)
  feed.close()
})
